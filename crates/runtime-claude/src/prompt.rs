//! The text of a turn, and the message that carries it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use offshoot_model::InputRange;
use offshoot_runtime::{Input, Launch, prompt};
use serde_json::json;

/// A piece of the input up to this size is part of the prompt; a larger one is a file beside it.
const PIECE_BYTES: u64 = 128 * 1024;

/// The first prompt of a run, and the file of its piece where it needs one. Reads and writes files; blocks.
pub(crate) fn first(launch: &Launch) -> io::Result<(String, Option<PathBuf>)> {
    let mut text = prompt(&launch.task, &launch.context, launch.context_manifest.as_deref());
    let Input::Piece(range) = &launch.input else { return Ok((text, None)) };
    text.push_str("\n\n");
    if let Some(piece) = short_text(range)? {
        text.push_str(&piece);
        return Ok((text, None));
    }
    let path = launch.run_folder.join("piece");
    copy(range, &path)?;
    text.push_str(&format!(
        "Piece of the input ({} bytes):\nRead {}\nThe file is the data itself.",
        range.length,
        path.display(),
    ));
    Ok((text, Some(path)))
}

/// The line that starts a turn.
///
/// A prompt that begins with a slash may be the name of one of the program's own commands. A space before it makes it what
/// it is: text for the model.
pub(crate) fn message(prompt: &str) -> Vec<u8> {
    let escaped = format!(" {prompt}");
    let prompt = if prompt.starts_with('/') { &escaped } else { prompt };
    let content = json!([{"type": "text", "text": prompt}]);
    let message = json!({"type": "user", "message": {"role": "user", "content": content}});
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The piece, where it is text and short enough.
fn short_text(range: &InputRange) -> io::Result<Option<String>> {
    if range.length > PIECE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    open(range)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).ok())
}

fn copy(range: &InputRange, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    io::copy(&mut open(range)?, &mut File::create(path)?)?;
    Ok(())
}

fn open(range: &InputRange) -> io::Result<io::Take<File>> {
    let mut file = File::open(&*range.path)?;
    file.seek(SeekFrom::Start(range.offset))?;
    Ok(file.take(range.length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        for (prompt, text) in [("a\n\"b\"", r#""a\n\"b\"""#), ("/clear", r#"" /clear""#)] {
            let expected = format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"text","text":{text}}}]}}}}"#
            );
            let line = String::from_utf8(message(prompt)).expect("text");
            assert_eq!(line, format!("{expected}\n"));
        }
    }
}
