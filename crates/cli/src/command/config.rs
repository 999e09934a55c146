//! `offshoot config`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use offshoot_config::{AgentId, Valued, init_template, schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{ConfigCommand, InitArguments, LimitArguments, ResolveArguments};
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::load;
use crate::project::CONFIG_FILES;

/// Everything that is set, as JSON.
#[derive(Serialize)]
struct Shown {
    values: IndexMap<String, Valued<Value>>,
    /// Keys of another system, accepted without effect.
    foreign: IndexMap<String, String>,
    /// Files that are there and take no effect, and why.
    ignored: IndexMap<PathBuf, String>,
}

/// Answers about the configuration.
pub(crate) fn run(command: ConfigCommand, cx: &Invocation) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Show => show(cx),
        ConfigCommand::Resolve(arguments) => resolve(&arguments, cx),
        ConfigCommand::Check(arguments) => check(&arguments.file, cx),
        ConfigCommand::Schema => print_schema(cx),
        ConfigCommand::Init(arguments) => init(&arguments, cx),
    }
}

fn show(cx: &Invocation) -> Result<Exit, Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    let foreign = config.foreign().iter().map(|key| (key.value.clone(), key.origin.to_string()));
    let ignored = config.ignored().iter().map(|file| (file.path.clone(), file.reason.clone()));
    let shown = Shown {
        values: config.values().collect(),
        foreign: foreign.collect(),
        ignored: ignored.collect(),
    };
    if cx.output.wants_json() {
        cx.output.json(&shown)?;
        return Ok(Exit::Done);
    }
    table(&shown.values, cx)?;
    for (key, origin) in &shown.foreign {
        cx.output.line(format_args!("{key}  (accepted without effect, {origin})"))?;
    }
    Ok(Exit::Done)
}

fn resolve(arguments: &ResolveArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let config = load::config(cx, &arguments.limits)?;
    let agent = AgentId::parse(&arguments.agent)
        .map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?;
    let values: IndexMap<_, _> = config.resolve(&agent).collect();
    if cx.output.wants_json() {
        cx.output.json(&values)?;
    } else {
        table(&values, cx)?;
    }
    Ok(Exit::Done)
}

fn check(file: &Path, cx: &Invocation) -> Result<Exit, Failure> {
    let problem =
        |complaint: &Complaint| json!({ "message": complaint.message, "hint": complaint.hint });
    if let Err(failure) = load::file(cx, file) {
        let problems: Vec<Value> = failure.complaints.iter().map(problem).collect();
        return Err(Failure { json: Some(json!({ "problems": problems })), ..failure });
    }
    if cx.output.wants_json() {
        cx.output.json(&json!({ "problems": [] }))?;
    }
    cx.output.note(format_args!("{}: nothing is wrong", file.display()));
    Ok(Exit::Done)
}

fn print_schema(cx: &Invocation) -> Result<Exit, Failure> {
    cx.output.json(&schema())?;
    Ok(Exit::Done)
}

fn init(arguments: &InitArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let default = || Path::new(".offshoot").join(CONFIG_FILES[0]);
    let path = arguments.file.clone().unwrap_or_else(default);
    if let Some(folder) = cx.absolute(&path).parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(init_template().as_bytes()));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::input(format_args!("{} is there already", path.display()))
                .hint("name another file, or remove this one"));
        }
        Err(error) => return Err(Failure::file("write", &path, &error)),
    }
    cx.output.line(path.display())?;
    if arguments.file.is_none() {
        cx.output.hint("it takes effect after `offshoot trust`");
    }
    Ok(Exit::Done)
}

/// Key, value and origin in columns.
fn table(values: &IndexMap<String, Valued<Value>>, cx: &Invocation) -> Result<(), Failure> {
    let row = |(key, valued): (&String, &Valued<Value>)| {
        [key.clone(), text(&valued.value), valued.origin.to_string()]
    };
    cx.output.table(&values.iter().map(row).collect::<Vec<_>>())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
