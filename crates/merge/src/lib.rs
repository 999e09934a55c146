//! Incremental folds that merge the results of many agents into one answer.
//!
//! ```text
//!  results, as runs end, in any order          Values: the holder of large results
//!        │ push(index, key, result)                  │ open(reference)
//!        ▼                                           ▼
//!      Fold ──────── partial / finish ────────▶ Answer ──write_to──▶ a file, a terminal, the store
//! ```
//!
//! Promise: the answer follows the order of the request, whatever order the results came in; only [`Strategy::First`]
//! and [`Strategy::Quorum`] depend on time, because that is what they are for. A fold holds what its answer is
//! made of and nothing more: a large result stays a reference until the answer is written, and then passes
//! through in blocks. JSON stays the text it came as; it is looked into where equality or addition asks for it.
//! No file, no clock, no task.
//!
//! ```
//! use offshoot_merge::{Fold, NothingStored, OnFailure, Strategy};
//! use offshoot_model::Payload;
//!
//! let mut fold = Fold::new("concatenate".parse()?, OnFailure::Fail);
//! fold.push(1, "second".into(), Ok(Payload::text("world")));
//! fold.push(0, "first".into(), Ok(Payload::text("hello")));
//! let answer = fold.finish(2)?;
//!
//! let mut out = Vec::new();
//! answer.write_to(&mut out, &NothingStored)?;
//! assert_eq!(out, b"hello\n---\nworld");
//! assert_eq!(Strategy::default(), Strategy::Concatenate);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod asking;
mod error;
mod failure;
mod fold;
mod kept_result;
mod lines;
mod listed;
mod number;
mod on_failure;
mod strategy;
mod text;
mod values;

pub use answer::{Answer, AnswerKind};
pub use asking::{Asked, Asking, AskingWay, Choice, Group, ParseAskingError};
pub use error::MergeError;
pub use failure::Failure;
pub use fold::{Fold, Step};
pub use lines::{Line, LineError, Lines};
pub use listed::{LISTED, Listed};
pub use on_failure::{OnFailure, ParseOnFailureError};
pub use strategy::{ParseStrategyError, Strategy};
pub use values::{NothingStored, Values};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
