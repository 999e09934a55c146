//! The codes of what the command says beside a result: notes, warnings and hints.

use strum::IntoStaticStr;

/// Name of a note, a warning or a hint, that stays the same when its text changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum NoteCode {
    /// `budget` has added to a budget.
    BudgetRaised,
    /// `cancel` finds nothing to end.
    NothingToCancel,
    /// `cancel` names runs that were asked to end before.
    AlreadyCancelled,
    /// `cancel` has asked runs to end.
    CancelAsked,
    /// `cancel --all` has asked a tree to end.
    TreeCancelled,
    /// `cancel` has ended a tree that had lost its supervisor.
    AbandonedCancelled,
    /// `cancel --all` finds trees that have lost their supervisor.
    AbandonedLeft,
    /// `apply` finds the changes here already.
    NothingToApply,
    /// `apply` brings a patch that the merge of patches has left out.
    PatchNotOnBranch,
    /// The input of a map has no piece.
    NothingToRun,
    /// A file stands in a folder of the configuration, and has a name that is not read.
    ConfigurationNotRead,
    /// `apply` brings a branch whose check has failed.
    CheckFailed,
    /// `prune RUN` has deleted what a run left, and not its events.
    EventsStay,
    /// A command about all trees of this user finds none.
    NoTreeRuns,
    /// `prices show` finds no price.
    NoPrices,
    /// `prices update` has only said what would change.
    PricesNotWritten,
    /// `prices update` has taken over the price of a model that another file states too.
    PriceStandsAbove,
    /// `config check` finds a setting that cannot do anything.
    ///
    /// Text: the setting, why it does nothing, and where it stands
    SettingWithoutEffect,
    /// `config check` finds a model behind a chat endpoint that has no price.
    ModelWithoutPrice,
    /// An agent names another one as its child that is not defined.
    ///
    /// Text: the agent, the key, the name that is not defined, and the nearest one
    ChildNotDefined,
    /// `config check` finds nothing wrong.
    ConfigurationFine,
    /// `config init` has written a file into a project.
    TrustNeeded,
    /// `context get` has printed a part.
    MoreToRead,
    /// A child gets less than was asked for, because its parent has no more.
    ///
    /// Text: the limit, as it was asked for and as it was granted
    LimitLowered,
    /// `delegate` finds no agent that fits the task.
    DoItYourself,
    /// `delegate` has handed a task on.
    HandedOn,
    /// `delegate --explain` has nothing to compare.
    NothingCompared,
    /// `delegate --explain` shows how well each agent fits.
    AgentScore,
    /// `delegate --explain` shows what earlier tasks of the type say, where the choice goes by them.
    LearnedChoice,
    /// `events -f` follows a tree whose supervisor has gone.
    SupervisorOver,
    /// `events -f` follows a tree whose supervisor has gone.
    GoOnWithTree,
    /// `init` shows the entry for clients of MCP.
    McpEntry,
    /// `init` has written files.
    LookThenTrust,
    /// `init` has written an example of an agent.
    ExampleAgent,
    /// `list` or `tree` has no row.
    NothingToShow,
    /// `list` or `tree` shows runs of a tree whose supervisor was killed.
    WithoutSupervisor,
    /// `logs` has nothing to print.
    NothingSaid,
    /// `show --answer` prints what a run has answered before it failed.
    PartialAnswer,
    /// `manual` has written its pages.
    ManualWritten,
    /// `mcp` inside an agent is given limits of its own.
    LimitsOfTree,
    /// `mcp` ends, and runs below it are not over.
    WaitingForRuns,
    /// `vote` has several winners.
    ///
    /// Text: vote: a tie: {tied} values were given {times} each, and the winner is the first of them in the request
    TieInVote,
    /// A merge inside an agent made no answer.
    ///
    /// Text: the text of the merge, as in the errors of `MergeError`
    MergeFailed,
    /// `merge --children` leaves out children that did not complete.
    ChildrenWithoutResult,
    /// `pause` or `unpause` says what it has changed.
    TreePaused,
    /// `plugin list` finds no plugin.
    NoPlugins,
    /// `plugin list` finds no plugin, and names each folder that it looked at.
    PluginFolder,
    /// `plugin new` has made a plugin that is built with the SDK.
    DependsOnSdk,
    /// `plugin new` has made a plugin.
    NextSteps,
    /// `plugin remove` has removed a plugin.
    PluginRemoved,
    /// A project or a plugin is not trusted any more.
    NoLongerTrusted,
    /// `prune` leaves files that a running tree may use.
    FilesStay,
    /// `resume` is given a piece, and goes on with the whole tree.
    WholeTreeGoesOn,
    /// `trust` says what trust does not cover.
    NotCovered,
    /// A run ended badly, and there is advice.
    ///
    /// Text: the hint of its end, as in the ends of runs above
    AdviceOfEnd,
    /// `wait` has waited as long as it was asked to.
    StillRunning,
    /// A run that was waited for ended badly.
    RunFailed,
    /// A run that was waited for ended badly, and had said why.
    ///
    /// Text: the last lines that the run wrote
    LastWords,
    /// A project that is not trusted, or not as it is now, has settings.
    IgnoredUntrusted,
    /// A project that is not trusted, or not as it is now, has settings.
    TrustIgnored,
    /// The part of the command that runs agents says what it does.
    HostNote,
    /// The part of the command that runs agents cannot do all that it should.
    HostWarning,
    /// A run failed, and has said why in the error itself.
    RunSaid,
    /// A command that looks was given a label that runs of several trees have, all of which are over.
    NewestOfLabel,
    /// A command was given a label that runs of several trees have, of which one is not over.
    LiveOfLabel,
    /// A command that looks was given the beginning of the ids of a root and of runs below it.
    RootOfBeginning,
    /// A listing leaves out archived trees.
    ArchivedHidden,
    /// Another process holds a file of the record.
    ///
    /// Text: waiting for process {pid}, which holds `{path}`: if it is stopped, `kill -CONT {pid}` lets it go on
    WaitingForLock,
    /// A merge of patches left changes out.
    NotOnBranch,
    /// A merge of patches has made a branch.
    BranchMade,
    /// The data folder can be read by other users.
    RecordReadable,
    /// `audit.sign` is set, and `audit.heads` is not.
    NoPlaceForSignatures,
    /// The last link of a tree could not be handed on.
    LinkNotKept,
    /// The last link of a tree could not be handed on, and there is advice.
    ///
    /// Text: the hint of the error
    LinkAdvice,
    /// Ctrl-C was pressed.
    Stopping,
    /// Ctrl-C was pressed a second time.
    Killing,
    /// The command of `notify` could not be run, or failed.
    NotifyFailed,
    /// A paid runtime without a known cost is used.
    CostUnknown,
    /// The limit of open files is too low for `maxConcurrent`.
    FewerAtOnce,
    /// A paid runtime is used, and no budget is set.
    CostBounded,
    /// The files of a project are trusted, and are no configuration that can be used.
    TrustedUnusable,
    /// A budget is given to a program whose own use nothing counts.
    ProgramUncounted,
    /// A run has used more than its budget.
    Overrun,
    /// The record cannot be written, or can be again.
    RecordTrouble,
    /// A merge by a judge has chosen an answer.
    JudgeChose,
    /// Pieces failed, and the answer stands without all of them.
    ///
    /// Text: the hint of `pieces_failed`, as in the errors of `MergeError`
    AnswerWithout,
    /// The answer is there, and runs below it go on.
    MoreRunBelow,
    /// A run has changed files in a folder of its own.
    FilesChanged,
    /// The answer stands without a piece that failed or was refused.
    PieceLeftOut,
    /// The answer stands without more pieces than are listed.
    MoreLeftOut,
    /// The answer stands without pieces that were ended because the budget is used up.
    ///
    /// Text: the budget is used up: {used} of {granted} are used
    LeftOutForBudget,
    /// A map or a fanout is over.
    PiecesCompleted,
    /// A map or a fanout was stopped, or lacks answers.
    HowToGoOn,
    /// A tree goes on.
    Resuming,
    /// A limit is another one than when the tree was opened, and the stricter one holds.
    ///
    /// Text: {key} was {was} and is {is} now: {holds} holds
    StricterLimit,
    /// `resume` is given a tree that is over.
    NothingToResume,
    /// `resume` is given a tree that is over, and pieces of it have no answer.
    RunMissing,
    /// A command or an option has another name here.
    ///
    /// Text: what to type, as in the table of other programs' words below
    NearMiss,
}
