//! Knocking at the door, from inside an agent.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_door::{
    Activities, Activity, CallerWord, Client, ClientError, ErrorCode, List, Registry, RunActivity,
    RunName, Runs, SOCKET_VARIABLE, Supervisor, TICKET_FILE_VARIABLE, TICKET_VARIABLE, Ticket,
    Tree, WireTreeNode, read_ticket, supervisor_above_by_name,
};
use offshoot_model::{GovernedBy, JsonText, RootId, RunId};

use crate::code::FailureCode;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;

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
        Failure::input(
            FailureCode::NoSupervisor,
            "there is no supervisor to ask: OFFSHOOT_SOCKET is not set",
        )
        .hint("this command is for programs that run as an agent; `offshoot run` starts one, and `offshoot events RUN --follow` waits for the end of a tree")
    })
}

/// True if this process may run under a supervisor. Looks at the process alone.
pub(crate) fn may_be_below(cx: &Invocation) -> bool {
    cx.environment.text(SOCKET_VARIABLE).is_some()
        || !registry(cx).above(std::process::id()).is_empty()
        || supervisor_above_by_name().is_some()
        || registry(cx).was_left_by_an_agent()
}

/// The supervisor that this process runs under as an agent, for a command that would open a tree of its own anywhere else. None for
/// a command that the supervisor runs for the operator.
pub(crate) async fn above(cx: &Invocation) -> Result<Option<Client>, Failure> {
    let supervisor = nearest(cx).await?;
    Ok(supervisor.filter(|client| client.welcome().caller == CallerWord::Run))
}

/// Refuses where this process is a command that a supervisor runs for the operator: a tree that it opened would end with it.
pub(crate) fn outside_of_commands(command: &str, cx: &Invocation) -> Result<(), Failure> {
    if !may_be_below(cx) {
        return Ok(());
    }
    let is_command = |client: Client| client.welcome().caller == CallerWord::Operator;
    if !block_on(async { Ok::<_, Failure>(nearest(cx).await?.is_some_and(is_command)) })? {
        return Ok(());
    }
    let message =
        format!("`{command}` opens a tree, and this process is a command that a supervisor runs");
    Err(Failure::new(FailureCode::CommandOfSupervisor, Exit::Refused, message)
        .hint("such a command may look, cancel and pause; open the tree from a terminal"))
}

/// The supervisor that this process runs under, and to which it is known. Its parents tell, whatever its environment, its data
/// folder and its user id say; where they cannot be seen, as in a container, the environment may.
async fn nearest(cx: &Invocation) -> Result<Option<Client>, Failure> {
    let environment = &cx.environment;
    // The nearest one, with each of its sockets.
    let registered = registry(cx).above(std::process::id());
    let process = registered.first().map(|supervisor| supervisor.process);
    let Some(process) = process.or_else(supervisor_above_by_name) else {
        if registry(cx).was_left_by_an_agent() {
            let message =
                "this process was left by an agent, and belongs to no run that could be named";
            return Err(Failure::new(FailureCode::LeftByAgent, Exit::Refused, message)
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
            Failure::new(FailureCode::SupervisorHidden, Exit::Refused, message).hint(belongs)
        }
    })
}

/// Asks the supervisor that this process runs under. None where it runs under none.
pub(crate) fn inside<T>(
    cx: &Invocation,
    ask: impl AsyncFnOnce(Client) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    // Most processes run under none, which can be said without threads.
    if !may_be_below(cx) {
        return Ok(None);
    }
    block_on(async {
        let Some(supervisor) = above(cx).await? else { return Ok(None) };
        ask(supervisor).await.map(Some)
    })
}

/// True if this process runs under a supervisor.
pub(crate) fn is_inside(cx: &Invocation) -> Result<bool, Failure> {
    Ok(inside(cx, async |_| Ok(()))?.is_some())
}

/// Inside an agent the run that it means, which is its own or one below; none outside of any.
pub(crate) fn own(name: &str, cx: &Invocation) -> Result<Option<RunId>, Failure> {
    inside(cx, async |supervisor| {
        let asked = Tree { run: Some(RunName(name.to_owned())), all: true };
        let found = supervisor.call(asked).await?;
        let gone = || {
            Failure::input(
                FailureCode::NotBelow,
                format_args!("there is no run `{name}` below this session"),
            )
            .hint("`offshoot tree` shows what is there")
        };
        found.roots.first().map(|node| node.run_id).ok_or_else(gone)
    })
}

/// The supervisor that holds a run, and the name by which it knows it: inside an agent the one above, which knows
/// better than the caller what it may name; else whichever runs the tree of that run.
pub(crate) async fn reach(name: &str, cx: &Invocation) -> Result<(Client, String), Failure> {
    if let Some(supervisor) = above(cx).await? {
        return Ok((supervisor, name.to_owned()));
    }
    let run = Record::open_to_act(cx, name)?.1.run;
    Ok((supervisor_of(run, cx).await?, RunName::from(run).0))
}

/// The supervisor that runs the tree of a run. Outside of agents alone.
pub(crate) async fn supervisor_of(run: RunId, cx: &Invocation) -> Result<Client, Failure> {
    let known = RunName::from(run);
    let registry = registry(cx);
    let mut unanswered = None;
    for Supervisor { socket, .. } in registry.supervisors() {
        match Client::connect(&socket, &registry, None).await {
            Ok(client) => {
                if client.call(Tree { run: Some(known.clone()), all: true }).await.is_ok() {
                    return Ok(client);
                }
            }
            // A supervisor that ends leaves the registry before it closes its socket: another tree is not held up by that.
            Err(ClientError::Stranger { .. }) if !is_registered(&registry, &socket) => {}
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
    Err(Failure::input(
        FailureCode::SupervisorGone,
        format_args!("no supervisor runs the tree of run {run} any more"),
    )
    .hint(format_args!(
        "where it is not over, `offshoot resume {run}` goes on with it, and `offshoot cancel` of its root ends it; `offshoot show {run}` says which. A map or a fanout that is over goes on with more, such as --budget-usd 12 in all"
    )))
}

/// True if a supervisor with this socket is in the registry now.
fn is_registered(registry: &Registry, socket: &Path) -> bool {
    registry.supervisors().iter().any(|supervisor| supervisor.socket == socket)
}

/// A tree that is not over.
pub(crate) struct LiveTree {
    pub(crate) supervisor: Client,
    pub(crate) root: WireTreeNode,
    /// The data folder; none where the supervisor is of an earlier version.
    pub(crate) folder: Option<PathBuf>,
}

/// The trees that are not over.
#[derive(Default)]
pub(crate) struct LiveTrees {
    pub(crate) trees: Vec<LiveTree>,
    /// True if there is a supervisor besides that has no tree yet.
    pub(crate) later: bool,
    /// The processes of supervisors that do not answer.
    silent: Vec<u32>,
}

impl LiveTrees {
    /// Fails where a supervisor does not answer: what was asked of all trees was not asked of its tree.
    pub(crate) fn all_answered(&self) -> Result<(), Failure> {
        let processes: Vec<_> = self.silent.iter().map(ToString::to_string).collect();
        let who = match &processes[..] {
            [] => return Ok(()),
            [one] => format!("the supervisor with the process {one} does not answer"),
            many => format!("the supervisors with the processes {} do not answer", many.join(", ")),
        };
        let message = format_args!("{who}: its tree was not asked, and goes on");
        Err(Failure::new(FailureCode::SupervisorSilent, Exit::AgentFailed, message).hint(
            "one that is stopped goes on after `kill -CONT PROCESS`; `kill -KILL PROCESS` ends it and its agents, and `offshoot cancel RUN` then ends its tree",
        ))
    }
}

/// All trees of this user that are not over; where a data folder is named, those of that folder. For the operator alone.
pub(crate) async fn live_trees(cx: &Invocation) -> Result<LiveTrees, Failure> {
    let registry = registry(cx);
    let mut live = LiveTrees::default();
    let named = cx.global.data_dir.is_some();
    let record = if named { Record::open(cx)? } else { None };
    let is_wanted = |root: &WireTreeNode| match (named, &record) {
        (false, _) => Ok(true),
        (true, None) => Ok(false),
        (true, Some(record)) => record.has(root.run_id),
    };
    for Supervisor { process, socket, folder, .. } in registry.supervisors() {
        // Its sockets are in a folder of the data folder.
        let folder = folder.and_then(|doors| doors.parent().map(Path::to_owned));
        let client = match Client::connect(&socket, &registry, None).await {
            Ok(client) => client,
            Err(ClientError::Silent { .. }) => {
                let is_elsewhere = named && folder != Some(cx.data_folder());
                live.silent.extend((!is_elsewhere).then_some(process.pid));
                continue;
            }
            // It has just gone.
            Err(_) => continue,
        };
        let Ok(found) = client.call(Tree::default()).await else { continue };
        let is_open = |root: &WireTreeNode| root.status.known().is_none_or(|it| !it.is_terminal());
        live.later |= found.roots.is_empty();
        if let Some(root) = found.roots.into_iter().next().filter(is_open)
            && is_wanted(&root)?
        {
            live.trees.push(LiveTree { supervisor: client, root, folder });
        }
    }
    Ok(live)
}

/// The time for which each run of these trees that holds a slot has been silent; inside an agent, of those that it may see. Of a tree
/// whose supervisor does not answer nothing is known.
pub(crate) async fn silences(
    trees: &[RootId],
    cx: &Invocation,
) -> Result<HashMap<RunId, Duration>, Failure> {
    let registry = registry(cx);
    let mut silences = HashMap::new();
    if trees.is_empty() {
        return Ok(silences);
    }
    if may_be_below(cx)
        && let Some(supervisor) = above(cx).await?
    {
        let Ok(Runs { runs }) = supervisor.call(List { all: true, limit: None }).await else {
            return Ok(silences);
        };
        let silent = |run: WireTreeNode| Some((run.run_id, Duration::from_millis(run.silent_ms?)));
        return Ok(runs.into_iter().filter_map(silent).collect());
    }
    for Supervisor { socket, .. } in registry.supervisors() {
        let Ok(client) = Client::connect(&socket, &registry, None).await else { continue };
        let Ok(Activities { runs }) = client.call(Activity {}).await else { continue };
        let silent = |run: RunActivity| (run.run_id, Duration::from_millis(run.silent_ms));
        silences.extend(runs.into_iter().map(silent));
    }
    Ok(silences)
}

/// Converts the answer of the supervisor into a failure of this command: a refusal is exit 3, a wrong request 2, a plugin that
/// cannot be used 5.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let failure = match &error {
            ClientError::Refused(refusal) => {
                let exit = match refusal.code.as_str() {
                    "invalid_request" => Exit::BadInput,
                    "plugin_unusable" => Exit::NoRuntime,
                    _ => Exit::Refused,
                };
                let mut failure = Self::told(exit, &refusal.message);
                let setting = refusal.governed_by.as_ref().map(JsonText::as_str);
                let setting = setting.and_then(|it| serde_json::from_str::<GovernedBy>(it).ok());
                failure.complaints[0].causes.extend(setting.map(|setting| setting.to_string()));
                Self { json: serde_json::to_value(refusal).ok(), ..failure }
            }
            ClientError::File { .. } => Self::of(Exit::BadInput, &error),
            _ => Self::of(Exit::AgentFailed, &error),
        };
        failure.maybe_hint(error.hint())
    }
}

/// Returns the registry in which the supervisors of this user are written down.
pub(crate) fn registry(cx: &Invocation) -> Registry {
    Registry::of_user(cx.environment.runtime_folder.as_deref())
}

/// The ticket that the environment has, or names.
fn ticket(environment: &Environment) -> Result<Option<Ticket>, Failure> {
    let wrong = |error: &dyn Error| Failure::of(Exit::BadInput, error);
    match (environment.text(TICKET_VARIABLE), environment.text(TICKET_FILE_VARIABLE)) {
        (Some(text), _) => text.parse::<Ticket>().map(Some).map_err(|error| wrong(&error)),
        (None, Some(file)) => read_ticket(Path::new(file)).map(Some).map_err(|error| wrong(&error)),
        (None, None) => Ok(None),
    }
}
