//! Events, read a page at a time.

use offshoot_model::Event;

use crate::StoreError;

/// Events in one page. Whoever turns a page holds up others for that long (in SQLite the log cannot be carried over
/// while it is looked at), so it is some milliseconds' worth.
pub(crate) const PAGE: usize = 2048;

/// One page: events, or why they cannot be read.
pub(crate) type Page = Vec<Result<Event, StoreError>>;

/// Turns pages as they are wanted. `turn` knows where it is, and returns the next [`PAGE`] events; fewer at the end.
pub(crate) struct Pages<F> {
    turn: F,
    page: std::vec::IntoIter<Result<Event, StoreError>>,
    /// Whether another page may follow this one.
    more: bool,
}

impl<F: FnMut() -> Result<Page, StoreError>> Pages<F> {
    pub(crate) fn new(turn: F) -> Self {
        Self { turn, page: Page::new().into_iter(), more: true }
    }
}

impl<F: FnMut() -> Result<Page, StoreError>> Iterator for Pages<F> {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 && self.more {
            let page = (self.turn)().unwrap_or_else(|error| vec![Err(error)]);
            self.more = page.len() == PAGE;
            self.page = page.into_iter();
        }
        self.page.next()
    }
}
