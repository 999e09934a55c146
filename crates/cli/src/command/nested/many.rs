//! Many children at once: asked for, told of as they end, and merged.

use std::collections::HashMap;

use offshoot_door::{
    Cancel, ChildAnswer, Client, MergeOrder, RunName, Spawn, SpawnMany, SpawnedMany, Wait,
    WaitMode, Waited,
};
use offshoot_host::Merging;
use offshoot_model::{RunId, RunStatus};

use super::told::{Outcome, Told};
use crate::arguments::PieceArguments;
use crate::code::{FailureCode, NoteCode};
use crate::command::merge::print_text;
use crate::command::wait::tell_failure;
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::wording;
use crate::work::pieces::AnswerRules;

/// The treatment of the children and their answers.
pub(super) struct Order {
    terms: AnswerRules,
    told: Told,
}

/// The children that were admitted, in the order of the request.
struct Children {
    /// The place in the request and the name of the result of each.
    places: HashMap<RunId, (u32, String)>,
    runs: Vec<RunId>,
}

impl Order {
    /// As the flags have it.
    pub(super) fn of(arguments: &PieceArguments, cx: &Invocation) -> Result<Self, Failure> {
        let terms = AnswerRules::of(arguments)?;
        let told = Told::of(arguments, &terms, cx)?;
        Ok(Self { terms, told })
    }

    /// Learns the number of bytes that each child is given, and the command.
    pub(super) fn expect(&mut self, given: impl Iterator<Item = u64>, command: &[String]) {
        self.told.expect(given, &wording::command_line(command));
    }

    /// Asks for these children, waits for them, tells of each, and prints what their answers make.
    pub(super) async fn run(
        self,
        supervisor: &Client,
        children: Vec<Spawn>,
        cx: &Invocation,
    ) -> Result<Exit, Failure> {
        self.terms.check_count(children.len())?;
        let wait = Wait { merge: Some(self.merge()), ..Wait::default() };
        if self.told.is_nothing() && self.terms.max_fail.is_none() || children.is_empty() {
            let many = SpawnMany { children, wait: Some(wait), ..SpawnMany::default() };
            let answer = supervisor.call(many).await?;
            warn(&answer.children, cx);
            self.told.finish(supervisor.welcome().run_id)?;
            return report(supervisor, answer, false, cx).await;
        }
        let labels: Vec<String> = (1_u32..)
            .zip(&children)
            .map(|(number, child)| child.label.clone().unwrap_or_else(|| number.to_string()))
            .collect();
        let asked = SpawnMany { children, ..SpawnMany::default() };
        let answers = supervisor.call(asked).await?.children;
        warn(&answers, cx);
        self.follow(supervisor, answers, labels, wait, cx).await
    }

    /// Waits for the children twice: for all of them and their merge, and for each as it ends.
    async fn follow(
        mut self,
        supervisor: &Client,
        answers: Vec<ChildAnswer>,
        labels: Vec<String>,
        wait: Wait,
        cx: &Invocation,
    ) -> Result<Exit, Failure> {
        let mut children = Children { places: HashMap::new(), runs: Vec::new() };
        let mut refused = Vec::new();
        for ((place, answer), key) in (0..).zip(&answers).zip(labels) {
            match (answer.run_id, &answer.refusal) {
                (Some(run), _) => {
                    children.runs.push(run);
                    children.places.insert(run, (place, key));
                }
                (None, Some(refusal)) => {
                    refused.push(Outcome { place, key, result: Err((**refusal).clone()) });
                }
                (None, None) => {}
            }
        }
        let names: Vec<RunName> = children.runs.iter().copied().map(RunName::from).collect();
        let merged = async {
            if names.is_empty() {
                // A wait that names none would be for other children of this agent.
                return Ok(Waited::default());
            }
            let waited = supervisor.call(Wait { runs: names.clone(), ..wait }).await;
            if waited.is_err() {
                // A merge that cannot be used: nothing is paid for an answer that nothing makes.
                cancel(supervisor, &children.runs).await;
            }
            waited.map_err(Failure::from)
        };
        let told = async {
            let told = self.tell(supervisor, &children, refused, cx).await;
            if told.is_err() {
                // The output has no reader: nothing is paid for an answer that goes nowhere.
                cancel(supervisor, &children.runs).await;
            }
            told
        };
        let (waited, told) = tokio::join!(merged, told);
        let (waited, cut_short) = (waited?, told?);
        let printed = self.told.prints();
        self.told.finish(supervisor.welcome().run_id)?;
        let spawned = SpawnedMany { children: answers, waited: Some(waited) };
        let exit = report(supervisor, spawned, printed, cx).await?;
        let Some(most) = self.terms.max_fail.filter(|_| cut_short) else { return Ok(exit) };
        let pieces = offshoot_display::number::many(most.into(), "piece");
        let message = format!("more than {pieces} did not complete, so the rest was cancelled");
        let hint = "--max-fail N permits more; without it all pieces run".to_owned();
        cx.output.error(&Complaint::new(FailureCode::TooManyFailed, message, Some(hint)));
        Ok(if exit == Exit::Done { Exit::AgentFailed } else { exit })
    }

    /// Tells of each child as it ends. True if the rest was cancelled because too many had failed.
    async fn tell(
        &mut self,
        supervisor: &Client,
        children: &Children,
        refused: Vec<Outcome>,
        cx: &Invocation,
    ) -> Result<bool, Failure> {
        let mut failed = u32::try_from(refused.len()).unwrap_or(u32::MAX);
        for outcome in refused {
            self.told.take(outcome, supervisor, cx).await?;
        }
        let mut open = children.runs.clone();
        let mut cut_short = false;
        loop {
            if !cut_short && self.terms.max_fail.is_some_and(|most| failed > most) {
                cut_short = true;
                cancel(supervisor, &open).await;
            }
            if open.is_empty() {
                return Ok(cut_short);
            }
            let runs = open.iter().copied().map(RunName::from).collect();
            let wait = Wait { runs, mode: Some(WaitMode::Any), ..Wait::default() };
            let ended = supervisor.call(wait).await?.ended;
            for envelope in ended {
                open.retain(|run| *run != envelope.run_id);
                let Some((place, key)) = children.places.get(&envelope.run_id) else { continue };
                let status = envelope.status.known();
                // Where the answer stands without them, the others are cancelled and did not fail.
                let unneeded = status == Some(RunStatus::Cancelled) && self.may_end_early();
                failed += u32::from(status != Some(RunStatus::Completed) && !unneeded);
                let outcome = Outcome { place: *place, key: key.clone(), result: Ok(envelope) };
                self.told.take(outcome, supervisor, cx).await?;
            }
        }
    }

    fn may_end_early(&self) -> bool {
        match &self.terms.merging {
            Merging::Strategy(strategy) => strategy.may_end_early(),
            Merging::Asking(_) | Merging::Patch => false,
            Merging::Plugin { .. } => true,
        }
    }

    fn merge(&self) -> MergeOrder {
        let AnswerRules { merging, on_failure, separator, .. } = &self.terms;
        MergeOrder {
            strategy: merging.to_string(),
            on_failure: Some(on_failure.to_string()),
            // With --stream it stands behind each answer, and no merged one is printed.
            separator: separator.clone(),
        }
    }
}

/// Cancels these runs. One that has ended meanwhile needs no more.
async fn cancel(supervisor: &Client, runs: &[RunId]) {
    for run in runs {
        drop(supervisor.call(Cancel { run: RunName::from(*run), only: false }).await);
    }
}

/// Says where a child got less than was asked for.
fn warn(children: &[ChildAnswer], cx: &Invocation) {
    for limit in children.iter().flat_map(|child| &child.lowered) {
        cx.output.warning(NoteCode::LimitLowered, limit);
    }
}

/// Prints what several children have made together, unless each answer is printed already, and says what is missing.
async fn report(
    supervisor: &Client,
    SpawnedMany { children, waited }: SpawnedMany,
    printed: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let waited = waited.unwrap_or_default();
    let merged = waited.merged;
    if cx.output.wants_json() {
        cx.output.json(&merged)?;
    } else if let Some(merged) = merged.as_ref().filter(|_| !printed) {
        print_text(supervisor, merged, cx).await?;
    }
    for outcome in &waited.ended {
        if let Some(error) = &outcome.error {
            tell_failure(supervisor, outcome.run_id, error, cx).await;
        }
    }
    let complain = |message: &str| cx.output.error(&Complaint::told(message, None));
    if let Some(error) = merged.and_then(|merged| merged.error) {
        complain(&error);
        exit = Exit::AgentFailed;
    }
    for refusal in children.into_iter().filter_map(|child| child.refusal) {
        complain(&refusal.message);
        exit = Exit::Refused;
    }
    Ok(exit)
}
