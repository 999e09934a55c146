//! `offshoot trust`.

use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use serde::Serialize;

use crate::arguments::TrustArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::project::Project;
use crate::trusted::{Trust, Trusted};

/// A project that has just been trusted.
#[derive(Serialize)]
struct Added<'a> {
    folder: &'a Path,
    digest: ContentHash,
    files: &'a [PathBuf],
    /// Files of the project that its configuration and definitions name.
    scripts: &'a [PathBuf],
}

/// A project in the list.
#[derive(Serialize)]
struct Listed<'a> {
    folder: &'a Path,
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
pub(crate) fn run(arguments: &TrustArguments, cx: &Invocation) -> Result<Exit, Failure> {
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

fn add(
    mut trusted: Trusted,
    arguments: &TrustArguments,
    start: &Path,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let project = match arguments.folder {
        Some(_) => Project::at(start)?,
        None => Project::nearest(start)?,
    };
    let Some(project) = project else {
        return Err(Failure::input(format_args!(
            "there is nothing to trust in {}",
            start.display()
        ))
        .hint("a project has .offshoot/config.toml, .offshoot/config.json5, .offshoot/agents, .offshoot/plugins or .claude/agents"));
    };
    let reading = project.read()?;
    let scripts = load::named_files(cx, &project, &reading)?;
    let digest = reading.digest(&scripts)?;
    let Project { folder, files } = &project;
    trusted.add(folder, digest, scripts.clone())?;
    if cx.output.wants_json() {
        cx.output.json(&Added { folder, digest, files, scripts: &scripts })?;
    } else {
        cx.output.line(format_args!("trusted {}", folder.display()))?;
        files.iter().try_for_each(|file| cx.output.line(format_args!("  {}", file.display())))?;
        scripts.iter().try_for_each(|file| {
            let absent = if folder.join(file).exists() { "" } else { ", not there yet" };
            cx.output.line(format_args!("  {}  (named by a definition{absent})", file.display()))
        })?;
        if !scripts.is_empty() {
            cx.output.note("what these files start or read themselves is not covered");
        }
    }
    Ok(Exit::Done)
}

fn remove(mut trusted: Trusted, start: &Path, cx: &Invocation) -> Result<Exit, Failure> {
    // A folder that is gone can still be forgotten, by the name it had.
    let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
    for folder in start.ancestors() {
        if trusted.remove(folder)? {
            cx.output.note(format_args!("no longer trusted: {}", folder.display()));
            return Ok(Exit::Done);
        }
    }
    Err(Failure::input(format_args!("{} is not trusted", start.display()))
        .hint("`offshoot trust --list` shows what is"))
}

fn list(trusted: &Trusted, cx: &Invocation) -> Result<Exit, Failure> {
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
            Ok(Listed { folder, digest, state })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    if cx.output.wants_json() {
        cx.output.json(&listed)?;
        return Ok(Exit::Done);
    }
    for project in &listed {
        let remark = match project.state {
            ProjectState::Trusted => "",
            ProjectState::Changed => "  (has changed since, so it is ignored)",
            ProjectState::Gone => "  (has no such files any more)",
        };
        cx.output.line(format_args!("{}{remark}", project.folder.display()))?;
    }
    Ok(Exit::Done)
}
