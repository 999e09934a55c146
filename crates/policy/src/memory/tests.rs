//! Tables of the wait for memory.

use super::*;

const MIB: u64 = 1 << 20;

fn run(number: u128) -> RunId {
    RunId::from_bytes(number.to_be_bytes())
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_000_000_000 + millis * 1_000)
}

/// A tree that keeps a tenth.
fn memory() -> Memory {
    let mut memory = Memory::default();
    memory.keep(Fraction::from_millionths(100_000).expect("a tenth"));
    memory
}

/// A computer of 10,000 MiB.
fn host(available_mib: u64, stalled: Option<u32>) -> HostMemory {
    HostMemory { total: 10_000 * MIB, available: available_mib * MIB, stalled }
}

fn ask(memory: &mut Memory, millis: u64) -> Gate {
    memory.gate(&AgentId::main(), 600 * MIB, at(millis))
}

fn short(available: u64, reserved: u64, stalled: Option<u32>) -> Gate {
    let [available, reserved, kept] = [available, reserved, 1_000].map(|mib| mib * MIB);
    Gate::Short(MemoryShortage { available, reserved, kept, stalled })
}

#[test]
fn for_a_run_that_waits_nothing_is_reserved_beside_what_it_has() {
    let mut memory = memory();
    memory.started(run(1), &AgentId::main(), 600 * MIB);
    memory.read(host(1_700, None), Some(&[]), at(0));
    assert_eq!(ask(&mut memory, 0), short(1_700, 1_200, None));
    memory.rests(run(1), true);
    assert_eq!(ask(&mut memory, 0), Gate::Look { measure: false }, "there may be enough now");
    memory.read(host(1_700, None), Some(&[]), at(0));
    assert_eq!(ask(&mut memory, 0), Gate::Open);
    memory.read(host(1_700, None), Some(&[(run(1), 600 * MIB)]), at(0));
    memory.rests(run(1), false);
    let measure = Gate::Look { measure: true };
    assert_eq!(ask(&mut memory, 0), measure, "its process may have gone, and comes back");
    memory.read(host(1_700, None), Some(&[(run(1), 0)]), at(0));
    assert_eq!(ask(&mut memory, 0), short(1_700, 1_200, None));
}

#[test]
fn a_start_waits_where_less_than_is_kept_would_be_left() {
    let check = |live: u64, available, stalled, expected: Gate| {
        let mut memory = memory();
        for number in 0..live {
            memory.started(run(number.into()), &AgentId::main(), 600 * MIB);
        }
        assert_eq!(ask(&mut memory, 0), Gate::Look { measure: false }, "nothing is known");
        memory.read(host(available, stalled), None, at(0));
        assert_eq!(ask(&mut memory, 0), expected, "{live} {available} {stalled:?}");
    };
    let measure = Gate::Look { measure: true };
    check(0, 1_600, None, Gate::Open);
    check(0, 1_599, None, short(1_599, 600, None));
    check(1, 2_200, None, Gate::Open);
    // It may be that the live one has grown to its figure already.
    check(1, 2_199, None, measure);
    check(3, 3_400, None, Gate::Open);
    check(3, 3_399, Some(2_000), measure);
    check(3, 9_000, Some(2_000), Gate::Open);
    check(3, 9_000, Some(2_001), short(9_000, 2_400, Some(2_001)));
    check(0, 0, Some(10_000), short(0, 600, Some(10_000)));
}

#[test]
fn a_run_that_has_grown_is_reserved_nothing_more_for() {
    let check = |resident: u64, available, expected: Gate| {
        let mut memory = memory();
        memory.started(run(1), &AgentId::main(), 600 * MIB);
        memory.read(host(available, None), Some(&[(run(1), resident * MIB)]), at(0));
        assert_eq!(ask(&mut memory, 0), expected, "{resident} {available}");
    };
    check(0, 2_200, Gate::Open);
    check(0, 2_199, short(2_199, 1_200, None));
    check(400, 1_800, Gate::Open);
    check(400, 1_799, short(1_799, 800, None));
    check(600, 1_600, Gate::Open);
    check(5_000, 1_600, Gate::Open);
    check(5_000, 1_599, short(1_599, 600, None));
}

#[test]
fn a_tree_is_short_from_the_first_run_that_waits_until_something_changes() {
    let mut memory = memory();
    assert!(memory.is_kept());
    assert!(!memory.is_short(), "nothing is known");
    memory.read(host(9_000, None), None, at(0));
    assert_eq!((ask(&mut memory, 0), memory.is_short()), (Gate::Open, false));
    memory.read(host(10, None), None, at(0));
    assert!(!memory.is_short(), "none has asked");
    assert_eq!((ask(&mut memory, 0), memory.is_short()), (short(10, 600, None), true));
    memory.read(host(9_000, None), None, at(1));
    assert!(!memory.is_short());
}

#[test]
fn each_start_is_reserved_for_before_the_next() {
    let mut memory = memory();
    memory.read(host(2_900, None), Some(&[]), at(0));
    let mut started = 0;
    while ask(&mut memory, 0) == Gate::Open {
        started += 1;
        memory.started(run(started), &AgentId::main(), 600 * MIB);
    }
    assert_eq!(started, 3, "1,900 MiB may be taken");
    assert_eq!(ask(&mut memory, 0), short(2_900, 2_400, None));
}

#[test]
fn a_reading_holds_for_a_moment_and_a_wait_until_something_changes() {
    let mut memory = memory();
    memory.read(host(9_000, None), None, at(0));
    assert_eq!(ask(&mut memory, 100), Gate::Open);
    assert_eq!(ask(&mut memory, 101), Gate::Look { measure: false });
    memory.read(host(10, None), None, at(200));
    let waits = short(10, 600, None);
    assert_eq!([0, 1_000, 100_000].map(|later| ask(&mut memory, 200 + later)), [waits; 3]);
    memory.forget_reading();
    assert_eq!(ask(&mut memory, 200), Gate::Look { measure: false });
    memory.started(run(1), &AgentId::main(), 0);
    memory.read(host(10, None), None, at(200));
    assert_eq!(ask(&mut memory, 200), waits);
    memory.ended(run(1));
    assert_eq!(ask(&mut memory, 200), Gate::Look { measure: false }, "it gave memory back");
}

#[test]
fn the_end_of_a_run_takes_no_memory_away() {
    let mut memory = memory();
    for number in 1..=2 {
        memory.started(run(number), &AgentId::main(), 600 * MIB);
    }
    memory.read(host(2_800, None), None, at(0));
    assert_eq!(ask(&mut memory, 0), Gate::Open, "1,800 are reserved, and 1,000 stay");
    memory.started(run(3), &AgentId::main(), 600 * MIB);
    memory.ended(run(1));
    assert_eq!(ask(&mut memory, 0), Gate::Open, "the same holds with less that is reserved");
    memory.started(run(4), &AgentId::main(), 600 * MIB);
    assert_eq!(ask(&mut memory, 0), Gate::Look { measure: false }, "it may have left more");
    memory.read(host(2_800, None), None, at(0));
    assert_eq!(ask(&mut memory, 0), Gate::Look { measure: true });
    // It ends while the runs are measured.
    memory.ended(run(4));
    memory.started(run(5), &AgentId::main(), 600 * MIB);
    memory.read(host(2_800, None), Some(&[]), at(0));
    assert_eq!(ask(&mut memory, 0), Gate::Look { measure: false });
    memory.read(host(3_400, None), None, at(0));
    assert_eq!(ask(&mut memory, 0), Gate::Open);
}

#[test]
fn after_three_runs_the_agent_has_a_figure_of_its_own() {
    let check = |peaks: &[u64], expected: Option<u64>| {
        let mut memory = memory();
        for (run, peak) in (1..).map(run).zip(peaks) {
            memory.started(run, &AgentId::main(), 600);
            memory.read(host(9_000, None), Some(&[(run, *peak)]), at(0));
            // It shrinks before its end, which does not count.
            memory.read(host(9_000, None), Some(&[(run, 1)]), at(0));
            memory.ended(run);
        }
        assert_eq!(memory.figure(&AgentId::main()), expected, "{peaks:?}");
        assert_eq!(memory.figure(&AgentId::parse("other").expect("an id")), None);
    };
    check(&[], None);
    check(&[40, 50], None);
    check(&[40, 70, 50], Some(70));
    let most: Vec<u64> = (1..=20).collect();
    check(&most, Some(19));
    let more: Vec<u64> = (1..=100).collect();
    // Of the last 64, from 37 to 100, the 61st.
    check(&more, Some(97));
}

#[test]
fn runs_that_were_never_measured_say_nothing_of_their_agent() {
    let mut memory = memory();
    for run in (1..=5).map(run) {
        memory.started(run, &AgentId::main(), 600);
        memory.ended(run);
    }
    assert_eq!(memory.figure(&AgentId::main()), None);
}

#[test]
fn where_nothing_is_kept_nothing_is_asked() {
    let mut memory = Memory::default();
    memory.keep(Fraction::from_millionths(0).expect("nothing"));
    assert!(!memory.is_kept());
    memory.started(run(1), &AgentId::main(), u64::MAX);
    assert_eq!(ask(&mut memory, 0), Gate::Open);
    assert!(memory.live.is_empty());
}

proptest::proptest! {
    /// The sum that is kept is that of all live runs, whatever happens to them in which order.
    #[test]
    fn the_sum_of_what_is_to_come_is_that_of_the_live_runs(
        steps in proptest::collection::vec((0_u8..5, 0_u128..4, proptest::num::u64::ANY), 0..60)
    ) {
        let mut memory = memory();
        for (step, number, bytes) in steps {
            let id = run(number);
            match step {
                0 => memory.started(id, &AgentId::main(), bytes),
                1 => memory.rests(id, true),
                2 => memory.rests(id, false),
                3 => memory.read(host(5_000, None), Some(&[(id, bytes)]), at(0)),
                _ => memory.ended(id),
            }
            let sum: u128 = memory.live.values().map(|live| u128::from(live.to_come())).sum();
            proptest::prop_assert_eq!(memory.to_come, sum);
        }
    }
}
