//! The probes, by the kind of limit.

pub(crate) mod faults;
pub(crate) mod money;
pub(crate) mod numbers;
pub(crate) mod slots;
pub(crate) mod times;

use futures_util::future::BoxFuture;
use offshoot_model::{CancelledBy, Envelope, Payload, Reason, Refusal, SpawnRequest};
use offshoot_runtime::{Finished, Launch, RunContext, WaitFor};

use crate::agent::Body;
use crate::error::{NoProbe, ProofError};
use crate::probe::{Probe, Verdict};
use crate::trial::ProbeTree;

/// The future of one probe.
pub(crate) type Tried<'a> = BoxFuture<'a, Result<Probe, NoProbe>>;

/// More than this is not asked for: a larger limit would take longer than a person waits for a proof.
const MOST: u64 = 10_000;

/// An agent that does what this does.
fn agent<F, Fut>(act: F) -> Body
where
    F: Fn(Launch, RunContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Finished> + Send + 'static,
{
    std::sync::Arc::new(move |launch, cx| Box::pin(act(launch, cx)))
}

/// A request with this task and nothing else.
fn task(text: impl Into<std::sync::Arc<str>>) -> SpawnRequest {
    SpawnRequest { task: text.into(), ..SpawnRequest::default() }
}

/// Refuses to ask for as much as a limit of this size needs.
fn not_too_much(most: u64) -> Result<(), Verdict> {
    if most > MOST {
        return Err(Verdict::NotTried { why: format!("more than {MOST} would be asked for") });
    }
    Ok(())
}

/// Asks for one piece and waits for it.
async fn one_piece(
    tree: &ProbeTree,
    request: SpawnRequest,
) -> Result<Result<Envelope, Refusal>, ProofError> {
    let run = match tree.session.spawn(request).await {
        Ok(run) => run,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let answer = tree.session.wait(WaitFor { runs: vec![run], ..WaitFor::default() }).await?;
    let envelope = answer.ended.into_iter().next();
    Ok(Ok(envelope.expect("the wait was for this run, without a limit of time")))
}

/// Asks for one piece. Returns the numbers of its answer, and none with the code where it was refused.
async fn numbers_of_piece(
    tree: &ProbeTree,
    text: &str,
) -> Result<(u64, Option<String>), ProofError> {
    let ended = one_piece(tree, task(text)).await?;
    Ok(ended.map_or_else(|no| (0, Some(no.code.to_string())), |it| numbers_of(&it)))
}

/// The text of an answer: for agents of a probe a number, and a code where they were refused.
fn numbers_of(envelope: &Envelope) -> (u64, Option<String>) {
    if let Some(Payload::Text(text)) = &envelope.data
        && let Some((number, code)) = text.split_once(' ')
        && let Ok(number) = number.parse()
    {
        return (number, Some(code.to_owned()).filter(|code| !code.is_empty()));
    }
    (0, Some(code_of(envelope)))
}

/// The code of an ending.
fn code_of(envelope: &Envelope) -> String {
    envelope.error.as_ref().map_or_else(|| "completed".to_owned(), |error| error.code.to_string())
}

/// The answer of an agent that got so many and was refused with this code.
fn answer(got: u64, refused: Option<&Refusal>) -> Finished {
    let code = refused.map(|refusal| refusal.code.to_string()).unwrap_or_default();
    Finished::text(format!("{got} {code}"))
}

/// The end of an agent that was asked to stop: the engine knows the reason.
fn stopped() -> Finished {
    Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
}
