//! The numbers of tasks with a type, and what they recommend.

use std::fmt;

use offshoot_delegation::{Experience, TypeSummary, Way};
use serde::Serialize;

use crate::number;

/// The numbers by type, for people and programs. Shown as a page of text, without a newline at its end.
#[derive(Clone, Debug, Serialize)]
pub struct Learned {
    /// The number of trees that were looked at.
    pub trees: u64,
    /// The types, in alphabetical order.
    pub types: Vec<TypeSummary>,
}

impl Learned {
    /// The numbers of this experience, from so many trees.
    pub fn new(experience: &Experience, trees: u64) -> Self {
        Self { trees, types: experience.types().collect() }
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.types.is_empty() {
            return write!(f, "no task with a type in {}", number::many(self.trees, "tree"));
        }
        for (at, summary) in self.types.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{}", summary.task_type)?;
            let sides = [
                (Way::Directly, "directly ", &summary.directly),
                (Way::Delegated, "delegated", &summary.delegated),
            ];
            for (wanted, word, side) in sides {
                write!(f, "\n  {word}  {side}")?;
                for agent in summary.agents.iter().filter(|agent| agent.way == wanted) {
                    write!(f, "\n    {}  {}", agent.agent, agent.side)?;
                }
            }
            write!(f, "\n  {summary}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use offshoot_delegation::Observation;
    use offshoot_model::{AgentId, Cost, MicroUsd};

    use super::*;

    #[test]
    fn each_type_has_its_numbers_and_its_advice() {
        let none = Experience::default();
        assert_eq!(Learned::new(&none, 1).to_string(), "no task with a type in 1 tree");
        let observation = |task_type: &str, agent: &str, way, ms| Observation {
            task_type: task_type.parse().expect("a type"),
            agent: AgentId::parse(agent).expect("an id"),
            way,
            success: ms != 7,
            time: Duration::from_millis(ms),
            cost: Cost::known(MicroUsd::from_micros(ms * 100)),
        };
        let mut experience = none;
        experience.extend((0..12).map(|_| observation("validate", "main", Way::Directly, 2000)));
        experience.extend((0..10).map(|_| observation("validate", "scan", Way::Delegated, 500)));
        experience.extend((0..2).map(|_| observation("commit", "git", Way::Delegated, 7)));
        let page = Learned::new(&experience, 3);
        insta::assert_snapshot!("learned", page);
        insta::assert_snapshot!(
            "learned_json",
            serde_json::to_string_pretty(&page).expect("plain data")
        );
    }
}
