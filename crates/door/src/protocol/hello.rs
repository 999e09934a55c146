//! The first words of a connection.

use offshoot_model::RunId;
use serde::{Deserialize, Serialize};

use super::CallerWord;
use crate::Ticket;

/// The version of the protocol that is spoken here. Raised when an old client would misunderstand an answer; new
/// methods and new fields are features instead.
pub const PROTOCOL: u32 = 1;

/// The features of a server of this version, besides answering: notifications of a request's progress, and cancelling one.
pub const FEATURES: &[&str] = &["progress", "cancel_request"];

/// `hello`, the first request of every connection.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The highest version that the client speaks.
    pub protocol: u32,
    /// The client's ticket. Absent: who is calling follows from its process alone.
    ticket: Option<TicketText>,
    /// Name and version of the client, for people.
    pub client: Option<String>,
    /// The features of the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The version that is spoken from here on: the highest that both sides know.
    pub protocol: u32,
    /// The features of the server.
    #[serde(default)]
    pub features: Vec<String>,
    /// Name and version of the server, for people.
    #[serde(default)]
    pub server: String,
    /// As whom the client was recognised.
    pub caller: CallerWord,
    /// The run, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The longest line that the server reads.
    pub max_message_bytes: u64,
}

/// A ticket on its way, which may be none.
#[derive(Clone, Serialize, Deserialize, derive_more::Debug)]
#[debug("[redacted]")]
#[serde(transparent)]
struct TicketText(String);

impl Hello {
    /// The greeting of a client of this version.
    pub fn new(ticket: Option<&Ticket>) -> Self {
        Self {
            protocol: PROTOCOL,
            ticket: ticket.map(|ticket| TicketText(ticket.expose())),
            client: Some(concat!("offshoot-door ", env!("CARGO_PKG_VERSION")).to_owned()),
            features: FEATURES.iter().copied().map(str::to_owned).collect(),
        }
    }

    /// The ticket; `Err` for a text that cannot be one.
    pub(crate) fn ticket(&self) -> Option<Result<Ticket, crate::ParseTicketError>> {
        self.ticket.as_ref().map(|text| text.0.parse())
    }
}
