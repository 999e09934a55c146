//! The number of connections, and to which party each belongs.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_model::RunId;
use parking_lot::Mutex;

use super::Limits;
use crate::CallerKind;

/// The connections that are open. All clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionSlots(Arc<Mutex<HashMap<Holder, usize>>>);

/// A place of one connection, given back when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: ConnectionSlots,
    holder: Holder,
}

/// For whom connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// The processes of a run.
    Run(RunId),
    /// Processes below a supervisor that belong to no run as far as their parents tell, and those that cannot be seen.
    Stray,
    /// Processes that no supervisor has started: the operator's.
    Outside,
}

impl ConnectionSlots {
    /// Takes a place; the error says why there is none.
    pub(super) fn take(&self, holder: Holder, limits: &Limits) -> Result<ConnectionSlot, String> {
        let mut held = self.0.lock();
        let all: usize = held.values().sum();
        let most = match holder {
            Holder::Outside => limits.connections,
            Holder::Run(_) | Holder::Stray => limits.connections.saturating_sub(limits.reserved),
        };
        if all >= most {
            return Err(format!("the supervisor has {all} connections already"));
        }
        enter(&mut held, holder, limits)?;
        Ok(ConnectionSlot { slots: self.clone(), holder })
    }

    /// True if no place is left but those of the operator.
    pub(super) fn are_scarce(&self, limits: &Limits) -> bool {
        let all: usize = self.0.lock().values().sum();
        all >= limits.connections.saturating_sub(limits.reserved)
    }
}

impl ConnectionSlot {
    /// Counts the connection for the caller that it turned out to be; the error says why that has no place left.
    pub(super) fn belongs_to(&mut self, caller: CallerKind, limits: &Limits) -> Result<(), String> {
        let holder = match caller {
            CallerKind::Run(run) => Holder::Run(run),
            CallerKind::Operator | CallerKind::OperatorCommand => Holder::Outside,
        };
        if holder != self.holder {
            let mut held = self.slots.0.lock();
            enter(&mut held, holder, limits)?;
            leave(&mut held, self.holder);
            self.holder = holder;
        }
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        leave(&mut self.slots.0.lock(), self.holder);
    }
}

fn enter(held: &mut HashMap<Holder, usize>, holder: Holder, limits: &Limits) -> Result<(), String> {
    let most = match holder {
        Holder::Run(_) | Holder::Stray => limits.connections_per_run,
        Holder::Outside => usize::MAX,
    };
    let count = held.get(&holder).copied().unwrap_or(0);
    if count >= most {
        let whose =
            if holder == Holder::Stray { "processes of no known run have" } else { "this run has" };
        return Err(format!("{whose} {most} connections already"));
    }
    held.insert(holder, count + 1);
    Ok(())
}

fn leave(held: &mut HashMap<Holder, usize>, holder: Holder) {
    match held.get_mut(&holder) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(held.remove(&holder)),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn places_are_bounded_for_each_and_some_are_left_for_the_operator() {
        let [a, b] = [1, 2].map(|number| RunId::from_uuid(Uuid::from_u128(number)));
        let limits =
            Limits { connections: 10, connections_per_run: 4, reserved: 2, ..Limits::default() };
        let slots = ConnectionSlots::default();
        let take = |holder, many| {
            let taken: Vec<_> = (0..many).map_while(|_| slots.take(holder, &limits).ok()).collect();
            assert!(taken.len() == many || slots.take(holder, &limits).is_err());
            taken
        };
        let mut strays = take(Holder::Stray, 5);
        assert_eq!(strays.len(), 4);
        let of_a = take(Holder::Run(a), 3);
        // One that turns out to be of the run is counted for it, and one more is not let in.
        strays[0].belongs_to(CallerKind::Run(a), &limits).unwrap();
        let full = strays[1].belongs_to(CallerKind::Run(a), &limits).unwrap_err();
        assert_eq!(full, "this run has 4 connections already");
        assert!(slots.take(Holder::Run(a), &limits).is_err());
        // Eight in all, and two for the operator.
        let of_b = take(Holder::Run(b), 3);
        assert_eq!((of_a.len(), of_b.len()), (3, 1));
        let operators = take(Holder::Outside, 3);
        assert_eq!(operators.len(), 2);
        let full = slots.take(Holder::Outside, &limits).unwrap_err();
        assert_eq!(full, "the supervisor has 10 connections already");
        drop((strays, of_a, of_b, operators));
        assert!(slots.0.lock().is_empty());
    }
}
