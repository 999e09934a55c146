//! The events that were told, for what is shown of one run, and for a replay.

use std::collections::HashMap;

use offshoot_model::{Event, EventKind, Payload, RunId, Timestamp};

/// All events, in the order in which they were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
    of: HashMap<RunId, Vec<u32>>,
}

/// Bytes of an answer or a task that are kept. More is never shown.
const LONGEST: usize = 4096;

impl History {
    pub(crate) fn push(&mut self, mut event: Event) {
        shorten(&mut event.kind);
        // Four billion events do not fit into memory.
        let at = u32::try_from(self.events.len()).expect("a position fits into 32 bits");
        self.of.entry(event.run).or_default().push(at);
        self.events.push(event);
    }

    /// The events of one run until a moment.
    pub(crate) fn of(&self, run: RunId, until: Timestamp) -> impl Iterator<Item = &Event> {
        let events = self.of.get(&run).into_iter().flatten();
        events.map(|at| &self.events[*at as usize]).filter(move |event| event.at <= until)
    }

    pub(crate) fn get(&self, at: u32) -> &Event {
        &self.events[at as usize]
    }

    /// The positions of all events by their moments. Events of one tree stay in their order, also where a clock was set back.
    pub(crate) fn by_moment(&self) -> Vec<(Timestamp, u32)> {
        let mut latest = HashMap::new();
        let mut order: Vec<(Timestamp, u32)> = (0..)
            .zip(&self.events)
            .map(|(at, event)| {
                let latest = latest.entry(event.root).or_insert(event.at);
                *latest = event.at.max(*latest);
                (*latest, at)
            })
            .collect();
        order.sort_unstable();
        order
    }
}

fn shorten(kind: &mut EventKind) {
    match kind {
        EventKind::Admitted(admitted) => {
            admitted.plan = None;
            cut(&mut admitted.task);
        }
        EventKind::Ended(ending) => {
            if let Some(output) = &mut ending.output {
                cut(output);
            }
        }
        EventKind::TurnEnded { answer: Some(answer), .. } => cut(answer),
        EventKind::Merged(merged) => cut(&mut merged.output),
        EventKind::Letter { text, .. } => cut(text),
        _ => {}
    }
}

fn cut(payload: &mut Payload) {
    let text = match payload {
        Payload::Text(text) => &**text,
        Payload::Json(json) => json.as_str(),
        Payload::Stored(_) => return,
    };
    if text.len() > LONGEST {
        *payload = Payload::text(format!("{}…", &text[..text.floor_char_boundary(LONGEST)]));
    }
}
