//! Results on their way up.

use offshoot_model::{DeliveryId, RunId};

use crate::findings::Deliveries;
use crate::run::{Run, State};

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It reached the parent; perhaps not for the first time.
    Over {
        /// Whether it says so.
        again: bool,
    },
    /// The parent was over.
    ToNobody,
}

/// Counts one delivery of this run's result; in words what is wrong with it.
pub(crate) fn check(
    counts: &mut Deliveries,
    run: RunId,
    child: &mut Run,
    parent: Option<State>,
    delivery: &DeliveryId,
    how: Handed,
) -> Result<(), String> {
    let expected = DeliveryId::new(&child.admitted.key, run);
    let before = child.handed.replace(how);
    match (before, how) {
        (_, Handed::ToNobody) => counts.to_nobody += 1,
        (None, _) => counts.results += 1,
        (Some(_), _) => counts.repeated += 1,
    }
    if *delivery != expected {
        return Err(format!("delivered as `{delivery}` instead of `{expected}`"));
    }
    if !child.is_over() {
        return Err("delivered before it ended".to_owned());
    }
    let wrong = match (how, parent) {
        (_, None) => "delivered to a parent that it does not have",
        (Handed::Over { .. }, Some(State::Ended)) => "delivered to a parent that is over",
        (Handed::Over { .. }, Some(State::Queued)) => "delivered to a parent that never started",
        // One that begins anew has forgotten what it asked for.
        (Handed::ToNobody, Some(state)) if !matches!(state, State::Ended | State::Interrupted) => {
            "undelivered although its parent is there"
        }
        _ => match (before, how) {
            (None, _) => return Ok(()),
            (Some(Handed::Over { .. }), Handed::Over { again: true }) => return Ok(()),
            (Some(Handed::Over { .. }), Handed::Over { again: false }) => {
                "delivered twice as if each were the first time"
            }
            (Some(Handed::Over { .. }), Handed::ToNobody) => "undelivered after it was delivered",
            (Some(Handed::ToNobody), _) => "handed over after it was given up",
        },
    };
    Err(wrong.to_owned())
}
