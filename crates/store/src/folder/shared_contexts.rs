//! The folders in which runs of a tree see the variables that they start with.
//!
//! ```text
//!  contexts/{root}/{names and values, hashed}/context/{name}   each variable, as a file
//!                                             context.json     name → path, size, type
//! ```
//!
//! Runs with the same variables share a folder: a map gives all its pieces the same ones, and links for each of ten thousand would cost
//! more than the pieces do. What a folder holds is compared with its hash before every run that is given it, as far as it is small, and
//! put there anew where it was changed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::{ContentHash, ContextEntry, PathText, RootId, ValueKind};
use parking_lot::Mutex;
use serde::Serialize;

use super::context::VERIFIED_ON_LINK;
use super::{CONTEXTS, DataFolder, SPOOL};
use crate::below::There;
use crate::error::Doing;
use crate::{Store, StoreError};

/// So many folders are remembered. One that is forgotten is looked at as if another supervisor had made it.
const REMEMBERED: usize = 1024;

/// The most files that are small together, and their bytes.
const SMALL_FILES: usize = 8;
const SMALL_BYTES: u64 = 64 << 10;

const MANIFEST: &str = "context.json";

/// The folders of one tree in which its runs see the variables that they start with.
#[derive(derive_more::Debug)]
#[debug("SharedContexts({root})")]
pub struct SharedContexts {
    folder: DataFolder,
    root: RootId,
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    folders: HashMap<ContentHash, Place>,
    /// The same in the order in which they came.
    order: VecDeque<ContentHash>,
}

/// A folder, once it was made.
type Place = Arc<Mutex<Option<Arc<Made>>>>;

/// A folder that was made.
struct Made {
    context: SharedContext,
    /// The files and the manifest as they were written.
    contents: Vec<Content>,
}

/// A file as it was written.
struct Content {
    /// The path below the data folder.
    within: PathBuf,
    there: There,
    /// The hash of its bytes; none where the file is large.
    hash: Option<ContentHash>,
}

/// Variables as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedContext {
    /// The file of each variable, in the order in which they were given. Absolute.
    pub files: Vec<PathBuf>,
    /// The file that lists them: name → path, size, type. Absolute.
    pub manifest: PathBuf,
}

impl SharedContexts {
    /// The folders of this tree. None is made yet.
    pub fn new(folder: &DataFolder, root: RootId) -> Self {
        Self { folder: folder.clone(), root, remembered: Mutex::default() }
    }

    /// Returns these variables as read-only files: those of an earlier run that was given the same ones, or new ones. The time it takes does
    /// not depend on the size of a large value, except for the first run that sees a JSON value. Reads and writes files.
    ///
    /// A file shares its blocks with the value where the file system can, else it *is* the value under another name:
    /// a program that changes its mode and writes to it damages the value, which its hash tells. On another file
    /// system it is a copy.
    ///
    /// # Errors
    ///
    /// Fails where a name is too long, where a value is missing or damaged, or where nothing can be written.
    pub fn of(
        &self,
        store: &dyn Store,
        variables: &[ContextEntry],
    ) -> Result<SharedContext, StoreError> {
        let key = key(variables);
        let place = self.remembered.lock().place(key);
        let known = place.lock().clone();
        if let Some(made) = known.as_ref().filter(|made| made.is_there(&self.folder)) {
            return Ok(made.context.clone());
        }
        // Held while the files are made: another run with the same variables needs them too.
        let mut place = place.lock();
        let is_new = |made: &&Arc<Made>| known.as_ref().is_none_or(|old| !Arc::ptr_eq(old, made));
        if let Some(made) = place.as_ref().filter(is_new) {
            return Ok(made.context.clone());
        }
        *place = None;
        let made = Arc::new(self.make(key, store, variables)?);
        *place = Some(Arc::clone(&made));
        Ok(made.context.clone())
    }

    /// Returns the same if the files are there, are as they were written, and are small, so that reading them takes less time than
    /// starting a process. Reads files.
    pub fn known(&self, variables: &[ContextEntry]) -> Option<SharedContext> {
        let place = self.remembered.lock().folders.get(&key(variables)).cloned()?;
        // Not while another run waits for them.
        let made = place.try_lock()?.clone()?;
        let is_known = made.is_small() && made.is_there(&self.folder);
        is_known.then(|| made.context.clone())
    }

    fn make(
        &self,
        key: ContentHash,
        store: &dyn Store,
        variables: &[ContextEntry],
    ) -> Result<Made, StoreError> {
        let within = Path::new(CONTEXTS).join(self.root.to_string()).join(key.to_string());
        let files = variables.iter().map(|ContextEntry { name, value }| {
            self.folder.link_variable(&within, store, name, value)
        });
        let files: Vec<PathBuf> = files.collect::<Result<_, _>>()?;
        let manifest = self.folder.path().join(&within).join(MANIFEST);
        let written = self.write_manifest(&within, variables, &files);
        written.doing("write", &manifest)?;
        let all = files.iter().chain([&manifest]);
        let contents = all.map(|path| {
            let within = path.strip_prefix(self.folder.path()).expect("it is in the data folder");
            Content::of(&self.folder, within).doing("read", path)
        });
        let contents = contents.collect::<Result<_, _>>()?;
        Ok(Made { context: SharedContext { files, manifest }, contents })
    }

    /// Writes the list of the variables, unless it is there.
    fn write_manifest(
        &self,
        within: &Path,
        variables: &[ContextEntry],
        files: &[PathBuf],
    ) -> io::Result<()> {
        let lines = variables.iter().zip(files).map(|(ContextEntry { name, value }, path)| {
            let path = PathText(path.clone());
            (&**name, ManifestLine { path, size: value.size, r#type: value.kind })
        });
        let lines: BTreeMap<&str, ManifestLine> = lines.collect();
        let mut text = serde_json::to_vec_pretty(&lines)?;
        text.push(b'\n');
        let folder = self.folder.below.make_folder(within)?;
        match folder.create_new(MANIFEST) {
            Ok(mut file) => file.write_all(&text),
            // That of a supervisor before this one may be cut short.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let there = Content::of(&self.folder, &within.join(MANIFEST));
                if there.is_ok_and(|there| there.hash == Some(ContentHash::of(&text))) {
                    return Ok(());
                }
                let spool = self.folder.below.folder(SPOOL)?;
                spool.write_whole(&folder, MANIFEST, |file| file.write_all(&text))
            }
            Err(error) => Err(error),
        }
    }
}

impl Remembered {
    fn place(&mut self, key: ContentHash) -> Place {
        if let Some(place) = self.folders.get(&key) {
            return Arc::clone(place);
        }
        if self.order.len() >= REMEMBERED
            && let Some(first) = self.order.pop_front()
        {
            // One that is being made is not made by another thread as well.
            match self.folders.get(&first).is_some_and(|place| Arc::strong_count(place) > 1) {
                true => self.order.push_back(first),
                false => drop(self.folders.remove(&first)),
            }
        }
        self.order.push_back(key);
        Arc::clone(self.folders.entry(key).or_default())
    }
}

impl Made {
    fn is_small(&self) -> bool {
        let bytes = self.contents.iter().map(|content| content.there.length());
        self.contents.len() <= SMALL_FILES && bytes.sum::<u64>() <= SMALL_BYTES
    }

    /// True if all its files are as they were written.
    fn is_there(&self, folder: &DataFolder) -> bool {
        self.contents.iter().all(|content| content.is_there(folder))
    }
}

impl Content {
    fn of(folder: &DataFolder, within: &Path) -> io::Result<Self> {
        let file = folder.below.read(within)?;
        let there = There::of(&file)?;
        let is_small = there.length() <= VERIFIED_ON_LINK;
        let hash = is_small.then(|| hash(&file, there.length())).transpose()?;
        Ok(Self { within: within.to_owned(), there, hash })
    }

    /// True if the file is as it was written: of a small one the bytes, of a large one the file and the time of its last change.
    fn is_there(&self, folder: &DataFolder) -> bool {
        let is_same = |there: &There| {
            there.is(&self.there)
                && there.length() == self.there.length()
                && there.modified() == self.there.modified()
        };
        Self::of(folder, &self.within).is_ok_and(|now| match self.hash {
            Some(_) => now.hash == self.hash,
            None => is_same(&now.there),
        })
    }
}

fn hash(file: &File, bytes: u64) -> io::Result<ContentHash> {
    let mut content = Vec::with_capacity(bytes as usize);
    // An agent may write to it meanwhile, without an end.
    file.take(bytes + 1).read_to_end(&mut content)?;
    Ok(ContentHash::of(&content))
}

/// The name of the folder of these variables.
fn key(variables: &[ContextEntry]) -> ContentHash {
    let mut text = Vec::new();
    for ContextEntry { name, value } in variables {
        // No two lists are the same bytes: a name stands behind its length.
        text.extend_from_slice(&(name.len() as u64).to_le_bytes());
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(value.kind.as_ref().as_bytes());
        text.push(0);
        text.extend_from_slice(value.hash.to_string().as_bytes());
    }
    ContentHash::of(&text)
}

#[derive(Serialize)]
struct ManifestLine {
    path: PathText,
    size: u64,
    r#type: ValueKind,
}
