//! The choice of an agent for a task: its words, compared with what is known of each agent.
//!
//! Purpose: an agent that hands a task on need not name the agent. It says what is to be done, and the agents that it prefers are
//! compared with that by their names, their descriptions and by what they are preferred for.
//!
//! ```
//! use offshoot_delegation::{Candidate, Choice, choose};
//! use offshoot_model::AgentId;
//!
//! let git = AgentId::parse("git-coordinator")?;
//! let scan = AgentId::parse("security-scanner")?;
//! let candidates = [
//!     Candidate { agent: &git, description: None, why: "For commit formatting" },
//!     Candidate { agent: &scan, description: Some("Looks for secrets."), why: "For validation" },
//! ];
//! let decision = choose("format the commit", candidates);
//! assert_eq!(decision.choice, Choice::Agent(git.clone()));
//! assert_eq!(decision.scores[0].words, ["commit", "format"]);
//!
//! assert_eq!(choose("translate the page", candidates).choice, Choice::NoMatch);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Promise: the same task and the same candidates, in any order, have the same choice. No model is asked, and
//! a choice is never made between two that fit equally well.
//!
//! Earlier tasks of a type are counted by [`TreeObservations`] from the records of trees, and compared by [`Experience`]: how
//! many were done, in which time and at which cost, where the agent that had the task did it itself and where a child did.
//! [`Decision::learn`] decides by these numbers, once there are enough of them.
//!
//! Words are compared by their English stems (`formatting` is `format`), without those that say nothing (`the`), and weighed by
//! BM25 (Robertson and others, 1994): a word that few candidates have counts more. The length of a text changes nothing.

mod choice;
mod experience;
mod learned;
mod observation;
mod words;

pub use choice::{Candidate, Choice, Decision, choose};
pub use experience::{Advice, AgentSide, Because, ENOUGH, Experience, Side, TypeSummary};
pub use observation::{Observation, TreeObservations, Way};
