//! The question to a user at a terminal before many paid agents start.

use std::io::{Read, Write};
use std::process::Stdio;

use offshoot_fake_model_api::{Reply, Rule};

use crate::command::terminal;
use crate::openai::stage;

/// The result of a fanout of so many tasks, typed at a terminal by a user who gives this answer where asked.
struct Typed {
    code: i32,
    /// The text on the terminal.
    said: String,
    runs: usize,
}

fn typed(tasks: usize, more: &[&str], answer: &str) -> Typed {
    let (place, _api) = stage([Rule::always(Reply::text("x"))], "");
    place.file("tasks", "{\"task\":\"x\"}\n".repeat(tasks));
    let (mut terminal, other) = terminal();
    let fanout = ["-q", "fanout", "--config", "c.toml", "--runtime", "openai", "--tasks", "tasks"];
    let mut command = place.command(&[&fanout[..], more].concat());
    let end = || Stdio::from(other.try_clone().expect("there is room for a descriptor"));
    command.stdin(end()).stderr(end()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the program cannot be started");
    // Or the terminal would never hang up. The command holds ends of its own until it is dropped.
    drop((command, other));
    let (mut said, mut answered) = (Vec::new(), false);
    let mut some = [0; 1024];
    // To read a terminal whose other end is closed is an error.
    while let Ok(read @ 1..) = terminal.read(&mut some) {
        said.extend_from_slice(&some[..read]);
        if !answered && said.ends_with(b"[y/N] ") {
            answered = true;
            terminal.write_all(answer.as_bytes()).expect("the command reads it");
        }
    }
    let code =
        child.wait().expect("the child cannot be waited for").code().expect("it ends by itself");
    let list = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = list.as_array().expect("the answer has no list of runs").len();
    Typed { code, said: String::from_utf8(said).expect("messages are UTF-8"), runs }
}

#[test]
fn more_than_twenty_paid_agents_are_started_by_a_yes_alone() {
    let no = typed(21, &[], "\n");
    assert!(no.said.contains("start 21 agents of `openai`"), "{}", no.said);
    assert!(no.said.contains("their cost is not known in advance"), "{}", no.said);
    assert_eq!((no.code, no.runs), (2, 0), "{}", no.said);
    let yes = typed(21, &[], "y\n");
    assert_eq!((yes.code, yes.runs), (0, 22), "{}", yes.said);
    for (tasks, more) in [(20, &[][..]), (21, &["--yes"])] {
        let unasked = typed(tasks, more, "n\n");
        assert_eq!((unasked.code, unasked.runs), (0, tasks + 1), "{}", unasked.said);
        assert!(!unasked.said.contains("[y/N]"), "{}", unasked.said);
    }
}
