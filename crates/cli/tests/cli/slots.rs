//! Slots over real processes. That no cap was broken is read from the record, not believed.

use std::collections::BTreeSet;

use offshoot_test_support::fake_agent;
use serde_json::Value;

use crate::command::Place;

/// A tree of agents that ask for two children each, down to depth 3, and wait.
const TWO_EACH: &str = r#"if [ $OFFSHOOT_DEPTH -lt 3 ]; then
    "$OFFSHOOT" spawn x -- sh two.sh > /dev/null; "$OFFSHOOT" spawn x -- sh two.sh > /dev/null
    "$OFFSHOOT" wait
fi
echo $OFFSHOOT_DEPTH"#;

/// The slots of the only tree, from its record.
struct Slots {
    /// The most runs that held one at once, because it was handed to them.
    peak: usize,
    /// The number of times that a run continued without a slot, because its wait had ended without an answer.
    debts: usize,
    runs: usize,
}

impl Slots {
    /// Replays the record. A run may go on in debt, but none may start or be answered while all slots are taken.
    #[track_caller]
    fn of(place: &Place, cap: usize) -> Self {
        let listed = place.run(&["list", "--json"]).expect_code(0).json();
        let id = listed[0]["runId"].as_str().expect("the run has no id").to_owned();
        let events = place.run(&["events", &id, "--json"]).expect_code(0);
        let mut holding = BTreeSet::new();
        let mut slots = Self { peak: 0, debts: 0, runs: 0 };
        for event in events.stdout().lines() {
            let event: Value = serde_json::from_str(event).expect("a line is JSON");
            let run = event["run"].as_str().expect("every event is about a run").to_owned();
            match event["kind"]["type"].as_str().expect("every event has a kind") {
                "starting" => {
                    assert!(
                        holding.len() < cap,
                        "{run} starts while {} hold a slot",
                        holding.len()
                    );
                    holding.insert(run);
                    slots.runs += 1;
                    slots.peak = slots.peak.max(holding.len());
                }
                "returned" => {
                    slots.debts += usize::from(holding.len() >= cap);
                    holding.insert(run);
                }
                "waiting" | "ended" => drop(holding.remove(&run)),
                _ => {}
            }
        }
        assert!(holding.is_empty(), "all have ended");
        slots
    }
}

#[test]
fn one_slot_carries_a_whole_tree() {
    let place = Place::new();
    place.file("two.sh", TWO_EACH);
    let outcome = place.tree(&["--max-concurrent", "1"], "exec sh two.sh");
    assert_eq!(outcome.expect_code(0).stdout().split_whitespace().count(), 15);
    let slots = Slots::of(&place, 1);
    assert_eq!((slots.peak, slots.debts, slots.runs), (1, 0, 15));
}

#[test]
fn an_agent_deeper_in_the_tree_bounds_what_is_below_it() {
    let place = Place::new();
    place.file(
        "c.toml",
        "[agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
         [[agents.list]]\nid = \"team\"\nsubagents = { maxConcurrent = 1 }\n\
         [[agents.list]]\nid = \"late\"\nsubagents = { deadlineSeconds = 1 }\n",
    );
    let at_once = r#"at_once() { "$FAKE" ask spawn '{"task":"x","command":["true"],"queue":false}' | grep -oE 'runId|"busy"'; }"#;
    place.file("at-once.sh", format!("FAKE={}\n{at_once}", fake_agent().display()));
    // The only slot below the team is taken, which binds neither the team nor the root.
    place.file(
        "team.sh",
        r#". ./at-once.sh; mkfifo up down
           first=$("$OFFSHOOT" spawn first -- sh -c 'echo > up; read go < down; echo first')
           read go < up; at_once; "$OFFSHOOT" spawn second -- echo second > second
           echo > full; read go < checked; echo > down; "$OFFSHOOT" wait $first $(cat second)"#,
    );
    let script = r#". ./at-once.sh; mkfifo full checked
        "$OFFSHOOT" spawn --agent team x -- sh team.sh > team
        read go < full; at_once; echo > checked; "$OFFSHOOT" wait $(cat team)
        "$OFFSHOOT" spawn --wait --agent late x -- sh -c '
            . ./at-once.sh; slow=$("$OFFSHOOT" spawn --label slow x -- sleep 1000)
            "$OFFSHOOT" -q wait $slow > /dev/null 2>&1
            "$FAKE" ask spawn "{\"task\":\"x\",\"command\":[\"true\"]}" | grep -o "\"caller_ended\".*deadlineSeconds\""; echo went on'"#;
    let outcome = place.tree(&["--config", "c.toml"], script).expect_code(0);
    let text = outcome.stdout();
    let (team, late) = text.split_once("\"caller_ended\"").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(team, "runId\n\"busy\"\nfirst\nsecond\n");
    assert!(late.ends_with("subagents.deadlineSeconds\"\nwent on\n"), "{late}");
    let listed = place.run(&["list", "--all", "--json"]).json();
    let of = |label: &str| {
        let all = listed.as_array().expect("a list");
        all.iter().find(|run| run["label"] == label).expect("it was asked for")["status"].clone()
    };
    assert_eq!(of("slow"), "timed_out");
    let root = listed.as_array().expect("a list").iter().find(|run| run["depth"] == 0);
    let root = root.expect("the root")["runId"].as_str().expect("the run has no id");
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn five_orchestrators_of_five_share_four_slots() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-concurrent", "4"],
        r#"for one in 1 2 3 4 5; do
             "$OFFSHOOT" spawn $one -- sh -c '
               for two in 1 2 3 4 5; do "$OFFSHOOT" spawn $two -- cat > /dev/null; done; "$OFFSHOOT" wait' > /dev/null
           done
           "$OFFSHOOT" wait"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\n2\n3\n4\n5\n".repeat(5));
    let slots = Slots::of(&place, 4);
    assert_eq!((slots.debts, slots.runs), (0, 31));
    assert!(slots.peak >= 2, "nothing ran at the same time");
}

#[test]
fn a_wait_that_times_out_goes_on_in_debt_and_no_run_starts_until_it_is_paid() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-concurrent", "1"],
        r#"mkfifo over
           "$OFFSHOOT" spawn 1 -- sh -c 'echo > started; cat over; echo one' > /dev/null
           until [ -e started ]; do "$OFFSHOOT" -q wait --timeout 1 2>/dev/null; done
           "$OFFSHOOT" spawn 2 -- sh -c 'echo > second; echo two' > /dev/null
           "$OFFSHOOT" -q wait --timeout 0 2>/dev/null; echo $?
           [ -e second ] && echo "there was no slot for it"
           echo > over
           "$OFFSHOOT" wait | grep ."#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\none\ntwo\n");
    let slots = Slots::of(&place, 1);
    assert_eq!((slots.peak, slots.runs), (1, 3));
    assert!(slots.debts >= 1, "it went on before its child had ended");
}

#[test]
fn a_client_that_disconnects_goes_on_in_debt() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-concurrent", "1"],
        r#"mkfifo over started
           "$OFFSHOOT" spawn 1 -- sh -c 'echo > started; cat over; echo one' > /dev/null
           "$OFFSHOOT" wait > /dev/null 2>&1 & client=$!
           read started < started
           kill -9 $client; wait $client 2> /dev/null
           "$OFFSHOOT" spawn 2 -- echo two > /dev/null
           echo > over
           "$OFFSHOOT" wait | grep ."#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "one\ntwo\n");
    let slots = Slots::of(&place, 1);
    assert_eq!((slots.peak, slots.runs), (1, 3));
}

/// A parent that blocks on its child without saying so, as one that polls does. The engine waits 30 s for a word from it.
#[test]
fn a_parent_that_does_not_wait_locks_nothing() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-concurrent", "1"],
        r#"mkfifo up; "$OFFSHOOT" spawn x -- sh -c 'echo from below > up' > /dev/null; cat up"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "from below\n");
    let listed = place.run(&["list", "--json"]).expect_code(0).json();
    let id = listed[0]["runId"].as_str().expect("the run has no id").to_owned();
    let events = place.run(&["events", &id, "--json"]).expect_code(0);
    assert!(events.stdout().contains("stall_lent"), "{}", events.stdout());
    place.run(&["audit", &id]).expect_code(0);
}

#[test]
fn no_more_run_at_once_than_there_are_open_files_for() {
    let place = Place::new();
    let numbers: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    place.file("in", numbers.join("\n"));
    let map = "map --max-concurrent 60 --split lines:1 in -- sh -c 'read n; sleep 0.1; echo $n'";
    let script = format!("ulimit -n 160; exec {} {map}", env!("CARGO_BIN_EXE_offshoot"));
    let command = place.command_of("/bin/sh", &["-c", &script]);
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert_eq!(outcome.stdout(), numbers.join("\n---\n") + "\n");
    assert!(outcome.stderr.contains("maxConcurrent is 60, but"), "{}", outcome.stderr);
    let tree = place.run(&["tree", "--all", "--json"]).json();
    let root = tree[0]["runId"].as_str().expect("the run has no id");
    let audit = place.run(&["audit", root, "--json"]).expect_code(0).json();
    let peak = audit["findings"]["peakConcurrency"].as_u64().expect("a number");
    assert!((2..=16).contains(&peak), "{peak} at once: {audit}");
}

/// Asks for a child that ends when the fifo is written, and opens a wait for it. With one slot the child runs as soon as that is
/// open.
const WAITS: &str = r#"mkfifo runs over
    child=$("$OFFSHOOT" spawn x -- sh -c 'echo > runs; cat over')
    "$OFFSHOOT" -q wait $child > /dev/null & waiter=$!
    cat runs > /dev/null
    "#;

#[test]
fn what_works_while_it_waits_is_on_record_and_its_time_counts() {
    let rows = [
        ("beside its wait", "\"$FAKE\" burn 400; echo > over; wait $waiter", true),
        (
            "in a process that has left it",
            "( \"$FAKE\" burn 400; echo > over ) & wait $waiter",
            true,
        ),
        (
            "in an orphan of another session",
            "( setsid sh -c '\"$0\" burn 400; echo > over; sleep 1000; :' \"$FAKE\" & ); wait $waiter",
            true,
        ),
        (
            "and gives its wait up",
            "\"$FAKE\" burn 400; kill $waiter; echo > over; \"$OFFSHOOT\" wait $child",
            true,
        ),
        ("and ends while it waits", "\"$FAKE\" burn 400", true),
        (
            "and waits in pieces",
            "for n in 1 2 3 4 5 6 7 8; do
                \"$OFFSHOOT\" -q wait $child --timeout 0 2>/dev/null; \"$FAKE\" burn 75
            done; echo > over; wait $waiter",
            true,
        ),
        ("not at all", "sleep 0.4; echo > over; wait $waiter", false),
    ];
    let check = |(what, script, expected): (&str, &str, bool)| {
        let place = Place::new();
        let script = format!("{WAITS}{script}");
        place.file("c.toml", "[agents.defaults.subagents]\nonParentEnd = \"cascade\"\n");
        let options = ["--config", "c.toml", "--max-concurrent", "1"];
        place.tree(&options, &script).expect_code(0);
        let root = place.run(&["list", "--json"]).expect_code(0).json()[0]["runId"].clone();
        let root = root.as_str().expect("the run has no id");
        let busy = |text: &str| text.contains("of CPU time while it waited");
        for command in [["show", root], ["audit", root], ["events", root]] {
            let said = place.run(&command).expect_code(0);
            assert_eq!(busy(said.stdout()), expected, "{what}: {command:?}: {}", said.stdout());
        }
    };
    let times_out = || {
        let place = Place::new();
        let script = format!("{WAITS} \"$FAKE\" burn 1200; echo > over; wait $waiter; sleep 1000");
        place.tree(&["--max-concurrent", "1", "--timeout", "1"], &script);
        let root = place.run(&["list", "--json"]).expect_code(0).json()[0].clone();
        assert_eq!(root["status"], "timed_out", "{root}");
        place.run(&["audit", root["runId"].as_str().expect("the run has no id")]).expect_code(0);
    };
    std::thread::scope(|scope| {
        scope.spawn(times_out);
        // One after the other: work of less than a tenth of its wait counts as none, and rows that compete for processors wait longer.
        rows.into_iter().for_each(check);
    });
}
