//! Knocking at the door, from inside an agent.

use std::path::Path;

use offshoot_door::{
    CallerWord, Client, ClientError, Registry, RunName, SOCKET_VARIABLE, Supervisor,
    TICKET_FILE_VARIABLE, TICKET_VARIABLE, Ticket, Tree, read_ticket,
};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Connects to the supervisor that this process runs under: the one that its environment names, else the one that its
/// parents have.
pub(crate) async fn visit(cx: &Invocation) -> Result<Client, Failure> {
    let environment = &cx.environment;
    if let Some(socket) = environment.text(SOCKET_VARIABLE) {
        let ticket = ticket(environment)?;
        let client = Client::connect(Path::new(socket), ticket.as_ref()).await;
        return client.map_err(|error| refused(&error));
    }
    above(cx).await?.ok_or_else(|| {
        Failure::input("there is no supervisor to ask: OFFSHOOT_SOCKET is not set")
            .hint("this command is for programs that run as an agent; `offshoot run` starts one")
    })
}

/// Whether this process may run under a supervisor. Looks, and asks nobody.
pub(crate) fn may_be_below(cx: &Invocation) -> bool {
    cx.environment.text(SOCKET_VARIABLE).is_some() || !supervisors(cx).is_empty()
}

/// The supervisor that this process runs under, for a command that would open a tree of its own anywhere else. Its
/// parents tell, whatever its environment and its data folder say; where they cannot be seen, as in a container, the
/// environment may.
pub(crate) async fn above(cx: &Invocation) -> Result<Option<Client>, Failure> {
    let environment = &cx.environment;
    if let Some(Supervisor { process, socket }) = supervisors(cx).into_iter().next() {
        let ticket = ticket(environment)?;
        let client = Client::connect(&socket, ticket.as_ref()).await;
        return client.map(Some).map_err(|error| match &error {
            ClientError::Refused(_) => refused(&error),
            other => Failure::of(Exit::Refused, other).hint(format_args!(
                "what an agent starts belongs to the tree of its supervisor, process {}",
                process.pid
            )),
        });
    }
    let Some(socket) = environment.text(SOCKET_VARIABLE) else { return Ok(None) };
    let ticket = ticket(environment)?;
    match Client::connect(Path::new(socket), ticket.as_ref()).await {
        Ok(client) => Ok(Some(client).filter(|client| client.welcome().caller == CallerWord::Run)),
        Err(error @ ClientError::Refused(_)) => Err(refused(&error)),
        // A variable that outlived its supervisor.
        Err(_) => Ok(None),
    }
}

/// The supervisor that holds a run, and the name by which it knows it: inside an agent the one above, which knows
/// better than the caller what it may name; else whichever runs the tree of that run.
pub(crate) async fn reach(name: &str, cx: &Invocation) -> Result<(Client, String), Failure> {
    if let Some(supervisor) = above(cx).await? {
        return Ok((supervisor, name.to_owned()));
    }
    let run = Record::open_for(cx, name)?.find(name)?.run;
    let known = RunName::from(run);
    let registry = Registry::of_user(cx.environment.runtime_folder.as_deref());
    for Supervisor { socket, .. } in registry.supervisors() {
        // One that has just gone, or is somebody else's affair.
        let Ok(client) = Client::connect(&socket, None).await else { continue };
        if client.call(Tree { run: Some(known.clone()), all: true }).await.is_ok() {
            return Ok((client, known.0));
        }
    }
    Err(Failure::input(format_args!("nobody runs the tree of run {run} any more"))
        .hint("`offshoot show` tells how it ended"))
}

/// What the supervisor said, as a failure of this command: a refusal is exit 3, a wrong request 2, a plugin
/// that cannot be used 5.
pub(crate) fn refused(error: &ClientError) -> Failure {
    let exit = match error {
        ClientError::Refused(refusal) => match refusal.code.as_str() {
            "invalid_request" => Exit::BadInput,
            "plugin_unusable" => Exit::NoRuntime,
            _ => Exit::Refused,
        },
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

/// The nearest supervisor above, with each of its sockets, by the registry of this user.
fn supervisors(cx: &Invocation) -> Vec<Supervisor> {
    Registry::of_user(cx.environment.runtime_folder.as_deref()).above(std::process::id())
}

/// The ticket that the environment has, or names.
fn ticket(environment: &Environment) -> Result<Option<Ticket>, Failure> {
    match (environment.text(TICKET_VARIABLE), environment.text(TICKET_FILE_VARIABLE)) {
        (Some(text), _) => {
            let parsed: Result<Ticket, _> = text.parse();
            parsed.map(Some).map_err(|error| Failure::of(Exit::BadInput, &error))
        }
        (None, Some(file)) => {
            let read = read_ticket(Path::new(file));
            read.map(Some).map_err(|error| Failure::of(Exit::BadInput, &error))
        }
        (None, None) => Ok(None),
    }
}
