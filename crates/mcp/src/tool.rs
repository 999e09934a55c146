//! The tools: one file for each noun, and the table of them all.

mod cancel;
mod child;
mod context;
mod history;
mod list;
mod merge;
mod merging;
mod permission;
mod report;
mod send;
mod spawn;
mod spawn_many;
mod status;
mod wait;

pub use self::permission::RightsOf;

use std::any::Any;

use offshoot_door::Client;
use offshoot_model::JsonText;
use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::Options;
use crate::answer::CallFailure;
use crate::patience::Patience;

/// A tool. Closed: the table and the call meet every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolKind {
    Spawn,
    SpawnMany,
    Wait,
    Merge,
    List,
    History,
    Send,
    Cancel,
    Report,
    Status,
    ContextPut,
    ContextInfo,
    ContextRead,
    Permission,
}

impl ToolKind {
    /// In the order in which they are listed.
    pub(crate) const ALL: &[Self] = &[
        Self::Spawn,
        Self::SpawnMany,
        Self::Wait,
        Self::Merge,
        Self::List,
        Self::History,
        Self::Send,
        Self::Cancel,
        Self::Report,
        Self::Status,
        Self::ContextPut,
        Self::ContextInfo,
        Self::ContextRead,
        Self::Permission,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spawn => "sessions_spawn",
            Self::SpawnMany => "sessions_spawn_many",
            Self::Wait => "sessions_wait",
            Self::Merge => "sessions_merge",
            Self::List => "sessions_list",
            Self::History => "sessions_history",
            Self::Send => "sessions_send",
            Self::Cancel => "sessions_cancel",
            Self::Report => "sessions_report",
            Self::Status => "sessions_status",
            Self::ContextPut => "context_put",
            Self::ContextInfo => "context_info",
            Self::ContextRead => "context_read",
            Self::Permission => "permission",
        }
    }

    /// Whether it is there: one is for programs and not for models, and only where that was asked for.
    pub(crate) const fn is_there(self, options: &Options) -> bool {
        !matches!(self, Self::Permission) || options.permission.is_some()
    }

    /// Whether it is of no use to a session that can have no children.
    pub(crate) const fn needs_children(self) -> bool {
        match self {
            Self::Spawn | Self::SpawnMany | Self::Wait | Self::Merge | Self::List => true,
            Self::History | Self::Send | Self::Cancel => true,
            Self::Report | Self::Status => false,
            Self::ContextPut | Self::ContextInfo | Self::ContextRead | Self::Permission => false,
        }
    }

    /// Name, words and schema.
    pub(crate) fn definition(self) -> Tool {
        match self {
            Self::Spawn => self.define::<spawn::Arguments>(spawn::WORDS),
            Self::SpawnMany => self.define::<spawn_many::Arguments>(spawn_many::WORDS),
            Self::Wait => self.define::<wait::Arguments>(wait::WORDS),
            Self::Merge => self.define::<merge::Arguments>(merge::WORDS),
            Self::List => self.define::<list::Arguments>(list::WORDS),
            Self::History => self.define::<history::Arguments>(history::WORDS),
            Self::Send => self.define::<send::Arguments>(send::WORDS),
            Self::Cancel => self.define::<cancel::Arguments>(cancel::WORDS),
            Self::Report => self.define::<report::Arguments>(report::WORDS),
            Self::Status => self.define::<status::Arguments>(status::WORDS),
            Self::ContextPut => self.define::<context::PutArguments>(context::PUT_WORDS),
            Self::ContextInfo => self.define::<context::InfoArguments>(context::INFO_WORDS),
            Self::ContextRead => self.define::<context::ReadArguments>(context::READ_WORDS),
            Self::Permission => self.define::<permission::Arguments>(permission::WORDS),
        }
    }

    /// Asks the door.
    pub(crate) async fn call(
        self,
        client: &Client,
        arguments: JsonObject,
        patience: &Patience,
    ) -> Result<JsonText, CallFailure> {
        match self {
            Self::Spawn => spawn::call(client, parse(arguments)?, patience).await,
            Self::SpawnMany => spawn_many::call(client, parse(arguments)?, patience).await,
            Self::Wait => wait::call(client, parse(arguments)?, patience).await,
            Self::Merge => merge::call(client, parse(arguments)?).await,
            Self::List => list::call(client, parse(arguments)?).await,
            Self::History => history::call(client, parse(arguments)?).await,
            Self::Send => send::call(client, parse(arguments)?).await,
            Self::Cancel => cancel::call(client, parse(arguments)?).await,
            Self::Report => report::call(client, parse(arguments)?).await,
            Self::Status => status::call(client, parse(arguments)?).await,
            Self::ContextPut => context::put(client, parse(arguments)?).await,
            Self::ContextInfo => context::info(client, parse(arguments)?).await,
            Self::ContextRead => context::read(client, parse(arguments)?).await,
            Self::Permission => {
                let rights_of = patience.options().permission.expect("it is there only with these");
                permission::call(client, parse(arguments)?, rights_of).await
            }
        }
    }

    fn define<A: JsonSchema + Any>(self, words: &'static str) -> Tool {
        let schema = schema_for_input::<A>().expect("arguments are objects");
        Tool::new(self.name(), words, schema)
    }
}

fn parse<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, CallFailure> {
    let parsed = serde_json::from_value(serde_json::Value::Object(arguments));
    parsed.map_err(|error| CallFailure::invalid("arguments", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_is_an_object_that_says_what_it_takes() {
        for tool in ToolKind::ALL {
            let definition = tool.definition();
            let schema = definition.schema_as_json_value();
            assert_eq!(schema["type"], "object", "{tool:?}");
            let strict = *tool != ToolKind::Permission;
            assert_eq!(schema["additionalProperties"] == false, strict, "{tool:?} {schema}");
            assert!(definition.description.is_some_and(|words| !words.is_empty()), "{tool:?}");
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{tool:?} {name}: {property}");
            }
        }
    }

    #[test]
    fn the_schema_of_a_spawn_is_that_of_the_protocol() {
        let schema = ToolKind::Spawn.definition().schema_as_json_value();
        assert_eq!(schema["required"], serde_json::json!(["task"]));
        let properties = schema["properties"].as_object().expect("it takes something");
        let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        let expected = [
            "agentId",
            "budget",
            "cleanup",
            "context",
            "label",
            "model",
            "runTimeoutSeconds",
            "task",
            "thinking",
            "tools",
            "wait",
        ];
        assert_eq!(names, expected);
    }
}
