//! Knocking at the door, from inside an agent.

use std::path::Path;

use offshoot_door::{
    Client, ClientError, SOCKET_VARIABLE, TICKET_FILE_VARIABLE, TICKET_VARIABLE, Ticket,
    read_ticket,
};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Connects to the supervisor that this process runs under.
pub(crate) async fn visit(cx: &Invocation) -> Result<Client, Failure> {
    let environment = &cx.environment;
    let socket = environment.text(SOCKET_VARIABLE).ok_or_else(|| {
        Failure::input("there is no supervisor to ask: OFFSHOOT_SOCKET is not set")
            .hint("this command is for programs that run as an agent; `offshoot run` starts one")
    })?;
    let ticket = match (environment.text(TICKET_VARIABLE), environment.text(TICKET_FILE_VARIABLE)) {
        (Some(text), _) => {
            let parsed: Result<Ticket, _> = text.parse();
            Some(parsed.map_err(|error| Failure::of(Exit::BadInput, &error))?)
        }
        (None, Some(file)) => {
            let read = read_ticket(Path::new(file));
            Some(read.map_err(|error| Failure::of(Exit::BadInput, &error))?)
        }
        (None, None) => None,
    };
    Client::connect(Path::new(socket), ticket.as_ref()).await.map_err(|error| refused(&error))
}

/// What the supervisor said, as a failure of this command: a refusal is exit 3, a wrong request 2.
pub(crate) fn refused(error: &ClientError) -> Failure {
    let exit = match error {
        ClientError::Refused(refusal) if refusal.code == "invalid_request" => Exit::BadInput,
        ClientError::Refused(_) => Exit::Refused,
        _ => Exit::AgentFailed,
    };
    let mut failure = match error {
        ClientError::Refused(refusal) => Failure::new(exit, &refusal.message),
        other => Failure::of(exit, other),
    };
    if let ClientError::Refused(refusal) = error {
        failure.json = serde_json::to_value(refusal).ok();
    }
    failure.maybe_hint(error.hint())
}
