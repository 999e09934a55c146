//! Is this the moment?

use offshoot_model::{Origin, Refusal, RefusalCode};

use super::Question;
use crate::breaker::Gate;

pub(super) fn check(question: &Question<'_>) -> Result<(), Refusal> {
    let Question { load, request, origin, target, .. } = *question;
    let when = match load.books.breakers.gate(target, load.now) {
        Gate::Closed | Gate::HalfOpen => None,
        Gate::Open { until } => Some(format!("one is tried again at {until}")),
        Gate::Probing { probe } => Some(format!("run {probe} is trying whether it works again")),
    };
    if let Some(when) = when {
        let message =
            format!("the runtime of the agent `{target}` has failed too often in a row; {when}");
        let refusal = Refusal::new(RefusalCode::BreakerOpen, message)
            .with_hint("ask again then, or name another agent");
        return Err(question.governed_by(refusal, "breaker.failures"));
    }
    if request.no_queue && !load.slot_free {
        let refusal =
            Refusal::new(RefusalCode::Busy, "no slot is free, and the request does not wait")
                .with_hint(
                    "ask with `queue: true`, which waits for a slot, or wait for a child first",
                );
        return Err(question.governed_by(refusal, "maxConcurrent"));
    }
    // Pieces that the operator has planned stand in line until the pause is over.
    if load.paused && origin == Origin::Agent {
        return Err(Refusal::new(RefusalCode::Paused, "the operator has paused this tree")
            .with_hint("ask again later"));
    }
    Ok(())
}
