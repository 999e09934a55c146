//! The files that are made from the code and kept beside it, so that it can be read without building it.

mod command_line;
mod messages;
mod tokens;

use std::fs;

use crate::workspace::Workspace;
use crate::{Result, cargo, workspace};

struct Generated {
    /// The path below the root.
    path: &'static str,
    make: fn() -> Result<String>,
}

const GENERATED: &[Generated] = &[
    Generated { path: "docs/config.schema.json", make: || cargo::offshoot(&["config", "schema"]) },
    Generated { path: "docs/plugin-abi.md", make: || cargo::example("layout") },
    Generated { path: "docs/plugin-protocol.md", make: || cargo::example("protocol") },
    Generated { path: "docs/events.schema.json", make: || cargo::example("event_schema") },
    Generated { path: "docs/cli.md", make: || command_line::page(&cargo::offshoot) },
    Generated { path: "docs/mcp-tools.md", make: tools },
    Generated { path: "docs/limits.md", make: || cargo::example("limits") },
    Generated { path: "docs/messages.md", make: || messages::page(&Workspace::read()?) },
];

/// The examples that print pages.
const EXAMPLES: &[&str] = &["layout", "protocol", "event_schema", "limits"];

/// `docs/mcp-tools.md`: the tools for models.
fn tools() -> Result<String> {
    let tools = cargo::offshoot(&["mcp", "--list-tools"])?;
    Ok(format!(
        "# The tools for models\n\nMade by `cargo xtask regenerate` from `offshoot mcp --list-tools`; \
         [mcp.md](mcp.md) says how they are used.\n\n{tools}"
    ))
}

/// Writes all of it.
pub(crate) fn write() -> Result {
    cargo::build_printers(EXAMPLES)?;
    for Generated { path, make } in GENERATED {
        let text = make().map_err(|error| format!("{path} cannot be made: {error}"))?;
        fs::write(workspace::root().join(path), text)
            .map_err(|error| format!("{path}: {error}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Compares all of it, and names every file that differs.
pub(crate) fn check() -> Result {
    cargo::build_printers(EXAMPLES)?;
    let mut stale = Vec::new();
    for Generated { path, make } in GENERATED {
        let made = make().map_err(|error| format!("{path} cannot be made: {error}"))?;
        let kept = fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
        if let Some(difference) = difference(&kept, &made) {
            eprintln!("{path}: {difference}");
            stale.push(*path);
        }
    }
    match stale.as_slice() {
        [] => Ok(()),
        stale => Err(format!("stale: {}; run `cargo xtask regenerate`", stale.join(", ")).into()),
    }
}

/// The first line in which what is kept differs from what is made.
fn difference(kept: &str, made: &str) -> Option<String> {
    if kept == made {
        return None;
    }
    let (mut kept, mut made) = (kept.lines(), made.lines());
    for number in 1.. {
        let (kept, made) = (kept.next(), made.next());
        if kept.is_none() && made.is_none() {
            break;
        }
        if kept != made {
            let shown =
                |line: Option<&str>| line.map_or("nothing".into(), |line| format!("`{line}`"));
            return Some(format!("line {number} is {} and should be {}", shown(kept), shown(made)));
        }
    }
    Some("the ends of lines differ".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        #[track_caller]
        fn check(kept: &str, made: &str, expected: Option<&str>) {
            assert_eq!(difference(kept, made).as_deref(), expected);
        }
        check("a\nb\n", "a\nb\n", None);
        check("a\nb\n", "a\nc\n", Some("line 2 is `b` and should be `c`"));
        check("", "a\n", Some("line 1 is nothing and should be `a`"));
        check("a\nb\n", "a\n", Some("line 2 is `b` and should be nothing"));
        check("a", "a\n", Some("the ends of lines differ"));
    }
}
