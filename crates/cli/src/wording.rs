//! Words and forms that several commands share.

use std::collections::BTreeSet;

use offshoot_audit::Unit;
use offshoot_display::number;
use offshoot_model::{MicroUsd, Node};

use crate::code::NoteCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Words as one would type them into a shell. One with control characters stands in the form that bash, zsh and ksh read: `$'a\nb'`.
pub(crate) fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%^".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false if word.chars().any(char::is_control) => escaped(word),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns a word in the quotes in which control characters are written out.
fn escaped(word: &str) -> String {
    let escape = |c: char| match c {
        '\n' => r"\n".to_owned(),
        '\t' => r"\t".to_owned(),
        '\r' => r"\r".to_owned(),
        '\'' => r"\'".to_owned(),
        '\\' => r"\\".to_owned(),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("$'{}'", word.chars().map(escape).collect::<String>())
}

/// The note where a data folder has no record.
pub(crate) fn nothing_yet(cx: &Invocation) -> String {
    format!("nothing has run here yet: nothing is recorded in {}", cx.data_folder().display())
}

/// Says how to go on with trees of which a supervisor was killed, where runs of them are shown. No command goes on with a tree of
/// `offshoot mcp`, which has no plan.
pub(crate) fn point_to_resume<'a>(
    record: &Record,
    roots: impl Iterator<Item = &'a Node>,
    cx: &Invocation,
) -> Result<(), Failure> {
    let mut lost = BTreeSet::new();
    for root in roots.filter(|node| node.is_without_supervisor() && node.parent.is_none()) {
        let admitted = record.store().admitted(root.root, root.run)?;
        lost.extend(admitted.filter(|admitted| admitted.plan.is_some()).map(|_| root.root));
    }
    let hint = match (lost.first(), lost.len()) {
        (None, _) => return Ok(()),
        (Some(root), 1) => {
            format!("a tree has no supervisor any more: `offshoot resume {root}` goes on with it")
        }
        (Some(_), many) => {
            format!(
                "{many} trees have no supervisor any more: `offshoot resume RUN` goes on with one"
            )
        }
    };
    cx.output.hint(NoteCode::WithoutSupervisor, hint);
    Ok(())
}

/// `340 tokens` or `$0.13`: an amount of a budget.
pub(crate) fn amount(unit: Unit, amount: u128) -> String {
    let amount = u64::try_from(amount).unwrap_or(u64::MAX);
    match unit {
        Unit::Tokens => format!("{} tokens", number::count(amount)),
        Unit::MicroUsd => number::exact_dollars(MicroUsd::from_micros(amount)),
    }
}

/// Says what of a budget is used, reserved and left, of amounts as they are shown.
pub(crate) fn budget_left([granted, used, reserved, left]: [String; 4]) -> String {
    format!(
        "{used} of {granted} are used, {reserved} are reserved for what is not over, {left} are left"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_typed_again() {
        let words = ["grep", "-c", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"grep -c 'it'\''s' ''");
        let words = ["tr", "\n", "a'\u{1b}\\"].map(str::to_owned);
        assert_eq!(command_line(&words), r"tr $'\n' $'a\'\u001b\\'");
    }
}
