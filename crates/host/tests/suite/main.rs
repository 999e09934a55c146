//! The examples of this crate, started as programs.
#![expect(clippy::disallowed_methods, reason = "what is tested is started as its users start it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use offshoot_test_support::{example, offshoot, workspace_program};

/// An example, to be started in this folder with `offshoot` in its `PATH`.
fn started(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(example("offshoot-host", name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let before = offshoot().parent().expect("a program is in a folder").to_owned();
    let path = std::iter::once(before).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).expect("no folder has a colon in its name");
    command.env("PATH", path).env("HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

#[test]
fn a_tree_of_agents_that_spawn_agents() {
    let folder = tempfile::tempdir().expect("no temporary folder can be made");
    let plugins = folder.path().join("plugins");
    workspace_program("merge-jq", &plugins);
    let mut command = started("recursion", folder.path());
    for _ in 0..2 {
        let ran = command.arg(&plugins).output().expect("the program cannot be started");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{said}");
        // Four leaves below the first piece, two below the second.
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "6", "{said}");
    }
    // The record proves both.
    let command = |arguments: &[&str]| {
        let mut command = Command::new(offshoot());
        let ran = command.args(arguments).args(["--data-dir", "data"]).current_dir(folder.path());
        let ran = ran.output().expect("the program cannot be started");
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        ran.stdout
    };
    let list: Vec<serde_json::Value> =
        serde_json::from_slice(&command(&["list", "--all", "--json"]))
            .expect("the text is not JSON");
    let roots: Vec<_> = list.iter().filter(|run| run["depth"] == 0).collect();
    assert_eq!((roots.len(), list.len()), (2, 2 * (1 + 2 + 2 + 4 + 2)), "{list:?}");
    for root in roots {
        command(&["audit", root["runId"].as_str().expect("the run has no id")]);
    }
}

#[test]
fn trees_behind_an_address() {
    let folder = tempfile::tempdir().expect("no temporary folder can be made");
    let mut server = started("server", folder.path());
    let mut server = server
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program cannot be started");
    let mut line = String::new();
    let out = server.stdout.take().expect("the stream is not a pipe");
    BufReader::new(out).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().trim_start_matches("http://").trim_end_matches("/sum").to_owned();
    let ask = |tasks: &str| {
        let mut stream = TcpStream::connect(&address).expect("the connection was refused");
        let length = tasks.len();
        write!(
            stream,
            "POST /sum HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{tasks}"
        )
        .expect("the reader is gone");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    };
    // Two trees at once, each with a door of its own.
    let (ask, tasks) = (&ask, ["2\n1", "1\n1\n1"]);
    let answers = std::thread::scope(|scope| {
        tasks
            .map(|tasks| scope.spawn(move || ask(tasks)))
            .map(|asked| asked.join().expect("it asks"))
    });
    server.kill().expect("it is a child of this process");
    server.wait().expect("it is a child of this process");
    for answer in answers {
        assert!(answer.contains("200 OK") && answer.contains("Completed"), "{answer}");
        assert!(answer.contains('6'), "{answer}");
    }
}
