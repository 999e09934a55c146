//! Pieces of a map or a fanout: opened as one tree, followed, merged, reported.

use std::sync::Arc;

use offshoot_config::{AgentId, Config};
use offshoot_display::number;
use offshoot_host::{Abandoned, Merging};
use offshoot_merge::{Asked, OnFailure, Strategy};
use offshoot_model::{Ending, Isolation, Payload, Reason};
use offshoot_spawner::{ExternalMerge, FanOut, Piece, RootSpec, SpawnerError};

use super::branch;
use super::engine::{Engine, broken, halted};
use super::input;
use super::interrupt::Interrupts;
use super::outcomes::Outcomes;
use super::plan::Plan;
use super::preflight::Prepared;
use super::progress;
use super::report;
use crate::arguments::PieceArguments;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The treatment of many answers.
#[derive(Clone, Debug)]
pub(crate) struct AnswerRules {
    /// The merge.
    pub(crate) merging: Merging,
    /// The command that must succeed with all patches applied, and the seconds that it has.
    pub(crate) check: Option<(String, u64)>,
    /// The treatment of a piece that did not complete.
    pub(crate) on_failure: OnFailure,
    /// After how many failures the rest is cancelled.
    pub(crate) max_fail: Option<u32>,
    /// The text between two answers that are concatenated, where it is not the usual line.
    pub(crate) separator: Option<String>,
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
    /// Results of earlier runs, which are merged with theirs.
    pub(crate) results: Vec<(Arc<str>, Payload)>,
    /// The treatment of the answers.
    pub(crate) terms: AnswerRules,
    /// The plugin's merge, where a plugin merges.
    pub(crate) external: Option<ExternalMerge>,
    /// The way in which each piece is told of.
    pub(crate) outcomes: Outcomes,
}

impl AnswerRules {
    /// As the flags have it.
    pub(crate) fn of(arguments: &PieceArguments) -> Result<Self, Failure> {
        let merging = merging(&arguments.merge)?;
        let separator = arguments.separator.clone().or(arguments.null.then(|| "\0".to_owned()));
        if separator.is_some() && merging != Merging::Strategy(Strategy::Concatenate) {
            let message = format!("a separator is of concatenated answers, and not of `{merging}`");
            return Err(Failure::input(FailureCode::SeparatorUnused, message)
                .hint("leave it out, or use --merge concatenate"));
        }
        let check = arguments.check.clone().map(|check| (check, arguments.check_timeout));
        if check.is_some() && merging != Merging::Patch {
            let message = format!("--check is of patches that are merged, and not of `{merging}`");
            return Err(Failure::input(FailureCode::CheckUnused, message)
                .hint("offshoot fanout --isolation worktree --merge patch --check COMMAND"));
        }
        let (on_failure, max_fail) = (arguments.on_failure, arguments.max_fail);
        if let Merging::Strategy(strategy) = &merging
            && !strategy.takes(on_failure)
        {
            let message = format!(
                "--merge {strategy} cannot have --on-failure {on_failure}: a failed piece has no number"
            );
            return Err(Failure::input(FailureCode::FailuresNotMerged, message)
                .hint("take --on-failure skip, or --merge concatenate"));
        }
        Ok(Self { merging, check, on_failure, max_fail, separator })
    }

    /// Makes sure that the agent that a merge asks is defined, before anything is paid for its answer.
    pub(crate) fn check(&self, config: &Config, own: &AgentId) -> Result<(), Failure> {
        let asked = self.merging.asking().map(|asking| &asking.asked);
        let Some(Asked::Agent(agent)) = asked else { return Ok(()) };
        if agent == own || config.agent(agent).is_some() {
            return Ok(());
        }
        let nearest = config.nearest_agent(agent).map(|near| format!("the nearest is `{near}`; "));
        Err(Failure::input(
            FailureCode::NoAgentToAsk,
            format_args!("--merge {}: there is no agent `{agent}`", self.merging),
        )
        .hint(format_args!("{}`offshoot agents list` shows all", nearest.unwrap_or_default())))
    }

    /// Makes sure that so many pieces can make the answer, before any of them is paid for.
    pub(crate) fn check_count(&self, pieces: usize) -> Result<(), Failure> {
        match self.merging {
            Merging::Strategy(Strategy::Quorum(needed))
                if needed.get() as usize > pieces && pieces > 0 =>
            {
                let answers = number::many(pieces as u64, "answer");
                let message = format!(
                    "--merge quorum:{needed} needs {needed} equal answers, and at most {answers} will come"
                );
                Err(Failure::input(FailureCode::QuorumTooLarge, message).hint(format_args!(
                    "take --merge quorum:{}, more tasks, or smaller pieces",
                    pieces / 2 + 1
                )))
            }
            _ => Ok(()),
        }
    }

    /// Makes sure that patches can come of each piece: of this agent, and with this folder where one is asked for. Without one of its
    /// own it would change the files of the user.
    pub(crate) fn check_folder(
        &self,
        config: &Config,
        agent: &AgentId,
        asked: Option<&Isolation>,
    ) -> Result<(), Failure> {
        let of_agent = config.agent(agent).and_then(|agent| Some(&agent.isolation.as_ref()?.value));
        let is_apart = asked.or(of_agent).is_some_and(|isolation| !isolation.is_none());
        if is_apart || self.merging != Merging::Patch {
            return Ok(());
        }
        let message = format!(
            "--merge patch is of runs with folders of their own, and the agent `{agent}` would work in yours"
        );
        Err(Failure::input(FailureCode::PatchWithoutFolder, message)
            .hint("add --isolation worktree, or --isolation copy"))
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
    let PieceRun { prepared, label, task, plan, pieces, results, terms, external, .. } = order;
    let mut outcomes = order.outcomes;
    let files = plan.inputs.clone();
    let branching = (terms.merging == Merging::Patch)
        .then(|| branch::Order::of(&pieces, &plan.working_folder, terms.check.clone()));
    outcomes.expect(&pieces, &plan.command_line());
    let ranges = pieces.iter().filter_map(|piece| piece.input.clone()).collect();
    let spec = RootSpec { plan: Some(plan.recorded()?), ..prepared.root(task, label) };
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
    cx.output.name_tree(root);
    let stopper = tree.stopper();
    let telling = engine.notify(&tree, cx);
    let follow = progress::follow(&tree, pieces.len(), engine.since, cx.output);
    let work = async {
        let order = FanOut {
            run_spec: None,
            pieces,
            results,
            strategy: terms.merging.strategy(),
            external,
            asking: terms.merging.asking().cloned(),
            on_failure: terms.on_failure,
            max_fail: terms.max_fail,
        };
        let answered = async {
            let mut fan = tree.fan_out(order).await?;
            while !outcomes.is_done() {
                let Some(outcome) = fan.next().await? else { break };
                if outcomes.take(outcome, &engine.store, root).is_break() {
                    // The output has no reader: nothing is paid for an answer that goes nowhere.
                    stopper.stop_all(false);
                }
            }
            fan.answer().await
        };
        let mut answer = match answered.await {
            Ok(mut answer) => {
                if let Some(separator) = &terms.separator {
                    answer.answer.separate_by(separator.as_str());
                }
                answer
            }
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
        if let Some(order) = branching.filter(|_| answer.verdict.is_ok()) {
            order.make(engine, &mut answer, cx).await;
        }
        let concluded = tree.conclude(&answer).await;
        Ok((answer, concluded, outcomes))
    };
    let both = async { tokio::join!(work, follow).0 };
    let (answer, concluded, outcomes) = match interrupts.beside(both, &stopper, cx.output).await {
        Ok(outcome) => outcome,
        Err(error) => {
            telling.finish_soon().await;
            return Err(halted(&error, root));
        }
    };
    // An answer that could not be recorded is still an answer: it is printed before that is said.
    let (interrupted, printed) = (interrupts.interrupted(), outcomes.prints());
    let exit = report::pieces(engine, root, &answer, &terms, printed, interrupted, cx);
    let told = outcomes.finish(root);
    interrupts.beside(engine.finish(root, telling, cx), &stopper, cx.output).await;
    told?;
    let exit = exit?;
    concluded.map_err(|error| halted(&error, root))?;
    Ok(exit)
}

/// Reads how answers become one.
pub(crate) fn merging(text: &str) -> Result<Merging, Failure> {
    let parsed = text.parse::<Merging>();
    parsed.map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))
}
