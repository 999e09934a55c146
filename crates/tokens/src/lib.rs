//! Counting the tokens of texts, as an estimate for any model.
//!
//! Each model has a tokenizer of its own, and most providers publish none. The tables of `o200k_base` come with a crate, and its counts are near
//! those of other tokenizers for prose and code. What is told by these counts is called an estimate; what is charged is never counted here.
//!
//! ```
//! use offshoot_tokens::count;
//!
//! assert_eq!(count(b"hello world"), 2);
//! ```

use std::io::{self, Read};
use std::sync::LazyLock;

use tiktoken_rs::CoreBPE;

/// The name of the tokenizer.
pub const TOKENIZER: &str = "o200k_base";

/// The longest text that the tokenizer is given at once. Of a very long line without a word in it, it fails or takes time that grows
/// with the square of its length.
const AT_ONCE: usize = 4096;

/// The tables, which are read when the first text is counted.
static TABLES: LazyLock<CoreBPE> =
    LazyLock::new(|| tiktoken_rs::o200k_base().expect("the tables are part of the crate"));

/// Counts the tokens of a text that comes in parts.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// The bytes that are not counted yet.
    open: Vec<u8>,
    tokens: u64,
}

/// Returns the number of tokens of a text. What is no UTF-8 is counted as the characters that stand for it.
pub fn count(text: &[u8]) -> u64 {
    let mut counter = Counter::default();
    counter.push(text);
    counter.finish()
}

impl Counter {
    /// Takes the next part of the text, which may end within a word or a character.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while self.open.len() + bytes.len() > AT_ONCE {
            let (now, later) = bytes.split_at(AT_ONCE - self.open.len());
            self.open.extend_from_slice(now);
            bytes = later;
            let whole = end_of_words(&self.open);
            self.tokens += tokens(&self.open[..whole]);
            self.open.drain(..whole);
        }
        self.open.extend_from_slice(bytes);
    }

    /// Takes all that a reader has.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn read(&mut self, mut reader: impl Read) -> io::Result<()> {
        let mut part = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(read) => self.push(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the number of tokens of all parts.
    pub fn finish(self) -> u64 {
        self.tokens + tokens(&self.open)
    }
}

fn tokens(text: &[u8]) -> u64 {
    TABLES.encode_ordinary(&String::from_utf8_lossy(text)).len() as u64
}

/// Returns the length of the beginning that is counted alone: up to the last space, which belongs to the word behind it. Where the text has
/// none, up to the last whole character.
fn end_of_words(text: &[u8]) -> usize {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let is_start = |byte: &u8| byte & 0xc0 != 0x80;
    let last = |wanted: &dyn Fn(&u8) -> bool| text.iter().rposition(wanted).filter(|at| *at > 0);
    last(&is_space).or_else(|| last(&is_start)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_have_the_tokens_that_the_tokenizer_is_known_for() {
        for (text, expected) in
            [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("日本", 1)]
        {
            assert_eq!(count(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_counted_in_parts_as_it_is_as_a_whole() {
        let text = "The quick brown fox jumps over the lazy dog, 1234 times.\n".repeat(2_000);
        let whole = TABLES.encode_ordinary(&text).len() as u64;
        let parts = count(text.as_bytes());
        assert!(parts.abs_diff(whole) * 1_000 <= whole, "{parts} and not {whole}");
    }

    #[test]
    fn texts_without_words_end_no_process_and_take_no_time() {
        for byte in [b" ", b"x", b"\n", b"\xff"] {
            let text = byte.repeat(1 << 18);
            let tokens = count(&text);
            assert!(tokens > 0 && tokens <= 3 << 18, "{byte:?}: {tokens}");
        }
    }

    proptest! {
        #[test]
        fn no_text_has_more_tokens_than_bytes(text in ".{0,300}", at in 0_usize..300) {
            let bytes = text.as_bytes();
            let mut counter = Counter::default();
            let (one, other) = bytes.split_at(at.min(bytes.len()));
            counter.push(one);
            counter.push(other);
            let parts = counter.finish();
            prop_assert_eq!(parts, count(bytes));
            prop_assert!(parts <= bytes.len() as u64);
        }
    }
}
