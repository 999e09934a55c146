//! One request, from its head to its answer.
//!
//! ```text
//!  route ─▶ ticket ─▶ whose connection ─▶ body ─▶ request ─▶ bound ─▶ owner ─▶ provider ─▶ relay
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};
use offshoot_model::RunId;
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::body::{Taken, drain, take};
use crate::ask::{Ask, Refused, RequestId, Seen, Verdict};
use crate::bound::{Bound, LEAST_OUTPUT_TOKENS, OUTPUT_TOKENS};
use crate::caller::{Ends, belongs, is_of_plugin};
use crate::credential::{CredentialError, KEY_HEADERS};
use crate::known::Known;
use crate::protocol::{Protocol, Provider, Route};
use crate::reader::Reader;
use crate::refusal::{Code, Refusal, RefusalResponse, unreachable};
use crate::relay::{Metered, Relay};
use crate::request::{CountQuestion, Request as Asked, counted_tokens, pieces};
use crate::reservation::{Lesson, Reservation};
use crate::runs::{Entry, Terms};
use crate::settle::Ending;
use crate::upstream::{Login, Pieces, Upstream, outgoing, query_value, without_connection};
use crate::usage::Report;
use crate::window::WindowState;

/// An answer: ours, or that of a provider as it comes.
pub(super) type Out = Either<Full<Bytes>, Relay>;

/// A connection. Its other end is looked for once for each run that it says it is.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    ends: Ends,
    belongs: Mutex<HashMap<RunId, bool>>,
    /// The end of the run whose request it has carried last, once that is known.
    ended: Mutex<Option<CancellationToken>>,
    learned: Notify,
}

/// A request without a provider's answer.
enum No {
    Refused(Refusal),
    /// The address of the provider, and why it cannot be reached.
    Unreachable(String),
}

impl No {
    fn unreachable(way: &Way<'_>, error: SendError) -> Self {
        Self::Unreachable(format!("{}: {}", way.upstream.origin(), error.text()))
    }
}

/// The caller of a request.
struct Caller {
    run: RunId,
    entry: Entry,
    /// True if the ticket stands where a key would.
    in_header: bool,
}

/// The head of a request as it will leave.
#[derive(Clone)]
struct Way<'w> {
    upstream: &'w Upstream,
    provider: Provider,
    headers: HeaderMap,
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, ends: Ends) -> Self {
        let (belongs, ended, learned) = (Mutex::default(), Mutex::default(), Notify::new());
        Self { shared, ends, belongs, ended, learned }
    }

    /// Waits until the run is over whose request it has carried last, as a plugin sends those of several runs; for ever where there is none.
    pub(super) async fn run_ended(&self) {
        loop {
            let ended = self.ended.lock().clone();
            let over = async {
                match &ended {
                    Some(ended) => ended.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.learned.notified() => {}
                () = over => return,
            }
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Out> {
        let (head, body) = request.into_parts();
        let upgrades = head.headers.contains_key(header::UPGRADE);
        let (ticket, path) = split(head.uri.path());
        let route = Route::of(head.method.as_str(), path, upgrades);
        let protocol = match &route {
            Route::Metered { protocol, .. } => Some(*protocol),
            Route::Hello => return ours(StatusCode::OK, "text/plain", ""),
            Route::Upgrade => {
                let text = "this server speaks plain HTTP";
                return ours(StatusCode::UPGRADE_REQUIRED, "text/plain", text);
            }
            Route::Free(_) | Route::Unknown => None,
        };
        let no = match self.try_answer(&head, path, ticket, route, body).await {
            Ok(response) => return response,
            Err(no) => no,
        };
        let RefusalResponse { status, content_type, body } = match no {
            No::Refused(refusal) => {
                tracing::debug!(code = refusal.code, "a request is refused");
                refusal.response(protocol)
            }
            No::Unreachable(message) => {
                tracing::debug!(message, "a provider cannot be reached");
                unreachable(protocol, &message)
            }
        };
        let status = StatusCode::from_u16(status).expect("it is one of ours");
        let mut response = ours(status, content_type, body);
        if status != StatusCode::BAD_GATEWAY {
            // Two families of programs heed it, whatever the status.
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }

    async fn try_answer(
        &self,
        head: &request::Parts,
        path: &str,
        ticket: Option<&str>,
        route: Route,
        body: Incoming,
    ) -> Result<Response<Out>, No> {
        let caller = match self.caller(head, ticket).await {
            Ok(caller) => caller,
            Err(refusal) => {
                // To its end, or the program would hear that its connection broke.
                drain(body, self.shared.body_bytes).await;
                return Err(refusal.into());
            }
        };
        let answered = self.answer_caller(&caller, head, path, route, body).await;
        if let Err(No::Refused(refusal)) = &answered {
            let refused = Refused { run: caller.run, refusal: refusal.clone() };
            // Without an owner nothing is on record any more.
            let _ = self.shared.asks.send(Ask::Refused(refused));
        }
        answered
    }

    async fn answer_caller(
        &self,
        caller: &Caller,
        head: &request::Parts,
        path: &str,
        route: Route,
        body: Incoming,
    ) -> Result<Response<Out>, No> {
        let provider = match &route {
            Route::Metered { protocol, .. } => protocol.provider(),
            Route::Free(Some(provider)) => *provider,
            Route::Free(None) if head.headers.contains_key("anthropic-version") => {
                Provider::Anthropic
            }
            Route::Free(None) => Provider::OpenAi,
            Route::Hello | Route::Upgrade | Route::Unknown => {
                drain(body, self.shared.body_bytes).await;
                let message = "what it asks for has no cost that could be reserved";
                let hint = "use messages, responses, chat completions or Gemini's generateContent; \
                            batches, images and embeddings do not pass";
                return Err(Refusal::new(Code::UnmeteredRequest, message, hint).into());
            }
        };
        let taken = take(body, &head.headers, self.shared.body_bytes).await?;
        let terms = Arc::clone(&caller.entry.terms);
        let way = way(&terms, provider, caller, &head.headers).await?;
        let address = way.upstream.address(provider, path, head.uri.query());
        match route {
            Route::Metered { protocol, model, streams } => {
                let mut asked = Asked::read(protocol, model.as_deref(), streams, &taken.plain)
                    .map_err(|error| {
                        let hint =
                            "the program sends something that no provider reads in one way only";
                        Refusal::new(Code::MalformedRequest, error.to_string(), hint)
                    })?;
                let mut betas = head.headers.get_all("anthropic-beta").iter();
                asked.is_long = betas
                    .any(|names| names.to_str().is_ok_and(|names| names.contains("context-1m")));
                self.metered(caller, way, address, asked, taken).await
            }
            _ => {
                let sent = self.send(&way, head.method.clone(), address, vec![taken.sent]).await;
                let response = sent.map_err(|error| No::unreachable(&way, error))?;
                self.note(caller, &way, &response);
                Ok(passed(response.map(|body| Either::Right(Relay::new(body, None)))))
            }
        }
    }

    /// Returns the caller: the run of the ticket, if one of its processes holds the connection.
    async fn caller(&self, head: &request::Parts, ticket: Option<&str>) -> Result<Caller, Refusal> {
        let unknown = |message: &str| {
            let hint = "only the processes of a running agent may use this address, with the ticket that they were given";
            Refusal::new(Code::UnknownCaller, message, hint)
        };
        let runs = &self.shared.runs;
        let in_path = ticket.and_then(|ticket| runs.owner(ticket));
        let in_header = in_path.is_none();
        let found = in_path.or_else(|| shown(head).find_map(|text| runs.owner(&text)));
        let (run, entry) =
            found.ok_or_else(|| unknown("its ticket is that of no running agent"))?;
        let known = self.belongs.lock().get(&run).copied();
        let belongs = match known {
            Some(belongs) => belongs,
            None => {
                // A plugin may ask before it reports a start, and beside a program that it has reported.
                let of_plugin = match entry.terms.plugin.clone() {
                    Some(plugin) => is_of_plugin(self.ends, plugin).await,
                    None => false,
                };
                let found = of_plugin || {
                    let start = runs.start_of(run).await;
                    let ended = || unknown("the agent of its ticket has ended");
                    belongs(self.ends, start.ok_or_else(ended)?).await
                };
                self.belongs.lock().insert(run, found);
                found
            }
        };
        if belongs {
            *self.ended.lock() = Some(entry.ended.clone());
            self.learned.notify_one();
        }
        if !belongs {
            return Err(unknown(
                "the process that sent it does not belong to the agent of its ticket",
            ));
        }
        Ok(Caller { run, entry, in_header })
    }

    async fn metered(
        &self,
        caller: &Caller,
        mut way: Way<'_>,
        address: Url,
        asked: Asked,
        taken: Taken,
    ) -> Result<Response<Out>, No> {
        let shared = &self.shared;
        let terms = &caller.entry.terms;
        let price = shared.prices.find(&asked.model);
        let written = terms
            .output_limit
            .or(price.and_then(|price| price.max_output))
            .unwrap_or(OUTPUT_TOKENS);
        let most = price.and_then(|price| price.max_output).unwrap_or(written);
        // Where no limit can be written, the model itself is the limit.
        let limit = asked.limit.unwrap_or(if way.upstream.takes_limit { written } else { most });
        // A limit that the request names is its own, and none where none can be written.
        let is_ours = asked.limit.is_none() && way.upstream.takes_limit;
        let least = if is_ours && terms.shortens { limit.min(LEAST_OUTPUT_TOKENS) } else { limit };
        let bound = Bound::of(&asked, &caller.entry.known.lock(), price, limit);
        allowed(terms, &asked, &bound)?;
        let known = Arc::clone(&caller.entry.known);
        let teaches = asked.server_tools.is_empty() && !asked.is_trimmed;
        let lesson = teaches.then(|| Lesson { known, parts: asked.parts.clone() });
        let mut reservation = Reservation {
            asks: shared.asks.clone(),
            prices: Arc::clone(&shared.prices),
            run: caller.run,
            request: RequestId(shared.next.fetch_add(1, Ordering::Relaxed)),
            protocol: asked.protocol,
            model: asked.model.clone(),
            bound,
            is_open: false,
            ending: Ending::NotSent,
            report: Report::default(),
            shortened: None,
            lesson,
            _open: caller.entry.open.token(),
        };
        let known = &caller.entry.known;
        let limits = (limit, least);
        let limit = self.reserve(&mut reservation, &way, &asked, &taken, known, limits).await?;

        let edits = asked
            .edits(way.upstream.takes_limit.then_some(limit), way.upstream.chat_limit.as_ref());
        // Unchanged it leaves as it came, packed or not.
        let body = if edits.is_empty() {
            vec![taken.sent]
        } else {
            way.headers.remove(header::CONTENT_ENCODING);
            pieces(&taken.plain, &edits)
        };
        drop(taken.plain);
        // From here on nothing but the provider knows what it costs.
        reservation.ending = Ending::Broken;
        let response = match self.send(&way, Method::POST, address, body).await {
            Ok(response) => response,
            Err(error) => {
                if error.never_left() {
                    reservation.ending = Ending::NotSent;
                }
                return Err(No::unreachable(&way, error));
            }
        };
        self.note(caller, &way, &response);
        // After a time limit of what stands before the provider, the answer may have been made for a connection that was gone.
        let may_cost = matches!(response.status().as_u16(), 408 | 504 | 524);
        if !response.status().is_success() && !may_cost {
            reservation.ending = Ending::Declined(response.status().as_u16());
        }
        let text =
            |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let encoded = text(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
        let reader = Reader::new(asked.protocol, content_type, encoded, asked.asks_for_usage());
        let keeps_length = reader.keeps_length();
        let metered = Metered { reader, reservation, streams: asked.streams };
        let mut response = response.map(|body| Either::Right(Relay::new(body, Some(metered))));
        if !keeps_length {
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        Ok(passed(response))
    }

    /// Waits for the reservation. Returns the limit of the answer: where the request is too much, half of it is asked for, down to `least`.
    async fn reserve(
        &self,
        reservation: &mut Reservation,
        way: &Way<'_>,
        asked: &Asked,
        taken: &Taken,
        known: &Mutex<Known>,
        (mut limit, least): (u64, u64),
    ) -> Result<u64, No> {
        let price = self.shared.prices.find(&asked.model);
        let whole = limit;
        let Shared { hold, hold_gemini, .. } = &*self.shared;
        let hold = if asked.protocol == Protocol::Gemini { *hold_gemini } else { *hold };
        let until = tokio::time::Instant::now() + hold;
        let mut counted = None;
        let mut countable = asked.count_question(&taken.plain);
        loop {
            let is_last = countable.is_none() && limit <= least;
            let asked_for = reservation.ask(is_last, limit < whole);
            let Ok(verdict) = tokio::time::timeout_at(until, asked_for).await else {
                let message = format!("there was no room for it within {} seconds", hold.as_secs());
                let hint = "start it again when other agents have ended, or give a larger budget";
                return Err(Refusal::new(Code::HeldTooLong, message, hint).into());
            };
            let refusal = match verdict {
                Some(Verdict::Granted) => return Ok(limit),
                Some(Verdict::Refused(refusal)) => return Err(refusal.into()),
                Some(Verdict::TooMuch(refusal)) => refusal,
                None => {
                    let message = "the tree of its agent has ended";
                    return Err(Refusal::new(Code::TreeEnded, message, "start a new one").into());
                }
            };
            // Its bytes are too many; the provider may know that its tokens are not.
            let Some(question) = countable.take() else {
                if is_last {
                    return Err(refusal.into());
                }
                limit = (limit / 2).max(least);
                reservation.shortened = Some(limit);
                reservation.bound = match counted {
                    Some(tokens) => Bound::counted(asked, tokens, price, limit),
                    None => Bound::of(asked, &known.lock(), price, limit),
                };
                continue;
            };
            let count = self.count(way, asked.protocol, question);
            let Ok(Some(tokens)) = tokio::time::timeout_at(until, count).await else {
                continue;
            };
            tracing::debug!(
                request = reservation.request.0,
                tokens,
                "a provider has counted a request"
            );
            let bound = Bound::counted(asked, tokens, price, limit);
            if bound.tokens() < reservation.bound.tokens() {
                counted = Some(tokens);
                reservation.bound = bound;
            }
        }
    }

    /// Asks the provider for the number of tokens, which costs nothing.
    async fn count(
        &self,
        way: &Way<'_>,
        protocol: Protocol,
        question: CountQuestion,
    ) -> Option<u64> {
        let address = way.upstream.address(way.provider, &question.path, None);
        let mut way = way.clone();
        way.headers.remove(header::CONTENT_ENCODING);
        let response = self.send(&way, Method::POST, address, question.body).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let answer =
            http_body_util::Limited::new(response.into_body(), 64 * 1024).collect().await.ok()?;
        counted_tokens(protocol, &answer.to_bytes())
    }

    async fn send(
        &self,
        way: &Way<'_>,
        method: Method,
        address: Url,
        body: Vec<Bytes>,
    ) -> Result<Response<reqwest::Body>, SendError> {
        let client = self.shared.clients.client(&address).map_err(SendError::Client)?;
        let is_empty = body.iter().all(Bytes::is_empty);
        let mut request = client.request(method, address).headers(way.headers.clone());
        if !is_empty {
            request = request.body(reqwest::Body::wrap(Pieces::new(body)));
        }
        let response = request.send().await.map_err(SendError::Sent)?;
        if let (401 | 403, Login::Key(credential, _)) =
            (response.status().as_u16(), &way.upstream.login)
        {
            credential.refused();
        }
        Ok(response.into())
    }

    /// Tells the owner what the head of an answer says of limits.
    fn note(&self, caller: &Caller, way: &Way<'_>, response: &Response<reqwest::Body>) {
        let headers = response.headers().iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let state = WindowState::of(response.status().as_u16(), headers);
        if !state.is_empty() {
            let seen = Seen { run: caller.run, provider: way.provider, state };
            // Without an owner nothing is decided by it.
            let _ = self.shared.asks.send(Ask::Seen(seen));
        }
    }
}

/// The failure of a request on its way.
enum SendError {
    /// No client could be made.
    Client(String),
    Sent(reqwest::Error),
}

impl SendError {
    /// True if the provider has seen nothing of the request.
    fn never_left(&self) -> bool {
        match self {
            Self::Client(_) => true,
            Self::Sent(error) => error.is_connect() || error.is_builder(),
        }
    }

    /// The fault and its causes, without the whole address, which may have a key in it.
    fn text(self) -> String {
        let error = match self {
            Self::Client(message) => return message,
            Self::Sent(error) => error.without_url(),
        };
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

/// The rules of a run that need no owner.
fn allowed(terms: &Terms, asked: &Asked, bound: &Bound) -> Result<(), Refusal> {
    if !terms.dollars {
        return Ok(());
    }
    if let Some(tool) = asked.server_tools.first().filter(|_| !terms.allow_server_tools) {
        let message =
            format!("the provider would run the tool {}, which costs more than tokens", tool.kind);
        let hint = "switch the tool off, or allow it in the configuration";
        return Err(Refusal::new(Code::ServerTool, message, hint));
    }
    match &bound.cost {
        crate::bound::BoundCost::Unpriced(why) if !terms.allow_unknown_cost => {
            let message = format!(
                "there is a budget in dollars, and the cost of this request has no bound: {why}"
            );
            let hint = "give the model a price under `prices`, or set budget.allowUnknownCost";
            Err(Refusal::new(Code::CostUnbounded, message, hint))
        }
        _ => Ok(()),
    }
}

async fn way<'w>(
    terms: &'w Terms,
    provider: Provider,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Way<'w>, Refusal> {
    let upstream = terms.upstreams.get(&provider).ok_or_else(|| {
        let message = format!("this agent has no provider for requests to {provider}");
        Refusal::new(Code::NoProvider, message, "use the provider of the agent's runtime")
    })?;
    let key = match &upstream.login {
        Login::Program if caller.in_header => {
            let message = "it shows a ticket where the program's own login should stand";
            let hint = "log the program in, or configure a key";
            return Err(Refusal::new(Code::NoKey, message, hint));
        }
        Login::Program => None,
        Login::Key(credential, scheme) => {
            let hint = "see where the configuration looks for the key";
            let no_key =
                |error: CredentialError| Refusal::new(Code::NoKey, error.to_string(), hint);
            Some(credential.header(*scheme).await.map_err(no_key)?)
        }
    };
    Ok(Way { upstream, provider, headers: outgoing(headers.clone(), key) })
}

/// The ticket in a path, and the rest.
fn split(path: &str) -> (Option<&str>, &str) {
    let Some(rest) = path.strip_prefix("/r/") else { return (None, path) };
    match rest.find('/') {
        Some(at) => (Some(&rest[..at]), &rest[at..]),
        None => (Some(rest), ""),
    }
}

/// Returns the texts that stand where a key would stand.
fn shown(head: &request::Parts) -> impl Iterator<Item = String> {
    let in_headers = KEY_HEADERS.into_iter().filter_map(|name| {
        let text = head.headers.get(name)?.to_str().ok()?;
        let bearer = text.get(..7).filter(|word| word.eq_ignore_ascii_case("bearer "));
        Some(bearer.map_or(text, |_| &text[7..]).trim().to_owned())
    });
    let in_query = head.uri.query().and_then(|query| query_value(query, &["key"]));
    in_headers.chain(in_query)
}

fn ours(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Out> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A provider's answer without what spoke of its connection.
fn passed(mut response: Response<Out>) -> Response<Out> {
    *response.version_mut() = hyper::Version::HTTP_11;
    without_connection(response.headers_mut());
    response
}
