//! The service as it is reached: one call, one stream of chunks.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use offshoot_runtime::MeterPass;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, NoProxy, Proxy, redirect};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use serde_json::Value;
use tokio::time::timeout;

use crate::OpenAiOptions;
use crate::chunk::{self, Chunk, ServiceError, beginning};
use crate::endpoint::{Endpoint, EndpointError, Key};
use crate::failure::Failure;
use crate::retry;
use crate::sse::Events;

/// A service that can be called.
#[derive(Clone)]
pub(crate) struct Service {
    client: Client,
    endpoint: Endpoint,
    key: Option<Key>,
    silence: Option<Duration>,
    /// True if the endpoint is the meter, which passes on what the service behind it sends.
    is_metered: bool,
}

/// One answer, as it comes.
pub(crate) struct Answer<'s> {
    service: &'s Service,
    response: reqwest::Response,
    /// None once the answer is over.
    events: Option<Events>,
    ready: VecDeque<String>,
    /// True if the answer comes as events; otherwise it is one value.
    streams: bool,
    /// Of what does not call itself a stream and has no event so far: its beginning.
    strange: Option<Vec<u8>>,
}

/// Of a body that explains a refusal, this much is read.
const EXPLANATION: usize = 64 * 1024;

/// Of a body that is one value, this much is read.
const WHOLE: usize = 64 * 1024 * 1024;

impl Service {
    pub(crate) fn new(
        options: &OpenAiOptions,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::of(options)?;
        let key = Key::find(options, environment)?;
        let cannot =
            |error: &dyn std::error::Error| EndpointError::Client { message: error.to_string() };
        let tls = tls(&endpoint, options)?;
        let mut client = Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(Duration::from_secs(options.connect_seconds.max(1)))
            // A redirection would take the conversation somewhere else than where it was meant to go.
            .redirect(redirect::Policy::none())
            // The proxy comes from the environment that was handed in, not from that of this process.
            .no_proxy();
        if let Some(proxy) = proxy(&endpoint, environment) {
            client = client.proxy(proxy.map_err(|error| cannot(&error))?);
        }
        let client = client.build().map_err(|error| cannot(&error))?;
        let silence = Duration::from_secs(options.silence_seconds);
        let silence = Some(silence).filter(|silence| !silence.is_zero());
        Ok(Self { client, endpoint, key, silence, is_metered: false })
    }

    /// The same service through the meter: with a ticket in place of the key.
    pub(crate) fn metered(
        options: &OpenAiOptions,
        meter: &MeterPass,
    ) -> Result<Self, EndpointError> {
        let base_url = meter.openai_base();
        let options = OpenAiOptions { base_url, certificates: None, ..options.clone() };
        let key_variable = (!meter.own_login).then(|| "OPENAI_API_KEY".to_owned());
        let environment = meter.variables(None);
        let service = Self::new(&OpenAiOptions { key_variable, ..options }, &environment)?;
        Ok(Self { is_metered: true, ..service })
    }

    /// Sends a request. Answers as soon as an answer begins.
    pub(crate) async fn call(&self, request: Vec<u8>) -> Result<Answer<'_>, Failure> {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.header.clone());
        }
        let sent =
            self.client.post(self.endpoint.chat.clone()).headers(headers).body(request).send();
        let response = self.in_time(sent).await?.map_err(|source| self.not_sent(source))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is = |what: &str| kind.is_some_and(|kind| kind.starts_with(what));
        let streams = !is("application/json");
        let strange = (!is("text/event-stream")).then(Vec::new);
        let events = Some(Events::default());
        Ok(Answer { service: self, response, events, ready: VecDeque::new(), streams, strange })
    }

    /// The key, to be struck out of what is recorded.
    pub(crate) fn secret(&self) -> Option<String> {
        self.key.as_ref().map(|key| key.text.clone())
    }

    /// The address, for messages.
    pub(crate) fn address(&self) -> String {
        let chat = &self.endpoint.chat;
        format!("{}://{}", chat.scheme(), chat.authority())
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        match self.silence {
            None => Ok(work.await),
            Some(after) => timeout(after, work).await.map_err(|_| Failure::Silent { after }),
        }
    }

    fn not_sent(&self, source: reqwest::Error) -> Failure {
        let source = source.without_url();
        if source.is_connect() {
            return Failure::Unreachable { endpoint: self.address(), source };
        }
        Failure::Cut { source: Some(source) }
    }

    async fn refusal(&self, mut response: reqwest::Response) -> Failure {
        let status = response.status();
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let after = retry::after(header);
        let mut body = Vec::new();
        // The bytes up to the end, or to an error of reading, are explanation enough.
        while let Ok(Ok(Some(bytes))) = self.in_time(response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > EXPLANATION {
                break;
            }
        }
        let text = String::from_utf8_lossy(&body);
        let said = serde_json::from_str::<Value>(&text).ok();
        let mut error = said.and_then(|said| ServiceError::of(&said)).unwrap_or_else(|| {
            let text = beginning(&text);
            let reason = || status.canonical_reason().unwrap_or("nothing").to_owned();
            let message = if text.is_empty() { reason() } else { text };
            ServiceError { message, ..ServiceError::default() }
        });
        error.message = self.redact(&error.message);
        Failure::Refused { status: status.as_u16(), error, after }
    }

    fn redact(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }
}

impl Answer<'_> {
    /// The next chunk; none where the answer is over without having said so.
    pub(crate) async fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        loop {
            if let Some(data) = self.ready.pop_front() {
                return self.read(&data, false);
            }
            let Some(events) = &mut self.events else { return Ok(None) };
            let bytes = self.service.in_time(self.response.chunk()).await?;
            match bytes.map_err(|source| Failure::Cut { source: Some(source.without_url()) })? {
                Some(bytes) if self.streams => {
                    self.ready.extend(events.feed(&bytes)?);
                    match &mut self.strange {
                        Some(begun) if self.ready.is_empty() && begun.len() < EXPLANATION => {
                            begun.extend_from_slice(&bytes);
                        }
                        _ => self.strange = None,
                    }
                }
                Some(bytes) => {
                    let mut body = bytes.to_vec();
                    self.events = None;
                    self.rest_of(&mut body).await?;
                    return self.read(&String::from_utf8_lossy(&body), false);
                }
                None => {
                    let rest = self.events.take().and_then(Events::finish);
                    return match (rest, &self.strange) {
                        (Some(rest), _) => self.read(&rest, true),
                        (None, Some(begun)) => {
                            Err(self.garbage(&beginning(&String::from_utf8_lossy(begun))))
                        }
                        (None, None) => Ok(None),
                    };
                }
            }
        }
    }

    async fn rest_of(&mut self, body: &mut Vec<u8>) -> Result<(), Failure> {
        loop {
            let bytes = self.service.in_time(self.response.chunk()).await?;
            match bytes.map_err(|source| Failure::Cut { source: Some(source.without_url()) })? {
                Some(_) if body.len() > WHOLE => return Err(Failure::TooLong),
                Some(bytes) => body.extend_from_slice(&bytes),
                None => return Ok(()),
            }
        }
    }

    fn garbage(&self, beginning: &str) -> Failure {
        let beginning = self.service.redact(beginning);
        let endpoint = match self.service.is_metered {
            true => "the service behind the meter".to_owned(),
            false => self.service.address(),
        };
        Failure::Garbage { endpoint, beginning }
    }

    /// `cut` is whether the stream may have ended in the middle of it.
    fn read(&self, data: &str, cut: bool) -> Result<Option<Chunk>, Failure> {
        match chunk::parse(data) {
            Chunk::Garbage(_) if cut => Err(Failure::Cut { source: None }),
            Chunk::Garbage(beginning) => Err(self.garbage(&beginning)),
            Chunk::Error(mut error) => {
                error.message = self.service.redact(&error.message);
                Err(Failure::GaveUp { error })
            }
            chunk => Ok(Some(chunk)),
        }
    }
}

/// TLS on ring, with the certificates of the system and of the options, where any could be needed.
fn tls(endpoint: &Endpoint, options: &OpenAiOptions) -> Result<ClientConfig, EndpointError> {
    let provider = Arc::new(ring::default_provider());
    let cannot = |error: rustls::Error| EndpointError::Client { message: error.to_string() };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(cannot)?;
    if endpoint.chat.scheme() == "http" {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let more = match &options.certificates {
        None => Vec::new(),
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            read.map_err(|error| EndpointError::Certificates {
                path: path.clone(),
                message: error.to_string(),
            })?
        }
    };
    let verifier = match more.is_empty() {
        true => Verifier::new(provider),
        false => Verifier::new_with_extra_roots(more, provider),
    };
    let verifier = Arc::new(verifier.map_err(cannot)?);
    // Not its own: that of the system, which takes further certificates only where it is named.
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

/// The proxy that the environment names; what is on this machine needs none.
fn proxy(
    endpoint: &Endpoint,
    environment: &[(OsString, OsString)],
) -> Option<reqwest::Result<Proxy>> {
    if endpoint.loopback {
        return None;
    }
    let variable = |name: &str| {
        let upper = name.to_uppercase();
        let found = environment.iter().rfind(|(known, _)| *known == *name || *known == *upper);
        found.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty())
    };
    let url =
        variable(&format!("{}_proxy", endpoint.chat.scheme())).or_else(|| variable("all_proxy"))?;
    let not_for = variable("no_proxy").and_then(NoProxy::from_string);
    Some(Proxy::all(url).map(|proxy| proxy.no_proxy(not_for)))
}
