//! Proof of the meter: an agent inside this process asks a provider of its own, through the meter, for more than its budget pays.
//!
//! Nothing leaves the machine and nothing is paid: the provider is a server on loopback that reports the use of each answer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use offshoot_audit::Audit;
use offshoot_config::{Config, Loader};
use offshoot_meter::{
    Credential, KeySource, Login, ModelPrice, PriceTable, Provider, Rates, Scheme, Upstream,
};
use offshoot_model::{Event, EventKind, MicroUsd, Payload, Reason};
use offshoot_runtime::{Finished, FnRuntime, MeterPass};
use offshoot_spawner::{RootSpec, RunSpec, Spawner};
use offshoot_store::{MemoryStore, Store};
use tokio::net::{TcpListener, TcpStream};

use crate::error::HostError;
use crate::limit_proof::LimitProof;
use crate::metering::{Metered, Metering};
use crate::tree_meter::TreeMeter;

const RUNTIME: &str = "probe";
/// The budget of the agent.
const BUDGET: &str = "0.1";
/// Each request may cost this much, and does: ten tokens read and a hundred written.
const EACH: u64 = 100 + 5_000;
/// More than the budget pays.
const REQUESTS: u64 = 40;
const BODY: &str =
    r#"{"model":"probe","max_tokens":100,"messages":[{"role":"user","content":"probe"}]}"#;
const ANSWER: &str = r#"{"type":"message","usage":{"input_tokens":10,"output_tokens":100}}"#;

/// Tries the meter.
///
/// # Errors
///
/// Fails if no port can be had, or the tree of the probe cannot be opened or recorded.
pub async fn prove_meter() -> Result<LimitProof, HostError> {
    let reached = Arc::new(AtomicU64::new(0));
    let provider = TcpListener::bind("127.0.0.1:0").await.map_err(HostError::Meter)?;
    let address = provider.local_addr().map_err(HostError::Meter)?;
    let served = serve(provider, Arc::clone(&reached));
    let proof = tokio::select! {
        () = served => unreachable!("the provider answers for ever"),
        proof = try_it(address, &reached) => proof,
    };
    proof
}

async fn try_it(provider: SocketAddr, reached: &AtomicU64) -> Result<LimitProof, HostError> {
    let key = Credential::new(KeySource::Text("the-key-of-the-probe".into()));
    let login = Login::Key(key, Scheme::ApiKey);
    let upstream =
        Upstream::new(&format!("http://{provider}"), login).expect("an address of this machine");
    let metered = Metered {
        upstreams: [(Provider::Anthropic, upstream)].into(),
        own_login: false,
        key_variable: None,
        plugin: None,
    };
    let usd = |text: &str| text.parse().expect("an amount");
    let prices = [("probe".to_owned(), ModelPrice::flat(Rates::of(usd("10"), usd("50"))))];
    let metering = Metering::of_probe(RUNTIME, metered, PriceTable::new(prices));
    let meter = TreeMeter::bind(&Arc::new(metering)).await.map_err(HostError::Meter)?;
    let config = Loader::new().flag("agents.defaults.subagents.budget.usd", BUDGET, "the probe");
    let config: Config = config.load().expect("the settings of a probe are within bounds");
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
    let agent = FnRuntime::new(RUNTIME, |launch, cx| async move {
        cx.host.started(None);
        let pass = launch.meter.expect("its runtime is metered");
        match ask_all(&pass).await {
            Ok((count, refusal)) => Finished::text(format!("{count} {refusal}")),
            Err(error) => {
                let message = format!("the meter cannot be asked: {error}");
                Finished::of(Reason::RuntimeError { message, retryable: false })
            }
        }
    });
    let issuer = Arc::new(meter.desk());
    let spawner = Spawner::builder().runtime(agent).metered([RUNTIME]).config(config).store(shared);
    let spawner = spawner.ticket_issuer(issuer).build()?;
    let run_spec = RunSpec { runtime: Some(RUNTIME.into()), ..RunSpec::in_folder("/") };
    let spec = RootSpec { run_spec, ..RootSpec::new("asks a model for more than it may") };
    let mut session = spawner.run(spec).await?;
    let _open = meter.open(session.agents());
    let envelope = session.answer().await?;
    let text = match &envelope.data {
        Some(Payload::Text(text)) => &**text,
        _ => "",
    };
    let (count, answer) = text.split_once(' ').unwrap_or(("0", ""));
    let events: Vec<Event> = store.all_events().collect::<Result<_, _>>()?;
    Ok(judge(count.parse().unwrap_or(0), answer, reached.load(Ordering::Relaxed), &events))
}

fn judge(told: u64, answer: &str, reached: u64, events: &[Event]) -> LimitProof {
    let budget: MicroUsd = BUDGET.parse().expect("an amount");
    let charged = |event: &Event| match &event.kind {
        EventKind::RequestSettled { cost, .. } => Some(cost.dollars()),
        _ => None,
    };
    let charged = events.iter().filter_map(charged).fold(MicroUsd::default(), |sum, one| sum + one);
    let breach = Audit::of(events).breaches.first().map(ToString::to_string);
    let broken = match () {
        () if charged > budget => Some(format!("{charged} usd were charged")),
        () if reached != told => {
            Some(format!("{reached} requests reached the provider, and {told} were answered"))
        }
        () if answer != "budget_exhausted" => {
            Some("more was asked for, and it was not refused for the budget".to_owned())
        }
        () if charged + MicroUsd::from_micros(EACH) <= budget => {
            Some("a request was refused that could be paid".to_owned())
        }
        () => breach.map(|breach| format!("the audit of its record: {breach}")),
    };
    let each = MicroUsd::from_micros(EACH);
    LimitProof {
        asked: format!("{REQUESTS} requests of {each} usd"),
        got: format!("{reached} requests, {charged} usd"),
        answer: Some(answer.to_owned()).filter(|answer| !answer.is_empty()),
        broken,
    }
}

/// Sends requests until one is refused. Returns the number of those that were answered, and the code of the refusal.
async fn ask_all(
    pass: &MeterPass,
) -> Result<(u64, String), Box<dyn std::error::Error + Send + Sync>> {
    let address = pass.address.trim_start_matches("http://");
    for count in 0..REQUESTS {
        let io = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        let request = Request::post("/v1/messages")
            .header("host", address)
            .header("x-api-key", &*pass.ticket)
            .body(Full::new(Bytes::from_static(BODY.as_bytes())))?;
        let answered = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>((status, body))
        };
        let (status, body) = tokio::select! {
            answered = answered => answered?,
            closed = connection => {
                closed?;
                return Err("the connection was closed without an answer".into());
            }
        };
        if status != StatusCode::OK {
            let text = String::from_utf8_lossy(&body).into_owned();
            let code = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            return Ok((count, code.map_or(text.clone(), |(code, _)| code.to_owned())));
        }
    }
    Ok((REQUESTS, String::new()))
}

/// Answers each request with the same use.
async fn serve(listener: TcpListener, reached: Arc<AtomicU64>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let reached = Arc::clone(&reached);
        connections.spawn(async move {
            let answer = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| {
                // A count of tokens costs nothing.
                let costs = request.uri().path() == "/v1/messages";
                reached.fetch_add(u64::from(costs), Ordering::Relaxed);
                let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
                let json = hyper::header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let io = TokioIo::new(stream);
            // A connection that breaks off is seen by the one that asked.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_meter_holds() {
        let proof = prove_meter().await.expect("a loopback interface");
        assert_eq!(proof.broken, None, "{proof:?}");
        assert_eq!(proof.answer.as_deref(), Some("budget_exhausted"));
    }

    #[test]
    fn a_meter_that_does_not_hold_is_named() {
        let broken = |told, answer: &str, reached| judge(told, answer, reached, &[]).broken;
        assert!(
            broken(3, "budget_exhausted", 4)
                .is_some_and(|why| why.contains("reached the provider"))
        );
        assert!(broken(REQUESTS, "", REQUESTS).is_some_and(|why| why.contains("not refused")));
        assert!(broken(3, "budget_exhausted", 3).is_some_and(|why| why.contains("could be paid")));
    }
}
