//! The table.

use crate::{Agent, Ends, Prints, Row};

use Agent::{Fake, Panics, Program};
use Prints::{Nothing, Pid, Something, Stored, Text};

/// Silence is noticed at once.
const IMPATIENT: &[(&str, &str)] = &[("idleTimeoutSeconds", "1")];

/// One at a time, and all of it soon over.
const SHORT: &[(&str, &str)] = &[("deadlineSeconds", "2"), ("maxConcurrent", "1")];

/// All rows. Those that share settings share a tree, in this order.
pub fn rows() -> Vec<Row> {
    // More than a pipe holds, and less than an argument may.
    let large = "x".repeat(100 << 10);
    vec![
        Row::completes("prints and exits 0", Fake(&["print", "done"])).prints(Text("done")),
        Row::completes("prints nothing", Fake(&["silent"])).prints(Text("")),
        Row::fails("exits 7", Fake(&["print", "half", "exit", "7"]), "exit_code")
            .says("exited with code 7")
            .prints(Text("half")),
        Row {
            ok_exit: &[0, 7],
            ..Row::completes("may exit 7", Fake(&["print", "all", "exit", "7"]))
        }
        .prints(Text("all")),
        Row { ok_exit: &[7], ..Row::fails("may exit 7 alone", Fake(&["silent"]), "exit_code") }
            .says("exited with code 0"),
        Row::fails(
            "explains itself",
            Fake(&["complain", "disk on fire", "exit", "1"]),
            "exit_code",
        )
        .says("exited with code 1: disk on fire")
        .prints(Text("")),
        Row::fails("dies by SIGSEGV", Fake(&["print", "half", "signal", "11"]), "signal")
            .says("killed by signal 11")
            .prints(Text("half")),
        Row::fails("is killed by a signal", Fake(&["signal", "9"]), "signal")
            .says("killed by signal 9")
            .prints(Text("")),
        Row::times_out("hangs", Fake(&["print", "half", "hang"]), "timeout")
            .for_a_second()
            .says("timed out after 1 s")
            .prints(Text("half")),
        Row::times_out("ignores TERM", Fake(&["ignore-term", "print", "half", "hang"]), "timeout")
            .for_a_second()
            .prints(Text("half")),
        Row::completes("prints 10 MB", Fake(&["flood", "10000000"])).prints(Stored(10_000_000)),
        Row::completes("complains of 10 MB", Fake(&["flood-stderr", "10000000", "print", "done"]))
            .prints(Text("done")),
        Row {
            task: large.clone(),
            ..Row::completes("closes stdin at once", Fake(&["close-stdin", "print", "done"]))
        }
        .prints(Text("done")),
        Row { task: large, ..Row::completes("never reads", Fake(&["print", "done"])) }
            .prints(Text("done")),
        Row::completes("prints what is no UTF-8", Program(&["sh", "-c", "printf 'a\\377b'"]))
            .prints(Stored(3)),
        Row { json: true, ..Row::completes("lies about JSON", Fake(&["lie-json"])) }
            .prints(Text("{\"answer\": 42, \"why\": ")),
        Row::completes("leaves a grandchild", Fake(&["fork-grandchild", "exit", "0"])).prints(Pid),
        Row::completes(
            "leaves one in a session of its own",
            Fake(&["fork-grandchild", "--setsid", "exit", "0"]),
        )
        .prints(Pid),
        Row::completes(
            "leaves one without a name",
            Fake(&["fork-grandchild", "--no-env", "exit", "0"]),
        )
        .prints(Pid),
        Row::completes(
            "leaves one that holds its output",
            Fake(&["fork-grandchild", "--hold-stdout", "exit", "0"]),
        )
        .prints(Pid),
        Row::times_out(
            "hangs with a grandchild",
            Fake(&["fork-grandchild", "--setsid", "hang"]),
            "timeout",
        )
        .for_a_second()
        .prints(Pid),
        Row::fails("is no program", Program(&["no-such-program"]), "cannot_start")
            .says("no-such-program not found")
            .prints(Nothing)
            .exits(5),
        Row::fails("is a directory", Program(&["/"]), "cannot_start").prints(Nothing).exits(5),
        Row::fails("panics", Panics, "runtime_error")
            .says("the runtime panicked: on purpose")
            .prints(Nothing)
            .not_by_command(),
        Row {
            ends: Ends::MissingInput,
            ..Row::fails("has no input", Fake(&["echo"]), "input_unreadable")
        }
        .says("no such file")
        .prints(Nothing)
        .not_by_command(),
        Row::is_cancelled(
            "is cancelled",
            Fake(&["print", "half", "block-on", "FIFO"]),
            Ends::Cancelled,
        )
        .says("cancelled by the operator")
        .prints(Text("half")),
        Row::is_cancelled("is slower than another", Fake(&["hang"]), Ends::BesideAnAnswer)
            .says("cancelled by an early answer")
            .prints(Something),
        Row::is_cancelled("stands beside a failure", Fake(&["hang"]), Ends::BesideAFailure)
            .says("cancelled by too many failures beside it")
            .prints(Something),
        Row::times_out("says nothing for too long", Fake(&["print", "half", "hang"]), "idle")
            .under(IMPATIENT)
            .says("no sign of life for 1 s")
            .prints(Text("half")),
        Row::times_out("outlives its tree", Fake(&["print", "half", "hang"]), "deadline")
            .under(SHORT)
            .prints(Text("half"))
            .exits(4),
        Row::times_out("never had its turn", Fake(&["silent"]), "deadline")
            .under(SHORT)
            .prints(Nothing)
            .not_by_command(),
        Row::is_cancelled("is cancelled in line", Fake(&["silent"]), Ends::CancelledInLine)
            .under(SHORT)
            .prints(Nothing),
        Row {
            ends: Ends::FullDisk,
            ..Row::fails("has no room for its output", Fake(&["flood", "1000000"]), "not_recorded")
        }
        .says("cannot be recorded: its output")
        .not_by_command(),
    ]
}
