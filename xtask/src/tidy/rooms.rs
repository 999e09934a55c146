//! The modules of a crate use each other in one direction.
//!
//! A crate with a row below has its modules in an order: each may use those that stand further down. A row may also stand for
//! the modules within one folder. Tests may use anything.

use std::collections::BTreeSet;

use super::Finding;
use crate::workspace::Workspace;

const TABLE: &str = "xtask/src/tidy/rooms.rs";

/// The modules in one folder of sources, from the uppermost to the lowest.
struct Rooms {
    folder: &'static str,
    order: &'static [&'static str],
}

const ROOMS: &[Rooms] = &[
    Rooms {
        folder: "crates/spawner/src",
        order: &[
            "spawner",
            "handle",
            "supervisor",
            "task",
            "message",
            "request",
            "attempt_watch",
            "tree_context",
            "announce",
            "stored_values",
            "error",
            "machine",
            "event_stream",
            "excerpt",
            "runtimes",
            "run_spec",
            "ticket_issuer",
            "account_board",
            "host_slots",
            "model_request",
            "workspaces",
            "kept_values",
            "root_kind",
            "clock",
            "blocking",
        ],
    },
    Rooms {
        folder: "crates/spawner/src/handle",
        order: &[
            "session",
            "fan",
            "gathering",
            "asked_merge",
            "external_merge",
            "delegation",
            "agents",
            "child",
            "notebook",
            "tree_state",
        ],
    },
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    ROOMS.iter().flat_map(|rooms| check_rooms(workspace, rooms)).collect()
}

fn check_rooms(workspace: &Workspace, rooms: &Rooms) -> Vec<Finding> {
    let Some((package, within)) = rooms.folder.split_once("/src") else {
        unreachable!("a folder of sources lies below `src`")
    };
    let sources = format!("{package}/src/");
    // The path of the module whose rooms these are.
    let parent: Vec<&str> = within.split('/').filter(|part| !part.is_empty()).collect();
    let (mut findings, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in workspace.rust() {
        let Some(inside) = path.strip_prefix(&sources) else { continue };
        let module: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
        let Some(room) = module.strip_prefix(parent.as_slice()).and_then(|rest| rest.first())
        else {
            continue;
        };
        if ["lib", "main", "tests"].contains(room) {
            continue;
        }
        seen.insert(*room);
        let Some(place) = rooms.order.iter().position(|other| other == room) else {
            findings.push(Finding::new(path, format!("`{room}` has no place in {TABLE}")));
            continue;
        };
        if module.contains(&"tests") {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or(text);
        for (number, line) in (1..).zip(code.lines()) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in uses(&module, line) {
                let Some(used) =
                    used.strip_prefix(parent.as_slice()).and_then(|rest| rest.first().copied())
                else {
                    continue;
                };
                let message = match rooms.order.iter().position(|other| *other == used) {
                    Some(other) if other < place => {
                        format!("`{room}` uses `{used}`, which stands above it in {TABLE}")
                    }
                    // Items of the module around are at hand for all its rooms, but a crate's root only names items of others.
                    None if parent.is_empty() => {
                        format!(
                            "`crate::{used}` is no room of {TABLE}; name the room that it is in"
                        )
                    }
                    Some(_) | None => continue,
                };
                findings.push(Finding::new(format!("{path}:{number}"), message));
            }
        }
    }
    let absent = rooms.order.iter().filter(|room| !seen.contains(**room));
    findings.extend(absent.map(|room| {
        Finding::new(TABLE, format!("there is no module `{room}` in {}", rooms.folder))
    }));
    findings
}

/// The paths in a line of code that begin with `crate` or `super`, each from the root of the crate.
fn uses<'a>(module: &[&'a str], line: &'a str) -> Vec<Vec<&'a str>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let paths = line.split(|c| !is_part(c)).filter_map(|path| {
        let (mut parts, mut base) = (path.split("::").peekable(), Vec::new());
        match parts.next()? {
            "crate" => {}
            "super" => {
                base = module.to_vec();
                base.pop();
                while parts.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
            _ => return None,
        }
        base.extend(parts.filter(|part| !part.is_empty()));
        Some(base)
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::expect_findings;
    use crate::workspace::of_files;

    const CRATE: Rooms = Rooms { folder: "crates/a/src", order: &["top", "middle", "leaf"] };
    const FOLDER: Rooms = Rooms { folder: "crates/a/src/top", order: &["upper", "lower"] };

    /// The findings where each of these rooms exists, and one of them has this text.
    #[track_caller]
    fn check(rooms: &Rooms, path: &str, text: &str, expected: &[&str]) {
        let mut files = of_files([
            ("crates/a/src/lib.rs", "use crate::top::Top;"),
            ("crates/a/src/top.rs", ""),
            ("crates/a/src/top/upper.rs", ""),
            ("crates/a/src/top/lower.rs", ""),
            ("crates/a/src/middle.rs", ""),
            ("crates/a/src/leaf.rs", ""),
            ("crates/b/src/other.rs", "use crate::top::Top;"),
        ]);
        files.files.insert(path.to_owned(), text.to_owned());
        expect_findings(&check_rooms(&files, rooms), expected);
    }

    #[test]
    fn a_use_goes_down() {
        let middle = "crates/a/src/middle.rs";
        check(&CRATE, middle, "use crate::leaf::Leaf;\nuse crate::middle::inner::X;\n", &[]);
        check(&CRATE, middle, "// See crate::top.\nuse super::leaf;", &[]);
        check(&CRATE, middle, "#[cfg(test)]\nmod tests {\n    use crate::top::Top;\n}", &[]);
        check(&CRATE, "crates/a/src/middle/tests.rs", "use crate::top::Top;", &[]);
        let above =
            |place: &str| format!("{place}: `middle` uses `top`, which stands above it in {TABLE}");
        let first = above("crates/a/src/middle.rs:1");
        for text in [
            "use crate::top::Top;",
            "use super::top;",
            "    let x = crate::top::x(1);",
            "pub(crate) use crate::top;",
        ] {
            check(&CRATE, middle, text, &[&first]);
        }
        let inner = "crates/a/src/middle/inner.rs";
        check(&CRATE, inner, "\nuse super::super::top::Top;", &[&above(&format!("{inner}:2"))]);
        check(
            &CRATE,
            "crates/a/src/leaf.rs",
            "use crate::Top;",
            &["crates/a/src/leaf.rs:1: `crate::Top` is no room of xtask/src/tidy/rooms.rs; name \
               the room that it is in"],
        );
    }

    #[test]
    fn the_rooms_of_a_folder_have_an_order_too() {
        let lower = "crates/a/src/top/lower.rs";
        check(&FOLDER, lower, "use super::Top;\nuse crate::leaf::Leaf;", &[]);
        let expected = format!("{lower}:1: `lower` uses `upper`, which stands above it in {TABLE}");
        check(&FOLDER, lower, "use super::upper::Upper;", &[&expected]);
        check(&FOLDER, lower, "use crate::top::upper::Upper;", &[&expected]);
    }

    #[test]
    fn modules_and_rows_belong_together() {
        check(
            &CRATE,
            "crates/a/src/new.rs",
            "",
            &["crates/a/src/new.rs: `new` has no place in xtask/src/tidy/rooms.rs"],
        );
        let rooms = Rooms { folder: "crates/a/src", order: &["top", "middle", "gone", "leaf"] };
        check(
            &rooms,
            "crates/a/src/middle.rs",
            "",
            &["xtask/src/tidy/rooms.rs: there is no module `gone` in crates/a/src"],
        );
    }
}
