//! The results of the scenario in which everything happens, merged in the order in which the runs ended.

use std::io;

use offshoot_merge::{Answer, Failure, Fold, MergeError, OnFailure, Strategy, Values};
use offshoot_model::{ContentHash, Envelope, Event, EventKind, RunStatus, Tree, VariableRef};
use offshoot_test_support::scenario;

struct Stored(Vec<u8>);

impl Values for Stored {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        assert_eq!(reference.hash, ContentHash::of(&self.0));
        Ok(Box::new(self.0.as_slice()))
    }
}

fn merge(strategy: Strategy, on_failure: OnFailure) -> Result<Answer, MergeError> {
    let events = scenario::everything();
    let tree = Tree::of(&events);
    let root = tree.roots().next().expect("the map");
    let pieces: Vec<_> = tree.children(root).collect();
    let mut fold = Fold::new(strategy, on_failure);
    for Event { run, kind, .. } in &events {
        let (EventKind::Ended(ending), Some(index)) =
            (kind, pieces.iter().position(|piece| piece.run == *run))
        else {
            continue;
        };
        let piece = pieces[index];
        let (session, agent) = (piece.key.clone(), piece.agent.clone());
        let envelope = Envelope::of(ending, session, *run, agent, piece.depth);
        let result = match &ending.output {
            Some(output) if ending.status() == RunStatus::Completed => Ok(output.clone()),
            _ => Err(Box::new(envelope)),
        };
        let key = piece.label.clone().expect("pieces have names");
        fold.push(index as u32, key, result);
    }
    fold.finish(pieces.len() as u32)
}

fn text(answer: &Answer) -> String {
    let mut out = Vec::new();
    answer
        .write_to(&mut out, &Stored(scenario::stored_result()))
        .expect("writing to memory failed");
    String::from_utf8(out).expect("text")
}

#[test]
fn failures_are_named() {
    let error = merge(Strategy::Concatenate, OnFailure::Fail).expect_err("three failed");
    let MergeError::PiecesFailed { failures, failed, total } = &error else { panic!("{error}") };
    let keys: Vec<&str> = failures.iter().map(|failure| &*failure.key).collect();
    assert_eq!((keys.as_slice(), *failed, *total), (["seven", "slow", "gone"].as_slice(), 3, 7));
    assert!(
        error
            .to_string()
            .starts_with("3 of 7 pieces did not complete, first seven: exited with code 7")
    );
}

#[test]
fn what_completed_is_merged_in_request_order() {
    let answer = merge(Strategy::Concatenate, OnFailure::Skip).expect("four completed");
    let stored = String::from_utf8(scenario::stored_result()).expect("text");
    let expected = ["12 lines", "{\"words\":[1,2]}", &stored, "no bill was sent"].join("\n---\n");
    assert_eq!(text(&answer), expected);
    assert_eq!(answer.len(), Some(expected.len() as u64));
    assert_eq!(answer.to_payload(), None);
    let statuses: Vec<RunStatus> =
        answer.failures().map(|failure: &Failure| failure.status).collect();
    assert_eq!(statuses, [RunStatus::Failed, RunStatus::TimedOut, RunStatus::Lost]);
}

#[test]
fn envelopes_are_values_where_asked() {
    let answer = merge(Strategy::Structured, OnFailure::Include).expect("all are in");
    let value: serde_json::Value = serde_json::from_str(&text(&answer)).expect("JSON");
    let object = value.as_object().expect("an object");
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(keys, ["README.md", "naïve/日本.txt", "big.log", "seven", "slow", "gone", "models"]);
    assert_eq!(value["seven"]["data"], "half an answer");
    assert_eq!(value["seven"]["partial"], true);
    assert_eq!(value["slow"]["error"]["code"], "timeout");
    assert_eq!(value["gone"]["status"], "lost");
}
