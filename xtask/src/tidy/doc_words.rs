//! Documentation comments open with the noun or verb that they are about.
//!
//! A comment that opens with a pronoun or a question word makes its reader look for the subject, and one of a single word says
//! nothing.

use super::Finding;
use crate::workspace::Workspace;

/// Crates whose comments are not clean yet. All others are checked.
const NOT_CLEAN: &[&str] = &["plugin-abi", "plugin-host", "plugin-sdk"];

/// Words that name no subject.
const OPENINGS: &[&str] = &[
    "anybody",
    "everybody",
    "he",
    "how",
    "it",
    "its",
    "nobody",
    "she",
    "somebody",
    "someone",
    "that",
    "their",
    "them",
    "these",
    "they",
    "this",
    "those",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whoever",
    "whom",
    "whose",
    "why",
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let is_clean = |path: &str| {
        let folder = path.strip_prefix("crates/").and_then(|path| path.split('/').next());
        folder.is_some_and(|folder| !NOT_CLEAN.contains(&folder))
    };
    workspace
        .rust()
        .filter(|(path, _)| is_clean(path))
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = (1..).zip(text.lines().map(comment)).peekable();
    while let Some((number, line)) = lines.next() {
        let Some(first) = line else { continue };
        let mut words = first.split_whitespace().count();
        while let Some((_, Some(more))) = lines.next_if(|(_, line)| line.is_some()) {
            words += more.split_whitespace().count();
        }
        let opening: String = first.chars().take_while(char::is_ascii_alphabetic).collect();
        let message = if OPENINGS.contains(&opening.to_lowercase().as_str()) {
            format!(
                "a comment opens with `{opening}`: begin with the noun or verb that it is about"
            )
        } else if words == 1 {
            format!("a comment of one word, `{first}`: say what it is")
        } else {
            continue;
        };
        findings.push(Finding::new(format!("{path}:{number}"), message));
    }
    findings
}

/// The text of a line of documentation.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    // Four strokes draw a line.
    (!text.starts_with('/')).then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = super::check(&of_files([
            ("crates/new/src/a.rs", text),
            ("crates/plugin-abi/src/a.rs", text),
        ]));
        expect_findings(&found, expected);
    }

    #[test]
    fn a_comment_opens_with_its_subject() {
        check("//! The cuts of a file.\n\n/// Returns the end.\nfn end() {}\n", &[]);
        check("/// A long comment whose second line\n/// that goes on is free.\n", &[]);
        check("// What this does.\n//// What\nlet url = \"///what\";\n", &[]);
        check("/// Itself, and its like.\n/// [`Whole`] ones.\n", &[]);
        for opening in ["What", "Its", "whose", "These"] {
            check(
                &format!("fn a() {{}}\n    /// {opening} name.\n"),
                &[&format!(
                    "crates/new/src/a.rs:2: a comment opens with `{opening}`: begin with the \
                     noun or verb that it is about"
                )],
            );
        }
        check(
            "/// Fine words.\nfn a() {}\n//! That\n//! is not.",
            &["crates/new/src/a.rs:3: a comment opens with `That`: begin with the noun or verb \
               that it is about"],
        );
    }

    #[test]
    fn a_comment_has_more_than_one_word() {
        check("/// Name\n/// and place.\n", &[]);
        check(
            "/// Path.\n",
            &["crates/new/src/a.rs:1: a comment of one word, `Path.`: say what it is"],
        );
    }
}
