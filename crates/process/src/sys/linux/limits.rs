//! Limits of a process that was just started.

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use super::ProcessId;
use crate::limits::Limits;

impl ProcessId {
    /// Sets these limits, where they are lower than those that it has. One that is gone needs none.
    pub(crate) fn limit(self, limits: Limits) {
        let Limits { memory_bytes, open_files, cpu_seconds } = limits;
        // The hard limit of CPU time kills: a second after the signal that may be caught.
        self.lower(Resource::As, memory_bytes, memory_bytes);
        self.lower(Resource::Nofile, open_files, open_files);
        self.lower(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1));
    }

    fn lower(self, resource: Resource, soft: u64, hard: u64) {
        if soft == 0 {
            return;
        }
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        let _ = prlimit(Some(self.0), resource, limit);
    }
}
