//! A page of the record.
//!
//! Rows are read by one thread, and what is done with the events is done by another. The text of a row is parsed by the second:
//! each does half of the work, and no memory that one takes for an event is given back by the other, which makes both wait.

use std::collections::VecDeque;
use std::sync::Arc;

use offshoot_model::{Event, EventKind, RootId, RunId, SessionKey, Timestamp};

use crate::StoreError;

/// Events that follow one another.
#[derive(Debug, Default)]
pub(crate) struct Page {
    entries: VecDeque<Entry>,
    /// The texts of rows, one behind the other in the order of the entries.
    text: String,
    /// The beginning of the next entry's text.
    at: usize,
    /// True if another page follows.
    pub(crate) more: bool,
}

/// A row, as it stands in the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) place: Place,
    /// The event as JSON.
    pub(crate) body: &'a str,
    /// The name of the event's kind. It stands in the body too, as the key does: here both can be searched.
    pub(crate) kind: &'a str,
    /// The address of an admitted run.
    pub(crate) key: Option<&'a str>,
}

/// The parts of an event that have columns of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) root: RootId,
    pub(crate) seq: u64,
    pub(crate) run: RunId,
    pub(crate) at: Timestamp,
}

/// An event as it stands in the record; and why it is not what was recorded, where it is not.
pub(crate) type Found = (Result<Event, StoreError>, Option<StoreError>);

#[derive(Debug)]
enum Entry {
    Event(Found),
    Text { place: Place, body: usize, kind: usize, key: Option<usize>, fault: Option<u64> },
}

impl Page {
    /// A page of these events.
    pub(crate) fn of(
        events: impl IntoIterator<Item = Result<Event, StoreError>>,
        more: bool,
    ) -> Self {
        let entries = events.into_iter().map(|event| Entry::Event((event, None))).collect();
        Self { entries, more, ..Self::default() }
    }

    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: Result<Event, StoreError>, fault: Option<StoreError>) {
        self.entries.push_back(Entry::Event((event, fault)));
    }

    /// Adds a row whose text is parsed when it is taken. Where it is known that it is not what was recorded, `fault` is the number
    /// of the event that should stand there.
    pub(crate) fn push_text(&mut self, row: Stored<'_>, fault: Option<u64>) {
        let Stored { place, body, kind, key } = row;
        [body, kind, key.unwrap_or_default()].iter().for_each(|text| self.text.push_str(text));
        let (body, kind, key) = (body.len(), kind.len(), key.map(str::len));
        self.entries.push_back(Entry::Text { place, body, kind, key, fault });
    }

    /// Takes the next event out.
    pub(crate) fn pop(&mut self) -> Option<Found> {
        let (place, body, kind, key, fault) = match self.entries.pop_front()? {
            Entry::Event(found) => return Some(found),
            Entry::Text { place, body, kind, key, fault } => (place, body, kind, key, fault),
        };
        let mut next = |length: usize| {
            let from = self.at;
            self.at += length;
            &self.text[from..self.at]
        };
        let stored = Stored { place, body: next(body), kind: next(kind), key: key.map(&mut next) };
        Some(stored.found(fault))
    }
}

/// Gives the events, with the reason in place of one that is not what was recorded.
impl Iterator for Page {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (event, fault) = self.pop()?;
        Some(match fault {
            Some(fault) => event.and(Err(fault)),
            None => event,
        })
    }
}

impl Stored<'_> {
    /// The event. Where it is known already that it is not what was recorded, `fault` is the number of the event that should stand
    /// there.
    pub(crate) fn found(&self, fault: Option<u64>) -> Found {
        let Self { place: Place { root, seq, run, at }, body, kind, key } = *self;
        let parsed: EventKind = match serde_json::from_str(body) {
            Ok(parsed) => parsed,
            Err(error) => {
                let source = Arc::new(error);
                return (Err(StoreError::Unreadable { root, seq, source }), None);
            }
        };
        // The text is what counts.
        let fits = kind == parsed.name() && key == key_of(&parsed).map(SessionKey::as_str);
        let fault = fault.or((!fits).then_some(seq));
        let fault = fault.map(|seq| StoreError::Tampered { root, seq });
        (Ok(Event { root, seq, at, run, kind: parsed }), fault)
    }
}

/// The address of the run that an event admits.
pub(crate) fn key_of(kind: &EventKind) -> Option<&SessionKey> {
    match kind {
        EventKind::Admitted(admitted) => Some(&admitted.key),
        _ => None,
    }
}
