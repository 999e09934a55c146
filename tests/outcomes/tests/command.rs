//! The table by the exit codes of `offshoot run`, for the rows that make sense alone.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use offshoot_outcomes::{Agent, Prints, Row, rows};
use offshoot_test_support::{fake_agent, offshoot};

/// `offshoot run` for one row, in a folder of its own.
fn run(row: &Row, folder: &Path) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the command itself is under test")]
    let mut command = Command::new(offshoot());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).current_dir(folder);
    for (key, value) in [("graceSeconds", "1")].iter().chain(row.settings) {
        let key = key.to_uppercase();
        command.env(format!("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__{key}"), value);
    }
    command.arg("run");
    if let Some(seconds) = row.timeout_seconds {
        command.args(["--timeout", &seconds.to_string()]);
    }
    if !row.ok_exit.is_empty() {
        let codes: Vec<String> = row.ok_exit.iter().map(ToString::to_string).collect();
        command.args(["--ok-exit", &codes.join(",")]);
    }
    if row.json {
        command.args(["--output", "json"]);
    }
    command.args([&row.task, "--"]);
    match row.agent {
        Agent::Fake(args) => command.arg(fake_agent()).args(args),
        Agent::Program(words) => command.args(words),
        Agent::Panics => unreachable!("a closure is no program, so the row is not by command"),
    };
    command.stdin(Stdio::null()).output().expect("the command starts")
}

fn check(row: &Row, exit: i32) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let Output { status, stdout, stderr } = run(row, folder.path());
    let (name, stderr) = (row.name, String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(exit), "{name}: {stderr}");
    match row.expected.prints {
        // Of a failure that printed nothing there is nothing to show.
        Prints::Text("") if exit != 0 => assert!(stdout.is_empty(), "{name}: {stdout:?}"),
        Prints::Text(text) => {
            assert_eq!(String::from_utf8_lossy(&stdout), format!("{text}\n"), "{name}: {stderr}");
        }
        Prints::Stored(size) => {
            let printed = stdout.len() as u64;
            assert!(size <= printed && printed <= size + 1, "{name}: {printed} bytes");
        }
        Prints::Nothing => assert!(stdout.is_empty(), "{name}: {stdout:?}"),
        Prints::Pid => {
            let pid = String::from_utf8(stdout).expect("a number");
            assert!(!Path::new("/proc").join(pid.trim()).exists(), "{name}: {pid} is left");
        }
        Prints::Something => {}
    }
}

#[test]
fn every_row_that_makes_sense_alone_exits_as_the_table_says() {
    // Built here, so that the rows do not wait for each other's compiler.
    let _ = (offshoot(), fake_agent());
    let rows = rows();
    std::thread::scope(|scope| {
        let alone = rows.iter().filter_map(|row| Some((row, row.expected.exit?)));
        let running: Vec<_> =
            alone.map(|(row, exit)| scope.spawn(move || check(row, exit))).collect();
        assert!(running.len() > rows.len() / 2, "most rows make sense alone");
    });
}
