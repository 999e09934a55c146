//! One client, from its first word to its last.

use offshoot_door::{ClientError, Status};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Options;
use crate::client_source::{ClientSource, LazyClient};
use crate::server::SessionServer;

/// The reason why nothing was served. The text names the fault; [`ServeError::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The supervisor does not say what the session may do.
    #[error("the supervisor does not say what this session may do")]
    Status(#[source] ClientError),
    /// The program at the other end does not begin as MCP begins.
    #[error("the client does not speak MCP")]
    Handshake(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ServeError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Status(error) => error.hint(),
            Self::Handshake(_) => {
                Some("this server is for the programs of models, which start it themselves")
            }
        }
    }
}

/// Serves one client until it closes `input`. Must be called inside a tokio runtime with its I/O and time.
///
/// A call that is open at the end of the input has five more seconds to be answered.
///
/// # Errors
///
/// Before anything is served: the supervisor does not answer, or the client does not begin.
pub async fn serve(
    source: impl Into<ClientSource>,
    options: Options,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let client = LazyClient::new(source.into());
    // Asked once before anything else, so that a session that is not known is told before its client speaks.
    if let Some(client) = client.opened() {
        client.call(Status {}).await.map_err(ServeError::Status)?;
    }
    let server = SessionServer::new(client, options);
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // A client that thinks better of it has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Handshake(Box::new(error))),
    };
    running.waiting().await.expect("the connection's task neither panics nor is it aborted");
    Ok(())
}

/// [`serve`] on standard input and output.
///
/// # Errors
///
/// As [`serve`].
pub async fn serve_stdio(
    source: impl Into<ClientSource>,
    options: Options,
) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    serve(source, options, input, output).await
}
