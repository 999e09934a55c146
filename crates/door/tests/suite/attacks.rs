//! Attacks on who is calling and on what a connection may cost, each as it was once seen to succeed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use offshoot_door::{
    Client, ClientError, DoorSocket, Limits, Registry, Server, SharedTickets, Status, Ticket,
    process_identity,
};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::sync::{mpsc, watch};

use super::{Fake, House, RawClient, run};

/// Connects, leaves the connection to a child and ends. The child says hello when it is told to, and prints the answer.
const HEIR: &str = r#"
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
if os.fork(): os._exit(0)
sys.stdin.readline()
s.sendall(b'{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1}}\n')
print(s.makefile().readline(), flush=True)
"#;

/// Listens, leaves the socket to a child and ends. The child holds it until its input ends.
const LEFT_LISTENING: &str = r#"
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
if os.fork(): os._exit(0)
sys.stdin.read()
"#;

/// A supervisor that was killed leaves its socket open for a moment, in a process that it was just starting. No file was replaced then.
#[tokio::test]
async fn a_socket_whose_listener_has_ended_has_no_supervisor() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::in_folders([folder.path().join("user")]);
    let socket = folder.path().join("left.sock");
    let mut script = child("python3");
    script.arg("-c").arg(LEFT_LISTENING).arg(&socket).stdin(Stdio::piped());
    let mut listener = script.spawn().expect("python is there");
    let input = listener.stdin.take();
    let ended = WaitId::Pid(Pid::from_child(&listener));
    waitid(ended, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
    let has_none = async || {
        let error = Client::connect(&socket, &registry, None).await.expect_err("it has ended");
        assert!(matches!(error, ClientError::NoSupervisor { .. }), "{error}");
    };
    has_none().await;
    listener.wait().expect("it is a child");
    has_none().await;
    drop(input);
}

#[test]
fn a_number_that_went_to_another_process_names_no_run() {
    let whole_test = "attacks::in_a_pid_namespace";
    let own = std::env::current_exe().expect("a test knows its own file");
    let mut command = child("unshare");
    command.process_group(0);
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(own).args(["--exact", whole_test, "--nocapture", "--test-threads=1"]);
    command.env("IN_A_PID_NAMESPACE", "1");
    let output = command.stdin(Stdio::null()).output().expect("unshare is there");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !said.contains("running 1 test") {
        return offshoot_test_support::lacking(
            "a_number_that_went_to_another_process_names_no_run",
            &complaint,
        );
    }
    assert!(output.status.success(), "{said}{complaint}");
}

/// Not a test but the inside of one, where numbers of processes can be chosen.
#[tokio::test]
async fn in_a_pid_namespace() {
    if std::env::var_os("IN_A_PID_NAMESPACE").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::in_folders([folder.path().join("user")]);
    let socket = DoorSocket::bind(&folder.path().join("doors"), "a.sock", &registry).unwrap();
    // No client is let in yet: a supervisor that is busy, or has no descriptor left, looks the same.
    // In the group of this process: while its child is in one of its own, its number is not given away.
    let mut heir = child("python3")
        .args(["-c", HEIR])
        .arg(socket.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a Python");
    let number = heir.id();
    let (mut go, said) = (heir.stdin.take().unwrap(), heir.stdout.take().unwrap());
    heir.wait().expect("the child cannot be waited for");
    // The number goes to the process of a run.
    let mut victim = process_with(number);
    let tickets = SharedTickets::new();
    tickets.admit(run(1), Ticket::mint().unwrap());
    tickets.started(run(1), process_identity(number));
    let (heard, _hears) = mpsc::unbounded_channel();
    let (_gate, opens) = watch::channel(false);
    let service = Fake { heard, gate: opens };
    let server = Server::start(socket, registry, tickets, service, Limits::default()).unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        go.write_all(b"go\n").unwrap();
        let mut answer = String::new();
        BufReader::new(said).read_line(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    server.stop().await;
    victim.kill().expect("the process cannot be killed");
    victim.wait().expect("the child cannot be waited for");
    assert!(answer.contains("unknown_caller"), "{answer}");
}

/// A process with this number, in a namespace in which no other party starts any.
fn process_with(number: u32) -> Child {
    for _ in 0..100 {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).expect("root may");
        let mut found = child("cat").stdin(Stdio::piped()).spawn().expect("there is a cat");
        if found.id() == number {
            return found;
        }
        found.kill().expect("the process cannot be killed");
        found.wait().expect("the child cannot be waited for");
    }
    panic!("number {number} was never given out");
}

#[tokio::test]
async fn answers_that_are_not_read_are_not_made() {
    const ASKED: usize = 64;
    let mut house = House::new();
    let mut raw = RawClient::greeted(&house.path()).await;
    for id in 1..=ASKED {
        raw.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"wait","params":{{"timeoutMs":2}}}}"#
        ))
        .await;
        assert_eq!(house.heard().await, super::Heard::WaitBegan);
    }
    // All that they waited for happens at once.
    house.gate.send_replace(true);
    let good = house.client().await;
    for _ in 0..ASKED {
        good.call(Status {}).await.unwrap();
    }
    let mut made = 0;
    while let Ok(heard) = house.heard.try_recv() {
        assert_eq!(heard, super::Heard::WaitAnswered);
        made += 1;
    }
    assert!((1..10).contains(&made), "{made} answers were made, and none was taken");
    // Each of them comes when the client reads.
    for _ in 0..ASKED {
        assert!(raw.line().await.expect("an answer").len() > 100_000);
    }
}

fn child(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a child of a test, which ends with it")]
    Command::new(program)
}
