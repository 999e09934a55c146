//! Words and forms that several commands share.

use std::collections::BTreeSet;

use offshoot_audit::Unit;
use offshoot_display::number;
use offshoot_model::{MicroUsd, Node, RootId};

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

/// Says how to go on with trees that have lost their supervisor, and how to end them, where runs of them are shown.
pub(crate) fn point_to_lost_trees<'a>(
    record: &Record,
    roots: impl Iterator<Item = &'a Node>,
    cx: &Invocation,
) -> Result<(), Failure> {
    let lost = roots.filter(|node| node.is_without_supervisor() && node.parent.is_none());
    let lost = lost.map(|node| node.root).collect::<BTreeSet<_>>();
    if let Some(hint) = lost_trees(record, &lost.into_iter().collect::<Vec<_>>())? {
        cx.output.hint(NoteCode::WithoutSupervisor, hint);
    }
    Ok(())
}

/// Tells of trees that have lost their supervisor what can be done; nothing where there is none. No command goes on with a tree of
/// `offshoot mcp`, which has no plan.
pub(crate) fn lost_trees(record: &Record, lost: &[RootId]) -> Result<Option<String>, Failure> {
    Ok(match lost {
        [] => None,
        [root] => {
            let admitted = record.store().admitted(*root, root.run())?;
            Some(match admitted.is_some_and(|admitted| admitted.plan.is_some()) {
                true => format!(
                    "1 tree has lost its supervisor: `offshoot resume {root}` goes on with it, `offshoot cancel {root}` ends it"
                ),
                false => {
                    format!("1 tree has lost its supervisor: `offshoot cancel {root}` ends it")
                }
            })
        }
        many => Some(format!(
            "{} trees have lost their supervisor: `offshoot resume RUN` goes on with one, `offshoot cancel RUN` ends one",
            many.len()
        )),
    })
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
