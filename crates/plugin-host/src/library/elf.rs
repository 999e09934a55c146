//! The header of a library file. A file that is cut short is found here too: mapping one ends the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::PluginError;

const MAGIC: &[u8] = b"\x7fELF";
/// The part of the header that holds all that is asked here.
const HEADER: usize = 64;
/// Enough to tell a text.
const BEGINNING: usize = 512;
/// An entry of the table of segments, as far as it is read here.
const SEGMENT: usize = 56;
const SHARED_OBJECT: u16 = 3;
const LOAD_SEGMENT: u32 = 1;

/// The fault of a file, without its name.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    NotALibrary(String),
    Machine(String),
    Cut { needed: u64, found: u64 },
}

impl Fault {
    pub(super) fn of(self, path: &Path) -> PluginError {
        let path = path.to_owned();
        match self {
            Self::NotALibrary(what) => PluginError::NotALibrary { path, what },
            Self::Machine(found) => PluginError::Machine { path, found, ours: ours().to_owned() },
            Self::Cut { needed, found } => PluginError::Cut { path, needed, found },
        }
    }
}

/// Checks a whole file.
pub(super) fn check(file: &File) -> io::Result<Result<(), Fault>> {
    let length = file.metadata()?.len();
    let mut beginning = [0; BEGINNING];
    let read = length.min(BEGINNING as u64) as usize;
    file.read_exact_at(&mut beginning[..read], 0)?;
    let header = &beginning[..read];
    match is_library(header) {
        // All that the loader maps is in the file: of one of 32 bits nothing more is known.
        Ok(()) if header[4] == 2 => whole(file, header, length),
        answer => Ok(answer),
    }
}

fn is_library(bytes: &[u8]) -> Result<(), Fault> {
    let not = |what: &str| Err(Fault::NotALibrary(what.to_owned()));
    if !bytes.starts_with(MAGIC) {
        return match bytes {
            [] => not("an empty file"),
            _ if is_text(bytes) => not("a text file"),
            _ if is_mach_o(bytes) => not("a library for macOS"),
            [b'M', b'Z', ..] => not("a library for Windows"),
            _ => not("a file of another kind"),
        };
    }
    if bytes.len() < HEADER {
        return Err(Fault::Cut { needed: HEADER as u64, found: bytes.len() as u64 });
    }
    let (class, order) = (bytes[4], bytes[5]);
    if order != if cfg!(target_endian = "little") { 1 } else { 2 } {
        return Err(Fault::Machine("a machine with another order of bytes".to_owned()));
    }
    let machine = u16_at(bytes, 18);
    if machine_name(machine) != ours()
        || class != if cfg!(target_pointer_width = "64") { 2 } else { 1 }
    {
        let bits = if class == 2 { 64 } else { 32 };
        return Err(Fault::Machine(format!("{} ({bits} bits)", machine_name(machine))));
    }
    match u16_at(bytes, 16) {
        SHARED_OBJECT => Ok(()),
        1 => not("an object file that was not linked"),
        2 => not("a program"),
        4 => not("a core dump"),
        _ => not("an ELF file of another kind"),
    }
}

/// Checks that all that the loader maps is in the file.
fn whole(file: &File, header: &[u8], found: u64) -> io::Result<Result<(), Fault>> {
    let (table, size, count) = (u64_at(header, 32), u16_at(header, 54), u16_at(header, 56));
    let end = table.saturating_add(u64::from(size) * u64::from(count));
    if end > found || usize::from(size) < SEGMENT {
        return Ok(Err(Fault::Cut { needed: end, found }));
    }
    for number in 0..u64::from(count) {
        let mut entry = [0; SEGMENT];
        file.read_exact_at(&mut entry, table + number * u64::from(size))?;
        let kind = u32::from_ne_bytes(array(&entry, 0));
        let needed = u64_at(&entry, 8).saturating_add(u64_at(&entry, 32));
        if kind == LOAD_SEGMENT && needed > found {
            return Ok(Err(Fault::Cut { needed, found }));
        }
    }
    Ok(Ok(()))
}

/// The name by which the standard library knows this machine.
fn ours() -> &'static str {
    std::env::consts::ARCH
}

fn machine_name(number: u16) -> &'static str {
    match number {
        3 => "x86",
        21 => "powerpc64",
        22 => "s390x",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        _ => "another machine",
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 32..=126 | 128..))
}

fn is_mach_o(bytes: &[u8]) -> bool {
    matches!(bytes.get(..4), Some(b"\xcf\xfa\xed\xfe" | b"\xca\xfe\xba\xbe"))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has this length")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(array(bytes, at))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A shared object for this machine, with one segment of all its bytes.
    fn good() -> Vec<u8> {
        let mut bytes = vec![0; 200];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 3;
        bytes[18..20]
            .copy_from_slice(&(if ours() == "aarch64" { 183_u16 } else { 62 }).to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = 1;
        bytes[64 + 32] = 200;
        bytes
    }

    fn checked(bytes: &[u8]) -> Result<(), Fault> {
        let mut file = tempfile::tempfile().expect("no temporary file can be made");
        file.write_all(bytes).expect("the file cannot be written");
        check(&file).expect("it can be read")
    }

    #[track_caller]
    fn refused(bytes: &[u8], expected: &str) {
        let fault = checked(bytes).expect_err(expected);
        assert!(format!("{fault:?}").contains(expected), "{fault:?}");
    }

    #[test]
    fn only_a_library_for_this_machine_passes() {
        assert_eq!(checked(&good()), Ok(()));
        refused(b"", "an empty file");
        refused(b"#!/bin/sh\necho\n", "a text file");
        refused(b"\0\x01\x02", "a file of another kind");
        refused(b"MZ\x90\0", "Windows");
        refused(b"\xcf\xfa\xed\xfe\0", "macOS");
        refused(b"\x7fELF\x02\x01", "Cut { needed: 64, found: 6 }");
        let patched = |at: usize, byte: u8| {
            let mut bytes = good();
            bytes[at] = byte;
            bytes
        };
        refused(&patched(16, 2), "a program");
        refused(&patched(16, 1), "not linked");
        refused(&patched(5, 2), "order of bytes");
        refused(&patched(4, 1), "(32 bits)");
        refused(&patched(18, 40), "arm (64 bits)");
        refused(&patched(96, 255), "Cut { needed: 255, found: 200 }");
        refused(&patched(33, 1), "Cut");
    }
}
