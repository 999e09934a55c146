//! Answers what running agents ask, in the words of the door. One noun a file; this one knows who answers what.

mod children;
mod given_file;
mod grep;
mod history;
mod merge;
mod order;
mod output;
mod read;
mod runs;
mod searches;
mod status;
mod values;
mod wait;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_door::{Call, CallError, CallerKind, Done, Observed, Request, Response, Service};
use offshoot_model::{Refusal, RefusalCode, RunId, Tree};
use offshoot_spawner::Agents;
use offshoot_store::StoreError;

pub use history::history;

use self::searches::Searches;
use crate::day_budget::DayShare;
use crate::plugins::PluginSnapshot;

/// The engine, as the door knows it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TreeService {
    agents: Agents,
    plugins: Arc<PluginSnapshot>,
    searches: Searches,
    /// The tree's share of its day; none where no day is bounded.
    day: Option<Arc<DayShare>>,
}

impl TreeService {
    /// Answers for this tree.
    pub(crate) fn new(
        agents: Agents,
        plugins: Arc<PluginSnapshot>,
        day: Option<Arc<DayShare>>,
    ) -> Self {
        Self { agents, plugins, searches: Searches::default(), day }
    }
}

impl Service for TreeService {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Response, CallError>> {
        let service = self.clone();
        async move { service.answer(call).await }.boxed()
    }
}

impl TreeService {
    async fn answer(
        &self,
        Call { caller, request, file, progress }: Call,
    ) -> Result<Response, CallError> {
        let (caller, progress) = (caller.kind, &progress);
        Ok(match request {
            Request::Spawn(spawn) => {
                Response::Spawned(Box::new(self.spawn(run(caller)?, *spawn).await?))
            }
            Request::Delegate(delegate) => {
                Response::Delegated(Box::new(self.delegate(run(caller)?, *delegate).await?))
            }
            Request::Observed(observed) => {
                let Observed { observation, failed } = *observed;
                self.agents.observed(run(caller)?, observation, !failed).await?;
                Response::Noted(Box::new(Done {}))
            }
            Request::SpawnMany(many) => {
                let many = self.spawn_many(run(caller)?, *many, progress).await?;
                Response::SpawnedMany(Box::new(many))
            }
            Request::Wait(wait) => {
                Response::Waited(Box::new(self.wait(run(caller)?, *wait, progress).await?))
            }
            Request::Report(report) => {
                self.agents.report(run(caller)?, &report.text).await?;
                Response::Reported(Box::new(Done {}))
            }
            Request::Send(send) => {
                self.send(caller, *send).await?;
                Response::Sent(Box::new(Done {}))
            }
            Request::Cancel(cancel) => {
                self.cancel(caller, *cancel).await?;
                Response::Cancelled(Box::new(Done {}))
            }
            Request::Pause(pause) => {
                operator(caller)?;
                if caller == CallerKind::OperatorCommand && !pause.paused {
                    return Err(lets_more_happen());
                }
                self.agents.pause_as_operator(pause.paused).await?;
                Response::Paused(Box::new(Done {}))
            }
            Request::RaiseBudget(raise) => {
                self.raise(caller, *raise).await?;
                Response::BudgetRaised(Box::new(Done {}))
            }
            Request::Tree(asked) => Response::Tree(Box::new(self.trees(caller, *asked).await?)),
            Request::List(list) => Response::List(Box::new(self.list(caller, *list).await?)),
            Request::Output(asked) => Response::OutputWritten(Box::new(self.output(*asked).await)),
            Request::History(asked) => {
                Response::History(Box::new(self.history(caller, *asked).await?))
            }
            Request::Merge(merge) => {
                Response::Merged(Box::new(self.merge(run(caller)?, *merge).await?))
            }
            Request::ContextPut(put) => {
                Response::ContextPut(Box::new(self.put(run(caller)?, *put, file).await?))
            }
            Request::ContextGet(get) => {
                Response::ContextGet(Box::new(self.get(run(caller)?, *get).await?))
            }
            Request::ContextInfo(info) => {
                Response::ContextInfo(Box::new(self.info(run(caller)?, *info).await?))
            }
            Request::Activity(_) => {
                operator(caller)?;
                Response::Activity(Box::new(self.activity().await?))
            }
            Request::Status(_) => Response::Status(Box::new(self.status(run(caller)?).await?)),
        })
    }

    async fn tree(&self, caller: CallerKind) -> Result<Arc<Tree>, CallError> {
        let agents = self.agents.clone();
        self.searches.read(caller, move |_| agents.tree().map_err(failed)).await
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

/// Only the person who owns the tree.
fn operator(caller: CallerKind) -> Result<(), CallError> {
    match caller {
        CallerKind::Operator | CallerKind::OperatorCommand => Ok(()),
        CallerKind::Run(_) => {
            let message = "only the operator of the tree can ask for this";
            Err(Refusal::new(RefusalCode::UnknownCaller, message)
                .with_hint("ask from a terminal that no agent has started")
                .into())
        }
    }
}

/// The refusal for a command that the supervisor runs for the operator: an agent may be able to change its program.
fn lets_more_happen() -> CallError {
    let message = "a command that the supervisor runs may look, cancel and pause, and nothing more";
    Refusal::new(RefusalCode::UnknownCaller, message)
        .with_hint("ask from a terminal that no agent has started")
        .into()
}

/// Reads files or the record on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    tokio::task::spawn_blocking(work).await.expect("reading does not panic")
}

/// A request that is wrong in itself.
fn invalid(field: &str, message: impl Into<String>) -> CallError {
    Refusal::invalid(field, message.into()).into()
}

/// Converts an error of the record.
fn failed(error: StoreError) -> CallError {
    CallError::Failed { message: error.to_string(), hint: error.hint().map(str::to_owned) }
}
