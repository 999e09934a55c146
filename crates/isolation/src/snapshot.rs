//! The state of a folder as git knows it, taken from outside: what stands in the folder decides nothing about how.
//!
//! An agent may have written anything into its folder, a `.git` that leads elsewhere among it. So each command is told where the
//! repository is. Objects go into a folder of their own: the repository of the user gets none of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::IsolationError;
use crate::git::{Command, Git, listed};
use crate::patch::{Summary, Summing};
use crate::removal::{remove_file, remove_folder};
use crate::repository::names;
use crate::shelf::sync_folder;
use crate::workspaces::blocking;

/// A folder, and the places that git uses for it.
pub(crate) struct Snapshot<'a> {
    pub(crate) git: &'a Git,
    /// The files.
    pub(crate) tree: PathBuf,
    pub(crate) git_folder: PathBuf,
    pub(crate) index: PathBuf,
    /// The folder for new objects; that of git itself where absent.
    pub(crate) objects: Option<PathBuf>,
    /// The folder whose objects are known.
    pub(crate) common: PathBuf,
    /// The folder of which it is a copy, with files that git ignores; none of a worktree, in which all that is ignored was made there.
    pub(crate) copy_of: Option<PathBuf>,
}

/// A patch that was drawn.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) files: u32,
    pub(crate) notes: Vec<String>,
}

impl Snapshot<'_> {
    /// Returns the files as a tree of git. The folder is one that is not known yet.
    pub(crate) async fn tree(&self) -> Result<String, IsolationError> {
        self.take().await?;
        self.command("write-tree").line().await
    }

    /// Writes what differs from a commit or tree into a file, which is safe then.
    pub(crate) async fn patch(&self, base: &str, file: &Path) -> Result<Drawn, IsolationError> {
        let repositories = self.take().await?;
        let mut notes = Vec::new();
        let ignored = self.ignored().await?;
        if !ignored.is_empty() {
            self.take_added().await?;
            let left = self.ignored().await?;
            let left = match self.copy_of.clone() {
                None => left,
                Some(of) => {
                    let tree = self.tree.clone();
                    blocking(move || Ok(changed(&tree, &of, &left))).await?
                }
            };
            if !left.is_empty() {
                let left: Vec<String> =
                    left.iter().map(|path| path.to_string_lossy().into_owned()).collect();
                notes.push(format!("ignored, and so not in the patch: {}", names(&left)));
            }
        }
        let part = file.with_extension("patch.part");
        let unfinished = part.clone();
        blocking(move || remove_file(&unfinished)).await?;
        let form = ["--binary", "--full-index", "--find-renames", "--no-color", "--no-ext-diff"];
        let diff = self.command("diff-index").args(["--cached", "-p"]).args(form);
        let diff = diff.args(["--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", base]);
        let differs = diff.into_file(&part).await?;
        if !repositories.is_empty() {
            let names = names(&repositories);
            notes.push(format!(
                "repositories made in it, in the patch without their history: {names}"
            ));
        }
        if !differs {
            return Ok(Drawn { files: 0, notes });
        }
        let file = file.to_owned();
        let Summary { files, links_out } = blocking(move || keep(&part, &file)).await?;
        if !links_out.is_empty() {
            notes.push(format!("links that lead out of the folder: {}", names(&links_out)));
        }
        Ok(Drawn { files, notes })
    }

    /// Brings the index up to the files. Returns the repositories among them, which are taken as plain folders.
    async fn take(&self) -> Result<Vec<String>, IsolationError> {
        let (objects, known) = (self.objects.clone(), self.common.join("objects"));
        let lock = self.index.with_extension("index.lock");
        let prepare = move || {
            remove_file(&lock)?;
            let Some(objects) = objects else { return Ok(()) };
            remove_folder(&objects)?;
            let info = objects.join("info");
            fs::create_dir_all(&info).map_err(IsolationError::io("make", &info))?;
            let mut line = known.as_os_str().as_bytes().to_vec();
            line.push(b'\n');
            let alternates = info.join("alternates");
            fs::write(&alternates, line).map_err(IsolationError::io("write", &alternates))
        };
        blocking(prepare).await?;
        if self.index.exists() {
            // Without a path, which an index without files would not have.
            self.command("add").args(["-u", "--sparse"]).run().await?;
        }
        let others = self.command("ls-files").args(["-z", "-o", "--exclude-standard"]);
        let others: BTreeSet<PathBuf> = listed(&others.run().await?).collect();
        let tree = self.tree.clone();
        let (files, repositories) = blocking(move || plain(&tree, others)).await?;
        // Also where there is none: an index has to be there for what follows.
        let add = self.command("update-index").args(["-z", "--add", "--replace", "--stdin"]);
        add.input(files).run().await?;
        Ok(repositories)
    }

    /// Lists what git ignores in the folder, a folder as one.
    async fn ignored(&self) -> Result<Vec<PathBuf>, IsolationError> {
        let ignored = ["-z", "-o", "-i", "--exclude-standard", "--directory"];
        let ignored = self.command("ls-files").args(ignored).run().await?;
        Ok(listed(&ignored).collect())
    }

    /// Takes files that the agent has added by itself although they are ignored: they stand in its own index, also after a commit. One
    /// that cannot be read says nothing.
    async fn take_added(&self) -> Result<(), IsolationError> {
        let theirs = match &self.copy_of {
            Some(_) => self.tree.join(".git/index"),
            None => self.git_folder.join("index"),
        };
        let is_file = fs::symlink_metadata(&theirs).is_ok_and(|about| about.is_file());
        if !is_file {
            return Ok(());
        }
        let list = self.command("ls-files").arg("-z");
        let (code, added, said) = list.env("GIT_INDEX_FILE", &theirs).outcome().await?;
        if code != 0 {
            tracing::info!(index = %theirs.display(), said, "the index of an agent cannot be read");
            return Ok(());
        }
        let known: BTreeSet<PathBuf> =
            listed(&self.command("ls-files").arg("-z").run().await?).collect();
        let tree = self.tree.clone();
        let is_new = |path: &PathBuf| !known.contains(path) && is_plain(path);
        let more: BTreeSet<PathBuf> = listed(&added).filter(is_new).collect();
        let there = move || {
            let is_there = |path: &PathBuf| {
                let about = fs::symlink_metadata(tree.join(path));
                about.is_ok_and(|about| about.is_file() || about.is_symlink())
            };
            let mut files = Vec::new();
            more.iter().filter(|path| is_there(path)).for_each(|path| enlist(&mut files, path));
            Ok(files)
        };
        let files = blocking(there).await?;
        let add = self.command("update-index").args(["-z", "--add", "--replace", "--stdin"]);
        add.input(files).run().await.map(drop)
    }

    fn command(&self, name: &'static str) -> Command<'_> {
        let places = [
            ("GIT_DIR", &self.git_folder),
            ("GIT_WORK_TREE", &self.tree),
            ("GIT_INDEX_FILE", &self.index),
        ];
        let objects = self.objects.as_ref().map(|objects| ("GIT_OBJECT_DIRECTORY", objects));
        let command = self.git.command(&self.tree, name).envs(places).envs(objects);
        // Symbolic links that name the folder are links, and nothing is fetched for a diff.
        command.env("GIT_LITERAL_PATHSPECS", "1")
    }
}

/// True of the name of a file below a folder, which leads neither out of it nor into a repository: an agent may have written any index.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(name) if name != ".git"))
}

/// The files among these, and below the folders among them, that are not as in the folder of which this is a copy. A copy has the times
/// of its originals.
fn changed(tree: &Path, of: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    let about = |path: &Path| fs::symlink_metadata(path).ok();
    let mut changed = Vec::new();
    let mut open: Vec<PathBuf> = paths.iter().rev().cloned().collect();
    while let Some(path) = open.pop() {
        let Some(here) = about(&tree.join(&path)) else { continue };
        let there = about(&of.join(&path));
        if here.is_dir() && there.as_ref().is_some_and(|there| there.is_dir()) {
            let entries = fs::read_dir(tree.join(&path)).into_iter().flatten().flatten();
            open.extend(entries.map(|entry| path.join(entry.file_name())));
            continue;
        }
        let is_same = there.is_some_and(|there| {
            here.is_symlink()
                || (here.len(), here.modified().ok()) == (there.len(), there.modified().ok())
        });
        if !is_same {
            changed.push(path);
        }
    }
    changed.sort_unstable();
    changed
}

/// Turns what git lists into files: a repository is listed as a folder, of which git looks no further.
fn plain(tree: &Path, others: BTreeSet<PathBuf>) -> Result<(Vec<u8>, Vec<String>), IsolationError> {
    let (mut files, mut repositories) = (Vec::new(), Vec::new());
    for path in others {
        if !path.as_os_str().as_bytes().ends_with(b"/") {
            enlist(&mut files, &path);
            continue;
        }
        repositories.push(path.to_string_lossy().into_owned());
        let mut open = vec![path];
        while let Some(folder) = open.pop() {
            let read = IsolationError::io("read", &tree.join(&folder));
            let entries = fs::read_dir(tree.join(&folder)).and_then(Iterator::collect);
            let entries: Vec<fs::DirEntry> = entries.map_err(read)?;
            for entry in entries {
                let below: PathBuf = folder.join(entry.file_name());
                let kind = entry.file_type();
                let kind = kind.map_err(IsolationError::io("read", &entry.path()))?;
                if entry.file_name() == ".git" {
                } else if kind.is_dir() {
                    open.push(below);
                } else if kind.is_file() || kind.is_symlink() {
                    enlist(&mut files, &below);
                }
            }
        }
    }
    Ok((files, repositories))
}

/// Adds a path to a list that ends each part with a NUL.
fn enlist(files: &mut Vec<u8>, path: &Path) {
    files.extend_from_slice(path.as_os_str().as_bytes());
    files.push(0);
}

/// Has a patch survive a crash under its name, and reads what it says.
fn keep(part: &Path, file: &Path) -> Result<Summary, IsolationError> {
    let read = || {
        let opened = File::open(part)?;
        opened.sync_all()?;
        let (mut lines, mut line) = (BufReader::new(opened), Vec::new());
        let mut summing = Summing::default();
        while lines.read_until(b'\n', &mut line)? > 0 {
            summing.line(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
        fs::rename(part, file)?;
        sync_folder(file.parent().unwrap_or(Path::new("/")))?;
        Ok(summing.summary)
    };
    read().map_err(IsolationError::io("keep", file))
}
