//! The protocol of a request, by its method and its path. Pure.

/// The provider whose words a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Provider {
    /// Anthropic, and all that answer `POST /v1/messages`.
    Anthropic,
    /// OpenAI, and all that answer `POST /chat/completions` or `POST /responses`.
    OpenAi,
    /// Gemini, and all that answer `generateContent`.
    Gemini,
}

/// The protocol of a request that costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Gemini's contents.
    Gemini,
}

/// The treatment of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A request for an answer of a model: reserved before it leaves.
    Metered {
        /// The words that it speaks.
        protocol: Protocol,
        /// The model, where the path names it.
        model: Option<String>,
        /// True if the path says that the answer comes piece by piece; elsewhere the body says so.
        streams: bool,
    },
    /// A request that costs nothing: a list of models, a count of tokens. None where headers tell the provider.
    Free(Option<Provider>),
    /// A program asks whether the server is there. It is answered here, without a ticket.
    Hello,
    /// A program asks for a WebSocket where it could have plain HTTP too.
    Upgrade,
    /// A request that this server does not know, so that its cost would be unknown.
    Unknown,
}

impl Protocol {
    /// The provider whose protocol it is.
    pub const fn provider(self) -> Provider {
        match self {
            Self::Messages => Provider::Anthropic,
            Self::Responses | Self::Chat => Provider::OpenAi,
            Self::Gemini => Provider::Gemini,
        }
    }
}

impl Route {
    /// Finds the treatment of a request, by its path without its query. `upgrades` is whether it asks for a WebSocket.
    pub fn of(method: &str, path: &str, upgrades: bool) -> Self {
        if (method, path) == ("HEAD", "/api/hello") {
            return Self::Hello;
        }
        let metered = |protocol| Self::Metered { protocol, model: None, streams: false };
        // Many programs are given an address that ends with `/v1`, others are not.
        let rest = path.strip_prefix("/v1").unwrap_or(path);
        match (method, rest) {
            ("GET", "/responses") if upgrades => return Self::Upgrade,
            ("POST", "/messages") if path != rest => return metered(Protocol::Messages),
            ("POST", "/messages/count_tokens") if path != rest => {
                return Self::Free(Some(Provider::Anthropic));
            }
            ("POST", "/responses") => return metered(Protocol::Responses),
            ("POST", "/responses/input_tokens") => return Self::Free(Some(Provider::OpenAi)),
            ("POST", "/chat/completions") => return metered(Protocol::Chat),
            ("GET", "/models") => return Self::Free(None),
            ("GET", rest) => {
                if let Some(name) = rest.strip_prefix("/models/")
                    && is_plain(name)
                {
                    return Self::Free(None);
                }
            }
            _ => {}
        }
        gemini(method, path).unwrap_or(Self::Unknown)
    }
}

/// `/v1beta/models`, `/v1beta/models/NAME` and `/v1beta/models/NAME:VERB`.
fn gemini(method: &str, path: &str) -> Option<Route> {
    let rest =
        ["/v1beta", "/v1alpha", "/v1"].iter().find_map(|version| path.strip_prefix(version))?;
    let rest = rest.strip_prefix("/models")?;
    let free = Some(Route::Free(Some(Provider::Gemini)));
    if rest.is_empty() {
        return free.filter(|_| method == "GET");
    }
    let (name, verb) = match rest.strip_prefix('/')?.split_once(':') {
        None => (rest.strip_prefix('/')?, None),
        Some((name, verb)) => (name, Some(verb)),
    };
    if !is_plain(name) || name.contains('/') {
        return None;
    }
    let metered = |streams| {
        let (protocol, model) = (Protocol::Gemini, Some(name.to_owned()));
        Some(Route::Metered { protocol, model, streams })
    };
    match (method, verb) {
        ("GET", None) => free,
        ("POST", Some("countTokens")) => free,
        ("POST", Some("generateContent")) => metered(false),
        ("POST", Some("streamGenerateContent")) => metered(true),
        _ => None,
    }
}

/// True for the name of a model that means the same to every server: no dots that climb, nothing that is written in another way.
fn is_plain(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'@');
    !name.is_empty()
        && name.bytes().all(is_plain)
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_treatment() {
        let check = |method: &str, path: &str, expected: Route| {
            assert_eq!(Route::of(method, path, false), expected, "{method} {path}");
        };
        let metered = |protocol| Route::Metered { protocol, model: None, streams: false };
        let gemini = |model: &str, streams| {
            let (protocol, model) = (Protocol::Gemini, Some(model.to_owned()));
            Route::Metered { protocol, model, streams }
        };
        let free = |provider| Route::Free(provider);
        check("POST", "/v1/messages", metered(Protocol::Messages));
        check("POST", "/v1/responses", metered(Protocol::Responses));
        check("POST", "/responses", metered(Protocol::Responses));
        check("POST", "/v1/chat/completions", metered(Protocol::Chat));
        check("POST", "/chat/completions", metered(Protocol::Chat));
        check("POST", "/v1beta/models/g-1.5:generateContent", gemini("g-1.5", false));
        check("POST", "/v1/models/g:streamGenerateContent", gemini("g", true));
        check("POST", "/v1alpha/models/g:streamGenerateContent", gemini("g", true));
        check("HEAD", "/api/hello", Route::Hello);
        check("GET", "/v1/models", free(None));
        check("GET", "/models", free(None));
        check("GET", "/v1/models/openai/gpt-5", free(None));
        check("GET", "/v1beta/models", free(Some(Provider::Gemini)));
        check("GET", "/v1beta/models/g", free(Some(Provider::Gemini)));
        check("POST", "/v1beta/models/g:countTokens", free(Some(Provider::Gemini)));
        check("POST", "/v1/messages/count_tokens", free(Some(Provider::Anthropic)));
        check("POST", "/v1/responses/input_tokens", free(Some(Provider::OpenAi)));
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("POST", "/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "//v1/messages"),
            ("POST", "/v1/messages/batches"),
            ("POST", "/v1/messages/../batches"),
            ("POST", "/v1/batches"),
            ("POST", "/v1/images/generations"),
            ("POST", "/v1/embeddings"),
            ("POST", "/v1/completions"),
            ("POST", "/v1/complete"),
            ("POST", "/v1/audio/speech"),
            ("POST", "/v1/responses/r/cancel"),
            ("GET", "/v1/models/../files"),
            ("GET", "/v1/models/%2e%2e/files"),
            ("DELETE", "/v1/models/ft"),
            ("POST", "/v1beta/models/g:batchGenerateContent"),
            ("POST", "/v1beta/models/g:embedContent"),
            ("POST", "/v1beta/models/a/b:generateContent"),
            ("POST", "/v1beta/tunedModels/g:generateContent"),
            ("POST", "/v1beta/models/:generateContent"),
            ("POST", "/v1beta/cachedContents"),
            ("GET", "/api/hello"),
            ("GET", "/"),
            ("GET", ""),
        ] {
            check(method, path, Route::Unknown);
        }
    }

    #[test]
    fn a_web_socket_is_offered_plain_http() {
        assert_eq!(Route::of("GET", "/v1/responses", true), Route::Upgrade);
        assert_eq!(Route::of("GET", "/responses", true), Route::Upgrade);
        assert_eq!(Route::of("GET", "/v1/responses", false), Route::Unknown);
        assert_eq!(Route::of("GET", "/v1/other", true), Route::Unknown);
    }
}
