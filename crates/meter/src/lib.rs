//! A loopback HTTP server between agents and their model provider. It reserves the most that a request can cost before the request
//! leaves, and settles by what the provider reports.
//!
//! ```text
//!  agent ──HTTP──▶ meter ──HTTPS──▶ provider
//!                   │  Ask::Reserve   what it can cost at most; the owner answers now or later
//!                   │  Ask::Settle    what it was charged; exactly once, also when the stream or the program breaks off
//!                   ▼  Ask::Seen      windows, walls and pressure, from the heads of answers
//!                 owner of the budgets
//! ```
//!
//! ```
//! use offshoot_meter::{Bound, Known, ModelPrice, Protocol, Rates, Request};
//!
//! let price = ModelPrice::flat(Rates::of("3".parse()?, "15".parse()?));
//! let body = br#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"greet"}]}"#;
//! let request = Request::read(Protocol::Messages, None, false, body)?;
//! let bound = Bound::of(&request, &Known::default(), Some(&price), 100);
//! assert!(bound.dollars() > Some("0.0015".parse()?), "its answer alone may cost that");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | room | what it decides |
//! |---|---|
//! | `protocol` | which requests cost something, which are free, which do not pass |
//! | `request` | model, limit and parts of a request; what is written into it |
//! | `known`, `bound`, `price` | what it can cost at most |
//! | `usage`, `settle` | what it has cost |
//! | `refusal` | how a program hears no, so that it stops at once |
//! | `window` | what a provider says of its limits |
//!
//! These are pure: no async, no files, no clock. `server`, `relay`, `caller` and `upstream` act.
//!
//! Promise:
//! - No request leaves without its reservation, and each reservation that was granted is settled once.
//! - What leaves is what the program sent, but for a limit of the answer where there is none, the wish of a chat to be told its use, and
//!   the key. What comes back passes as it comes.
//! - No agent sees a key, and nothing here prints one. A ticket is good for the processes of its run, and of the plugin that works for it,
//!   while the run lives.
//! - Nothing is charged less than it can have cost: what was not reported is charged at its bound.
//! - It listens on 127.0.0.1 alone. Dropping [`Meter::serve`] ends every connection.

mod ask;
mod bound;
mod caller;
mod credential;
mod known;
mod price;
mod protocol;
mod reader;
mod refusal;
mod relay;
mod request;
mod reservation;
mod runs;
mod server;
mod settle;
mod ticket;
mod upstream;
mod usage;
mod window;

pub use ask::{Ask, Refused, RequestId, Reserve, Seen, Settle, Verdict};
pub use bound::{Bound, BoundCost, LEAST_OUTPUT_TOKENS, OUTPUT_TOKENS};
pub use credential::{Credential, CredentialError, KeySource, Scheme};
pub use known::Known;
pub use price::{Factor, LongContext, ModelPrice, PriceTable, Rates, Service, Tokens};
pub use protocol::{Protocol, Provider, Route};
pub use refusal::{Code, Refusal};
pub use request::{CacheWrite, Malformed, More, Part, Request, ServerTool};
pub use runs::{PluginProcesses, Runs, Terms};
pub use secrecy::SecretString;
pub use server::{Meter, Options};
pub use settle::{Charge, Ending, Excess};
pub use ticket::Ticket;
pub use upstream::{AddressError, ChatLimit, ClientOptions, Login, Upstream};
pub use usage::Report;
pub use window::{Pressure, Reset, Wall, Window, WindowState};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
