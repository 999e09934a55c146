//! `offshoot trust`.

use std::path::{Path, PathBuf};

use clap::Args;
use offshoot_model::{ContentHash, path_text};
use serde::Serialize;

use crate::arguments::LimitArguments;
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::project::Project;
use crate::trusted::{Trust, Trusted};

/// Let the files of a project take effect
///
/// A project's configuration, agent definitions and plugins come with a checkout, so they are ignored until you say
/// that you have looked at them. When one of them changes, you are asked again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot trust
  offshoot trust --list
  offshoot trust --remove")]
pub(crate) struct TrustArguments {
    /// The project's folder [default: the nearest one with such files, from the working directory upwards]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// List the projects that are trusted
    #[arg(long, conflicts_with_all = ["remove", "folder"])]
    pub(crate) list: bool,

    /// Trust the project no longer
    #[arg(long)]
    pub(crate) remove: bool,
}

/// A project that has just been trusted.
#[derive(Serialize)]
struct Added {
    #[serde(with = "path_text")]
    folder: PathBuf,
    digest: ContentHash,
    #[serde(with = "path_text")]
    files: Vec<PathBuf>,
    /// Files of the project that its configuration and definitions name.
    #[serde(with = "path_text")]
    scripts: Vec<PathBuf>,
}

/// A project in the list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(with = "path_text")]
    folder: PathBuf,
    digest: &'a ContentHash,
    state: ProjectState,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProjectState {
    Trusted,
    Changed,
    Gone,
}

/// Trusts, lists or forgets.
pub(crate) fn run(arguments: &TrustArguments, cx: &Invocation) -> Result<(), Failure> {
    let trusted = Trusted::read(&cx.environment)?;
    if arguments.list {
        return list(&trusted, cx);
    }
    let start = match &arguments.folder {
        Some(folder) => cx.absolute(folder),
        None => cx.environment.working_folder.clone(),
    };
    if arguments.remove { remove(trusted, &start, cx) } else { add(trusted, arguments, &start, cx) }
}

/// `trust`: remembers the files of a project as they are.
fn add(
    mut trusted: Trusted,
    arguments: &TrustArguments,
    start: &Path,
    cx: &Invocation,
) -> Result<(), Failure> {
    let project = match arguments.folder {
        Some(_) => Project::at(start)?,
        None => Project::nearest(start)?,
    };
    let Some(project) = project else {
        return Err(Failure::input(FailureCode::NothingToTrust, format_args!(
            "there is nothing to trust in {}",
            start.display()
        ))
        .hint("a project has .offshoot/config.toml, .offshoot/config.json5, .offshoot/agents, .offshoot/plugins or .claude/agents"));
    };
    let reading = project.read()?;
    let scripts = load::named_files(cx, &project, &reading)?;
    let digest = reading.digest(&scripts)?;
    let Project { folder, files } = project;
    trusted.add(&folder, digest, scripts.clone())?;
    let added = Added { folder, digest, files, scripts };
    cx.output.result(&added, || {
        let Added { folder, files, scripts, .. } = &added;
        cx.output.line(format_args!("trusted {}", folder.display()))?;
        files.iter().try_for_each(|file| cx.output.line(format_args!("  {}", file.display())))?;
        scripts.iter().try_for_each(|file| {
            let absent = if folder.join(file).exists() { "" } else { ", not there yet" };
            cx.output.line(format_args!("  {}  (named by a definition{absent})", file.display()))
        })?;
        if !scripts.is_empty() {
            cx.output.note(
                NoteCode::NotCovered,
                "what these files start or read themselves is not covered",
            );
        }
        Ok(())
    })?;
    // What is trusted is read from now on, and what is wrong in it stops each command here.
    let is_read = cx.environment.working_folder.starts_with(&added.folder);
    if is_read && let Err(failure) = load::config(cx, &LimitArguments::default()) {
        let wrong = failure.complaints.first().map_or("", |complaint| &complaint.message);
        let text = format_args!("the configuration is trusted now, and cannot be used: {wrong}");
        cx.output.warning(NoteCode::TrustedUnusable, text);
    }
    Ok(())
}

/// `trust --remove`: forgets a project.
fn remove(mut trusted: Trusted, start: &Path, cx: &Invocation) -> Result<(), Failure> {
    // A folder that is gone can still be forgotten, by the name it had.
    let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
    for folder in start.ancestors() {
        if trusted.remove(folder)? {
            cx.output.note(
                NoteCode::NoLongerTrusted,
                format_args!("no longer trusted: {}", folder.display()),
            );
            return Ok(());
        }
    }
    Err(Failure::input(FailureCode::NotTrusted, format_args!("{} is not trusted", start.display()))
        .hint("`offshoot trust --list` shows what is"))
}

fn list(trusted: &Trusted, cx: &Invocation) -> Result<(), Failure> {
    let listed = trusted
        .projects()
        .map(|(folder, digest)| {
            let state = match Project::at(folder)? {
                None => ProjectState::Gone,
                Some(project) => match trusted.judge(&project)?.0 {
                    Trust::Trusted => ProjectState::Trusted,
                    Trust::Changed | Trust::Unknown => ProjectState::Changed,
                },
            };
            Ok(Listed { folder: folder.to_owned(), digest, state })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    cx.output.result(&listed, || {
        listed.iter().try_for_each(|Listed { folder, state, .. }| {
            let remark = match state {
                ProjectState::Trusted => "",
                ProjectState::Changed => "  (has changed since, so it is ignored)",
                ProjectState::Gone => "  (has no such files any more)",
            };
            cx.output.line(format_args!("{}{remark}", folder.display()))
        })
    })
}
