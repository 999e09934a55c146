//! Cutting input files into pieces, one for each run of a map.
//!
//! ```text
//!   files ──▶ cut ──▶ Cuts ──▶ Piece { range: path + offset + length + hash, number, label }
//!                      └── InputFile { path, size, modified }
//! ```
//!
//! The input is not copied. A piece names a range of a file and the hash of precisely these bytes, taken while
//! cutting, so that a record can prove later what a run was given. Pieces come one at a time from a window of one
//! block: a file of any size is cut in the memory of that block. Nothing here is async; a caller that asks for
//! pieces does so on a thread that may block.
//!
//! What the user names is followed once, when it is looked at. From then on a file is opened by the path that was found, on which
//! no symbolic link is accepted (`InputFile::reopen`, `HeldPiece`): agents may be able to replace the file, or a folder
//! above it, by a link to what they cannot read themselves.
//!
//! What holds for every split:
//!
//! - The pieces of a file, one after the other, are the file without its header. The exception is a file in which there is nothing to
//!   hand out (`paragraphs` and `jsonl` of blank lines alone): it has no piece at all. No piece is empty but that of an
//!   empty file where each file is a piece.
//! - No piece spans files; pieces keep the order of the input.
//! - Lines end with `\n`; a `\r` before it stays where it is, and a last line needs no end. Only `bytes` and `chunks`
//!   look at characters, and only at those beside a cut. Input that is not UTF-8 there is cut at the plain byte;
//!   the other splits work on bytes of any encoding that keeps `\n` to itself. `jsonl` insists on UTF-8, as JSON does.
//!

//! ```
//! use offshoot_split::{Split, cut};
//!
//! let file = tempfile::NamedTempFile::new()?;
//! std::fs::write(file.path(), "one\ntwo\nthree\n")?;
//! let pieces = cut([&file.path().to_owned()], "lines:2".parse::<Split>()?)?;
//! assert_eq!(pieces.count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boundary;
mod cuts;
mod error;
mod held_piece;
mod input_file;
mod label;
mod parse;
mod piece_hash;
mod record;
mod share;
mod window;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

pub use cuts::{Cuts, Piece};
pub use error::SplitError;
pub use held_piece::HeldPiece;
pub use input_file::{InputFile, first_changed, verify};
pub use parse::ParseSplitError;

/// The way in which files are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// `files`: each file is a piece.
    #[default]
    Files,
    /// `lines:N`: so many lines a piece.
    Lines(NonZeroU64),
    /// `chunks:N`: so many pieces of about the same size, cut at the ends of lines; a file of one line alone is cut after
    /// characters. Several files share the number by their sizes, with at least one piece for each file
    /// that is not empty; so there are more than N pieces where there are more than N files. There are fewer where a
    /// line is longer than a piece, or a file has not as many characters. Also written `chunks:N@lines`.
    Chunks(NonZeroU64),
    /// `chunks:N@bytes`: the same, but that a line that is longer than a piece is cut after a character.
    ByteChunks(NonZeroU64),
    /// `bytes:N`: at most so many bytes, never inside a UTF-8 character (one larger than N is a piece of its own).
    Bytes(NonZeroU64),
    /// `bytes:N@lines`: as many whole lines as fit into so many bytes; a longer line is a piece of its own.
    WholeLines(NonZeroU64),
    /// `paragraphs:N`: so many paragraphs a piece. Lines of white space alone divide paragraphs, and belong
    /// to the one before them.
    Paragraphs(NonZeroU64),
    /// `jsonl:N`: so many records a piece, one JSON value a line. Blank lines are no records, and belong to the one
    /// before them.
    JsonLines(NonZeroU64),
}

impl Split {
    /// Reads a split from the record of a tree. A record of an earlier version says `chunks:N` of what is `chunks:N@bytes` now.
    ///
    /// # Errors
    ///
    /// A text that is no split.
    pub fn recorded(text: &str) -> Result<Self, ParseSplitError> {
        Ok(match text.parse()? {
            Self::Chunks(count) if !text.contains('@') => Self::ByteChunks(count),
            split => split,
        })
    }
}

/// A split, and the lines that are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The way in which files are cut.
    pub split: Split,
    /// The first so many lines of each file, such as the names of the columns of a table, stand before each of its pieces and are
    /// no part of what is cut. A file that has no more lines has no piece. Where each file is a piece nothing is repeated.
    pub header_lines: u64,
}

impl From<Split> for Cut {
    fn from(split: Split) -> Self {
        Self { split, header_lines: 0 }
    }
}

/// A file, or what is read as one.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, by its path: links on it are followed when it is looked at.
    Path(PathBuf),
    /// A file that is open. Pieces of it name this path, which nothing here opens.
    Open(Arc<File>, PathBuf),
}

impl From<&PathBuf> for Source {
    fn from(path: &PathBuf) -> Self {
        Self::Path(path.clone())
    }
}

/// Looks at all files, then cuts them one after the other while the pieces are asked for.
///
/// # Errors
///
/// Fails if an input is missing, is no regular file or may not be read; before anything is cut.
pub fn cut<S: Into<Source>>(
    inputs: impl IntoIterator<Item = S>,
    cut: impl Into<Cut>,
) -> Result<Cuts, SplitError> {
    let look = |source: S| match source.into() {
        Source::Path(path) => Ok((InputFile::open(&path)?, None)),
        Source::Open(file, path) => Ok((InputFile::of_open(&file, path)?, Some(file))),
    };
    let inputs = inputs.into_iter().map(look).collect::<Result<Vec<_>, _>>()?;
    let sizes = inputs.iter().map(|(file, _)| file.size).collect();
    Ok(Cuts::new(inputs, sizes, cut.into()))
}

/// Cuts files that were looked at before, and of a file that has grown since only what was there then.
///
/// # Errors
///
/// As those of [`cut`].
pub fn cut_again(before: &[InputFile], cut: impl Into<Cut>) -> Result<Cuts, SplitError> {
    let mut files = Vec::with_capacity(before.len());
    let mut sizes = Vec::with_capacity(before.len());
    for was in before {
        let file = was.look_again()?;
        sizes.push(file.size.min(was.size));
        files.push((file, None));
    }
    Ok(Cuts::new(files, sizes, cut.into()))
}

impl fmt::Display for Split {
    /// The form that parses back to the same split.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Files => f.write_str("files"),
            Self::Lines(count) => write!(f, "lines:{count}"),
            Self::Chunks(count) => write!(f, "chunks:{count}@lines"),
            Self::ByteChunks(count) => write!(f, "chunks:{count}@bytes"),
            Self::Bytes(size) => write!(f, "bytes:{}", parse::Size(size)),
            Self::WholeLines(size) => write!(f, "bytes:{}@lines", parse::Size(size)),
            Self::Paragraphs(count) => write!(f, "paragraphs:{count}"),
            Self::JsonLines(count) => write!(f, "jsonl:{count}"),
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
