//! Is the request right in itself?

use std::collections::HashSet;

use offshoot_model::{Origin, Refusal, SpawnRequest};

/// The longest label, which people read in a list.
const MAX_LABEL_CHARACTERS: usize = 100;
/// The names of the root of the newest tree.
pub const NAMES_OF_NEWEST: [&str; 2] = ["last", "main"];
/// The longest name that still fits, encoded, into a file name on every system.
const MAX_NAME_CHARACTERS: usize = 200;

pub(super) fn check(request: &SpawnRequest, origin: Origin) -> Result<(), Refusal> {
    // A command may say everything itself, and a piece is its own task.
    if request.task.trim().is_empty() && request.command.is_none() && origin != Origin::Piece {
        return Err(Refusal::invalid("task", "the task is empty"));
    }
    if let Some(label) = &request.label {
        // That of a piece may be the name of a file.
        let check = if origin == Origin::Piece { check_label } else { check_given_label };
        check(label)?;
    }
    let mut names = HashSet::new();
    for entry in &request.context {
        check_name(&entry.name)?;
        if !names.insert(&entry.name) {
            let message = format!("the context has two variables named {:?}", entry.name);
            return Err(Refusal::invalid("context", message));
        }
    }
    if let Some(command) = &request.command {
        check_command(command)?;
    }
    if let Some(codes) = &request.ok_exit {
        check_exit_codes(codes)?;
    }
    for (field, text) in [("model", &request.model), ("thinking", &request.thinking)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(Refusal::invalid(field, format!("the {field} is empty")));
        }
    }
    if let Some(tools) = &request.tools {
        let mut names = tools.allow.iter().flatten().chain(&tools.deny);
        if let Some(name) = names.find(|name| !is_right(name)) {
            let message = format!("{name:?} is not the name of a right");
            return Err(Refusal::invalid("tools", message).with_hint(
                "rights are read, write, exec, search, fetch, spawn, mcp:SERVER/TOOL and the names that a runtime has for its tools",
            ));
        }
    }
    Ok(())
}

/// Makes sure that people can read a label in a list: 1 to 100 characters, none of them a control character.
///
/// # Errors
///
/// `invalid_request`, with the reason.
pub fn check_label(label: &str) -> Result<(), Refusal> {
    let characters = label.chars().count();
    let message = if label.trim().is_empty() {
        "the label is empty".to_owned()
    } else if characters > MAX_LABEL_CHARACTERS {
        format!("the label has {characters} characters, and {MAX_LABEL_CHARACTERS} are allowed")
    } else if label.chars().any(char::is_control) {
        "the label contains a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::invalid("label", message))
}

/// Makes sure that a given label can be read in a list, and names its run: `last`, `main` and `@N` mean other ones.
///
/// # Errors
///
/// `invalid_request`, with the reason.
pub fn check_given_label(label: &str) -> Result<(), Refusal> {
    check_label(label)?;
    if !is_reserved_label(label) {
        return Ok(());
    }
    let message = format!("the label {label:?} is reserved");
    Err(Refusal::invalid("label", message).with_hint(
        "`last` and `main` are names of the newest root, and `@N` is row N of the last listing: give it another label",
    ))
}

/// True if commands read a label as the name of another run: the newest root, or a row of the last listing.
pub fn is_reserved_label(label: &str) -> bool {
    let is_row = |number: &str| !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    NAMES_OF_NEWEST.contains(&label) || label.strip_prefix('@').is_some_and(is_row)
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let characters = name.chars().count();
    let message = if name.is_empty() {
        "a context variable has no name".to_owned()
    } else if characters > MAX_NAME_CHARACTERS {
        format!(
            "the name of a context variable has {characters} characters, and \
             {MAX_NAME_CHARACTERS} are allowed"
        )
    } else {
        return Ok(());
    };
    Err(Refusal::invalid("context", message))
}

fn check_command(command: &[String]) -> Result<(), Refusal> {
    if command.first().is_none_or(String::is_empty) {
        return Err(Refusal::invalid("command", "the command names no program"));
    }
    // A zero byte ends a word for the kernel: what follows it would be lost.
    if command.iter().any(|word| word.contains('\0')) {
        return Err(Refusal::invalid("command", "a word of the command contains a zero byte"));
    }
    Ok(())
}

fn check_exit_codes(codes: &[i32]) -> Result<(), Refusal> {
    let wrong = codes.iter().find(|code| !(0..=255).contains(*code));
    let message = match (wrong, codes.is_empty()) {
        (Some(wrong), _) => format!("{wrong} is no exit code"),
        (None, true) => "no exit code means success".to_owned(),
        (None, false) => return Ok(()),
    };
    Err(Refusal::invalid("okExit", message).with_hint("name codes from 0 to 255, such as [0, 1]"))
}

fn is_right(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(|character: char| character.is_whitespace() || character.is_control())
}
