//! The endpoint of the service, and the key to it. Pure.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::OpenAiOptions;

/// The address to which calls go.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// For `POST`.
    pub(crate) chat: Url,
    /// True if it is on this machine.
    pub(crate) loopback: bool,
}

/// The key. Its text is never shown.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) header: HeaderValue,
    /// The key itself, to be struck out of what is recorded.
    pub(crate) text: String,
}

/// The reason why an endpoint cannot be called with these options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is none.
    #[error("`{url}` is not the address of an endpoint: {message}")]
    Address {
        /// As it was given.
        url: String,
        /// The fault.
        message: String,
    },
    /// The connection is not encrypted, so that others could read it.
    #[error("`{url}` is beyond this machine and not encrypted")]
    Plain {
        /// As it was given.
        url: String,
    },
    /// The key is not where it should be.
    #[error("the variable {variable}, which holds the key, is not set")]
    NoKey {
        /// The variable that should hold it.
        variable: String,
    },
    /// The value cannot be a key.
    #[error("what the variable {variable} holds cannot be a key")]
    BadKey {
        /// The variable that holds it.
        variable: String,
    },
    /// The file of further certificates cannot be read.
    #[error("the certificates in {} cannot be read: {message}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The certificates of the system, for example, are not there.
    #[error("a connection cannot be prepared: {message}")]
    Client {
        /// The fault.
        message: String,
    },
}

impl EndpointError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => "set baseUrl to something like http://127.0.0.1:11434/v1",
            Self::Plain { .. } => "use https, or say plainHttp: true where you trust the way",
            Self::NoKey { .. } => "export it, or set keyVariable to the name that your key has",
            Self::BadKey { .. } => "a key is one line of printable characters",
            Self::Certificates { .. } => "certificates names a file in PEM",
            Self::Client { .. } => "install the certificates of your system",
        }
    }
}

impl Endpoint {
    /// Returns the endpoint of these options.
    pub(crate) fn of(options: &OpenAiOptions) -> Result<Self, EndpointError> {
        let url = options.base_url.clone();
        let wrong = |message: String| EndpointError::Address { url: url.clone(), message };
        let mut chat = Url::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let host = chat.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        match chat.scheme() {
            "https" => {}
            "http" if loopback || options.plain_http => {}
            "http" => return Err(EndpointError::Plain { url }),
            other => return Err(wrong(format!("it begins with {other}:"))),
        }
        if !chat.username().is_empty() || chat.password().is_some() {
            return Err(EndpointError::Address {
                // The address holds a secret, which is left out.
                url: format!("{}://…@{host}", chat.scheme()),
                message: "a key belongs into a variable".to_owned(),
            });
        }
        chat.path_segments_mut()
            .map_err(|()| wrong("it has no path".to_owned()))?
            .pop_if_empty()
            .extend(["chat", "completions"]);
        Ok(Self { chat, loopback })
    }
}

impl OpenAiOptions {
    /// Checks the address of the service. Reads no key, and calls nothing.
    ///
    /// # Errors
    ///
    /// Fails if the address is none, or would carry what is asked unencrypted over a network.
    pub fn check_address(&self) -> Result<(), EndpointError> {
        Endpoint::of(self).map(drop)
    }
}

impl Key {
    /// The key that these options name, from this environment.
    pub(crate) fn find(
        options: &OpenAiOptions,
        environment: &[(OsString, OsString)],
    ) -> Result<Option<Self>, EndpointError> {
        let Some(variable) = options.key_variable.clone() else { return Ok(None) };
        let found = environment.iter().rfind(|(name, _)| *name == *variable);
        let text = match found.map(|(_, value)| value.to_str()) {
            None | Some(Some("")) => return Err(EndpointError::NoKey { variable }),
            Some(None) => return Err(EndpointError::BadKey { variable }),
            Some(Some(text)) => text.trim().to_owned(),
        };
        let header = HeaderValue::from_str(&format!("Bearer {text}"));
        let Ok(mut header) = header else { return Err(EndpointError::BadKey { variable }) };
        header.set_sensitive(true);
        Ok(Some(Self { header, text }))
    }

    /// A text of the service without the key: some repeat it in their errors.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.text.is_empty() { text.to_owned() } else { text.replace(&self.text, "[redacted]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(base_url: &str) -> OpenAiOptions {
        OpenAiOptions { base_url: base_url.into(), ..OpenAiOptions::default() }
    }

    #[test]
    fn addresses() {
        #[track_caller]
        fn check(url: &str, expected: &str) {
            let found = match Endpoint::of(&options(url)) {
                Ok(endpoint) => format!("{} {}", endpoint.chat, endpoint.loopback),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{url}");
        }
        check("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/chat/completions true");
        check("http://localhost/v1/", "http://localhost/v1/chat/completions true");
        check("http://[::1]:8080", "http://[::1]:8080/chat/completions true");
        check("https://api.example/v1", "https://api.example/v1/chat/completions false");
        check("https://a.example/x?v=1", "https://a.example/x/chat/completions?v=1 false");
        check(
            "http://api.example/v1",
            "`http://api.example/v1` is beyond this machine and not encrypted",
        );
        check(
            "http://127.0.0.1.example",
            "`http://127.0.0.1.example` is beyond this machine and not encrypted",
        );
        check("ftp://x/", "`ftp://x/` is not the address of an endpoint: it begins with ftp:");
        check("api", "`api` is not the address of an endpoint: relative URL without a base");
        check(
            "https://me:secret@a.example/v1",
            "`https://…@a.example` is not the address of an endpoint: a key belongs into a variable",
        );
        let trusted = OpenAiOptions { plain_http: true, ..options("http://gpu.lan:8000/v1") };
        assert!(Endpoint::of(&trusted).is_ok());
    }

    #[test]
    fn keys() {
        #[track_caller]
        fn check(variable: Option<&str>, value: &str, expected: Result<Option<&str>, &str>) {
            let key_variable = variable.map(str::to_owned);
            let options = OpenAiOptions { key_variable, ..OpenAiOptions::default() };
            let found = Key::find(&options, &[("KEY".into(), value.into())]);
            let found = found.map(|key| key.map(|key| key.text)).map_err(|error| error.to_string());
            let expected = expected.map(|key| key.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found, expected);
        }
        check(None, "k", Ok(None));
        check(Some("KEY"), "sk-1\n", Ok(Some("sk-1")));
        check(Some("OTHER"), "k", Err("the variable OTHER, which holds the key, is not set"));
        check(Some("KEY"), "", Err("the variable KEY, which holds the key, is not set"));
        check(Some("KEY"), "a\nb", Err("what the variable KEY holds cannot be a key"));
    }

    #[test]
    fn a_key_is_not_shown() {
        let options =
            OpenAiOptions { key_variable: Some("KEY".into()), ..OpenAiOptions::default() };
        let key =
            Key::find(&options, &[("KEY".into(), "sk-1".into())]).expect("a key").expect("set");
        assert!(!format!("{:?}", key.header).contains("sk-1"));
        assert_eq!(key.redact("wrong key sk-1."), "wrong key [redacted].");
    }
}
