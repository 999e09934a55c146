//! Pieces of a map or a fanout: opened as one tree, followed, merged, reported.

use std::sync::Arc;

use offshoot_host::{Abandoned, Merging};
use offshoot_merge::OnFailure;
use offshoot_model::{Ending, Reason};
use offshoot_spawner::{ExternalMerge, FanOut, Piece, RootKind, RootSpec, SpawnerError};

use super::engine::{Engine, broken, halted};
use super::input;
use super::interrupt::Interrupts;
use super::plan::Plan;
use super::preflight::Prepared;
use super::progress;
use super::report;
use crate::arguments::PieceArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The treatment of many answers.
#[derive(Clone, Debug)]
pub(crate) struct AnswerRules {
    /// The merge.
    pub(crate) merging: Merging,
    /// The treatment of a piece that did not complete.
    pub(crate) on_failure: OnFailure,
    /// After how many failures the rest is cancelled.
    pub(crate) max_fail: Option<u32>,
}

/// Everything that is known before the tree is opened.
#[derive(Debug)]
pub(crate) struct PieceRun {
    /// The runtime and its settings.
    pub(crate) prepared: Prepared,
    /// The label of the root.
    pub(crate) label: Option<Arc<str>>,
    /// The task of the root, in words.
    pub(crate) task: Arc<str>,
    /// The plan that is recorded for a later start.
    pub(crate) plan: Plan,
    /// The pieces to run.
    pub(crate) pieces: Vec<Piece>,
    /// The treatment of the answers.
    pub(crate) terms: AnswerRules,
    /// The plugin's merge, where a plugin merges.
    pub(crate) external: Option<ExternalMerge>,
}

impl AnswerRules {
    /// As the flags have it.
    pub(crate) fn of(arguments: &PieceArguments) -> Result<Self, Failure> {
        Ok(Self {
            merging: merging(&arguments.merge)?,
            on_failure: arguments.on_failure,
            max_fail: arguments.max_fail,
        })
    }
}

/// Runs the pieces and prints what comes of them. `abandoned` is one to go on with, where its pieces have read what these would
/// read.
pub(crate) async fn run(
    engine: &Engine,
    order: PieceRun,
    abandoned: Option<Abandoned>,
    mut interrupts: Interrupts,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let PieceRun { prepared, label, task, plan, pieces, terms, external } = order;
    let files = plan.inputs.clone();
    let ranges = pieces.iter().filter_map(|piece| piece.input.clone()).collect();
    let plan = Some(plan.recorded()?);
    let context = Vec::new();
    let spec = RootSpec {
        kind: RootKind::Run,
        agent: prepared.agent,
        task,
        label,
        context,
        run_spec: prepared.run_spec,
        plan,
    };
    let tree = match abandoned {
        Some(tree) => {
            tree.check_inputs(&pieces).map_err(|error| match error {
                SpawnerError::InputChanged(mut range) => {
                    range.path = input::asked_for(&files, &range.path);
                    broken(&SpawnerError::InputChanged(range))
                }
                error => broken(&error),
            })?;
            tree.resume(spec).await
        }
        None => engine.host.open(spec).await,
    };
    let mut tree = tree?;
    let root = tree.root();
    let stopper = tree.stopper();
    let follow = progress::follow(&tree, pieces.len(), cx.output);
    let work = async {
        let order = FanOut {
            run_spec: None,
            pieces,
            strategy: terms.merging.strategy(),
            external,
            on_failure: terms.on_failure,
            max_fail: terms.max_fail,
        };
        let answered = async { tree.fan_out(order).await?.answer().await };
        let mut answer = match answered.await {
            Ok(answer) => answer,
            // A tree that ends before its answer has a reason, and tells it when asked.
            Err(SpawnerError::Over) => {
                return Err(tree.ended().await.err().unwrap_or(SpawnerError::Over));
            }
            Err(error) => {
                // A tree whose record has ended stays as it is, and can be resumed. Every other one ends with the reason.
                let message = broken(&error).to_string();
                let reason = Reason::RuntimeError { message, retryable: false };
                let _ = tree.close(Ending::of(reason)).await;
                return Err(error);
            }
        };
        if let Some(changed) = input::changed(files, ranges).await {
            answer.verdict = Err(changed);
        }
        let concluded = tree.conclude(&answer).await;
        Ok((answer, concluded))
    };
    let (answer, concluded) = tokio::select! {
        (outcome, ()) = async { tokio::join!(work, follow) } => outcome.map_err(|error| halted(&error, root))?,
        never = interrupts.pass_on(&stopper, cx.output) => match never {},
    };
    // An answer that could not be recorded is still an answer: it is printed before that is said.
    let exit = report::pieces(engine, root, &answer, &terms, interrupts.interrupted(), cx);
    engine.keep_head(root, cx).await;
    let exit = exit?;
    concluded.map_err(|error| halted(&error, root))?;
    Ok(exit)
}

/// Reads how answers become one.
pub(crate) fn merging(text: &str) -> Result<Merging, Failure> {
    let parsed = text.parse::<Merging>();
    parsed.map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))
}
