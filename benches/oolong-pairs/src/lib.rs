#![doc = include_str!("../README.md")]

mod asks;
mod corpus;
mod endpoint;
mod entry;
mod label;
mod labeller;
mod profile;
mod question;
mod runner;
mod score;
mod trial;

pub use asks::Asks;
pub use corpus::{Corpus, Recipe};
pub use endpoint::{configuration, endpoint};
pub use entry::{Entry, Labelled, ParseLineError};
pub use label::Label;
pub use labeller::{Faults, Reaction};
pub use profile::{Profile, Profiles};
pub use question::{Bound, Count, Pairs, QUESTIONS, Question, Side};
pub use runner::{Harvest, Plan, RunError, TASK, labeller, run};
pub use score::{Score, mean, scores};
pub use trial::{Agents, Report, Trial, TrialError};
