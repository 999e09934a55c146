//! The text of a turn, and the message that carries it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use offshoot_model::{InputRange, RunId};
use offshoot_process::Identity;
use offshoot_runtime::{Input, Launch, prompt};
use serde_json::json;

use crate::run_file;

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
    let path = copy(range, &launch.run_folder)?;
    text.push_str(&format!(
        "Piece of the input ({} bytes):\nRead {}\nThe file is the data itself.",
        range.length,
        path.display(),
    ));
    Ok((text, Some(path)))
}

/// The first prompt of a run that was interrupted and goes on.
pub(crate) const GO_ON: &str = "\
You were interrupted: the program that runs you had to start again. Go on with your task where you were. What you had \
asked of a tool just before may not have come about; look before you do it again.";

/// The id of the n-th message to a process: that of the run, with both numbers in the place of its end. The program tells
/// by it which messages a turn has answered, and remembers it over all processes of a session.
pub(crate) fn message_id(run: RunId, process: Identity, number: u16) -> String {
    const NUMBER_DIGITS: usize = 12;
    let mut id = run.to_string();
    id.truncate(id.len() - NUMBER_DIGITS);
    // In clock ticks: no two processes of a session start in the same one.
    let start = process.start_time as u32;
    id + &format!("{start:08x}{number:04x}")
}

/// The line that carries a message: it starts a turn, or goes into the one that is under way.
///
/// A prompt that begins with a slash may be the name of one of the program's own commands. A space before it makes it what
/// it is: text for the model.
pub(crate) fn message(id: &str, prompt: &str) -> Vec<u8> {
    let escaped = format!(" {prompt}");
    let prompt = if prompt.starts_with('/') { &escaped } else { prompt };
    let content = json!([{"type": "text", "text": prompt}]);
    let message =
        json!({"type": "user", "uuid": id, "message": {"role": "user", "content": content}});
    format!("{message}\n").into_bytes()
}

/// The line that asks something of the program itself, under an id by which its answer is known.
pub(crate) fn request(id: &str, subtype: &str) -> Vec<u8> {
    let request =
        json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}});
    format!("{request}\n").into_bytes()
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

fn copy(range: &InputRange, run_folder: &Path) -> io::Result<PathBuf> {
    let (mut file, path) = run_file::create(run_folder, "piece")?;
    io::copy(&mut open(range)?, &mut file)?;
    Ok(path)
}

fn open(range: &InputRange) -> io::Result<io::Take<File>> {
    let mut file = File::open(&*range.path)?;
    file.seek(SeekFrom::Start(range.offset))?;
    Ok(file.take(range.length))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn messages_of_a_run_have_ids_of_their_own() {
        let run: RunId = "01a1fff5-d773-7553-bf45-8e9281ce7da5".parse().expect("the text is no id");
        let process = Identity { pid: 7, start_time: 0x1_0000_0abc };
        assert_eq!(message_id(run, process, 1), "01a1fff5-d773-7553-bf45-00000abc0001");
        assert_eq!(message_id(run, process, 300), "01a1fff5-d773-7553-bf45-00000abc012c");
    }

    #[test]
    fn a_piece_is_written_beside_a_link_and_not_through_it() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let (input, outside) = (folder.path().join("input"), folder.path().join("outside"));
        std::fs::write(&input, [0xff; 100]).expect("the file cannot be written");
        std::fs::write(&outside, "not theirs").expect("the file cannot be written");
        let run = folder.path().join("run");
        std::fs::create_dir(&run).expect("the folder cannot be made");
        // An agent can write into the folder of its run, and an attempt may follow it.
        std::os::unix::fs::symlink(&outside, run.join("piece")).expect("the link cannot be made");
        let range =
            InputRange { path: Arc::new(input), offset: 10, length: 50, header: 0, hash: None };
        let path = copy(&range, &run).expect("it cannot be written");
        assert_eq!(path, run.join("piece"));
        assert_eq!(
            std::fs::read_to_string(&outside).expect("the file cannot be read"),
            "not theirs"
        );
        assert_eq!(std::fs::read(&path).expect("the file cannot be read"), [0xff; 50]);
        assert!(!std::fs::symlink_metadata(&path).expect("it is missing").is_symlink());
    }

    #[test]
    fn a_message_is_one_line() {
        for (prompt, text) in [("a\n\"b\"", r#""a\n\"b\"""#), ("/clear", r#"" /clear""#)] {
            let expected = format!(
                r#"{{"type":"user","uuid":"m","message":{{"role":"user","content":[{{"type":"text","text":{text}}}]}}}}"#
            );
            let line = String::from_utf8(message("m", prompt)).expect("text");
            assert_eq!(line, format!("{expected}\n"));
        }
    }
}
