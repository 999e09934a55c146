//! A scripted Messages API on loopback, for clients that are the real program and models that are not.
//!
//! ```text
//!   POST /v1/messages ──▶ Conversation ──▶ Script: the first rule that holds ──▶ Reply ──▶ events | JSON | error
//!                              │                                                (pure)
//!                              └──▶ recorded, for the test to look at
//! ```
//!
//! The same rules answer in the words of other protocols: `POST /v1/chat/completions` in small pieces and
//! `POST /v1/responses` as OpenAI does, `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent` as
//! Gemini does.
//!
//! A rule looks at the conversation (the prompt, the system prompt, the tools on offer, what tools answered, how far it
//! has come) and says what the model does: text, tool calls, an error, silence, a stream that is slow or breaks.
//! Where no rule holds, the client gets a `400` that quotes the prompt, because clients do not repeat that.
//!
//! Promise: it listens on 127.0.0.1 alone and opens no connection; it holds a bounded number of connections and requests;
//! dropping the handle ends every connection.
//!
//! ```
//! use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
//!
//! let script = Script::new([
//!     Rule::when(Condition::Prompt("greet".into()), Reply::text("hello")),
//!     Rule::always(Reply::text("you said: {{prompt}}")),
//! ]);
//! let api = FakeModelApi::start(script)?;
//! assert!(api.url().starts_with("http://127.0.0.1:"));
//! assert!(api.requests().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

mod api;
mod chat;
mod conversation;
mod gemini;
mod model;
mod protocol;
mod reply;
mod responses;
mod script;
mod server;
mod template;
mod wire;

pub use api::{FakeModelApi, Recorded};
pub use conversation::Conversation;
pub use model::Model;
pub use reply::{ApiError, Break, Reply, ToolCall, Usage};
pub use script::{Condition, Rule, Script};
