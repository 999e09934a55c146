//! A tree for a client that is no run of ours: its root runs nothing itself, and the agent of the root is the model of the
//! client.
//!
//! ```text
//!  the user's own client ── MCP ──▶ serve ── first call ──▶ open the root, its door, and a way in
//!         stdin closed ───────────────▶ the root ends as client_gone; its children as onParentEnd has it
//! ```
//!
//! A client that only looks at the tools opens nothing: those that check whether their servers work would leave a record
//! in every folder otherwise.

use offshoot_config::Config;
use offshoot_door::{Client, ClientError, ErrorCode, WireRefusal};
use offshoot_host::Tree;
use offshoot_mcp::{ClientSource, Options, ServeError, serve_stdio};
use offshoot_model::{Ending, Reason};
use offshoot_spawner::{RootKind, RootSpec};
use tokio::sync::{mpsc, oneshot};

use super::{McpArguments, OnClientGone, ended};
use crate::code::NoteCode;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::{Engine, broken};
use crate::work::interrupt::Interrupts;
use crate::work::notify::Telling;
use crate::work::preflight::{self, Prepared};

/// The task of the root, as far as this command knows.
const TASK: &str = "whatever its client asks for";

/// A tree that is open.
struct OwnTree {
    tree: Tree,
    interrupts: Interrupts,
    /// Holds what the tree stands on.
    engine: Engine,
    /// Tells the operator's command what happens.
    telling: Telling,
}

/// The receiver of the answer to a first call.
type Reply = oneshot::Sender<Result<Client, ClientError>>;

/// Serves until the client closes standard input, or a signal stops everything.
pub(super) async fn serve(
    arguments: &McpArguments,
    options: Options,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let (config, prepared) = preflight::prepare(&arguments.work(), &arguments.command, cx)?;
    // Calls that come at the same time ask once, so there is never more than one.
    let (ask, mut asked) = mpsc::channel::<Reply>(1);
    let opener = move || {
        let ask = ask.clone();
        let opening = async move {
            let (reply, answer) = oneshot::channel();
            ask.send(reply).await.map_err(|_| ClientError::Closed)?;
            answer.await.unwrap_or(Err(ClientError::Closed))
        };
        Box::pin(opening) as offshoot_mcp::Opening
    };
    let served = serve_stdio(ClientSource::Later(Box::new(opener)), options);
    tokio::pin!(served);
    let tree = loop {
        let reply = tokio::select! {
            served = &mut served => return ended(served),
            Some(reply) = asked.recv() => reply,
        };
        match OwnTree::open(config.clone(), &prepared, arguments.label.as_deref(), cx).await {
            Ok((tree, client)) => {
                // A call that was cancelled meanwhile leaves the tree to the next one, which finds the way in closed.
                if reply.send(Ok(client)).is_ok() {
                    break tree;
                }
                tree.close(cx).await?;
            }
            Err(failure) => drop(reply.send(Err(told(&failure)))),
        }
    };
    tree.follow(served, arguments.on_client_gone, cx).await
}

impl OwnTree {
    async fn open(
        config: Config,
        prepared: &Prepared,
        label: Option<&str>,
        cx: &Invocation,
    ) -> Result<(Self, Client), Failure> {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, prepared, cx).await?;
        // Without a plan: only its client could go on with it.
        let root = prepared.root(TASK.into(), label.map(Into::into));
        let spec = RootSpec { kind: RootKind::Mcp, ..root };
        let tree = engine.host.open(spec).await?;
        let client = tree.client().await?;
        let telling = engine.notify(&tree, cx);
        Ok((Self { tree, interrupts, engine, telling }, client))
    }

    /// Until the client has gone, or a signal comes.
    async fn follow(
        mut self,
        served: impl Future<Output = Result<(), ServeError>>,
        on_client_gone: Option<OnClientGone>,
        cx: &Invocation,
    ) -> Result<Exit, Failure> {
        let stopper = self.tree.stopper();
        tokio::select! {
            served = served => {
                self.tree.end(Ending::of(Reason::ClientGone));
                if let Some(OnClientGone::Cascade) = on_client_gone {
                    self.tree.cascade();
                }
                self.close(cx).await?;
                ended(served)
            }
            () = self.interrupts.hear() => {
                // Most clients end their servers so, also where all went well. Where nothing runs below, nothing is cut
                // short. The root ends first: it is not what the signal stops.
                let cut_short = self.tree.counts().await.live > 1;
                self.tree.end(Ending::of(Reason::ClientGone));
                if cut_short {
                    self.interrupts.tell(&stopper, cx.output);
                }
                self.close(cx).await?;
                let exit = if cut_short { Exit::Interrupted } else { Exit::Done };
                // Not by returning: what reads standard input would be waited for, and the client may keep that open.
                exit::end(exit)
            }
        }
    }

    /// Ends the root, and waits for what lives below it.
    async fn close(self, cx: &Invocation) -> Result<(), Failure> {
        let Self { mut tree, mut interrupts, engine, telling } = self;
        let root = tree.root();
        let stopper = tree.stopper();
        tree.end(Ending::of(Reason::ClientGone));
        let below = tree.counts().await.live;
        if below > 0 {
            let agents = if below == 1 { "agent" } else { "agents" };
            cx.output.note(
                NoteCode::WaitingForRuns,
                format_args!("waiting for {below} {agents} below this root"),
            );
        }
        let closed = interrupts.beside(tree.ended(), &stopper, cx.output).await;
        tree.stop().await;
        closed.map_err(|error| broken(&error))?;
        interrupts.beside(engine.finish(root, telling, cx), &stopper, cx.output).await;
        Ok(())
    }
}

/// Converts a failure here into an error for the client of a door.
fn told(failure: &Failure) -> ClientError {
    let refusal =
        failure.json.clone().and_then(|json| serde_json::from_value::<WireRefusal>(json).ok());
    if let Some(refusal) = refusal {
        return ClientError::Refused(Box::new(refusal));
    }
    let hint = failure.complaints.first().and_then(|first| first.hint.clone());
    let message = failure.to_string();
    ClientError::Failed { method: "open", code: ErrorCode::Failed, message, hint }
}
