//! Names of pieces, for people.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::InputFile;

/// The longest name of a file, in characters. A label has at most 100, and two numbers may follow the name.
const LONGEST: usize = 72;

/// A name for each file, different for each: the file's own, with the folders that are not common to all where two files
/// share it, and with a number where one file comes twice. Without control characters, cut at the front where it is too long.
pub(crate) fn names(files: &[InputFile]) -> Vec<String> {
    let own: Vec<String> = files.iter().map(|file| own_name(&file.path)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for name in &own {
        *uses.entry(name).or_default() += 1;
    }
    let common = common_folder(files);
    let mut taken = HashSet::new();
    let mut names = Vec::with_capacity(files.len());
    for (file, name) in files.iter().zip(&own) {
        let name = if uses[name.as_str()] == 1 {
            name.clone()
        } else {
            plain(&file.path.strip_prefix(common).unwrap_or(&file.path).to_string_lossy())
        };
        let mut unique = name.clone();
        let mut number = 2;
        while !taken.insert(unique.clone()) {
            unique = format!("{name}#{number}");
            number += 1;
        }
        names.push(unique);
    }
    names
}

/// The deepest folder that all files are in.
fn common_folder(files: &[InputFile]) -> &Path {
    let mut folders = files.iter().map(|file| file.path.parent().unwrap_or(&file.path));
    let Some(mut common) = folders.next() else { return Path::new("") };
    for folder in folders {
        while !folder.starts_with(common) {
            common = common.parent().unwrap_or(Path::new(""));
        }
    }
    common
}

fn own_name(path: &Path) -> String {
    plain(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
}

fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let length = name.chars().count();
    if length <= LONGEST {
        return name.chars().map(plain).collect();
    }
    // The end tells files apart more often than the start.
    std::iter::once('…').chain(name.chars().skip(length - LONGEST + 1).map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use offshoot_model::Timestamp;

    use super::*;

    fn check(paths: &[&str], expected: &[&str]) {
        let file = |path: &&str| InputFile {
            path: Arc::new(PathBuf::from(path)),
            resolved: None,
            changed: None,
            size: 1,
            modified: Timestamp::EPOCH,
        };
        let files: Vec<InputFile> = paths.iter().map(file).collect();
        assert_eq!(names(&files), expected);
    }

    #[test]
    fn one_name_for_each_file() {
        check(&[], &[]);
        check(&["/a/big.log"], &["big.log"]);
        check(&["/a/x", "/a/y"], &["x", "y"]);
        check(&["/a/x", "/b/x", "/b/y"], &["a/x", "b/x", "y"]);
        check(&["/a/x", "/a/x", "/a/x"], &["x", "x#2", "x#3"]);
        check(&["/r/a/s/x", "/r/b/s/x"], &["a/s/x", "b/s/x"]);
        check(&["/a/x\ny"], &["x\u{fffd}y"]);
        let long = format!("/a/{}end", "x".repeat(100));
        check(&[&long], &[&format!("…{}end", "x".repeat(68))]);
        let twins = ["1", "2"].map(|end| format!("/{end}/{}", "x".repeat(100)));
        let tail = "x".repeat(71);
        check(&[&twins[0], &twins[1]], &[&format!("…{tail}"), &format!("…{tail}#2")]);
    }
}
