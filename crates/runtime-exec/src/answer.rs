//! From what a program printed to an answer.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use offshoot_model::ValueKind;
use offshoot_runtime::{Output, OutputFormat};
use serde::de::IgnoredAny;

/// An answer that is at hand. One newline at the end belongs to the printing, not to the answer.
pub(crate) fn of_memory(mut bytes: Vec<u8>, format: OutputFormat) -> Output {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    match String::from_utf8(bytes) {
        Err(error) => Output::Bytes(error.into_bytes().into()),
        Ok(text) => Output::of_text(text, format),
    }
}

/// An answer that was too large for memory. Reads the file once; blocks.
pub(crate) fn of_file(path: PathBuf, format: OutputFormat) -> io::Result<Output> {
    cut_newline(&path)?;
    let kind = if !is_utf8(File::open(&path)?)? {
        ValueKind::Bytes
    } else if format == OutputFormat::Json && is_json(&path)? {
        ValueKind::Result
    } else {
        ValueKind::Text
    };
    Ok(Output::File { path, kind })
}

fn cut_newline(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let Some(last) = length.checked_sub(1) else { return Ok(()) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(last))?;
    file.read_exact(&mut byte)?;
    if byte == *b"\n" { file.set_len(last) } else { Ok(()) }
}

/// True if all of it is UTF-8. It is read block by block.
fn is_utf8(mut reader: impl Read) -> io::Result<bool> {
    let mut block = vec![0; 128 * 1024];
    let mut kept = 0;
    loop {
        let read = reader.read(&mut block[kept..])?;
        let filled = kept + read;
        match std::str::from_utf8(&block[..filled]) {
            Ok(_) if read == 0 => return Ok(true),
            Ok(_) => kept = 0,
            // The block ends inside a character: its beginning is looked at again with what follows.
            Err(error) if error.error_len().is_none() && read > 0 => {
                let rest = error.valid_up_to();
                block.copy_within(rest..filled, 0);
                kept = filled - rest;
            }
            Err(_) => return Ok(false),
        }
    }
}

fn is_json(path: &Path) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(128 * 1024, File::open(path)?);
    let mut start = [0; 256];
    let read = reader.read(&mut start)?;
    // A bare number or word stays text.
    if !matches!(start[..read].trim_ascii_start(), [b'{' | b'[', ..]) {
        return Ok(false);
    }
    reader.seek(SeekFrom::Start(0))?;
    Ok(serde_json::from_reader::<_, IgnoredAny>(reader).is_ok())
}

#[cfg(test)]
mod tests {
    use offshoot_model::JsonText;
    use proptest::prelude::*;

    use super::*;

    fn check(printed: &[u8], format: OutputFormat, expected: Output) {
        assert_eq!(of_memory(printed.to_vec(), format), expected, "{printed:?}");
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("output");
        std::fs::write(&path, printed).expect("a file");
        let Output::File { path, kind } = of_file(path, format).expect("a file that can be read")
        else {
            panic!("a file stays a file");
        };
        let (bytes, of_memory): (Vec<u8>, ValueKind) = match expected {
            Output::Text(text) => (text.as_bytes().to_vec(), ValueKind::Text),
            Output::Json(json) => (json.as_str().as_bytes().to_vec(), ValueKind::Result),
            Output::Bytes(bytes) => (bytes.to_vec(), ValueKind::Bytes),
            Output::None | Output::File { .. } => unreachable!("no row of the table"),
        };
        assert_eq!(kind, of_memory, "{printed:?}");
        // JSON at hand is the value alone; in a file the space around it stays.
        let in_file = std::fs::read(path).expect("it is still there");
        assert_eq!(in_file.trim_ascii(), bytes.trim_ascii(), "{printed:?}");
    }

    #[test]
    fn what_was_printed_becomes_an_answer() {
        use OutputFormat::{Json, Text};
        let text = |text: &str| Output::Text(text.into());
        let json = |text: &str| Output::Json(JsonText::parse(text.into()).expect("JSON"));
        check(b"", Text, text(""));
        check(b"hello\n", Text, text("hello"));
        check(b"hello\n\n", Text, text("hello\n"));
        check(b"hello\r\n", Text, text("hello\r"));
        check(b"{\"a\": 1}\n", Text, text("{\"a\": 1}"));
        check(b"{\"a\": 1}\n", Json, json("{\"a\": 1}"));
        check(b"  [1]", Json, json("[1]"));
        check(b"{\"a\": 1", Json, text("{\"a\": 1"));
        check(b"{} {}", Json, text("{} {}"));
        check(b"12\n", Json, text("12"));
        check(b"\xff\xfe\n", Text, Output::Bytes((*b"\xff\xfe").into()));
        check(b"[\"\xff\"]", Json, Output::Bytes((*b"[\"\xff\"]").into()));
    }

    /// Hands out what it has in pieces of these sizes.
    struct Pieces<'a>(&'a [u8], Vec<usize>);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let wanted = self.1.pop().unwrap_or(usize::MAX).max(1);
            let take = wanted.min(out.len()).min(self.0.len());
            out[..take].copy_from_slice(&self.0[..take]);
            self.0 = &self.0[take..];
            Ok(take)
        }
    }

    proptest! {
        #[test]
        fn blocks_do_not_change_what_is_utf8(
            bytes in prop_oneof![any::<String>().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..50)],
            sizes in prop::collection::vec(1_usize..5, 0..50),
        ) {
            let found = is_utf8(Pieces(&bytes, sizes)).expect("memory can be read");
            prop_assert_eq!(found, std::str::from_utf8(&bytes).is_ok());
        }
    }
}
