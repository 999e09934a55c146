//! The places in which this user's plugins are looked for, and those that the user trusts.
//!
//! ```text
//!   --plugin-path ▸ configuration ▸ OFFSHOOT_PLUGIN_PATH ▸ project ▸ user ▸ system
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_config::{Config, Origin, SourceKind};
use offshoot_host::Plugins;
use offshoot_model::ContentHash;
use offshoot_plugin_host::{Candidate, PACKAGE_FILE, Place, PlaceOrigin, Search, trust_digest};

use crate::code::FailureCode;
use crate::environment::SYSTEM_PLUGINS;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::project::Project;
use crate::trusted::{Trust, Trusted};

/// The folder of a project or a user in which plugins are.
pub(crate) const PLUGINS_FOLDER: &str = "plugins";

/// Returns the plugins that can be found, in these folders of the command line first.
pub(crate) fn plugins(
    named: &[PathBuf],
    config: &Config,
    cx: &Invocation,
) -> Result<Plugins, Failure> {
    let search = search(named, config, cx)?;
    let judge = cx.clone();
    let trust = Arc::new(move |candidate: &Candidate| Ok(trusted(candidate, &judge)?));
    let environment = cx.environment.of_host();
    Ok(Plugins::new(search, trust, config.clone(), environment, cx.output.reporter()))
}

/// The user's own folder of plugins.
pub(crate) fn user_folder(cx: &Invocation) -> Result<PathBuf, Failure> {
    let home = cx.environment.data_home.as_ref();
    let folder = home.map(|home| home.join("offshoot").join(PLUGINS_FOLDER));
    folder.ok_or_else(|| {
        Failure::input(FailureCode::NoPluginFolder, "there is no place to keep plugins in")
            .hint("set HOME or XDG_DATA_HOME")
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
    let package = candidate.package.as_ref().ok();
    if candidate.origin == PlaceOrigin::Project
        && let Some(package) = package
        && let Ok(code) = package.code(&folder)
        && let Some(project) = Project::nearest(&folder)?
        && let Ok(folder) = folder.strip_prefix(&project.folder)
        && let (Trust::Trusted, Some(reading)) = trusted.judge(&project)?
    {
        // The hashes of the files are those of the reading that was judged, whatever becomes of the files meanwhile.
        let hash = |file: &Path| reading.hash(&folder.join(file));
        let hashes = code.into_iter().map(|file| hash(&file).map(|hash| (file, hash)));
        let covered = hash(Path::new(PACKAGE_FILE)).zip(hashes.collect::<Option<Vec<_>>>());
        return Ok(covered.map(|(text, hashes)| trust_digest(text, package.code_digest(&hashes))));
    }
    Ok(None)
}

/// The name under which a plugin is trusted: its folder, without symbolic links.
pub(crate) fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

fn search(named: &[PathBuf], config: &Config, cx: &Invocation) -> Result<Search, Failure> {
    let mut places = Vec::new();
    let mut add =
        |folder: PathBuf, origin| places.push(Place { folder: cx.absolute(folder), origin });
    named.iter().for_each(|folder| add(folder.clone(), PlaceOrigin::Flag));
    if let Some(path) = &config.plugins().path {
        // A checkout may say where its plugins are, which is not yet a reason to run them.
        let origin = match path.origin {
            Origin::File { kind: SourceKind::Project, .. } => PlaceOrigin::Project,
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
