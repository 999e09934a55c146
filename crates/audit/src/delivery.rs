//! Results on their way up.

use offshoot_model::{DeliveryId, RunId};

use crate::findings::Deliveries;
use crate::run::{Run, SlotState};

/// The fate of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// The result reached the parent, perhaps not for the first time.
    Over {
        /// True if the record says that it is a repetition.
        again: bool,
    },
    /// The parent was over.
    Undelivered,
    /// The result was on its way, and the parent had stopped waiting when it came.
    NotTaken,
}

/// Counts one delivery of this run's result; in words what is wrong with it.
pub(crate) fn check(
    counts: &mut Deliveries,
    run: RunId,
    child: &mut Run,
    parent: Option<SlotState>,
    delivery: &DeliveryId,
    how: Handed,
) -> Result<(), String> {
    let expected = DeliveryId::new(&child.admitted.key, run);
    let is_there =
        parent.is_some_and(|state| !matches!(state, SlotState::Ended | SlotState::Interrupted));
    let how = match (child.handed, how) {
        (Some(Handed::Over { .. }), Handed::Undelivered) if is_there => Handed::NotTaken,
        _ => how,
    };
    let before = child.handed.replace(how);
    match (before, how) {
        (_, Handed::Undelivered) => counts.undelivered += 1,
        (_, Handed::NotTaken) => {
            counts.results = counts.results.saturating_sub(1);
            counts.undelivered += 1;
        }
        (Some(Handed::NotTaken), _) => {
            counts.undelivered = counts.undelivered.saturating_sub(1);
            counts.results += 1;
            counts.repeated += 1;
        }
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
        (Handed::Over { .. }, Some(SlotState::Ended)) => "delivered to a parent that is over",
        (Handed::Over { .. }, Some(SlotState::Queued)) => {
            "delivered to a parent that never started"
        }
        // One that begins anew has forgotten what it asked for.
        (Handed::Undelivered, Some(_)) if is_there => "undelivered although its parent is there",
        _ => match (before, how) {
            (None, _) | (_, Handed::NotTaken) => return Ok(()),
            (Some(Handed::Over { .. } | Handed::NotTaken), Handed::Over { again: true }) => {
                return Ok(());
            }
            (Some(Handed::Over { .. } | Handed::NotTaken), Handed::Over { again: false }) => {
                "delivered twice as if each were the first time"
            }
            (Some(Handed::Over { .. } | Handed::NotTaken), Handed::Undelivered) => {
                "undelivered after it was delivered"
            }
            (Some(Handed::Undelivered), _) => "handed over after it was given up",
        },
    };
    Err(wrong.to_owned())
}
