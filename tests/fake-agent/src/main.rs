//! An agent for tests. It does what its arguments say, one after the other:
//!
//! ```text
//! fake-agent ignore-term flood 1000 hang      ignores SIGTERM, prints 1000 bytes, then never ends
//! fake-agent fork-grandchild --setsid exit 0  leaves a process of another session behind
//! ```
//!
//! | action | does |
//! |---|---|
//! | `exit N`, `signal N` | ends |
//! | `hang`, `block-on FIFO` | waits for ever; until the fifo is written |
//! | `silent` | nothing |
//! | `burn N` | works for N milliseconds of CPU time |
//! | `print TEXT`, `complain TEXT` | a line to stdout, to stderr |
//! | `pid` | its number and a newline |
//! | `flood N`, `flood-stderr N` | N bytes in lines of 64 |
//! | `echo`, `upper`, `count-lines` | of what it reads |
//! | `close-stdin` | reads no more |
//! | `env NAME`, `all-env`, `folder` | what it was started with |
//! | `lie-json` | what begins as JSON and is none |
//! | `ignore-term` | from now on |
//! | `fork-grandchild [FLAG…]` | leaves a process that hangs, and prints its number: see `grandchild.rs` |
//! | `terminal` | prints whether it can open `/dev/tty` |
//! | `ask METHOD PARAMS` | of its supervisor, by its ticket if it has one, and prints the answer |
//! | `ask-and-go METHOD PARAMS` | the same, and closes the connection before there is an answer |
//! | `say LINE` | to the door without a greeting, and prints what it says to that |
//! | `flood-door N` | a greeting, and then N bytes without a line break; prints what the door says |
//! | `crowd N` | opens N connections to the door, keeps them, and prints how many were welcome and how many were not |
//! | `keeper` | is a keeper: alone |
//! | `supervise [FLAG…] ARGUMENT…` | is a supervisor of one `fake-agent ARGUMENT…`: see `supervise.rs` |

mod act;
mod grandchild;
mod knock;
mod supervise;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let first = args.first().and_then(|arg| arg.to_str()).unwrap_or_default();
    let result = match first {
        "keeper" => offshoot_process::run_keeper(),
        "supervise" => supervise::run(args.drain(1..)),
        _ => act::run(args.into_iter()),
    };
    result.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::from(99)
    })
}

#[expect(clippy::print_stderr, reason = "a program of its own, with a terminal of its own")]
fn complain(error: &io::Error) {
    eprintln!("fake-agent: {error}");
}
