//! Events, read a page at a time.

use offshoot_model::Event;

use crate::StoreError;

/// Events in one page. Whoever turns a page holds up others for that long (in SQLite the log cannot be carried over
/// while it is looked at), so it is some milliseconds' worth.
pub(crate) const PAGE: usize = 2048;

/// One page: an event, or why it cannot be read.
pub(crate) type Page = Vec<Result<Event, StoreError>>;

/// Turns pages as they are wanted. `turn` returns at most [`PAGE`] events after the numbered one.
pub(crate) struct Pages<F> {
    turn: F,
    after: u64,
    page: std::vec::IntoIter<Result<Event, StoreError>>,
    /// Whether another page may follow this one.
    more: bool,
}

impl<F: FnMut(u64) -> Result<Page, StoreError>> Pages<F> {
    pub(crate) fn new(after: u64, turn: F) -> Self {
        Self { turn, after, page: Page::new().into_iter(), more: true }
    }
}

impl<F: FnMut(u64) -> Result<Page, StoreError>> Iterator for Pages<F> {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 && self.more {
            let page = (self.turn)(self.after).unwrap_or_else(|error| vec![Err(error)]);
            self.more = page.len() == PAGE;
            self.page = page.into_iter();
        }
        let next = self.page.next()?;
        match &next {
            Ok(event) => self.after = event.seq,
            // Whatever stands after an event that cannot be read does not follow what was read before it.
            Err(_) => (self.more, self.page) = (false, Page::new().into_iter()),
        }
        Some(next)
    }
}
