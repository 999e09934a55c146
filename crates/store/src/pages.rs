//! Events, read a page at a time.

use std::panic;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use offshoot_model::Event;

use crate::StoreError;
use crate::page::Page;

/// Events in one page. Reading a page holds up others for that long (in SQLite the log cannot be carried over
/// while it is looked at), so it is some milliseconds' worth.
pub(crate) const PAGE: usize = 2048;

/// Pages that are read before they are wanted. More would be memory for nothing: reading takes longer than most that is
/// done with a page.
const AHEAD: usize = 2;

/// Turns pages as they are wanted. `turn` knows where it is, and returns the next [`PAGE`] events.
///
/// A reader of more than one page is served by another thread, which is a page or two ahead: in a large record half
/// of the time goes into reading it, and the other half into what is done with it.
pub(crate) struct Pages<F> {
    source: Source<F>,
    page: Page,
}

enum Source<F> {
    /// The first page: most records have no other.
    Beginning(F),
    /// The second is to be read.
    Second(F),
    Ahead(Ahead),
    /// There was no thread to be had.
    Here(F),
    End,
}

/// A thread that reads. Dropped, it ends with the page that it is at.
struct Ahead {
    pages: Option<Receiver<Page>>,
    reader: Option<JoinHandle<()>>,
}

impl<F: FnMut() -> Result<Page, StoreError> + Send + 'static> Pages<F> {
    pub(crate) fn new(turn: F) -> Self {
        Self { source: Source::Beginning(turn), page: Page::default() }
    }

    fn turn(&mut self) -> Option<Page> {
        let here = |mut turn: F, next: fn(F) -> Source<F>| {
            let page = read(&mut turn);
            let next = if page.more { next(turn) } else { Source::End };
            (page, next)
        };
        let (page, next) = match std::mem::replace(&mut self.source, Source::End) {
            Source::Beginning(turn) => here(turn, Source::Second),
            Source::Second(turn) => match Ahead::start(turn) {
                Ok(mut ahead) => (ahead.next()?, Source::Ahead(ahead)),
                Err(turn) => here(turn, Source::Here),
            },
            Source::Ahead(mut ahead) => (ahead.next()?, Source::Ahead(ahead)),
            Source::Here(turn) => here(turn, Source::Here),
            Source::End => return None,
        };
        self.source = next;
        Some(page)
    }
}

impl<F: FnMut() -> Result<Page, StoreError> + Send + 'static> Iterator for Pages<F> {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 {
            self.page = self.turn()?;
        }
        self.page.next()
    }
}

impl Ahead {
    /// Gives `turn` back where no thread can be started.
    fn start<F: FnMut() -> Result<Page, StoreError> + Send + 'static>(turn: F) -> Result<Self, F> {
        let (begin, begun) = sync_channel::<F>(1);
        let (tx, pages) = sync_channel(AHEAD);
        let reader = thread::Builder::new().name("offshoot-pages".to_owned()).spawn(move || {
            let Ok(mut turn) = begun.recv() else { return };
            loop {
                let page = read(&mut turn);
                let more = page.more;
                // The reader may be gone.
                if tx.send(page).is_err() || !more {
                    break;
                }
            }
        });
        match reader {
            Ok(reader) => {
                begin.send(turn).map_err(|back| back.0)?;
                Ok(Self { pages: Some(pages), reader: Some(reader) })
            }
            Err(_) => Err(turn),
        }
    }

    /// None after the last.
    fn next(&mut self) -> Option<Page> {
        let page = self.pages.as_ref()?.recv().ok();
        if page.is_none()
            && let Some(Err(panic)) = self.reader.take().map(JoinHandle::join)
        {
            // The reader must not take this for the end.
            panic::resume_unwind(panic);
        }
        page
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // First it hears that the reader is gone, then it is waited for.
        self.pages = None;
        if let Some(reader) = self.reader.take() {
            // The last page is not needed any more, nor an error of reading it.
            let _ = reader.join();
        }
    }
}

fn read(turn: &mut impl FnMut() -> Result<Page, StoreError>) -> Page {
    turn().unwrap_or_else(|error| Page::of([Err(error)], false))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use offshoot_model::{ContentHash, EventKind, RootId, RunId, Timestamp};

    use super::*;

    /// A record of so many events, in which a place may be damaged, and how many pages of it were read.
    fn record(length: u64, damaged: Option<u64>) -> (Events, Arc<AtomicU64>) {
        let turned = Arc::new(AtomicU64::new(0));
        let (count, mut at) = (Arc::clone(&turned), 0);
        let turn = move || {
            count.fetch_add(1, Ordering::Relaxed);
            let from = at;
            at = length.min(from + PAGE as u64);
            let events = (from..at).map(|seq| event(seq, damaged));
            Ok(Page::of(events, at == from + PAGE as u64))
        };
        (Box::new(Pages::new(turn)), turned)
    }

    type Events = Box<dyn Iterator<Item = Result<Event, StoreError>>>;

    const ROOT: RootId = RootId::new(RunId::from_bytes([1; 16]));

    fn event(seq: u64, damaged: Option<u64>) -> Result<Event, StoreError> {
        match damaged {
            Some(damaged) if damaged == seq => {
                Err(StoreError::Missing { hash: ContentHash::of(b"") })
            }
            _ => Ok(Event {
                root: ROOT,
                seq,
                at: Timestamp::from_micros(seq),
                run: ROOT.run(),
                kind: EventKind::Starting,
            }),
        }
    }

    #[test]
    fn each_event_comes_once_and_in_order() {
        let page = PAGE as u64;
        for length in [0, 1, page - 1, page, page + 1, 3 * page, 7 * page + 5] {
            let (events, turned) = record(length, None);
            let seqs: Vec<u64> = events.map(|event| event.expect("none is damaged").seq).collect();
            assert_eq!(seqs, (0..length).collect::<Vec<_>>());
            assert_eq!(turned.load(Ordering::Relaxed), length / page + 1, "{length}");
        }
    }

    #[test]
    fn a_damaged_event_hides_no_other() {
        let length = 3 * PAGE as u64;
        let (events, _) = record(length, Some(length / 2));
        assert_eq!(events.filter(Result::is_ok).count() as u64, length - 1);
    }

    #[test]
    fn who_stops_early_is_not_read_to_for_ever() {
        let (mut events, turned) = record(1000 * PAGE as u64, None);
        events.nth(PAGE).expect("there are more").expect("none is damaged");
        drop(events);
        let turned = turned.load(Ordering::Relaxed);
        assert!(turned <= 3 + AHEAD as u64, "{turned} pages were read");
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_panic_is_not_an_end() {
        let mut pages = 0;
        let events = Pages::new(move || {
            pages += 1;
            assert!(pages < 3, "a bug");
            Ok(Page::of((0..PAGE as u64).map(|seq| event(seq, None)), true))
        });
        events.for_each(drop);
    }
}
