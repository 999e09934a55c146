//! `offshoot init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use offshoot_config::init_template;
use serde::Serialize;

use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::project::{CONFIG_FILES, PROJECT_FOLDER, config_in};

/// Write a configuration and an example agent for the project in this folder
///
/// Writes .offshoot/config.toml with every key, commented out, and .offshoot/agents/example.md. A file that is there
/// already stays as it is. Both take effect after `offshoot trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot init
  offshoot init --mcp")]
pub(crate) struct InitArguments {
    /// Write .mcp.json too: clients such as Claude Code find the server `offshoot mcp` there
    #[arg(long)]
    pub(crate) mcp: bool,
}

/// The example agent, and the entry of the server.
const EXAMPLE: &str = include_str!("init/example.md.in");
const MCP: &str = include_str!("init/mcp.json.in");

/// The files of a new project.
#[derive(Default, Serialize)]
struct Made {
    written: Vec<PathBuf>,
    /// Files that were there, and were not touched.
    present: Vec<PathBuf>,
}

/// Writes the files that are not there.
pub(crate) fn run(arguments: &InitArguments, cx: &Invocation) -> Result<(), Failure> {
    let mut made = Made::default();
    let folder = Path::new(PROJECT_FOLDER);
    let (config, example) = (folder.join(CONFIG_FILES[0]), folder.join("agents/example.md"));
    // One in JSON5 is the configuration just as well, and two would be refused.
    match config_in(folder)? {
        Some(config) => made.present.push(config),
        None => made.add(config, &init_template(), cx)?,
    }
    made.add(example.clone(), EXAMPLE, cx)?;
    let entry = PathBuf::from(".mcp.json");
    if arguments.mcp {
        made.add(entry.clone(), MCP, cx)?;
    }
    cx.output.result(&made, || {
        made.written
            .iter()
            .try_for_each(|file| cx.output.line(format_args!("wrote {}", file.display())))?;
        made.present.iter().try_for_each(|file| {
            cx.output.line(format_args!("{} is there already, and stays as it is", file.display()))
        })
    })?;
    if made.present.contains(&entry) {
        let json = MCP.trim_end();
        cx.output
            .note(NoteCode::McpEntry, format_args!("the entry for {}:\n{json}", entry.display()));
    }
    let next = if made.written.contains(&example) {
        "offshoot run --agent example 'how many words are these?' -- wc -w"
    } else {
        "offshoot agents list"
    };
    cx.output.note(
        NoteCode::LookThenTrust,
        format_args!("look at these files, then type:\n  offshoot trust\n  {next}"),
    );
    if made.written.contains(&example) {
        cx.output.note(
            NoteCode::ExampleAgent,
            "without `-- wc -w`, Claude Code runs the agent `example`",
        );
    }
    Ok(())
}

impl Made {
    fn add(&mut self, path: PathBuf, text: &str, cx: &Invocation) -> Result<(), Failure> {
        let list = if write_new(&path, text, cx)? { &mut self.written } else { &mut self.present };
        list.push(path);
        Ok(())
    }
}

/// Writes a file, with the folders above it. Answers false, and writes nothing, where something of this name is there.
pub(super) fn write_new(path: &Path, text: &str, cx: &Invocation) -> Result<bool, Failure> {
    if let Some(folder) = cx.absolute(path).parent() {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::file(FailureCode::CannotWrite, "make", folder, &error))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::writing(path)(error)),
    }
}
