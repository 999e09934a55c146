//! Commands that people know from other programs, and what they are called here.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;

/// A command that is not there, and the line that does what its name says.
const COMMANDS: [(&str, &str); 31] = [
    ("ps", "`offshoot list` lists runs"),
    ("ls", "`offshoot list` lists runs"),
    ("status", "`offshoot list` shows trees, `offshoot show RUN` explains one run"),
    ("top", "`offshoot watch` shows live what runs"),
    ("inspect", "`offshoot show RUN` explains one run"),
    ("info", "`offshoot show RUN` explains one run"),
    ("get", "`offshoot list` lists runs, `offshoot show RUN --answer` prints an answer"),
    ("describe", "`offshoot show RUN` explains one run"),
    ("explain", "`offshoot show RUN` explains one run"),
    ("attach", FOLLOW),
    ("follow", FOLLOW),
    ("journal", FOLLOW),
    ("journalctl", FOLLOW),
    ("jobs", "`offshoot list --all` lists every run"),
    ("kill", "`offshoot cancel RUN` ends a run with everything below it"),
    (
        "stop",
        "`offshoot cancel RUN` ends a run with everything below it; `offshoot pause RUN` starts nothing more",
    ),
    ("rm", "`offshoot prune --older-than DURATION` deletes old trees"),
    ("clean", "`offshoot prune --older-than DURATION` deletes old trees"),
    ("tail", "`offshoot logs RUN --follow` prints what a run says as it says it"),
    ("log", "`offshoot logs RUN` prints what a run said"),
    ("retry", AGAIN),
    ("rerun", AGAIN),
    (
        "restart",
        "`offshoot resume RUN` goes on with an interrupted tree, and with `--failed` runs what failed again",
    ),
    ("continue", "`offshoot resume RUN` goes on with an interrupted tree"),
    ("errors", CAUSES),
    ("failures", CAUSES),
    ("why", CAUSES),
    ("cost", COST),
    ("costs", COST),
    (
        "slowest",
        "`offshoot list --tree RUN --sort time` shows first what took longest; `offshoot stats RUN` says where the time went",
    ),
    ("exec", "`offshoot run TASK -- COMMAND` runs a program as an agent"),
];

/// The way to run something a second time.
const AGAIN: &str = "`offshoot resume RUN --failed` runs the failed pieces of a map again; `--retries` of run and map tries again by itself";

/// The way to learn why runs failed.
const CAUSES: &str = "`offshoot stats RUN` sums up why runs failed, `offshoot tree RUN --failed` names each, `offshoot show RUN` explains one";

/// The way to see what a run says while it runs.
const FOLLOW: &str = "`offshoot logs RUN --follow` prints what a run says as it says it, `offshoot events RUN --follow` what happens to it";

/// The way to learn what something cost.
const COST: &str = "`offshoot stats RUN` sums up what a tree cost, `offshoot list --tree RUN --sort cost` shows first what cost most";

/// The way to find a run that hangs.
const SILENT: &str = "`offshoot list --tree RUN --status running --sort silent` shows first what has been silent longest";

/// The way to list the runs of one tree.
const RUNS_OF_TREE: &str =
    "`offshoot list --tree RUN` lists the runs of a tree, `offshoot show RUN` explains one run";

/// The way to make a piece of each line.
const LINES_OF_MAP: &str = "`--split lines:N` makes a piece of every N lines";

/// An option that another command has, and the line that does what it says.
const OPTIONS: [(&str, &str); 21] = [
    ("--status", "`offshoot list --tree RUN --status STATUS` lists runs of a tree by status"),
    (
        "--failed",
        "`offshoot tree RUN --failed` and `offshoot list --tree RUN --status failed` show what failed",
    ),
    ("--running", SILENT),
    ("--hung", SILENT),
    ("--tree", "RUN stands without an option: `offshoot COMMAND RUN`"),
    (
        "-n",
        "`offshoot logs RUN --tail N` prints the last lines, `offshoot list --limit N` so many runs",
    ),
    ("--lines", "`offshoot logs RUN --tail N` prints the last lines"),
    (
        "--tail",
        "`offshoot logs RUN --tail N` prints the last lines of what a run said; `offshoot events RUN | tail -n N` the last events",
    ),
    ("-P", "`--jobs N` is the number of agents that run at once"),
    ("--halt", "`--max-fail N` cancels the rest once more than N have failed"),
    ("--resume", "`offshoot resume RUN` goes on with a tree that was stopped"),
    ("--resume-failed", AGAIN),
    ("--retry-failed", AGAIN),
    (
        "--since",
        "`offshoot logs RUN --since 10m` prints what was said since then, `offshoot list --since 2h` lists runs",
    ),
    (
        "--dry-run",
        "`offshoot tree RUN` shows a run with all below it, which is what the command acts on",
    ),
    ("--logs", "`offshoot logs RUN` prints what a run said"),
    ("--filter", "`--status STATUS` and `--agent ID` of `offshoot list` choose runs"),
    ("-a", "`offshoot list --all` lists every run"),
    (
        "--grep",
        "`offshoot logs RUN | grep WORD` prints lines with a word; with --tag each has its run",
    ),
    ("--last", "RUN `last` is the newest tree: `offshoot tree last`"),
    ("-o", "results are printed: `offshoot export RUN --format html > FILE`"),
];

/// Removes commands from the parser's guesses that are not for users.
pub(crate) fn hide(error: &mut clap::Error) {
    let commands = Arguments::command();
    let is_hidden =
        |name: &String| commands.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand)
    else {
        return;
    };
    names.retain(|name| !is_hidden(name));
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
}

/// Returns what to type instead, where the error is about such a command or option.
pub(crate) fn hint(error: &clap::Error) -> Option<&'static str> {
    let (kind, table) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, &COMMANDS[..]),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, &OPTIONS[..]),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if word == "--lines" && usage.contains("offshoot map") {
        return Some(LINES_OF_MAP);
    }
    if !word.starts_with('-') && usage.contains("offshoot list") {
        return Some(RUNS_OF_TREE);
    }
    table.iter().find(|(name, _)| name == word).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn each_names_a_command_that_is_there() {
        let commands = Arguments::command();
        let there =
            |word: &str| commands.get_subcommands().any(|command| command.get_name() == word);
        for (word, expected) in COMMANDS {
            assert!(!there(word), "{word} is a command by now");
            let named = expected.split("`offshoot ").nth(1).and_then(|rest| rest.split(' ').next());
            let named = named.expect("a hint names a command").trim_end_matches('`');
            assert!(there(named), "{expected}");
            let error = Arguments::try_parse_from(["offshoot", word]).expect_err("it is not there");
            assert_eq!(hint(&error), Some(expected), "{word}");
        }
        for (words, option) in [
            ("tree last --status failed", "--status"),
            ("stats --failed", "--failed"),
            ("show --tree x", "--tree"),
            ("logs last -n 5", "-n"),
            ("logs last --lines 5", "--lines"),
            ("events last --tail 5", "--tail"),
            ("list --running", "--running"),
            ("list --hung", "--hung"),
            ("logs last --grep x", "--grep"),
            ("map -P 4 in -- cat", "-P"),
            ("map --halt now,fail=1 in -- cat", "--halt"),
            ("map --resume in -- cat", "--resume"),
            ("map --resume-failed in -- cat", "--resume-failed"),
            ("resume last --retry-failed", "--retry-failed"),
            ("events last --since 10m", "--since"),
            ("cancel last --dry-run", "--dry-run"),
            ("show last --logs", "--logs"),
            ("list --filter status=running", "--filter"),
            ("list -a", "-a"),
            ("tree --last", "--last"),
            ("export last -o x.html", "-o"),
        ] {
            let words = ["offshoot"].into_iter().chain(words.split(' '));
            let error = Arguments::try_parse_from(words).expect_err("it has no such option");
            let expected = OPTIONS.iter().find(|(name, _)| *name == option).map(|(_, hint)| *hint);
            assert_eq!(hint(&error), expected, "{option}");
        }
        let map = ["offshoot", "map", "--lines", "1", "in", "--", "cat"];
        let error = Arguments::try_parse_from(map).expect_err("it has no such option");
        assert_eq!(hint(&error), Some(LINES_OF_MAP));
        let error = Arguments::try_parse_from(["offshoot", "trea"]).expect_err("it is not there");
        assert_eq!(hint(&error), None);
        let error = Arguments::try_parse_from(["offshoot", "list", "last"]).expect_err("no RUN");
        assert_eq!(hint(&error), Some(RUNS_OF_TREE));
        for near in ["keepr", "plugin-tria"] {
            let mut error = Arguments::try_parse_from(["offshoot", near]).expect_err("a typo");
            hide(&mut error);
            let said = error.to_string();
            assert!(!said.contains("keeper") && !said.contains("plugin-trial"), "{said}");
        }
    }
}
