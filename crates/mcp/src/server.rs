//! The calling session, as MCP sees it.

use offshoot_door::{ClientError, Status};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::Options;
use crate::answer::{answer, text};
use crate::client_source::LazyClient;
use crate::patience::Patience;
use crate::repeats::Repeats;
use crate::tool::ToolKind;

/// The text that a model reads before the tools.
const INSTRUCTIONS: &str = "\
These tools ask the supervisor of this session. Children run on their own; their results come by sessions_wait. \
A refusal says why and what is allowed instead: do not repeat the same request.";

/// One client's server.
pub(crate) struct SessionServer {
    client: LazyClient,
    options: Options,
    repeats: Repeats,
}

impl SessionServer {
    pub(crate) fn new(client: LazyClient, options: Options) -> Self {
        Self { client, options, repeats: Repeats::default() }
    }
}

impl ServerHandler for SessionServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("offshoot", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let status = match self.client.opened() {
            Some(client) => Some(client.call(Status {}).await.map_err(|error| unsaid(&error))?),
            None => None,
        };
        let usable = ToolKind::usable(status.as_ref(), &self.options);
        Ok(ListToolsResult::with_all_items(usable.map(ToolKind::definition).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name;
        let tool = ToolKind::named(&name, &self.options)
            .ok_or_else(|| ErrorData::invalid_params(format!("there is no tool `{name}`"), None))?;
        let patience = Patience::new(self.options, &self.repeats, &cx);
        let arguments = request.arguments.unwrap_or_default();
        let call = async {
            let client = self.client.client().await?;
            tool.call(client, arguments, &patience).await
        };
        tokio::select! {
            result = call => Ok(match tool {
                ToolKind::Permission => text(result),
                _ => answer(result),
            }.into()),
            // No client reads this answer.
            () = cx.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }
}

fn unsaid(error: &ClientError) -> ErrorData {
    ErrorData::internal_error(
        format!("the supervisor does not say what this session may do: {error}"),
        None,
    )
}
