//! The text of errors.

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

/// Returns an error and its causes on one line.
pub fn error_chain(error: &dyn Error) -> String {
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

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: Box<dyn Error>,
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        #[track_caller]
        fn check(texts: &[&'static str], cause: impl Error + 'static, expected: &str) {
            let mut error: Box<dyn Error> = Box::new(cause);
            for text in texts {
                error = Box::new(Outer { text, source: error });
            }
            assert_eq!(error_chain(&*error), expected);
        }
        let missing = || io::Error::from_raw_os_error(2);
        let number = || "x".parse::<u8>().expect_err("x is no number");
        check(&[], missing(), "No such file or directory (os error 2)");
        check(&["no a"], missing(), "no a: no such file or directory");
        check(&["no a", "no b"], missing(), "no b: no a: no such file or directory");
        check(&["no a", "no b: no a"], missing(), "no b: no a: no such file or directory");
        check(
            &["wrong: invalid digit found in string"],
            number(),
            "wrong: invalid digit found in string",
        );
    }
}
