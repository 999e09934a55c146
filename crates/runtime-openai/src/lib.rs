//! The runtime for chat endpoints that speak OpenAI's protocol: Ollama, llama.cpp, vLLM, and services.
//!
//! ```text
//!   Launch ──▶ context, system prompt ──▶ history ──▶ request ──▶ service ──▶ events ──▶ chunks ──▶ reply ──▶ Finished
//!                                           ▲  ▲      (pure)                  (pure)     (pure)     (pure)
//!                  compaction: a summary ───┘  └── tools: spawn, wait, read ◀─────────────────────────┘
//! ```
//!
//! The model has no tools but ours: it can start children where its terms leave room for one, wait for them, and read
//! what was given to it. So every right can be taken away from it.
//!
//! Promise: the reason of an ending comes from the status and the fields of the protocol, never from the text of an
//! answer. A call that failed and may not fail again is made again, and nothing that such a call had begun to say is
//! acted upon. What the service does not say of use is unknown. The key is in no message, log or record. When a run has
//! finished, or its future was dropped, its connection is closed.
//!
//! ```
//! use offshoot_runtime::Runtime;
//! use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime};
//!
//! let options: OpenAiOptions = serde_json::from_str(
//!     r#"{"baseUrl": "https://api.example/v1", "keyVariable": "EXAMPLE_KEY", "model": "large"}"#,
//! )?;
//! let runtime = OpenAiRuntime::new("example", options, &[]);
//! assert_eq!(runtime.name(), "example");
//! let error = runtime.check().expect_err("the variable is not set");
//! assert_eq!(error.to_string(), "the variable EXAMPLE_KEY, which holds the key, is not set");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod chunk;
mod compaction;
mod context;
mod endpoint;
mod failure;
mod history;
mod meter;
mod options;
mod pruning;
mod reply;
mod retry;
mod runtime;
mod service;
mod session;
mod sse;
mod tools;

pub use chunk::{CallDelta, Chunk, Delta, ServiceError, parse as parse_chunk};
pub use compaction::Compaction;
pub use endpoint::EndpointError;
pub use failure::Failure;
pub use history::{Message, ToolCall};
pub use meter::{Price, Tokens};
pub use options::{AgentOptions, CostOption, OpenAiOptions};
pub use pruning::{Pruning, SoftTrim};
pub use reply::{Call, Reply};
pub use retry::{Retries, after as retry_after};
pub use runtime::OpenAiRuntime;
pub use sse::{Events, TooLong};
