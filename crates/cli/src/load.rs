//! Reads configuration: finds the files, asks for trust, hands the texts to the configuration.
//!
//! ```text
//!  built-in ← system file ← user file ← project file, once trusted ← --config ← OFFSHOOT__… ← flags
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use offshoot_config::{AgentId, Config, ConfigErrors, Loader, Source, SourceKind, UndefinedChild};

use crate::arguments::LimitArguments;
use crate::code::{FailureCode, NoteCode};
use crate::environment::SYSTEM_FOLDER;
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::project::{PROJECT_FOLDER, Project, Reading, config_in};
use crate::trusted::{Trust, Trusted};

/// Finds and reads all layers. What is ignored is named on standard error.
pub(crate) fn config(cx: &Invocation, limits: &LimitArguments) -> Result<Config, Failure> {
    finish(layers(cx, limits)?)
}

/// Finds all layers. What is ignored is named on standard error.
pub(crate) fn layers(cx: &Invocation, limits: &LimitArguments) -> Result<Loader, Failure> {
    let mut loader = Loader::new();
    let user = cx.environment.config_home.as_ref().map(|home| home.join("offshoot"));
    let project = cx.environment.working_folder.join(PROJECT_FOLDER);
    user.iter().chain([&project]).for_each(|folder| warn_of_others(folder, cx));
    for (kind, path) in user_files(cx)? {
        loader = loader.file(read(cx, kind, &path)?);
    }
    if let Some(project) = Project::nearest(&cx.environment.working_folder)? {
        let (trust, reading) = Trusted::look(&project, &cx.environment)?;
        warn(cx, &project, trust);
        for source in sources(cx, &project, reading.as_ref())? {
            loader = loader.file(source);
        }
        loader = loader.project_trusted(trust == Trust::Trusted);
    }
    if let Some(path) = &cx.global.config {
        loader = loader.file(read(cx, SourceKind::File, path)?);
    }
    loader = loader.environment(cx.environment.settings()?);
    for flag in limits.flags() {
        let key = format!("agents.defaults.subagents.{}", flag.key);
        loader = loader.flag(key, flag.value, flag.flag);
    }
    Ok(loader)
}

/// Reads what was found.
pub(crate) fn finish(loader: Loader) -> Result<Config, Failure> {
    loader.load().map_err(|errors| wrong(&errors))
}

/// Reads the id of an agent.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, Failure> {
    AgentId::parse(text).map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))
}

/// Reads the id of an agent that is defined, or always there.
pub(crate) fn agent(config: &Config, text: &str) -> Result<AgentId, Failure> {
    let id = agent_id(text)?;
    defined(config, &id)?;
    Ok(id)
}

/// Refuses an agent that is not defined: a slip would run with rights and limits that were written for another.
pub(crate) fn defined(config: &Config, id: &AgentId) -> Result<(), Failure> {
    if config.is_defined(id) {
        return Ok(());
    }
    let nearest = config.nearest_agent(id).map(|nearest| format!("the nearest is `{nearest}`; "));
    Err(Failure::input(FailureCode::NoSuchAgent, format_args!("there is no agent `{id}`"))
        .hint(format_args!("{}`offshoot agents list` shows all", nearest.unwrap_or_default())))
}

/// Returns what to say of each agent that others name as their child and that neither of the two configurations defines, with the
/// nearest one that is there.
pub(crate) fn undefined_children(config: &Config, whole: Option<&Config>) -> Vec<UndefinedText> {
    let is_known = |id: &AgentId| whole.is_some_and(|whole| whole.is_defined(id));
    let undefined = config.undefined_children().filter(|it| !is_known(&it.child));
    let text = |it: UndefinedChild| {
        let near = [Some(config), whole].into_iter().flatten();
        let near = near.filter_map(|config| config.nearest_agent(&it.child)).next();
        UndefinedText {
            has_near: near.is_some(),
            text: match near {
                Some(near) => format!("{it}; the nearest is `{near}`"),
                None => it.to_string(),
            },
        }
    };
    undefined.map(text).collect()
}

/// The sentence about an agent that is named and not defined.
pub(crate) struct UndefinedText {
    /// The sentence.
    pub(crate) text: String,
    /// True if it names another agent, which was probably meant.
    pub(crate) has_near: bool,
}

/// Reads one file as what it would be if it were in use.
pub(crate) fn file(cx: &Invocation, path: &Path) -> Result<Config, Failure> {
    let absolute = cx.absolute(path);
    let known = user_files(cx)?.into_iter().find(|(_, user)| *user == absolute);
    let kind = known.map_or(SourceKind::File, |(kind, _)| kind);
    finish(Loader::new().file(read(cx, kind, path)?))
}

/// Returns the text of a file in which nothing is wrong, were it one of the user.
pub(crate) fn user_file(cx: &Invocation, path: &Path) -> Result<String, Failure> {
    let source = read(cx, SourceKind::User, path)?;
    let text = source.text.clone();
    finish(Loader::new().file(source))?;
    Ok(text)
}

/// Returns the place of the file of prices that `offshoot prices update` writes; none where the user has no configuration.
pub(crate) fn prices_file(cx: &Invocation) -> Option<PathBuf> {
    Some(cx.environment.config_home.as_ref()?.join("offshoot/prices.toml"))
}

/// The files of the machine and of the user, where there are any, the lowest first.
fn user_files(cx: &Invocation) -> Result<Vec<(SourceKind, PathBuf)>, Failure> {
    let user = cx.environment.config_home.as_ref().map(|home| home.join("offshoot"));
    let folders = [(SourceKind::System, Some(SYSTEM_FOLDER.into())), (SourceKind::User, user)];
    let mut files = Vec::new();
    let prices = prices_file(cx).filter(|path| path.is_file());
    files.extend(prices.map(|path| (SourceKind::User, path)));
    for (kind, folder) in folders {
        if let Some(path) = folder.map(|folder| config_in(&folder)).transpose()?.flatten() {
            files.push((kind, path));
        }
    }
    Ok(files)
}

/// Configuration and definitions of a project, from what was read of it. Without that they are named and not looked into:
/// nothing in them may stop us.
fn sources(
    cx: &Invocation,
    project: &Project,
    reading: Option<&Reading>,
) -> Result<Vec<Source>, Failure> {
    let files = project.config()?.into_iter().chain(project.definitions());
    let source = |file: &Path| {
        let path = project.folder.join(file);
        let text = match reading.and_then(|reading| reading.text(file)) {
            Some(bytes) => {
                cx.output.detail(format_args!("reading {}", path.display()));
                text(&path, bytes.to_owned())?
            }
            None => String::new(),
        };
        Ok(Source::new(SourceKind::Project, path, text))
    };
    files.map(source).collect()
}

/// The files of a project that its configuration and definitions name: they start them, or read them for the user. None where
/// these have errors, and so no effect.
pub(crate) fn named_files(
    cx: &Invocation,
    project: &Project,
    reading: &Reading,
) -> Result<Vec<PathBuf>, Failure> {
    let Ok(sources) = sources(cx, project, Some(reading)) else { return Ok(Vec::new()) };
    let loader = sources.into_iter().fold(Loader::new(), Loader::file);
    let Ok(config) = loader.project_trusted(true).load() else { return Ok(Vec::new()) };
    let folders = config.agents().filter_map(|agent| agent.cwd.as_ref());
    let folders = folders.map(|folder| folder.value.as_str());
    Ok(reading.named_files(&config.trusted_words(), &folders.collect::<Vec<_>>()))
}

/// Refuses a command line that names a file that cannot be read, also where the command needs no configuration. What is no
/// regular file is not opened: the writer of a pipe would lose what it has written.
pub(crate) fn check_named(cx: &Invocation) -> Result<(), Failure> {
    let Some(path) = &cx.global.config else { return Ok(()) };
    let look = || match fs::metadata(path)? {
        it if it.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        it if it.is_file() => File::open(path).map(drop),
        _ => Ok(()),
    };
    look().map_err(|error| unreadable(path, &error))
}

/// The failure where a file of the configuration cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::file(FailureCode::CannotReadConfiguration, "read the configuration", path, error)
}

fn read(cx: &Invocation, kind: SourceKind, path: &Path) -> Result<Source, Failure> {
    cx.output.detail(format_args!("reading {}", path.display()));
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    Ok(Source::new(kind, path, text(path, bytes)?))
}

/// Reads a file of the configuration as text.
fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::input(
            FailureCode::ConfigurationNotUtf8,
            format_args!("{} is not UTF-8, at byte {at}", path.display()),
        )
        .hint("save it as UTF-8, as by `iconv -t UTF-8`")
    })
}

/// Names of configuration files that other programs read.
const OF_OTHERS: [&str; 3] = ["config.yaml", "config.yml", "config.json"];

/// Says which files are not read although they stand where the configuration does.
fn warn_of_others(folder: &Path, cx: &Invocation) {
    for path in OF_OTHERS.map(|name| folder.join(name)).iter().filter(|path| path.is_file()) {
        cx.output.warning(
            NoteCode::ConfigurationNotRead,
            format_args!(
                "{} is not read: the configuration stands in config.toml, as TOML, or in config.json5",
                path.display()
            ),
        );
    }
}

/// As many files are named as fit a line or two; `offshoot trust` lists them all.
const NAMED: usize = 5;

/// Names what takes no effect, and says what to do about it.
fn warn(cx: &Invocation, project: &Project, trust: Trust) {
    let reason = match trust {
        Trust::Trusted => return,
        Trust::Changed => "the project has changed since it was trusted",
        Trust::Unknown => "the project is not trusted",
    };
    let folder = project.folder.display();
    let named = project.files.iter().take(NAMED).map(|file| file.display().to_string());
    let names = named.collect::<Vec<_>>().join(", ");
    let more = match project.files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    cx.output.warning(
        NoteCode::IgnoredUntrusted,
        format_args!("ignored in {folder}, because {reason}: {names}{more}"),
    );
    cx.output.hint(NoteCode::TrustIgnored, "look at what is in there, then run `offshoot trust`");
}

/// Everything that is wrong, each with its place.
fn wrong(errors: &ConfigErrors) -> Failure {
    let complaints =
        errors.problems().iter().map(|problem| Complaint::told(problem, problem.hint()));
    Failure { exit: Exit::BadInput, complaints: complaints.collect(), json: None }
}
