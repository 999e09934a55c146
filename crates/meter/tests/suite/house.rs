//! A meter, the owner of its budgets, and a program that asks through it.

use std::net::SocketAddr;
use std::sync::Arc;

use offshoot_fake_model_api::{FakeModelApi, Rule, Script};
use offshoot_meter::{
    Ask, Credential, KeySource, Login, Meter, ModelPrice, Options, PriceTable, Provider, Rates,
    Reserve, Runs, Scheme, Settle, Terms, Ticket, Upstream, Verdict,
};
use offshoot_model::RunId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The key of the operator.
pub(crate) const KEY: &str = "sk-operator";

/// A meter with one run, which lives in this process.
pub(crate) struct House {
    pub(crate) address: SocketAddr,
    pub(crate) runs: Runs,
    pub(crate) run: RunId,
    pub(crate) ticket: Ticket,
    provider: String,
    pub(crate) asks: mpsc::UnboundedReceiver<Ask>,
    served: JoinHandle<()>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// True if the connection broke before the end of the answer.
    pub(crate) broken: bool,
}

impl House {
    /// A meter before this provider, with these terms for the run beside the providers.
    pub(crate) async fn before(provider: &str, terms: Terms) -> Self {
        let (sender, asks) = mpsc::unbounded_channel();
        let price = ModelPrice::flat(Rates::of(
            "3".parse().expect("dollars"),
            "15".parse().expect("dollars"),
        ));
        let prices = PriceTable::new([("priced".to_owned(), price)]);
        let options = Options {
            prices,
            hold: std::time::Duration::from_millis(200),
            body_bytes: 1024 * 1024,
            ..Options::default()
        };
        let meter = Meter::open(options, sender).await.expect("a free port");
        let (address, runs) = (meter.address(), meter.runs());
        let (run, ticket) = admit(&runs, provider, terms);
        #[expect(clippy::disallowed_methods, reason = "it ends with its house")]
        let served = tokio::spawn(meter.serve());
        Self { address, runs, run, ticket, provider: provider.to_owned(), asks, served }
    }

    /// Another run beside the first one.
    pub(crate) fn neighbour(&self) -> (RunId, Ticket) {
        admit(&self.runs, &self.provider, dollars())
    }

    /// A meter before a service that answers by rules.
    pub(crate) async fn with_rules(rules: impl IntoIterator<Item = Rule>) -> (Self, FakeModelApi) {
        let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
        (Self::before(&api.url(), dollars()).await, api)
    }

    /// Sends a request with the ticket of the run, in a task of its own.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> JoinHandle<Answer> {
        self.send_as(self.ticket.expose(), method, path, body)
    }

    pub(crate) fn send_as(
        &self,
        ticket: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> JoinHandle<Answer> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: meter\r\nconnection: close\r\nx-api-key: {ticket}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let address = self.address;
        #[expect(clippy::disallowed_methods, reason = "it ends with its answer")]
        tokio::spawn(async move { exchange(address, request.as_bytes()).await })
    }

    /// A message of a few words.
    pub(crate) fn message(&self) -> JoinHandle<Answer> {
        self.send("POST", "/v1/messages", MESSAGE)
    }

    /// Sends a message of a few words, reads the head of the answer, says that nothing more comes, and waits until the meter hangs up.
    pub(crate) fn hang_up_after_head(&self) -> JoinHandle<()> {
        self.hang_up_after_head_of("/v1/messages", MESSAGE)
    }

    /// The same with another request.
    pub(crate) fn hang_up_after_head_of(&self, path: &str, body: &str) -> JoinHandle<()> {
        self.hang_up_after(path, body, "HTTP/1.1 200 OK")
    }

    /// The same once these words have come.
    pub(crate) fn hang_up_after(
        &self,
        path: &str,
        body: &str,
        last: &'static str,
    ) -> JoinHandle<()> {
        let (address, ticket) = (self.address, self.ticket.expose());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: meter\r\nx-api-key: {ticket}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        #[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
        tokio::spawn(async move {
            let mut connection = TcpStream::connect(address).await.expect("it listens");
            connection.write_all(request.as_bytes()).await.expect("it is read");
            let mut so_far = Vec::new();
            while !String::from_utf8_lossy(&so_far).contains(last) {
                let more = connection.read_buf(&mut so_far).await.expect("it is open");
                assert!(more > 0, "all that came: {}", String::from_utf8_lossy(&so_far));
            }
            assert!(so_far.starts_with(b"HTTP/1.1 200 OK"));
            connection.shutdown().await.expect("it is open");
            // A reset says the same as an end.
            let _ = connection.read_to_end(&mut Vec::new()).await;
        })
    }

    /// The next question for a reservation.
    pub(crate) async fn reserve(&mut self) -> Reserve {
        loop {
            match self.asks.recv().await.expect("the meter lives") {
                Ask::Reserve(reserve) => return reserve,
                Ask::Seen(_) | Ask::Refused(_) => {}
                other => panic!("no question: {other:?}"),
            }
        }
    }

    /// Grants the next question.
    pub(crate) async fn grant(&mut self) -> Reserve {
        let mut reserve = self.reserve().await;
        let (answer, _) = oneshot::channel();
        let asked = std::mem::replace(&mut reserve.answer, answer);
        asked.send(Verdict::Granted).expect("the program waits");
        reserve
    }

    /// The next end of a request.
    pub(crate) async fn settle(&mut self) -> Settle {
        loop {
            match self.asks.recv().await.expect("the meter lives") {
                Ask::Settle(settle) => return settle,
                Ask::Seen(_) | Ask::Refused(_) => {}
                other => panic!("no end: {other:?}"),
            }
        }
    }

    /// True if nothing was asked or told that was not taken, but for refusals.
    pub(crate) fn is_silent(&mut self) -> bool {
        std::iter::from_fn(|| self.asks.try_recv().ok()).all(|ask| matches!(ask, Ask::Refused(_)))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Lets a run in this process ask this provider.
fn admit(runs: &Runs, provider: &str, terms: Terms) -> (RunId, Ticket) {
    let upstream = |base: String, scheme| {
        let key = Credential::new(KeySource::Text(KEY.into()));
        Upstream::new(&base, Login::Key(key, scheme)).expect("an address of this machine")
    };
    let upstreams = [
        (Provider::Anthropic, upstream(provider.to_owned(), Scheme::ApiKey)),
        (Provider::OpenAi, upstream(format!("{provider}/v1"), Scheme::Bearer)),
        (Provider::Gemini, upstream(provider.to_owned(), Scheme::GoogApiKey)),
    ];
    let (run, ticket) = (RunId::from_uuid(Uuid::now_v7()), Ticket::mint().expect("random"));
    runs.admit(run, &ticket, Terms { upstreams: upstreams.into(), ..terms });
    runs.started(run, None);
    (run, ticket)
}

/// Terms under a budget in dollars.
pub(crate) fn dollars() -> Terms {
    Terms { dollars: true, shortens: true, ..Terms::default() }
}

/// A message of a few words, whose answer has at most 100 tokens.
pub(crate) const MESSAGE: &str =
    r#"{"model":"priced","max_tokens":100,"messages":[{"role":"user","content":"greet"}]}"#;

/// Sends bytes and reads the answer to its end.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut connection = TcpStream::connect(address).await.expect("it listens");
    connection.write_all(request).await.expect("it is read");
    let mut bytes = Vec::new();
    let read = connection.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let broken = read.is_err() || (is_chunked && !body.ends_with("0\r\n\r\n"));
    let body = if is_chunked { whole(body) } else { body.to_owned() };
    Answer { status, body, broken }
}

/// Puts the chunks of a body together.
fn whole(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length, 16) else { break };
        let Some(chunk) = rest.get(..length) else { break };
        body.push_str(chunk);
        chunks = rest[length..].trim_start_matches("\r\n");
    }
    body
}

/// A provider that answers each connection with these bytes and closes it.
pub(crate) async fn raw_provider(answer: &'static str) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let answer: Arc<str> = answer.into();
    #[expect(clippy::disallowed_methods, reason = "it ends with its test")]
    let served = tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = vec![0; 64 * 1024];
            // The requests of these tests are small, and come in one piece.
            let _ = connection.read(&mut head).await;
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    });
    (url, served)
}

/// A provider that answers one connection with these bytes, and with the rest once it is told to.
pub(crate) async fn slow_provider(
    begin: &'static str,
    rest: &'static str,
) -> (String, oneshot::Sender<()>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (goes_on, told) = oneshot::channel();
    #[expect(clippy::disallowed_methods, reason = "it ends with its test")]
    let served = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.expect("the meter asks");
        let mut head = vec![0; 64 * 1024];
        let _ = connection.read(&mut head).await;
        let _ = connection.write_all(begin.as_bytes()).await;
        let _ = told.await;
        let _ = connection.write_all(rest.as_bytes()).await;
    });
    (url, goes_on, served)
}
