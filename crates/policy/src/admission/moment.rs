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
        let hint = "ask again then, or name another agent";
        return question.refuse(RefusalCode::BreakerOpen, message, hint, "breaker.failures");
    }
    if request.no_queue && !load.slot_free {
        let message = "no slot is free, and the request does not wait";
        let hint = "ask with `queue: true`, which waits for a slot, or wait for a child first";
        return question.refuse(RefusalCode::Busy, message, hint, "maxConcurrent");
    }
    // Pieces that the operator has planned stand in line until the pause is over.
    if load.paused && origin == Origin::Agent {
        return Err(Refusal::new(RefusalCode::Paused, "the operator has paused this tree")
            .with_hint("ask again later"));
    }
    Ok(())
}
