//! Trials with real processes, a real chat endpoint on loopback and a real record.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use offshoot_test_support::offshoot;
use serde_json::Value;

/// The program in a process of its own: a host ends what else its process starts.
#[expect(clippy::disallowed_methods, reason = "tests start the program that they test")]
fn command(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oolong-pairs"));
    command.args(["run", "--json", "--offshoot"]).arg(offshoot());
    command.args(words.split(' ')).stdin(Stdio::null());
    command
}

fn tried(words: &str) -> Value {
    report(&mut command(words))
}

fn report(command: &mut Command) -> Value {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    serde_json::from_slice(&output.stdout).expect("a report")
}

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// The hash of all answers, where each pair of each task is right and no other was answered.
#[track_caller]
fn perfect(report: &Value) -> String {
    for score in report["scores"].as_array().expect("scores") {
        let [expected, answered, hits] = ["expected", "answered", "hits"].map(|name| &score[name]);
        assert!(expected == hits && answered == hits, "{score}");
    }
    assert_eq!(report["f1"], 1.0);
    report["answers"].as_str().expect("a hash").to_owned()
}

#[test]
fn a_perfect_labeller_loses_nothing_twice_identically() {
    let (once, again, chat) =
        (tried("--tokens=8k"), tried("--tokens=8k"), tried("--tokens=8k --chat"));
    assert_eq!(perfect(&once), perfect(&again));
    assert_eq!(perfect(&once), perfect(&chat));
    assert_eq!([number(&once, "pieces"), number(&once, "calls")], [4, 4]);
    assert!(number(&chat, "tokens") > 8_000, "{chat}");
    assert!(chat["usd"].as_f64() > Some(0.0) && chat["atLeast"] == false, "{chat}");
}

#[test]
fn no_decomposition_and_two_levels_give_the_same() {
    let (whole, two) = (tried("--tokens=4k --piece=0"), tried("--tokens=4k --levels=2"));
    assert_eq!(perfect(&whole), perfect(&two));
    assert_eq!([number(&whole, "calls"), number(&two, "calls")], [1, 2 + 2 * 4]);
}

#[test]
fn faults_cost_pairs_and_repeated_calls_bring_them_back() {
    for agents in ["--chat", "--levels=1"] {
        let faulty = |words: &str| tried(&format!("--tokens=4k --piece=1024 {agents} {words}"));
        let failures = |report: &Value| {
            let counts = report["failures"].as_object().expect("counts").values();
            counts.filter_map(Value::as_u64).sum::<u64>()
        };
        let killed = faulty("--kills=0.4");
        assert!(killed["f1"].as_f64() < Some(1.0) && number(&killed, "missing") > 0, "{killed}");
        assert_eq!(failures(&killed), number(&killed, "missing"));
        perfect(&faulty("--kills=0.4 --retries=20"));
        let refused = faulty("--refusals=0.4");
        assert!(refused["f1"].as_f64() < Some(1.0) && failures(&refused) == 0, "{refused}");
        let asked_again = faulty("--refusals=0.4 --rounds=20");
        perfect(&asked_again);
        assert!(number(&asked_again, "calls") > number(&refused, "calls"));
        let wrong = faulty("--label-errors=0.2");
        assert!(wrong["f1"].as_f64() < Some(1.0) && number(&wrong, "missing") == 0, "{wrong}");
    }
}

#[test]
fn a_killed_runner_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let trial = || {
        let mut command = command("--verbose --tokens=8k --piece=1024 --at-once=2");
        command.arg("--folder").arg(folder.path());
        command
    };
    let mut first = trial();
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(first.stderr.take().expect("a pipe")).lines();
    // Some pieces are over, and most are not.
    assert_eq!(lines.by_ref().take(5).filter(|line| line.is_ok()).count(), 5);
    first.kill().expect("it still runs");
    first.wait().expect("it ends");
    let report = report(&mut trial());
    perfect(&report);
    assert_eq!(number(&report, "missing"), 0);
    // One tree: what was over was not labelled again.
    let (calls, pieces) = (number(&report, "calls"), number(&report, "pieces"));
    assert!((pieces..=pieces + 2).contains(&calls), "{calls} calls of {pieces} pieces");
    // The record says that each limit held, over both lives.
    #[expect(clippy::disallowed_methods, reason = "tests start the program that they test")]
    let mut audit = Command::new(offshoot());
    let data = folder.path().join("data");
    let audit = audit.args(["audit", "last", "--data-dir"]).arg(data).output().expect("it starts");
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
}
