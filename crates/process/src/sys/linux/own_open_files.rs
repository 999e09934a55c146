//! The limit of open files: raised for this process, and as it was for its children.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, prlimit, setrlimit};

use super::ProcessId;

/// A limit of open files, soft and hard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFiles(Rlimit);

/// The limit before this process raised its own. It is raised once, however often that is asked for.
static BEFORE: OnceLock<OpenFiles> = OnceLock::new();

impl OpenFiles {
    /// Returns the limit of this process.
    pub(crate) fn now() -> Self {
        Self(getrlimit(Resource::Nofile))
    }

    /// Raises the soft limit of this process to its hard limit, where it is lower, and answers what holds then.
    pub(crate) fn raise() -> Self {
        let now = Self::now();
        if now.0.current != now.0.maximum {
            let raised = Rlimit { current: now.0.maximum, ..now.0 };
            BEFORE.get_or_init(|| now);
            // Where it is not allowed, the limit stays as it is, which is what is answered then.
            let _ = setrlimit(Resource::Nofile, raised);
        }
        Self::now()
    }

    /// The limit from before, where it has been raised.
    pub(crate) fn before() -> Option<Self> {
        BEFORE.get().copied()
    }

    /// Returns the number of further files that this process may open.
    pub(crate) fn left(self) -> u64 {
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
        self.0.current.unwrap_or(u64::MAX).saturating_sub(open)
    }
}

impl ProcessId {
    /// Sets the limit of a child of ours, which runs by then: where it looks at its limit in the first moment of all, it
    /// may still see ours.
    pub(crate) fn limit_open_files(self, limit: OpenFiles) {
        // One that is gone needs none.
        let _ = prlimit(Some(self.0), Resource::Nofile, limit.0);
    }
}
