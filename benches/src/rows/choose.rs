//! Choosing the agent for a task among many.

use std::hint::black_box;

use offshoot_delegation::{Candidate, Choice, choose};
use offshoot_model::AgentId;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "choose", what: "choose the agent for a task among 1,000 agents", measure };

const SHORT: &str = "a task of one line";
/// As much of a task as is compared.
const LONG: &str = "a task of 16 KiB";
const AGENTS: usize = 1_000;

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(50, 2);
    let team = Team::new()?;
    let task = "Explain the tools of subject417 to me, and what they are used for";
    let long = format!("{task}. {}", words(16 * 1024));
    let samples = compare(
        setting,
        setting.rounds(),
        vec![
            Side::new(SHORT, || team.ask(task, count)),
            Side::new(LONG, || team.ask(&long, count)),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("choice"), samples)
        .at_most(SHORT, 5e-3)
        .at_most(LONG, 5e-3)
        .note(format!("{AGENTS} agents, each with a description of some 40 words and a reason")))
}

/// Agents with descriptions of usual length.
struct Team(Vec<(AgentId, String, String)>);

impl Team {
    fn new() -> Result<Self> {
        let agent = |number: usize| {
            let about = format!("Knows subject{number} and the tools of group{}.", number % 10);
            let about = format!("{about} {}", words(200 + number % 60));
            Ok((AgentId::parse(&format!("agent-{number}"))?, about, format!("For part{number}")))
        };
        Ok(Self((0..AGENTS).map(agent).collect::<Result<_>>()?))
    }

    fn ask(&self, task: &str, count: u64) -> Result<f64> {
        let candidates = || {
            self.0.iter().map(|(agent, about, why)| Candidate {
                agent,
                description: Some(about),
                why,
            })
        };
        per(count, || {
            for _ in 0..count {
                let decision = black_box(choose(black_box(task), candidates()));
                if decision.choice != Choice::Agent(self.0[417].0.clone()) {
                    return Err(format!("another agent: {:?}", decision.choice).into());
                }
            }
            Ok(())
        })
    }
}

/// So many bytes of words, none of which names a subject.
fn words(bytes: usize) -> String {
    const WORDS: [&str; 12] = [
        "reviews",
        "changes",
        "before",
        "release",
        "quickly",
        "carefully",
        "reports",
        "problems",
        "measures",
        "documents",
        "settings",
        "builds",
    ];
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(WORDS[number * 7 % WORDS.len()]);
        text.push(' ');
    }
    text
}
