use super::*;
use offshoot_model::CancelledBy;

const LIMITS: BreakerLimits = BreakerLimits { failures: 3, cooldown: Duration::from_secs(60) };

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Duration::from_secs(seconds))
}

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 16])
}

fn fault() -> Reason {
    Reason::RuntimeError { message: "overloaded".into(), retryable: true }
}

fn completed() -> Reason {
    Reason::Completed { exit_code: None }
}

/// A breaker that opened at second 0.
fn open() -> Breaker {
    let mut breaker = Breaker::default();
    for number in 0..3 {
        breaker.ended(run(number), &fault(), LIMITS, at(0));
    }
    breaker
}

#[test]
fn only_runtime_faults_in_a_row_open_it() {
    let check = |reasons: &[Reason], opens: bool| {
        let mut breaker = Breaker::default();
        let turns =
            reasons.iter().filter_map(|reason| breaker.ended(run(1), reason, LIMITS, at(0)));
        assert_eq!(turns.last().is_some(), opens, "{reasons:?}");
        assert_eq!(breaker.gate(at(0)) != Gate::Closed, opens, "{reasons:?}");
    };
    let exit = Reason::ExitCode { code: 1 };
    let cancel = Reason::Cancelled { by: CancelledBy::Parent };
    let timeout = Reason::Timeout { seconds: 1 };
    let budget = Reason::Budget { unit: "tokens".into(), request: None };
    let cannot_start = Reason::CannotStart { message: "not found".into() };
    let panic = Reason::PluginPanic { message: "index out of bounds".into() };
    check(&[fault(), fault()], false);
    check(&[fault(), cannot_start, panic], true);
    check(&[fault(), fault(), completed(), fault()], false);
    check(&[fault(), fault(), exit.clone(), fault()], false);
    check(&[fault(), cancel.clone(), fault(), timeout.clone(), fault()], true);
    check(&[exit.clone(), exit.clone(), exit], false);
    check(&[timeout.clone(), timeout.clone(), timeout], false);
    check(&[cancel.clone(), cancel.clone(), cancel], false);
    check(&[budget.clone(), budget.clone(), budget], false);
}

#[test]
fn zero_failures_switch_it_off() {
    let mut breaker = Breaker::default();
    let off = BreakerLimits { failures: 0, ..LIMITS };
    for _ in 0..100 {
        assert_eq!(breaker.ended(run(1), &fault(), off, at(0)), None);
    }
    assert_eq!(breaker.gate(at(0)), Gate::Closed);
}

#[test]
fn after_the_cool_down_one_probe_starts() {
    let mut breaker = open();
    assert_eq!(breaker.start(run(9), at(59)), Gate::Open { until: at(60) });
    assert_eq!(breaker.start(run(9), at(60)), Gate::HalfOpen);
    assert_eq!(breaker.start(run(10), at(60)), Gate::Probing { probe: run(9) });
    assert_eq!(breaker.start(run(9), at(61)), Gate::HalfOpen, "in another attempt it is the probe");
}

#[test]
fn a_probe_that_works_closes_it() {
    let mut breaker = open();
    breaker.start(run(9), at(60));
    assert_eq!(breaker.ended(run(9), &completed(), LIMITS, at(61)), Some(BreakerChange::Closed));
    assert_eq!(breaker.ended(run(10), &fault(), LIMITS, at(62)), None, "counts from zero again");
}

#[test]
fn a_probe_that_fails_opens_it_again_at_once() {
    let mut breaker = open();
    breaker.start(run(9), at(60));
    let turn = breaker.ended(run(9), &fault(), LIMITS, at(61));
    assert_eq!(turn, Some(BreakerChange::Opened { faults: LIMITS.failures + 1, until: at(121) }));
    assert_eq!(breaker.gate(at(120)), Gate::Open { until: at(121) });
}

#[test]
fn a_probe_that_is_stopped_leaves_its_place_to_the_next() {
    let mut breaker = open();
    breaker.start(run(9), at(60));
    let cancelled = Reason::Cancelled { by: CancelledBy::Operator };
    assert_eq!(breaker.ended(run(9), &cancelled, LIMITS, at(61)), Some(BreakerChange::ProbeAgain));
    assert_eq!(breaker.start(run(10), at(61)), Gate::HalfOpen);
}

#[test]
fn a_probe_that_waits_for_others_leaves_its_place_to_the_next() {
    let mut breaker = open();
    breaker.start(run(9), at(60));
    assert_eq!(breaker.start(run(10), at(61)), Gate::Probing { probe: run(9) });
    breaker.rests(run(10));
    assert!(breaker.is_probe(run(9)), "another one is the probe");
    breaker.rests(run(9));
    assert!(!breaker.is_probe(run(9)));
    assert_eq!(breaker.start(run(10), at(61)), Gate::HalfOpen);
    // Both decide.
    let again = breaker.ended(run(9), &fault(), LIMITS, at(62));
    assert_eq!(again, Some(BreakerChange::Opened { faults: LIMITS.failures + 1, until: at(122) }));
    assert_eq!(breaker.ended(run(10), &completed(), LIMITS, at(63)), None, "from before");
    breaker.start(run(11), at(122));
    breaker.rests(run(11));
    assert_eq!(breaker.start(run(12), at(122)), Gate::HalfOpen);
    assert_eq!(breaker.ended(run(11), &completed(), LIMITS, at(123)), Some(BreakerChange::Closed));
    assert!(!breaker.is_probe(run(12)), "a closed one has no probe");
}

#[test]
fn a_probe_that_waits_and_is_stopped_leaves_the_decision_to_the_others() {
    let mut breaker = open();
    for number in [9, 10] {
        assert_eq!(breaker.start(run(number), at(60)), Gate::HalfOpen);
        breaker.rests(run(number));
    }
    let cancelled = Reason::Cancelled { by: CancelledBy::Operator };
    assert_eq!(breaker.ended(run(9), &cancelled, LIMITS, at(61)), Some(BreakerChange::ProbeAgain));
    assert_eq!(breaker.ended(run(10), &completed(), LIMITS, at(62)), Some(BreakerChange::Closed));
}

#[test]
fn another_supervisor_has_no_probe() {
    let [a, b] = ["a", "b"].map(|id| AgentId::parse(id).expect("the text is no id"));
    let mut breakers = Breakers::default();
    for number in 0..3 {
        breakers.ended(&a, run(number), &fault(), LIMITS, at(0));
    }
    let probes = |breakers: &Breakers| {
        [(&a, 9), (&a, 8), (&b, 9)].map(|(agent, number)| breakers.is_probe(agent, run(number)))
    };
    assert_eq!(probes(&breakers), [false; 3]);
    assert_eq!(breakers.start(&a, run(9), at(60)), Gate::HalfOpen);
    assert_eq!(probes(&breakers), [true, false, false]);
    breakers.rests(&a, run(9));
    assert_eq!((probes(&breakers), breakers.gate(&a, at(60))), ([false; 3], Gate::HalfOpen));
    assert_eq!(breakers.start(&a, run(8), at(60)), Gate::HalfOpen);
    breakers.interrupt();
    assert_eq!((probes(&breakers), breakers.gate(&a, at(60))), ([false; 3], Gate::HalfOpen));
    // Those that it had watched decide nothing any more, whether they waited or worked.
    for number in [8, 9] {
        assert_eq!(breakers.ended(&a, run(number), &completed(), LIMITS, at(61)), None);
    }
}

#[test]
fn what_ran_before_it_opened_decides_nothing() {
    let mut breaker = open();
    assert_eq!(breaker.ended(run(7), &completed(), LIMITS, at(1)), None);
    assert_eq!(breaker.gate(at(1)), Gate::Open { until: at(60) });
    breaker.start(run(9), at(60));
    assert_eq!(breaker.ended(run(8), &fault(), LIMITS, at(61)), None);
    assert_eq!(breaker.gate(at(61)), Gate::Probing { probe: run(9) });
}

#[test]
fn kinds_of_agents_fail_apart() {
    let mut breakers = Breakers::default();
    let (a, b) = (
        AgentId::parse("a").expect("the text is no id"),
        AgentId::parse("b").expect("the text is no id"),
    );
    for number in 0..3 {
        breakers.ended(&a, run(number), &fault(), LIMITS, at(0));
        breakers.ended(&b, run(number), &completed(), LIMITS, at(0));
    }
    assert_eq!(breakers.start(&a, run(9), at(1)), Gate::Open { until: at(60) });
    assert_eq!(breakers.start(&b, run(9), at(1)), Gate::Closed);
    assert_eq!(breakers.gate(&a, at(60)), Gate::HalfOpen);
}
