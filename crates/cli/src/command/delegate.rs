//! `offshoot delegate`.

use offshoot_delegation::Decision;
use offshoot_door::{Delegate, Delegated, Observed};
use offshoot_model::{AgentId, Directly, FitScore, SpawnRequest};
use offshoot_policy::{self as policy, Terms};
use offshoot_spawner::{allowed_agents, choose_among, read_past_tasks};

use super::spawn::{answer_of, complete, request};
use crate::arguments::{DelegateArguments, LimitArguments};
use crate::code::{FailureCode, NoteCode};
use crate::door::{inside, visit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::record::Record;
use crate::work::engine::block_on;

/// Hands a task on.
pub(crate) fn run(arguments: &DelegateArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let DelegateArguments { explain, dry_run, from, done, failed, child } = arguments;
    if let Some(observation) = *done {
        return close(Observed { observation, failed: *failed }, cx);
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
            Delegated::Accepted { run_id, agent, lowered, scores, learned, .. } if child.wait => {
                lowered.iter().for_each(|limit| cx.output.warning(NoteCode::LimitLowered, limit));
                explain_choice(&scores, learned.as_deref(), *explain, cx);
                cx.output.note(NoteCode::HandedOn, format_args!("handed on to `{agent}`"));
                answer_of(&supervisor, run_id, cx).await
            }
            other => print(&other, *explain, cx),
        }
    })
}

/// Says that the session is over with a task that it did itself.
fn close(observed: Observed, cx: &Invocation) -> Result<Exit, Failure> {
    block_on(async {
        visit(cx).await?.call(observed).await?;
        Ok(Exit::Done)
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
    let line = match delegated {
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
    };
    cx.output.result(delegated, || cx.output.line(line))?;
    Ok(Exit::Done)
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
