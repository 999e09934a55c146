//! The history of a session, from the record.

use std::sync::Arc;

use offshoot_door::{CallError, CallerKind, EntryKind, History, HistoryEntry, HistoryPage};
use offshoot_model::{Admitted, Ending, Event, EventKind, Payload, RootId, RunId, SessionKey};
use offshoot_spawner::Excerpt;
use offshoot_store::{Store, StoreError};

use super::searches::Gone;
use super::{TreeService, failed};

/// The number of entries that come at once where the request names none, and the most.
const ENTRIES: u32 = 100;
const MOST_ENTRIES: u32 = 1000;

/// As much of a text is shown.
const SHOWN: u64 = 4096;

impl TreeService {
    /// The lines of one session that the caller may see: its own, or one below it.
    pub(super) async fn history(
        &self,
        caller: CallerKind,
        asked: History,
    ) -> Result<HistoryPage, CallError> {
        let History { run: name, after, limit } = asked;
        let run = self.named(caller, "run", &name).await?;
        let limit = limit.unwrap_or(ENTRIES).clamp(1, MOST_ENTRIES) as usize;
        let (store, root) = (Arc::clone(self.agents.store()), self.agents.root());
        let read = move |_: &Gone| {
            let page = history(&*store, root, run, after.unwrap_or(0), limit);
            page.map_err(failed)
        };
        self.searches.read(caller, read).await
    }
}

/// Returns the history of a session after an event, from the record of its tree.
pub fn history(
    store: &dyn Store,
    root: RootId,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<HistoryPage, StoreError> {
    let mut entries = Vec::new();
    for event in store.events(root, after) {
        let event = event?;
        let Some(entry) = entry(store, run, &event)? else { continue };
        if entries.len() == limit {
            return Ok(HistoryPage { entries, more: true });
        }
        entries.push(entry);
    }
    Ok(HistoryPage { entries, more: false })
}

/// Returns the entry of an event for a session; none where the event says nothing about it.
fn entry(store: &dyn Store, run: RunId, event: &Event) -> Result<Option<HistoryEntry>, StoreError> {
    if event.run != run {
        return of_child(store, run, event);
    }
    let own = |kind, text| Some(written(event, kind, None, text));
    let by = |from: Option<RunId>, kind, payload: &Payload| -> Result<_, StoreError> {
        let from = from.map(|from| store.admitted(event.root, from)).transpose()?.flatten();
        Ok(Some(written(event, kind, from.map(|from| from.key), text(store, payload)?)))
    };
    Ok(match &event.kind {
        EventKind::Admitted(admitted) => by(admitted.parent, EntryKind::Task, &admitted.task)?,
        EventKind::Refused { .. } | EventKind::Waiting | EventKind::Merged(_) => {
            own(EntryKind::Request, event.kind.to_string())
        }
        EventKind::Ended(ending) => own(EntryKind::Answer, answer(store, ending)?),
        EventKind::TurnEnded { answer: Some(answer), .. } => {
            own(EntryKind::Answer, text(store, answer)?)
        }
        EventKind::Letter { from, text: letter } => by(*from, EntryKind::Message, letter)?,
        EventKind::Progress { text } | EventKind::Reported { text } => {
            own(EntryKind::Report, text.to_string())
        }
        // The usage of a run is in its outcome, and in `tree` while it runs.
        EventKind::Used { .. }
        | EventKind::RequestHeld { .. }
        | EventKind::RequestReserved { .. }
        | EventKind::RequestSettled { .. } => None,
        kind => own(EntryKind::Event, kind.to_string()),
    })
}

/// The entry of an event, of which another session may be the cause.
fn written(event: &Event, kind: EntryKind, from: Option<SessionKey>, text: String) -> HistoryEntry {
    HistoryEntry { seq: event.seq, at: event.at.to_string(), kind, from, text }
}

/// Returns the entry of a child's event: its admission and its end.
fn of_child(
    store: &dyn Store,
    run: RunId,
    event: &Event,
) -> Result<Option<HistoryEntry>, StoreError> {
    match &event.kind {
        EventKind::Admitted(admitted) if admitted.parent == Some(run) => {
            let Admitted { key, label, .. } = &**admitted;
            let label = label.as_ref().map(|label| format!(" `{label}`")).unwrap_or_default();
            let task = text(store, &admitted.task)?;
            let text = format!("asked for the child{label} {key}: {task}");
            Ok(Some(written(event, EntryKind::Request, None, text)))
        }
        EventKind::Ended(ending) => {
            let about = store.admitted(event.root, event.run)?;
            let Some(about) = about.filter(|about| about.parent == Some(run)) else {
                return Ok(None);
            };
            let text = answer(store, ending)?;
            Ok(Some(written(event, EntryKind::Result, Some(about.key), text)))
        }
        _ => Ok(None),
    }
}

/// Returns the end of a run and its answer, in words.
fn answer(store: &dyn Store, ending: &Ending) -> Result<String, StoreError> {
    let output = match &ending.output {
        Some(output) => text(store, output)?,
        None => String::new(),
    };
    let status = ending.status();
    if status.is_success() {
        return Ok(output);
    }
    let gap = if output.is_empty() { "" } else { "\n" };
    Ok(format!("{status}: {}{gap}{output}", ending.why()))
}

/// A payload as text: its beginning and its end, where it is large.
fn text(store: &dyn Store, payload: &Payload) -> Result<String, StoreError> {
    Ok(match Excerpt::of(store, payload, SHOWN)? {
        Excerpt::Whole(Payload::Text(text)) => text.to_string(),
        Excerpt::Whole(Payload::Json(json)) => json.as_str().to_owned(),
        Excerpt::Whole(Payload::Stored(value)) => format!("({} bytes)", value.size),
        Excerpt::Part { value, path, head, tail } => {
            let gap = format!("({} bytes in {})", value.size, path.display());
            if head.is_empty() { gap } else { format!("{head}\n… {gap} …\n{tail}") }
        }
    })
}
