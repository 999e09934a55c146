//! The line of a program's last words that says why it failed.

use crate::RunId;

/// Beginnings of lines that say nothing of a cause: advice, usage, and what runtimes add below it. In lower case.
const BESIDE_THE_POINT: &[&str] = &[
    "for more information",
    "goroutine ",
    "help:",
    "hint:",
    "node.js v",
    "note:",
    "npm err! a complete log",
    "npm error a complete log",
    "try '",
    "usage:",
    "exit status ",
    "[signal sig",
];

/// Returns the last line that says something: no stack frame, no closing bracket, no advice. None where there are no lines.
///
/// ```
/// let said = "error: no such device\nhint: plug it in\n";
/// assert_eq!(offshoot_model::cause(said), Some("error: no such device"));
/// assert_eq!(offshoot_model::cause("10 %\r100 %\rno space\r"), Some("no space"));
/// ```
pub fn cause(said: &str) -> Option<&str> {
    let mut below = "";
    let mut last = None;
    for line in said.trim_end().lines().rev() {
        // A line that was written over again and again is what it was last.
        let line = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if !is_beside_the_point(line, below) {
            return Some(text);
        }
        last = last.or(Some(text));
        below = line;
    }
    last
}

/// Returns the last line that is not empty, cut where it is very long. A line that was written over again and again is what it was last.
///
/// ```
/// assert_eq!(offshoot_model::last_line("reads\n10 %\r20 %\r\n\n"), Some("20 %"));
/// assert_eq!(offshoot_model::last_line(" \n"), None);
/// ```
pub fn last_line(said: &str) -> Option<&str> {
    /// More of a line does not help.
    const CHARACTERS: usize = 500;
    let line = said.rsplit(['\n', '\r']).map(str::trim).find(|line| !line.is_empty())?;
    Some(line.char_indices().nth(CHARACTERS).map_or(line, |(end, _)| &line[..end]))
}

/// Returns the part of a line that tells of the run which failed first, where the line is a chain of runs that failed because of each
/// other; else the whole line.
///
/// ```
/// let run = "01985e3a-0000-7000-8000-000000000001";
/// let line = format!("run {run} (all): exited with code 1: run {run} (part 3): exited with code 3: no route");
/// assert_eq!(offshoot_model::first_failure(&line), format!("run {run} (part 3): exited with code 3: no route"));
/// assert_eq!(offshoot_model::first_failure("a run of bad luck"), "a run of bad luck");
/// ```
pub fn first_failure(line: &str) -> &str {
    const WORD: &str = "run ";
    let names_a_run = |(at, _): &(usize, &str)| {
        let (before, rest) = (&line[..*at], &line[at + WORD.len()..]);
        let id = rest.split([':', ' ']).next().unwrap_or_default();
        (before.is_empty() || before.ends_with(": ")) && id.parse::<RunId>().is_ok()
    };
    line.rmatch_indices(WORD).find(names_a_run).map_or(line, |(at, _)| &line[at..])
}

/// True if a line is not what went wrong, to judge by it and by the one below it.
fn is_beside_the_point(line: &str, below: &str) -> bool {
    let text = line.trim();
    let starts =
        |word: &&str| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    let is_within = |open, close| text.starts_with(open) && text.ends_with(close);
    // A function of a Go stack, whose place stands below it.
    let is_go_frame = below.starts_with('\t') && below.contains(".go:");
    // A field that has a complaint of its own below it.
    let is_field = !text.contains(char::is_whitespace)
        && below.starts_with(' ')
        && !below.trim_start().starts_with("at ");
    line.starts_with(char::is_whitespace)
        || !text.contains(char::is_alphanumeric)
        || text.ends_with(':')
        || is_within('[', ']')
        || is_within('(', ')')
        || BESIDE_THE_POINT.iter().any(starts)
        || is_go_frame
        || is_field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_why_in_many_ways() {
        // The last words of real programs, shortened.
        let table = [
            ("", None),
            (" \n\n", None),
            ("warning\nerror: no\n", Some("error: no")),
            (
                "bash: line 1: foo: command not found\n",
                Some("bash: line 1: foo: command not found"),
            ),
            // Python.
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    f()\n    ~^^\n\
                 FileNotFoundError: [Errno 2] No such file or directory: '/nope'\n",
                Some("FileNotFoundError: [Errno 2] No such file or directory: '/nope'"),
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\nAssertionError\n",
                Some("AssertionError"),
            ),
            (
                "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: t\n[SQL: SELECT 1]\n\
                 (Background on this error at: https://sqlalche.me/e/20/e3q8)\n",
                Some(
                    "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: t",
                ),
            ),
            (
                "pydantic_core.ValidationError: 1 validation error for Model\nx\n  Field required [type=missing]\n",
                Some("pydantic_core.ValidationError: 1 validation error for Model"),
            ),
            (
                "usage: a.py [-h] a\na.py: error: the following arguments are required: a\n",
                Some("a.py: error: the following arguments are required: a"),
            ),
            // Rust: with and without a backtrace, and clap.
            (
                "\nthread 'main' (6695) panicked at p.rs:1:27:\nassertion `left == right` failed\n  left: 1\n right: 2\n\
                 stack backtrace:\n   0: __rustc::rust_begin_unwind\n             at /rustc/5980/panicking.rs:689:5\n\
                 note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n",
                Some("assertion `left == right` failed"),
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds: the len is 3 but the index is 9\n\
                 note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
                Some("index out of bounds: the len is 3 but the index is 9"),
            ),
            (
                "Error: cannot open the settings\n\nCaused by:\n    No such file or directory (os error 2)\n",
                Some("Error: cannot open the settings"),
            ),
            (
                "error: unexpected argument '--nope' found\n\nUsage: cargo [+toolchain] [OPTIONS]\n       cargo -Z\n\n\
                 For more information, try '--help'.\n",
                Some("error: unexpected argument '--nope' found"),
            ),
            // Node.
            (
                "node:fs:573\n  return binding.open(\n                 ^\n\nError: ENOENT: no such file or directory, open 'x'\n    \
                 at Object.openSync (node:fs:573:18)\n    at node:internal/main:28:49 {\n  errno: -2,\n  code: 'ENOENT'\n}\n\n\
                 Node.js v20.20.2\n",
                Some("Error: ENOENT: no such file or directory, open 'x'"),
            ),
            // Go.
            (
                "panic: runtime error: invalid memory address or nil pointer dereference\n\
                 [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48]\n\ngoroutine 1 [running]:\n\
                 main.f(...)\n\t/tmp/x.go:6\nmain.main()\n\t/tmp/x.go:9 +0x1d\nexit status 2\n",
                Some("panic: runtime error: invalid memory address or nil pointer dereference"),
            ),
            // Java and Ruby.
            (
                "Exception in thread \"main\" java.lang.IllegalStateException: outer\n\tat Main.main(Main.java:3)\n\
                 Caused by: java.io.IOException: disk\n\tat Main.f(Main.java:9)\n\t... 1 more\n",
                Some("Caused by: java.io.IOException: disk"),
            ),
            (
                "a.rb:1:in 'f': boom (RuntimeError)\n\tfrom a.rb:3:in '<main>'\n",
                Some("a.rb:1:in 'f': boom (RuntimeError)"),
            ),
            (
                "ls: unrecognized option '--nope'\nTry 'ls --help' for more information.\n",
                Some("ls: unrecognized option '--nope'"),
            ),
            (
                "error: failed to push some refs\nhint: fetch first\n",
                Some("error: failed to push some refs"),
            ),
            // Nothing but what is beside the point is better than nothing.
            ("  indented\n  twice\n", Some("twice")),
        ];
        for (said, expected) in table {
            assert_eq!(cause(said), expected, "{said}");
        }
    }
}
