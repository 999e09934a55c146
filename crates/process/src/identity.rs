//! The identity of a process, so that a reused number is not mistaken for it.

/// A process: its number and when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The number, which is also the number of the group that it leads.
    pub pid: u32,
    /// Clock ticks since boot: field 22 of `/proc/{pid}/stat`.
    pub start_time: u64,
}
