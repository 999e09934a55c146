//! A command that says if a state of the files is good, in a worktree of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Isolation, RootId, RunId};
use offshoot_process::{Capture, Exit, Keep, NeverStop, Program};
use tokio::time::timeout;

use crate::error::IsolationError;
use crate::git::bytes;
use crate::removal::remove_file;
use crate::workspaces::{Order, Workspaces, blocking};

/// A check, as it is asked for.
#[derive(Clone, Debug)]
pub struct Check {
    /// The command, for `sh -c`. Exit code 0 means that the files are good.
    pub command: String,
    /// The time after which it hangs, which is a failure.
    pub limit: Duration,
    /// The id by which its folder is known.
    pub id: RunId,
    /// The tree for which it is made.
    pub root: RootId,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) passes: bool,
    /// The reason in words, where it does not pass.
    pub(crate) why: String,
    /// The end of what it wrote.
    pub(crate) said: String,
}

/// The end of the output of a check that is kept.
const SAID_BYTES: usize = 4096;

/// A worktree in which a check is run again and again.
pub(crate) struct CheckFolder<'a> {
    workspaces: &'a Workspaces,
    check: &'a Check,
    folder: PathBuf,
    /// The number of times that it was run.
    pub(crate) runs: u32,
}

impl<'a> CheckFolder<'a> {
    /// Makes the worktree, with the files of this commit.
    pub(crate) async fn make(
        workspaces: &'a Workspaces,
        check: &'a Check,
        top: PathBuf,
        commit: &str,
    ) -> Result<Self, IsolationError> {
        let isolation = Isolation::Worktree { commit: Some(commit.into()) };
        let (run, root) = (check.id, check.root);
        let order = Order { run, root, isolation, folder: top, continues: false };
        let folder = workspaces.make(order).await?.folder;
        // No agent works in it: what is changed here is nothing that must come back.
        let index = workspaces.shelf.beside(run, "index");
        blocking(move || remove_file(&index)).await?;
        Ok(Self { workspaces, check, folder, runs: 0 })
    }

    /// Puts the files of a commit there. What git ignores stays: a build goes on from the last one.
    pub(crate) async fn turn_to(&self, commit: &str) -> Result<(), IsolationError> {
        let about = self.workspaces.about(self.check.id).await?.ok_or(IsolationError::Unknown)?;
        let git_folder = self.workspaces.git_folder(&about);
        let places = [("GIT_DIR", &git_folder), ("GIT_WORK_TREE", &self.folder)];
        let git = self.workspaces.git();
        let checkout = git.command(&self.folder, "checkout").envs(places);
        checkout.args(["--quiet", "--force", "--detach", commit]).run().await?;
        let clean = git.command(&self.folder, "clean").envs(places);
        clean.args(["-ffdq"]).run().await.map(drop)
    }

    /// Runs the command on what is there.
    pub(crate) async fn run(&mut self) -> Result<Checked, IsolationError> {
        self.runs += 1;
        let git = self.workspaces.git();
        let program = Program {
            args: vec!["-c".into(), format!("exec 2>&1\n{}", self.check.command).into()],
            env: git.environment.to_vec(),
            stdout: Capture::from(Keep::Last(SAID_BYTES)),
            ..Program::new("/bin/sh", self.folder.clone())
        };
        let child = git.processes.spawn_when_possible(program).await;
        let child = child.map_err(|error| IsolationError::Start(Arc::new(error)))?;
        // A wait that is given up ends the command with all that it has started.
        let Ok(finished) = timeout(self.check.limit, child.wait(NeverStop)).await else {
            let why = format!("did not end within {} s", self.check.limit.as_secs());
            return Ok(Checked { passes: false, why, said: String::new() });
        };
        let (passes, why) = match finished.exit {
            Exit::Code(0) => (true, String::new()),
            Exit::Code(code) => (false, format!("exited with code {code}")),
            Exit::Signal(signal) => (false, format!("killed by signal {signal}")),
            Exit::Lost => (false, "did not end when killed".to_owned()),
        };
        let said = String::from_utf8_lossy(&bytes(finished.stdout)).trim_end().to_owned();
        Ok(Checked { passes, why, said })
    }

    /// Removes the worktree.
    pub(crate) async fn remove(self) -> Result<(), IsolationError> {
        self.workspaces.discard(self.check.id).await
    }
}
