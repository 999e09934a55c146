//! Worktrees for runs beside those that git alone makes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use offshoot_isolation::{Git, Order, Workspaces};
use offshoot_model::{RootId, RunId};
use offshoot_process::{Options, Processes};
use tokio::sync::Mutex;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "worktrees",
    what: "one of 40 worktrees of this repository, made and removed beside the others",
    measure,
};

const OURS: &str = "made, looked through for changes, removed";
const GIT: &str = "git worktree add, git status, git worktree remove";
/// As many runs of a tree work at once.
const AT_ONCE: usize = 8;

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(40, 3);
    let folder = setting.scratch()?;
    let repository = &copy_of_this_repository(folder.path())?;
    let sides = vec![
        Side::new(OURS, move || ours(setting, repository, count)),
        Side::new(GIT, move || git_alone(setting, repository, count)),
    ];
    let samples = compare(setting, setting.few_rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("worktree"), samples).times(OURS, 1.5, GIT).note(format!(
        "{count} worktrees, at most {AT_ONCE} commands at once on each side; git too looks for changes before it removes"
    )))
}

fn ours(setting: &Setting, repository: &Path, count: u32) -> Result<f64> {
    let folder = setting.scratch()?;
    let data = folder.path().canonicalize()?;
    setting.runtime()?.block_on(async {
        let git = Git::find(Processes::start(Options::default())?, std::env::vars_os())?;
        let workspaces = &Workspaces::open(&data, git)?;
        let begun = Instant::now();
        let runs = stream::iter(0..count).map(async |number| {
            let run = RunId::from_bytes(u128::from(number + 1).to_be_bytes());
            let (root, folder) = (RootId::new(run), repository.to_owned());
            let isolation = "worktree".parse()?;
            workspaces.make(Order { run, root, isolation, folder, continues: false }).await?;
            workspaces.gather(run).await?;
            workspaces.discard(run).await?;
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        });
        runs.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        Ok(begun.elapsed().as_secs_f64() / f64::from(count))
    })
}

fn git_alone(setting: &Setting, repository: &Path, count: u32) -> Result<f64> {
    let folder = setting.scratch()?;
    let folder = folder.path();
    setting.runtime()?.block_on(async {
        // What lists a worktree takes turns: one `add` reads what another one is just writing, and both fail. Files are written and looked
        // at beside each other, as far as git lets one do that apart.
        let turns = Mutex::new(());
        let begun = Instant::now();
        let runs = stream::iter(0..count).map(async |number| {
            let tree = folder.join(format!("tree-{number}"));
            let turn = turns.lock().await;
            let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout"];
            run_git(repository, &add, Some(&tree)).await?;
            drop(turn);
            run_git(&tree, &["reset", "--quiet", "--hard"], None).await?;
            run_git(&tree, &["status", "--porcelain"], None).await?;
            let _turn = turns.lock().await;
            run_git(repository, &["worktree", "remove", "--force"], Some(&tree)).await
        });
        runs.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        Ok(begun.elapsed().as_secs_f64() / f64::from(count))
    })
}

async fn run_git(folder: &Path, words: &[&str], tree: Option<&Path>) -> Result<()> {
    let mut command = tokio::process::Command::from(git(folder));
    let status = command.args(words).args(tree).status().await?;
    status.success().then_some(()).ok_or_else(|| format!("git {words:?}: {status}").into())
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A copy of this repository with all its files, so that nothing of it is touched.
fn copy_of_this_repository(folder: &Path) -> Result<PathBuf> {
    let copy = folder.canonicalize()?.join("repository");
    let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let clone = ["clone", "--quiet", "--local"].map(OsStr::new);
    let status = git(folder).args(clone).arg(this).arg(&copy).status()?;
    if !status.success() {
        return Err("these sources are no repository of git".into());
    }
    Ok(copy)
}
