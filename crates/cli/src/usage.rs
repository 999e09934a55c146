//! Command lines that cannot be read: what is wrong, what is allowed, and what to type.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use offshoot_config::nearest;

use crate::arguments::WrongValue;
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::near_miss;
use crate::output::{self, Loudness, Output};

/// Says what the parser of the command line made of its words: help and version are results, everything else is an error.
pub(crate) fn end(mut error: clap::Error) -> Exit {
    let is_error = error.use_stderr();
    let output =
        Output::new(Loudness::Normal, is_error && asks_for_json(std::env::args_os().skip(1)));
    if let Some(failure) =
        wrong_value(&error).or_else(|| not_text(&error, std::env::args_os().skip(1)))
    {
        output.end(&failure);
        return failure.exit;
    }
    near_miss::hide(&mut error);
    let near = near_miss::hint(&error);
    if near.is_some() {
        // Its guesses go by letters alone, and what is typed may delete something.
        let guesses =
            [ContextKind::Suggested, ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
        guesses.into_iter().for_each(|guess| drop(error.remove(guess)));
    }
    let hint = near.or_else(|| lacks_run(&error).then_some(RUN_MISSING));
    if output.wants_json() {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default().trim();
        let text = text.strip_prefix("error: ").unwrap_or(text);
        let failure = Failure::input(FailureCode::Usage, text).maybe_hint(hint);
        // Where the JSON cannot be printed, the exit code still tells that the command failed.
        let _ = output.json(&failure.to_json());
    }
    output::print_usage(&error);
    hint.iter().for_each(|hint| output.hint(NoteCode::NearMiss, hint));
    if is_error { Exit::BadInput } else { Exit::Done }
}

/// The hint where a command is about one run, and none is named.
const RUN_MISSING: &str = "RUN may be `last`, which is the newest tree, or a label, or `@N` as the last listing printed it";

/// True where RUN alone is missing.
fn lacks_run(error: &clap::Error) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(missing, Some(ContextValue::Strings(names)) if *names == ["<RUN>"])
}

/// Returns the failure where an option or an argument does not take its value.
fn wrong_value(error: &clap::Error) -> Option<Failure> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let words: &[String] = match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(words))) => words,
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, _) => &[],
        _ => return None,
    };
    // As in `--tail <N>`.
    let named = text(ContextKind::InvalidArg)?;
    let (option, form) = named.split_once(' ').unwrap_or(("", named));
    let form = form.trim_matches(|c| "<>[].".contains(c));
    let (name, before) = match option {
        "" => (form, String::new()),
        option => (option, format!("{option} ")),
    };
    let found = text(ContextKind::InvalidValue).unwrap_or_default();
    let wrong = error.source().and_then(|source| source.downcast_ref::<WrongValue>());
    let known: Vec<&str> = words.iter().map(String::as_str).collect();
    let message = match wrong {
        Some(WrongValue { found, allowed, .. }) => {
            format!("{name}: found {found:?}, allowed is {allowed}")
        }
        None if !known.is_empty() => {
            format!("{name}: found {found:?}, allowed is one of {}", known.join(", "))
        }
        None if found.is_empty() => format!("{name}: it has no value"),
        None => format!("{name}: found {found:?}, which it does not take"),
    };
    let hint = match (wrong, nearest(found, &known), known.first()) {
        (Some(WrongValue { example, .. }), ..) => format!("for example: {before}{example}"),
        (None, Some(near), _) => format!("the nearest is `{near}`: {before}{near}"),
        (None, None, Some(first)) => format!("for example: {before}{first}"),
        (None, None, None) => format!("write a value behind it: {before}{form}"),
    };
    Some(Failure::input(FailureCode::WrongValue, message).hint(hint))
}

/// Returns the failure where a word that must be text is none. The parser does not say which it is.
fn not_text(error: &clap::Error, words: impl Iterator<Item = OsString>) -> Option<Failure> {
    if error.kind() != ErrorKind::InvalidUtf8 {
        return None;
    }
    let words = words.filter_map(|word| {
        let is_text = word.to_str().is_some();
        (!is_text).then(|| format!("{word:?}"))
    });
    let words: Vec<String> = words.collect();
    let message = match &words[..] {
        [word] => format!("the argument {word} must be UTF-8 text, and is not"),
        words => {
            format!("one of these arguments must be UTF-8 text, and is not: {}", words.join(", "))
        }
    };
    let hint = "a file may have any name; tasks, labels and other names are UTF-8";
    Some(Failure::input(FailureCode::WrongValue, message).hint(hint))
}

/// True if a command line that could not be read asks for JSON.
fn asks_for_json(words: impl Iterator<Item = OsString>) -> bool {
    words.take_while(|word| word != "--").any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use clap::{Arg, Command};

    use super::*;
    use crate::arguments::Arguments;

    /// Phrases of the parser and of Rust that no person should have to read.
    const NOT_OURS: [&str; 9] = [
        "invalid",
        "digit",
        "literal",
        "possible values",
        "is not in ",
        "..=",
        "parse",
        "ParseIntError",
        "unexpected argument",
    ];

    fn parse(path: &[&str], words: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::read_from([&["offshoot"][..], path, words].concat())
    }

    /// The failure for the value of an option.
    fn refused(path: &[&str], words: &[&str]) -> Failure {
        let error = parse(path, words).expect_err("it does not take this");
        wrong_value(&error).unwrap_or_else(|| panic!("{path:?} {words:?}: {error}"))
    }

    /// Calls this with each option of each command, and with the words that name the command.
    fn each_option(command: &Command, path: &[&str], check: &mut impl FnMut(&[&str], &Arg)) {
        command
            .get_arguments()
            .filter(|arg| arg.get_long().is_some())
            .for_each(|arg| check(path, arg));
        for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            each_option(below, &[path, &[below.get_name()][..]].concat(), check);
        }
    }

    #[test]
    fn each_option_of_a_number_an_amount_or_a_list_says_what_it_takes_and_a_line_that_works() {
        let takes = ["N", "USD", "TOKENS", "DURATION", "CODES", "BYTE", "BYTES", "SEQ"];
        let mut seen = 0;
        each_option(&<Arguments as clap::CommandFactory>::command(), &[], &mut |path, arg| {
            let names = arg.get_value_names().unwrap_or_default();
            if !names.iter().any(|name| takes.contains(&name.as_str())) {
                return;
            }
            seen += 1;
            let option = format!("--{}", arg.get_long().expect("it is an option"));
            for wrong in ["x", "-1", "1;2", "99999999999999999999999"] {
                let failure = refused(path, &[&option, wrong]);
                let text = failure.to_string();
                assert!(
                    text.starts_with(&format!("{option}: found {wrong:?}, allowed is ")),
                    "{text}"
                );
                assert!(!NOT_OURS.iter().any(|phrase| text.contains(phrase)), "{text}");
                let hint = failure.complaints[0].hint.clone().expect("it says what to type");
                let line = hint.strip_prefix("for example: ").expect(&hint);
                let line: Vec<&str> = line.split(' ').collect();
                // What else the command needs is another matter.
                let others = [ErrorKind::MissingRequiredArgument, ErrorKind::ArgumentConflict];
                let error = parse(path, &line).err().map(|error| error.kind());
                assert!(error.is_none_or(|kind| others.contains(&kind)), "{path:?} {hint}");
            }
        });
        assert!(seen > 40, "{seen} options were tried");
    }

    #[test]
    fn each_option_of_one_word_of_a_few_names_them_and_the_nearest() {
        let mut seen = 0;
        each_option(&<Arguments as clap::CommandFactory>::command(), &[], &mut |path, arg| {
            let words = arg.get_possible_values();
            let Some(first) = words.first().filter(|_| arg.get_action().takes_values()) else {
                return;
            };
            seen += 1;
            let option = format!("--{}", arg.get_long().expect("it is an option"));
            let failure = refused(path, &[&option, "xyz"]);
            let text = failure.to_string();
            let expected =
                format!("{option}: found \"xyz\", allowed is one of {}", first.get_name());
            assert!(text.starts_with(&expected), "{text}");
            assert!(!NOT_OURS.iter().any(|phrase| text.contains(phrase)), "{text}");
        });
        assert!(seen > 15, "{seen} options were tried");
        for (path, option, typed, meant) in [
            ("list", "--status", "fail", "failed"),
            ("list", "--status", "timed", "timed_out"),
            ("list", "--sort", "tok", "tokens"),
            ("export", "--format", "htm", "html"),
            ("export", "--format", "merm", "mermaid"),
            ("map", "--on-failure", "inc", "include"),
            ("run", "--output", "jso", "json"),
        ] {
            let failure = refused(&[path], &[option, typed]);
            let hint = failure.complaints[0].hint.as_deref();
            assert_eq!(hint, Some(&*format!("the nearest is `{meant}`: {option} {meant}")));
        }
    }

    #[test]
    fn a_run_that_is_missing_is_told_from_other_arguments() {
        let lacks = |path: &str| parse(&[path], &[]).is_err_and(|error| lacks_run(&error));
        for path in ["show", "export", "logs"] {
            assert!(lacks(path), "{path}");
        }
        for path in ["run", "merge", "prune", "history"] {
            assert!(!lacks(path), "{path}");
        }
    }

    #[test]
    fn a_word_that_is_no_text_is_named_and_a_file_may_have_any_name() {
        let no_text = |text: &str| OsString::from_vec([text.as_bytes(), b"\xff"].concat());
        let read = |words: &[OsString]| Arguments::read_from(words.iter().cloned());
        let [offshoot, run, label, name, task] = ["offshoot", "run", "--label", "a", "--context"];
        let words = [offshoot.into(), run.into(), task.into(), no_text("f=x"), name.into()];
        read(&words).expect("the name of a file need not be text");
        let words = [&words[..], &[label.into(), no_text("b")]].concat();
        let refused = |words: &[OsString]| {
            let error = read(words).expect_err("a label is text");
            not_text(&error, words.iter().cloned()).expect("it is no text").to_string()
        };
        let both =
            "one of these arguments must be UTF-8 text, and is not: \"f=x\\xFF\", \"b\\xFF\"";
        assert_eq!(refused(&words), both);
        let words = [offshoot.into(), run.into(), label.into(), no_text("b"), name.into()];
        let one = "the argument \"b\\xFF\" must be UTF-8 text, and is not";
        assert_eq!(refused(&words), one);
    }

    #[test]
    fn what_is_no_pair_or_has_no_value_is_said() {
        for (path, words, expected, hint) in [
            (
                "run",
                &["--context", "plan.md"][..],
                "--context: found \"plan.md\", allowed is a name, `=` and a file",
                "for example: --context plan=plan.md",
            ),
            (
                "tree",
                &["last", "--depth"],
                "--depth: it has no value",
                "write a value behind it: --depth N",
            ),
            (
                "run",
                &["--isolation", "tree"],
                "--isolation: found \"tree\", allowed is none, worktree, worktree:COMMIT or copy",
                "for example: --isolation worktree",
            ),
        ] {
            let failure = refused(&[path], words);
            assert_eq!(failure.to_string(), expected);
            assert_eq!(failure.complaints[0].hint.as_deref(), Some(hint));
        }
    }
}
