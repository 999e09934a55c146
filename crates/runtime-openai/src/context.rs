//! The input of a run: in its prompt where it is short, else in parts, by a tool. Reads files; blocks, for as long as a short
//! read takes.

use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{Refusal, ValueKind};
use offshoot_runtime::{Input, Launch};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::tools::{Read, json_text};

/// Values of one run that its prompt does not hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(Vec<Source>);

#[derive(Clone, Debug)]
struct Source {
    name: Arc<str>,
    path: PathBuf,
    offset: u64,
    length: u64,
    kind: ValueKind,
    /// A piece is what the task is about, not something beside it: where it is short, it stands there without a head.
    is_piece: bool,
}

/// A part of a value.
#[derive(Serialize)]
struct Part<'a> {
    name: &'a str,
    offset: u64,
    bytes: usize,
    of: u64,
    text: &'a str,
}

/// The file of a JSON value.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

/// The most that one call reads.
const MOST_READ: u64 = 64 * 1024;

/// The name of the piece of a map, beside the names of context variables.
const PIECE: &str = "the input";

/// The first prompt of a run, and what is left to be read by the tool. `inline` bytes of values become part of it. Values stand in front of
/// all that is the run's own, which are what it has to spend and its task: a service that keeps prompts in a cache reads them once for all runs
/// that have them.
pub(crate) fn first(
    launch: &Launch,
    inline: u64,
    to_spend: Option<&str>,
) -> io::Result<(String, Sources)> {
    let mut in_front = String::new();
    let mut behind = to_spend.map(|to_spend| format!("{to_spend}\n\n")).unwrap_or_default();
    behind.push_str(&launch.task);
    let mut sources = Sources::default();
    let mut room = inline;
    for source in sources_of(launch) {
        let text = source.short_text(room)?;
        if text.is_some() {
            room -= source.length;
        }
        match text {
            Some(text) if source.is_piece => behind += &format!("\n\n{text}"),
            Some(text) => in_front += &format!("{}\n{text}\n\n", source.head()),
            None => {
                behind += &format!("\n\n{}\nRead it with the tool context_read.", source.head());
                sources.0.push(source);
            }
        }
    }
    Ok((in_front + &behind, sources))
}

impl Sources {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A part of one of them, as the answer of the tool.
    pub(crate) fn read(&self, read: &Read) -> String {
        let Some(source) = self.0.iter().find(|source| *source.name == *read.name) else {
            let names: Vec<_> = self.0.iter().map(|source| &*source.name).collect();
            let message =
                format!("there is no value `{}`; there are: {}", read.name, names.join(", "));
            return json_text(&Refusal::invalid("name", message));
        };
        let offset = read.offset.min(source.length);
        let most = read.bytes.unwrap_or(MOST_READ).min(MOST_READ).min(source.length - offset);
        match source.bytes(offset, most) {
            Ok(mut bytes) => {
                // The part ends before a character that it would cut; the next part begins with it.
                if let Err(error) = std::str::from_utf8(&bytes)
                    && error.error_len().is_none()
                    && error.valid_up_to() > 0
                {
                    bytes.truncate(error.valid_up_to());
                }
                let text = String::from_utf8_lossy(&bytes);
                let (name, of) = (&*source.name, source.length);
                json_text(&Part { name, offset, bytes: bytes.len(), of, text: &text })
            }
            Err(error) => {
                json_text(&Refusal::invalid("name", format!("it cannot be read: {error}")))
            }
        }
    }
}

impl Source {
    fn head(&self) -> String {
        let Self { name, length, kind, is_piece, .. } = self;
        let what = if *is_piece { "Piece of the input" } else { "Context variable" };
        format!("{what} \"{name}\" ({length} bytes, type: {kind}):")
    }

    /// The whole of it, where it is text and short enough.
    fn short_text(&self, room: u64) -> io::Result<Option<String>> {
        if self.length > room {
            return Ok(None);
        }
        let Ok(text) = String::from_utf8(self.bytes(0, self.length)?) else { return Ok(None) };
        let is_json = matches!(self.kind, ValueKind::Json | ValueKind::Result);
        Ok(Some(match serde_json::from_str::<Wrapped<'_>>(&text) {
            Ok(Wrapped { value }) if is_json => value.get().to_owned(),
            _ => text,
        }))
    }

    fn bytes(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset + offset))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn sources_of(launch: &Launch) -> Vec<Source> {
    let variables = launch.context.iter().map(|file| Source {
        name: Arc::clone(&file.name),
        path: file.path.clone(),
        offset: 0,
        length: std::fs::metadata(&file.path).map_or(file.value.size, |about| about.len()),
        kind: file.value.kind,
        is_piece: false,
    });
    let piece = match &launch.input {
        Input::Piece(range) => Some(Source {
            name: PIECE.into(),
            path: range.path.to_path_buf(),
            offset: range.offset,
            length: range.length,
            kind: ValueKind::Text,
            is_piece: true,
        }),
        Input::Prompt | Input::Empty => None,
    };
    variables.chain(piece).collect()
}

#[cfg(test)]
mod tests;
