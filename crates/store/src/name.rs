//! Names of context variables as names of files.
//!
//! Any text of up to 200 characters becomes one plain file name, and different names become different files:
//! letters and digits of ASCII, `-`, `_` and `.` stand for themselves, every other byte is written `%20`. So `a b` and
//! `a_b` differ, there is never a separator, and a leading dot is written `%2E`, so that nothing is hidden and nothing
//! is `.` or `..`.
//!
//! JSON values are files of another shape and end in `.json`; a raw value that would, has its last dot written `%2E`.
//!
//! 200 characters can be 2400 bytes once written, and a file name may have 255. A long one keeps its beginning, and
//! then `%~` with half of the BLAKE3 hash of the whole name: 128 bits, so that two that collide will not be met by
//! accident, nor on purpose without 2^64 attempts.

use offshoot_model::{ContentHash, ValueKind};

use crate::StoreError;

/// The longest name of a variable, in characters.
pub const NAME_LIMIT: usize = 200;

/// The length of an encoded name beyond which its end is replaced by a hash. With the extension it stays below 255 bytes, and
/// leaves room for a suffix when the file is copied.
const WHOLE_LIMIT: usize = 200;
/// The part of a longer name that is kept for people.
const KEPT: usize = 150;

const EXTENSION: &str = ".json";

/// The name of the file in which a run sees a variable.
///
/// ```
/// use offshoot_model::ValueKind;
/// use offshoot_store::file_name;
///
/// assert_eq!(file_name("data", ValueKind::Json)?, "data.json");
/// assert_eq!(file_name("my log.txt", ValueKind::Text)?, "my%20log.txt");
/// assert_eq!(file_name("../../etc/passwd", ValueKind::Text)?, "%2E.%2F..%2Fetc%2Fpasswd");
/// # Ok::<(), offshoot_store::StoreError>(())
/// ```
pub fn file_name(name: &str, kind: ValueKind) -> Result<String, StoreError> {
    let length = name.chars().count();
    if length > NAME_LIMIT {
        return Err(StoreError::NameTooLong { length });
    }
    let mut encoded = encode(name);
    if is_wrapped(kind) {
        encoded.push_str(EXTENSION);
    } else if let Some(stem) = encoded.strip_suffix(EXTENSION) {
        encoded = format!("{stem}%2Ejson");
    }
    Ok(encoded)
}

/// True if a run sees a value of this kind wrapped as `{"ref": …, "value": …}`.
pub(crate) fn is_wrapped(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Json | ValueKind::Result)
}

fn encode(name: &str) -> String {
    if name.is_empty() {
        // No escape is a lone percent sign.
        return "%".to_owned();
    }
    let mut encoded = String::with_capacity(name.len());
    let mut kept = 0;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => encoded.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        if encoded.len() <= KEPT {
            kept = encoded.len();
        }
    }
    if encoded.len() > WHOLE_LIMIT {
        encoded.truncate(kept);
        let hash = ContentHash::of(name.as_bytes()).to_string();
        encoded.push_str("%~");
        encoded.push_str(&hash[..32]);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(name: &str, kind: ValueKind, expected: &str) {
        assert_eq!(file_name(name, kind).expect("it is short enough"), expected);
    }

    #[test]
    fn names_become_files() {
        use ValueKind::{Bytes, Json, Result, Text};
        check("data", Text, "data");
        check("data", Bytes, "data");
        check("data", Json, "data.json");
        check("data", Result, "data.json");
        check("data.json", Text, "data%2Ejson");
        check("data.json", Json, "data.json.json");
        check("a b", Text, "a%20b");
        check("a_b", Text, "a_b");
        check("a%20b", Text, "a%2520b");
        check("", Text, "%");
        check("", Json, "%.json");
        check(".", Text, "%2E");
        check("..", Text, "%2E.");
        check("/", Text, "%2F");
        check("a/../b", Text, "a%2F..%2Fb");
        check("\0\n", Text, "%00%0A");
        check("é", Text, "%C3%A9");
        check(".json", Text, "%2Ejson");
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_differs_at_its_end() {
        let names = ["é".repeat(200), "é".repeat(199) + "è", "x".repeat(200), "🦀".repeat(200)];
        let files: Vec<_> =
            names.iter().map(|name| file_name(name, ValueKind::Json).unwrap()).collect();
        for (at, file) in files.iter().enumerate() {
            assert!(file.len() <= 255, "{file}");
            assert!(!files[..at].contains(file), "{file}");
        }
        // An escape is never cut in the middle.
        assert_eq!(files[0].split_once("%~").unwrap().0, "%C3%A9".repeat(25));
        assert!(file_name(&"x".repeat(201), ValueKind::Text).is_err());
    }

    fn any_name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab ./%_2EF~]{0,6}",
            "[aé/🦀.]{0,200}",
            any::<String>().prop_map(|name| name.chars().take(200).collect()),
            Just("..".to_owned()),
            "[ab]{0,2}(\\.json|%2Ejson|\\.|%)?",
        ]
    }

    fn any_kind() -> impl Strategy<Value = ValueKind> {
        prop_oneof![Just(ValueKind::Text), Just(ValueKind::Json)]
    }

    proptest! {
        #[test]
        fn different_names_are_different_files(
            a in (any_name(), any_kind()),
            b in (any_name(), any_kind()),
        ) {
            let file = |(name, kind): &(String, ValueKind)| file_name(name, *kind).unwrap();
            prop_assert_eq!(file(&a) == file(&b), a == b);
        }

        #[test]
        fn no_name_leaves_the_folder(name in any_name(), kind in any_kind()) {
            let file = file_name(&name, kind).unwrap();
            prop_assert!(!file.is_empty() && file.len() <= 255);
            prop_assert!(!file.contains(['/', '\0']) && !file.starts_with('.'));
        }
    }
}
