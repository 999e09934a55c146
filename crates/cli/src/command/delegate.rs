//! `offshoot delegate`.

use clap::Args;
use clap::builder::ArgPredicate;
use offshoot_delegation::Decision;
use offshoot_door::{Delegate, Delegated, Observed};
use offshoot_model::{AgentId, Directly, FitScore, SpawnRequest};
use offshoot_policy::{self as policy, Terms};
use offshoot_spawner::{allowed_agents, choose_among, read_past_tasks};

use super::spawn::{SpawnArguments, answer_of, complete, request};
use crate::arguments::LimitArguments;
use crate::arguments::value::whole;
use crate::code::{FailureCode, NoteCode};
use crate::door::{inside, visit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::record::Record;
use crate::work::engine::block_on;

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
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX, "1"), conflicts_with_all = ["dry_run", "explain"])]
    pub(crate) done: Option<u32>,

    /// With --done: the task is not done, it failed
    #[arg(long, requires = "done")]
    pub(crate) failed: bool,

    #[command(flatten)]
    pub(crate) child: SpawnArguments,
}

/// Hands a task on.
pub(crate) fn run(arguments: &DelegateArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let DelegateArguments { explain, dry_run, from, done, failed, child } = arguments;
    if let Some(observation) = *done {
        return block_on(async {
            visit(cx).await?.call(Observed { observation, failed: *failed }).await?;
            Ok(Exit::Done)
        });
    }
    if child.task.is_empty() {
        return Err(Failure::input(FailureCode::TaskEmpty, "the task is empty")
            .hint("say in words what is to be done: offshoot delegate TASK"));
    }
    let spawn = request(child, cx)?;
    if *dry_run {
        let delegate = Delegate { spawn, choose_only: true };
        let asked = inside(cx, async |supervisor| Ok(supervisor.call(delegate).await?))?;
        let chosen = match asked {
            Some(chosen) => chosen,
            None => choose_for(from.as_deref(), arguments, cx)?,
        };
        return print(&chosen, *explain, cx);
    }
    block_on(async {
        let supervisor = visit(cx).await?;
        let spawn = complete(&supervisor, spawn, &child.context, cx).await?;
        let delegated = supervisor.call(Delegate { spawn, choose_only: false }).await?;
        match delegated {
            Delegated::Accepted { run_id, .. } if child.wait => {
                tell(&delegated, *explain, cx);
                answer_of(&supervisor, run_id, cx).await
            }
            other => print(&other, *explain, cx),
        }
    })
}

/// The choice for an agent of the configuration, where no agent asks.
fn choose_for(
    from: Option<&str>,
    arguments: &DelegateArguments,
    cx: &Invocation,
) -> Result<Delegated, Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    let from = from.map_or_else(|| Ok(AgentId::main()), |from| load::agent(&config, from))?;
    if let Some(agent) = &arguments.child.agent {
        let agent = load::agent(&config, agent)?;
        return Ok(Delegated::Chosen { agent, scores: Vec::new(), learned: None });
    }
    let request = SpawnRequest { task: "a dry run".into(), ..SpawnRequest::default() };
    if !policy::open(&config, &from, &request, None).is_ok_and(|root| root.grant.may_spawn) {
        let message = format!("the agent `{from}` may have no children");
        let (reason, observation, scores, learned) =
            (Directly::CannotDelegate, None, Vec::new(), None);
        return Ok(Delegated::ExecuteDirectly { reason, message, observation, scores, learned });
    }
    let terms = Terms::root(&config, &from);
    let agents = allowed_agents(&terms, &config);
    let past = match &arguments.child.task_type {
        Some(task_type) if terms.learn_delegation() => {
            let past = Record::open(cx)?.map(|record| read_past_tasks(&**record.store()));
            Some(past.unwrap_or_default().with(task_type, []))
        }
        Some(_) | None => None,
    };
    let Decision { choice, scores, learned } =
        choose_among(&arguments.child.task, &agents, past.as_ref());
    Ok(match choice.agent() {
        Ok(agent) => Delegated::Chosen { agent: agent.clone(), scores, learned },
        Err((reason, message)) => {
            Delegated::ExecuteDirectly { reason, message, observation: None, scores, learned }
        }
    })
}

/// Prints what became of the task: the id of a run, the name of an agent, or `execute_directly`.
fn print(delegated: &Delegated, explain: bool, cx: &Invocation) -> Result<Exit, Failure> {
    let line = tell(delegated, explain, cx);
    cx.output.result(delegated, || cx.output.line(line))?;
    Ok(Exit::Done)
}

/// Says beside the result what became of the task, and returns the result.
fn tell(delegated: &Delegated, explain: bool, cx: &Invocation) -> String {
    match delegated {
        Delegated::Accepted { run_id, agent, lowered, scores, learned, .. } => {
            lowered.iter().for_each(|limit| cx.output.warning(NoteCode::LimitLowered, limit));
            explain_choice(scores, learned.as_deref(), explain, cx);
            cx.output.note(NoteCode::HandedOn, format_args!("handed on to `{agent}`"));
            run_id.to_string()
        }
        Delegated::Chosen { agent, scores, learned } => {
            explain_choice(scores, learned.as_deref(), explain, cx);
            agent.to_string()
        }
        Delegated::ExecuteDirectly { message, observation, scores, learned, .. } => {
            explain_choice(scores, learned.as_deref(), explain, cx);
            cx.output.note(NoteCode::DoItYourself, format_args!("do it yourself: {message}"));
            if let Some(number) = observation {
                let text = format_args!("when it is over: offshoot delegate --done {number}");
                cx.output.note(NoteCode::DoItYourself, text);
            }
            "execute_directly".to_owned()
        }
    }
}

fn explain_choice(scores: &[FitScore], learned: Option<&str>, explain: bool, cx: &Invocation) {
    if !explain {
        return;
    }
    if scores.is_empty() {
        cx.output.note(
            NoteCode::NothingCompared,
            "no agent was compared, or none has a word in common with the task",
        );
    }
    for FitScore { agent, score, words } in scores {
        cx.output
            .note(NoteCode::AgentScore, format_args!("{agent}  {score:.3}  {}", words.join(", ")));
    }
    if let Some(learned) = learned {
        cx.output.note(NoteCode::LearnedChoice, format_args!("learned: {learned}"));
    }
}
