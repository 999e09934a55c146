//! The task as a file: whole, whatever its size, and once for all runs that share it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

/// The file that holds this task. An empty task is the empty file that is always there.
///
/// Files stand beside the folders of runs, under the hash of the task; writing one again changes nothing.
pub(crate) fn task_file(run_folder: &Path, task: &str) -> io::Result<PathBuf> {
    if task.is_empty() {
        return Ok(PathBuf::from("/dev/null"));
    }
    let folder = run_folder.parent().unwrap_or(run_folder).join("tasks");
    let path = folder.join(ContentHash::of(task.as_bytes()).to_string());
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(&folder)?;
    // Under a name of its own first, so that no reader sees half of it; two writers write the same.
    let unfinished = path.with_extension(run_folder.file_name().unwrap_or_default());
    match fs::write(&unfinished, task).and_then(|()| fs::rename(&unfinished, &path)) {
        Ok(()) => Ok(path),
        Err(error) => {
            // The error to report is that of writing, not one of removing the unfinished file.
            let _ = fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_for_each_task() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let (one, two) = (folder.path().join("run-1"), folder.path().join("run-2"));
        let path = task_file(&one, "count\n").expect("a file");
        assert_eq!(fs::read_to_string(&path).expect("the task"), "count\n");
        assert_eq!(task_file(&two, "count\n").expect("a file"), path);
        assert_ne!(task_file(&two, "count").expect("a file"), path);
        assert_eq!(task_file(&one, "").expect("a file"), Path::new("/dev/null"));
    }
}
