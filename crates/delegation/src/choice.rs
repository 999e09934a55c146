//! The choice of an agent for a task.

use bm25::Tokenizer;
use offshoot_model::{AgentId, Directly, FitScore};

use crate::words::{CommonWords, Words};

/// An agent that may be chosen, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// The description in its definition.
    pub description: Option<&'a str>,
    /// The reason for which the agent that hands on prefers it.
    pub why: &'a str,
}

/// The choice, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The choice.
    pub choice: Choice,
    /// The candidates that have a word in common with the task, the best 20 first; those that fit equally well by their names.
    pub scores: Vec<FitScore>,
    /// The numbers of earlier tasks of the type, in a sentence, where these were asked ([`Decision::learn`]).
    pub learned: Option<String>,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The agent that fits best.
    Agent(AgentId),
    /// There is no candidate.
    NoCandidates,
    /// No candidate has a word in common with the task.
    NoMatch,
    /// Agents that fit equally well, and better than all others; at least two.
    Tie(Vec<AgentId>),
    /// Earlier tasks of the type went better where none was handed on; the numbers in a sentence.
    Directly(String),
}

impl Choice {
    /// The agent; or the reason why there is none, in a word and in a sentence.
    pub fn agent(&self) -> Result<&AgentId, (Directly, String)> {
        match self {
            Self::Agent(agent) => Ok(agent),
            Self::NoCandidates => {
                let message = "this agent prefers no agent that it may start";
                Err((Directly::NoPreferred, message.to_owned()))
            }
            Self::NoMatch => {
                let message = "no preferred agent has a word in common with the task";
                Err((Directly::NoMatch, message.to_owned()))
            }
            Self::Tie(agents) => {
                let names: Vec<_> = agents.iter().map(|agent| format!("`{agent}`")).collect();
                let message = format!("{} fit the task equally well", names.join(", "));
                Err((Directly::Tie, message))
            }
            Self::Directly(numbers) => Err((Directly::Learned, numbers.clone())),
        }
    }
}

/// The part of a task that is compared: its purpose stands at the beginning, and a task may be a file of megabytes.
const COMPARED_BYTES: usize = 16 * 1024;

/// At most this many scores are told.
const MOST_SCORES: usize = 20;

/// Compares a task, by its first 16 KiB, with candidates. Takes time in proportion to the length of all texts.
pub fn choose<'a>(task: &str, candidates: impl IntoIterator<Item = Candidate<'a>>) -> Decision {
    let task = &task[..task.floor_char_boundary(COMPARED_BYTES)];
    let mut candidates: Vec<_> = candidates.into_iter().collect();
    // Their order must not decide: neither which is chosen, nor how sums of floating point numbers are rounded.
    candidates.sort_by_key(|candidate| candidate.agent);
    candidates.dedup_by_key(|candidate| candidate.agent);
    if candidates.is_empty() {
        return Decision { choice: Choice::NoCandidates, scores: Vec::new(), learned: None };
    }
    let words = Words::new();
    let texts: Vec<String> = candidates.iter().map(text).collect();
    let ranked = ranked(task, &texts, &words);
    let agent = |place: usize| candidates[place].agent.clone();
    let best: Vec<_> = ranked.iter().take_while(|(_, score)| *score >= ranked[0].1).collect();
    let choice = match best.as_slice() {
        [] => Choice::NoMatch,
        [(place, _)] => Choice::Agent(agent(*place)),
        several => Choice::Tie(several.iter().map(|(place, _)| agent(*place)).collect()),
    };
    let asked = words.distinct(task);
    let score = |(place, score): (usize, f32)| {
        let known = words.tokenize(&texts[place]);
        let words = asked.iter().filter(|word| known.contains(word)).cloned().collect();
        FitScore { agent: agent(place), score, words }
    };
    let scores = ranked.into_iter().take(MOST_SCORES).map(score).collect();
    Decision { choice, scores, learned: None }
}

/// The factor k1 of Okapi BM25 in its usual size: a word that a text has often counts for at most 1 + k1 times one that it has once.
const OFTEN: f32 = 1.2;

/// The texts that have a word in common with the task, by their places: the best by Okapi BM25 first, equal ones in their order.
///
/// The factor b of 0, so that no length counts: an agent with a longer description fits no worse for it, and two that share the same
/// words with the task are a tie. A word counts as often as the task has it. The sum of each text is made in the order of the words of
/// the task.
fn ranked(task: &str, texts: &[String], words: &Words) -> Vec<(usize, f32)> {
    let mut common = CommonWords::of(task, words);
    let mut places: Vec<Vec<(usize, u32)>> = vec![Vec::new(); common.asked().len()];
    for (place, text) in texts.iter().enumerate() {
        common.in_text(text, |word| match places[word].last_mut() {
            Some((known, times)) if *known == place => *times += 1,
            _ => places[word].push((place, 1)),
        });
    }
    let mut scores = vec![0.0; texts.len()];
    for (asked, places) in common.asked().iter().zip(&places) {
        let (all, with) = (texts.len() as f32, places.len() as f32);
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (place, times) in places {
            let times = *times as f32;
            scores[*place] += *asked as f32 * rarity * times * (OFTEN + 1.0) / (times + OFTEN);
        }
    }
    let mut ranked: Vec<(usize, f32)> =
        scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
    ranked.sort_by(|(a, left), (b, right)| right.total_cmp(left).then(a.cmp(b)));
    ranked
}

fn text(candidate: &Candidate<'_>) -> String {
    let Candidate { agent, description, why } = candidate;
    format!("{agent}. {}. {why}", description.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(name: &str) -> AgentId {
        AgentId::parse(name).expect("the text is no id")
    }

    const TEAM: [(&str, &str, &str); 4] = [
        ("git-coordinator", "", "For commit formatting"),
        ("security-scanner", "Looks for secrets and unsafe code.", "For validation"),
        ("template-sync-agent", "", "For drift detection"),
        ("test-validator", "Runs the tests.", ""),
    ];

    fn decide(task: &str, team: &[(&str, &str, &str)]) -> Decision {
        let ids: Vec<AgentId> = team.iter().map(|(name, ..)| id(name)).collect();
        let candidates = ids.iter().zip(team).map(|(agent, (_, description, why))| Candidate {
            agent,
            description: Some(description),
            why,
        });
        choose(task, candidates)
    }

    #[test]
    fn a_task_goes_to_the_agent_whose_words_it_has() {
        let check = |task: &str, expected: &str| {
            let decision = decide(task, &TEAM);
            assert_eq!(decision.choice, Choice::Agent(id(expected)), "{task:?}: {decision:?}");
        };
        check("format the commit", "git-coordinator");
        check("Create commit for these dotfile changes", "git-coordinator");
        check("check drift", "template-sync-agent");
        check("detect whether templates have drifted", "template-sync-agent");
        check("look for a secret in the configuration", "security-scanner");
        check("SECURITY!", "security-scanner");
        check("run all tests", "test-validator");
        check("git", "git-coordinator");
    }

    #[test]
    fn where_nothing_fits_or_two_fit_equally_there_is_no_choice() {
        assert_eq!(decide("x", &[]).choice, Choice::NoCandidates);
        for task in ["translate the page", "", "the", "für die Übersetzung", "日本語"] {
            assert_eq!(decide(task, &TEAM).choice, Choice::NoMatch, "{task:?}");
        }
        let twins =
            [("b", "", "For reviews"), ("a", "", "For reviews"), ("c", "", "For a review of it")];
        let tie = decide("review it", &twins);
        assert_eq!(tie.choice, Choice::Tie(vec![id("a"), id("b"), id("c")]), "{tie:?}");
        // A word more breaks it.
        let better = [("a", "", "For reviews"), ("b", "", "For reviews of plans")];
        assert_eq!(decide("review the plan", &better).choice, Choice::Agent(id("b")));
    }

    #[test]
    fn a_long_task_is_compared_by_its_beginning() {
        let long = format!("format the commit {}", "é drift ".repeat(1 << 20));
        let decision = decide(&long, &TEAM);
        assert!(decision.scores.iter().any(|it| it.agent.as_str() == "git-coordinator"));
        let late = format!("{} drift", "é ".repeat(COMPARED_BYTES));
        assert_eq!(decide(&late, &TEAM).choice, Choice::NoMatch);
    }

    #[test]
    fn a_score_names_its_words() {
        let decision = decide("validate the format of the commit", &TEAM);
        let words: Vec<_> =
            decision.scores.iter().map(|it| (it.agent.as_str(), it.words.join(" "))).collect();
        assert_eq!(words[0], ("git-coordinator", "commit format".to_owned()));
        assert!(words[1..].contains(&("security-scanner", "valid".to_owned())), "{words:?}");
        assert!(decision.scores.is_sorted_by(|a, b| a.score >= b.score));
        assert!(decision.scores.iter().all(|score| score.score > 0.0));
    }

    #[test]
    fn a_thousand_agents_are_compared_as_a_few_are() {
        let name = |number: usize| format!("agent-{number}");
        let ids: Vec<AgentId> = (0..1000).map(|number| id(&name(number))).collect();
        let about: Vec<String> = (0..1000)
            .map(|number| format!("Knows subject{number} and the tools of group{}.", number % 10))
            .collect();
        let candidates = || {
            ids.iter().zip(&about).map(|(agent, about)| Candidate {
                agent,
                description: Some(about),
                why: "For what it knows",
            })
        };
        let one = choose("explain subject417 to me", candidates());
        assert_eq!(one.choice, Choice::Agent(id("agent-417")));
        let many = choose("the tools of group7", candidates());
        let Choice::Tie(tied) = &many.choice else { panic!("{:?}", many.choice) };
        assert_eq!((tied.len(), many.scores.len()), (100, MOST_SCORES));
        assert_eq!(many.scores[0].words, ["group7", "tool"]);
    }

    proptest! {
        #[test]
        fn order_changes_nothing(
            task in "[a-e ]{0,30}",
            team in proptest::collection::vec(("[a-z]{1,3}", "[a-e ]{0,20}", "[a-e ]{0,20}"), 0..6),
        ) {
            let mut team: Vec<_> = team.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
            team.sort();
            team.dedup_by_key(|(name, ..)| *name);
            let forwards = decide(&task, &team);
            team.reverse();
            prop_assert_eq!(forwards, decide(&task, &team));
        }
    }
}
