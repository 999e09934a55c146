//! The plugins of this workspace as libraries, and what a test gives them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::{JsonText, RootId, RunId};
use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_runtime::Launch;
pub use offshoot_test_support::{Listener, run};
use uuid::Uuid;

/// A plugin's library, loaded from a folder that no other user can write.
///
/// # Panics
/// Where it was not built, or is not accepted.
pub fn load(name: &str, folder: &Path, surroundings: Surroundings) -> Arc<Plugin> {
    let checked = Checked::file(&library(name, folder)).expect("the library was refused");
    Plugin::load(&checked, surroundings, &json("{}")).expect("the plugin was refused")
}

/// A plugin's library, in this folder.
///
/// # Panics
/// Where it was not built.
pub fn library(name: &str, folder: &Path) -> PathBuf {
    let file = format!("liboffshoot_plugin_{name}.so");
    let built = profile_folder().join("deps").join(&file);
    let copy = folder.join(file);
    std::fs::copy(&built, &copy).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    copy
}

/// The same plugin as a program, with a process for each run or for all of them.
///
/// # Panics
/// Where it was not built, or is not accepted.
pub fn serve(name: &str, per: &str, folder: &Path, surroundings: Surroundings) -> Arc<Plugin> {
    let checked = Checked::file(&program(name, per, folder)).expect("it is a program, and ours");
    let environment = std::env::vars_os().collect();
    let surroundings = Surroundings { environment, ..surroundings };
    Plugin::load(&checked, surroundings, &json("{}")).expect("the plugin was refused")
}

/// The `plugin.toml` of a plugin that is a program, below this folder.
///
/// # Panics
/// Where it was not built.
pub fn program(name: &str, per: &str, folder: &Path) -> PathBuf {
    let folder = folder.join(per).join(name);
    std::fs::create_dir_all(&folder).expect("the folder cannot be made");
    let package = folder.join("plugin.toml");
    let text = format!(
        "name = \"{name}\"\nversion = \"{}\"\nabi = \"1.0\"\nruntimes = [\"{name}\"]\n\
         [process]\ncommand = [\"./served-{name}\"]\nper = \"{per}\"\n",
        env!("CARGO_PKG_VERSION")
    );
    std::fs::write(&package, text).expect("the file cannot be written");
    let file = format!("served-{name}");
    let built = profile_folder().join(&file);
    std::fs::copy(&built, folder.join(&file))
        .unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    package
}

/// The folder of the profile, in which this program was built.
fn profile_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a program knows its own file");
    let profile = program.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    profile.expect("a program lies in a target folder").to_owned()
}

/// JSON text.
///
/// # Panics
/// Where it is none.
pub fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("JSON")
}

/// A launch in this folder.
pub fn launch(folder: &Path, task: &str, command: &[&str]) -> Launch {
    let run = RunId::from_uuid(Uuid::now_v7());
    Launch {
        run,
        root: RootId::new(run),
        command: (!command.is_empty()).then(|| command.iter().map(ToString::to_string).collect()),
        working_folder: Arc::new(folder.to_owned()),
        run_folder: folder.join("runs").join(run.to_string()),
        spool_folder: Arc::new(folder.to_owned()),
        ..Launch::bare(task)
    }
}

/// A folder for the test.
///
/// # Panics
/// Where there is no room.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().to_owned();
    (folder, path)
}

/// Its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/plugins.md")]
struct Docs;
