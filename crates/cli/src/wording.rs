//! Words and forms that several commands share.

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
