//! Configuration of offshoot: schema, layers and resolution, where every value knows its origin.
//!
//! Purpose: turn texts into one frozen [`Config`]. The caller reads files and the environment and hands in their texts;
//! nothing is opened or fetched here.
//!
//! ```text
//!  (agent definitions stand just below the user's and the project's file)
//!
//!  system file ─▶ user file ─▶ project file ─▶ --config file ─▶ environment ─▶ flags      the later one holds
//!       │             │       (once trusted)        │               │            │
//!       └─────────────┴── TOML or JSON5 ────────────┘               │            │
//!                              ▼                                    ▼            ▼
//!                    one tree of nodes, each with its place in the text
//!                              ▼
//!              one layer: every value typed, in bounds, with its origin      or all that is wrong, with places
//!                              ▼
//!                    ceilings checked · layers merged, agents by id
//!                              ▼
//!                           Config ──▶ settings of an agent · values with origins · digest
//! ```
//!
//! Promise: a value that is unknown, of the wrong type, out of range or above a ceiling is never used, changed or
//! dropped in silence: it stops the loading, and everything that is wrong is told at once.
//!
//! ```
//! use offshoot_config::{AgentId, Loader, Source, SourceKind};
//!
//! let user = "[agents.defaults.subagents]\nmaxDepth = 5\n";
//! let config = Loader::new()
//!     .file(Source::new(SourceKind::User, "/home/x/config.toml", user))
//!     .environment([("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__BUDGET__USD", "2.50")])
//!     .flag("agents.defaults.subagents.maxConcurrent", 4, "--max-concurrent")
//!     .load()?;
//!
//! let settings = config.settings(&AgentId::main());
//! let depth = settings.max_depth.expect("the user's file sets it");
//! assert_eq!(depth.value.get(), 5);
//! assert_eq!(depth.origin.to_string(), "user file /home/x/config.toml:2");
//! assert!(settings.max_spawns.is_none(), "unset: `built_in::MAX_SPAWNS` holds");
//!
//! // A slip is not a setting.
//! let errors = Loader::new()
//!     .file(Source::new(SourceKind::User, "c.json5", "{agents: {defaults: {subagents: {maxDepht: 5}}}}"))
//!     .load()
//!     .expect_err("no such key");
//! assert_eq!(
//!     errors.to_string(),
//!     "c.json5:1:34: agents.defaults.subagents.maxDepht: unknown key, nearest is `maxDepth`",
//! );
//! # Ok::<(), offshoot_config::ConfigErrors>(())
//! ```
//!
//! # One agent, a chain of agents
//!
//! [`Config::settings`] gives one agent's explicit values: its own, else those of the defaults. What holds over a
//! chain (the strictest of the explicit values, the built-in where there is none) is decided by the policy, which has
//! the chain. A flag replaces the value of the defaults, and that of the root of a tree: [`Config::root_settings`].
//!
//! # Agent definitions
//!
//! An agent may also be a Markdown file ([`Format::Markdown`]): front matter in YAML with `name`, `description`, `tools`,
//! `disallowedTools`, `model`, `effort`, `maxTurns`, `can_delegate`, `max_depth` and `preferred_subagents`; the body is
//! its system prompt, other keys are kept in [`AgentDefinition::other`]. A definition is a layer just below the file of
//! the same owner, so a file may refine it. Of two with the same name and owner, the one handed in later holds.
//!
//! # Ceilings
//!
//! `ceiling` in the system or user file bounds the keys of `subagents` in its own layer and in all above it.
//!
//! | keys | a value exceeds when |
//! |---|---|
//! | counts, sizes, shares, amounts | it is greater |
//! | `runTimeoutSeconds`, `idleTimeoutSeconds`, `archiveAfterMinutes`, `deadlineSeconds`, `maxCpuSeconds`, `maxMemoryBytes`, `maxOpenFiles`, `breaker.failures`, `quota.maxParkSeconds` | it is greater; 0 means none, which is greater than all |
//! | `allowRecursiveSpawn`, `allowCycles`, `learnDelegation`, `budget.allowUnknownCost` | it is true and the ceiling is false |
//! | `allowAgents` | it names an agent that the ceiling does not |
//! | `tools`, `toolsByDepth` | it permits something that the ceiling does not |
//!
//! The other keys have no more and less, and a ceiling that names them is an error. Where a key is not set and its
//! built-in value exceeds the ceiling, the ceiling's own value holds and is named as the origin.
//!
//! # Layers without a layering library
//!
//! Layers are merged here, by one method that each section gets from its declaration: what the later layer sets
//! replaces value and origin together. A general library would merge untyped tables and replace arrays, so that
//! `agents.list` would still have to be merged by hand; it knows an origin as one text and no line; and values would be
//! typed only after the merge, when the place of a wrong one is gone.
//!
//! A program that has its layers in the crate [`config`](https://docs.rs/config) hands in a table of them, and takes what holds as a
//! source of that crate, with the feature `config`:
//!
//! ```
//! use config::Source as _;
//! use offshoot_config::Loader;
//!
//! let program = config::Config::builder()
//!     .set_default("database", "postgres://db")?
//!     .set_default("offshoot.agents.defaults.subagents.maxDepth", 4)?
//!     .build()?;
//! let ours = Loader::new()
//!     .layer(program.get_table("offshoot")?)
//!     .flag("agents.defaults.subagents.maxSpawns", 9, "--max-spawns")
//!     .load()?;
//!
//! let offshoot = config::Value::new(None, ours.collect()?);
//! let all = config::Config::builder().add_source(program).set_override("offshoot", offshoot)?.build()?;
//! assert_eq!(all.get_int("offshoot.agents.defaults.subagents.maxDepth")?, 4);
//! assert_eq!(all.get_int("offshoot.agents.defaults.subagents.maxSpawns")?, 9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod audit;
#[cfg(feature = "config")]
mod bridge;
pub mod built_in;
mod ceiling;
mod config;
mod definition;
mod document;
mod environment;
mod field;
mod foreign;
mod host;
mod loader;
mod logs;
mod named;
mod node;
mod notify;
mod origin;
mod plugins;
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
pub use audit::AuditSettings;
pub use config::{Config, UndefinedChild};
pub use field::{Difference, Limit, Plain};
pub use foreign::nearest;
pub use host::HostSettings;
pub use loader::{Ignored, Loader};
pub use logs::LogSettings;
pub use notify::NotifySettings;
pub use origin::{Origin, Valued};
pub use plugins::PluginSettings;
pub use price::Price;
pub use problem::{ConfigErrors, Place, Problem, ProblemKind};
pub use runtime::RuntimeSettings;
pub use schema::schema;
pub use setting::{
    AllowAgents, Command, Date, Factor, Fallback, FilePath, Fraction, FreeForm, HeadsTarget,
    MaxChildren, MaxDepth, MeterMode, ModelChoice, Occasion, OnCap, OnInterrupt, OnParentEnd,
    OnRepeat, OnWall, Park, PreferredSubagents, PrimeCache, RuntimeFallback, Share, ToolList,
};
pub use source::{Format, Source, SourceKind};
pub use subagents::{
    BreakerSettings, BudgetSettings, QuotaSettings, RetrySettings, SubagentSettings,
};
pub use template::init_template;

pub use offshoot_session_key::AgentId;
