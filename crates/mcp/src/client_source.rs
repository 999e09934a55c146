//! The source of a server's client of the door.

use std::pin::Pin;

use offshoot_door::{Client, ClientError};
use tokio::sync::OnceCell;

/// The source of a server's client of the door.
#[derive(derive_more::Debug)]
pub enum ClientSource {
    /// A client that is connected.
    #[debug("Open")]
    Open(Client),
    /// A client that is connected when it is needed for the first time, so that a program which only looks at the tools opens
    /// nothing. After a failure the next call tries again.
    #[debug("Later")]
    Later(Opener),
}

/// Gets a client.
pub type Opener = Box<dyn Fn() -> Opening + Send + Sync>;

/// A client on its way.
pub type Opening = Pin<Box<dyn Future<Output = Result<Client, ClientError>> + Send>>;

/// A client that is made when it is used for the first time.
pub(crate) struct LazyClient {
    client: OnceCell<Client>,
    opener: Option<Opener>,
}

impl LazyClient {
    pub(crate) fn new(source: ClientSource) -> Self {
        match source {
            ClientSource::Open(client) => Self { client: OnceCell::from(client), opener: None },
            ClientSource::Later(opener) => Self { client: OnceCell::new(), opener: Some(opener) },
        }
    }

    /// The client, where there is one already.
    pub(crate) fn opened(&self) -> Option<&Client> {
        self.client.get()
    }

    /// The client. Calls that come at the same time open one door.
    pub(crate) async fn client(&self) -> Result<&Client, ClientError> {
        let open = || async {
            let opener = self.opener.as_ref().expect("where none is needed, there is a client");
            opener().await
        };
        self.client.get_or_try_init(open).await
    }
}

impl From<Client> for ClientSource {
    fn from(client: Client) -> Self {
        Self::Open(client)
    }
}
