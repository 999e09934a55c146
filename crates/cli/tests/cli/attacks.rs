//! Attacks on the door by programs that run as agents, each as it was once seen to succeed.

use std::fs;
use std::process::{Child, Command};

use offshoot_test_support::named_pipe;

use crate::command::Place;

/// A client of the door in Python: `greet()` opens a connection, `ask(connection, method, …)` asks, and `hear(connection)` is
/// the next line.
const CLIENT: &str = r#"
import json, os, select, socket, time
def greet(path=None, ticket=os.environ.get("OFFSHOOT_TICKET")):
    s = socket.socket(socket.AF_UNIX); s.connect(path or os.environ["OFFSHOOT_SOCKET"])
    f = s.makefile("r", encoding="utf-8", newline="\n")
    c = (s, f)
    say(c, 0, "hello", protocol=1, ticket=ticket)
    return c, hear(c)
def say(c, id, method, files=(), **params):
    line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"
    if files: socket.send_fds(c[0], [line], list(files))
    else: c[0].sendall(line)
def hear(c):
    line = c[1].readline()
    return json.loads(line) if line else None
def ask(c, method, files=(), **params):
    say(c, 1, method, files, **params)
    answer = hear(c)
    return answer.get("result", answer.get("error"))
"#;

/// Runs Python as the root of a tree, with [`CLIENT`] before it.
fn python(place: &Place, script: &str) -> Vec<String> {
    place.file("attack.py", format!("{CLIENT}{script}"));
    let outcome = place.tree(&[], "python3 attack.py").expect_code(0);
    outcome.stdout().lines().map(str::to_owned).collect()
}

#[test]
fn a_path_that_a_caller_names_is_not_opened_by_the_supervisor() {
    let place = Place::new();
    let script = r#"
c, _ = greet()
for value in [{"path": "/proc/self/environ"}, {"file": "/proc/self/environ"}]:
    answer = ask(c, "context.put", name="stolen", value=value)
    print(answer.get("code"), json.dumps(ask(c, "context.get", name="stolen")).count("hunter-2"))
"#;
    place.file("attack.py", format!("{CLIENT}{script}"));
    let mut command = place.command(&["-q", "run", "x", "--", "python3", "attack.py"]);
    command.env("SECRET_OF_THE_OPERATOR", "hunter-2");
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert_eq!(outcome.stdout(), "-32000 0\n-32000 0\n");
}

#[test]
fn only_a_plain_file_is_taken_by_its_descriptor() {
    let place = Place::new();
    place.file("plain", "inside\n");
    let lines = python(
        &place,
        r#"
c, _ = greet()
def put(fd, **more):
    answer = ask(c, "context.put", [fd], name="v", value={"file": "it"}, **more)
    print(answer.get("message", answer.get("kind")))
put(os.open("plain", os.O_RDONLY))
print(ask(c, "context.get", name="v")["value"])
put(os.open("plain", os.O_PATH))
put(os.open("plain", os.O_WRONLY))
put(os.open(".", os.O_RDONLY))
put(os.pipe()[0])
put(os.open("/proc/self/environ", os.O_RDONLY))
put(os.open("/dev/zero", os.O_RDONLY))
put(os.open("plain", os.O_RDONLY), kind="json")
# A descriptor belongs to its own line: what came with a request that takes none is not that of the next one.
ask(c, "list", [os.open("attack.py", os.O_RDONLY)])
answer = ask(c, "context.put", name="w", value={"file": "it"})
print(answer["message"])
fd = os.open("plain", os.O_RDONLY); os.lseek(fd, 3, 0)
for n in range(300): ask(c, "list", [fd])
put(fd)
print(ask(c, "context.get", name="v")["value"])
print(len(os.listdir("/proc/%d/fd" % os.getppid())) < 100)
"#,
    );
    let expected = [
        "text",
        "{'text': 'inside\\n'}",
        "`it` is not open for reading",
        "`it` is not open for reading",
        "`it` is not a regular file",
        "`it` is not a regular file",
        "`it` is not a file on a disk",
        "`it` is not a regular file",
        "`it` is not JSON: a value must stand here",
        "no descriptor came with the request",
        "text",
        "{'text': 'inside\\n'}",
        "True",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_orphan_of_a_run_takes_no_more_connections_than_the_run_may() {
    let place = Place::new();
    fifo(&place, "crowded");
    fifo(&place, "over");
    // Its parents have ended; it is in the session of its run, and has its ticket.
    let orphan = r#"
parent = os.pidfd_open(os.getpid())
if os.fork(): os._exit(0)
select.select([parent], [], [])
held, told, silent = [], set(), []
for n in range(600):
    c, answer = greet()
    if answer and "result" in answer: held.append(c)
    else: told.add((answer or {}).get("error", {}).get("code"))
# And without a word, for as long as a greeting may take.
for n in range(600):
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["OFFSHOOT_SOCKET"]); silent.append(s)
open("crowded", "w").write(f"{len(held)} {told}")
open("over").read()
"#;
    place.file("orphan.py", format!("{CLIENT}{orphan}"));
    let tree = Running::start(&place, &["sh", "-c", "python3 orphan.py; cat over"]);
    let crowd = fs::read_to_string(place.path().join("crowded")).expect("it is written");
    assert_eq!(crowd, "64 {-32004}");
    // The operator still has room.
    place.run(&["pause", &tree.root()]).expect_code(0);
    place.run(&["cancel", &tree.root()]).expect_code(0);
    tree.end();
}

#[test]
fn searching_is_bounded_for_a_run_and_ends_with_its_connection() {
    let place = Place::new();
    let lines = python(
        &place,
        r#"
open("large", "w").write(("x" * 99 + "\n") * 100_000)
c, _ = greet()
put = ask(c, "context.put", [os.open("large", os.O_RDONLY)], name="large", value={"file": "large"})
print(put["size"])
def threads():
    status = open("/proc/%d/status" % os.getppid()).read()
    return int(status.split("Threads:")[1].split()[0])
def grep(c, id): say(c, id, "context.get", name="large", grep="(a|x)*yz", length=10)
began = time.monotonic(); grep(c, 1); print(hear(c)["result"]["value"]); one = time.monotonic() - began
idle = threads()
d, _ = greet()
for id in range(200): grep(d, id)
# Others are answered meanwhile, so all of these have been begun.
for n in range(50): ask(c, "status")
print(threads() - idle < 16)
d[1].close(); d[0].close()
began = time.monotonic(); grep(c, 1); hear(c)
print(time.monotonic() - began < 20 * one + 0.2)
"#,
    );
    assert_eq!(lines, ["10000000", "{'text': ''}", "True", "True"]);
}

#[test]
fn a_socket_that_was_replaced_is_not_believed() {
    // By an agent, by one that also writes itself down as a supervisor, and by one that removes the real one as well.
    for how in ["", "registered", "alone"] {
        a_replaced_socket_is_not_believed(how);
    }
}

fn a_replaced_socket_is_not_believed(how: &str) {
    let place = Place::new();
    for name in ["replaced", "go", "said"] {
        fifo(&place, name);
    }
    // It takes the place of the supervisor's socket, agrees to everything and writes down what it is told.
    place.file(
        "impostor.py",
        r#"
import glob, json, os, socket, sys, threading
path = os.environ["OFFSHOOT_SOCKET"]
os.unlink(path)
s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
if sys.argv[1]:
    start = int(open("/proc/self/stat").read().rsplit(") ", 1)[1].split(" ")[19])
    entry = {"process": {"pid": os.getpid(), "startTime": start}, "socket": path}
    with open(f"/tmp/offshoot-{os.getuid()}/{os.getpid()}-it.json", "w") as f: json.dump(entry, f)
if sys.argv[1] == "alone":
    for file in glob.glob(f"/tmp/offshoot-{os.getuid()}/{os.getppid()}-*.json"): os.unlink(file)
heard = open("heard", "w")
open("replaced", "w").close()
def serve(c):
    f = c.makefile("rw", encoding="utf-8", newline="\n")
    for line in f:
        heard.write(line); heard.flush()
        id = json.loads(line).get("id")
        result = {"protocol": 1, "caller": "operator", "maxMessageBytes": 1 << 20, "roots": []}
        f.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n"); f.flush()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"#,
    );
    let script = &format!(
        "HOW='{how}'\n{}",
        r#""$OFFSHOOT" spawn x -- sh -c 'cat go; "$OFFSHOOT" report hello > said 2>&1' > /dev/null
                    "$OFFSHOOT" spawn x -- python3 impostor.py "$HOW" > /dev/null
                    exec sleep 1000"#
    );
    let tree = Running::start(&place, &["sh", "-c", script]);
    fs::read(place.path().join("replaced")).expect("the impostor writes");
    let root = tree.root();
    let budget = ["budget", &root, "--add-tokens", "1"];
    for command in [&["pause", &root][..], &["cancel", &root], &budget] {
        let refused = place.run(command).expect_code(1);
        assert!(refused.stderr.contains("is not a supervisor"), "{how}: {}", refused.stderr);
    }
    fs::write(place.path().join("go"), "").expect("the sibling reads");
    let said = fs::read_to_string(place.path().join("said")).expect("the sibling writes");
    assert!(said.contains("is not a supervisor"), "{how}: {said}");
    let heard = fs::read_to_string(place.path().join("heard")).expect("the impostor wrote it");
    assert_eq!(heard, "", "nothing is said to a stranger, least of all a ticket");
}

#[test]
fn what_an_agent_has_left_is_no_operator() {
    let place = Place::new();
    let go = place.path().join("go");
    fifo(&place, "go");
    let offshoot = env!("CARGO_BIN_EXE_offshoot");
    // By the registry: some supervisor had found it, and has ended since. And by a control group that one has left.
    let script = format!(
        r#"read _ < go
        for words in "run x -- echo yes" "map x.txt -- cat" "trust" "audit x" "doctor" "pause x" "cancel x"; do
            {offshoot} $words 2>> said >> answers; echo $? >> codes
        done"#
    );
    let refused = |left: &dyn Fn(u32)| {
        for name in ["said", "answers", "codes"] {
            place.file(name, "");
        }
        place.file("x.txt", "a\n");
        let mut command = place.command_of("sh", &["-c", &script]);
        let mut process = command.spawn().expect("the program cannot be started");
        left(process.id());
        fs::write(&go, "go\n").expect("the pipe has no reader");
        process.wait().expect("the child cannot be waited for");
        let read =
            |name| fs::read_to_string(place.path().join(name)).expect("the file cannot be read");
        assert_eq!(
            (read("codes"), read("answers")),
            ("3\n".repeat(7), String::new()),
            "{}",
            read("said")
        );
        assert_eq!(read("said").matches("was left by an agent").count(), 7, "{}", read("said"));
    };
    let registry = offshoot_door::Registry::of_user(None);
    refused(&|pid| {
        // The folder is there once some supervisor has been.
        let _here = registry
            .register(&place.path().join("no.sock"), None)
            .expect("the system has no room for it");
        registry.remember_stray(offshoot_door::process_identity(pid).expect("the process is gone"));
    });
    let Some(home) = offshoot_test_support::control_group() else {
        let why = "no control group of version 2 can be made here";
        offshoot_test_support::lacking("what_an_agent_has_left_is_no_operator", why);
        return;
    };
    let group = home.join(format!("offshoot-1-{}-1", std::process::id()));
    fs::create_dir(&group).expect("a group can be made");
    let group = Group(group);
    refused(&|pid| {
        fs::write(group.0.join("cgroup.procs"), pid.to_string())
            .expect("the file cannot be written")
    });
}

/// A control group that goes with its test.
struct Group(std::path::PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed where nothing is in it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A pipe with a name, by which a test and an agent wait for each other.
fn fifo(place: &Place, name: &str) {
    named_pipe(place.path().join(name));
}

/// A tree that runs while others do something to it.
struct Running<'a> {
    place: &'a Place,
    child: Option<Child>,
    command: Command,
}

impl<'a> Running<'a> {
    fn start(place: &'a Place, words: &[&str]) -> Self {
        let asked = ["-q", "run", "--allow-recursive-spawn", "x", "--"];
        let mut command = place.command(&[&asked[..], words].concat());
        let child = Some(command.spawn().expect("the program cannot be started"));
        Self { place, child, command }
    }

    fn root(&self) -> String {
        let list = self.place.run(&["list", "--json"]).json();
        list[0]["runId"].as_str().expect("a root").to_owned()
    }

    /// Waits until it has ended, however it does.
    fn end(mut self) {
        let child = self.child.take().expect("it is taken once");
        self.place.finish(child, &self.command, &[]);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // With it goes all that it has started.
            child.kill().expect("the process cannot be killed");
            child.wait().expect("the child cannot be waited for");
        }
    }
}
