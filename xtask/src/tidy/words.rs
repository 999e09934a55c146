//! Words that do not stay in the tree: unfinished work, silenced checks, paths of one machine.
//!
//! The words are glued together here, so that this file does not contain them.

use super::Finding;
use crate::workspace::Workspace;

struct Ban {
    words: &'static [&'static str],
    files: Where,
    why: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    Rust,
    /// Rust, except in these folders.
    RustOutside(&'static [&'static str]),
    Everywhere,
}

const BANS: &[Ban] = &[
    Ban {
        words: &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("FIX", "ME")],
        files: Where::Rust,
        why: "finish it, or leave it out and say what cannot be done",
    },
    Ban {
        words: &[concat!("#[", "ignore")],
        files: Where::Rust,
        why: "a test that is never run is not a test",
    },
    Ban {
        words: &[concat!("#[", "allow("), concat!("#![", "allow(")],
        files: Where::Rust,
        why: "write `expect` with a reason: it goes away when the reason does",
    },
    Ban {
        words: &[
            concat!("un", "safe {"),
            concat!("un", "safe fn"),
            concat!("un", "safe impl"),
            concat!("un", "safe extern"),
            concat!("un", "safe trait"),
            concat!("un", "safe("),
        ],
        files: Where::RustOutside(&[
            "crates/process/",
            "crates/plugin-abi/",
            "crates/plugin-host/",
            "crates/plugin-sdk/",
            "tests/faults/",
            // The interface as it was published, without the crates that are safe to use.
            "tests/plugins/frozen-1.0/",
        ]),
        why: "only `process`, the interface of plugins and the faults of tests need it",
    },
    Ban {
        words: &[concat!("/", "root/"), concat!("/", "work/"), concat!("/", "home/runner")],
        files: Where::Everywhere,
        why: "a path of one machine",
    },
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &workspace.files {
        let bans: Vec<&Ban> = BANS.iter().filter(|ban| ban.files.holds(path)).collect();
        for (number, line) in (1..).zip(text.lines()) {
            for ban in &bans {
                for word in ban.words.iter().filter(|word| has(line, word)) {
                    let place = format!("{path}:{number}");
                    findings.push(Finding::new(place, format!("`{word}`: {}", ban.why)));
                }
            }
        }
    }
    findings
}

/// True if a line has a word. A folder below the source of a crate is no path of one machine, whatever its name.
fn has(line: &str, word: &str) -> bool {
    let is_folder = |at: usize| word.starts_with('/') && line[..at].ends_with("/src");
    line.match_indices(word).any(|(at, _)| !is_folder(at))
}

impl Where {
    fn holds(self, path: &str) -> bool {
        match self {
            Self::Rust => path.ends_with(".rs"),
            Self::RustOutside(folders) => {
                path.ends_with(".rs") && !folders.iter().any(|folder| path.starts_with(folder))
            }
            Self::Everywhere => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::of_files;

    #[track_caller]
    fn check(path: &str, line: &str, expected: bool) {
        let found = super::check(&of_files([(path, &format!("fine\n{line}\n"))]));
        let places: Vec<_> = found.iter().map(|finding| finding.place.as_str()).collect();
        let place = format!("{path}:2");
        let expected: &[&str] = if expected { &[&place] } else { &[] };
        assert_eq!(places, expected, "{line}");
    }

    #[test]
    fn each_word_is_found_where_it_is_banned() {
        for ban in BANS {
            for word in ban.words {
                check("crates/a/src/x.rs", &format!("    {word} x"), true);
                check("docs/x.md", &format!("A {word} x"), ban.files == Where::Everywhere);
                let outside = !matches!(ban.files, Where::RustOutside(_));
                check("crates/process/src/x.rs", &format!("{word} x"), outside);
            }
        }
    }

    #[test]
    fn other_words_stay() {
        check("crates/a/src/x.rs", "// a safe {block}, ignored, allowed", false);
        check("crates/a/src/x.rs", "let path = \"/tmp/work\";", false);
        let folder = concat!("/", "work/");
        check("docs/x.md", &format!("`crates/a/src{folder}x.rs`"), false);
        check("docs/x.md", &format!("`crates/a/src{folder}x.rs` and {folder}x"), true);
    }
}
