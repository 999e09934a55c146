//! A large file of lines, and noise.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Result;

/// One mebibyte: sizes of files are given in these.
pub(crate) const MEBIBYTE: u64 = 1 << 20;

/// Writes a log of so many mebibytes, with lines of many lengths.
pub(crate) fn write_log(folder: &Path, mebibytes: u64) -> Result<PathBuf> {
    let path = folder.join("big.log");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let filler = "x".repeat(96);
    let (mut written, mut number) = (0, 0_usize);
    while written < mebibytes * MEBIBYTE {
        let level = if number.is_multiple_of(17) { "ERROR" } else { "INFO" };
        let line = format!("{number:010} {level} {}\n", &filler[..number * 31 % 97]);
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
        number += 1;
    }
    file.into_inner()?.sync_all()?;
    Ok(path)
}

/// Writes so many mebibytes that no two files of different seeds share.
pub(crate) fn write_noise(path: &Path, seed: u64, mebibytes: u64) -> Result<()> {
    let mut file = File::create(path)?;
    let mut noise = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut block = vec![0; MEBIBYTE as usize];
    for _ in 0..mebibytes {
        noise.fill(&mut block);
        file.write_all(&block)?;
    }
    // What is measured next is not to share the disk with the end of this.
    file.sync_all()?;
    Ok(())
}
