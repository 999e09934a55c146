//! Comments and pages name their subject.
//!
//! A documentation comment that opens with a pronoun or a question word makes its reader look for the subject, and one of a
//! single word says nothing. A word for an unnamed person makes a reader guess which program, user or run is meant: such words
//! stand in no comment, no name of a function and no page.

use super::Finding;
use crate::workspace::Workspace;

/// The interface as it was published, which is not changed.
const FROZEN: &str = "tests/plugins/frozen-1.0/";

/// The folders whose comments open with their subject. Those of `tests/` are for the readers of one test.
const NAMING: &[&str] = &["benches/", "crates/", "plugins/", "xtask/"];

/// Words for a person without a name, in whatever combination. They are glued together, so that this file does not contain them.
const PERSONS: &[&str] = &[
    concat!("any", "body"),
    concat!("every", "body"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("who", "ever"),
];

/// Words that name no subject.
const OPENINGS: &[&str] = &[
    "he", "how", "it", "its", "she", "someone", "that", "their", "them", "these", "they", "this",
    "those", "what", "whatever", "when", "where", "whether", "which", "who", "whom", "whose",
    "why",
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let openings = workspace
        .rust()
        .filter(|(path, _)| NAMING.iter().any(|folder| path.starts_with(folder)))
        .flat_map(|(path, text)| check_file(path, text));
    let persons = workspace.files.iter().filter(|(path, _)| !path.starts_with(FROZEN));
    openings.chain(persons.flat_map(|(path, text)| check_persons(path, text))).collect()
}

/// Finds words for a person without a name. Quoted text and code in it may hold them: an agent or a user may be called so.
fn check_persons(path: &str, text: &str) -> Vec<Finding> {
    let is_page = path.ends_with(".md");
    if !is_page && !path.ends_with(".rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let prose = match line.find("//") {
            _ if is_page || line.contains("fn ") => line,
            Some(at) => &line[at..],
            None => continue,
        };
        let unquoted: String = prose.split(['`', '"']).step_by(2).collect();
        let words = unquoted.to_lowercase();
        for word in PERSONS.iter().filter(|word| words.contains(**word)) {
            let message = format!("`{word}`: name the program, the user or the run");
            findings.push(Finding::new(format!("{path}:{number}"), message));
        }
    }
    findings
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
            ("tests/support/src/a.rs", text),
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
    fn comments_names_and_pages_call_their_subjects_by_name() {
        for word in super::PERSONS {
            let line = format!("// Read by {word}.\nfn hurts_{word}() {{}}\nlet a = \"{word}\";\n");
            let line = format!("{line}run(); // An agent `{word}`.\n");
            let page = format!("Read by\n{word}, or by the agent `{word}`.\n");
            let files = [
                ("tests/support/src/a.rs", &*line),
                ("tests/plugins/frozen-1.0/a.rs", &line),
                ("docs/a.md", &page),
                ("docs/a.txt", &page),
            ];
            let why = format!("`{word}`: name the program, the user or the run");
            let places = ["docs/a.md:2", "tests/support/src/a.rs:1", "tests/support/src/a.rs:2"];
            let expected = places.map(|place| format!("{place}: {why}"));
            expect_findings(&super::check(&of_files(files)), &expected.each_ref().map(|it| &**it));
        }
    }

    #[test]
    fn plugins_benchmarks_and_chores_are_held_to_it_too() {
        for path in ["plugins/a/src/lib.rs", "benches/src/a.rs", "xtask/src/a.rs"] {
            let found = super::check(&of_files([(path, "/// Its name.\n")]));
            assert_eq!(found.len(), 1, "{path}: {}", found.len());
        }
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
