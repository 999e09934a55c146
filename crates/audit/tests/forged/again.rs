//! Trees that were reopened: pieces that run again, and what may not be forged about them.

use std::time::Duration;

use offshoot_audit::{Audit, Rule};
use offshoot_model::{Admitted, Event, EventKind};
use offshoot_test_support::scenario;

use super::{nth, renumber};

#[test]
fn what_runs_again_is_counted_again() {
    #[track_caller]
    fn check(what: &str, forge: impl FnOnce(&mut Vec<Event>), expected: &[Rule]) {
        let [.., mut events] = scenario::trees();
        forge(&mut events);
        renumber(&mut events);
        let breaches = Audit::of(&events).breaches;
        let rules: Vec<Rule> = breaches.iter().map(|breach| breach.rule).collect();
        assert_eq!(rules, expected, "{what}: {breaches:#?}");
    }
    fn last_piece(events: &mut [Event]) -> &mut Admitted {
        let at = nth(events, "admitted", 3);
        match &mut events[at].kind {
            EventKind::Admitted(admitted) => admitted,
            _ => unreachable!("found by its name"),
        }
    }
    let first = |events: &[Event]| events[nth(events, "admitted", 1)].run;
    check("as it was", |_| (), &[]);
    check("does not say whose place it has", |it| last_piece(it).instead = None, &[Rule::States]);
    let another = |events: &mut Vec<Event>| last_piece(events).place = Some(2);
    check("another place", another, &[Rule::States]);
    let answered = |events: &mut Vec<Event>| {
        let first = first(events);
        let piece = last_piece(events);
        (piece.place, piece.instead) = (Some(0), Some(first));
    };
    check("instead of one that has an answer", answered, &[Rule::States]);
    let never = |events: &mut Vec<Event>| drop(events.remove(nth(events, "root_reopened", 0)));
    check("never reopened", never, &[Rule::Lineage, Rule::States]);
    let twice = |events: &mut Vec<Event>| {
        let at = nth(events, "root_reopened", 0);
        events.insert(at, events[at].clone());
    };
    check("reopened twice", twice, &[Rule::States]);
    let a_piece = |events: &mut Vec<Event>| {
        let piece = first(events);
        let at = nth(events, "root_reopened", 0);
        let again = Event { run: piece, ..events[at].clone() };
        events.insert(at, again);
    };
    check("a piece is reopened", a_piece, &[Rule::States]);
    let late = |events: &mut Vec<Event>| {
        let at = nth(events, "starting", 2);
        for event in &mut events[at..] {
            event.at = event.at.plus(Duration::from_secs(9_000));
        }
    };
    check("after the time that it was given", late, &[Rule::Time]);
}
