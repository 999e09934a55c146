//! The decision who is calling. Pure.

use offshoot_model::{Refusal, RefusalCode, RunId};

use crate::{CallerWord, Peer};

/// The caller of a connection, for as long as it lasts.
#[derive(Clone, Debug)]
pub struct Caller {
    /// As whom.
    pub kind: CallerKind,
    /// The process that opened the connection.
    pub peer: Peer,
}

/// As whom a connection asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// A running agent: what it asks for is bounded by what its run may.
    Run(RunId),
    /// The person who owns the tree.
    Operator,
    /// A command of that person's which the supervisor itself has started, such as one that is told what happens. It may look and
    /// stop, and lets nothing more happen.
    OperatorCommand,
}

/// The ticket of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketFact {
    /// No ticket.
    Absent,
    /// The ticket of a run that is alive.
    Of(RunId),
    /// The ticket of no run, or of one that is over.
    Worthless,
}

/// Facts from the kernel about the process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerFacts {
    /// True if it belongs to the supervisor's own user.
    pub same_user: bool,
    /// True if its parents could be followed up to the first process. Of one that is gone nothing is known.
    pub known: bool,
    /// The run whose process it is, or is descended from: the nearest.
    pub descends_from: Option<RunId>,
    /// The run in whose session it is. As good as descent, also after its parents have ended: a session is inherited, and
    /// cannot be entered.
    pub in_session_of: Option<RunId>,
    /// The supervisor that it is descended from.
    pub supervised: Supervised,
    /// True if it is, or was started by, a command that this very supervisor runs for the operator, and no other supervisor stands
    /// in between.
    pub of_operator: bool,
}

/// The relation of a process to supervisors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    /// From none that is known.
    No,
    /// From this one.
    Here,
    /// From one that is not above this one; or from a process that one of them once found and that no run could be named
    /// for, whether that supervisor lives or not.
    Elsewhere,
}

/// Decides as whom a connection asks.
///
/// ```text
///  ticket    descended from   session of   supervised     asks as
///  any       another user, or a process that is gone      refused
///  worthless any              any          any            refused
///  of A      A                any          any            A
///  of A      B                any          any            refused
///  of A      no run           A            any            A            its parents have ended
///  of A      no run           B, none      any            refused
///  none      A                any          any            A
///  none      no run           A            any            A            its parents have ended
///  none      no run           none         here           a command of the operator's, where it is known as one
///  none      no run           none         yes            refused      it left its run
///  none      no run           none         no             the operator
/// ```
///
/// # Errors
///
/// The refusal `unknown_caller`, which ends the connection.
pub fn decide(ticket: TicketFact, peer: &PeerFacts) -> Result<CallerKind, Refusal> {
    if !peer.same_user {
        return Err(unknown(
            "this supervisor answers its own user only",
            "run the agent as the user of its supervisor",
        ));
    }
    if !peer.known {
        return Err(unknown(
            "the calling process cannot be identified",
            "call from a process that stays until it is answered and whose parents this machine shows",
        ));
    }
    match (ticket, peer.descends_from.or(peer.in_session_of)) {
        (TicketFact::Worthless, _) => Err(unknown(
            "the ticket is not, or no longer, that of a running agent",
            "use the ticket in OFFSHOOT_TICKET of the running agent, or none",
        )),
        (TicketFact::Of(run), Some(found)) if found == run => Ok(CallerKind::Run(run)),
        (TicketFact::Of(_), _) => Err(unknown(
            "the calling process does not belong to the run of its ticket",
            "call from a process that the agent itself has started",
        )),
        (TicketFact::Absent, Some(run)) => Ok(CallerKind::Run(run)),
        (TicketFact::Absent, None) if peer.supervised == Supervised::No => Ok(CallerKind::Operator),
        (TicketFact::Absent, None) if peer.supervised == Supervised::Here && peer.of_operator => {
            Ok(CallerKind::OperatorCommand)
        }
        (TicketFact::Absent, None) => Err(unknown(
            "the calling process was started below a supervisor, and belongs to no run of this one",
            "call from a process that the agent itself has started, with its ticket",
        )),
    }
}

impl CallerKind {
    /// The word on the wire.
    pub const fn word(self) -> CallerWord {
        match self {
            Self::Run(_) => CallerWord::Run,
            Self::Operator | Self::OperatorCommand => CallerWord::Operator,
        }
    }

    /// The run, where it is one.
    pub const fn run(self) -> Option<RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::Operator | Self::OperatorCommand => None,
        }
    }
}

impl PeerFacts {
    /// All that is known of a process that is gone.
    pub(crate) const fn unknown(same_user: bool) -> Self {
        Self {
            same_user,
            known: false,
            descends_from: None,
            in_session_of: None,
            supervised: Supervised::No,
            of_operator: false,
        }
    }
}

fn unknown(message: &str, hint: &str) -> Refusal {
    Refusal::new(RefusalCode::UnknownCaller, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn lineage_comes_from_the_process_and_never_from_the_ticket_alone() {
        let a = RunId::from_uuid(Uuid::from_u128(1));
        let b = RunId::from_uuid(Uuid::from_u128(2));
        let (any_run, any_place) =
            ([None, Some(a), Some(b)], [Supervised::No, Supervised::Here, Supervised::Elsewhere]);
        let cases =
            |descends: &[Option<RunId>], sessions: &[Option<RunId>], places: &[Supervised]| {
                let mut cases = Vec::new();
                for &descends_from in descends {
                    for &in_session_of in sessions {
                        for &supervised in places {
                            let (same_user, known) = (true, true);
                            cases.extend([false, true].map(|of_operator| PeerFacts {
                                same_user,
                                known,
                                descends_from,
                                in_session_of,
                                supervised,
                                of_operator,
                            }));
                        }
                    }
                }
                cases
            };
        #[track_caller]
        fn check(ticket: TicketFact, cases: &[PeerFacts], expected: Option<CallerKind>) {
            for facts in cases {
                let found = decide(ticket, facts);
                match &found {
                    Ok(kind) => assert_eq!(Some(*kind), expected, "{ticket:?} {facts:?}"),
                    Err(refusal) => {
                        assert_eq!(refusal.code, RefusalCode::UnknownCaller);
                        assert_eq!(expected, None, "{ticket:?} {facts:?}");
                    }
                }
            }
        }
        use TicketFact::{Absent, Of, Worthless};
        let run_a = Some(CallerKind::Run(a));
        // Another user, or a process that could not be found: refused, whatever else is true.
        for ticket in [Absent, Worthless, Of(a)] {
            for facts in cases(&any_run, &any_run, &any_place) {
                check(ticket, &[PeerFacts { same_user: false, ..facts }], None);
                check(ticket, &[PeerFacts { known: false, ..facts }], None);
            }
        }
        // A ticket that belongs to no run.
        check(Worthless, &cases(&any_run, &any_run, &any_place), None);
        // A ticket and the right process; the wrong one; one whose parents have ended.
        check(Of(a), &cases(&[Some(a)], &any_run, &any_place), run_a);
        check(Of(a), &cases(&[Some(b)], &any_run, &any_place), None);
        check(Of(a), &cases(&[None], &[Some(a)], &any_place), run_a);
        check(Of(a), &cases(&[None], &[Some(b), None], &any_place), None);
        // No ticket: descended from a run.
        check(Absent, &cases(&[Some(a)], &any_run, &any_place), run_a);
        // No ticket: in the session of one; or below a supervisor, and from no run.
        check(Absent, &cases(&[None], &[Some(a)], &any_place), run_a);
        let below = cases(&[None], &[None], &any_place[1..]);
        let is_command =
            |facts: &PeerFacts| facts.of_operator && facts.supervised == Supervised::Here;
        let (commands, others): (Vec<_>, Vec<_>) = below.into_iter().partition(is_command);
        check(Absent, &others, None);
        check(Absent, &commands, Some(CallerKind::OperatorCommand));
        // No ticket and not below anything.
        check(Absent, &cases(&[None], &[None], &any_place[..1]), Some(CallerKind::Operator));
    }
}
