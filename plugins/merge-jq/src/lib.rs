//! A merge by a jq program over the results.
//!
//! ```text
//!   results, in any order ──▶ [{key, value, status}, …] ──▶ program ──▶ its one value
//!              │ as each comes        ▲ in its place          │ before each call
//!              └──▶ each ──▶ values ──┘                       ▼
//!                                                          watch: stopped? too long? too deep?
//! ```
//!
//! Promise: the answer follows the order of the request. A program sees the results and nothing else: no environment, no
//! clock, no files. One that goes on for ever ends when its time is over or its answer is not waited for any more, and one
//! that calls itself without end is told so. What is kept until the end is bounded.
//!
//! ```
//! use offshoot_plugin_merge_jq::MergeJq;
//! use offshoot_plugin_sdk::model::{JsonText, RunStatus};
//! use offshoot_plugin_sdk::{Merge, MergeInput, MergeValue};
//! # use offshoot_plugin_sdk::{BoxFuture, FutureExt};
//! # use offshoot_plugin_sdk::model::{Refusal, RefusalCode, RunId, SpawnRequest};
//! # use offshoot_plugin_sdk::{Host, RunEvent, RunHost, WaitAnswer, WaitFor};
//! # struct NoChildren;
//! # impl Host for NoChildren {
//! #     fn hear(&self, _: RunEvent) {}
//! #     fn spawn(&self, _: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
//! #         std::future::ready(Err(Refusal::new(RefusalCode::RecursionDisabled, "no"))).boxed()
//! #     }
//! #     fn wait(&self, _: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
//! #         std::future::ready(Ok(WaitAnswer::default())).boxed()
//! #     }
//! # }
//! # let host = RunHost::new(NoChildren);
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let program = JsonText::of(&"map(.value | tonumber) | add")?;
//! let mut job = MergeJq.begin(&program, host)?;
//! for (index, lines) in ["3", "4"].into_iter().enumerate() {
//!     let value = MergeValue::Text(lines.into());
//!     let result = MergeInput { key: "piece".into(), status: RunStatus::Completed, value };
//!     job.push(index as u32, result)?;
//! }
//! assert_eq!(job.finish().await?.as_str(), "7");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod guard;
mod merge;
mod params;
mod program;
mod results;
mod watch;
mod worker;
mod wrong;

pub use merge::MergeJq;
