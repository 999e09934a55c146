//! Programs that a plugin starts, known to its host.

use std::io;
use std::sync::Arc;

use offshoot_model::ProcessIdentity;
use offshoot_plugin_abi::wire::group::{self, Change};
use offshoot_plugin_abi::wire::orphans::{self, Orphans};
use offshoot_plugin_abi::wire::{NOTHING, op};
use offshoot_process::{Adopted, Identity, Options, ProcessRegistrar, Processes};

use crate::{Error, PluginHost, Setup};

impl Setup {
    /// The starter of programs here. Each is told to the host, which ends it if the host is killed, and takes none for an
    /// orphan of its own.
    ///
    /// # Errors
    /// Fails if the system does not allow it.
    pub fn processes(&self) -> Result<Processes, Error> {
        let registrar: Arc<dyn ProcessRegistrar> = Arc::new(self.host.clone());
        let options = Options { registrar: Some(registrar), ..Options::default() };
        Processes::start(options).map_err(|error| Error::because(&error))
    }
}

impl PluginHost {
    fn tell(&self, change: Change) -> Result<Option<String>, Error> {
        let answer = self.call(op::GROUP, &group::encode(change))?;
        Ok(group::decode_answer(&answer)?)
    }
}

/// A host that knows no groups is one that ends them in no other way either: there a plugin's programs are its own.
impl ProcessRegistrar for PluginHost {
    fn starting(&self) -> Option<String> {
        self.tell(Change::Starting).ok().flatten()
    }

    fn not_started(&self) {
        // Nothing depends on it but how often the host looks for orphans.
        let _ = self.tell(Change::NotStarted);
    }

    fn started(&self, leader: Identity) -> io::Result<()> {
        match self.tell(Change::Started(named(leader))) {
            Err(error) if !error.is_unsupported() => Err(io::Error::other(error)),
            _ => Ok(()),
        }
    }

    fn ended(&self, leader: Identity) {
        // It is over, whether or not the host hears of it.
        let _ = self.tell(Change::Ended(named(leader)));
    }

    fn orphans(&self) -> Option<Adopted> {
        let answer = self.call(op::ORPHANS, NOTHING).ok()?;
        let Orphans { pids, quiet } = orphans::decode_answer(&answer).ok()??;
        Some(Adopted { pids, quiet })
    }
}

fn named(leader: Identity) -> ProcessIdentity {
    ProcessIdentity::new(leader.pid, leader.start_time)
}
