//! `docs/messages.md`: every text that the command says when something is wrong, with its hint, so that all are read as one set.
//!
//! The texts stand beside what they are about, in the code; they are found there by the forms in which all of them are written.

use std::collections::BTreeMap;

use super::tokens::{Token, tokens};
use crate::Result;
use crate::workspace::Workspace;

/// The beginning of the page.
const HEAD: &str = "# Messages

Made by `cargo xtask regenerate` from the texts in the code. `{…}` stands for a name, a number or a path. With `--json` an error is
also JSON on standard output: `status`, `code`, `message`, `causes`, `hint` and `exitCode`.

";

/// The file of refusal codes, that of reasons of an end, that of advice after an end, that of exit codes, and the one in which reasons have theirs.
const REFUSALS: &str = "crates/model/src/refusal.rs";
const ENDINGS: &str = "crates/model/src/ending.rs";
const RECOVERY: &str = "crates/model/src/recovery.rs";
const EXITS: &str = "crates/cli/src/exit.rs";
const REPORT: &str = concat!("crates/cli/src/work", "/report.rs");

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

/// A call with a text, where it stands.
struct Call {
    when: String,
    name: String,
    /// The first word of its arguments that is a path of two words, as `Exit::Refused`.
    path: Option<(String, String)>,
    texts: Vec<String>,
    hints: Vec<String>,
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
    let file = |path: &str| files.get(path).ok_or_else(|| format!("{path} is not there"));
    let exits = numbers(file(EXITS)?);
    let mut page = HEAD.to_owned();

    let mut refusals = Vec::new();
    for (code, when) in variants(file(REFUSALS)?, "RefusalCode") {
        let calls =
            files.values().flat_map(|tokens| calls(tokens, &["Refusal::new", "Refusal::invalid"]));
        let of_code = calls.filter(|call| match &call.path {
            Some((_, named)) => *named == code,
            None => call.name == "Refusal::invalid" && code == "InvalidRequest",
        });
        let (texts, hints): (Vec<_>, Vec<_>) = of_code.map(|call| (call.texts, call.hints)).unzip();
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
    );

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
    );

    let mut said = Vec::new();
    for (path, tokens) in files.iter().filter(|(path, _)| path.starts_with("crates/cli/")) {
        for call in calls(
            tokens,
            &[
                "Failure::input",
                "Failure::new",
                "Failure::file",
                "Complaint::new",
                "warning",
                "note",
                "hint",
            ],
        ) {
            let exit = match (&*call.name, &call.path) {
                ("Failure::new", Some((_, exit))) => exits.get(exit).cloned().unwrap_or_default(),
                ("Failure::input" | "Failure::file", _) => "2".to_owned(),
                _ => String::new(),
            };
            let kind = match &*call.name {
                name if name.contains(':') => "error",
                name => name,
            };
            let place = path.trim_start_matches("crates/cli/src/").trim_end_matches(".rs");
            said.push(Row {
                code: format!("{kind}, `{place}`"),
                when: call.when,
                texts: call.texts,
                hints: call.hints,
                exit,
            });
        }
    }
    said.retain(|row| !row.texts.is_empty());
    section(
        &mut page,
        "Errors, warnings and notes of the command",
        "Each with the file of the command in which it stands.",
        said,
    );

    let mut errors = Vec::new();
    for tokens in files.values() {
        for (of, variant, when, text) in thrown(tokens) {
            let hints = files.values().map(|tokens| arms(tokens, &of, "hint"));
            let hints: Vec<_> =
                hints.filter_map(|mut arms| arms.remove(&variant)).flatten().collect();
            let exit =
                OTHER_EXITS.iter().find(|(name, _)| *name == of).map_or("2", |(_, exit)| exit);
            errors.push(Row {
                code: format!("`{of}`: `{}`", snake(&variant)),
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
    );
    Ok(page)
}

fn section(page: &mut String, title: &str, about: &str, rows: Vec<Row>) {
    page.push_str(&format!(
        "## {title}\n\n{about}\n\n| code | when | text | hint | exit |\n|---|---|---|---|---|\n"
    ));
    for Row { code, when, texts, hints, exit } in rows {
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
}

/// The variants of an enum with what is said of each.
fn variants(tokens: &[Token], name: &str) -> Vec<(String, String)> {
    let Some(start) =
        tokens.windows(2).position(|pair| pair[0].is_word("enum") && pair[1].is_word(name))
    else {
        return Vec::new();
    };
    let mut depth = 0;
    let mut docs: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for token in &tokens[start + 2..] {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            Token::Doc(doc) if depth == 1 => docs.push(doc),
            Token::Word(word) if depth == 1 && word.starts_with(char::is_uppercase) => {
                found.push((word.clone(), std::mem::take(&mut docs).join(" ")));
            }
            _ => {}
        }
        if depth == 0 && *token == Token::Sign('}') {
            break;
        }
    }
    found
}

/// The errors with a text that a file declares: type, variant, what is said of it, and the text.
fn thrown(tokens: &[Token]) -> Vec<(String, String, String, String)> {
    let mut found = Vec::new();
    let (mut of, mut docs, mut text) = (String::new(), Vec::new(), None);
    for (at, token) in tokens.iter().enumerate() {
        let next = |ahead: usize| tokens.get(at + ahead);
        match token {
            Token::Word(word) if word == "enum" => {
                of = next(1).map(shown).unwrap_or_default();
                docs.clear();
            }
            Token::Word(word) if word == "struct" => (of, text) = (String::new(), None),
            Token::Doc(doc) if text.is_none() => {
                if !matches!(at.checked_sub(1).map(|at| &tokens[at]), Some(Token::Doc(_))) {
                    docs.clear();
                }
                docs.push(doc.clone());
            }
            Token::Word(word)
                if word == "error"
                    && matches!(next(1), Some(Token::Sign('(')))
                    && at > 1
                    && tokens[at - 1] == Token::Sign('[') =>
            {
                if let Some(Token::Text(said)) = next(2) {
                    text = Some(said.clone());
                }
            }
            Token::Word(word)
                if word.starts_with(char::is_uppercase)
                    && at > 0
                    && matches!(tokens[at - 1], Token::Sign(']')) =>
            {
                if let (Some(text), false) = (text.take(), of.is_empty()) {
                    found.push((of.clone(), word.clone(), docs.join(" "), text));
                }
            }
            _ => {}
        }
    }
    found
}

/// The texts in the arms of a function of a type, by the variants of `Self` before them.
fn arms(tokens: &[Token], of: &str, function: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut subject = false;
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is_word("impl") {
            let head = tokens[at..].iter().take_while(|token| **token != Token::Sign('{'));
            subject = head
                .filter(|token| matches!(token, Token::Word(_)))
                .last()
                .is_some_and(|last| last.is_word(of));
        }
        let is_here = subject
            && tokens[at].is_word("fn")
            && tokens.get(at + 1).is_some_and(|name| name.is_word(function));
        at += 1;
        if !is_here {
            continue;
        }
        let body = body(&tokens[at..]);
        let (mut variants, mut is_value): (Vec<String>, bool) = (Vec::new(), false);
        for (at, token) in body.iter().enumerate() {
            match token {
                Token::Word(word)
                    if (word == "Self" || word == of)
                        && body.get(at + 1) == Some(&Token::Sign(':')) =>
                {
                    if is_value {
                        (variants, is_value) = (Vec::new(), false);
                    }
                    variants.extend(body.get(at + 3).map(shown));
                }
                Token::Sign('>') if at > 0 && body[at - 1] == Token::Sign('=') => is_value = true,
                Token::Text(text) if is_value => {
                    for variant in &variants {
                        found.entry(variant.clone()).or_default().push(text.clone());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The tokens between the next pair of braces.
fn body(tokens: &[Token]) -> &[Token] {
    let Some(start) = tokens.iter().position(|token| *token == Token::Sign('{')) else {
        return &[];
    };
    &tokens[start..start + group(&tokens[start..])]
}

/// The number of tokens of a group in brackets that begins here.
fn group(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The calls of these functions and methods, with their texts and the hints that follow them.
fn calls(tokens: &[Token], names: &[&str]) -> Vec<Call> {
    let mut found = Vec::new();
    let (mut when, mut docs, mut begun) = (String::new(), Vec::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Doc(doc) => {
                if !matches!(at.checked_sub(1).map(|at| &tokens[at]), Some(Token::Doc(_))) {
                    docs.clear();
                }
                docs.push(doc.clone());
            }
            Token::Sign('}' | ';') => docs.clear(),
            Token::Word(word) if word == "fn" => {
                begun = at;
                when = docs.join(" ");
                if when.is_empty() {
                    when = format!("in `{}`", tokens.get(at + 1).map(shown).unwrap_or_default());
                }
            }
            _ => {}
        }
        let Some(name) = names.iter().find(|name| is_call(&tokens[at..], name)) else { continue };
        // A method of an output, and no other of the name.
        let is_method = !name.contains(':');
        if is_method
            && (at < 2
                || tokens[at - 1] != Token::Sign('.')
                || !["output", "self"].iter().any(|it| tokens[at - 2].is_word(it)))
        {
            continue;
        }
        let open = at + if is_method { 1 } else { 4 };
        let end = open + group(&tokens[open..]);
        let inside = &tokens[open..end];
        // A field comes before the text.
        let said = if *name == "Refusal::invalid" { after_comma(inside) } else { inside };
        let path = inside.windows(4).find(|four| {
            matches!(&four[0], Token::Word(word) if word == "Exit" || word == "RefusalCode")
                && four[1] == Token::Sign(':')
        });
        let path = path.map(|four| (shown(&four[0]), shown(&four[3])));
        let mut texts = texts(said);
        if *name == "Failure::file" {
            texts = verbs(said);
        } else if texts.is_empty() {
            texts = named(&tokens[begun..at], said);
        }
        found.push(Call {
            when: when.clone(),
            name: (*name).to_owned(),
            path,
            texts,
            hints: hints(&tokens[begun..], end - begun),
        });
    }
    found
}

/// The hints that are added to what ends here.
fn hints(tokens: &[Token], mut at: usize) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        while matches!(tokens.get(at), Some(Token::Sign(')' | '}'))) {
            at += 1;
        }
        let is_added = tokens.get(at) == Some(&Token::Sign('.'))
            && ["hint", "maybe_hint", "with_hint", "caused_by"]
                .iter()
                .any(|name| tokens.get(at + 1).is_some_and(|it| it.is_word(name)));
        if !is_added {
            return found;
        }
        let end = at + 2 + group(&tokens[at + 2..]);
        let inside = &tokens[at + 2..end];
        if !tokens[at + 1].is_word("caused_by") {
            let texts = texts(inside);
            found.extend(if texts.is_empty() { named(&tokens[..at], inside) } else { texts });
        }
        at = end;
    }
}

fn is_call(tokens: &[Token], name: &str) -> bool {
    let mut words = name.split("::");
    let first = words.next().unwrap_or_default();
    match words.next() {
        None => tokens[0].is_word(first) && tokens.get(1) == Some(&Token::Sign('(')),
        Some(second) => {
            let shape = tokens.get(1) == Some(&Token::Sign(':'))
                && tokens.get(4) == Some(&Token::Sign('('));
            tokens[0].is_word(first) && shape && tokens.get(3).is_some_and(|it| it.is_word(second))
        }
    }
}

/// The arguments behind the first of a call.
fn after_comma(tokens: &[Token]) -> &[Token] {
    let mut at = 1;
    while at < tokens.len() {
        match tokens[at] {
            Token::Sign(',') => return &tokens[at..],
            Token::Sign('(' | '[' | '{') => at += group(&tokens[at..]),
            _ => at += 1,
        }
    }
    tokens
}

/// The strings of several words.
fn texts(tokens: &[Token]) -> Vec<String> {
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Text(text) if text.trim().contains(' ') => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// The messages about a file, each of which is given its verb alone.
fn verbs(tokens: &[Token]) -> Vec<String> {
    let verb = tokens.iter().find(|token| matches!(token, Token::Text(_)));
    verb.into_iter().map(|verb| format!("cannot {} {{path}}: {{error}}", shown(verb))).collect()
}

/// The file with the texts of its constants in their place.
fn with_constants(tokens: Vec<Token>) -> Vec<Token> {
    let mut constants = BTreeMap::new();
    for (at, pair) in tokens.windows(2).enumerate().filter(|(_, pair)| pair[0].is_word("const")) {
        let value = tokens[at..].iter().take_while(|token| **token != Token::Sign(';'));
        let mut value = value.filter(|token| matches!(token, Token::Text(_)));
        if let (Some(only), None) = (value.next(), value.next()) {
            constants.insert(shown(&pair[1]), shown(only));
        }
    }
    let replaced = tokens.into_iter().map(|token| match token {
        Token::Word(name) => match constants.get(&name) {
            Some(text) => Token::Text(text.clone()),
            None => Token::Word(name),
        },
        Token::Text(text) if text.contains('{') => Token::Text(
            constants
                .iter()
                .fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value)),
        ),
        other => other,
    });
    replaced.collect()
}

/// The strings of the last value that has the name which is handed over.
fn named(before: &[Token], inside: &[Token]) -> Vec<String> {
    let names = inside
        .iter()
        .filter(|token| matches!(token, Token::Word(word) if word.starts_with(char::is_lowercase)));
    for name in names {
        let given = before.windows(2).rposition(|pair| pair[0].is_word("let") && pair[1] == *name);
        if let Some(at) = given {
            let end = before[at..].iter().position(|token| *token == Token::Sign(';')).unwrap_or(0);
            return texts(&before[at..at + end]);
        }
    }
    Vec::new()
}

/// The numbers of an enum.
fn numbers(tokens: &[Token]) -> BTreeMap<String, String> {
    let is_number = |three: &&[Token]| {
        three[1] == Token::Sign('=') && shown(&three[2]).starts_with(|c: char| c.is_ascii_digit())
    };
    let pairs = tokens.windows(3).filter(is_number);
    pairs.map(|three| (shown(&three[0]), shown(&three[2]))).collect()
}

/// The exit codes of reasons.
fn exits_of(tokens: &[Token], exits: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let Some(at) =
        tokens.windows(2).position(|pair| pair[0].is_word("fn") && pair[1].is_word("exit_of"))
    else {
        return BTreeMap::new();
    };
    let mut open = Vec::new();
    let mut found = BTreeMap::new();
    let body = body(&tokens[at..]);
    for (at, token) in body.iter().enumerate() {
        match token {
            Token::Text(text) => open.push(text.clone()),
            Token::Word(word) if word == "Exit" => {
                let exit = body.get(at + 3).and_then(|exit| exits.get(&shown(exit)));
                found.extend(
                    open.drain(..).zip(std::iter::repeat(exit.cloned().unwrap_or_default())),
                );
            }
            _ => {}
        }
    }
    found
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Text(text) | Token::Doc(text) => text.clone(),
        Token::Sign(sign) => sign.to_string(),
    }
}

/// The word of a variant, as in JSON.
fn snake(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(c.to_lowercase());
    }
    word
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
                "/// Lists runs.\nfn run() {\n    let message = format!(\"no run {a} | {b}\");\n    Err(Failure::new(Exit::Refused, message).hint(\"give another\"));\n    cx.output.note(\"nothing is here\");\n}",
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
            "| error, `command/list` | Lists runs. | no run {a} \\| {b} | give another | 3 |",
            "| note, `command/list` | Lists runs. | nothing is here |  |  |",
            "| `StoreError`: `not_there` | It is gone. | the record `{}` is gone | look for it | 2 |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
