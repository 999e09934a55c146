//! The server: it lets connections in, one task for each, and ends them when it ends.

mod body;
mod handler;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use self::handler::Connection;
use crate::ask::Ask;
use crate::caller::Ends;
use crate::price::PriceTable;
use crate::protocol::Provider;
use crate::runs::Runs;
use crate::ticket::Ticket;
use crate::upstream::{ClientOptions, Clients};

/// A meter that listens. It answers once it is [served](Meter::serve).
#[derive(Debug)]
pub struct Meter {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    connections: usize,
}

/// The options of a meter.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port; 0 for a free one.
    pub port: u16,
    /// The prices of models.
    pub prices: PriceTable,
    /// The way to providers.
    pub client: ClientOptions,
    /// Connections at once. More wait until one ends.
    pub connections: usize,
    /// The longest body of a request, also once it is unpacked.
    pub body_bytes: usize,
    /// For how long a request waits for its reservation. A program hears nothing meanwhile, and some give up after five minutes.
    pub hold: Duration,
    /// The same for Gemini's programs, which give up after one.
    pub hold_gemini: Duration,
}

/// The data that all connections share.
#[derive(Debug)]
struct Shared {
    runs: Runs,
    asks: mpsc::UnboundedSender<Ask>,
    prices: Arc<PriceTable>,
    clients: Clients,
    body_bytes: usize,
    hold: Duration,
    hold_gemini: Duration,
    /// The number of the next request.
    next: AtomicU64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            prices: PriceTable::default(),
            client: ClientOptions::default(),
            // A few for each program, and as many programs as one supervisor runs.
            connections: 4_096,
            // Twice what the largest of the providers takes.
            body_bytes: 64 * 1024 * 1024,
            hold: Duration::from_secs(280),
            hold_gemini: Duration::from_secs(50),
        }
    }
}

impl Meter {
    /// Listens on 127.0.0.1. `asks` goes to the owner of the budgets.
    pub async fn open(options: Options, asks: mpsc::UnboundedSender<Ask>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        let shared = Shared {
            runs: Runs::default(),
            asks,
            prices: Arc::new(options.prices),
            clients: Clients::new(options.client),
            body_bytes: options.body_bytes,
            hold: options.hold,
            hold_gemini: options.hold_gemini,
            next: AtomicU64::new(1),
        };
        let connections = options.connections.max(1);
        Ok(Self { listener, address, shared: Arc::new(shared), connections })
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The runs that may use it.
    pub fn runs(&self) -> Runs {
        self.shared.runs.clone()
    }

    /// Returns the base URL of a provider for a program. With a ticket it stands in the path: for programs that show a login of their
    /// own where the ticket would stand.
    pub fn base_url(&self, provider: Provider, ticket: Option<&Ticket>) -> String {
        let ticket = ticket.map(|ticket| format!("/r/{}", ticket.expose())).unwrap_or_default();
        let version = if provider == Provider::OpenAi { "/v1" } else { "" };
        format!("http://{}{ticket}{version}", self.address)
    }

    /// Answers for ever. Dropped, it closes every connection, and every reservation is settled.
    pub async fn serve(self) {
        let room = Arc::new(Semaphore::new(self.connections));
        let mut connections = JoinSet::new();
        loop {
            let accept = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (self.listener.accept().await, permit)
            };
            tokio::select! {
                biased;
                Some(_) = connections.join_next() => {}
                (accepted, permit) = accept => match accepted {
                    Ok((stream, _)) => {
                        let shared = Arc::clone(&self.shared);
                        connections.spawn(async move {
                            let _permit = permit;
                            serve_connection(shared, stream).await;
                        });
                    }
                    Err(error) => {
                        // A connection that is gone before it is accepted is the program's affair. Without descriptors none can be accepted
                        // until another ends, or some time has gone by.
                        tracing::debug!(%error, "a connection cannot be accepted");
                        let _ = tokio::time::timeout(AGAIN, connections.join_next()).await;
                    }
                },
            }
        }
    }
}

/// After a connection could not be accepted it is tried again in this time, or when another has ended.
const AGAIN: Duration = Duration::from_millis(100);

async fn serve_connection(shared: Arc<Shared>, stream: TcpStream) {
    let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return };
    // A piece of a stream is worth being sent at once.
    let _ = stream.set_nodelay(true);
    let connection = Arc::new(Connection::new(shared, Ends { theirs, ours }));
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        async move { Ok::<_, std::convert::Infallible>(connection.answer(request).await) }
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = connection.run_ended() => tracing::debug!("the run of a connection is over"),
        served = served => if let Err(error) = served {
            // How a connection ends is known to the program.
            tracing::debug!(%error, "a connection broke off");
        }
    }
}
