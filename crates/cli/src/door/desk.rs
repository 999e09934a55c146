//! Answers what running agents ask, in the words of the door.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_door::{
    CallError, Caller, CallerKind, CallerWord, Cancel, ContextGet, ContextInfo, ContextPut,
    ContextRead, Done, List, Outcome, ProgressSink, Request, Response, RunName, RunNode, Runs,
    Service, Spawn, Spawned, Standing, Trees, Value, Variable, Variables, Wait, Waited,
};
use offshoot_model::{
    ContextEntry, Payload, Refusal, RefusalCode, RunId, SpawnRequest, Tree, ValueKind, VariableRef,
};
use offshoot_runtime::{WaitFor, WaitMode};
use offshoot_spawner::{Agents, ChildRequest};
use offshoot_store::{NewValue, StoreError};

/// A value up to this size is read in one answer; a larger one is named by its file.
const INLINE_BYTES: u64 = 64 * 1024;

/// The engine, as the door knows it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    agents: Agents,
    /// What each session has put, by its own names.
    variables: Arc<Mutex<HashMap<RunId, Names>>>,
}

type Names = BTreeMap<String, VariableRef>;

impl Desk {
    /// Answers for this tree.
    pub(crate) fn new(agents: Agents) -> Self {
        Self { agents, variables: Arc::default() }
    }
}

impl Service for Desk {
    fn call(
        &self,
        caller: &Caller,
        request: Request,
        _progress: ProgressSink,
    ) -> BoxFuture<'static, Result<Response, CallError>> {
        let (desk, kind) = (self.clone(), caller.kind);
        async move { desk.answer(kind, request).await }.boxed()
    }
}

impl Desk {
    async fn answer(&self, caller: CallerKind, request: Request) -> Result<Response, CallError> {
        Ok(match request {
            Request::Spawn(spawn) => {
                Response::Spawned(Box::new(self.spawn(run(caller)?, *spawn).await?))
            }
            Request::Wait(wait) => {
                Response::Waited(Box::new(self.wait(run(caller)?, *wait).await?))
            }
            Request::Report(report) => {
                self.agents.report(run(caller)?, &report.text).await?;
                Response::Reported(Box::new(Done {}))
            }
            Request::Cancel(cancel) => {
                self.cancel(run(caller)?, *cancel).await?;
                Response::Cancelled(Box::new(Done {}))
            }
            Request::Tree(asked) => {
                let tree = self.tree().await?;
                let top: Vec<RunId> = match (&asked.run, caller) {
                    (Some(name), _) => vec![named(&tree, caller, name)?],
                    (None, CallerKind::Run(run)) => vec![run],
                    (None, CallerKind::Operator) => tree.roots().map(|root| root.run).collect(),
                };
                let nodes = top.into_iter().filter_map(|run| tree.get(run));
                let roots = nodes.map(|node| RunNode::from(&tree.view(node))).collect();
                Response::Tree(Box::new(Trees { roots }))
            }
            Request::List(list) => Response::List(Box::new(self.list(caller, *list).await?)),
            Request::Status(_) => Response::Status(Box::new(self.standing(run(caller)?).await?)),
            Request::ContextPut(put) => {
                Response::ContextPut(Box::new(self.put(run(caller)?, *put).await?))
            }
            Request::ContextGet(get) => {
                Response::ContextGet(Box::new(self.get(run(caller)?, *get).await?))
            }
            Request::ContextInfo(info) => {
                Response::ContextInfo(Box::new(self.info(run(caller)?, *info)?))
            }
            other @ (Request::SpawnMany(_)
            | Request::Send(_)
            | Request::History(_)
            | Request::Merge(_)) => {
                let message = format!("this supervisor does not answer `{}`", other.method());
                return Err(CallError::failed(message));
            }
        })
    }

    async fn spawn(&self, caller: RunId, spawn: Spawn) -> Result<Spawned, CallError> {
        let Spawn { task, agent, label, context, command, cwd, .. } = spawn;
        let context = context
            .into_iter()
            .map(|grant| {
                let from = grant.from.as_ref().unwrap_or(&grant.name);
                let value = self.variable(caller, from)?;
                Ok(ContextEntry { name: grant.name.into(), value })
            })
            .collect::<Result<Vec<_>, CallError>>()?;
        let request = SpawnRequest {
            task: task.into(),
            agent,
            label: label.map(Into::into),
            context,
            command: command.map(Into::into),
            model: spawn.model,
            thinking: spawn.thinking,
            run_timeout_seconds: spawn.run_timeout_seconds,
            tools: spawn.tools,
            budget: spawn.budget,
            no_queue: spawn.queue == Some(false),
        };
        let folder = cwd.map(PathBuf::from);
        if folder.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(Refusal::invalid("cwd", "the folder is not absolute").into());
        }
        let accepted = self.agents.spawn(caller, ChildRequest { request, folder }).await?;
        Ok(Spawned { run_id: accepted.run, session_key: accepted.key })
    }

    async fn wait(&self, caller: RunId, wait: Wait) -> Result<Waited, CallError> {
        let Wait { runs, mode, timeout_ms, merge } = wait;
        if merge.is_some() {
            return Err(
                Refusal::invalid("merge", "this supervisor merges no answer of a wait").into()
            );
        }
        let mut targets = Vec::with_capacity(runs.len());
        let mut tree = None;
        for name in &runs {
            if let Ok(run) = RunId::from_str(&name.0) {
                // Without the whole tree, as most waits name what was spawned just now.
                if !self.is_below(caller, run)? {
                    return Err(not_below(name));
                }
                targets.push(run);
                continue;
            }
            if tree.is_none() {
                tree = Some(self.tree().await?);
            }
            let tree = tree.as_ref().expect("it was read just now");
            targets.push(named(tree, CallerKind::Run(caller), name)?);
        }
        let mode = match mode.unwrap_or_default() {
            offshoot_door::WaitMode::All => WaitMode::All,
            offshoot_door::WaitMode::Any => WaitMode::Any,
        };
        let timeout = timeout_ms.map(Duration::from_millis);
        let answer = self.agents.wait(caller, WaitFor { runs: targets, mode, timeout }).await?;
        let ended = answer.ended.iter().map(Outcome::from).collect();
        Ok(Waited { ended, pending: answer.pending, merged: None })
    }

    async fn cancel(&self, caller: RunId, cancel: Cancel) -> Result<(), CallError> {
        let tree = self.tree().await?;
        let run = named(&tree, CallerKind::Run(caller), &cancel.run)?;
        Ok(self.agents.cancel(caller, run, cancel.only).await?)
    }

    async fn list(&self, caller: CallerKind, list: List) -> Result<Runs, CallError> {
        let tree = self.tree().await?;
        let mut runs: Vec<RunNode> = tree
            .nodes()
            .filter(|node| may_see(&tree, caller, node.run))
            .map(|node| RunNode { children: Vec::new(), ..RunNode::from(&tree.view(node)) })
            .collect();
        if let Some(limit) = list.limit {
            let first = runs.len().saturating_sub(limit as usize);
            runs.drain(..first);
        }
        Ok(Runs { runs })
    }

    async fn standing(&self, caller: RunId) -> Result<Standing, CallError> {
        let asking = self.agents.session(caller).await?;
        Ok(Standing {
            caller: CallerWord::Run,
            run_id: Some(caller),
            session_key: Some(asking.key),
            agent: Some(asking.agent),
            depth: asking.depth,
            max_depth: asking.grant.max_depth,
            may_spawn: asking.grant.may_spawn,
            budget: None,
            tools: Some(asking.grant.tools.clone()),
            agents: Vec::new(),
        })
    }

    async fn put(&self, caller: RunId, put: ContextPut) -> Result<Variable, CallError> {
        let ContextPut { name, value, kind: _ } = put;
        let new = match value {
            Value::Text(text) => NewValue::bytes(ValueKind::Text, text.into_bytes()),
            Value::Json(json) => NewValue::bytes(ValueKind::Json, json.as_str().as_bytes()),
            Value::Path(path) => NewValue::file(ValueKind::Text, path),
            Value::Base64(_) => {
                let message = "bytes come as the path of a file here";
                return Err(Refusal::invalid("value", message).into());
            }
        };
        let value = self.agents.store().put(new).await.map_err(|error| failed(&error))?;
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        variables.entry(caller).or_default().insert(name.clone(), value);
        drop(variables);
        self.describe(name, &value)
    }

    async fn get(&self, caller: RunId, get: ContextGet) -> Result<ContextRead, CallError> {
        let ContextGet { name, offset, length, .. } = get;
        let reference = self.variable(caller, &name)?;
        let variable = self.describe(name, &reference)?;
        let whole =
            offset.unwrap_or(0) == 0 && length.is_none_or(|length| length >= reference.size);
        let path = variable.path.clone().unwrap_or_default();
        if !whole || reference.size > INLINE_BYTES || reference.kind == ValueKind::Bytes {
            return Ok(ContextRead { variable, value: Value::Path(path), more: false, next: None });
        }
        let store = Arc::clone(self.agents.store());
        let read = move || store.read(&reference);
        let bytes = tokio::task::spawn_blocking(read).await.expect("reading does not panic");
        let text = String::from_utf8(bytes.map_err(|error| failed(&error))?);
        let value = text.map_or(Value::Path(path), Value::Text);
        Ok(ContextRead { variable, value, more: false, next: None })
    }

    fn info(&self, caller: RunId, info: ContextInfo) -> Result<Variables, CallError> {
        let names: Names = match info.name {
            Some(name) => {
                let value = self.variable(caller, &name)?;
                Names::from([(name, value)])
            }
            None => {
                let variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
                variables.get(&caller).cloned().unwrap_or_default()
            }
        };
        let describe = |(name, value)| self.describe(name, &value);
        Ok(Variables { variables: names.into_iter().map(describe).collect::<Result<_, _>>()? })
    }

    /// A value by the name that the caller has for it: one that it put, or `sub-result-{run}` of a run below it.
    fn variable(&self, caller: RunId, name: &str) -> Result<VariableRef, CallError> {
        let variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = variables.get(&caller).and_then(|names| names.get(name)) {
            return Ok(*value);
        }
        drop(variables);
        let result = name.strip_prefix("sub-result-").and_then(|run| RunId::from_str(run).ok());
        if let Some(run) = result
            && self.agents.subtree(caller).map_err(|error| failed(&error))?.contains(&run)
        {
            let ending = self.agents.store().ending(run).map_err(|error| failed(&error))?;
            if let Some(Payload::Stored(value)) = ending.and_then(|ending| ending.output) {
                return Ok(value);
            }
        }
        Err(Refusal::invalid("context", format!("there is no variable `{name}`")).into())
    }

    /// Whether a run stands below the caller, by the line of its parents on record.
    fn is_below(&self, caller: RunId, mut run: RunId) -> Result<bool, CallError> {
        loop {
            let admitted = self.agents.store().admitted(run).map_err(|error| failed(&error))?;
            match admitted.and_then(|admitted| admitted.parent) {
                Some(parent) if parent == caller => return Ok(true),
                Some(parent) => run = parent,
                None => return Ok(false),
            }
        }
    }

    fn describe(&self, name: String, value: &VariableRef) -> Result<Variable, CallError> {
        let path = self.agents.store().path(value).map_err(|error| failed(&error))?;
        Ok(Variable {
            name,
            kind: value.kind.into(),
            size: value.size,
            hash: value.hash,
            path: path.to_str().map(str::to_owned),
            created_at: None,
        })
    }

    async fn tree(&self) -> Result<Tree, CallError> {
        let agents = self.agents.clone();
        let read = tokio::task::spawn_blocking(move || agents.tree()).await;
        read.expect("reading the record does not panic").map_err(|error| failed(&error))
    }
}

/// The run that asks; the operator is told to use the commands that open trees.
fn run(caller: CallerKind) -> Result<RunId, CallError> {
    caller.run().ok_or_else(|| {
        Refusal::new(RefusalCode::UnknownCaller, "only a running agent can ask for this")
            .with_hint("use `offshoot run`, `map` or `fanout` to open a tree")
            .into()
    })
}

/// A run that the caller may see, by its id, a unique beginning of it, or its session key.
fn named(tree: &Tree, caller: CallerKind, name: &RunName) -> Result<RunId, CallError> {
    let meant = |run: RunId, key: &str| run.to_string().starts_with(&name.0) || key == name.0;
    let found: Vec<RunId> = tree
        .nodes()
        .filter(|node| meant(node.run, node.key.as_str()) && may_see(tree, caller, node.run))
        .map(|node| node.run)
        .collect();
    match found[..] {
        [run] => Ok(run),
        [] => Err(not_below(name)),
        [..] => {
            Err(Refusal::invalid("run", format!("`{name}` is the beginning of several runs"))
                .into())
        }
    }
}

/// What is elsewhere does not exist for a session.
fn not_below(name: &RunName) -> CallError {
    Refusal::invalid("run", format!("there is no run `{name}` below this session")).into()
}

/// Itself and what is below it; for the operator everything.
fn may_see(tree: &Tree, caller: CallerKind, run: RunId) -> bool {
    let Some(caller) = caller.run() else { return true };
    let mut at = Some(run);
    while let Some(run) = at {
        if run == caller {
            return true;
        }
        at = tree.get(run).and_then(|node| node.parent);
    }
    false
}

fn failed(error: &StoreError) -> CallError {
    CallError::Failed { message: error.to_string(), hint: error.hint().map(str::to_owned) }
}
