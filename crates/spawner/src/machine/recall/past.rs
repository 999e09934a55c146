//! The outcome of a piece that ended before its tree was read back.

use offshoot_model::{CancelledBy, Ending, Envelope, Payload, Reason};

use crate::machine::RunIndex;

/// The outcome of a piece in an earlier life of the tree, as far as it is held in memory.
#[derive(Debug)]
pub(crate) enum Past {
    /// The answer.
    Completed(Payload),
    /// The piece ended in another way.
    Failed(Box<Envelope>),
    /// The piece was cancelled because the answer stood without it.
    Unneeded,
    /// More than is held: the event of this number says it.
    OnRecord {
        /// The event.
        seq: u64,
        /// True if the piece failed.
        has_failed: bool,
    },
}

/// A piece whose end is among the effects.
pub(crate) struct EndedPiece {
    pub(crate) place: u32,
    pub(crate) run: RunIndex,
    /// True if it was being cancelled because the answer stood without it.
    pub(crate) unneeded: bool,
}

impl Past {
    /// Returns the outcome that the event of this number records, itself while there is room for it.
    pub(super) fn held(
        seq: u64,
        ending: &Ending,
        room: &mut u64,
        envelope: impl FnOnce() -> Envelope,
    ) -> Self {
        if ending.reason == (Reason::Cancelled { by: CancelledBy::EarlyAnswer }) {
            return Self::Unneeded;
        }
        match room.checked_sub(held_bytes(ending)) {
            Some(left) => {
                *room = left;
                Self::of(envelope())
            }
            None => Self::OnRecord { seq, has_failed: !ending.status().is_success() },
        }
    }

    /// Returns the outcome that this envelope describes.
    pub(crate) fn of(envelope: Envelope) -> Self {
        match envelope.into_result() {
            Ok(answer) => Self::Completed(answer),
            Err(envelope) => Self::Failed(envelope),
        }
    }

    /// Returns true if the piece has an answer.
    pub(super) fn has_answer(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::OnRecord { has_failed: false, .. })
    }

    /// Returns true if the piece failed.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Failed(_) | Self::OnRecord { has_failed: true, .. } => true,
            Self::Completed(_) | Self::Unneeded | Self::OnRecord { has_failed: false, .. } => false,
        }
    }
}

/// The number of bytes that an ending keeps in memory. An answer that is stored is only named.
fn held_bytes(ending: &Ending) -> u64 {
    let answer = match &ending.output {
        Some(Payload::Stored(_)) | None => 0,
        Some(at_hand) => at_hand.size(),
    };
    let said = ending.diagnostics.as_ref().map_or(0, String::len) as u64;
    match ending.status().is_success() {
        true => answer,
        false => answer + said + size_of::<Envelope>() as u64,
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{AgentId, RunId, SessionKey};

    use super::*;

    #[test]
    fn outcomes_are_held_while_there_is_room_for_them() {
        let check = |reason: Reason, bytes: u64| {
            let (output, diagnostics) = (Some(Payload::text("12345")), Some("why".to_owned()));
            let ending = Ending { output, diagnostics, ..Ending::of(reason) };
            let has_failed = !ending.status().is_success();
            let envelope = || {
                let key = SessionKey::parse("agent:main:run:1").expect("a key");
                Envelope::of(&ending, key, RunId::from_bytes([1; 16]), AgentId::main(), 0)
            };
            let mut room = bytes + 1;
            let held = Past::held(7, &ending, &mut room, envelope);
            assert_eq!((room, held.has_answer(), held.has_failed()), (1, !has_failed, has_failed));
            assert!(!matches!(held, Past::OnRecord { .. }));
            let mut room = bytes - 1;
            let on_record = Past::held(7, &ending, &mut room, envelope);
            assert!(
                matches!(on_record, Past::OnRecord { seq: 7, has_failed: it } if it == has_failed)
            );
            assert_eq!((room, on_record.has_failed()), (bytes - 1, has_failed));
        };
        check(Reason::Completed { exit_code: None }, 5);
        check(Reason::ExitCode { code: 1 }, 5 + 3 + size_of::<Envelope>() as u64);
    }
}
