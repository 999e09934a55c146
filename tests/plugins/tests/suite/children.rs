//! Programs that a plugin starts do not outlive the supervisor, however it ends.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use offshoot_plugin_tests::folder;
use offshoot_test_support::{Watched, fake_agent, named_pipe};

/// Longer than anything takes.
const FAR: Duration = Duration::from_secs(60);

struct Supervisor {
    process: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    /// What the program prints: a runtime tells how much that is, not what.
    printed: Lines<BufReader<File>>,
    _folder: tempfile::TempDir,
}

impl Supervisor {
    fn start(actions: &[&str]) -> Self {
        let (folder, place) = folder();
        let fifo = place.join("printed");
        named_pipe(&fifo);
        #[expect(clippy::disallowed_methods, reason = "the supervisor is not to be held")]
        let mut process = Command::new(env!("CARGO_BIN_EXE_plugin-supervisor"))
            .args([fake_agent(), &place])
            .args(["sh", "-c", "exec \"$0\" \"$@\" > printed"])
            .arg(fake_agent())
            .args(actions)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program cannot be started");
        let input = process.stdin.take();
        let lines =
            BufReader::new(process.stdout.take().expect("the stream is not a pipe")).lines();
        // This waits until the program runs.
        let printed = BufReader::new(File::open(fifo).expect("the file cannot be opened")).lines();
        Self { process, input, lines, printed, _folder: folder }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("it says more").expect("the bytes are not text")
    }

    fn child(&mut self) -> Watched {
        let line = self.line();
        let number = line.strip_prefix("child ").unwrap_or_else(|| panic!("{line:?}"));
        Watched::new(number.parse().expect("a number"))
    }

    fn grandchild(&mut self) -> Watched {
        let line = self.printed.next().expect("it prints more").expect("the bytes are not text");
        Watched::new(line.trim().parse().expect("a number"))
    }
}

/// A test that fails leaves no supervisor behind.
impl Drop for Supervisor {
    fn drop(&mut self) {
        // It has ended by itself where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn they_go_with_a_supervisor_that_is_killed() {
    for actions in
        [&["fork-grandchild", "hang"][..], &["ignore-term", "fork-grandchild", "--setsid", "hang"]]
    {
        let mut supervisor = Supervisor::start(actions);
        let child = supervisor.child();
        let grandchild = supervisor.grandchild();
        assert!(!child.is_gone() && !grandchild.is_gone());
        supervisor.process.kill().expect("the process cannot be killed");
        supervisor.process.wait().expect("the child cannot be waited for");
        assert!(child.is_gone_within(FAR), "{actions:?}");
        assert!(grandchild.is_gone_within(FAR), "{actions:?}");
    }
}

#[test]
fn what_a_program_leaves_behind_goes_with_it() {
    for flags in [&["--setsid"][..], &["--setsid", "--hold-stdout"], &[]] {
        let actions = [&["fork-grandchild"], flags, &["exit", "7"]].concat();
        let mut supervisor = Supervisor::start(&actions);
        let child = supervisor.child();
        let grandchild = supervisor.grandchild();
        assert_eq!(supervisor.line(), "exited with code 7", "{actions:?}");
        assert!(child.is_gone() && grandchild.is_gone(), "{actions:?}");
    }
}

#[test]
fn they_go_with_a_supervisor_that_ends_in_order() {
    let mut supervisor = Supervisor::start(&["fork-grandchild", "hang"]);
    let child = supervisor.child();
    let grandchild = supervisor.grandchild();
    drop(supervisor.input.take());
    assert_eq!(supervisor.line(), "0 failed to shut down");
    assert!(child.is_gone() && grandchild.is_gone(), "before it says so");
    assert_eq!(supervisor.line(), "cancelled by the operator");
    assert!(supervisor.process.wait().expect("the child cannot be waited for").success());
}
