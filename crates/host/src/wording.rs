//! Errors in words.

use std::error::Error;
use std::io;

/// Returns the system's words for an error, lower case and without the number that Rust adds.
pub fn plain(error: &io::Error) -> String {
    words(&error.to_string())
}

/// Returns the chain that begins at `cause`, the nearest first. A cause whose words the message above it repeats is left out.
pub fn causes(message: &str, mut cause: Option<&dyn Error>) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    while let Some(error) = cause {
        let text = words(&error.to_string());
        let above = causes.last().map_or(message, String::as_str);
        if !above.contains(&text) {
            causes.push(text);
        }
        cause = error.source();
    }
    causes
}

/// Returns an error and its causes in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let message = error.to_string();
    let causes = causes(&message, error.source());
    causes.into_iter().fold(message, |line, cause| format!("{line}: {cause}"))
}

/// Only the text of a system error has a number, and only such a one begins with a capital.
fn words(text: &str) -> String {
    let Some((words, _)) = text.split_once(" (os error") else { return text.to_owned() };
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_reads_like_our_own_words() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(plain(&missing), "no such file or directory");
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: {source}")]
        struct Outer {
            source: std::num::ParseIntError,
        }
        let source = "x".parse::<u8>().expect_err("x is no number");
        let outer = Outer { source };
        assert_eq!(causes(&outer.to_string(), outer.source()), Vec::<String>::new());
    }
}
