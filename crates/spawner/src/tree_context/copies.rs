//! Answers that were stored as values a short time ago: a run that is given one of them does not store it again.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_model::{ContentHash, Timestamp, ValueKind, VariableRef};
use parking_lot::Mutex;

/// The time for which a value counts as new. Those that no record names are removed by `prune` an hour after they were stored last.
const NEW: Duration = Duration::from_secs(900);

/// So many are remembered.
const MOST: usize = 1024;

/// Values of answers, and when each was stored.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<HashMap<ContentHash, Timestamp>>);

impl Copies {
    /// Takes in that a value was stored.
    pub(crate) fn made(&self, value: VariableRef, now: Timestamp) {
        let mut made = self.0.lock();
        if made.len() >= MOST {
            made.clear();
        }
        made.insert(value.hash, now);
    }

    /// Returns the value that these bytes are, if it was stored a short time ago.
    pub(crate) fn get(&self, kind: ValueKind, bytes: &[u8], now: Timestamp) -> Option<VariableRef> {
        let hash = ContentHash::of(bytes);
        let made = *self.0.lock().get(&hash)?;
        // After a clock that was set back nothing is known.
        let is_new = made <= now && now.since(made) < NEW;
        is_new.then_some(VariableRef { hash, size: bytes.len() as u64, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_known_for_a_while() {
        let copies = Copies::default();
        let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
        let value = |text: &str| VariableRef {
            hash: ContentHash::of(text.as_bytes()),
            size: text.len() as u64,
            kind: ValueKind::Text,
        };
        let get = |text: &str, now| copies.get(ValueKind::Text, text.as_bytes(), at(now));
        copies.made(value("a"), at(1_000));
        assert_eq!(get("a", 1_000), Some(value("a")));
        assert_eq!(get("a", 1_899), Some(value("a")));
        assert_eq!([get("a", 1_900), get("a", 999), get("b", 1_000)], [None; 3]);
        copies.made(value("a"), at(1_800));
        assert_eq!(get("a", 1_900), Some(value("a")));
        (0..MOST).for_each(|number| copies.made(value(&number.to_string()), at(1_900)));
        assert_eq!(get("a", 1_900), None, "they take no more room than this");
    }
}
