//! `offshoot delegate`.

use clap::Args;
use clap::builder::ArgPredicate;

use super::SpawnArguments;
use super::value::whole;

/// Hand a task on to the agent that fits it, from inside an agent
///
/// Without --agent, the preferred sub-agents of the agent that asks are compared with the words of the task: their names, their
/// descriptions and the reasons for which they are preferred. The one that fits best gets the task, as a child of the
/// session that asks; the id of the run is printed, with --wait its answer. Where none fits, where two fit equally well, and where the session may
/// have no children, `execute_directly` is printed, with the reason on standard error and exit code 0: do the task yourself.
///
/// A task may have a type. One that the session is to do itself has then a number, its observation, on standard error and in the answer as
/// JSON; `delegate --done ID` closes it, and else the end of the turn. `offshoot stats --delegation` compares,
/// and with `subagents.learnDelegation` the choice goes by it.
///
/// Agents are preferred by `preferred_subagents` in their definition (see docs/delegation.md). With --dry-run nothing is started, and
/// outside of an agent the choice is made for the agent that --from names.
#[derive(Debug, Args)]
#[command(mut_arg("task", |task| {
    let task = task.index(1).required(false).required_unless_present("done");
    task.default_value_if("done", ArgPredicate::IsPresent, "")
}))]
#[command(mut_arg("command", |command| command.index(2)))]
#[command(after_help = "\
Examples:
  Hand a part of the work on, or do it here:
    answer=$(\"$OFFSHOOT\" delegate --wait \"format the commit\"); [ \"$answer\" != execute_directly ] || git commit
  Do a task here if it is not handed on, and say when it is done:
    answer=$(\"$OFFSHOOT\" -q delegate --json --type check \"is it safe?\"); id=$(echo \"$answer\" | jq .observation)
    [ \"$id\" = null ] || { ./check && \"$OFFSHOOT\" delegate --done \"$id\" || \"$OFFSHOOT\" delegate --done \"$id\" --failed; }
  See who would get a task, and why:
    offshoot delegate --dry-run --explain --from chezmoi-workflow \"format the commit\"")]
pub(crate) struct DelegateArguments {
    /// Print the agents that fit on standard error, each with its score and the words that it has in common with the task, and what earlier
    /// tasks of the type say, where the choice goes by them
    #[arg(long)]
    pub(crate) explain: bool,

    /// Print the agent that would get the task, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// The agent whose preferred sub-agents are compared, where no agent asks [default: main]
    #[arg(long, value_name = "ID", requires = "dry_run")]
    pub(crate) from: Option<String>,

    /// Start nothing: the session is over with a task of a type that it did itself, the observation with this number
    #[arg(long, value_name = "N", value_parser = whole(1_u32, "1"), conflicts_with_all = ["dry_run", "explain"])]
    pub(crate) done: Option<u32>,

    /// With --done: the task is not done, it failed
    #[arg(long, requires = "done")]
    pub(crate) failed: bool,

    #[command(flatten)]
    pub(crate) child: SpawnArguments,
}
