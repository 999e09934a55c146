//! Knocking at the door, from inside an agent.

use std::path::{Path, PathBuf};

use offshoot_door::{
    CallerWord, Client, ClientError, ErrorCode, Registry, RunName, SOCKET_VARIABLE, Supervisor,
    TICKET_FILE_VARIABLE, TICKET_VARIABLE, Ticket, Tree, read_ticket, supervisor_above_by_name,
};
use offshoot_model::RunId;

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
        let client = Client::connect(Path::new(socket), &registry(cx), ticket.as_ref()).await;
        return client.map_err(Failure::from);
    }
    above(cx).await?.ok_or_else(|| {
        Failure::input("there is no supervisor to ask: OFFSHOOT_SOCKET is not set")
            .hint("this command is for programs that run as an agent; `offshoot run` starts one")
    })
}

/// True if this process may run under a supervisor. Looks at the process alone.
pub(crate) fn may_be_below(cx: &Invocation) -> bool {
    cx.environment.text(SOCKET_VARIABLE).is_some()
        || !supervisors(cx).is_empty()
        || supervisor_above_by_name().is_some()
        || registry(cx).was_left_by_an_agent()
}

/// The supervisor that this process runs under, for a command that would open a tree of its own anywhere else. Its
/// parents tell, whatever its environment, its data folder and its user id say; where they cannot be seen, as in a container,
/// the environment may.
pub(crate) async fn above(cx: &Invocation) -> Result<Option<Client>, Failure> {
    let environment = &cx.environment;
    let registered = supervisors(cx);
    let process = registered.first().map(|supervisor| supervisor.process);
    let Some(process) = process.or_else(supervisor_above_by_name) else {
        if registry(cx).was_left_by_an_agent() {
            let message =
                "this process was left by an agent, and belongs to no run that could be named";
            return Err(Failure::new(Exit::Refused, message)
                .hint("run it from a terminal that no agent has started"));
        }
        let Some(socket) = environment.text(SOCKET_VARIABLE) else { return Ok(None) };
        let ticket = ticket(environment)?;
        return match Client::connect(Path::new(socket), &registry(cx), ticket.as_ref()).await {
            Ok(client) => {
                Ok(Some(client).filter(|client| client.welcome().caller == CallerWord::Run))
            }
            Err(error @ (ClientError::Refused(_) | ClientError::Stranger { .. })) => {
                Err(error.into())
            }
            // A variable that outlived its supervisor.
            Err(_) => Ok(None),
        };
    };
    let belongs = format_args!(
        "what an agent starts belongs to the tree of its supervisor, process {}",
        process.pid
    )
    .to_string();
    let named = environment.text(SOCKET_VARIABLE).map(PathBuf::from);
    // A program may hold several trees, each with a socket of its own. A process is known at that of its tree alone.
    let mut sockets: Vec<PathBuf> = registered.into_iter().map(|it| it.socket).collect();
    sockets.sort_by_key(|socket| Some(socket) != named.as_ref());
    if sockets.is_empty() {
        sockets.extend(named);
    }
    let (ticket, registry) = (ticket(environment)?, registry(cx));
    let mut first = None;
    for socket in sockets {
        // A tree beside this one may be over by now, so that its socket is gone: the next socket may be the right one.
        match Client::connect(&socket, &registry, ticket.as_ref()).await {
            Ok(client) => return Ok(Some(client)),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(match first {
        Some(error @ ClientError::Refused(_)) => error.into(),
        Some(error) => Failure::of(Exit::Refused, &error).hint(belongs),
        None => {
            let message = "the supervisor of this process cannot be found with this user id";
            Failure::new(Exit::Refused, message).hint(belongs)
        }
    })
}

/// Inside an agent the run that it means, which is its own or one below; none outside of any.
pub(crate) async fn own(name: &str, cx: &Invocation) -> Result<Option<RunId>, Failure> {
    let Some(supervisor) = above(cx).await? else { return Ok(None) };
    let asked = Tree { run: Some(RunName(name.to_owned())), all: true };
    let found = supervisor.call(asked).await?;
    let run = found.roots.first().map(|node| node.run_id);
    let gone = || Failure::input(format_args!("there is no run `{name}` below this session"));
    run.ok_or_else(gone).map(Some)
}

/// Refuses inside an agent what is the operator's to do.
pub(crate) async fn for_the_operator(command: &str, cx: &Invocation) -> Result<(), Failure> {
    if above(cx).await?.is_none() {
        return Ok(());
    }
    let message = format!("`{command}` is for the operator, and this process runs inside an agent");
    Err(Failure::new(Exit::Refused, message)
        .hint("run it from a terminal that no agent has started"))
}

/// The supervisor that holds a run, and the name by which it knows it: inside an agent the one above, which knows
/// better than the caller what it may name; else whichever runs the tree of that run.
pub(crate) async fn reach(name: &str, cx: &Invocation) -> Result<(Client, String), Failure> {
    if let Some(supervisor) = above(cx).await? {
        return Ok((supervisor, name.to_owned()));
    }
    let run = Record::open_for(cx, name)?.find(name)?.run;
    let known = RunName::from(run);
    let registry = registry(cx);
    let mut unanswered = None;
    for Supervisor { socket, .. } in registry.supervisors() {
        match Client::connect(&socket, &registry, None).await {
            Ok(client) => {
                if client.call(Tree { run: Some(known.clone()), all: true }).await.is_ok() {
                    return Ok((client, known.0));
                }
            }
            // This supervisor may be the one that is meant.
            Err(
                error @ (ClientError::Stranger { .. }
                | ClientError::Silent { .. }
                | ClientError::Failed { code: ErrorCode::TooMany, .. }),
            ) => unanswered = Some(error),
            // A supervisor that has just gone, or that is not for this caller.
            Err(_) => {}
        }
    }
    if let Some(error) = unanswered {
        return Err(error.into());
    }
    Err(Failure::input(format_args!("no supervisor runs the tree of run {run} any more"))
        .hint("`offshoot show` tells how it ended"))
}

/// Converts the answer of the supervisor into a failure of this command: a refusal is exit 3, a wrong request 2, a plugin that
/// cannot be used 5.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let exit = match &error {
            ClientError::Refused(refusal) => match refusal.code.as_str() {
                "invalid_request" => Exit::BadInput,
                "plugin_unusable" => Exit::NoRuntime,
                _ => Exit::Refused,
            },
            ClientError::File { .. } => Exit::BadInput,
            _ => Exit::AgentFailed,
        };
        let mut failure = match &error {
            ClientError::Refused(refusal) => Failure::new(exit, &refusal.message),
            other => Failure::of(exit, other),
        };
        if let ClientError::Refused(refusal) = &error {
            failure.json = serde_json::to_value(refusal).ok();
        }
        failure.maybe_hint(error.hint())
    }
}

/// The nearest supervisor above, with each of its sockets, by the registry of this user.
fn supervisors(cx: &Invocation) -> Vec<Supervisor> {
    registry(cx).above(std::process::id())
}

/// Returns the registry in which the supervisors of this user are written down.
fn registry(cx: &Invocation) -> Registry {
    Registry::of_user(cx.environment.runtime_folder.as_deref())
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
