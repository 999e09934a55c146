//! The processes that a program leaves behind.

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
            .expect("the program cannot be started");
        let lines =
            BufReader::new(process.stdout.take().expect("the stream is not a pipe")).lines();
        Self { process, lines }
    }

    pub(super) fn line(&mut self) -> String {
        self.lines.next().expect("it says more").expect("the bytes are not text")
    }

    /// The number in a line such as `child 12`.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        let line = self.line();
        let number = line.strip_prefix(word).unwrap_or_else(|| panic!("{word} in {line:?}"));
        number.trim().parse().expect("a number")
    }

    pub(super) fn end(mut self) {
        assert!(self.process.wait().expect("the child cannot be waited for").success());
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
    let child = processes().spawn(program).expect("the program cannot be started");
    let finished = within(child.wait(NeverStop)).await;
    assert_eq!(finished.exit, Exit::Code(7));
    let pid = lines.recv().await.expect("the program printed nothing");
    assert!(Watched::new(pid.parse().expect("a number")).is_gone());
    assert!(!finished.stdout.held_open);
}

#[tokio::test]
async fn a_stream_that_is_held_open_is_left() {
    let actions = ["fork-grandchild", "--setsid", "--hold-stdout", "flood", "1000000", "exit", "7"];
    let (program, mut lines) = announced(agent(&actions));
    let child = processes().spawn(program).expect("the program cannot be started");
    let finished = within(child.wait(NeverStop)).await;
    assert_eq!(finished.exit, Exit::Code(7));
    assert!(finished.stdout.held_open && !finished.stderr.held_open);
    let pid = lines.recv().await.expect("the program printed nothing");
    // Everything that was printed has arrived all the same.
    assert_eq!(finished.stdout.total, 1_000_000 + pid.len() as u64 + 1);
    // Without the flag it must not be ended.
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
        .expect("the process cannot be signalled");
    assert!(watched.is_gone_within(FAR));
}

#[tokio::test]
async fn a_flood_that_cannot_be_ended_does_not_hold_us() {
    // Its session is its own and its output is ours; it prints for ever.
    let (program, mut lines) =
        announced(super::shell("setsid sh -c 'echo $$; exec yes' & read -r _ < \"$FIFO\""));
    let (_folder, fifo) = super::fifo();
    let mut program = program;
    program.env.push(("FIFO".into(), fifo.clone().into()));
    let child = processes().spawn(program).expect("the program cannot be started");
    let release = async {
        let pid: u32 = lines.recv().await.expect("it prints its number").parse().expect("a number");
        let watched = Watched::new(pid);
        tokio::task::spawn_blocking(|| std::fs::write(fifo, "go\n"))
            .await
            .expect("the task panicked")
            .expect("the reader is gone");
        watched
    };
    let (finished, stranger) = within(async { tokio::join!(child.wait(NeverStop), release) }).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(finished.stdout.held_open);
    // No process reads any more, so writing ends it.
    assert!(stranger.is_gone_within(FAR));
}

#[test]
fn finished_means_gone() {
    let check = |actions: &[&str], stragglers: usize, strays: usize| {
        let mut supervisor = Supervisor::start(&[&["--subreaper"], actions].concat());
        let leader = Watched::new(supervisor.number("child "));
        let left: Vec<u32> = (0..stragglers + strays).map(|_| supervisor.number("")).collect();
        let named = " stray=fake-agent".repeat(strays);
        assert_eq!(
            supervisor.line(),
            format!("finished Code(7) stop=None stragglers={stragglers} lost=0 held=false{named}"),
            "{actions:?}"
        );
        // Gone means reaped: not even a zombie is left, although the supervisor may still be there.
        assert!(leader.is_gone());
        for pid in left {
            let left = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            assert!(left.is_err(), "{actions:?}: {left:?}");
        }
        supervisor.end();
    };
    check(&["exit", "7"], 0, 0);
    check(&["fork-grandchild", "exit", "7"], 1, 0);
    check(&["fork-grandchild", "--setsid", "exit", "7"], 1, 0);
    check(&["fork-grandchild", "--no-env", "exit", "7"], 1, 0);
    let two = ["fork-grandchild", "--setsid", "--hold-stdout", "fork-grandchild", "exit", "7"];
    check(&two, 2, 0);
    // The session tells, in whatever group of it a process is; and ours is closed to them.
    check(&["fork-grandchild", "--own-group", "--no-env", "exit", "7"], 1, 0);
    match own_group() {
        // No process can join a group that it cannot name.
        0 => offshoot_test_support::skip(
            "the supervisor's group",
            "it was made in another namespace",
        ),
        _ => check(&["fork-grandchild", "--supervisors-group", "--no-env", "exit", "7"], 1, 0),
    }
    // Nothing tells whose these are. They came to us, and no other run lives.
    check(&["fork-grandchild", "--setsid", "--no-env", "exit", "7"], 0, 1);
    check(&["fork-grandchild", "--setsid", "--other-env", "exit", "7"], 0, 1);
    let two = ["fork-grandchild", "--setsid", "--no-env", "fork-grandchild", "--setsid"];
    check(&[&two[..], &["--other-env", "exit", "7"]].concat(), 0, 2);
}

/// The group of the tests; 0 where it was made outside of their namespace of processes.
fn own_group() -> u32 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the file cannot be read");
    let fields = stat.rsplit_once(") ").expect("a line of its form").1;
    fields.split(' ').nth(2).expect("a line of its form").parse().expect("a number")
}

#[test]
fn a_child_leads_a_session_without_a_terminal() {
    let mut supervisor = Supervisor::start(&["--terminal", "pid", "terminal", "hang"]);
    let child = supervisor.number("child ");
    assert_eq!(supervisor.number(""), child);
    assert_eq!(supervisor.line(), "no terminal");
    let stat =
        std::fs::read_to_string(format!("/proc/{child}/stat")).expect("the file cannot be read");
    let fields = stat.rsplit_once(") ").expect("a line of its form").1;
    let fields: Vec<u32> =
        fields.split(' ').skip(2).take(3).map(|field| field.parse().expect("a number")).collect();
    assert_eq!(fields, [child, child, 0], "its group, its session, its terminal");
    let watched = Watched::new(child);
    supervisor.process.kill().expect("the process cannot be killed");
    // It had no keeper.
    end_stranger(child);
    assert!(watched.is_gone_within(FAR));
}

#[test]
fn a_start_that_finds_no_descriptors_waits_for_the_end_of_a_child() {
    // Each child takes four, and some are open already: without waiting, the tenth fails.
    let mut supervisor = Supervisor::start(&["--files", "40", "--many", "50", "print", "here"]);
    assert_eq!(supervisor.line(), "50 of 50");
    supervisor.end();
}

#[test]
fn children_may_open_as_many_files_as_before_the_limit_was_raised() {
    let limits = |pid: u32| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))
            .expect("the file cannot be read");
        let line = limits.lines().find(|line| line.starts_with("Max open files"));
        let words: Vec<&str> = line.expect("the kernel tells").split_whitespace().collect();
        (words[3].to_owned(), words[4].to_owned())
    };
    let check = |wanted: &str, raised: bool| {
        let args = ["--files", "321", "--room", wanted, "hang"];
        let mut supervisor = Supervisor::start(&args);
        let room = supervisor.number("room ");
        let child = supervisor.number("child ");
        let (soft, hard) = limits(supervisor.process.id());
        assert_eq!(soft, if raised { hard } else { "321".to_owned() }, "{wanted}");
        assert_eq!(room < 321, !raised, "{wanted}: {room}");
        assert_eq!(limits(child).0, "321", "{wanted}");
        let watched = Watched::new(child);
        supervisor.process.kill().expect("the process cannot be killed");
        end_stranger(child);
        assert!(watched.is_gone_within(FAR));
    };
    check("8", false);
    check("1000", true);
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
