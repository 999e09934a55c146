//! A place to run the command in, and what came of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirEntryExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use offshoot_host::runtimes::BuiltInRuntime;
use offshoot_merge::Strategy;
use offshoot_test_support::fake_agent;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Nearly no command here takes a second on a machine of its own, and on a busy one the longest, a tree of some hundred shells,
/// a minute. One that takes three hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A folder of its own, with a home in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// The result of one command.
pub(crate) struct Outcome {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// The exit code, or minus the number of the signal.
    pub(crate) code: i32,
    typed: String,
    folder: String,
}

/// Locks of a process that is going to die.
pub(crate) struct Locks(Vec<File>);

impl Locks {
    /// Waits until no process has them.
    pub(crate) fn wait(self) {
        for lock in self.0 {
            flock(&lock, FlockOperation::LockShared).expect("a lock can be waited for");
        }
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        fs::create_dir(folder.path().join("home")).expect("the folder is new");
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder is there")
    }

    /// The locks that this process has here for itself alone. Taken from it by its death; a child that it was about to start has them
    /// until the child's program begins.
    pub(crate) fn locks_of(&self, pid: u32) -> Locks {
        let told = fs::read_to_string("/proc/locks").expect("the system lists locks");
        let words = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let own = words.filter(|words| words[1] == "FLOCK" && words[4] == pid.to_string());
        let inodes: Vec<String> = own
            .filter(|words| words[3] == "WRITE")
            .filter_map(|words| Some(words[5].rsplit(':').next()?.to_owned()))
            .collect();
        let locks = fs::read_dir(self.path().join(".offshoot/locks")).into_iter().flatten();
        let locks = locks.map(|lock| lock.expect("a file"));
        let held = locks.filter(|lock| inodes.contains(&lock.ino().to_string()));
        Locks(held.map(|lock| File::open(lock.path()).expect("a lock can be opened")).collect())
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .expect("the folder cannot be made");
        fs::write(&path, content).expect("the file cannot be written");
        path
    }

    /// The command, not yet started: in this folder, with nothing of the developer's environment but PATH.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_offshoot"), arguments)
    }

    /// Returns the same for another program, which starts the command.
    pub(crate) fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.command_in_our_group(program, arguments);
        // A group of its own, so that a signal to it reaches neither the test nor its neighbours.
        command.process_group(0);
        command
    }

    /// Returns the same in the group of the tests, for a program that begins a session: the leader of a group cannot.
    #[expect(clippy::disallowed_methods, reason = "the test starts the program it tests")]
    pub(crate) fn command_in_our_group(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `offshoot` with these words.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.outcome(self.command(arguments), &[])
    }

    /// Runs a shell script as the root of a tree; `$OFFSHOOT` is the command that is tested, `$FAKE` the awkward agent.
    pub(crate) fn tree(&self, more: &[&str], script: &str) -> Outcome {
        let script = format!("FAKE={}\n{script}", fake_agent().display());
        let words = ["-q", "run", "--allow-recursive-spawn"];
        self.run(&[&words, more, &["root", "--", "sh", "-c", &script, "sh"]].concat())
    }

    /// The same, with something on standard input.
    pub(crate) fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        self.outcome(command, input.as_ref())
    }

    /// The same, with a variable of the environment.
    pub(crate) fn run_with(
        &self,
        name: &str,
        value: impl AsRef<OsStr>,
        arguments: &[&str],
    ) -> Outcome {
        let mut command = self.command(arguments);
        command.env(name, value);
        self.outcome(command, &[])
    }

    /// Waits until the record of the newest tree has this many runs that started. What an agent does can be seen before that: a run
    /// that waited in line starts at once.
    pub(crate) fn wait_for_starts(&self, many: usize) {
        let mut follower = self.command(&["events", "--follow", "last"]);
        let mut follower = follower.spawn().expect("the program was built for this test");
        let lines = BufReader::new(follower.stdout.take().expect("the stream is a pipe")).lines();
        let lines = lines.map(|line| line.expect("events are UTF-8"));
        let started = lines.filter(|line| line.contains("  started  ")).take(many).count();
        follower.kill().expect("it is a child that was not waited for");
        follower.wait().expect("the child cannot be waited for");
        assert_eq!(started, many, "the tree ended before");
    }

    /// Starts a command and waits for its end.
    pub(crate) fn outcome(&self, mut command: Command, input: &[u8]) -> Outcome {
        let child = command.spawn().expect("the program was built for this test");
        self.finish(child, &command, input)
    }

    /// Waits for the end of a command that was started.
    pub(crate) fn finish(&self, mut child: Child, command: &Command, input: &[u8]) -> Outcome {
        let stdin = child.stdin.take();
        let (tx, rx) = mpsc::channel();
        let output = thread::scope(|scope| {
            scope.spawn(move || {
                // A command that does not read its input closes the pipe, which is no error.
                stdin.map(|mut stdin| stdin.write_all(input))
            });
            thread::spawn(move || tx.send(child.wait_with_output()));
            rx.recv_timeout(DEADLINE)
        });
        let output = output.expect("the command ends in time").expect("its output can be read");
        Outcome::new(command, output, &self.path())
    }
}

/// A terminal of 200 columns: the end that reads what stands on it, and the end of a command. No process inherits them unasked:
/// one that holds the first end keeps the terminal from hanging up.
pub(crate) fn terminal() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags).expect("a terminal");
    grantpt(&screen).expect("the terminal cannot be set up");
    unlockpt(&screen).expect("the terminal cannot be set up");
    let size = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&screen, size).expect("the terminal cannot be set up");
    let other = end_of_command(&screen, OFlags::RDWR);
    (File::from(screen), other)
}

/// Opens the end of a command once more.
pub(crate) fn end_of_command(screen: impl AsFd, flags: OFlags) -> File {
    let name = ptsname(screen, Vec::new()).expect("it has a name");
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(name, flags, Mode::empty()).expect("its other end").into()
}

impl Outcome {
    fn new(command: &Command, output: Output, folder: &Path) -> Self {
        let code = output.status.code().or_else(|| output.status.signal().map(|signal| -signal));
        let words = command.get_args().map(|word| quoted(&word.to_string_lossy()));
        Self {
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
            code: code.expect("a process ends with a code or by a signal"),
            typed: words.collect::<Vec<_>>().join(" "),
            folder: folder.to_str().expect("temporary folders have plain names").to_owned(),
        }
    }

    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("this result is text")
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}\n{}", self.stdout(), self.stderr))
    }

    /// Fails with everything that was said, unless the code is this one.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "offshoot {}\n{}", self.typed, self.text());
        self
    }

    /// With something that differs from machine to machine called otherwise in the messages.
    pub(crate) fn calling(self, what: &str, name: &str) -> Self {
        Self { stderr: self.stderr.replace(what, name), ..self }
    }

    /// Without the result, where that is not what the test is about.
    pub(crate) fn messages(self) -> Self {
        Self { stdout: Vec::new(), ..self }
    }

    /// All of it as text, without what differs from run to run.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("$ offshoot {}\n", self.typed);
        for (name, stream) in [("stdout", self.stdout()), ("stderr", self.stderr.as_str())] {
            if !stream.is_empty() {
                let end = if stream.ends_with('\n') { "" } else { "⏎\n" };
                text.push_str(&format!("--- {name}\n{stream}{end}"));
            }
        }
        text.push_str(&format!("--- exit {}", self.code));
        text.replace(&self.folder, "HERE")
    }
}

/// The parts that differ from run to run, as patterns and their names.
const FILTERS: [(&str, &str); 12] = [
    // The progress at a given time is not promised.
    (r"(?m)^ *\d+ %  .*\n", ""),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
    (r"\b[0-9a-f-]{4,36}…", "ID…"),
    (r"\b01[0-9a-f]{6}-[0-9a-f]{4}[0-9a-f-]*", "BEGINNING"),
    (r"\b01[0-9a-f]{6}\b", "PREFIX"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "AT"),
    (r"\b\d+(\.\d+)? (µs|ms|s|min)\b", "TIME"),
    (r"process \d+", "process PID"),
    (r"memory: .* available, .* kept.*", "memory: MEMORY"),
    // The schema of the configuration has them all.
    (r"(?m)(^ *\S+ +\S.* built-in\n)+", "BUILT-IN\n"),
    (r"known keys here: \w+, .*", "known keys here: KEYS"),
];

/// Compares with the committed snapshot of this name.
#[track_caller]
pub(crate) fn check(name: &str, outcome: &Outcome) {
    check_text(name, &outcome.text());
}

/// Outcomes of many commands in one snapshot: each begins with its command line.
#[derive(Default)]
pub(crate) struct Table(pub(crate) Vec<String>);

impl Table {
    pub(crate) fn row(&mut self, outcome: &Outcome) {
        self.0.push(outcome.text().trim_end().to_owned());
    }

    #[track_caller]
    pub(crate) fn check(self, name: &str) {
        check_text(name, &self.0.join("\n\n"));
    }
}

#[track_caller]
pub(crate) fn check_text(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("snapshots");
    for (pattern, stand_in) in FILTERS {
        settings.add_filter(pattern, stand_in);
    }
    // A new one changes no other text.
    settings.add_filter(&BuiltInRuntime::names().collect::<Vec<_>>().join(", "), "RUNTIMES");
    settings.add_filter(&Strategy::NAMES.join(", "), "STRATEGIES");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
