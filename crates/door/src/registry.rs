//! The supervisors of this user, so that a process can find out whether it runs below one.
//!
//! One small file for each, in folders that only the user can enter. It names the supervisor's process for good
//! (number and start), and its socket. A process that has ended, or whose number was used again, is no supervisor.

mod watch;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use offshoot_model::{ContentHash, ProcessIdentity, path_text};
use offshoot_process::process_namespace;
use serde::{Deserialize, Serialize};

use crate::lineage::Lineage;
use crate::peer::{
    boot, is_in_group_below, is_in_group_of_another, lineage, process_identity, supervisor_by_name,
};
use crate::private_folder;

pub use watch::RegistryWatch;

/// The folders in which the supervisors of a user are registered.
#[derive(Clone, Debug)]
pub struct Registry {
    folders: Vec<PathBuf>,
}

/// A supervisor that is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Supervisor {
    /// The process of the supervisor.
    pub process: ProcessIdentity,
    /// The socket on which it listens.
    #[serde(with = "path_text")]
    pub socket: PathBuf,
    /// The folder in which its socket was asked for, where the socket itself or a link to it stands. None in entries of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text")]
    pub folder: Option<PathBuf>,
    /// The world of processes in which it has that number. None in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    world: Option<u64>,
}

/// A process that is no operator.
#[derive(Serialize, Deserialize)]
struct AgentProcess {
    #[serde(flatten)]
    process: ProcessIdentity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    world: Option<u64>,
}

/// An entry of this process; removed when dropped.
#[derive(Debug)]
pub struct Registration {
    files: Vec<PathBuf>,
}

/// No folder took the entry.
#[derive(Debug, thiserror::Error)]
#[error("cannot write down the supervisor in `{}`", folder.display())]
pub struct RegisterError {
    folder: PathBuf,
    source: io::Error,
}

/// The ending of files that name strays.
const STRAY: &str = "stray";

/// Larger files are none of ours: two paths of 4 KiB with every byte escaped.
const LARGEST_ENTRY: u64 = 64 * 1024;

impl Registry {
    /// The registry of this user: in `{runtime_dir}/offshoot`, `/run/user/{uid}/offshoot` and `/tmp/offshoot-{uid}`.
    /// `runtime_dir` is the caller's `XDG_RUNTIME_DIR`. The other two are looked into whatever it says, because a process that
    /// wants to hide from its supervisor can change its environment.
    pub fn of_user(runtime_dir: Option<&Path>) -> Self {
        Self { folders: private_folder::of_user(runtime_dir) }
    }

    /// One in other folders, for tests and for users who keep apart what they start.
    pub fn in_folders(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect() }
    }

    /// Returns the folders of the registry; not all of them need to exist.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Writes down that this process is a supervisor that listens there, on a socket that was asked for in `folder`; in each folder of
    /// the registry that can be made.
    ///
    /// # Errors
    ///
    /// Fails with the last reason if no folder can be made.
    pub fn register(
        &self,
        socket: &Path,
        folder: Option<&Path>,
    ) -> Result<Registration, RegisterError> {
        let own = std::process::id();
        let process = process_identity(own);
        let process = process.unwrap_or(ProcessIdentity::new(own, 0)).of_boot(boot());
        let world = own_world();
        let entry = Supervisor {
            process,
            socket: socket.to_owned(),
            folder: folder.map(Path::to_owned),
            world,
        };
        // A process may have several sockets.
        let hash = ContentHash::of(socket.as_os_str().as_encoded_bytes()).to_string();
        let name = format!("{own}-{}.json", &hash[..16]);
        let mut files = Vec::new();
        let mut failure = None;
        for folder in &self.folders {
            match write(folder, &name, &entry) {
                Ok(file) => files.push(file),
                Err(source) => failure = Some(RegisterError { folder: folder.clone(), source }),
            }
        }
        match failure {
            Some(error) if files.is_empty() => Err(error),
            _ => Ok(Registration { files }),
        }
    }

    /// All that are alive in this world of processes. Entries of those that are not are removed; in another world a number means
    /// another process, so these are left alone.
    pub fn supervisors(&self) -> Vec<Supervisor> {
        let mut supervisors: Vec<Supervisor> = Vec::new();
        for path in self.entries() {
            let Some(mut supervisor) = read(&path) else {
                if is_left_half_written(&path) {
                    let _ = fs::remove_file(&path);
                }
                continue;
            };
            if is_elsewhere(supervisor.world) {
                continue;
            }
            let Some(process) = alive(supervisor.process) else {
                // Another process may have been faster.
                let _ = fs::remove_file(&path);
                continue;
            };
            supervisor.process = process;
            if !supervisors.contains(&supervisor) {
                supervisors.push(supervisor);
            }
        }
        supervisors
    }

    /// Returns a watch, which wakes its holder when a supervisor comes or goes. Make it, then look.
    ///
    /// # Errors
    ///
    /// Fails if no folder can be watched.
    pub fn watch(&self) -> io::Result<RegistryWatch> {
        RegistryWatch::new(
            self.folders.iter().filter(|folder| private_folder::make(folder).is_ok()),
        )
    }

    /// True if this process should believe another one that it is a supervisor. Where this one runs below a supervisor, it
    /// believes that one alone; else each that is written down and does not run inside a tree itself, and each parent, which
    /// could do to this one what it likes. Agents can write themselves down.
    pub(crate) fn believes(&self, process: ProcessIdentity) -> bool {
        let Some(own) = lineage(std::process::id()) else { return false };
        let supervisors = self.supervisors();
        let is_one = |process: &ProcessIdentity| {
            supervisors.iter().any(|supervisor| supervisor.process == *process)
        };
        match own.parents().iter().find(|parent| is_one(parent)) {
            Some(above) => *above == process,
            None => {
                // A process that was itself left by an agent cannot be deceived: no supervisor answers it.
                let may_tell = !self.comes_from_a_tree(&own);
                let is_inside = || {
                    lineage(process.pid).is_none_or(|lineage| {
                        lineage.parents().iter().any(is_one)
                            || (may_tell && self.comes_from_a_tree(&lineage))
                            || supervisor_by_name(&lineage).is_some()
                    })
                };
                is_one(&process) && !is_inside() || own.parents().contains(&process)
            }
        }
    }

    /// True if this process was left by an agent, of a tree that is over too, so that it is no operator. Its parents do not tell.
    pub fn was_left_by_an_agent(&self) -> bool {
        lineage(std::process::id()).is_some_and(|own| self.comes_from_a_tree(&own))
    }

    /// True if the process was left by an agent: some supervisor has written it or a parent of it down, or it is in the control
    /// group of a supervisor that this process is not in.
    pub(crate) fn comes_from_a_tree(&self, lineage: &Lineage) -> bool {
        is_in_group_of_another(lineage.process().pid) || lineage.comes_from(&self.strays())
    }

    /// True if the process, which is below this one, was left by an agent of any tree, or runs in the tree of a supervisor that is below
    /// this one too.
    pub(crate) fn comes_from_a_tree_below(&self, lineage: &Lineage) -> bool {
        is_in_group_below(lineage.process().pid) || lineage.comes_from(&self.strays())
    }

    /// Writes down a process that came to this supervisor from some run that cannot be named. For as long as it lives, neither
    /// it nor what it starts is an operator, in whatever tree: [`decide`](crate::decide) refuses it.
    ///
    /// Nothing is said where no folder takes it: the supervisor itself still refuses it, as one of its own children.
    pub fn remember_stray(&self, process: ProcessIdentity) {
        let name = format!("{}-{}.{STRAY}", process.pid, process.start_time);
        let stray = AgentProcess { process: process.of_boot(boot()), world: own_world() };
        for folder in self.private_folders() {
            let _ = write(folder, &name, &stray);
        }
    }

    /// All that were written down so, by whatever supervisor, and live. Entries of others are removed.
    pub(crate) fn strays(&self) -> Vec<ProcessIdentity> {
        let mut strays = Vec::new();
        let is_stray = |path: &PathBuf| path.extension().is_some_and(|it| it == STRAY);
        for path in self.entries().filter(is_stray) {
            let read = fs::read(&path).ok();
            let read = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let Some(AgentProcess { process, world }) = read else { continue };
            if is_elsewhere(world) {
                continue;
            }
            match alive(process) {
                Some(stray) => strays.push(stray),
                // Another look may have been faster.
                None => drop(fs::remove_file(&path)),
            }
        }
        strays
    }

    /// The folders that belong to this user alone: what stands in another one is not believed.
    fn private_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter().filter(|folder| private_folder::is_private(folder))
    }

    /// The files in them.
    fn entries(&self) -> impl Iterator<Item = PathBuf> {
        let entries = self.private_folders().filter_map(|folder| fs::read_dir(folder).ok());
        entries.flatten().filter_map(|entry| Some(entry.ok()?.path()))
    }

    /// The supervisor below which a process runs: the nearest of its parents that is one, with each of its sockets.
    /// Empty where there is none.
    pub fn above(&self, pid: u32) -> Vec<Supervisor> {
        let Some(lineage) = lineage(pid) else { return Vec::new() };
        let supervisors = self.supervisors();
        let of = |parent: &ProcessIdentity| {
            supervisors.iter().filter(|found| found.process == *parent).cloned().collect::<Vec<_>>()
        };
        lineage.parents().iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// Returns the process of an entry, if it lives: without its boot, because every later comparison is between processes that live.
fn alive(process: ProcessIdentity) -> Option<ProcessIdentity> {
    let alive = process_identity(process.pid).filter(|_| process.may_be_of(boot()));
    alive.filter(|alive| *alive == process.of_boot(None))
}

/// The world of processes in which this process has its number.
fn own_world() -> Option<u64> {
    process_namespace().ok()
}

/// True if a number from that process namespace means another process here.
fn is_elsewhere(world: Option<u64>) -> bool {
    world.is_some() && world != own_world()
}

/// Written aside and then renamed, so that a reader never sees half of it.
fn write(folder: &Path, name: &str, entry: &impl Serialize) -> io::Result<PathBuf> {
    private_folder::make(folder)?;
    // A file that is being written is no leftover: its name says in which world the number in it is a process.
    let world = own_world().unwrap_or_default();
    let (aside, path) = (folder.join(format!(".{name}.{world}")), folder.join(name));
    // Left by a process of the same number.
    let _ = fs::remove_file(&aside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    let written = file.write_all(&serde_json::to_vec(entry)?);
    match written.and_then(|()| fs::rename(&aside, &path)) {
        Ok(()) => Ok(path),
        Err(error) => {
            // The error to report is that of the entry, not one of removing its unfinished file.
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

/// True if the file will never be finished: its name has the number of the process that wrote it, and there is none.
fn is_left_half_written(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.strip_prefix('.')) else { return false };
    let pid = name.split_once('-').and_then(|(pid, _)| pid.parse().ok());
    let world = name.rsplit_once('.').and_then(|(_, world)| world.parse().ok());
    !is_elsewhere(world) && pid.is_some_and(|pid| process_identity(pid).is_none())
}

fn read(path: &Path) -> Option<Supervisor> {
    if path.extension()? != "json" || fs::symlink_metadata(path).ok()?.len() > LARGEST_ENTRY {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

impl Drop for Registration {
    fn drop(&mut self) {
        for file in &self.files {
            // A sweep may have been faster, or the folder is gone.
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::BootId;

    use super::*;

    fn registry() -> (tempfile::TempDir, Registry) {
        let parent = tempfile::tempdir().unwrap();
        let folders = ["one", "two"].map(|name| parent.path().join(name));
        (parent, Registry::in_folders(folders))
    }

    fn files(registry: &Registry) -> usize {
        let count = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
        registry.folders().iter().map(count).sum()
    }

    #[test]
    fn an_entry_lives_as_long_as_its_owner() {
        let (_parent, registry) = registry();
        assert_eq!(registry.supervisors(), []);
        let here = registry.register(Path::new("/x/a.sock"), None).unwrap();
        let found = registry.supervisors();
        assert_eq!(found.len(), 1, "it stands in two folders and is one");
        assert_eq!(found[0].process, process_identity(std::process::id()).unwrap());
        assert_eq!(found[0].socket, Path::new("/x/a.sock"));
        let other = registry.register(Path::new("/x/b.sock"), None).unwrap();
        assert_eq!(registry.supervisors().len(), 2);
        drop((here, other));
        assert_eq!((registry.supervisors().len(), files(&registry)), (0, 0));
    }

    #[test]
    fn the_dead_are_forgotten_and_strangers_are_not_read() {
        let (_parent, registry) = registry();
        let _here = registry.register(Path::new("/x/a.sock"), None).unwrap();
        let own = process_identity(std::process::id()).unwrap();
        let folder = &registry.folders()[0];
        let before = files(&registry);
        let reused = ProcessIdentity { start_time: own.start_time + 1, ..own };
        let of_another_boot = own.of_boot(Some(BootId::from_u128(7)));
        let entry_of = |process, socket: &str| Supervisor {
            process,
            socket: socket.into(),
            folder: None,
            world: None,
        };
        write(folder, "1-dead.json", &entry_of(reused, "/x/dead.sock")).unwrap();
        // The same number and the same moment after the start of the machine, but another start.
        write(folder, "1-boot.json", &entry_of(of_another_boot, "/x/boot.sock")).unwrap();
        fs::write(folder.join("2-garbage.json"), "{\"process\": ").unwrap();
        // The writer of the first file was killed in the middle; that of the second still writes.
        let half = format!(".{}-half.json", i32::MAX);
        fs::write(folder.join(&half), "{\"process\": ").unwrap();
        fs::write(folder.join(format!(".{}-half.json", own.pid)), "").unwrap();
        fs::write(folder.join("3-text.txt"), "").unwrap();
        assert_eq!(registry.supervisors().len(), 1);
        assert_eq!(files(&registry), before + 3, "only the dead one and the half one are gone");
        assert!(!folder.join(&half).exists());

        // A folder that others can write to is not believed.
        use std::os::unix::fs::PermissionsExt;
        for folder in registry.folders() {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        }
        assert_eq!(registry.supervisors(), []);
    }

    #[test]
    fn a_number_of_another_world_of_processes_says_nothing_here() {
        let (_parent, registry) = registry();
        let own = process_identity(std::process::id()).unwrap();
        let _here = registry.register(Path::new("/x/a.sock"), None).unwrap();
        let folder = &registry.folders()[0];
        let elsewhere = own_world().map(|world| world + 1);
        let dead = ProcessIdentity::new(i32::MAX as u32, 7);
        for (name, process) in [("1-live.json", own), ("1-dead.json", dead)] {
            let socket = "/x/elsewhere.sock".into();
            write(folder, name, &Supervisor { process, socket, folder: None, world: elsewhere })
                .unwrap();
        }
        for (name, process) in [("1.stray", own), ("2.stray", dead)] {
            let stray = AgentProcess { process, world: elsewhere };
            write(folder, name, &stray).unwrap();
        }
        // A process there is just writing this one.
        let half = format!(".{}-x.json.{}", i32::MAX, elsewhere.unwrap_or_default());
        fs::write(folder.join(&half), "{").unwrap();
        let before = files(&registry);
        assert_eq!(registry.supervisors().len(), 1, "only the one of this world");
        assert_eq!(registry.strays(), []);
        assert_eq!(files(&registry), before, "files of processes elsewhere are not removed here");
        // An entry of an earlier version says no world.
        fs::write(folder.join("3.stray"), serde_json::to_vec(&own).unwrap()).unwrap();
        assert_eq!(registry.strays(), [own]);
    }

    #[test]
    fn a_process_finds_the_nearest_supervisor_above() {
        let (_parent, registry) = registry();
        let own = std::process::id();
        let parent = std::os::unix::process::parent_id();
        let _itself = registry.register(Path::new("/x/own.sock"), None).unwrap();
        assert_eq!(registry.above(own), [], "no process is its own child");
        let of_parent = |socket: &str| Supervisor {
            process: process_identity(parent).unwrap(),
            socket: socket.into(),
            folder: None,
            world: own_world(),
        };
        let folder = &registry.folders()[0];
        write(folder, "p-1.json", &of_parent("/x/1.sock")).unwrap();
        write(folder, "p-2.json", &of_parent("/x/2.sock")).unwrap();
        let first = Supervisor {
            process: process_identity(1).unwrap(),
            socket: "/x/i.sock".into(),
            folder: None,
            world: None,
        };
        if parent != 1 {
            write(folder, "i.json", &first).unwrap();
        }
        let mut sockets: Vec<_> =
            registry.above(own).into_iter().map(|found| found.socket).collect();
        sockets.sort();
        assert_eq!(sockets, [Path::new("/x/1.sock"), Path::new("/x/2.sock")]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let registry = Registry::in_folders([file.clone()]);
        let error = registry.register(Path::new("/x"), None).unwrap_err();
        assert!(error.to_string().contains(&file.display().to_string()));
        let both = Registry::in_folders([file, parent.path().join("good")]);
        both.register(Path::new("/x"), None).unwrap();
    }
}
