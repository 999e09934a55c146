//! Observations from scripted records, and what they recommend.

use std::time::Duration;

use offshoot_delegation::{
    Advice, Because, Candidate, Choice, Decision, ENOUGH, Experience, Observation, Side,
    TreeObservations, Way, choose,
};
use offshoot_model::{
    AgentId, CancelledBy, Cost, Directly, EventKind, MicroUsd, Particulars, Reason, RunId, TaskType,
};
use offshoot_test_support::Timed;

fn a_type() -> TaskType {
    "validate".parse().expect("a type")
}

fn usd(micros: u64) -> Cost {
    Cost::known(MicroUsd::from_micros(micros))
}

fn typed(timed: &mut Timed, ms: u64, parent: RunId) -> RunId {
    let particulars = Particulars { task_type: Some(a_type()), ..Particulars::default() };
    timed.admit(ms, Some(parent), "scanner", |it| it.particulars = Some(Box::new(particulars)))
}

fn open(timed: &mut Timed, ms: u64, run: RunId, number: u32) {
    timed.say(ms, run, EventKind::ObservationOpened { number, task_type: a_type() });
}

fn close(timed: &mut Timed, ms: u64, run: RunId, number: u32, success: bool) {
    timed.say(ms, run, EventKind::ObservationClosed { number, success });
}

fn uses(timed: &mut Timed, ms: u64, run: RunId, micros: u64) {
    timed.say(ms, run, EventKind::Used { usage: Default::default(), cost: usd(micros) });
}

/// Each observation as way, agent, success, milliseconds and millionths of a dollar.
#[track_caller]
fn check(script: impl FnOnce(&mut Timed, RunId), expected: &[(Way, &str, bool, u64, Option<u64>)]) {
    let (mut timed, root) = Timed::tree(4, Some("exec"));
    timed.start(0, root);
    script(&mut timed, root);
    let mut tree = TreeObservations::default();
    timed.events.iter().for_each(|event| tree.apply(event));
    let found = tree.into_observations();
    let row = |it: &Observation| {
        assert_eq!(it.task_type, a_type());
        let usd = (it.cost.unknown_runs == 0).then_some(it.cost.known_usd.as_micros());
        (it.way, it.agent.to_string(), it.success, it.time.as_millis() as u64, usd)
    };
    let found: Vec<_> = found.iter().map(row).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|&(way, agent, success, ms, usd)| (way, agent.to_owned(), success, ms, usd))
        .collect();
    assert_eq!(found, expected);
}

const FAILED: Reason = Reason::ExitCode { code: 1 };

#[test]
fn a_delegated_run_with_a_type_is_an_observation_with_all_below_it() {
    check(
        |timed, root| {
            let run = typed(timed, 10, root);
            timed.start(30, run);
            let below = timed.child(40, run, "helper");
            timed.start(50, below);
            timed.end(70, below, Reason::Completed { exit_code: None }, usd(5));
            timed.end(110, run, Reason::Completed { exit_code: None }, usd(7));
            let other = timed.child(110, root, "helper");
            timed.complete(120, other);
        },
        &[(Way::Delegated, "scanner", true, 100, Some(12))],
    );
}

#[test]
fn an_end_that_says_nothing_of_the_task_is_no_observation() {
    let cancelled = Reason::Cancelled { by: CancelledBy::Operator };
    let rows: [(bool, Option<Reason>, Option<bool>); 5] = [
        (true, Some(FAILED), Some(false)),
        (true, Some(cancelled), None),
        (true, None, None),
        (false, Some(FAILED), None),
        (true, Some(Reason::Completed { exit_code: None }), Some(true)),
    ];
    for (started, reason, expected) in rows {
        let expected = expected.map(|success| (Way::Delegated, "scanner", success, 50, Some(0)));
        check(
            |timed, root| {
                let run = typed(timed, 0, root);
                if started {
                    timed.start(5, run);
                }
                if let Some(reason) = reason {
                    timed.end(50, run, reason, Cost::NONE);
                }
            },
            expected.as_slice(),
        );
    }
}

#[test]
fn a_direct_one_ends_with_its_closing_its_turn_or_its_run() {
    let directly = |success, ms, usd| (Way::Directly, "main", success, ms, usd);
    let turn = || EventKind::TurnEnded { answer: None, letters_taken: None };
    check(
        |timed, root| {
            uses(timed, 5, root, 100);
            open(timed, 10, root, 1);
            open(timed, 20, root, 2);
            uses(timed, 29, root, 130);
            close(timed, 30, root, 1, true);
            close(timed, 60, root, 2, false);
            open(timed, 70, root, 3);
            timed.say(90, root, turn());
            open(timed, 100, root, 4);
            timed.end(150, root, FAILED, usd(200));
        },
        &[
            directly(true, 20, Some(30)),
            directly(false, 40, Some(30)),
            directly(true, 20, Some(0)),
            directly(false, 50, Some(70)),
        ],
    );
    // What it asks a child for meanwhile is part of it, and what it asked for before is not.
    check(
        |timed, root| {
            let before = timed.child(0, root, "helper");
            open(timed, 10, root, 1);
            let within = timed.child(20, root, "helper");
            close(timed, 30, root, 1, true);
            timed.end(40, before, FAILED, usd(1));
            timed.end(40, within, FAILED, usd(2));
            timed.complete(50, root);
        },
        &[directly(true, 20, Some(2))],
    );
    // Nothing is known of the cost of an agent that reports it at its end alone.
    check(
        |timed, root| {
            open(timed, 10, root, 1);
            close(timed, 30, root, 1, true);
            timed.end(40, root, FAILED, usd(9));
        },
        &[directly(true, 20, None)],
    );
}

#[test]
fn a_direct_one_that_was_cut_off_is_none() {
    check(
        |timed, root| {
            open(timed, 10, root, 1);
            timed.again(20, root, None, None);
            timed.start(30, root);
            timed.complete(40, root);
        },
        &[],
    );
    check(
        |timed, root| {
            open(timed, 10, root, 1);
            timed.end(40, root, Reason::Cancelled { by: CancelledBy::Operator }, Cost::NONE);
        },
        &[],
    );
}

/// So many observations, of which so many succeeded, with this time and cost each.
fn side(observations: u64, succeeded: u64, ms: u64, micros: Option<u64>) -> Side {
    let median_usd = micros.map(MicroUsd::from_micros);
    Side { observations, succeeded, median_ms: Some(ms), median_usd }
}

#[test]
fn advice_needs_ten_on_both_sides_and_names_what_decides() {
    #[track_caller]
    fn check(directly: Side, delegated: Side, expected: Advice) {
        assert_eq!(Advice::of(&directly, &delegated), expected);
    }
    let unknown = |directly_missing, delegated_missing| Advice::Unknown {
        directly_missing,
        delegated_missing,
    };
    let prefer = |way, because| Advice::Prefer { way, because };
    check(Side::default(), Side::default(), unknown(ENOUGH, ENOUGH));
    check(side(9, 9, 2000, None), side(50, 50, 500, None), unknown(1, 0));
    check(side(10, 10, 2000, None), side(9, 9, 500, None), unknown(0, 1));
    let slow = side(10, 10, 2000, None);
    check(slow, side(10, 10, 500, None), prefer(Way::Delegated, Because::Time));
    check(side(10, 10, 500, None), slow, prefer(Way::Directly, Because::Time));
    // A tenth fewer that succeed is worth more than any time; less than that is chance.
    check(slow, side(10, 9, 5, None), prefer(Way::Directly, Because::Success));
    check(side(20, 19, 2000, None), side(20, 18, 5, None), prefer(Way::Delegated, Because::Time));
    check(side(11, 10, 27, None), side(10, 10, 200, None), prefer(Way::Directly, Because::Time));
    check(side(10, 0, 5, None), slow, prefer(Way::Delegated, Because::Success));
    // The cost decides between equal times, where both are known.
    let (cheap, dear) = (side(10, 10, 5, Some(1)), side(10, 10, 5, Some(2)));
    check(dear, cheap, prefer(Way::Delegated, Because::Cost));
    check(cheap, dear, prefer(Way::Directly, Because::Cost));
    check(cheap, side(10, 10, 5, None), prefer(Way::Directly, Because::Equal));
    check(cheap, cheap, prefer(Way::Directly, Because::Equal));
}

#[test]
fn numbers_are_those_of_a_type_by_agent_and_way() {
    let observation = |agent: &str, way, ms, cost| Observation {
        task_type: a_type(),
        agent: AgentId::parse(agent).expect("an id"),
        way,
        success: ms != 3000,
        time: Duration::from_millis(ms),
        cost,
    };
    let mut experience = Experience::default();
    experience.extend((1..=11).map(|n| observation("main", Way::Directly, 2000 + n, usd(n))));
    experience.extend((1..=8).map(|n| observation("a", Way::Delegated, 500, usd(n))));
    let unknown = [Cost::unknown(), usd(9)];
    experience.extend(unknown.map(|cost| observation("b", Way::Delegated, 3000, cost)));
    let summary = experience.of_type(&a_type()).expect("there are some");
    assert_eq!(summary.directly, side(11, 11, 2006, Some(6)));
    assert_eq!(summary.delegated, side(10, 8, 500, Some(5)));
    let agents: Vec<_> =
        summary.agents.iter().map(|it| (it.agent.as_str(), it.way, it.side)).collect();
    assert_eq!(
        agents,
        [
            ("a", Way::Delegated, side(8, 8, 500, Some(4))),
            ("b", Way::Delegated, side(2, 0, 3000, Some(9))),
            ("main", Way::Directly, side(11, 11, 2006, Some(6))),
        ]
    );
    assert_eq!(
        summary.to_string(),
        "do it directly: of the type `validate` more of them succeed (directly 11 of 11 succeeded, half within 2.0 s, half for at \
         most $0.000006; delegated 8 of 10 succeeded, half within 0.5 s, half for at most $0.000005)"
    );
    assert!(experience.of_type(&"other".parse().expect("a type")).is_none());
}

#[test]
fn a_choice_goes_by_enough_observations_and_names_their_numbers() {
    let ids = ["a", "b", "c"].map(|id| AgentId::parse(id).expect("an id"));
    /// Observations of an agent, so many, of which so many succeeded, in this time each.
    type Row = (&'static str, Way, u64, u64, u64);
    let decide = |task: &str, rows: &[Row]| -> Decision {
        let mut experience = Experience::default();
        for &(agent, way, count, succeeded, ms) in rows {
            experience.extend((0..count).map(|number| Observation {
                task_type: a_type(),
                agent: AgentId::parse(agent).expect("an id"),
                way,
                success: number < succeeded,
                time: Duration::from_millis(ms),
                cost: Cost::NONE,
            }));
        }
        let candidates =
            [(&ids[0], "For reviews"), (&ids[1], "For reviews"), (&ids[2], "For tests")];
        let candidates = candidates.map(|(agent, why)| Candidate { agent, description: None, why });
        let summary = experience.with(&a_type(), []);
        choose(task, candidates).learn(&summary, &ids)
    };
    #[track_caller]
    fn check(decision: &Decision, choice: Choice, learned: &str) {
        assert_eq!(decision.choice, choice);
        assert_eq!(decision.learned.as_deref(), Some(learned));
    }
    let agent = |at: usize| Choice::Agent(ids[at].clone());
    let tie = || Choice::Tie(vec![ids[0].clone(), ids[1].clone()]);
    let directly = ("main", Way::Directly, 10, 10, 2000);
    let of = |agent, ms| (agent, Way::Delegated, 10, 10, ms);

    let none = "no recommendation for `validate` yet: 10 more done directly and 10 more delegated are needed";
    check(&decide("test it", &[]), agent(2), none);
    check(&decide("review it", &[]), tie(), none);
    let nine = "no recommendation for `validate` yet: 0 more done directly and 1 more delegated are needed";
    check(&decide("test it", &[directly, ("c", Way::Delegated, 9, 0, 1)]), agent(2), nine);

    // Better done directly: whatever the words say.
    let slow = "of the type `validate` it takes less time (directly 10 of 10 succeeded, half within 2.0 s; delegated 10 of 10 \
                succeeded, half within 3.0 s)";
    let decision = decide("test it", &[directly, of("c", 3000)]);
    check(&decision, Choice::Directly(slow.to_owned()), &format!("do it directly: {slow}"));
    assert_eq!(decision.choice.agent(), Err((Directly::Learned, slow.to_owned())));
    assert_eq!(decision.scores.len(), 1, "the words are told all the same");

    // Better delegated: the words choose; where they do not, who has done best. The others are not asked.
    let fast = "delegate it: of the type `validate` it takes less time (directly 10 of 10 succeeded, half within 2.0 s; delegated 20 \
                of 20 succeeded, half within 5 ms)";
    let rows = [directly, of("b", 5), of("c", 5)];
    check(&decide("test it", &rows), agent(2), fast);
    let best = format!("{fast}; `b` has done best of those: 10 of 10 succeeded, half within 5 ms");
    check(&decide("review it", &rows), agent(1), &best);
    // None has a word in common, and two are equally good.
    check(&decide("translate it", &rows), Choice::NoMatch, fast);
    let rows =
        [directly, of("b", 5), ("c", Way::Delegated, 10, 8, 4), ("x", Way::Delegated, 30, 30, 1)];
    assert_eq!(decide("translate it", &rows).choice, agent(1));
    // Fewer than ten are not enough to stand out.
    let few = [directly, ("a", Way::Delegated, 9, 9, 5), ("b", Way::Delegated, 9, 9, 6)];
    assert_eq!(decide("review it", &few).choice, tie());
}
