//! What a program leaves behind.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use offshoot_process::{Exit, MARK_VARIABLE, NeverStop};
use offshoot_test_support::{Watched, fake_agent};

use super::{FAR, agent, announced, processes, within};

/// A supervisor in a process of its own, which may adopt orphans without touching this one.
pub(super) struct Supervisor {
    pub(super) process: std::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Supervisor {
    pub(super) fn start(args: &[&str]) -> Self {
        Self::by(fake_agent(), &[&["supervise"], args].concat())
    }

    /// A supervisor that is brought about by another program.
    pub(super) fn by(program: &Path, args: &[&str]) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the supervisor under test is not to be held"
        )]
        let mut process = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, lines }
    }

    pub(super) fn line(&mut self) -> String {
        self.lines.next().expect("it says more").expect("it is text")
    }

    /// The number in a line such as `child 12`.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        let line = self.line();
        let number = line.strip_prefix(word).unwrap_or_else(|| panic!("{word} in {line:?}"));
        number.trim().parse().expect("a number")
    }

    pub(super) fn end(mut self) {
        assert!(self.process.wait().expect("it is ours").success());
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

#[tokio::test]
async fn a_grandchild_of_the_group_goes_with_it() {
    let (program, mut lines) = announced(agent(&["fork-grandchild", "--hold-stdout", "exit", "7"]));
    let child = processes().spawn(program).expect("it can be started");
    let finished = within(child.wait(NeverStop)).await;
    assert_eq!(finished.exit, Exit::Code(7));
    let pid = lines.recv().await.expect("it prints the number");
    assert!(Watched::new(pid.parse().expect("a number")).is_gone());
    assert!(!finished.stdout.held_open);
}

#[tokio::test]
async fn a_stream_that_is_held_open_is_left() {
    let actions = ["fork-grandchild", "--setsid", "--hold-stdout", "flood", "1000000", "exit", "7"];
    let (program, mut lines) = announced(agent(&actions));
    let child = processes().spawn(program).expect("it can be started");
    let finished = within(child.wait(NeverStop)).await;
    assert_eq!(finished.exit, Exit::Code(7));
    assert!(finished.stdout.held_open && !finished.stderr.held_open);
    let pid = lines.recv().await.expect("it prints the number");
    // Everything that was printed has arrived all the same.
    assert_eq!(finished.stdout.total, 1_000_000 + pid.len() as u64 + 1);
    // Without the flag nobody is entitled to end it.
    let pid: u32 = pid.parse().expect("a number");
    assert!(!Watched::new(pid).is_gone());
    end_stranger(pid);
}

/// Ends a process that this test has let go on purpose.
fn end_stranger(pid: u32) {
    let watched = Watched::new(pid);
    let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1);
    let pid = rustix::process::Pid::from_raw(raw.expect("a number of a process"));
    rustix::process::kill_process(pid.expect("it is not 0"), rustix::process::Signal::KILL)
        .expect("it is ours");
    assert!(watched.is_gone_within(FAR));
}

#[tokio::test]
async fn a_flood_nobody_can_end_does_not_hold_us() {
    // Its session is its own and its output is ours; it prints for ever.
    let (program, mut lines) =
        announced(super::shell("setsid sh -c 'echo $$; exec yes' & read -r _ < \"$FIFO\""));
    let (_folder, fifo) = super::fifo();
    let mut program = program;
    program.env.push(("FIFO".into(), fifo.clone().into()));
    let child = processes().spawn(program).expect("it can be started");
    let release = async {
        let pid: u32 = lines.recv().await.expect("it prints its number").parse().expect("a number");
        let watched = Watched::new(pid);
        tokio::task::spawn_blocking(|| std::fs::write(fifo, "go\n"))
            .await
            .expect("no panic")
            .expect("it is read");
        watched
    };
    let (finished, stranger) = within(async { tokio::join!(child.wait(NeverStop), release) }).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(finished.stdout.held_open);
    // Nobody reads any more, so writing ends it.
    assert!(stranger.is_gone_within(FAR));
}

#[test]
fn finished_means_gone() {
    for (actions, grandchildren) in [
        (&["fork-grandchild", "exit", "7"][..], 1),
        (&["fork-grandchild", "--setsid", "exit", "7"], 1),
        (&["fork-grandchild", "--setsid", "--hold-stdout", "fork-grandchild", "exit", "7"], 2),
        (&["fork-grandchild", "--no-env", "exit", "7"], 1),
        (&["exit", "7"], 0),
    ] {
        let mut supervisor = Supervisor::start(&[&["--subreaper"], actions].concat());
        let leader = Watched::new(supervisor.number("child "));
        let grandchildren: Vec<u32> = (0..grandchildren).map(|_| supervisor.number("")).collect();
        assert_eq!(
            supervisor.line(),
            format!(
                "finished Code(7) stop=None stragglers={} lost=0 held=false",
                grandchildren.len()
            )
        );
        // Gone means reaped: not even a zombie is left, although the supervisor may still be there.
        assert!(leader.is_gone());
        for pid in grandchildren {
            let left = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            assert!(left.is_err(), "{actions:?}: {left:?}");
        }
        supervisor.end();
    }
}

#[test]
fn who_leaves_group_and_environment_is_left_and_holds_nobody() {
    let actions = ["fork-grandchild", "--setsid", "--no-env", "--hold-stdout", "exit", "7"];
    let mut supervisor = Supervisor::start(&[&["--subreaper"], &actions[..]].concat());
    supervisor.number("child ");
    let stranger = supervisor.number("");
    assert_eq!(supervisor.line(), "finished Code(7) stop=None stragglers=0 lost=0 held=true");
    supervisor.end();
    end_stranger(stranger);
}

#[test]
fn a_supervisor_inside_is_found_by_the_one_outside() {
    // The one inside adopts nothing and its child's child has left the group: only the mark of the outer one is left.
    let actions = ["--subreaper", "supervise", "fork-grandchild", "--setsid", "exit", "0"];
    let mut supervisor = Supervisor::start(&actions);
    supervisor.number("child ");
    supervisor.number("child ");
    let grandchild = supervisor.number("");
    assert!(supervisor.line().starts_with("finished Code(0) stop=None stragglers=0"));
    assert_eq!(supervisor.line(), "finished Code(0) stop=None stragglers=1 lost=0 held=false");
    assert!(std::fs::read_to_string(format!("/proc/{grandchild}/stat")).is_err());
    supervisor.end();
}

#[test]
fn marks_are_put_one_behind_the_other() {
    let mut supervisor = Supervisor::start(&["--mark", "outer.7;", "env", MARK_VARIABLE]);
    supervisor.number("child ");
    let mark = supervisor.line();
    let own = mark.strip_prefix("outer.7;").expect("what was inherited comes first");
    let (token, rest) = own.split_once('.').expect("a token and a number");
    assert_eq!((token.len(), rest), (32, "1;"));
    supervisor.line();
    supervisor.end();
}
