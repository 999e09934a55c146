//! The codes of what the command says when it fails.

use strum::IntoStaticStr;

/// Name of a failure, that stays the same when its text changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum FailureCode {
    /// The command line cannot be read: there is no such command or option, or one that is needed is missing.
    ///
    /// Text: the words of the parser, as `unexpected argument '--…' found`
    ///
    /// Hint: what to type instead, as in the table of other programs' words below, or the usage line of the command
    Usage,
    /// An option or an argument does not take the value that it is given.
    WrongValue,
    /// A file or a folder that is needed cannot be read.
    CannotRead,
    /// A file or a folder cannot be made or written.
    CannotWrite,
    /// A folder that was named is not there.
    CannotFind,
    /// The folder of a plugin cannot be removed.
    CannotRemove,
    /// A file of the configuration cannot be read.
    CannotReadConfiguration,
    /// `prices show` is given a model without a price.
    NoPrice,
    /// `prices update` is given a file that does not hold prices alone.
    NotPrices,
    /// The file of the log cannot be opened.
    CannotLog,
    /// A command needs the end of a run, and the run is not over.
    RunNotOver,
    /// `apply` would write over changes in the current folder that are not committed.
    UncommittedChanges,
    /// `apply` brings changes of lines that others have changed since the run began.
    ChangesConflict,
    /// `apply` brings a patch to files that are not those it was made of.
    PatchDoesNotFit,
    /// `apply` is given a run that has no changes of its own.
    NothingToApply,
    /// The tree has no event on record.
    NoTreeRecord,
    /// The run has no event on record.
    NoRunRecord,
    /// `doctor --prove` cannot open or record a tree of its own.
    NotProved,
    /// `audit --sign` is given a tree that did not hold to its limits.
    TreeHasBreaches,
    /// `config check` finds a setting that the runtime of its agent refuses.
    ///
    /// Text: the setting, the runtime, and the reason
    ///
    /// Hint: take the setting out, or use another runtime
    SettingImpossible,
    /// Stages of a map are asked for inside an agent.
    NoOrderInside,
    /// `map` is given `--then` without a command before or behind it.
    StageWithoutCommand,
    /// `map` is given `--then` together with an option that stages cannot have.
    NotWithStages,
    /// `--merge quorum:N` asks for more equal answers than there are tasks or pieces.
    QuorumTooLarge,
    /// `--on-failure include` is given with a merge in which a failure can have no place.
    FailuresNotMerged,
    /// `--merge patch` is given to runs that would work in the files of the user.
    PatchWithoutFolder,
    /// `merge` is given limits, and nothing runs that they could hold.
    LimitsHoldNothing,
    /// `audit --sign` is given a tree that is not over.
    TreeNotOver,
    /// The key of `audit.sign` cannot sign.
    KeyUnusable,
    /// The file of a public key or of a signature is none.
    SignatureUnreadable,
    /// The signature was not made of this record, or not by this key.
    SignatureWrong,
    /// `config init` would write over a file.
    FileIsThere,
    /// The supervisor sent a value in a form that this version does not know.
    BadValueFromSupervisor,
    /// Standard input is to be read, and cannot be.
    StdinUnreadable,
    /// A task without any text was given.
    TaskEmpty,
    /// A value of the record is gone, or is not what was stored.
    ValueUnreadable,
    /// The text is no session key. A caret shows the place.
    ///
    /// Text: what is wrong with the key, as in the errors of `ParseKeyErrorKind`
    ///
    /// Hint: the form of a key, as `agent:main:main`
    MalformedKey,
    /// `map` has neither a task nor a command for its pieces.
    NothingToDo,
    /// `map` has a program among its inputs, and `--` was probably forgotten.
    CommandAmongInputs,
    /// `merge --on-failure` is used outside of an agent.
    OnlyInsideAgents,
    /// `merge` is given a merge that only a tree can make.
    MergeNeedsTree,
    /// `merge --children` finds no run that has a result, or none that is over.
    NothingBelow,
    /// A line of the file that `merge` reads is no result.
    BadResultLine,
    /// `merge --result` is given a run that ended without an answer.
    NoResult,
    /// `merge` or `show --answer` is given a run whose answer was deleted.
    AnswerDeleted,
    /// An agent uses a command that is for the operator alone.
    OperatorOnly,
    /// A limit that `run`, `map` or `fanout` inside an agent asks for has a wrong value.
    BadLimit,
    /// `run`, `map` or `fanout` inside an agent has an option that only the root of a tree can follow.
    RootOnly,
    /// More pieces failed than `--max-fail` permits.
    TooManyFailed,
    /// The budgets of tasks inside an agent are together more than the budget of them all.
    TasksOverBudget,
    /// An answer that the supervisor handed over is no text.
    AnswerUnreadable,
    /// The folder that was named is no plugin.
    NoPackage,
    /// `plugin add` or `plugin new` would write over a folder.
    PluginIsThere,
    /// `plugin check` found a plugin that breaks the contract.
    RulesBroken,
    /// `plugin new` finds no SDK in the folder that was named.
    NoSdk,
    /// `plugin remove` is given a plugin that is not among the user's own.
    NoSuchPlugin,
    /// `plugin trust` is given a file.
    NotAPluginFolder,
    /// `--remove` is given what is not trusted anyway.
    NotTrusted,
    /// `resume` without a run finds no tree that lost its supervisor.
    NothingAbandoned,
    /// `resume` without a run finds several trees that lost their supervisor.
    SeveralAbandoned,
    /// `show --answer` is given a run that ended without an answer.
    NoAnswer,
    /// `show --patch` is given a run that worked in no folder of its own, or whose folder left nothing.
    NoFolderOfItsOwn,
    /// `trust` finds no project in the current folder or above it.
    NothingToTrust,
    /// `watch` is started without a terminal.
    NoTerminal,
    /// `watch` would draw on the terminal to which the log is written.
    LogOnTerminal,
    /// The system does not let the command listen for Ctrl-C.
    NoSignals,
    /// The system has no thread left, or does not tell of new supervisors.
    NoThread,
    /// A command for running agents is used where no supervisor is.
    NoSupervisor,
    /// A command that a supervisor runs for the operator would open a tree.
    CommandOfSupervisor,
    /// A process that an agent left behind asks for something.
    LeftByAgent,
    /// The supervisor above cannot be asked by this user.
    SupervisorHidden,
    /// An agent names a run that is not below it.
    NotBelow,
    /// A command that changes a tree finds no supervisor that runs it.
    SupervisorGone,
    /// `cancel --all`, `pause --all` or `unpause --all` finds a supervisor that does not answer.
    SupervisorSilent,
    /// The current folder was removed, or cannot be read.
    NoWorkingFolder,
    /// The system does not tell where the program `offshoot` is.
    NoProgramFile,
    /// A variable of the environment that is a setting is not UTF-8.
    VariableNotUtf8,
    /// `@N` is used, and the last listing in this terminal had no such row.
    NoSuchNumber,
    /// An agent is named that is not defined.
    NoSuchAgent,
    /// A file of the configuration is not UTF-8.
    ConfigurationNotUtf8,
    /// OFFSHOOT_LOG is not UTF-8, or has a part that the log does not know.
    BadLogVariable,
    /// `--log-file` names a link, a folder or a device.
    LogNotAFile,
    /// A question cannot be asked at the terminal.
    CannotAsk,
    /// Standard output takes no more, as on a full disk.
    CannotPrint,
    /// The user's own folder of plugins is needed, and no variable says where it is.
    NoPluginFolder,
    /// A folder has a configuration in TOML and one in JSON5.
    TwoConfigurations,
    /// A project that is to be trusted has a link to a folder in it.
    LinkedFolder,
    /// A run is named that is not on record.
    NoSuchRun,
    /// A run is named by what several runs have in common.
    AmbiguousRun,
    /// The terminal cannot be used for drawing.
    CannotDraw,
    /// The list of trusted projects is needed, and no variable says where it is.
    NoTrustFolder,
    /// The list of trusted projects is damaged, or a newer version has written it.
    TrustUnreadable,
    /// The question before many paid runs was answered with no.
    NotConfirmed,
    /// `--context` gives the same name twice.
    ContextTwice,
    /// `--context` gives a name that is too long.
    ContextName,
    /// Standard input is named twice among the inputs.
    StdinTwice,
    /// The command of `notify` or `audit.heads` cannot be run, or fails.
    CommandNotTold,
    /// `--keep-order` is used without `--stream` and `--jsonl`.
    NeedsStream,
    /// Answers are to be printed one by one, and also as one.
    StreamAndMerge,
    /// `--separator` or `--null` is used with a merge that does not put answers one behind the other.
    SeparatorUnused,
    /// `--check` is used with a merge that makes no patch.
    CheckUnused,
    /// A merge asks an agent that is not defined.
    NoAgentToAsk,
    /// The plan of the tree has no JSON form, as with a path that is not UTF-8.
    PlanUnrecordable,
    /// The folder in which runs are to work is not there.
    NoSuchFolder,
    /// A command is given together with a runtime that runs no commands.
    CommandAndRuntime,
    /// Nothing is given, configured or installed that could run the agent.
    NothingToRun,
    /// A runtime is named that is neither built in nor a plugin.
    NoSuchRuntime,
    /// A piece failed, or was refused.
    ///
    /// Hint: that of its end or of its refusal, as above
    PieceFailed,
    /// Pieces did not complete, and that was not to be passed over.
    ///
    /// Hint: how to go on, as `how_to_go_on` below
    PiecesMissing,
    /// Pieces ended because the tree was stopped.
    ///
    /// Hint: how to go on, as `how_to_go_on` below
    PiecesStopped,
    /// The budget of a map or a fanout is used up, so that pieces were ended.
    ///
    /// Text: the budget is used up: {used} of {granted} are used
    ///
    /// Hint: how to go on, as `how_to_go_on` below
    BudgetUsedUp,
    /// `resume` is given a tree that a supervisor runs.
    TreeHeld,
    /// `resume --only` is given a label that no piece has.
    NoSuchLabel,
    /// `resume` is given a tree that does not go on in this way.
    NotResumable,
    /// `resume` is given a tree whose plan another version has written.
    PlanUnreadable,
    /// `resume` is given a tree that only its client could go on with.
    ClientTree,
    /// The file of a schema is none.
    BadSchema,
    /// A line of `--tasks` is no task.
    BadTaskLine,
    /// A line of `--tasks` needs what it cannot need.
    BadNeeds,
}
