use offshoot_model::{InputRange, RefusalCode, RunId};

use super::super::PieceNeed;
use super::*;

/// Pieces that read the answers of those at these places, in this order.
fn pieces(reads: &[Option<u32>]) -> Vec<Piece> {
    let piece = |read: &Option<u32>| {
        let need = |place| PieceNeed { name: "before".into(), place };
        let needs = read.map(need).into_iter().collect();
        Piece { needs, reads_need: read.is_some(), ..Piece::task("x") }
    };
    reads.iter().map(piece).collect()
}

/// A piece that was over before: with an answer, or cancelled because none was needed.
fn over(place: u32, completed: bool) -> FanEvent {
    let past = match completed {
        true => Past::Completed(offshoot_model::Payload::text("1")),
        false => Past::Unneeded,
    };
    FanEvent::Over { place, run: RunId::from_bytes([1; 16]), past }
}

#[test]
fn the_outcome_of_a_chain_is_that_of_its_last_piece_or_of_the_first_failure() {
    /// Tells these, and expects these chains to be told of, with the piece that failed.
    #[track_caller]
    fn check(reads: &[Option<u32>], told: &[(u32, bool)], expected: &[(u32, Option<u32>)]) {
        let mut chains = Chains::of(&pieces(reads)).expect("chains").expect("there are some");
        let mut found = Vec::new();
        for &(place, completed) in told {
            if let Some(FanEvent::Over { place, .. }) = chains.outcome(over(place, completed)) {
                found.push((place, chains.failed_at(place)));
            }
        }
        assert_eq!(found, expected);
    }
    let two_of_two = [None, Some(0), None, Some(2)];
    let all = [(0, true), (2, true), (3, true), (1, true)];
    check(&two_of_two, &all, &[(1, None), (0, None)]);
    check(&two_of_two, &[(0, false), (1, false)], &[(0, Some(1))]);
    check(&two_of_two, &[(2, true), (3, false)], &[(1, Some(2))]);
    // Stages one after the other in the request, and a piece on its own.
    let by_stage = [None, None, None, Some(0), Some(1), Some(3)];
    check(&by_stage, &[(0, true), (3, true), (5, true)], &[(0, None)]);
    check(&by_stage, &[(1, true), (4, false), (2, true)], &[(1, Some(2)), (2, None)]);
}

#[test]
fn pieces_without_chains_have_none() {
    assert!(Chains::of(&pieces(&[None, None])).expect("no chains").is_none());
}

#[test]
fn what_is_no_chain_is_refused() {
    let check = |pieces: Vec<Piece>, expected: &str| match Chains::of(&pieces) {
        Err(SpawnerError::Refused(refusal)) => {
            assert_eq!(refusal.code, RefusalCode::InvalidRequest);
            assert!(refusal.message.ends_with(expected), "{}", refusal.message);
        }
        other => panic!("{other:?}"),
    };
    check(pieces(&[None, Some(0), Some(0)]), "and is not the only one");
    let mut many = pieces(&[None, None, Some(0)]);
    many[2].needs.push(PieceNeed { name: "other".into(), place: 1 });
    check(many, "and does not need exactly one");
    let mut runs = pieces(&[None, Some(0)]);
    runs[1].on_need_failed = OnNeedFailed::Run;
    check(runs, "and starts without it");
    let mut input = pieces(&[None, Some(0)]);
    let path = std::sync::Arc::new("/in".into());
    input[1].input = Some(InputRange { path, offset: 0, length: 1, header: 0, hash: None });
    check(input, "and has another input");
}
