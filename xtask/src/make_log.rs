//! A large log to try things on: realistic, of an exact size, the same for the same seed.

mod lines;
mod random;

use std::fs::File;
use std::io::{self, Write};

use crate::Result;
use lines::Lines;

/// Large enough that the cost of a write is small beside the copy.
const BUFFER: usize = 1 << 20;

/// The number of lines that were written, and of errors among them.
#[derive(Debug, PartialEq)]
struct Written {
    lines: u64,
    errors: u64,
}

/// `--bytes SIZE [--seed N] FILE`
pub(crate) fn run(arguments: &[&str]) -> Result {
    let (mut bytes, mut seed, mut file) = (None, 1, None);
    let mut arguments = arguments.iter().copied();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument {
            "--bytes" => bytes = Some(parse_size(value()?)?),
            "--seed" => seed = value()?.parse().map_err(|_| "a seed is a whole number")?,
            path if !path.starts_with('-') && file.is_none() => file = Some(path),
            other => return Err(format!("unexpected argument `{other}`").into()),
        }
    }
    let bytes = bytes.ok_or("how large? --bytes 1g")?;
    let path = file.ok_or("where to? name a file")?;
    let mut file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
    let written = write(&mut file, bytes, seed).map_err(|error| format!("{path}: {error}"))?;
    let Written { lines, errors } = written;
    println!("{path}: {bytes} bytes, {lines} lines, {errors} of them with ERROR");
    Ok(())
}

/// Writes exactly `bytes` bytes, all in whole lines.
fn write(output: &mut dyn Write, bytes: u64, seed: u64) -> io::Result<Written> {
    let mut lines = Lines::new(seed);
    let mut written = Written { lines: 0, errors: 0 };
    let mut buffer = Vec::with_capacity(BUFFER + lines::LONGEST);
    let mut left = bytes;
    while left > 0 {
        let start = buffer.len();
        let is_error = lines.push_next(&mut buffer);
        let length = (buffer.len() - start) as u64;
        if length > left {
            // The last line is whatever fills the size.
            buffer.truncate(start);
            buffer.extend((1..left).map(|_| b'.'));
            buffer.push(b'\n');
            written.lines += 1;
            break;
        }
        left -= length;
        written.lines += 1;
        written.errors += u64::from(is_error);
        if buffer.len() >= BUFFER {
            output.write_all(&buffer)?;
            buffer.clear();
        }
    }
    output.write_all(&buffer)?;
    Ok(written)
}

/// `1234`, `512k`, `64m`, `1g`: powers of 1024.
fn parse_size(text: &str) -> Result<u64> {
    let (digits, shift) = match text.as_bytes() {
        [.., b'k' | b'K'] => (&text[..text.len() - 1], 10),
        [.., b'm' | b'M'] => (&text[..text.len() - 1], 20),
        [.., b'g' | b'G'] => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| format!("`{text}` is not a size such as 512k, 64m or 1g").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(bytes: u64, seed: u64) -> (Vec<u8>, Written) {
        let mut output = Vec::new();
        let written = write(&mut output, bytes, seed).unwrap();
        (output, written)
    }

    #[test]
    fn a_log_is_what_it_is_said_to_be() {
        let (log, written) = made(8 << 20, 7);
        assert_eq!(log.len(), 8 << 20);
        let text = String::from_utf8(log).expect("a log is UTF-8");
        assert!(text.ends_with('\n'));
        assert_eq!(text.lines().count() as u64, written.lines);
        assert_eq!(
            text.lines().filter(|line| line.contains("ERROR")).count() as u64,
            written.errors
        );
        let share = written.errors as f64 / written.lines as f64;
        assert!((0.015..0.025).contains(&share), "{share}");
        assert!(text.lines().any(|line| line.len() > 4096), "some lines are long");
        assert!(!text.is_ascii(), "some lines are not ASCII");
    }

    #[test]
    fn times_go_forward() {
        let (log, _) = made(1 << 20, 3);
        let text = String::from_utf8(log).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.pop().expect("the line that fills the size has no time");
        let times: Vec<&str> = lines.iter().map(|line| &line[..24]).collect();
        assert!(times.is_sorted());
        assert!(times.iter().all(|time| time.ends_with('Z')));
    }

    #[test]
    fn the_same_seed_makes_the_same_log() {
        assert_eq!(made(300_000, 1), made(300_000, 1));
        assert_ne!(made(300_000, 1).0, made(300_000, 2).0);
    }

    #[test]
    fn every_size_is_met() {
        for bytes in [0, 1, 2, 23, 100, 4097, BUFFER as u64, BUFFER as u64 + 1] {
            let (log, written) = made(bytes, 1);
            assert_eq!(log.len() as u64, bytes);
            assert_eq!(log.iter().filter(|byte| **byte == b'\n').count() as u64, written.lines);
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
        check("0", Some(0));
        check("1234", Some(1234));
        check("512k", Some(512 << 10));
        check("64M", Some(64 << 20));
        check("1g", Some(1 << 30));
        check("", None);
        check("g", None);
        check("-1", None);
        check("1t", None);
        check("99999999999g", None);
    }
}
