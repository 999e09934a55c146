//! The provider behind the meter: its address, the way to it, and what is sent there.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, NoProxy, Proxy, Url, redirect};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use crate::credential::{Credential, KEY_HEADERS, Scheme};
use crate::protocol::Provider;

/// The provider to which the requests of a run go.
#[derive(Clone, Debug)]
pub struct Upstream {
    base: Url,
    /// The login by which requests are known to the provider.
    pub login: Login,
    /// The key under which a chat is given a limit.
    pub chat_limit: ChatLimit,
    /// False where the provider refuses requests with a limit, as it does under a ChatGPT login. Then the most that the model writes is
    /// reserved.
    pub takes_limit: bool,
}

/// As whom a request is known to the provider.
#[derive(Clone, Debug)]
pub enum Login {
    /// As the operator: the key is put in on the way out, and whatever the program shows is removed.
    Key(Credential, Scheme),
    /// As the program says, by a login of its own, such as that of a subscription. Its headers pass unchanged, and its ticket stands in the
    /// path.
    Program,
}

/// The key that limits the answer of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum ChatLimit {
    /// `max_tokens`, which all know but the newest models of OpenAI.
    MaxTokens,
    /// The key `max_completion_tokens`.
    MaxCompletionTokens,
}

/// An address that is no provider's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is not the address of a provider: {message}")]
pub struct AddressError {
    /// As it was given.
    pub url: String,
    /// The fault.
    pub message: String,
}

/// The way to providers.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The proxy for what is not on this machine.
    pub proxy: Option<String>,
    /// Names that need no proxy, with commas between.
    pub no_proxy: Option<String>,
    /// A file of further certificates, in PEM.
    pub certificates: Option<PathBuf>,
}

/// The clients, which are made when they are first needed: certificates take milliseconds to read.
#[derive(Debug)]
pub(crate) struct Clients {
    options: ClientOptions,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

/// A request fails where no connection comes about in this time, and is worth to be tried again.
const CONNECT: Duration = Duration::from_secs(30);

impl Upstream {
    /// A provider at this address, which programs would be given as their base URL; of OpenAI's it ends with `/v1`.
    pub fn new(base: &str, login: Login) -> Result<Self, AddressError> {
        let wrong = |message: String| AddressError { url: base.to_owned(), message };
        let parsed = Url::parse(base).map_err(|error| wrong(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!("it begins with {}:", parsed.scheme())));
        }
        let host = parsed.host_str().ok_or_else(|| wrong("it has no host".to_owned()))?;
        if parsed.scheme() == "http" && !is_loopback(host) {
            return Err(wrong("it is beyond this machine and not encrypted".to_owned()));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("it holds a name or a password".to_owned()));
        }
        let is_openai =
            host == "openai.com" || host.ends_with(".openai.com") || host.ends_with(".azure.com");
        let chat_limit =
            if is_openai { ChatLimit::MaxCompletionTokens } else { ChatLimit::MaxTokens };
        Ok(Self { base: parsed, login, chat_limit, takes_limit: true })
    }

    /// The address without a path, and without a name or key that it may have.
    pub(crate) fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// The address of a request, by its path and query here.
    pub(crate) fn address(&self, provider: Provider, path: &str, query: Option<&str>) -> Url {
        let path = match provider {
            // The base says the version, as programs are given it.
            Provider::OpenAi => path.strip_prefix("/v1").unwrap_or(path),
            Provider::Anthropic | Provider::Gemini => path,
        };
        let mut address = self.base.clone();
        address.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        let query = query.map(|query| match self.login {
            Login::Key(..) => without_key(query),
            Login::Program => query.to_owned(),
        });
        address.set_query(query.as_deref().filter(|query| !query.is_empty()));
        address
    }
}

/// The query without the key that Gemini's programs may put there.
fn without_key(query: &str) -> String {
    let is_key = |part: &&str| query_value(part, &["key", "api_key", "access_token"]).is_some();
    query.split('&').filter(|part| !is_key(part)).collect::<Vec<_>>().join("&")
}

/// The value of the first of these names in a query, however their letters are written.
pub(crate) fn query_value(query: &str, names: &[&str]) -> Option<String> {
    let address = Url::parse(&format!("query:?{query}")).ok()?;
    let mut pairs = address.query_pairs();
    pairs.find(|(name, _)| names.contains(&&**name)).map(|(_, value)| value.into_owned())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Headers that speak of one connection and not of the request.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
];

/// Removes what speaks of one connection, also what `connection` names.
pub(crate) fn without_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

/// The headers of a request on its way out. `key` is the operator's.
pub(crate) fn outgoing(
    mut headers: HeaderMap,
    key: Option<(HeaderName, HeaderValue)>,
) -> HeaderMap {
    without_connection(&mut headers);
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::ACCEPT_ENCODING] {
        headers.remove(name);
    }
    // What is read beside the stream has to be readable.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some((name, value)) = key {
        for name in KEY_HEADERS {
            headers.remove(name);
        }
        headers.insert(name, value);
    }
    headers
}

impl Clients {
    pub(crate) fn new(options: ClientOptions) -> Self {
        Self { options, plain: OnceLock::new(), secure: OnceLock::new() }
    }

    /// The client for an address.
    pub(crate) fn client(&self, address: &Url) -> Result<Client, String> {
        let secure = address.scheme() == "https";
        let cell = if secure { &self.secure } else { &self.plain };
        cell.get_or_init(|| self.options.client(secure)).clone()
    }
}

impl ClientOptions {
    fn client(&self, secure: bool) -> Result<Client, String> {
        let mut client = Client::builder()
            .connect_timeout(CONNECT)
            // A redirection would take the conversation and the key somewhere else than where they were meant to go.
            .redirect(redirect::Policy::none())
            // The proxy comes from what was handed in, not from the environment of this process.
            .no_proxy()
            .tls_backend_preconfigured(self.tls(secure)?);
        if secure && let Some(proxy) = &self.proxy {
            let proxy = Proxy::all(proxy).map_err(|error| error.to_string())?;
            let not_for = self.no_proxy.as_deref().and_then(NoProxy::from_string);
            client = client.proxy(proxy.no_proxy(not_for));
        }
        client.build().map_err(|error| error.to_string())
    }

    fn tls(&self, secure: bool) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        if !secure {
            return Ok(builder
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth());
        }
        let more = match &self.certificates {
            None => Vec::new(),
            Some(path) => CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| format!("the certificates in {}: {error}", path.display()))?,
        };
        let verifier = match more.is_empty() {
            true => Verifier::new(provider),
            false => Verifier::new_with_extra_roots(more, provider),
        };
        let verifier = Arc::new(verifier.map_err(|error| error.to_string())?);
        // Not its own: that of the system, which takes further certificates only where it is named.
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }
}

/// A body in pieces, whose length is known.
pub(crate) struct Pieces {
    left: std::vec::IntoIter<Bytes>,
    bytes: u64,
}

impl Pieces {
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { left: pieces.into_iter(), bytes }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.left.next();
        if let Some(piece) = &next {
            self.bytes -= piece.len() as u64;
        }
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::KeySource;

    fn upstream(base: &str) -> Upstream {
        let key = Credential::new(KeySource::Text("sk".into()));
        Upstream::new(base, Login::Key(key, Scheme::Bearer)).expect("an address")
    }

    #[test]
    fn an_address_is_put_together() {
        use Provider::{Anthropic, Gemini, OpenAi};
        let check = |base: &str, provider, path: &str, query: Option<&str>, expected: &str| {
            assert_eq!(upstream(base).address(provider, path, query).as_str(), expected);
        };
        check(
            "https://a.example",
            Anthropic,
            "/v1/messages",
            Some("beta=true"),
            "https://a.example/v1/messages?beta=true",
        );
        check(
            "https://a.example/",
            Anthropic,
            "/v1/messages",
            None,
            "https://a.example/v1/messages",
        );
        check(
            "https://o.example/v1",
            OpenAi,
            "/v1/responses",
            None,
            "https://o.example/v1/responses",
        );
        check(
            "https://o.example/api/v1/",
            OpenAi,
            "/chat/completions",
            None,
            "https://o.example/api/v1/chat/completions",
        );
        let path = "/v1beta/models/g:streamGenerateContent";
        check(
            "https://g.example",
            Gemini,
            path,
            Some("alt=sse&key=ticket&k%65y=ticket"),
            "https://g.example/v1beta/models/g:streamGenerateContent?alt=sse",
        );
        check(
            "https://g.example",
            Gemini,
            path,
            Some("key=ticket"),
            &format!("https://g.example{path}"),
        );
        let program = Upstream::new("https://g.example", Login::Program).expect("an address");
        assert_eq!(program.address(Gemini, "/x", Some("key=own")).query(), Some("key=own"));
    }

    #[test]
    fn an_address_without_encryption_is_on_this_machine() {
        for base in
            ["http://127.0.0.1:1", "http://localhost:1/v1", "http://[::1]:1", "https://a.example"]
        {
            assert!(Upstream::new(base, Login::Program).is_ok(), "{base}");
        }
        for base in
            ["http://a.example", "ftp://a.example", "a.example", "https://k:s@a.example", "unix:/x"]
        {
            assert!(Upstream::new(base, Login::Program).is_err(), "{base}");
        }
        assert_eq!(
            upstream("https://api.openai.com/v1").chat_limit.as_ref(),
            "max_completion_tokens"
        );
        assert_eq!(upstream("https://notopenai.com/v1").chat_limit.as_ref(), "max_tokens");
    }

    #[test]
    fn headers_on_the_way_out() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "127.0.0.1"),
            ("authorization", "Bearer ticket"),
            ("x-api-key", "ticket"),
            ("x-goog-api-key", "ticket"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("accept-encoding", "gzip, br"),
            ("anthropic-beta", "b"),
            ("content-length", "5"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let key = (header::AUTHORIZATION, HeaderValue::from_static("Bearer sk"));
        let with_key = outgoing(headers.clone(), Some(key));
        let shown: Vec<_> =
            with_key.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(
            shown.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            [
                ("accept-encoding", "identity"),
                ("anthropic-beta", "b"),
                ("authorization", "Bearer sk")
            ]
            .into()
        );
        let unchanged = outgoing(headers, None);
        assert_eq!(unchanged["authorization"], "Bearer ticket");
        assert_eq!(unchanged["x-api-key"], "ticket");
    }

    #[tokio::test]
    async fn pieces_have_a_length() {
        use http_body_util::BodyExt;
        let pieces = Pieces::new(vec![Bytes::from_static(b"ab"), Bytes::from_static(b"c")]);
        assert_eq!(pieces.size_hint().exact(), Some(3));
        assert_eq!(pieces.collect().await.unwrap().to_bytes(), "abc");
    }
}
