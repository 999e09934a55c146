//! `offshoot context`.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use data_encoding::BASE64;
use offshoot_display::neutral::line;
use offshoot_display::number::bytes;
use offshoot_door::{Client, ContextGet, ContextInfo, ContextPut, Value, Variable, Variables};
use offshoot_model::{PathText, ValueKind, plain};

use crate::arguments::value::whole;
use crate::arguments::words::{KIND, one_of};
use crate::code::{FailureCode, NoteCode};
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Keep and read values, from inside an agent
///
/// A value has a name of the session's own. Children are given it with `spawn --give`; the result of a child is the value
/// `sub-result-RUN`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context put notes notes.txt
    \"$OFFSHOOT\" context get notes --grep TODO")]
pub(crate) enum ContextCommand {
    /// Print a value, a part of it, or some of its lines
    #[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context get notes
    \"$OFFSHOOT\" context get log --offset 1000 --length 200
    \"$OFFSHOOT\" context get log --grep 'ERROR|WARN' --context-lines 2")]
    Get {
        /// The name of the value
        #[arg(value_name = "NAME")]
        name: String,

        /// From this byte
        #[arg(long, value_name = "BYTE", value_parser = whole(0_u64.., "4096"))]
        offset: Option<u64>,

        /// At most so many bytes
        #[arg(long, value_name = "BYTES", value_parser = whole(0_u64.., "4096"))]
        length: Option<u64>,

        /// Only the lines in which this regular expression is found, with their numbers
        #[arg(long, value_name = "PATTERN")]
        grep: Option<String>,

        /// With --grep: so many lines around each
        #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX, "2"), requires = "grep")]
        context_lines: Option<u32>,
    },
    /// Keep a file or standard input under a name
    #[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context put notes notes.txt
    git diff | \"$OFFSHOOT\" context put diff
    \"$OFFSHOOT\" context put plan --kind json plan.json")]
    Put {
        /// The name to keep it under: any text up to 200 characters
        #[arg(value_name = "NAME")]
        name: String,

        /// The file; - is standard input
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,

        /// The kind of the value [default: text where it is UTF-8, else bytes]
        #[arg(long, value_name = "KIND", value_parser = one_of(KIND))]
        kind: Option<ValueKind>,
    },
    /// Say what a value is, or list all
    #[command(after_help = "\
Examples:
    \"$OFFSHOOT\" context info
    \"$OFFSHOOT\" context info notes --json")]
    Info {
        /// The name of the value [default: all that the session has put or was given]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}

/// More than this of standard input passes through a file: a line at the door has its limits.
const IN_LINE: u64 = 256 * 1024;

/// The bytes of a value that are asked for at once: the most that a supervisor gives.
const PART: u64 = 256 * 1024;

/// Keeps, reads or describes values.
pub(crate) fn run(command: ContextCommand, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        let supervisor = visit(cx).await?;
        match command {
            ContextCommand::Get { name, offset, length, grep, context_lines } => {
                let part = ContextGet { name, offset, length, grep, context_lines };
                get(&supervisor, part, cx).await
            }
            ContextCommand::Put { name, file, kind } => {
                put(&supervisor, &name, &file, kind, cx).await
            }
            ContextCommand::Info { name } => info(&supervisor, name, cx).await,
        }
    })
}

/// `context get`: prints a value, or a part of it.
async fn get(supervisor: &Client, part: ContextGet, cx: &Invocation) -> Result<(), Failure> {
    let read = supervisor.call(part.clone()).await?;
    if cx.output.wants_json() {
        return cx.output.json(&read);
    }
    if let Value::Path(PathText(path)) = &read.value {
        return print_file(supervisor, &part.name, path, cx).await;
    }
    print(&read.value, cx)?;
    if let Some(next) = read.next
        && part.length.is_none()
    {
        cx.output.note(NoteCode::MoreToRead, format_args!("there is more: --offset {next}"));
    }
    Ok(())
}

/// The value as it is, without a newline of ours.
fn print(value: &Value, cx: &Invocation) -> Result<(), Failure> {
    cx.output.bytes(&bytes_of(value)?)
}

fn bytes_of(value: &Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::Text(text) => Ok(text.as_bytes().to_vec()),
        Value::Json(json) => Ok(json.as_str().as_bytes().to_vec()),
        Value::Base64(text) => BASE64
            .decode(text.as_bytes())
            .map_err(|error| bad_value(format_args!("the supervisor sent no base64: {error}"))),
        Value::File(_) | Value::Path(_) => {
            Err(bad_value("the supervisor sent a name and no value"))
        }
    }
}

/// The failure where the supervisor sent a value in a form that is not known here.
fn bad_value(message: impl Display) -> Failure {
    Failure::new(FailureCode::BadValueFromSupervisor, Exit::AgentFailed, message)
        .hint("the supervisor is of another version: use the same one for both")
}

/// Prints a value of the session as it is, followed by this.
pub(super) async fn print_whole(
    supervisor: &Client,
    name: String,
    end: &str,
    cx: &Invocation,
) -> Result<(), Failure> {
    let whole = ContextGet { name: name.clone(), ..ContextGet::default() };
    match supervisor.call(whole).await?.value {
        Value::Path(PathText(path)) => print_file(supervisor, &name, &path, cx).await?,
        Value::Base64(_) | Value::File(_) => {
            return Err(bad_value("the supervisor sent bytes where a file was expected"));
        }
        text => print(&text, cx)?,
    }
    cx.output.bytes(end.as_bytes())
}

async fn print_file(
    supervisor: &Client,
    name: &str,
    path: &Path,
    cx: &Invocation,
) -> Result<(), Failure> {
    let print = |from: &mut dyn Read| cx.output.stream(|out| io::copy(from, out).map(drop));
    read_file(supervisor, name, path, print).await
}

/// Returns the bytes of a value of the session.
pub(super) async fn read_whole(supervisor: &Client, name: &str) -> Result<Vec<u8>, Failure> {
    let whole = ContextGet { name: name.to_owned(), ..ContextGet::default() };
    let read = supervisor.call(whole).await?;
    let Value::Path(PathText(path)) = &read.value else { return bytes_of(&read.value) };
    let mut bytes = Vec::new();
    let keep = |from: &mut dyn Read| {
        from.read_to_end(&mut bytes).map(drop).map_err(Failure::reading(path))
    };
    read_file(supervisor, name, path, keep).await?;
    Ok(bytes)
}

/// Reads a large value out of its file; where this process cannot see that, as in a sandbox, in parts from the supervisor.
async fn read_file(
    supervisor: &Client,
    name: &str,
    path: &Path,
    mut take: impl FnMut(&mut dyn Read) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match File::open(path) {
        Ok(mut file) => return take(&mut file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::file(FailureCode::CannotRead, "read", path, &error)),
    }
    let mut offset = Some(0);
    while offset.is_some() {
        let (name, length) = (name.to_owned(), Some(PART));
        let part = ContextGet { name, offset, length, ..ContextGet::default() };
        let part = supervisor.call(part).await?;
        take(&mut bytes_of(&part.value)?.as_slice())?;
        offset = part.next;
    }
    Ok(())
}

async fn put(
    supervisor: &Client,
    name: &str,
    file: &Path,
    kind: Option<ValueKind>,
    cx: &Invocation,
) -> Result<(), Failure> {
    let put = match file == Path::new("-") {
        false => supervisor.put_file(name, kind, &cx.absolute(file)).await,
        true => match standard_input()? {
            Input::Small(value) => {
                supervisor.call(ContextPut { kind, ..ContextPut::new(name, value) }).await
            }
            Input::Large(spool) => {
                supervisor.put_open_file(name, kind, "standard input", spool).await
            }
        },
    };
    let variable: Variable = put?;
    cx.output.result(&variable, || Ok(()))
}

async fn info(supervisor: &Client, name: Option<String>, cx: &Invocation) -> Result<(), Failure> {
    let is_named = name.is_some();
    let Variables { variables } = supervisor.call(ContextInfo { name }).await?;
    if cx.output.wants_json() {
        return match &variables[..] {
            [variable] if is_named => cx.output.json(variable),
            _ => cx.output.json(&variables),
        };
    }
    let row = |variable: &Variable| {
        let Variable { name, kind, size, path, .. } = variable;
        let path = path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        [line(name).into_owned(), kind.to_string(), bytes(*size), path]
    };
    cx.output.listing(["NAME", "TYPE", "SIZE", "FILE"], variables.iter().map(row))
}

/// Standard input: what is small in the line itself, the rest in a file.
enum Input {
    Small(Value),
    Large(File),
}

/// `context put` of `-`: reads the value from standard input.
fn standard_input() -> Result<Input, Failure> {
    let unread = |error: io::Error| {
        Failure::input(
            FailureCode::StdinUnreadable,
            format_args!("cannot read standard input: {}", plain(&error)),
        )
        .hint("give the value as a file: `context put NAME FILE`")
    };
    let mut stdin = io::stdin().lock();
    let mut held = Vec::new();
    Read::by_ref(&mut stdin).take(IN_LINE + 1).read_to_end(&mut held).map_err(unread)?;
    if held.len() as u64 <= IN_LINE {
        let value = match String::from_utf8(held) {
            Ok(text) => Value::Text(text),
            Err(error) => Value::Base64(BASE64.encode(error.as_bytes())),
        };
        return Ok(Input::Small(value));
    }
    // Without a name: only the supervisor is to find it.
    let mut spool = tempfile::tempfile().map_err(unread)?;
    spool.write_all(&held).map_err(unread)?;
    io::copy(&mut stdin, &mut spool).map_err(unread)?;
    Ok(Input::Large(spool))
}
