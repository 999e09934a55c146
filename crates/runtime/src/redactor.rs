//! Secrets struck out of a stream that comes in blocks.

use memchr::memmem;

use crate::secrets::{PART, STAND_IN, Secrets};

/// Strikes secrets out of a stream, wherever its blocks are cut. Holds back what may be the beginning of one, and nothing else.
///
/// ```
/// use offshoot_runtime::{Redactor, Secrets};
///
/// let mut redactor = Redactor::new(Secrets::new(["hunter-2-hunter".to_owned()]));
/// assert_eq!(redactor.feed(b"login hunter-"), b"login ");
/// assert_eq!(redactor.feed(b"2-hunter failed\n"), b"[redacted] failed\n");
/// assert_eq!(redactor.finish(), b"");
/// ```
#[derive(Debug)]
pub struct Redactor {
    secrets: Secrets,
    /// The end of the stream, where it may be the beginning of a secret.
    held: Vec<u8>,
    passed: Vec<u8>,
}

impl Redactor {
    /// For a stream that has not begun.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new(), passed: Vec::new() }
    }

    /// Takes a block, and returns what is certain by now.
    pub fn feed<'a>(&'a mut self, block: &'a [u8]) -> &'a [u8] {
        if self.secrets.is_empty() {
            return block;
        }
        self.held.extend_from_slice(block);
        self.passed.clear();
        let mut rest = &self.held[..];
        loop {
            let first = self.first(rest);
            let open = self.open(rest);
            match first {
                // One that may still turn out to be part of a longer one waits.
                Some((at, length)) if open.is_none_or(|open| at < open) => {
                    self.passed.extend_from_slice(&rest[..at]);
                    self.passed.extend_from_slice(STAND_IN.as_bytes());
                    rest = &rest[at + length..];
                }
                _ => {
                    let certain = open.unwrap_or(rest.len());
                    self.passed.extend_from_slice(&rest[..certain]);
                    let from = self.held.len() - rest.len() + certain;
                    self.held.drain(..from);
                    return &self.passed;
                }
            }
        }
    }

    /// The stream is over: returns the rest of it. So much of a secret that it shows what it is is struck out too.
    pub fn finish(&mut self) -> &[u8] {
        self.passed.clear();
        self.passed.append(&mut self.held);
        if self.passed.len() >= PART {
            self.passed = self
                .secrets
                .strike_out(&String::from_utf8_lossy(&self.passed))
                .into_owned()
                .into_bytes();
        }
        &self.passed
    }

    /// The first secret in a text, and the longest of those that begin there.
    fn first(&self, text: &[u8]) -> Option<(usize, usize)> {
        let found = self
            .secrets
            .texts()
            .filter_map(|secret| Some((memmem::find(text, secret)?, secret.len())));
        found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }

    /// The place from which the rest of a text may be the beginning of a secret.
    fn open(&self, text: &[u8]) -> Option<usize> {
        let begins = |secret: &[u8]| {
            let longest = (secret.len() - 1).min(text.len());
            (1..=longest).rev().find(|length| text.ends_with(&secret[..*length]))
        };
        self.secrets.texts().filter_map(begins).max().map(|length| text.len() - length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_show() {
        let secrets = ["correct-horse", "correct-horse-battery", "aaaaaaaa", "schlüssel-ß"];
        let check = |text: &str, expected: &str| {
            for cut in 1..=text.len() {
                let mut redactor = Redactor::new(Secrets::new(secrets.map(str::to_owned)));
                let mut seen = Vec::new();
                for block in text.as_bytes().chunks(cut) {
                    seen.extend_from_slice(redactor.feed(block));
                }
                seen.extend_from_slice(redactor.finish());
                assert_eq!(String::from_utf8_lossy(&seen), expected, "{text:?} by {cut}");
            }
        };
        check("nothing to see\n", "nothing to see\n");
        check("a correct-horse!\n", "a [redacted]!\n");
        check("correct-horse-battery correct-horse-bat\n", "[redacted] [redacted]-bat\n");
        check("ein schlüssel-ß\n", "ein [redacted]\n");
        check("aaaaaaaaaaaa\n", "[redacted]aaaa\n");
        // Cut off at the end of the stream.
        check("the corr", "the [redacted]");
        check("the cor", "the cor");
        check("the correct-horse", "the [redacted]");
    }

    #[test]
    fn what_cannot_become_a_secret_is_not_held_back() {
        let mut redactor = Redactor::new(Secrets::new(["hunter-2-hunter".to_owned()]));
        assert_eq!(redactor.feed(b"line\n"), b"line\n");
        assert_eq!(redactor.feed(b"h"), b"");
        assert_eq!(redactor.feed(b"i\n"), b"hi\n");
        assert_eq!(Redactor::new(Secrets::default()).feed(b"x"), b"x");
    }
}
