//! The pieces, one after the other.

use std::fmt;
use std::fs::File;
use std::iter::FusedIterator;
use std::sync::Arc;

use offshoot_model::InputRange;

use crate::boundary::{self, Unit};
use crate::piece_hash::PieceHash;
use crate::window::Window;
use crate::{Cut, InputFile, Split, SplitError, label, share};

/// One part of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes, and their hash.
    pub range: InputRange,
    /// Counted from 1 over all files.
    pub number: u32,
    /// For people: the file's name, or `big.log:3` for the third piece of it. Different for each piece; at most 100
    /// characters, none of them a control character.
    pub label: Arc<str>,
}

/// Pieces in the order of the input. After an error there are no more.
pub struct Cuts {
    files: Vec<InputFile>,
    /// The files that were handed over open; the others are opened when it is their turn.
    open: Vec<Option<Arc<File>>>,
    /// The number of bytes of each file that are cut.
    sizes: Vec<u64>,
    names: Vec<String>,
    rule: Rule,
    /// So many lines of each file stand before each of its pieces.
    header_lines: u64,
    next_file: usize,
    current: Option<Current>,
    pieces: u32,
}

/// The file that is being cut.
struct Current {
    index: usize,
    window: Window,
    /// The end of the header, and the hash over it.
    header: (u64, PieceHash),
    start: u64,
    pieces: u64,
}

/// The split, with what it has to know of all files.
enum Rule {
    One(Split),
    Shares {
        /// The number of pieces of each file.
        of_files: Vec<u64>,
        /// True if a line that is longer than a piece stays whole.
        whole_lines: bool,
    },
}

impl Cuts {
    pub(crate) fn new(
        inputs: Vec<(InputFile, Option<Arc<File>>)>,
        sizes: Vec<u64>,
        Cut { split, header_lines }: Cut,
    ) -> Self {
        let (files, open): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let rule = match split {
            Split::Chunks(pieces) | Split::ByteChunks(pieces) => Rule::Shares {
                of_files: share::shares(&sizes, pieces),
                whole_lines: matches!(split, Split::Chunks(_)),
            },
            other => Rule::One(other),
        };
        let names = label::names(&files);
        // A file that is one piece has its header in it.
        let header_lines = if split == Split::Files { 0 } else { header_lines };
        let (next_file, current, pieces) = (0, None, 0);
        Self { files, open, sizes, names, rule, header_lines, next_file, current, pieces }
    }

    /// The files, as they were when they were first looked at; in the order of the input, empty ones included.
    pub fn files(&self) -> &[InputFile] {
        &self.files
    }

    fn advance(&mut self) -> Result<Option<Piece>, SplitError> {
        loop {
            if self.current.is_none() {
                let Some(file) = self.files.get(self.next_file) else { return Ok(None) };
                let open = match self.open[self.next_file].take() {
                    Some(open) => open,
                    None => Arc::new(file.reopen()?),
                };
                let path = Arc::clone(file.resolved());
                let mut window = Window::new(open, path, self.sizes[self.next_file]);
                let mut hash = PieceHash::header(&mut window, 0)?;
                let end = match self.header_lines {
                    0 => 0,
                    lines => boundary::after_lines(&mut window, &mut hash, 0, lines)?,
                };
                hash.upto(&mut window, end)?;
                let (index, header) = (self.next_file, (end, hash));
                self.current = Some(Current { index, window, header, start: end, pieces: 0 });
                self.next_file += 1;
            }
            let current = self.current.as_mut().expect("it was opened just now");
            if let Some((range, number_in_file)) = current.advance(&self.rule)? {
                self.pieces = self.pieces.checked_add(1).ok_or(SplitError::TooManyPieces)?;
                let name = &self.names[current.index];
                let label = match self.rule {
                    Rule::One(Split::Files) => Arc::from(name.as_str()),
                    _ => Arc::from(format!("{name}:{number_in_file}")),
                };
                return Ok(Some(Piece { range, number: self.pieces, label }));
            }
            // A file that changed on the way would have given pieces of two versions.
            let file = &self.files[current.index];
            if !current.is_unchanged(file)? {
                return Err(SplitError::Changed { path: file.path.to_path_buf() });
            }
            self.current = None;
        }
    }
}

impl Current {
    /// Returns true if the file is as it was when it was looked at. A file that was handed over open has no other name.
    fn is_unchanged(&self, was: &InputFile) -> Result<bool, SplitError> {
        match was.resolved {
            Some(_) => was.is_unchanged(),
            None => was.is(self.window.file()),
        }
    }

    /// The next range of this file and its number within the file.
    fn advance(&mut self, rule: &Rule) -> Result<Option<(InputRange, u64)>, SplitError> {
        let (window, start) = (&mut self.window, self.start);
        let is_whole = matches!(rule, Rule::One(Split::Files)) && self.pieces == 0;
        if start >= window.size() && !is_whole {
            return Ok(None);
        }
        let (header, ref hash) = self.header;
        let mut hash = hash.then(start);
        let end = match rule {
            Rule::One(split) => end(window, &mut hash, start, *split)?,
            Rule::Shares { of_files, whole_lines } => {
                let content = window.size() - header;
                let target = header + target(content, self.pieces + 1, of_files[self.index]);
                Some(boundary::after_share(window, start, target, *whole_lines)?)
            }
        };
        let Some(end) = end else {
            self.start = window.size();
            return Ok(None);
        };
        hash.upto(window, end)?;
        self.start = end;
        self.pieces += 1;
        let range = InputRange {
            path: Arc::clone(window.path()),
            offset: start,
            length: end - start,
            header,
            hash: Some(hash.finish()),
        };
        Ok(Some((range, self.pieces)))
    }
}

impl Iterator for Cuts {
    type Item = Result<Piece, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if matches!(next, Some(Err(_))) {
            self.current = None;
            self.next_file = self.files.len();
        }
        next
    }
}

impl FusedIterator for Cuts {}

impl fmt::Debug for Cuts {
    /// Without the block of the file that happens to be in memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuts")
            .field("files", &self.files)
            .field("pieces", &self.pieces)
            .finish_non_exhaustive()
    }
}

fn end(
    window: &mut Window,
    hash: &mut PieceHash,
    start: u64,
    split: Split,
) -> Result<Option<u64>, SplitError> {
    Ok(match split {
        Split::Files | Split::Chunks(_) | Split::ByteChunks(_) => Some(window.size()),
        Split::Lines(count) => Some(boundary::after_lines(window, hash, start, count.get())?),
        Split::Bytes(size) => Some(boundary::after_bytes(window, start, size.get())?),
        Split::WholeLines(size) => {
            Some(boundary::after_whole_lines(window, hash, start, size.get())?)
        }
        Split::Paragraphs(count) => {
            boundary::after_units(window, hash, start, Unit::Paragraph, count.get())?
        }
        Split::JsonLines(count) => {
            boundary::after_units(window, hash, start, Unit::Record, count.get())?
        }
    })
}

/// Returns the end of the `number`-th of `of` equal parts.
fn target(size: u64, number: u64, of: u64) -> u64 {
    let end = u128::from(size) * u128::from(number) / u128::from(of);
    u64::try_from(end).unwrap_or(u64::MAX)
}
