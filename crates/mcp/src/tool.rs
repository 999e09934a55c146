//! The tools: one file for each noun, and the table of them all.

mod cancel;
mod child;
mod context;
mod delegate;
mod history;
mod json_argument;
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

use offshoot_door::{Client, StatusAnswer};
use offshoot_model::{JsonText, json_error};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use strum::VariantArray;

use crate::Options;
use crate::answer::CallFailure;
use crate::patience::Patience;
use crate::schema::plain;

/// A tool, by its name. Closed: the table and the call meet every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum ToolKind {
    SessionsSpawn,
    SessionsDelegate,
    SessionsSpawnMany,
    SessionsWait,
    SessionsMerge,
    SessionsList,
    SessionsHistory,
    SessionsSend,
    SessionsCancel,
    SessionsReport,
    SessionsStatus,
    ContextPut,
    ContextInfo,
    ContextRead,
    Permission,
}

impl ToolKind {
    /// In the order in which they are listed.
    pub(crate) const ALL: &[Self] = Self::VARIANTS;

    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The tool of this name, where it is there.
    pub(crate) fn named(name: &str, options: &Options) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name && tool.is_there(options))
    }

    /// The tools that a session of this status may use. One that is not known yet is a root of its own, which always may have
    /// children; its agents are known once it is open.
    pub(crate) fn usable(
        status: Option<&StatusAnswer>,
        options: &Options,
    ) -> impl Iterator<Item = Self> {
        let may_spawn = status.is_none_or(|status| status.may_spawn);
        let prefers = |status: &StatusAnswer| status.agents.iter().any(|agent| agent.why.is_some());
        let prefers = status.is_none_or(prefers);
        let options = *options;
        let usable = move |tool: &Self| {
            tool.is_there(&options)
                && (may_spawn || !tool.needs_children())
                && (prefers || *tool != Self::SessionsDelegate)
        };
        Self::ALL.iter().copied().filter(usable)
    }

    /// True if the tool is there: one is for programs and not for models, and only where that was asked for.
    pub(crate) const fn is_there(self, options: &Options) -> bool {
        !matches!(self, Self::Permission) || options.permission.is_some()
    }

    /// True if the tool is of no use to a session that can have no children.
    pub(crate) const fn needs_children(self) -> bool {
        match self {
            Self::SessionsSpawn | Self::SessionsDelegate | Self::SessionsSpawnMany => true,
            Self::SessionsWait | Self::SessionsMerge | Self::SessionsList => true,
            Self::SessionsHistory | Self::SessionsSend | Self::SessionsCancel => true,
            Self::SessionsReport | Self::SessionsStatus => false,
            Self::ContextPut | Self::ContextInfo | Self::ContextRead | Self::Permission => false,
        }
    }

    /// True if a call changes nothing but what the tree keeps of itself: clients run several of these at once and without asking.
    /// Starting a child is one of them, because the child does nothing by the rights of its caller: what it does stands under its
    /// own, and under the permissions of the program that runs it.
    const fn only_reads(self) -> bool {
        match self {
            Self::SessionsSpawn | Self::SessionsDelegate | Self::SessionsSpawnMany => true,
            Self::SessionsWait | Self::SessionsList | Self::SessionsHistory => true,
            Self::SessionsStatus | Self::ContextInfo | Self::ContextRead | Self::Permission => true,
            Self::SessionsMerge | Self::SessionsSend | Self::SessionsCancel => false,
            Self::SessionsReport | Self::ContextPut => false,
        }
    }

    /// Name, words, schema, and what clients decide by whether to ask their user.
    pub(crate) fn definition(self) -> Tool {
        let (words, schema) = match self {
            Self::SessionsSpawn => (spawn::WORDS, plain::<spawn::Arguments>()),
            Self::SessionsDelegate => (delegate::WORDS, plain::<delegate::Arguments>()),
            Self::SessionsSpawnMany => (spawn_many::WORDS, plain::<spawn_many::Arguments>()),
            Self::SessionsWait => (wait::WORDS, plain::<wait::Arguments>()),
            Self::SessionsMerge => (merge::WORDS, plain::<merge::Arguments>()),
            Self::SessionsList => (list::WORDS, plain::<list::Arguments>()),
            Self::SessionsHistory => (history::WORDS, plain::<history::Arguments>()),
            Self::SessionsSend => (send::WORDS, plain::<send::Arguments>()),
            Self::SessionsCancel => (cancel::WORDS, plain::<cancel::Arguments>()),
            Self::SessionsReport => (report::WORDS, plain::<report::Arguments>()),
            Self::SessionsStatus => (status::WORDS, plain::<status::Arguments>()),
            Self::ContextPut => (context::PUT_WORDS, plain::<context::PutArguments>()),
            Self::ContextInfo => (context::INFO_WORDS, plain::<context::InfoArguments>()),
            Self::ContextRead => (context::READ_WORDS, plain::<context::ReadArguments>()),
            Self::Permission => (permission::WORDS, plain::<permission::Arguments>()),
        };
        // No tool destroys anything, and none reaches beyond the tree.
        let hints = ToolAnnotations::from_raw(
            None,
            Some(self.only_reads()),
            Some(false),
            None,
            Some(false),
        );
        Tool::new(self.name(), words, schema).with_annotations(hints)
    }

    /// Asks the door.
    pub(crate) async fn call(
        self,
        client: &Client,
        arguments: JsonObject,
        patience: &Patience<'_>,
    ) -> Result<JsonText, CallFailure> {
        match self {
            Self::SessionsSpawn => spawn::call(client, parse(arguments)?, patience).await,
            Self::SessionsDelegate => delegate::call(client, parse(arguments)?).await,
            Self::SessionsSpawnMany => spawn_many::call(client, parse(arguments)?, patience).await,
            Self::SessionsWait => wait::call(client, parse(arguments)?, patience).await,
            Self::SessionsMerge => merge::call(client, parse(arguments)?).await,
            Self::SessionsList => list::call(client, parse(arguments)?).await,
            Self::SessionsHistory => history::call(client, parse(arguments)?).await,
            Self::SessionsSend => send::call(client, parse(arguments)?).await,
            Self::SessionsCancel => cancel::call(client, parse(arguments)?).await,
            Self::SessionsReport => report::call(client, parse(arguments)?).await,
            Self::SessionsStatus => status::call(client, parse(arguments)?).await,
            Self::ContextPut => context::put(client, parse(arguments)?).await,
            Self::ContextInfo => context::info(client, parse(arguments)?).await,
            Self::ContextRead => context::read(client, parse(arguments)?).await,
            Self::Permission => {
                let rights_of = patience.options.permission.expect("it is there only with these");
                permission::call(client, parse(arguments)?, rights_of).await
            }
        }
    }
}

fn parse<A: DeserializeOwned + JsonSchema>(arguments: JsonObject) -> Result<A, CallFailure> {
    let given: Vec<String> = arguments.keys().cloned().collect();
    // From the text, in which an error has a place.
    let text = serde_json::Value::Object(arguments.clone()).to_string();
    let parsed = serde_json::from_str(&text);
    parsed.map_err(|error| {
        let schema = plain::<A>();
        let known = schema["properties"].as_object().expect("arguments are an object");
        let Some(unknown) = given.iter().find(|name| !known.contains_key(*name)) else {
            let message = json_error(&text, &error);
            let field = given.iter().find(|name| is_wrong::<A>(&arguments, name, &error));
            return CallFailure::invalid(
                "arguments",
                match field {
                    // Where arguments of two tables stand in one object, an error has no place.
                    Some(field) if message.starts_with("found ") => {
                        format!("`{field}`: {message}")
                    }
                    _ => message,
                },
            );
        };
        let known: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("unknown key `{unknown}`; known are {known}");
        CallFailure::invalid("arguments", message)
    })
}

/// True if the error is about this argument: without it there is none, or another one.
fn is_wrong<A: DeserializeOwned>(
    arguments: &JsonObject,
    name: &str,
    error: &serde_json::Error,
) -> bool {
    let mut others = arguments.clone();
    others.remove(name);
    let text = serde_json::Value::Object(others).to_string();
    let rest = serde_json::from_str::<A>(&text);
    rest.err().is_none_or(|other| json_error("", &other) != json_error("", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that every client takes in a schema: those of the Schema of Gemini's function declarations and of OpenAI's
    /// tools, of which there is nothing else in both.
    const WORDS: [&str; 6] = ["type", "properties", "required", "items", "enum", "description"];

    #[track_caller]
    fn check_plain(schema: &serde_json::Value, place: &str) {
        let fields = schema.as_object().unwrap_or_else(|| panic!("{place}: {schema}"));
        for word in fields.keys() {
            assert!(WORDS.contains(&word.as_str()), "{place}: `{word}` in {schema}");
        }
        let properties = schema["properties"].as_object();
        match schema["type"].as_str().unwrap_or_else(|| panic!("{place}: no type in {schema}")) {
            "array" => check_plain(&schema["items"], &format!("{place}[]")),
            "object" => {
                let known = properties.unwrap_or_else(|| panic!("{place}: {schema}"));
                let required = schema["required"].as_array().into_iter().flatten();
                for name in required.map(|name| name.as_str().expect("a name")) {
                    assert!(known.contains_key(name), "{place}: {name} is needed and unknown");
                }
                for (name, property) in known {
                    check_plain(property, &format!("{place}.{name}"));
                }
            }
            "string" | "integer" | "number" | "boolean" => assert!(properties.is_none(), "{place}"),
            other => panic!("{place}: {other}"),
        }
    }

    /// The rules that both publish beside those of schemas: names of at most 64 letters, digits, `_` and `-` that begin with a letter,
    /// also behind the name of the server as clients put it; descriptions of at most 1,024 characters; names of values are text;
    /// at most five levels and a hundred properties.
    #[test]
    fn each_tool_is_a_function_declaration_for_gemini_and_a_function_for_openai() {
        fn levels(schema: &serde_json::Value, place: &str) -> usize {
            let words = schema["description"].as_str().unwrap_or_default();
            assert!(words.chars().count() <= 1024, "{place}");
            let names = schema["enum"].as_array().into_iter().flatten();
            assert!(names.into_iter().all(serde_json::Value::is_string), "{place}");
            assert!(schema.get("enum").is_none() || schema["type"] == "string", "{place}");
            let inner = schema["properties"].as_object().into_iter().flat_map(|it| it.values());
            1 + inner.chain(schema.get("items")).map(|it| levels(it, place)).max().unwrap_or(0)
        }
        for tool in ToolKind::ALL {
            let definition = tool.definition();
            for name in [tool.name().to_owned(), format!("mcp__offshoot__{}", tool.name())] {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                assert!(name.len() <= 64 && name.bytes().all(is_plain), "{name}");
                assert!(name.starts_with(|first: char| first.is_ascii_alphabetic()), "{name}");
            }
            let words = definition.description.as_deref().unwrap_or_default();
            assert!((1..=1024).contains(&words.chars().count()), "{tool:?}");
            let schema = definition.schema_as_json_value();
            assert_eq!(schema["type"], "object", "{tool:?}");
            assert!(levels(&schema, tool.name()) <= 5, "{tool:?}");
            assert!(schema.to_string().matches("\"type\"").count() <= 100, "{tool:?}");
        }
    }

    #[test]
    fn each_schema_is_plain_and_all_of_them_are_small() {
        let for_models = ToolKind::ALL.iter().filter(|tool| tool.is_there(&Options::default()));
        for tool in for_models {
            check_plain(&tool.definition().schema_as_json_value(), tool.name());
        }
        let bytes = crate::reference::size();
        assert!(bytes < 6000, "{bytes} bytes");
    }

    #[test]
    fn what_clients_need_not_ask_about_is_said() {
        for tool in ToolKind::ALL {
            let hints = tool.definition().annotations.expect("there are some");
            assert_eq!((hints.destructive_hint, hints.open_world_hint), (Some(false), Some(false)));
            let changes = ["merge", "send", "cancel", "report", "put"];
            let reads = !changes.iter().any(|word| tool.name().ends_with(word));
            assert_eq!(hints.read_only_hint, Some(reads), "{tool:?}");
        }
    }

    #[test]
    fn an_argument_that_is_not_known_is_told_with_all_that_are() {
        #[track_caller]
        fn check<A: DeserializeOwned + JsonSchema>(arguments: &str, expected: &str) {
            let arguments = serde_json::from_str(arguments).expect("an object");
            let Err(CallFailure::Refused(refused)) = parse::<A>(arguments) else {
                panic!("{expected}")
            };
            assert_eq!(refused.message, expected);
        }
        check::<spawn::Arguments>(
            r#"{"task":"x","timeout":3}"#,
            "unknown key `timeout`; known are `task`, `agentId`, `label`, `context`, `model`, `thinking`, \
             `runTimeoutSeconds`, `cleanup`, `tools`, `isolation`, `schema`, `budget`, `wait`",
        );
        check::<status::Arguments>(r#"{"x":1}"#, "unknown key `x`; known are none");
        check::<spawn::Arguments>(r#"{"wait":true}"#, "the key `task` is missing");
        let spawn = ToolKind::SessionsSpawn.definition().schema_as_json_value();
        assert_eq!(spawn["required"], serde_json::json!(["task"]));
    }
}
