//! The kind of a value that comes from a file.

use std::io::{self, Read};

use offshoot_model::ValueKind;

/// Returns text where all of it is UTF-8, else bytes. Reads to the end, a block at a time.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn kind_of(mut file: impl Read) -> io::Result<ValueKind> {
    const BLOCK: usize = 64 * 1024;
    /// The longest beginning of a character that a block can end with.
    const CARRY: usize = 3;
    let mut block = vec![0; CARRY + BLOCK];
    let mut held = 0;
    loop {
        let read = file.read(&mut block[held..])?;
        let end = held + read;
        match std::str::from_utf8(&block[..end]) {
            Ok(_) if read == 0 => return Ok(ValueKind::Text),
            Ok(_) => held = 0,
            Err(error) if error.error_len().is_none() && read > 0 => {
                block.copy_within(error.valid_up_to()..end, 0);
                held = end - error.valid_up_to();
            }
            Err(_) => return Ok(ValueKind::Bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_is_text() {
        // Three bytes to a character, so that blocks end within one.
        let long = "€".repeat(100_000);
        for (content, expected) in [
            (&b""[..], ValueKind::Text),
            (long.as_bytes(), ValueKind::Text),
            (&long.as_bytes()[..299_999], ValueKind::Bytes),
            (b"caf\xe9", ValueKind::Bytes),
            (b"\xff\xfe\0", ValueKind::Bytes),
        ] {
            assert_eq!(kind_of(content).unwrap(), expected, "{} bytes", content.len());
        }
    }
}
