//! Plugins as the command finds, judges and loads them.
//!
//! ```text
//!   --plugin-path ▸ configuration ▸ OFFSHOOT_PLUGIN_PATH ▸ project ▸ user ▸ system
//!        │ search
//!        ▼
//!   candidate ── trusted? ──▶ checked ── tried? no: in a process of its own first ──▶ loaded
//! ```

mod found;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use offshoot_config::{Config, Origin};
use offshoot_model::{ContentHash, JsonText};
use offshoot_plugin_host::{
    Candidate, Checked, Described, Extent, LogLine, PACKAGE_FILE, Package, Place, PlaceOrigin,
    Plugin, PluginError, PluginMerge, PluginRuntime, Search, Surroundings, Trier, trust_digest,
    try_out,
};
use offshoot_process::Processes;

use crate::environment::SYSTEM_PLUGINS;
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::output::harmless;
use crate::project::Project;
use crate::tried::Tried;
use crate::trusted::{Trust, Trusted};
use crate::work::children::Children;
use crate::work::engine;

pub(crate) use found::Found;

/// The folder of a project or a user in which plugins are.
pub(crate) const PLUGINS_FOLDER: &str = "plugins";

/// What can be found, and what was loaded for this command. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Plugins {
    search: Search,
    /// The folders of the command line, absolute.
    named: Vec<PathBuf>,
    config: Config,
    /// Started with the first that is needed.
    children: Arc<OnceLock<Children>>,
    runtimes: Vec<PluginRuntime>,
}

impl Plugins {
    /// Everything that can be found.
    pub(crate) fn new(
        named: &[PathBuf],
        config: &Config,
        cx: &Invocation,
    ) -> Result<Self, Failure> {
        let search = search(named, config, cx)?;
        let config = config.clone();
        let named = named.iter().map(|folder| cx.absolute(folder)).collect();
        Ok(Self { search, named, config, children: Arc::default(), runtimes: Vec::new() })
    }

    /// Where is looked.
    pub(crate) fn search(&self) -> &Search {
        &self.search
    }

    /// The folders of the command line.
    pub(crate) fn named(&self) -> &[PathBuf] {
        &self.named
    }

    /// The runtimes that were loaded.
    pub(crate) fn runtimes(&self) -> &[PluginRuntime] {
        &self.runtimes
    }

    /// What starts processes, for plugins and for the tree.
    pub(crate) fn processes(&self, cx: &Invocation) -> Result<Processes, Failure> {
        self.children(cx).map(|children| children.processes.clone())
    }

    /// Returns the same, with the place for the tree that is told what is noticed.
    pub(crate) fn children(&self, cx: &Invocation) -> Result<&Children, Failure> {
        if let Some(children) = self.children.get() {
            return Ok(children);
        }
        let started = Children::hold(cx)?;
        Ok(self.children.get_or_init(|| started))
    }

    /// Looks for a runtime, and checks all that can be checked without running it.
    pub(crate) fn find_runtime(&self, name: &str, cx: &Invocation) -> Result<Checked, Failure> {
        let candidate = self.search.runtime(name).map_err(|error| unusable(&error, cx))?;
        self.check(candidate, cx)
    }

    /// Loads a runtime. It is there for the tree from now on.
    pub(crate) fn load_runtime(
        &mut self,
        name: &str,
        checked: &Checked,
        cx: &Invocation,
    ) -> Result<&PluginRuntime, Failure> {
        let settings = self.runtime_settings(name);
        let extent =
            Extent { runtimes: vec![(name.to_owned(), settings.clone())], ..self.extent(checked) };
        let plugin = self.load(checked, &extent, cx)?;
        let runtime = plugin.runtime(name, &settings).map_err(|error| unusable(&error, cx))?;
        self.runtimes.push(runtime);
        Ok(self.runtimes.last().expect("it was put there just now"))
    }

    /// Looks for a merge and loads it.
    pub(crate) fn merge(&self, name: &str, cx: &Invocation) -> Result<PluginMerge, Failure> {
        let candidate = self.search.merge(name).map_err(|error| unusable(&error, cx))?;
        let checked = self.check(candidate, cx)?;
        self.load_merge(name, &checked, cx)
    }

    /// Loads a merge that was found.
    fn load_merge(
        &self,
        name: &str,
        checked: &Checked,
        cx: &Invocation,
    ) -> Result<PluginMerge, Failure> {
        let settings = self.merge_settings(name);
        let extent =
            Extent { merges: vec![(name.to_owned(), settings.clone())], ..self.extent(checked) };
        let plugin = self.load(checked, &extent, cx)?;
        plugin.merge(name, &settings).map_err(|error| unusable(&error, cx))
    }

    /// Checks what was found, with what the user has said about it.
    pub(crate) fn check(&self, candidate: Candidate, cx: &Invocation) -> Result<Checked, Failure> {
        let trusted = trusted(&candidate, cx)?;
        candidate.check(trusted).map_err(|error| unusable(&error, cx))
    }

    /// Opens a library in a process of its own and asks what it is.
    pub(crate) fn describe(
        &self,
        checked: &Checked,
        extent: &Extent,
        cx: &Invocation,
    ) -> Result<Described, Failure> {
        let trier = self.trier("plugin-trial", cx)?;
        let tried = engine::aside(try_out(&trier, checked, extent))?;
        tried.map_err(|error| unusable(&error, cx))
    }

    /// Who starts this program again in a hidden mode.
    pub(crate) fn trier(&self, mode: &str, cx: &Invocation) -> Result<Trier, Failure> {
        Ok(Trier {
            processes: self.processes(cx)?,
            program: cx.environment.executable.clone(),
            args: vec![OsString::from(mode)],
            environment: cx.environment.variables.clone(),
        })
    }

    /// The settings of a runtime.
    pub(crate) fn runtime_settings(&self, name: &str) -> JsonText {
        let options = self.config.runtime(name).and_then(|runtime| runtime.options.as_ref());
        options.map_or_else(empty, |options| json(&options.value))
    }

    /// The settings of a merge.
    pub(crate) fn merge_settings(&self, name: &str) -> JsonText {
        let merges = self.config.plugins().merges.as_ref();
        merges.and_then(|merges| merges.value.get(name)).map_or_else(empty, json)
    }

    /// The settings of a whole plugin.
    pub(crate) fn settings(&self, checked: &Checked) -> JsonText {
        let options = self.config.plugins().options.as_ref();
        let name = checked.package.as_ref().map(|package| package.name.as_str());
        let own = options.zip(name).and_then(|(options, name)| options.value.get(name));
        own.map_or_else(empty, json)
    }

    fn extent(&self, checked: &Checked) -> Extent {
        Extent { config: Some(self.settings(checked)), ..Extent::default() }
    }

    fn load(
        &self,
        checked: &Checked,
        extent: &Extent,
        cx: &Invocation,
    ) -> Result<Arc<Plugin>, Failure> {
        let mut tried = Tried::read(&cx.environment);
        if !tried.contains(&checked.digest()) {
            cx.output.detail(format_args!("trying out {}", checked.path().display()));
            self.describe(checked, extent, cx)?;
            tried.add(checked.digest());
        }
        cx.output.detail(format_args!("loading {}", checked.path().display()));
        let output = cx.output;
        let log = move |line: LogLine<'_>| {
            let LogLine { level, target, message, .. } = line;
            let text = harmless(&format!("{target}: {message}"));
            match level {
                ..=2 => output.warning(text),
                _ => output.detail(text),
            }
        };
        let surroundings =
            Surroundings { log: Some(Arc::new(log)), processes: Some(self.processes(cx)?) };
        let settings = self.settings(checked);
        Plugin::load(checked, surroundings, &settings).map_err(|error| unusable(&error, cx))
    }
}

/// The user's own folder of plugins.
pub(crate) fn user_folder(cx: &Invocation) -> Result<PathBuf, Failure> {
    let home = cx.environment.data_home.as_ref();
    let folder = home.map(|home| home.join("offshoot").join(PLUGINS_FOLDER));
    folder.ok_or_else(|| {
        Failure::input("there is no place to keep plugins in").hint("set HOME or XDG_DATA_HOME")
    })
}

/// Returns the hash that the user has trusted of a plugin, by trusting that very plugin or the project whose digest covers
/// its files. A plugin that a project only points to, by `plugins.path`, is not covered.
pub(crate) fn trusted(
    candidate: &Candidate,
    cx: &Invocation,
) -> Result<Option<ContentHash>, Failure> {
    if cx.environment.state_home.is_none() {
        return Ok(None);
    }
    let folder = real(&candidate.folder);
    let trusted = Trusted::read(&cx.environment)?;
    if let Some(digest) = trusted.plugin(&folder) {
        return Ok(Some(digest));
    }
    let library = candidate.package.as_ref().ok().and_then(Package::library);
    if candidate.origin == PlaceOrigin::Project
        && let Some(library) = library
        && let Some(project) = Project::nearest(&folder)?
        && let Ok(folder) = folder.strip_prefix(&project.folder)
        && let (Trust::Trusted, Some(reading)) = trusted.judge(&project)?
    {
        // The hashes of the files are those of the reading that was judged, whatever becomes of the files meanwhile.
        let hash = |file: &Path| reading.hash(&folder.join(file));
        let covered = hash(Path::new(PACKAGE_FILE)).zip(hash(&library.path));
        return Ok(covered.map(|(package, library)| trust_digest(package, library)));
    }
    Ok(None)
}

/// The name under which a plugin is trusted: its folder, without symbolic links.
pub(crate) fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// A plugin that cannot be used, with everything that is wrong and what to do about it.
pub(crate) fn unusable(error: &PluginError, cx: &Invocation) -> Failure {
    if let Some(details) = error.details() {
        cx.output.detail(details);
    }
    if let PluginError::Package(problems) = error {
        let complaints = problems.problems().iter().map(|problem| Complaint {
            message: problem.to_string(),
            causes: Vec::new(),
            hint: None,
        });
        return Failure { exit: Exit::NoRuntime, complaints: complaints.collect(), json: None };
    }
    Failure::of(Exit::NoRuntime, error).maybe_hint(error.hint())
}

fn search(named: &[PathBuf], config: &Config, cx: &Invocation) -> Result<Search, Failure> {
    let mut places = Vec::new();
    let mut add =
        |folder: PathBuf, origin| places.push(Place { folder: cx.absolute(folder), origin });
    named.iter().for_each(|folder| add(folder.clone(), PlaceOrigin::Flag));
    if let Some(path) = &config.plugins().path {
        // A checkout may say where its plugins are, which is not yet a reason to run them.
        let origin = match path.origin {
            Origin::Project { .. } => PlaceOrigin::Project,
            _ => PlaceOrigin::Config,
        };
        path.value.iter().for_each(|folder| add(folder.into(), origin));
    }
    cx.environment
        .plugin_path()
        .into_iter()
        .for_each(|folder| add(folder, PlaceOrigin::Environment));
    if let Some(project) = Project::nearest(&cx.environment.working_folder)? {
        add(project.folder.join(".offshoot").join(PLUGINS_FOLDER), PlaceOrigin::Project);
    }
    if let Some(home) = &cx.environment.data_home {
        add(home.join("offshoot").join(PLUGINS_FOLDER), PlaceOrigin::User);
    }
    SYSTEM_PLUGINS.iter().for_each(|folder| add(folder.into(), PlaceOrigin::System));
    Ok(Search::new(places))
}

fn json(value: &impl serde::Serialize) -> JsonText {
    JsonText::of(value).expect("settings are plain data")
}

fn empty() -> JsonText {
    JsonText::parse("{}".to_owned()).expect("it is JSON")
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugins").field("runtimes", &self.runtimes).finish_non_exhaustive()
    }
}
