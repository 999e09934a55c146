//! The key by which credentials become fingerprints: one for each user, so that all trees of a user know the same accounts.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::state_file::make_folder;

/// The name of the file in the folder of the user's programs.
const FILE: &str = "offshoot/account-key";

/// Returns the key, which is made with the first tree. None where it can be neither read nor made: then the accounts of one runtime
/// are not told apart.
pub(crate) fn account_key(state_home: Option<&Path>) -> Option<[u8; 32]> {
    let path = state_home?.join(FILE);
    let found = read(&path).or_else(|_| make(&path));
    found
        .inspect_err(|error| tracing::debug!(%error, "no key for the fingerprints of accounts"))
        .ok()
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    let bytes = fs::read(path)?;
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "the key has not 32 bytes");
    bytes.try_into().map_err(wrong)
}

/// Makes the key. Where another process was faster, its key is the one.
fn make(path: &Path) -> io::Result<[u8; 32]> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_folder(folder)?;
    let mut key = [0; 32];
    let mut filled = 0;
    while filled < key.len() {
        let rest = &mut key[filled..];
        filled += rustix::io::retry_on_intr(|| {
            rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())
        })?;
    }
    // Closed to others from the beginning.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(_) => read(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_stays_the_same_and_is_closed_to_others() {
        let home = tempfile::tempdir().expect("a folder");
        let first = account_key(Some(home.path())).expect("a key");
        assert_eq!(account_key(Some(home.path())), Some(first));
        let file = fs::metadata(home.path().join(FILE)).expect("the file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(account_key(Some(other.path())), Some(first));
    }

    #[test]
    fn without_a_place_or_with_a_damaged_file_there_is_none() {
        assert_eq!(account_key(None), None);
        let home = tempfile::tempdir().expect("a folder");
        fs::create_dir(home.path().join("offshoot")).expect("a folder");
        fs::write(home.path().join(FILE), "short").expect("a file");
        assert_eq!(account_key(Some(home.path())), None);
    }
}
