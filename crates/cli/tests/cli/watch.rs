//! `offshoot watch`: the live screen, in a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};

use offshoot_test_support::named_pipe;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid,
};
use rustix::termios::{LocalModes, tcgetattr};

use crate::command::{Place, end_of_command, terminal};

/// No wait for a picture, and none for an end, takes so long, on however busy a machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The time in which the kernel hands what was written to a terminal over to its reader, until that takes no more.
const HANDOVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The command on a terminal, and what stands on that. The command is killed when this is dropped.
struct Watched {
    child: Child,
    /// The end that reads what stands on the terminal, and types.
    screen: File,
    /// The end of the command: as long as it is open, the terminal stays.
    _other: File,
    /// The screen as it was read so far.
    parser: vt100::Parser,
}

impl Watched {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::start_as(place, arguments, |_| {})
    }

    fn start_as(place: &Place, arguments: &[&str], change: impl Fn(&mut Command)) -> Self {
        let (screen, other) = terminal();
        let program = place.command(&[]).get_program().to_owned();
        let program = program.to_str().expect("it has a plain name");
        // A size is asked of the controlling terminal, which is that of the tests otherwise.
        let words = [&["--ctty", program, "watch"], arguments].concat();
        let mut command = place.command_in_our_group("setsid", &words);
        command.env("TERM", "xterm-256color");
        change(&mut command);
        let end = || Stdio::from(other.try_clone().expect("a descriptor"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let child = child.expect("the program cannot be started");
        Self { child, screen, _other: other, parser: vt100::Parser::new(50, 200, 0) }
    }

    /// Reads the terminal until it is as expected.
    #[track_caller]
    fn until_screen(&mut self, is_it: impl Fn(&vt100::Screen) -> bool) {
        let since = now();
        let mut bytes = [0; 65536];
        while !is_it(self.parser.screen()) {
            let left = DEADLINE.saturating_sub(since.elapsed());
            let is_ready = wait(&self.screen, PollFlags::IN, left);
            assert!(is_ready, "this is the last picture:\n{}", self.parser.screen().contents());
            let read = self.screen.read(&mut bytes).expect("its other end is open");
            self.parser.process(&bytes[..read]);
        }
    }

    /// Waits for a picture.
    #[track_caller]
    fn until(&mut self, is_it: impl Fn(&str) -> bool) {
        self.until_screen(|screen| is_it(&screen.contents()));
    }

    /// Waits for a picture with a line that has all these words.
    #[track_caller]
    fn until_line(&mut self, words: &[&str]) {
        self.until(|picture| {
            picture.lines().any(|line| words.iter().all(|word| line.contains(word)))
        });
    }

    fn press(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).expect("the terminal has gone");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is not waited for yet");
    }

    /// Writes to the terminal until it takes nothing more, as long as it is not read.
    fn fill(&self) {
        let other = end_of_command(&self.screen, OFlags::WRONLY | OFlags::NONBLOCK);
        loop {
            match rustix::io::write(&other, &[0; 4096]) {
                Ok(_) => {}
                Err(Errno::AGAIN) => {
                    let mut polled = [PollFd::new(&other, PollFlags::OUT)];
                    if poll(&mut polled, Some(&HANDOVER)).expect("it is open") == 0 {
                        return;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Fails unless the modes of the terminal are those of a shell.
    #[track_caller]
    fn expect_usual_modes(&self) {
        let modes = tcgetattr(&self.screen).expect("the terminal has no modes").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
    }

    /// Waits for its end, without reading. The terminal is as it was.
    #[track_caller]
    fn finish(mut self, code: i32) {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty());
        let has_ended = wait(&process.expect("it was started"), PollFlags::IN, DEADLINE);
        assert!(has_ended, "it has not ended:\n{}", self.parser.screen().contents());
        let status = self.child.wait().expect("it was started");
        assert_eq!(status.code(), Some(code), "{}", self.parser.screen().contents());
        self.expect_usual_modes();
        self.until_screen(|screen| !screen.alternate_screen());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It fails where the command has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True as soon as the descriptor is ready, false when the time is over.
fn wait(descriptor: &impl std::os::fd::AsFd, flags: PollFlags, most: Duration) -> bool {
    let most = Timespec::try_from(most).expect("some seconds");
    let ready = poll(&mut [PollFd::new(descriptor, flags)], Some(&most));
    ready.expect("it is open") > 0
}

#[expect(clippy::disallowed_methods, reason = "a deadline of the test")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_map_is_watched_and_a_piece_cancelled() {
    let place = Place::new();
    named_pipe(place.path().join("go"));
    let mut go =
        File::options().read(true).write(true).open(place.path().join("go")).expect("a pipe");
    // The trees of other tests, which run at the same time, are seen as well.
    let common = format!("zebra{}", process::id());
    let [alpha, beta, gamma] = ["alpha", "beta", "gamma"].map(|name| format!("{common}-{name}"));
    let names = [&*alpha, &*beta, &*gamma];
    for name in names {
        place.file(name, name);
    }
    // Without a run: trees that come later are seen too, whatever their data folder.
    let mut watched = Watched::start(&place, &[]);
    watched.until_line(&["offshoot watch"]);
    watched.press(&format!("/{common}\r"));
    watched.until_line(&[&format!("with \"{common}\"")]);
    let script = "read x; echo \"reading $x\"; printf 'more of '; case $x in *gamma) exit 3; esac; read y < go";
    let words =
        [&["-q", "--data-dir", "elsewhere", "map"], &names[..], &["--", "sh", "-c", script]];
    let mut command = place.command(&words.concat());
    let mut map = command.stdout(Stdio::null()).spawn().expect("the program cannot be started");
    watched.until_line(&[&gamma, "exited with code 3", "failed"]);
    watched.until_line(&[&alpha, "running"]);
    watched.until_line(&[&beta, "running"]);
    // Its root says where its record is kept.
    watched.until_line(&["main", "/elsewhere"]);
    watched.press(&format!("/\x15{alpha}\r"));
    watched.until(|picture| picture.contains(&alpha) && !picture.contains(&beta));
    watched.press("\x1b[H\x1b[B");
    watched.until_line(&[&format!("reading {alpha}")]);
    // A line that has not ended is seen too.
    watched.until_line(&["more of"]);
    watched.press("c");
    watched.until_line(&[&format!("cancel {alpha}?")]);
    watched.press("y");
    watched.until_line(&["1 run is asked to end"]);
    watched.until_line(&[&alpha, "cancelled"]);
    watched.press("p");
    watched.until_line(&["PAUSED by the operator since"]);
    watched.press(&format!("/\x15{beta}\r"));
    watched.until_line(&[&beta, "running"]);
    go.write_all(b"go\n").expect("the reader is gone");
    map.wait().expect("it was started");
    watched.until_line(&[&beta, "completed"]);
    watched.press("q");
    watched.finish(0);
}

#[test]
fn a_tree_that_is_resumed_is_followed_on() {
    let place = Place::new();
    named_pipe(place.path().join("up"));
    let mut up =
        File::options().read(true).write(true).open(place.path().join("up")).expect("a pipe");
    place.file("alpha", "a\n");
    place.file("beta", "b\n");
    // The first attempt is killed with its supervisor, and the second fails.
    let script = "read x; [ $x = a ] && exit; echo $x >> tried; case $(wc -l < tried) in 1) echo up > up; exec sleep 600;; \
                  2) echo no beans >&2; exit 3;; esac";
    let words = ["-q", "map", "-j", "1", "alpha", "beta", "--", "sh", "-c", script];
    let mut map = place.command(&words).spawn().expect("the program cannot be started");
    up.read_exact(&mut [0; 3]).expect("it is open");
    place.wait_for_starts(2);
    let mut watched = Watched::start(&place, &["last"]);
    watched.until_line(&["beta", "running"]);
    map.kill().expect("it runs");
    map.wait().expect("it was started");
    watched.until_line(&["1 lost", "1 completed"]);
    place.run(&["-q", "resume", "last"]).expect_code(1);
    watched.until_line(&["beta", "no beans", "failed"]);
    watched.until(|picture| !picture.contains("lost"));
    place.run(&["-q", "resume", "last", "--failed"]).expect_code(0);
    watched.until_line(&["2 completed"]);
    watched.press("q");
    watched.finish(0);
}

#[test]
fn a_tree_that_is_over_is_replayed() {
    let place = Place::new();
    place.file("alpha", "a\n");
    place.file("beta", "b\n");
    place.run(&["-q", "map", "alpha", "beta", "--", "cat"]).expect_code(0);
    let mut watched = Watched::start(&place, &["last"]);
    watched.until_line(&["2 completed"]);
    watched.press("r");
    watched.until_line(&["replay 2"]);
    watched.press("{{{{{{{{{{");
    watched.until(|picture| picture.contains("  0 ms of ") && !picture.contains("2 completed"));
    watched.press("....");
    watched.until(|picture| picture.contains("alpha") && !picture.contains("2 completed"));
    watched.press("}}}}}}}}}}");
    watched.until_line(&["2 completed"]);
    watched.press("r");
    watched.until(|picture| !picture.contains("replay 2"));
    // What ends it from outside restores the terminal too.
    watched.signal(Signal::TERM);
    watched.finish(130);
}

#[test]
fn all_is_drawn_anew_on_demand_and_after_a_stop() {
    let place = Place::new();
    place.run(&["-q", "run", "x", "--", "true"]).expect_code(0);
    let mut watched = Watched::start(&place, &["last"]);
    watched.until_line(&["completed"]);
    watched.parser = vt100::Parser::new(50, 200, 0);
    watched.press("\x0c");
    watched.until_line(&["completed"]);
    watched.parser.process(b"\x1b[?1049h");
    watched.press("\x1a");
    let stopped = waitid(WaitId::Pid(Pid::from_child(&watched.child)), WaitIdOptions::STOPPED);
    assert!(stopped.expect("it was started").expect("it waits").stopped());
    watched.until_screen(|screen| !screen.alternate_screen());
    watched.expect_usual_modes();
    watched.signal(Signal::CONT);
    watched.until_screen(|screen| {
        screen.alternate_screen() && screen.contents().contains("completed")
    });
    watched.press("q");
    watched.finish(0);
}

#[test]
fn a_terminal_that_is_not_read_holds_up_no_signal() {
    let place = Place::new();
    place.run(&["-q", "run", "x", "--", "true"]).expect_code(0);
    for signal in [Signal::TERM, Signal::HUP] {
        let mut watched = Watched::start(&place, &["last"]);
        watched.until_line(&["completed"]);
        watched.fill();
        watched.press("?\x0c");
        watched.signal(signal);
        watched.finish(130);
    }
}

#[test]
fn without_a_terminal_another_command_is_named() {
    let place = Place::new();
    let refused = place.run(&["watch"]).expect_code(2);
    assert!(refused.stderr.contains("`offshoot tree RUN`"), "{}", refused.stderr);
    let mut watched = Watched::start(&place, &["last"]);
    watched.until_line(&["nothing is recorded"]);
    watched.finish(2);
}

#[test]
fn a_log_on_the_same_terminal_is_refused() {
    let place = Place::new();
    place.run(&["-q", "run", "x", "--", "true"]).expect_code(0);
    let log = |command: &mut Command| {
        command.env("OFFSHOOT_LOG", "trace");
    };
    let mut watched = Watched::start_as(&place, &["last"], log);
    watched.until_line(&["`--log-file FILE`"]);
    watched.finish(2);
    let mut watched = Watched::start_as(&place, &["last", "--log-file", "log"], log);
    watched.until_line(&["completed"]);
    watched.press("q");
    watched.finish(0);
}
