//! Many patches, one branch: applied in three ways in the order of the request, and checked together.
//!
//! ```text
//!  patches ─▶ onto the branch, one by one ─▶ check ──passes──▶ the branch
//!               │ conflict: left out,          │ fails
//!               │ which files, whose           └▶ the first patch with which it fails is left out, and again
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::bisection::Bisection;
use crate::check::{Check, CheckFolder, Checked};
use crate::commits::{Commits, Put};
use crate::error::IsolationError;
use crate::repository::Repository;
use crate::workspaces::{Workspaces, blocking};

/// Patches that are to become a branch.
#[derive(Clone, Debug)]
pub struct Joint {
    /// A folder in the repository.
    pub folder: PathBuf,
    /// The name of the branch.
    pub branch: String,
    /// The patches, in the order of the request.
    pub patches: Vec<Contribution>,
    /// The check of all of them together.
    pub check: Option<Check>,
}

/// The patch of one run.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The name of the run in the request.
    pub key: String,
    /// The id of the run.
    pub run: String,
    /// The commit on which the patch was made, where it is one.
    pub base: Option<String>,
    /// The file of the patch; none where nothing was changed.
    pub patch: Option<PathBuf>,
}

/// A branch, and what came of each patch. Each patch is named in one of the lists.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The branch; none where no patch is on it.
    pub branch: Option<String>,
    /// The commit on which it begins.
    pub base: String,
    /// The last commit of the branch.
    pub commit: String,
    /// The patches on it, in their order.
    pub applied: Vec<Applied>,
    /// The patches that do not fit to those before them.
    pub conflicts: Vec<Conflict>,
    /// The patches with which the check fails.
    pub left_out: Vec<LeftOut>,
    /// The runs that have changed nothing.
    pub unchanged: Vec<String>,
    /// The outcome of the check.
    pub check: Option<Verdict>,
}

/// A patch on the branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The name of the run.
    pub key: String,
    /// The run.
    pub run: String,
    /// The commit that it became.
    pub commit: String,
    /// The number of files that it changes.
    pub files: usize,
}

/// A patch that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The name of the run.
    pub key: String,
    /// The run.
    pub run: String,
    /// The reason in words.
    pub why: String,
    /// The files, each with the names of the runs that have changed it before.
    pub files: BTreeMap<String, Vec<String>>,
}

/// A patch with which the check fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The name of the run.
    pub key: String,
    /// The run.
    pub run: String,
    /// The end of the check in words.
    pub why: String,
    /// The end of what the check wrote.
    pub said: String,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The command.
    pub command: String,
    /// True if it passes with what is on the branch.
    pub passes: bool,
    /// The number of times that it was run.
    pub runs: u32,
    /// The end of it in words, where it does not pass.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The end of what it wrote, where it does not pass.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// A patch as a commit on its own base.
#[derive(Clone, Debug)]
struct Made {
    /// The place in the request.
    at: usize,
    key: String,
    run: String,
    base: String,
    commit: String,
    files: Vec<String>,
}

impl Workspaces {
    /// Makes a branch of patches. Files, index and other branches of the user stay as they are.
    ///
    /// # Errors
    ///
    /// Fails if git does. Patches that do not fit and a check that fails are no errors.
    pub async fn join(&self, joint: &Joint) -> Result<Joined, IsolationError> {
        let first = joint.patches.iter().find_map(|patch| patch.base.as_deref());
        let repository = Repository::of(self.git(), &joint.folder, first.unwrap_or("HEAD")).await?;
        let scratch = self.scratch(&joint.branch).await?;
        let commits = Commits { git: self.git(), top: &repository.top, index: &scratch.path };
        let joined = self.join_in(joint, &repository, &commits).await;
        blocking(move || scratch.remove()).await?;
        joined
    }

    async fn join_in(
        &self,
        joint: &Joint,
        repository: &Repository,
        commits: &Commits<'_>,
    ) -> Result<Joined, IsolationError> {
        let base = &repository.commit;
        let mut joined = Joined { base: base.clone(), ..Joined::default() };
        let mut made = Vec::new();
        for (at, patch) in joint.patches.iter().enumerate() {
            match make(commits, patch, at).await? {
                Some(Ok(one)) => made.push(one),
                Some(Err(conflict)) => joined.conflicts.push(conflict),
                None => joined.unchanged.push(patch.key.clone()),
            }
        }
        let mut line = Line { base: base.clone(), made: Vec::new(), apart: Vec::new() };
        for one in made {
            line.add(commits, one).await?;
        }
        if let Some(check) = joint.check.as_ref().filter(|_| !line.made.is_empty()) {
            let verdict =
                self.check(check, &repository.top, commits, &mut line, &mut joined).await?;
            joined.check = Some(verdict);
        }
        let tip = line.tip().to_owned();
        if !line.made.is_empty() {
            let name = format!("refs/heads/{}", joint.branch);
            let update = self.git().command(commits.top, "update-ref");
            update.args(["--create-reflog", &name, &tip]).run().await?;
            joined.branch = Some(joint.branch.clone());
        }
        joined.commit = tip;
        let made_conflicts = line.conflicts(commits).await?;
        joined.conflicts.extend(made_conflicts);
        joined.applied = line.applied();
        Ok(joined)
    }

    /// Checks what is on the line. Patches with which the check fails are taken off, one by one.
    async fn check(
        &self,
        check: &Check,
        top: &Path,
        commits: &Commits<'_>,
        line: &mut Line,
        joined: &mut Joined,
    ) -> Result<Verdict, IsolationError> {
        let mut folder = CheckFolder::make(self, check, top.to_owned(), line.tip()).await?;
        let last = search(&mut folder, commits, line, joined).await;
        let mut runs = folder.runs;
        folder.remove().await?;
        let mut last = last?;
        if last.passes && runs > 1 {
            // What is handed on has passed where no earlier build has left anything.
            let mut folder = CheckFolder::make(self, check, top.to_owned(), line.tip()).await?;
            let again = folder.run().await;
            folder.remove().await?;
            last = again?;
            runs += 1;
        }
        let (passes, command) = (last.passes, check.command.clone());
        let (why, said) = if passes { Default::default() } else { (last.why, last.said) };
        Ok(Verdict { command, passes, runs, why, said })
    }
}

/// Takes off the line what makes the check fail. Returns what came of the check at the end.
async fn search(
    folder: &mut CheckFolder<'_>,
    commits: &Commits<'_>,
    line: &mut Line,
    joined: &mut Joined,
) -> Result<Checked, IsolationError> {
    let mut last = folder.run().await?;
    if last.passes {
        return Ok(last);
    }
    folder.turn_to(line.at(0)).await?;
    let without = folder.run().await?;
    if !without.passes {
        // No patch is to blame.
        let why = format!("{}, also without any patch", without.why);
        return Ok(Checked { why, ..without });
    }
    let mut passes = 0;
    while !last.passes {
        let mut search = Bisection::between(passes, line.made.len());
        while let Some(tried) = search.next() {
            folder.turn_to(line.at(tried)).await?;
            let checked = folder.run().await?;
            search.tried(tried, checked.passes);
            if !checked.passes {
                last = checked;
            }
        }
        passes = search.found();
        // With it goes what stood in the way of others: those that did not fit behind it are tried again.
        let (culprit, rest) = line.cut(passes);
        let Checked { why, said, .. } = last;
        joined.left_out.push(LeftOut { key: culprit.key, run: culprit.run, why, said });
        for one in rest {
            line.add(commits, one).await?;
        }
        last = match line.made.len() == passes {
            // That much is known to pass.
            true => Checked { passes: true, why: String::new(), said: String::new() },
            false => {
                folder.turn_to(line.tip()).await?;
                folder.run().await?
            }
        };
    }
    Ok(last)
}

/// Makes the commit that a patch is; none of a run that has changed nothing.
async fn make(
    commits: &Commits<'_>,
    patch: &Contribution,
    at: usize,
) -> Result<Option<Result<Made, Conflict>>, IsolationError> {
    let Contribution { key, run, base, patch } = patch;
    let Some(patch) = patch else { return Ok(None) };
    let conflict = |why: &str| {
        let (key, run, why) = (key.clone(), run.clone(), why.to_owned());
        Ok(Some(Err(Conflict { key, run, why, files: BTreeMap::new() })))
    };
    let Some(base) = base else {
        return conflict("a patch of a copy that was no commit, because files were not committed");
    };
    if !commits.has(base).await? {
        return conflict("a patch of another repository, or of a commit that is gone");
    }
    let Some(commit) = commits.of_patch(base, patch, &message(key, run)).await? else {
        return conflict("a patch that does not fit to its own base");
    };
    let files = commits.differ(base, &commit).await?;
    let (key, run, base) = (key.clone(), run.clone(), base.clone());
    Ok(Some(Ok(Made { at, key, run, base, commit, files })))
}

/// A patch that does not fit is compared with so many others.
const MOST_COMPARED: usize = 100;

/// The line of commits that the branch becomes.
struct Line {
    base: String,
    /// Each with the commit on the line that it became.
    made: Vec<(Made, String)>,
    /// The patches that do not fit, with the files in which.
    apart: Vec<(Made, Vec<String>)>,
}

impl Line {
    fn tip(&self) -> &str {
        self.at(self.made.len())
    }

    /// Returns the commit with the first so many patches.
    fn at(&self, patches: usize) -> &str {
        match patches.checked_sub(1) {
            None => &self.base,
            Some(last) => &self.made[last].1,
        }
    }

    /// Puts one more on the line, or among those that do not fit.
    async fn add(&mut self, commits: &Commits<'_>, one: Made) -> Result<(), IsolationError> {
        match commits.put(&one.base, self.tip(), &one.commit).await? {
            Put::Clean(tree) => {
                let message = message(&one.key, &one.run);
                let commit = commits.commit(&tree, self.tip(), &message).await?;
                self.made.push((one, commit));
            }
            Put::Conflict(files) => self.apart.push((one, files)),
        }
        Ok(())
    }

    /// Takes the patch behind the first so many off. Returns it, and those that are to be put on the line again: all behind it, with what did not
    /// fit there.
    fn cut(&mut self, patches: usize) -> (Made, Vec<Made>) {
        let mut off = self.made.split_off(patches).into_iter().map(|(made, _)| made);
        let culprit = off.next().expect("a patch was found");
        let (before, behind) =
            std::mem::take(&mut self.apart).into_iter().partition(|(one, _)| one.at < culprit.at);
        self.apart = before;
        let mut rest: Vec<Made> = off.chain(behind.into_iter().map(|(one, _)| one)).collect();
        rest.sort_by_key(|one| one.at);
        (culprit, rest)
    }

    /// Returns what came of those that do not fit: which files, and whose changes stand in their way.
    async fn conflicts(&self, commits: &Commits<'_>) -> Result<Vec<Conflict>, IsolationError> {
        let mut conflicts = Vec::new();
        for (one, files) in &self.apart {
            let mut whose = BTreeMap::new();
            for file in files {
                whose.insert(file.clone(), self.in_the_way(commits, one, file).await?);
            }
            let why = "others have changed the same lines or names before it".to_owned();
            let (key, run) = (one.key.clone(), one.run.clone());
            conflicts.push(Conflict { key, run, why, files: whose });
        }
        Ok(conflicts)
    }

    /// Names those before a patch that cannot stand beside it in a file. Where it is all of them together, these are all that have changed the file.
    async fn in_the_way(
        &self,
        commits: &Commits<'_>,
        one: &Made,
        file: &str,
    ) -> Result<Vec<String>, IsolationError> {
        let has = |made: &&Made| {
            made.at < one.at && made.files.iter().any(|other| is_in_the_way(other, file))
        };
        let before: Vec<&Made> = self.made.iter().map(|(made, _)| made).filter(has).collect();
        let mut alone = Vec::new();
        for other in before.iter().take(MOST_COMPARED).filter(|other| other.base == one.base) {
            let put = commits.put(&one.base, &other.commit, &one.commit).await?;
            if matches!(put, Put::Conflict(files) if files.iter().any(|it| it == file)) {
                alone.push(other.key.clone());
            }
        }
        Ok(match alone.is_empty() {
            true => before.iter().map(|made| made.key.clone()).collect(),
            false => alone,
        })
    }

    fn applied(self) -> Vec<Applied> {
        let applied = |(made, commit): (Made, String)| {
            let Made { key, run, files, .. } = made;
            Applied { key, run, commit, files: files.len() }
        };
        self.made.into_iter().map(applied).collect()
    }
}

/// True if a change of one file can stand in the way of another's: of the same file, or of a folder of its name.
fn is_in_the_way(other: &str, file: &str) -> bool {
    let is_below = |below: &str, above: &str| {
        below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_below(other, file) || is_below(file, other)
}

/// The message of the commit that the patch of a run becomes.
fn message(key: &str, run: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let title: String = key.chars().map(plain).take(100).collect();
    format!("{title}\n\nBy the run {run}.")
}
