//! A request for an answer: what it asks for, and how it is changed before it leaves. Pure.
//!
//! ```text
//!  body ──▶ keys of the outermost table ──▶ model, limit of the answer, tier …
//!                     │
//!                     └──▶ parts: each message, tool, text of the system ──▶ digest, bytes, what bytes do not bound
//! ```
//!
//! Nothing is copied: a change is a place in the body and the text that comes there.

mod count;
mod edit;
mod scan;
mod table;
mod tool;

use serde_json::Value;
use serde_json::value::RawValue;

use self::count::Counted;
use self::scan::{CacheMarks, scan};
use self::table::Table;
use crate::protocol::Protocol;

pub(crate) use count::{CountQuestion, counted_tokens};
pub(crate) use edit::{Edit, pieces};
pub use tool::ServerTool;

/// A request for an answer, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The words that it speaks.
    pub protocol: Protocol,
    /// The model that it asks.
    pub model: String,
    /// True if the answer comes piece by piece.
    pub streams: bool,
    /// The most tokens of one answer; none where the request sets no limit.
    pub limit: Option<u64>,
    /// The number of answers.
    pub candidates: u64,
    /// Tokens that are charged as written besides the limit, such as text that was predicted.
    pub more_output: u64,
    /// The parts, in their order.
    pub parts: Vec<Part>,
    /// The mark of the longest time in the provider's cache.
    pub cache: CacheWrite,
    /// The tier that it asks for.
    pub tier: Option<String>,
    /// True if it asks for a faster answer.
    pub fast: bool,
    /// The region in which it is to stay.
    pub region: Option<String>,
    /// Tools that the provider runs.
    pub server_tools: Vec<ServerTool>,
    /// The reason why its price is unknown, whatever its tokens: pictures or sound as an answer.
    pub unpriced: Option<&'static str>,
    /// True if the provider may read less than it holds, and so does not say how many tokens its parts have.
    pub is_trimmed: bool,
    /// True if the program asks for the longest context of the model, which is none that its price names.
    pub is_long: bool,
    /// The place of a limit, by its key.
    limit_at: Vec<(&'static str, Place)>,
    usage_at: Option<Place>,
    counted: Counted,
}

/// A part of a request: a message, a tool, or another value of the outermost table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The same for parts that say the same.
    pub digest: [u8; 16],
    /// The length. No text has more tokens than bytes.
    pub bytes: u64,
    /// Tokens that its bytes do not bound.
    pub more: More,
    /// True if it may be another thing with the next request, although it says the same.
    pub changes: bool,
}

/// Tokens of a part that its bytes do not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// So many.
    Tokens(u64),
    /// As many as the model can read.
    Window,
}

/// The writing to the provider's cache that a request permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheWrite {
    /// The request does not ask for it.
    Unasked,
    /// For some minutes.
    Minutes,
    /// For an hour.
    Hour,
}

/// A body that is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No JSON, or not a table.
    #[error("the body is not a JSON object: {0}")]
    Json(String),
    /// A key stands there twice, and servers differ in which of the two counts.
    #[error("the key `{0}` is set twice")]
    Twice(String),
    /// A key that decides the cost is not in small letters, and servers differ in whether it counts.
    #[error("the key `{0}` is not written in small letters")]
    Case(String),
    /// No model is named.
    #[error("the request names no model")]
    NoModel,
    /// A value is none that the key can have.
    #[error("`{key}` is not {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The kind of value that belongs there.
        expected: &'static str,
    },
}

/// The place where a value stands or would stand.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A text that is replaced.
    Replace(std::ops::Range<usize>),
    /// Behind an opening bracket; true if the table has no entries so far.
    Behind(usize, bool),
    /// The same place, for a table that is missing.
    NewTable(usize, bool),
    /// A table is null here.
    NullTable(std::ops::Range<usize>),
}

/// Tokens of a picture: at most so many with any model of the provider.
const fn picture_tokens(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Messages => 5_000,
        // Some small models count each part of a picture many times over.
        Protocol::Responses | Protocol::Chat | Protocol::Gemini => 50_000,
    }
}

/// Tokens of the description of a tool that the provider adds itself.
const DESCRIPTION_TOKENS: u64 = 2_000;

/// Lists whose items are parts of their own; of other keys each value is one part.
const LISTS: [&str; 6] = ["messages", "input", "contents", "tools", "system", "functions"];

impl Request {
    /// Reads a body. `model` and `streams` are what the path says, where it does.
    pub fn read(
        protocol: Protocol,
        model: Option<&str>,
        streams: bool,
        body: &[u8],
    ) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(body).map_err(|error| Malformed::Json(error.to_string()))?;
        let table = Table::read(text, protocol == Protocol::Gemini)?;
        let model = match model {
            Some(model) => model.to_owned(),
            None => table.text("model")?.ok_or(Malformed::NoModel)?,
        };
        let streams = streams || table.flag("stream")?;
        let (parts, cache) = parts(protocol, &table)?;
        let mut request = Self {
            protocol,
            model,
            streams,
            limit: None,
            candidates: 1,
            more_output: 0,
            parts,
            cache,
            tier: table.text("service_tier")?,
            fast: table.text("speed")?.is_some_and(|speed| speed != "standard"),
            region: table.text("inference_geo")?,
            server_tools: Vec::new(),
            unpriced: None,
            is_trimmed: false,
            is_long: false,
            limit_at: Vec::new(),
            usage_at: None,
            counted: Counted::No,
        };
        request.read_tools(&table)?;
        match protocol {
            Protocol::Messages => request.read_messages(&table)?,
            Protocol::Responses => request.read_responses(&table)?,
            Protocol::Chat => request.read_chat(&table)?,
            Protocol::Gemini => request.read_gemini(&table)?,
        }
        Ok(request)
    }

    /// Returns the changes by which the answer has a limit and says what it used. `limit` is written where there is none; in chats
    /// under `chat_key`.
    pub(crate) fn edits(&self, limit: Option<u64>, chat_key: &str) -> Vec<Edit> {
        let mut edits = Vec::new();
        if let (None, Some(limit)) = (self.limit, limit) {
            let wanted = self.limit_at.iter().find(|(key, _)| *key == chat_key);
            if let Some((key, place)) = wanted.or(self.limit_at.first()) {
                edits.push(place.nested("generationConfig", key, limit));
            }
        }
        if let Some(place) = &self.usage_at {
            edits.push(place.nested("stream_options", "include_usage", true));
        }
        edits.sort_by_key(|edit| edit.at.start);
        edits
    }

    /// True if the answer will hold a piece that the program has not asked for.
    pub fn asks_for_usage(&self) -> bool {
        self.usage_at.is_some()
    }

    fn read_tools(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        let tools: Vec<Value> = match table.find("tools") {
            None => Vec::new(),
            Some(raw) if raw.get() == "null" => Vec::new(),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|_| Malformed::Value { key: "tools", expected: "a list" })?,
        };
        let found = tools.iter().flat_map(|tool| ServerTool::of(self.protocol, tool));
        self.server_tools.extend(found);
        let bound = table.number("max_tool_calls")?;
        for tool in &mut self.server_tools {
            tool.uses = tool.uses.or(bound);
        }
        Ok(())
    }

    /// Counts keys by which the provider does more than to answer, each as a tool that it runs.
    fn read_services(&mut self, table: &Table<'_>, keys: &[&str]) {
        let is_set = |key: &&&str| table.find(key).is_some_and(|raw| !is_empty(raw));
        self.server_tools.extend(keys.iter().filter(is_set).map(|key| ServerTool::named(*key)));
    }

    fn read_messages(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        self.limit = table.number("max_tokens")?;
        self.limit_at = vec![("max_tokens", table.place("max_tokens"))];
        self.read_services(table, &["mcp_servers", "container", "compaction", "fallbacks"]);
        if let Some(raw) = table.find("context_management").filter(|raw| !is_empty(raw)) {
            self.is_trimmed = leaves_out(raw);
            // Of the ways of managing a context only that costs which asks a model.
            if raw.get().contains("compact") || raw.get().contains('\\') {
                self.server_tools.push(ServerTool::named("context_management"));
            }
        }
        let keys = ["model", "messages", "system", "tools", "tool_choice", "thinking"];
        self.counted = Counted::Entries(table.places(&keys));
        Ok(())
    }

    fn read_responses(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        self.limit = table.number("max_output_tokens")?;
        self.limit_at = vec![("max_output_tokens", table.place("max_output_tokens"))];
        self.read_services(table, &["context_management"]);
        self.read_services(table, &OF_GATEWAYS);
        self.is_trimmed = table.text("truncation")?.is_some_and(|way| way != "disabled");
        if table.flag("background")? {
            self.unpriced = Some("it is answered in the background, where its use is not seen");
        }
        Ok(())
    }

    fn read_chat(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        // Servers know one of the two, or both; the larger is what may be written.
        let limits = [table.number("max_completion_tokens")?, table.number("max_tokens")?];
        self.limit = limits.into_iter().flatten().max();
        self.limit_at =
            ["max_tokens", "max_completion_tokens"].map(|key| (key, table.place(key))).into();
        self.candidates = table.number("n")?.unwrap_or(1).max(1);
        self.read_services(table, &OF_GATEWAYS);
        self.more_output = table.find("prediction").map_or(0, |raw| raw.get().len() as u64);
        if table.find("web_search_options").is_some_and(|raw| raw.get() != "null") {
            self.server_tools.push(ServerTool::named("web_search"));
        }
        if table.find("modalities").is_some_and(|raw| !is_text_only(raw)) {
            self.unpriced = Some("its answer is not text alone");
        }
        if self.streams {
            self.usage_at = match table.find("stream_options") {
                Some(raw) if raw.get() != "null" => {
                    let options = table.inside(raw)?;
                    let asks = options.flag("include_usage")?;
                    (!asks).then(|| options.place("include_usage"))
                }
                _ => Some(table.missing_table("stream_options")),
            };
        }
        Ok(())
    }

    fn read_gemini(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        const LIMIT: &str = "maxOutputTokens";
        self.counted = Counted::Whole;
        let settings = table.find("generationConfig").filter(|raw| raw.get() != "null");
        let Some(settings) = settings.map(|raw| table.inside(raw)).transpose()? else {
            self.limit_at = vec![(LIMIT, table.missing_table("generationConfig"))];
            return Ok(());
        };
        self.limit = settings.number(LIMIT)?;
        self.limit_at = vec![(LIMIT, settings.place(LIMIT))];
        self.candidates = settings.number("candidateCount")?.unwrap_or(1).max(1);
        if settings.find("responseModalities").is_some_and(|raw| !is_text_only(raw)) {
            self.unpriced = Some("its answer is not text alone");
        }
        Ok(())
    }
}

/// Keys by which services that put others behind one address ask other models than the one that is named, or search for the model.
const OF_GATEWAYS: [&str; 5] =
    ["models", "fallbacks", "context_window_fallbacks", "plugins", "search_parameters"];

/// True of a way of managing a context by which the provider may read less than the request holds. Claude Code asks for all its thoughts to
/// be kept, which leaves nothing out.
fn leaves_out(raw: &RawValue) -> bool {
    let keeps_thoughts = |edit: &Value| {
        let kind = edit["type"].as_str().unwrap_or_default();
        kind.starts_with("clear_thinking") && edit["keep"] == "all"
    };
    let ways: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    !ways["edits"].as_array().is_some_and(|edits| edits.iter().all(keeps_thoughts))
}

fn is_empty(raw: &RawValue) -> bool {
    matches!(raw.get(), "null" | "[]" | "{}")
}

fn is_text_only(raw: &RawValue) -> bool {
    let words: Result<Vec<String>, _> = serde_json::from_str(raw.get());
    raw.get() == "null"
        || words.is_ok_and(|words| words.iter().all(|word| word.eq_ignore_ascii_case("text")))
}

/// Keys that stand for something which the provider holds. Of some the content can be another one with each request.
fn reference(protocol: Protocol, key: &str) -> Option<bool> {
    match (protocol, key) {
        (Protocol::Responses, "previous_response_id") | (Protocol::Gemini, "cachedContent") => {
            Some(false)
        }
        (Protocol::Responses, "conversation" | "prompt") => Some(true),
        _ => None,
    }
}

fn parts(protocol: Protocol, table: &Table<'_>) -> Result<(Vec<Part>, CacheWrite), Malformed> {
    let mut marks = CacheMarks::default();
    let mut parts = Vec::new();
    let mut look = |key: &str, json: &str| -> Result<(), Malformed> {
        let (mut digest, found) =
            scan(json, &mut marks).map_err(|error| Malformed::Json(error.to_string()))?;
        // The same text under another key is another part.
        for (byte, key) in digest.iter_mut().zip(blake3::hash(key.as_bytes()).as_bytes()) {
            *byte ^= key;
        }
        let refers = reference(protocol, key).filter(|_| json != "null");
        let mut tokens = found.images.saturating_mul(picture_tokens(protocol));
        if key == "tools"
            && let Ok(tool) = serde_json::from_str::<Value>(json)
            && tool::is_described_by_provider(&tool)
        {
            tokens += DESCRIPTION_TOKENS;
        }
        let fills = found.fills_window || refers.is_some();
        let more = if fills { More::Window } else { More::Tokens(tokens) };
        let changes = found.changes || refers == Some(true);
        parts.push(Part { digest, bytes: json.len() as u64, more, changes });
        Ok(())
    };
    for (key, raw) in table.iter() {
        if key == "cache_control" {
            // For the whole request: the provider chooses what it writes.
            look("", &format!("{{\"cache_control\":{}}}", raw.get()))?;
        } else if LISTS.contains(&key) && raw.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get())
                .map_err(|error| Malformed::Json(error.to_string()))?;
            items.into_iter().try_for_each(|item| look(key, item.get()))?;
        } else {
            look(key, raw.get())?;
        }
    }
    let cache = match marks {
        CacheMarks { hour: true, .. } => CacheWrite::Hour,
        CacheMarks { any: true, .. } => CacheWrite::Minutes,
        CacheMarks { .. } => CacheWrite::Unasked,
    };
    Ok((parts, cache))
}

#[cfg(test)]
mod tests;
