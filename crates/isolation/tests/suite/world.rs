//! A repository, a data folder beside it, and what is asked of both.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offshoot_isolation::{Git, IsolationError, Order, Workspace, Workspaces};
use offshoot_model::{Isolation, RootId, RunId};
use offshoot_process::{Options, Processes};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) workspaces: Workspaces,
}

/// The environment of the test, without settings of git of the user.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| name != "HOME" && name != "XDG_CONFIG_HOME");
    own.chain([("HOME".into(), "/nonexistent".into())]).collect()
}

/// Runs git in a folder, and returns what it wrote.
#[expect(clippy::disallowed_methods, reason = "the user of the repository, who is no agent")]
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    command.args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]);
    let done = command.args(arguments).current_dir(folder).env("HOME", "/nonexistent").output();
    let done = done.expect("git runs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("it is below")).expect("a folder");
    fs::write(path, content).expect("a file");
}

pub(crate) fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

pub(crate) fn run() -> RunId {
    RunId::from_bytes(uuid::Uuid::now_v7().into_bytes())
}

impl World {
    /// A repository with a commit.
    pub(crate) fn new() -> Self {
        let world = Self::empty(environment());
        let repository = world.repository();
        git(&world.path(), &["init", "-q", "repository"]);
        write(&repository, "a", "one\ntwo\nthree\n");
        write(&repository, "d/b", "bytes\n".repeat(20));
        write(&repository, "d/gone", "gone\n");
        write(&repository, "script", "#!/bin/sh\n");
        write(&repository, "blob", (0..=255).collect::<Vec<u8>>());
        write(&repository, ".gitignore", "ignored\n");
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "-q", "-m", "begin"]);
        world
    }

    /// No repository.
    pub(crate) fn empty(environment: Vec<(OsString, OsString)>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let processes = Processes::start(Options::default()).expect("processes");
        let git = Git::find(processes, environment).expect("git");
        let data = folder.path().canonicalize().expect("a path").join("data");
        let workspaces = Workspaces::open(&data, git).expect("a shelf");
        Self { folder, workspaces }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("a path")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repository")
    }

    pub(crate) async fn make(
        &self,
        run: RunId,
        isolation: &str,
        folder: &Path,
    ) -> Result<Workspace, IsolationError> {
        self.make_again(run, isolation, folder, false).await
    }

    pub(crate) async fn make_again(
        &self,
        run: RunId,
        isolation: &str,
        folder: &Path,
        continues: bool,
    ) -> Result<Workspace, IsolationError> {
        let isolation: Isolation = isolation.parse().expect("an isolation");
        let (root, folder) = (RootId::new(run), folder.to_owned());
        self.workspaces.make(Order { run, root, isolation, folder, continues }).await
    }

    /// Everything of the user that must stay as it is.
    pub(crate) fn of_user(&self) -> Vec<String> {
        let repository = self.repository();
        let index = fs::read(repository.join(".git/index")).expect("an index");
        let commands = [
            &["status", "--porcelain"] as &[&str],
            &["for-each-ref"],
            &["rev-parse", "HEAD"],
            &["symbolic-ref", "HEAD"],
            &["stash", "list"],
            &["worktree", "list"],
            &["count-objects"],
        ];
        let said = commands.iter().map(|arguments| git(&repository, arguments));
        // The status may write the index anew, so it is read before.
        std::iter::once(format!("{index:?}")).chain(said).collect()
    }

    /// Checks that nothing is left of any folder.
    pub(crate) fn check_nothing_left(&self) {
        let shelf = self.path().join("data/isolated");
        let names =
            fs::read_dir(shelf).expect("a shelf").map(|entry| entry.expect("it").file_name());
        assert_eq!(names.filter(|name| name != ".git").count(), 0);
        assert!(!self.repository().join(".git/worktrees").exists());
    }

    /// A clone of the repository at a commit, to which a patch is applied.
    pub(crate) fn applied(&self, base: &str, patch: &Path) -> TempDir {
        let clone = tempfile::tempdir().expect("a folder");
        git(clone.path(), &["clone", "-q", &self.repository().display().to_string(), "."]);
        git(clone.path(), &["checkout", "-q", "--detach", base]);
        let patch = patch.display().to_string();
        git(clone.path(), &["apply", "--index", "--binary", "--whitespace=nowarn", &patch]);
        clone
    }
}
