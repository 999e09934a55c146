//! The names by which an agent finds the door. Their values are read and set by others.

/// The variable with the path of the supervisor's socket, which is short enough for every client.
pub const SOCKET_VARIABLE: &str = "OFFSHOOT_SOCKET";

/// The agent's ticket.
pub const TICKET_VARIABLE: &str = "OFFSHOOT_TICKET";

/// A file with the ticket, where the environment would show it to others.
pub const TICKET_FILE_VARIABLE: &str = "OFFSHOOT_TICKET_FILE";
