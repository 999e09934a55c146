//! The pass with which a running agent asks its supervisor.

use std::path::PathBuf;
use std::sync::Arc;

/// The way to the supervisor, and the proof of which run comes that way. It belongs into the environment of the run or
/// into a file that only its user can read: never into an argument, a log or the record.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub struct Pass {
    /// The socket.
    pub socket: Arc<PathBuf>,
    /// The ticket, as text.
    #[debug("\"[redacted]\"")]
    pub ticket: Arc<str>,
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
