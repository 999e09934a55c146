//! `offshoot delegate`.

use offshoot_door::{Delegate, Delegated, Observed};
use offshoot_model::{AgentId, FitScore};
use offshoot_policy::Terms;
use offshoot_spawner::{allowed_agents, choose_among};

use super::spawn::{answer_of, complete, request};
use crate::arguments::{DelegateArguments, LimitArguments};
use crate::code::{FailureCode, NoteCode};
use crate::door::{inside, visit};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::work::engine::block_on;

/// Hands a task on.
pub(crate) fn run(arguments: &DelegateArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let DelegateArguments { explain, dry_run, from, done, failed, child } = arguments;
    if let Some(observation) = *done {
        return close(Observed { observation, failed: *failed }, cx);
    }
    if child.task.is_empty() {
        return Err(Failure::input(FailureCode::TaskEmpty, "the task is empty"));
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
            Delegated::Accepted { run_id, agent, lowered, scores, .. } if child.wait => {
                lowered.iter().for_each(|limit| cx.output.warning(NoteCode::LimitLowered, limit));
                say(&agent, &scores, *explain, cx);
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
        return Ok(Delegated::Chosen { agent, scores: Vec::new() });
    }
    let agents = allowed_agents(&Terms::root(&config, &from), &config);
    let decision = choose_among(&arguments.child.task, &agents);
    let scores = decision.scores;
    Ok(match decision.choice.agent() {
        Ok(agent) => Delegated::Chosen { agent: agent.clone(), scores },
        Err((reason, message)) => {
            Delegated::ExecuteDirectly { reason, message, observation: None, scores }
        }
    })
}

/// Prints what became of the task: the id of a run, the name of an agent, or `execute_directly`.
fn print(delegated: &Delegated, explain: bool, cx: &Invocation) -> Result<Exit, Failure> {
    let line = match delegated {
        Delegated::Accepted { run_id, agent, lowered, scores, .. } => {
            lowered.iter().for_each(|limit| cx.output.warning(NoteCode::LimitLowered, limit));
            say(agent, scores, explain, cx);
            run_id.to_string()
        }
        Delegated::Chosen { agent, scores } => {
            explain_scores(scores, explain, cx);
            agent.to_string()
        }
        Delegated::ExecuteDirectly { message, observation, scores, .. } => {
            explain_scores(scores, explain, cx);
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

fn say(agent: &AgentId, scores: &[FitScore], explain: bool, cx: &Invocation) {
    explain_scores(scores, explain, cx);
    cx.output.note(NoteCode::HandedOn, format_args!("handed on to `{agent}`"));
}

fn explain_scores(scores: &[FitScore], explain: bool, cx: &Invocation) {
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
}
