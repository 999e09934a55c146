//! The pass with which a running agent asks its supervisor.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The way to the supervisor, and the proof of which run comes that way. It belongs into the environment of the run or
/// into a file that only its user can read: never into an argument, a log or the record.
#[derive(Clone, PartialEq, Eq)]
pub struct Pass {
    /// The socket.
    pub socket: Arc<PathBuf>,
    /// The ticket, as text.
    pub ticket: Arc<str>,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("socket", &self.socket).field("ticket", &"[redacted]").finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_not_shown() {
        let pass = Pass { socket: Arc::new("/s".into()), ticket: "0123".into() };
        assert_eq!(format!("{pass:?}"), r#"Pass { socket: "/s", ticket: "[redacted]" }"#);
    }
}
