//! The keys and what they do, for people.

/// The keys of the screen, each with what it does.
pub const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "select a run (j k g G)"),
    ("→ ←", "unfold, fold (l h)"),
    ("Enter Esc", "more of the selected run, less of it"),
    ("Tab", "its output, itself, its events; PgUp PgDn scroll them"),
    ("s S", "tree, or table by silence, time, cost"),
    ("f F", "all, running, failed, queued, completed runs"),
    ("/", "runs with this text in name, id, status, report or cause"),
    ("c", "cancel it with all below it (asks first)"),
    ("p", "pause its tree, or let it go on"),
    ("b", "add to its budget (asks first)"),
    ("w", "write a letter into its session"),
    ("y", "copy its id to the clipboard (OSC 52)"),
    ("r", "replay: the tree as it was"),
    ("  [ ] { }", "a hundredth of the time back, forth; ten"),
    ("  , .", "one event back, forth"),
    ("  Space + -", "play or stop; faster, slower"),
    ("q", "quit; what runs goes on"),
];
