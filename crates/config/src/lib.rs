//! Configuration of offshoot: schema, layers and resolution, where every value knows its origin.

mod agent;
pub mod built_in;
mod ceiling;
mod config;
mod document;
mod environment;
mod foreign;
mod loader;
mod named;
mod node;
mod origin;
mod price;
mod problem;
mod reader;
pub mod resolve;
mod runtime;
mod schema;
mod section;
mod setting;
mod source;
mod subagents;
mod template;

pub use agent::AgentDefinition;
pub use config::Config;
pub use loader::{Ignored, Loader};
pub use origin::{Origin, Valued};
pub use price::Price;
pub use problem::{ConfigErrors, Place, Problem, ProblemKind};
pub use runtime::RuntimeSettings;
pub use schema::schema;
pub use setting::{
    AllowAgents, Cleanup, Command, CostKind, Date, Fraction, FreeForm, MaxChildren, MaxDepth,
    ModelChoice, OnInterrupt, OnParentEnd, Park, PreferredSubagents, ToolList,
};
pub use source::{Format, Source, SourceKind};
pub use subagents::{BreakerSettings, BudgetSettings, RetrySettings, SubagentSettings};
pub use template::init_template;

pub use offshoot_session_key::AgentId;
