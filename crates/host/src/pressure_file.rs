//! Pressure on the service of an account, of which all trees of a user know.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Account, Timestamp};
use offshoot_runtime::{Pressure, PressureBoard, Runtime};
use offshoot_spawner::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::account_board::file_name;
use crate::account_key::account_key;
use crate::environment::Environment;
use crate::state_file::{self, make_folder};

/// The name of the folder below that of the user's programs.
const FOLDER: &str = "offshoot/pressure";

/// The longest time for which another tree is believed: a clock that was set wrong stops nothing for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// The file of one account. It is written aside and renamed, so that it is whole or not there; one that cannot be read says nothing.
#[derive(Debug)]
struct PressureFile {
    path: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Written {
    until: Timestamp,
}

/// Returns the pressure of the account of a runtime: shared where the user has a folder for the state of programs.
pub(crate) fn shared_pressure(runtime: &dyn Runtime, environment: &Environment) -> Pressure {
    let state_home = environment.state_home.as_deref();
    let Some(home) = state_home else { return Pressure::default() };
    let account = match (account_key(state_home), runtime.credential()) {
        (Some(key), Some(credential)) => {
            Account::of_credential(runtime.name(), &key, credential.bytes())
        }
        _ => Account::of_runtime(runtime.name()),
    };
    Pressure::shared(Arc::new(PressureFile { path: home.join(FOLDER).join(file_name(&account)) }))
}

impl PressureFile {
    fn until(&self) -> Option<Timestamp> {
        let Written { until } = state_file::read(&self.path)?;
        Some(until)
    }

    fn write(&self, until: Timestamp) -> io::Result<()> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        make_folder(folder)?;
        state_file::write(&self.path, &Written { until })
    }
}

impl PressureBoard for PressureFile {
    fn tell(&self, after: Duration) {
        let until = SystemClock.now().plus(after.min(LONGEST));
        if self.until().is_some_and(|told| told >= until) {
            return;
        }
        if let Err(error) = self.write(until) {
            tracing::debug!(%error, "other trees cannot be told of pressure");
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = self.until()?.since(SystemClock.now());
        Some(left).filter(|left| !left.is_zero() && *left <= LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn trees_of_one_account_hear_of_each_other() {
        let home = tempfile::tempdir().expect("a folder");
        let of = |name: &str| PressureFile { path: home.path().join(FOLDER).join(name) };
        let [one, same, other] = ["a", "a", "b"].map(of);
        assert_eq!(one.left(), None);
        one.tell(Duration::from_secs(60));
        let left = same.left().expect("it was told");
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
        assert_eq!(other.left(), None);
        // A shorter time does not end a longer one, and no time is believed that is too long.
        same.tell(Duration::from_secs(1));
        assert!(one.left() > Some(Duration::from_secs(50)));
        other.write(SystemClock.now().plus(LONGEST * 2)).expect("it is written");
        assert_eq!(other.left(), None);
        fs::write(&one.path, "no JSON").expect("it is written");
        assert_eq!(same.left(), None);
    }
}
