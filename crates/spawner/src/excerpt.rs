//! A result as far as it goes into an answer: whole while it is small, head and tail where it is large.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{Payload, ValueKind, VariableRef};
use offshoot_store::{Store, StoreError};

/// The part of a result that travels with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// All of it: text or JSON, never a reference.
    Whole(Payload),
    /// Beginning and end of a result that is larger than the limit, or no text.
    Part {
        /// The value.
        value: VariableRef,
        /// The file of the value, to read the rest. Shared by all readers: not to be written to.
        path: PathBuf,
        /// The beginning of the value. Empty where the value is no text.
        head: String,
        /// The end of the value. Empty where the value is no text.
        tail: String,
    },
}

impl Excerpt {
    /// The excerpt of a result within so many bytes, of which a quarter is for its end. Reads no more than that, so a
    /// result of a gibibyte costs no more than a small one. A result that has no file yet and is larger than the limit gets one. Reads
    /// and writes files: call it on a thread that may block.
    ///
    /// # Errors
    ///
    /// Fails if the value's file cannot be read.
    pub fn of(store: &dyn Store, payload: &Payload, limit: u64) -> Result<Self, StoreError> {
        let copied = match payload.at_hand() {
            Err(value) => Ok(*value),
            Ok(_) if payload.size() <= limit => return Ok(Self::Whole(payload.clone())),
            Ok(text) => store.put_copy(payload.kind(), &text.as_bytes().into()),
        };
        // It is at hand, and where nothing can be written the whole is better than none of it.
        let Ok(value) = &copied else { return Ok(Self::Whole(payload.clone())) };
        if value.size <= limit && value.kind != ValueKind::Bytes {
            let text = String::from_utf8(store.read(value)?);
            match (text, value.kind) {
                (Ok(text), ValueKind::Text) => return Ok(Self::Whole(Payload::text(text))),
                (Ok(text), _) if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() => {
                    let json = Payload::json(text).expect("it was parsed just now");
                    return Ok(Self::Whole(json));
                }
                (Ok(_) | Err(_), _) => {}
            }
        }
        let path = store.path(value)?;
        let (head, tail) = match value.kind {
            ValueKind::Bytes => (String::new(), String::new()),
            _ => ends(store, value, limit)?,
        };
        Ok(Self::Part { value: *value, path, head, tail })
    }
}

/// The beginning and the end of a value, cut between characters. They do not overlap.
fn ends(
    store: &dyn Store,
    value: &VariableRef,
    limit: u64,
) -> Result<(String, String), StoreError> {
    let mut file = store.open(value)?;
    let tail = (limit / 4).min(value.size);
    let head = (limit - tail).min(value.size - tail);
    let mut read = |from: u64, length: u64| {
        let mut bytes = Vec::with_capacity(length as usize);
        file.seek(SeekFrom::Start(from))?;
        (&mut file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let both = read(0, head).and_then(|head| Ok((head, read(value.size - tail, tail)?)));
    let (head, tail) = both.map_err(|error: std::io::Error| StoreError::Io {
        doing: "read",
        path: store.path(value).unwrap_or_default(),
        source: Arc::new(error),
    })?;
    Ok((before_a_cut(head), after_a_cut(&tail)))
}

/// The text without the character that was cut at its end.
fn before_a_cut(mut bytes: Vec<u8>) -> String {
    if let Err(error) = str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text without the rest of the character that was cut at its beginning.
fn after_a_cut(bytes: &[u8]) -> String {
    let is_rest = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let rest = bytes.iter().take(3).take_while(is_rest).count();
    String::from_utf8_lossy(&bytes[rest..]).into_owned()
}

#[cfg(test)]
mod tests {
    use offshoot_store::{DataFolder, MemoryStore, NewValue, SqliteStore};

    use super::*;

    async fn stored(kind: ValueKind, bytes: &[u8]) -> (MemoryStore, Payload) {
        let store = MemoryStore::new();
        let value = store.put(NewValue::bytes(kind, bytes)).await.expect("it is kept");
        (store, Payload::Stored(value))
    }

    /// A result that is at hand is handed over where no file can be made of it.
    #[test]
    fn where_nothing_can_be_written_a_result_at_hand_stays_whole() {
        let folder = DataFolder::temporary().expect("the system has room for a folder");
        let store = SqliteStore::open(&folder).expect("a record");
        let values = folder.path().join("blobs");
        std::fs::remove_dir(&values).expect("it is empty");
        std::fs::write(values, "no folder").expect("the folder is ours");
        let text = Payload::text("0123456789abcdef");
        let excerpt = Excerpt::of(&store, &text, 8).expect("it is at hand");
        assert_eq!(excerpt, Excerpt::Whole(text));
    }

    #[test]
    fn what_has_no_file_yet_keeps_to_the_limit_too() {
        let store = MemoryStore::new();
        for (payload, head, tail) in [
            (Payload::text("0123456789abcdef"), "012345", "ef"),
            (Payload::json("[1,2,3,4,5,6]".into()).expect("json"), "[1,2,3", "6]"),
        ] {
            let part = Excerpt::of(&store, &payload, 8).expect("it is kept");
            let Excerpt::Part { value, head: begin, tail: end, .. } = part else {
                panic!("{part:?}")
            };
            assert_eq!((value.size, &*begin, &*end), (payload.size(), head, tail));
            let whole = Excerpt::of(&store, &payload, payload.size()).expect("it is at hand");
            assert_eq!(whole, Excerpt::Whole(payload));
        }
    }

    #[tokio::test]
    async fn small_values_come_whole() {
        let (store, text) = stored(ValueKind::Text, b"twelve bytes").await;
        let whole = Excerpt::of(&store, &text, 12).expect("the value cannot be read");
        assert_eq!(whole, Excerpt::Whole(Payload::text("twelve bytes")));
        let (store, json) = stored(ValueKind::Result, b"{\"a\": 1}").await;
        let whole = Excerpt::of(&store, &json, 12).expect("the value cannot be read");
        assert_eq!(whole, Excerpt::Whole(Payload::json("{\"a\": 1}".into()).expect("json")));
    }

    #[tokio::test]
    async fn large_ones_come_as_head_and_tail_between_characters() {
        let text = "ä".repeat(50);
        for limit in 0..=100 {
            let (store, payload) = stored(ValueKind::Text, text.as_bytes()).await;
            match Excerpt::of(&store, &payload, limit).expect("the value cannot be read") {
                Excerpt::Whole(_) => assert_eq!(limit, 100),
                Excerpt::Part { head, tail, .. } => {
                    assert!((head.len() + tail.len()) as u64 <= limit);
                    assert!(head.len() as u64 + 2 > limit - limit / 4, "{limit}: {head}");
                    assert!(text.starts_with(&head) && text.ends_with(&tail), "{head} {tail}");
                }
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_text_is_named() {
        let (store, bytes) = stored(ValueKind::Bytes, &[0xff, 0xfe]).await;
        let excerpt = Excerpt::of(&store, &bytes, 100).expect("it is found");
        assert!(
            matches!(excerpt, Excerpt::Part { head, tail, .. } if head.is_empty() && tail.is_empty())
        );
    }
}
