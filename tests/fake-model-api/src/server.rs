//! HTTP on loopback: connections in, parts out.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, StatusCode, server::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::ApiError;
use crate::api::State;
use crate::wire::{self, Part, Response};

/// Bodies beyond this are refused. Prompts with their files are far below.
const BODY_BYTES: usize = 64 * 1024 * 1024;

/// Further connections wait to be accepted. A client holds a few.
const CONNECTIONS: usize = 512;

type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

/// Serves until it is told to end, or the sender of that order is gone.
pub(crate) fn run(listener: TcpListener, state: Arc<State>, mut ended: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a thread of its own has room for a reactor");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a new socket takes the flag");
        let listener =
            tokio::net::TcpListener::from_std(listener).expect("the reactor takes a socket");
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let accept = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, permit)
            };
            tokio::select! {
                biased;
                _ = &mut ended => break,
                Some(_) = connections.join_next() => {}
                (accepted, permit) = accept => {
                    // A connection that is gone before it is accepted is the client's affair.
                    let Ok((stream, _)) = accepted else { continue };
                    let state = Arc::clone(&state);
                    connections.spawn(async move {
                        let _permit = permit;
                        let service = service_fn(|request| respond(Arc::clone(&state), request));
                        // How a connection ends is known to the client; the server has nothing to add.
                        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            }
        }
    });
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<hyper::Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let header = |name: HeaderName| {
        head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let keys = [header(AUTHORIZATION), header(HeaderName::from_static("x-api-key"))];
    let response = match Limited::new(body, BODY_BYTES).collect().await {
        Ok(body) => {
            let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
            state.answer(head.method.as_str(), path, keys, body)
        }
        Err(error) => wire::error(&ApiError::new(413, "request_too_large", error.to_string())),
    };
    Ok(respond_with(response, &state).await)
}

async fn respond_with(response: Response, state: &State) -> hyper::Response<Body> {
    let Response { status, content_type, retry_after, quota_resets_in, quota_used, parts } =
        response;
    if parts.first() == Some(&Part::Silence) {
        // Not even a status. Ends when the client or the service does.
        std::future::pending::<()>().await;
    }
    let frames = stream::iter(parts).then(frame).filter_map(std::future::ready);
    let mut response = hyper::Response::new(StreamBody::new(frames.boxed()));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(seconds) = quota_resets_in {
        tell_quota(response.headers_mut(), ("rejected", 100), state.reset(seconds));
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    if let Some((percent, seconds)) = quota_used {
        let reset = state.reset(seconds);
        tell_quota(response.headers_mut(), ("allowed_warning", percent), reset);
    }
    response
}

/// Tells in the headers of a subscription how much of its five hours is used, and when they begin anew.
fn tell_quota(headers: &mut HeaderMap, (status, percent): (&'static str, u8), reset: u64) {
    let reset = HeaderValue::from(reset);
    let utilization = format!("{}.{:02}", percent / 100, percent % 100);
    let utilization = HeaderValue::try_from(utilization).expect("digits");
    for (name, value) in [
        ("status", HeaderValue::from_static(status)),
        ("reset", reset.clone()),
        ("representative-claim", HeaderValue::from_static("five_hour")),
        ("5h-status", HeaderValue::from_static(status)),
        ("5h-utilization", utilization),
        ("5h-reset", reset),
    ] {
        let name = format!("anthropic-ratelimit-unified-{name}");
        headers.insert(HeaderName::try_from(name).expect("a name"), value);
    }
}

async fn frame(part: Part) -> Option<io::Result<Frame<Bytes>>> {
    match part {
        Part::Bytes(text) => Some(Ok(Frame::data(Bytes::from(text)))),
        Part::Piece(bytes) => Some(Ok(Frame::data(Bytes::from(bytes)))),
        Part::Pause(length) => {
            #[expect(clippy::disallowed_methods, reason = "being slow is what was asked for")]
            tokio::time::sleep(length).await;
            None
        }
        Part::Silence => std::future::pending().await,
        Part::Cut => Some(Err(io::Error::other("the rule says that the stream breaks here"))),
    }
}
