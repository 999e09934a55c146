//! Many agents of a paid runtime are started on purpose: on a terminal the user is asked first.

use offshoot_config::Config;

use super::preflight::Prepared;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// As many agents are started without a question.
const UNASKED: usize = 20;

/// Asks where that is called for. `yes` where the command line has said it.
pub(crate) fn ask(
    agents: usize,
    prepared: &Prepared,
    config: &Config,
    yes: bool,
    cx: &Invocation,
) -> Result<(), Failure> {
    if !is_called_for(agents, prepared.is_paid, yes, cx.output.can_ask()) {
        return Ok(());
    }
    let runtime = &prepared.runtime;
    let usd = config.root_settings(&prepared.agent).budget.usd.map(|usd| usd.value);
    let most = match usd {
        Some(usd) => format!(", which may cost up to ${usd} together"),
        None => ", and their cost is not known in advance".to_owned(),
    };
    if cx.output.ask(format_args!("start {agents} agents of `{runtime}`{most}? [y/N] "))? {
        return Ok(());
    }
    Err(Failure::input(
        FailureCode::NotConfirmed,
        format_args!("{agents} agents of `{runtime}` were not started"),
    )
    .hint("answer y, or say --yes"))
}

/// True if the user is asked. A program that starts this one has decided already, and cannot answer.
const fn is_called_for(agents: usize, is_paid: bool, yes: bool, on_terminal: bool) -> bool {
    agents > UNASKED && is_paid && !yes && on_terminal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_paid_agents_on_a_terminal_are_asked_for() {
        for (agents, is_paid, yes, on_terminal, asked) in [
            (21, true, false, true, true),
            (20, true, false, true, false),
            (1000, false, false, true, false),
            (1000, true, true, true, false),
            (1000, true, false, false, false),
        ] {
            assert_eq!(is_called_for(agents, is_paid, yes, on_terminal), asked, "{agents}");
        }
    }
}
