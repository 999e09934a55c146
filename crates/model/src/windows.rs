//! The windows of quotas, as the services of a tree have last told of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Account, Event, EventKind, RootId, Timestamp};

/// The windows of all trees whose events were taken in.
#[derive(Clone, Debug, Default)]
pub struct Windows(Vec<(RootId, Window)>);

/// A window of a quota, and what was left of it when its service told so last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// The account.
    pub account: Account,
    /// The name of the window in the words of the service, such as `five_hour`.
    pub window: Arc<str>,
    /// The part that was left, in millionths.
    pub left: u32,
    /// The time at which the window begins anew.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub until: Timestamp,
}

impl Window {
    /// Returns the part that is used, from 0 to 1.
    pub fn used(&self) -> f64 {
        f64::from(MILLION.saturating_sub(self.left)) / f64::from(MILLION)
    }
}

const MILLION: u32 = 1_000_000;

impl Windows {
    /// Takes in one event. A wall uses up its window.
    pub fn apply(&mut self, event: &Event) {
        let (account, window, left, until) = match &event.kind {
            EventKind::QuotaSeen { account, window, left, until } => {
                (account, window, *left, until)
            }
            EventKind::Parked { account, window: Some(window), until, left } => {
                (account, window, left.unwrap_or(0), until)
            }
            _ => return,
        };
        let (account, window) = (account.clone(), Arc::clone(window));
        let seen = Window { account, window, left, until: *until };
        let is_it = |(root, it): &&mut (RootId, Window)| {
            *root == event.root && it.account == seen.account && it.window == seen.window
        };
        match self.0.iter_mut().find(is_it) {
            Some((_, known)) => *known = seen,
            None => self.0.push((event.root, seen)),
        }
    }

    /// Returns the windows of a tree that have not begun anew at this moment, in the order in which they were told of first.
    pub fn of(&self, root: RootId, now: Timestamp) -> impl Iterator<Item = &Window> {
        let is_open = move |(of, it): &&(RootId, Window)| *of == root && it.until > now;
        self.0.iter().filter(is_open).map(|(_, window)| window)
    }
}
