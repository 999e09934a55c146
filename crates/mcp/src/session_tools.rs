//! The same tools for a model that is no MCP client: its runtime lives in the supervisor and calls them itself.

use offshoot_door::{Client, ClientError, Status};
use offshoot_model::{JsonText, json_error};
use offshoot_runtime::ToolOffer;

use crate::Options;
use crate::answer::CallFailure;
use crate::patience::Patience;
use crate::repeats::Repeats;
use crate::tool::ToolKind;

/// The tools of one session. They are those of MCP, by name, words, schema and answer.
#[derive(Debug)]
pub struct SessionTools {
    client: Client,
}

impl SessionTools {
    /// The tools of the session that this client asks as.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the tools that the session may use.
    ///
    /// # Errors
    ///
    /// Fails if the supervisor does not say what the session may do.
    pub async fn offered(&self) -> Result<Vec<ToolOffer>, ClientError> {
        let status = self.client.call(Status {}).await?;
        let options = Options::default();
        let usable = ToolKind::usable(Some(&status), &options);
        let offer = |tool: ToolKind| {
            let definition = tool.definition();
            ToolOffer {
                name: tool.name().into(),
                words: definition.description.unwrap_or_default().as_ref().into(),
                schema: JsonText::of(&definition.input_schema).expect("a schema is plain data"),
            }
        };
        Ok(usable.map(offer).collect())
    }

    /// Calls a tool with a JSON object of arguments. Refusals and mistakes are answers too; none where there is no such tool.
    pub async fn call(&self, name: &str, arguments: &str) -> Option<JsonText> {
        let options = Options::default();
        let tool = ToolKind::named(name, &options)?;
        let (repeats, arguments) = (Repeats::default(), arguments.trim());
        let text = if arguments.is_empty() { "{}" } else { arguments };
        let answer = match serde_json::from_str(text) {
            Ok(arguments) => {
                let patience = Patience::unheard(options, &repeats);
                tool.call(&self.client, arguments, &patience).await
            }
            Err(error) => Err(CallFailure::invalid("arguments", json_error(text, &error))),
        };
        Some(answer.unwrap_or_else(|failure| failure.json()))
    }

    /// Returns the answer where the supervisor could not be asked.
    pub fn failed(error: ClientError) -> JsonText {
        CallFailure::from(error).json()
    }
}
