//! `docs/messages.md`: every text that the command says when something is wrong, with its hint, so that all are read as one set.
//!
//! The texts stand beside what they are about, in the code; they are found there by the forms in which all of them are written.

mod calls;
mod declared;
mod placeholders;

use std::collections::{BTreeMap, BTreeSet};

use self::calls::{Call, calls, texts_of};
use self::declared::{
    arms, exits_of, group, made, numbers, shown, snake, thrown, variants, with_constants,
};
use self::placeholders::{NAMELESS, named, number_constants};
use super::tokens::{Token, tokens};
use crate::Result;
use crate::workspace::Workspace;

/// The beginning of the page.
const HEAD: &str = "# Messages

Made by `cargo xtask regenerate` from the texts in the code. A word in braces, as `{path}`, stands for a name, a number or a text. With `--json` an error is
also JSON on standard output: `status`, `code`, `messageCode`, `message`, `causes`, `hint` and `exitCode`, where there is one of each: errors of
the libraries have no `messageCode`. With `--verbose` the code
of a message of the command stands behind it.

";

/// The file of refusal codes, that of reasons of an end, that of advice after an end, that of exit codes, and the one in which reasons have theirs.
const REFUSALS: &str = "crates/model/src/refusal.rs";
const ENDINGS: &str = "crates/model/src/ending.rs";
const RECOVERY: &str = "crates/model/src/recovery.rs";
const EXITS: &str = "crates/cli/src/exit.rs";
const REPORT: &str = concat!("crates/cli/src/work", "/report.rs");

/// The files of codes of the command, and that of words of other programs.
const FAILURE_CODES: &str = "crates/cli/src/code/failure_code.rs";
const NOTE_CODES: &str = "crates/cli/src/code/note_code.rs";
const NEAR_MISSES: &str = "crates/cli/src/near_miss.rs";

/// The file with the advice about files that cannot be used.
const FAILURES: &str = "crates/cli/src/failure.rs";

/// The calls of the command that say something.
const SAID: [&str; 7] = [
    "Failure::input",
    "Failure::new",
    "Failure::file",
    "Complaint::new",
    "warning",
    "note",
    "hint",
];

/// The exit code of an error that is told beside the end of a run.
const OF_THE_END: &str = "1 or 4";

/// The file that reads the lines of `--tasks`.
const TASK_LINES: &str = "crates/cli/src/work/task_line.rs";

/// The files that define what others call: what they say themselves they are given.
const WITHOUT_CODES: [&str; 2] = ["crates/cli/src/failure.rs", "crates/cli/src/output.rs"];

/// Files that check plugins and runtimes: what they answer is said to those.
const CHECKS: [&str; 2] = ["crates/plugin-host/src/suite", "crates/runtime/src/contract.rs"];

/// Types whose errors do not end the command with exit code 2, which all other ones do.
const OTHER_EXITS: [(&str, &str); 8] = [
    ("HostError", "2 or 5"),
    ("PackageError", "5"),
    ("PluginError", "5"),
    ("ProcessError", "5"),
    ("RuntimeError", "5"),
    ("MergeError", "1"),
    ("CallError", "2 or 3"),
    ("ClientError", "2 or 3"),
];

/// One line of the page.
struct Row {
    code: String,
    when: String,
    texts: Vec<String>,
    hints: Vec<String>,
    exit: String,
}

/// Makes the page.
pub(super) fn page(workspace: &Workspace) -> Result<String> {
    let is_ours = |path: &str| {
        let is_source = path.starts_with("crates/") && path.contains("/src/");
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        is_source && !is_test && !CHECKS.iter().any(|checks| path.starts_with(checks))
    };
    let files: BTreeMap<&str, Vec<Token>> = workspace
        .rust()
        .filter(|(path, _)| is_ours(path))
        .map(|(path, text)| (path, with_constants(tokens(text))))
        .collect();
    let numbers_of = number_constants(files.values().map(Vec::as_slice));
    let files: BTreeMap<&str, Vec<Token>> =
        files.into_iter().map(|(path, tokens)| (path, named(tokens, &numbers_of))).collect();
    let file = |path: &str| files.get(path).ok_or_else(|| format!("{path} is not there"));
    let exits = numbers(file(EXITS)?);
    let mut page = HEAD.to_owned();

    let refused: Vec<Call> = files
        .values()
        .flat_map(|tokens| calls(tokens, &["Refusal::new", "Refusal::invalid", "refuse"], &[]))
        .collect();
    let mut refusals = Vec::new();
    for (code, when) in variants(file(REFUSALS)?, "RefusalCode") {
        let of_code = refused.iter().filter(|call| match call.code("RefusalCode") {
            Some(named) => named == code,
            None => call.name == "Refusal::invalid" && code == "InvalidRequest",
        });
        let (texts, hints): (Vec<_>, Vec<_>) =
            of_code.map(|call| (call.texts.clone(), call.hints.clone())).unzip();
        let exit = if code == "InvalidRequest" { "2" } else { "3" };
        refusals.push(Row {
            code: format!("`{}`", snake(&code)),
            when,
            texts: texts.concat(),
            hints: hints.concat(),
            exit: exit.into(),
        });
    }
    section(
        &mut page,
        "Refusals",
        "What to do about each stands in [refusals.md](refusals.md). Pieces that a budget or a breaker keeps from starting end the command with 4.",
        refusals,
    )?;

    let endings = file(ENDINGS)?;
    let (texts, hints) =
        (arms(endings, "Reason", "fmt"), arms(file(RECOVERY)?, "Reason", "recovery"));
    let of_reason = exits_of(file(REPORT)?, &exits);
    let ending = |(code, when): (String, String)| Row {
        texts: texts.get(&code).cloned().unwrap_or_default(),
        hints: hints.get(&code).cloned().unwrap_or_default(),
        exit: match snake(&code).as_str() {
            "completed" => "0".to_owned(),
            other => of_reason.get(other).cloned().unwrap_or_else(|| "1".to_owned()),
        },
        code: format!("`{}`", snake(&code)),
        when,
    };
    section(
        &mut page,
        "Ends of runs",
        "The exit code is that of a command whose root, or whose only kind of failure, it is.",
        variants(endings, "Reason").into_iter().map(ending).collect(),
    )?;

    let said = said(&files)?;
    let of_files = files.get(FAILURES).map(|tokens| texts_of(tokens, "hint_of_file"));
    let of_files = of_files.unwrap_or_default();
    section(
        &mut page,
        "Errors of the command",
        "The exit code `1 or 4` is that of the end of a run, as above.",
        coded(&said, file(FAILURE_CODES)?, "FailureCode", &exits, &of_files)?,
    )?;
    page.push_str("What `bad_task_line` says of a line:\n\n");
    for text in files.get(TASK_LINES).map(|tokens| made(tokens)).unwrap_or_default() {
        page.push_str(&format!("- {}\n", text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    page.push('\n');
    section(
        &mut page,
        "Warnings, notes and hints of the command",
        "They stand on standard error, and change no exit code.",
        coded(&said, file(NOTE_CODES)?, "NoteCode", &exits, &of_files)?,
    )?;
    words_of_others(&mut page, file(NEAR_MISSES)?);

    let mut errors = Vec::new();
    for tokens in files.values() {
        for (of, variant, when, text) in thrown(tokens) {
            // A type that is one error, and has only what it is told, says nothing of its own.
            if variant.is_empty() && text == "{message}" {
                continue;
            }
            let when = when.split(" ```").next().unwrap_or_default().to_owned();
            let hints = files.values().map(|tokens| arms(tokens, &of, "hint"));
            let hints: Vec<_> =
                hints.filter_map(|mut arms| arms.remove(&variant)).flatten().collect();
            let exit =
                OTHER_EXITS.iter().find(|(name, _)| *name == of).map_or("2", |(_, exit)| exit);
            errors.push(Row {
                code: match variant.is_empty() {
                    true => format!("`{of}`"),
                    false => format!("`{of}`: `{}`", snake(&variant)),
                },
                when,
                texts: vec![text],
                hints,
                exit: exit.to_owned(),
            });
        }
    }
    section(
        &mut page,
        "Errors of the libraries",
        "The command prints them as they are, below a text of its own or alone.",
        errors,
    )?;
    Ok(page)
}

/// All that the command says by a code; what the parts below say to the user, by the codes for that.
fn said(files: &BTreeMap<&str, Vec<Token>>) -> Result<Vec<Call>> {
    let mut found = Vec::new();
    for (path, tokens) in files {
        if path.starts_with("crates/cli/") {
            let here = calls(tokens, &SAID, &["output", "self"]);
            let bare = here.iter().find(|call| !call.is_coded());
            if let Some(bare) = bare.filter(|_| !WITHOUT_CODES.contains(path)) {
                return Err(format!("{path}: `{}` is called without a code", bare.name).into());
            }
            found.extend(here);
        }
        if path.starts_with("crates/host/") {
            let here = calls(tokens, &["note", "warning"], &["reporter"]);
            found.extend(here.into_iter().map(|call| match &*call.name {
                "note" => call.with_code("NoteCode", "HostNote"),
                _ => call.with_code("NoteCode", "HostWarning"),
            }));
        }
    }
    Ok(found)
}

/// The rows of the codes of an enum.
fn coded(
    said: &[Call],
    declared: &[Token],
    of: &str,
    exits: &BTreeMap<String, String>,
    of_files: &[String],
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (code, doc) in variants(declared, of) {
        let calls: Vec<&Call> = said.iter().filter(|call| call.code(of) == Some(&*code)).collect();
        let (doc, advice) = doc.split_once(" Hint: ").unwrap_or((&doc, ""));
        let (when, told) = doc.split_once(" Text: ").unwrap_or((doc, ""));
        let mut texts: Vec<String> = calls.iter().flat_map(|call| call.texts.clone()).collect();
        texts.extend((!told.is_empty()).then(|| told.to_owned()));
        if when.is_empty() || texts.is_empty() || calls.is_empty() {
            return Err(format!("{of}::{code} has no sentence, no text or no use").into());
        }
        let mut kinds: Vec<&str> = calls.iter().map(|call| call.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut numbers: Vec<&str> = calls.iter().filter_map(|call| exit(call, exits)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        rows.push(Row {
            code: match of {
                "FailureCode" => format!("`{}`", snake(&code)),
                _ => format!("{} `{}`", kinds.join(", "), snake(&code)),
            },
            when: when.to_owned(),
            texts,
            hints: {
                let said = calls.iter().flat_map(|call| call.hints.clone());
                let of_file = calls.iter().any(|call| call.name == "Failure::file");
                let of_file = of_file.then(|| of_files.to_vec()).into_iter().flatten();
                let told = (!advice.is_empty()).then(|| advice.to_owned());
                said.chain(of_file).chain(told).collect()
            },
            exit: numbers.join(" or "),
        });
    }
    Ok(rows)
}

/// The exit code with which the command ends by a call.
fn exit<'a>(call: &Call, exits: &'a BTreeMap<String, String>) -> Option<&'a str> {
    match (&*call.name, call.code("Exit")) {
        ("Failure::new", Some(exit)) => exits.get(exit).map(|exit| &**exit),
        ("Failure::input" | "Failure::file", _) => Some("2"),
        ("Complaint::new", _) => Some(OF_THE_END),
        _ => None,
    }
}

/// The words of other programs, with what to type instead.
fn words_of_others(page: &mut String, tokens: &[Token]) {
    page.push_str(
        "## Words of other programs\n\nAn option or a command that is not there is an error, `usage`, with exit code 2. Those have a hint.\n\n\
         | typed | hint |\n|---|---|\n",
    );
    for table in ["COMMANDS", "OPTIONS"] {
        let start =
            tokens.windows(2).position(|pair| pair[0].is_word("const") && pair[1].is_word(table));
        let value = start.and_then(|start| {
            let open =
                start + tokens[start..].iter().position(|token| *token == Token::Sign('='))? + 1;
            Some(&tokens[open..open + group(&tokens[open..])])
        });
        let pairs = value.unwrap_or_default().windows(3);
        for pair in
            pairs.filter(|pair| matches!(pair, [Token::Text(_), Token::Sign(','), Token::Text(_)]))
        {
            let (typed, hint) = (shown(&pair[0]), shown(&pair[2]));
            if !typed.contains(' ') {
                page.push_str(&format!("| `{typed}` | {hint} |\n"));
            }
        }
    }
    page.push('\n');
}

fn section(page: &mut String, title: &str, about: &str, rows: Vec<Row>) -> Result {
    page.push_str(&format!(
        "## {title}\n\n{about}\n\n| code | when | text | hint | exit |\n|---|---|---|---|---|\n"
    ));
    let mut seen = BTreeSet::new();
    for Row { code, when, texts, hints, exit } in rows {
        if when.is_empty() || when.contains('#') {
            return Err(format!("{code} has no sentence that says when it is said").into());
        }
        let nameless = |text: &&String| text.contains(NAMELESS);
        if let Some(text) = texts.iter().chain(&hints).find(nameless) {
            return Err(format!(
                "{code}: a value in `{text}` has no name: give it one, as in `{{path}}`"
            )
            .into());
        }
        if !seen.insert(code.clone()) {
            return Err(format!("{code} stands twice").into());
        }
        let [texts, hints] = [texts, hints].map(|texts| {
            let mut once: Vec<String> = Vec::new();
            texts.into_iter().for_each(|text| {
                if !once.contains(&text) {
                    once.push(text)
                }
            });
            once
        });
        let cells = [code, when, texts.join("<br>"), hints.join("<br>"), exit];
        let cells = cells
            .map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"));
        page.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    page.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::of_files;

    #[test]
    fn texts_are_found_with_their_hints_and_exit_codes() {
        let page = page(&of_files([
            (REFUSALS, "pub enum RefusalCode {\n    /// No slot.\n    Busy,\n}"),
            (
                "crates/policy/src/moment.rs",
                "const AGAIN: &str = \"ask again\";\nfn check() { Refusal::new(RefusalCode::Busy, \"no slot is free\").with_hint(AGAIN) }",
            ),
            (
                ENDINGS,
                "pub enum Reason {\n    /// It was slow.\n    Deadline,\n}\nimpl fmt::Display for Reason {\n    fn fmt(&self) { match self { Self::Deadline => f.write_str(\"it has passed\") } }\n}",
            ),
            (
                RECOVERY,
                "impl Reason {\n    fn recovery(&self) { match self { Self::Deadline => no(Some(\"raise it\")) } }\n}",
            ),
            (EXITS, "enum Exit { BadInput = 2, Refused = 3, Stopped = 4 }"),
            (
                REPORT,
                "fn exit_of(code: &str) -> Exit { match code { \"deadline\" => Exit::Stopped } }",
            ),
            (
                "crates/cli/src/command/list.rs",
                "fn run() {\n    let message = format!(\"no run {a} | {b}\");\n    Err(Failure::new(FailureCode::NoSuchRun, Exit::Refused, message).hint(\"give another\"));\n    cx.output.note(NoteCode::Empty, empty(3));\n}\nfn empty(x: u8) -> String { format!(\"nothing {x} is here\") }",
            ),
            (
                FAILURE_CODES,
                "pub enum FailureCode {\n    /// A run is named that is not there.\n    NoSuchRun,\n}",
            ),
            (NOTE_CODES, "pub enum NoteCode {\n    /// A list is empty.\n    Empty,\n}"),
            (
                NEAR_MISSES,
                "const COMMANDS: [(&str, &str); 1] = [(\"ps\", \"`offshoot list` lists runs\")];",
            ),
            (
                "crates/store/src/error.rs",
                "pub enum StoreError {\n    /// It is gone.\n    #[error(\"the record `{}` is gone\", path.display())]\n    NotThere { path: PathBuf },\n}\nimpl StoreError {\n    fn hint(&self) { match self { Self::NotThere { .. } => Some(\"look for it\") } }\n}",
            ),
        ]));
        let page = page.expect("all files are there");
        for row in [
            "| `busy` | No slot. | no slot is free | ask again | 3 |",
            "| `deadline` | It was slow. | it has passed | raise it | 4 |",
            "| `no_such_run` | A run is named that is not there. | no run {a} \\| {b} | give another | 3 |",
            "| note `empty` | A list is empty. | nothing {x} is here |  |  |",
            "| `ps` | `offshoot list` lists runs |",
            "| `StoreError`: `not_there` | It is gone. | the record `{path}` is gone | look for it | 2 |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
