//! One look at every value of a part of a request: its digest, and what its bytes do not tell of its tokens. Pure.
//!
//! Two parts that say the same have the same digest, however they are written: blanks and escapes do not matter, and neither do marks of
//! the provider's cache, which programs move from message to message.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The contents of a part of a request besides text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The number of pictures.
    pub(crate) images: u64,
    /// True if it holds something whose tokens its bytes do not bound, such as a document or a reference to a file.
    pub(crate) fills_window: bool,
    /// True if it names something that may be another thing with the next request, such as an address.
    pub(crate) changes: bool,
}

/// Marks of the provider's cache in a whole request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheMarks {
    /// The number of marks that stand for nothing else.
    pub(crate) count: u32,
    /// True if there is a mark, also one with more in it than is known of marks.
    pub(crate) any: bool,
    /// True if one of them asks for an hour.
    pub(crate) hour: bool,
}

/// So many marks stand for nothing else. More are content, which counts for the digest: otherwise content could be hidden in them.
const MARKS: u32 = 4;

/// The digest of a part, and what was found in it.
pub(crate) fn scan(
    json: &str,
    marks: &mut CacheMarks,
) -> Result<([u8; 16], Found), serde_json::Error> {
    let mut scan = Scan { hasher: blake3::Hasher::new(), found: Found::default(), marks };
    let mut reader = serde_json::Deserializer::from_str(json);
    Look(&mut scan).deserialize(&mut reader)?;
    reader.end()?;
    let Scan { hasher, found, .. } = scan;
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok((digest, found))
}

struct Scan<'m> {
    hasher: blake3::Hasher,
    found: Found,
    marks: &'m mut CacheMarks,
}

impl Scan<'_> {
    /// Takes one value, by its kind and its bytes: with the length, so that no two sequences of values look alike.
    fn take(&mut self, kind: u8, bytes: &[u8]) {
        self.hasher.update(&[kind]);
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}

/// A value, as far as it says something of the table around it.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Null,
    Nothing,
    /// A source of content: an address, or a document in this place.
    Address,
    Document,
}

struct Look<'s, 'm>(&'s mut Scan<'m>);

impl<'de> DeserializeSeed<'de> for Look<'_, '_> {
    type Value = Said;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Said, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_, '_> {
    type Value = Said;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Said, E> {
        self.0.take(b'n', &[]);
        Ok(Said::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Said, E> {
        self.0.take(b'b', &[u8::from(value)]);
        Ok(Said::Nothing)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Said, E> {
        self.0.take(b'u', &value.to_le_bytes());
        Ok(Said::Nothing)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Said, E> {
        self.0.take(b'i', &value.to_le_bytes());
        Ok(Said::Nothing)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Said, E> {
        self.0.take(b'f', &value.to_bits().to_le_bytes());
        Ok(Said::Nothing)
    }

    fn visit_str<E>(self, value: &str) -> Result<Said, E> {
        self.0.take(b's', value.as_bytes());
        Ok(Said::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Said, A::Error> {
        self.0.take(b'[', &[]);
        while items.next_element_seed(Look(self.0))?.is_some() {}
        self.0.take(b']', &[]);
        Ok(Said::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Said, A::Error> {
        let scan = self.0;
        scan.take(b'{', &[]);
        let mut table = Table::default();
        while let Some(key) = entries.next_key::<Text<'de>>()? {
            let key = key.0;
            if key == "cache_control" {
                let mark = entries.next_value::<&RawValue>()?.get();
                scan.marks.any |= mark != "null";
                match cache_mark(mark).filter(|_| scan.marks.count < MARKS) {
                    Some(hour) => {
                        scan.marks.count += 1;
                        scan.marks.hour |= hour;
                    }
                    None => {
                        scan.marks.hour |= mark.contains("1h") || mark.contains('\\');
                        scan.take(b'k', key.as_bytes());
                        scan.take(b'r', mark.as_bytes());
                    }
                }
                continue;
            }
            scan.take(b'k', key.as_bytes());
            match &*key {
                "type" | "mimeType" | "mime_type" | "media_type" => {
                    let word = entries.next_value_seed(Word(scan))?;
                    table.word(&key, word);
                }
                _ => {
                    let said = entries.next_value_seed(Look(scan))?;
                    table.child(&key, said);
                }
            }
        }
        scan.take(b'}', &[]);
        Ok(table.end(&mut scan.found))
    }
}

/// The entries of one table that were read so far, in whatever order they stand.
#[derive(Default)]
struct Table<'de> {
    kind: Option<Cow<'de, str>>,
    mime: Option<Cow<'de, str>>,
    source: Option<Said>,
    has_data: bool,
    has_address: bool,
    /// True if the table names something that the provider holds.
    refers: bool,
    has_id: bool,
    /// True if it holds a thought in the form that only the provider can read.
    is_sealed: bool,
}

impl<'de> Table<'de> {
    fn word(&mut self, key: &str, word: Option<Cow<'de, str>>) {
        match key {
            "type" => self.kind = word,
            _ => self.mime = word,
        }
    }

    fn child(&mut self, key: &str, said: Said) {
        match key {
            "source" => self.source = Some(said),
            "data" | "file_data" | "fileData" => self.has_data = true,
            "url" | "file_url" => self.has_address = true,
            "file_id" | "fileId" | "file_uri" | "fileUri" => self.refers = true,
            "id" => self.has_id = true,
            "encrypted_content" => self.is_sealed = said != Said::Null,
            _ => {}
        }
    }

    fn end(self, found: &mut Found) -> Said {
        let kind = self.kind.as_deref().unwrap_or_default();
        let mime = self.mime.as_deref();
        let is_picture = matches!(kind, "image" | "input_image" | "image_url");
        if is_picture {
            // Wherever it comes from, a picture has at most so many tokens.
            found.images += 1;
            return Said::Nothing;
        }
        match (kind, self.source) {
            // A document's source decides: text has no more tokens than bytes.
            ("document", Some(Said::Nothing)) => {}
            ("document", _) | ("input_file" | "file" | "item_reference", _) => {
                found.fills_window = true;
            }
            // The provider puts in what it holds under this id.
            ("reasoning" | "compaction", _) if self.has_id && !self.is_sealed => {
                found.fills_window = true;
            }
            _ => {}
        }
        found.changes |= self.source == Some(Said::Address)
            || (self.has_address && matches!(kind, "input_file" | "file" | "document"));
        if self.refers && !matches!(kind, "base64" | "url") {
            found.fills_window = true;
        }
        if self.has_data
            && let Some(mime) = mime
        {
            match mime.split('/').next() {
                // Within a source of a picture; counted there, and here in Gemini's words.
                Some("image") if kind.is_empty() => found.images += 1,
                Some("image" | "text") => {}
                _ => {
                    found.fills_window = true;
                    return Said::Document;
                }
            }
        }
        if kind == "url" && self.has_address { Said::Address } else { Said::Nothing }
    }
}

/// A text, without a copy where it has no escapes.
#[derive(serde::Deserialize)]
pub(super) struct Text<'t>(#[serde(borrow)] pub(super) Cow<'t, str>);

/// A value that is answered where it is a text.
struct Word<'s, 'm>(&'s mut Scan<'m>);

impl<'de> DeserializeSeed<'de> for Word<'_, '_> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        let raw = <&'de RawValue as serde::Deserialize>::deserialize(reader)?.get();
        if !raw.starts_with('"') {
            // No word. As text, because tables in tables in tables here would have no bound.
            self.0.take(b'r', raw.as_bytes());
            return Ok(None);
        }
        let text: Text<'de> = serde_json::from_str(raw).map_err(serde::de::Error::custom)?;
        self.0.take(b's', text.0.as_bytes());
        Ok(Some(text.0))
    }
}

/// True for an hour; none where it is not exactly a mark.
fn cache_mark(json: &str) -> Option<bool> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Mark<'m> {
        #[serde(borrow, rename = "type")]
        kind: &'m str,
        #[serde(borrow)]
        ttl: Option<&'m str>,
    }
    if json == "null" {
        return Some(false);
    }
    let mark: Mark<'_> = serde_json::from_str(json).ok()?;
    match (mark.kind, mark.ttl) {
        ("ephemeral", None | Some("5m")) => Some(false),
        ("ephemeral", Some("1h")) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(json: &str) -> ([u8; 16], Found, CacheMarks) {
        let mut marks = CacheMarks::default();
        let (digest, found) = scan(json, &mut marks).expect("JSON");
        (digest, found, marks)
    }

    #[test]
    fn what_says_the_same_has_the_same_digest() {
        let same = |one: &str, other: &str| assert_eq!(look(one).0, look(other).0, "{one} {other}");
        let differ =
            |one: &str, other: &str| assert_ne!(look(one).0, look(other).0, "{one} {other}");
        same(r#"{"a":"é\n"}"#, r#"{ "\u0061" : "\u00e9\u000a" }"#);
        same(
            r#"{"type":"text","text":"a"}"#,
            r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}"#,
        );
        differ(r#"["a","b"]"#, r#"["ab"]"#);
        differ(r#"["a",["b"]]"#, r#"["a","b"]"#);
        differ(r#"{"a":1}"#, r#"{"a":-1}"#);
        differ(r#"{"a":null}"#, r#"{}"#);
        differ(r#"{"a":"1"}"#, r#"{"a":1}"#);
        differ(r#"{"type":"text"}"#, r#"{"type":"texts"}"#);
        // No mark, but something that hides in its place.
        differ("{}", r#"{"cache_control":{"type":"ephemeral","x":"hidden"}}"#);
        differ("{}", r#"{"cache_control":"hidden"}"#);
    }

    #[test]
    fn only_so_many_marks_are_overlooked() {
        let mark = r#"{"cache_control":{"type":"ephemeral"}}"#;
        let list = |marked: usize| {
            let items: Vec<_> = (0..8).map(|at| if at < marked { mark } else { "{}" }).collect();
            format!("[{}]", items.join(","))
        };
        assert_eq!(look(&list(0)).0, look(&list(4)).0);
        assert_ne!(look(&list(0)).0, look(&list(5)).0);
        assert_eq!(look(&list(5)).2, CacheMarks { count: 4, any: true, hour: false });
        let hour = look(r#"{"cache_control":{"type":"ephemeral","ttl":"1h"}}"#).2;
        assert_eq!(hour, CacheMarks { count: 1, any: true, hour: true });
        let more = look(r#"{"cache_control":{"type":"ephemeral","scope":"x"}}"#).2;
        assert_eq!(more, CacheMarks { count: 0, any: true, hour: false });
        assert_eq!(
            look(r#"{"cache_control":null}"#).2,
            CacheMarks { count: 1, ..CacheMarks::default() }
        );
    }

    #[test]
    fn what_bytes_do_not_bound_is_found() {
        let nothing = Found::default();
        let image = Found { images: 1, ..nothing };
        let window = Found { fills_window: true, ..nothing };
        let changes = Found { fills_window: true, changes: true, ..nothing };
        for (json, expected) in [
            (r#"{"role":"user","content":"text"}"#, nothing),
            (r#"{"type":"text","text":"a url: http://x"}"#, nothing),
            // Messages.
            (
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}"#,
                image,
            ),
            (r#"{"source":{"url":"http://x/a.png","type":"url"},"type":"image"}"#, image),
            (
                r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
                Found { images: 1, ..window },
            ),
            (
                r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}"#,
                window,
            ),
            (
                r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"AA"}}"#,
                nothing,
            ),
            (r#"{"type":"document","source":{"type":"url","url":"http://x/a.pdf"}}"#, changes),
            (r#"{"type":"container_upload","file_id":"f"}"#, window),
            (
                r#"{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"A"}}]}"#,
                image,
            ),
            // Responses and chats.
            (r#"{"type":"input_image","image_url":"data:image/png;base64,AA"}"#, image),
            (r#"{"type":"image_url","image_url":{"url":"http://x/a.png"}}"#, image),
            (r#"{"type":"input_file","file_id":"f"}"#, window),
            (r#"{"type":"input_file","file_url":"http://x"}"#, changes),
            (r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AA"}}"#, window),
            (r#"{"type":"item_reference","id":"msg_1"}"#, window),
            (r#"{"type":"reasoning","id":"rs_1","summary":[]}"#, window),
            (r#"{"type":"reasoning","id":"rs_1","encrypted_content":null}"#, window),
            (r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AA"}"#, nothing),
            (r#"{"type":"message","id":"msg_1","content":[]}"#, nothing),
            // Gemini.
            (r#"{"inlineData":{"mimeType":"image/png","data":"AA"}}"#, image),
            (r#"{"inline_data":{"mime_type":"video/mp4","data":"AA"}}"#, window),
            (r#"{"fileData":{"mimeType":"image/png","fileUri":"gs://x"}}"#, window),
        ] {
            assert_eq!(look(json).1, expected, "{json}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for json in
            ["", "{", "{} {}", "nul", r#"{"type":}"#, r#"{"a":"\ud800"}"#, &"[".repeat(1000)]
        {
            assert!(scan(json, &mut CacheMarks::default()).is_err(), "{json}");
        }
    }
}
