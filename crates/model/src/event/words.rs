//! The words for all kinds of event, and their texts.

use super::EventKind;
use crate::{TokenCount, number};

/// One row for each kind: its word, and what a line about it says beside the word. The word is that of JSON.
macro_rules! table {
    ($($kind:pat => $word:literal, $text:expr;)*) => {
        impl EventKind {
            /// The words for all kinds, in the order in which they are declared here.
            pub const NAMES: &[&str] = &[$($word),*];

            /// The word for it, as in JSON.
            #[expect(unused_variables, reason = "what a kind holds is for its text")]
            pub const fn name(&self) -> &'static str {
                match self {
                    $($kind => $word,)*
                }
            }

            /// Returns the text of the event in one line, without its word; empty where the word says all. Text of agents is in
            /// it as they wrote it: the display makes it harmless.
            pub fn text(&self) -> String {
                match self {
                    $($kind => $text.into(),)*
                }
            }
        }
    };
}

table! {
    Self::Admitted(admitted) => "admitted", admitted.to_string();
    Self::Refused { refusal, times } => "refused",
        format!("{}{}: {}", refusal.code, number::times(*times), refusal.message);
    Self::Starting => "starting", "";
    Self::Started { process } => "started",
        process.map_or_else(String::new, |process| format!("process {}", process.pid));
    Self::Progress { text } => "progress", &**text;
    Self::Reported { text } => "reported", &**text;
    Self::ToolUsed(used) => "tool_used", used.to_string();
    Self::Repeats { tool, times } => "repeats",
        format!("uses {tool} with the same input for the {times}th time in a row");
    Self::BacksOff { why, until } => "backs_off", format!("{why}; asks again at {until}");
    Self::Answered => "answered", "";
    Self::ModelChanged { model } => "model_changed", format!("goes on with the model {model}");
    Self::Used { usage, cost } => "used", number::used(usage, cost).unwrap_or_default();
    Self::Waiting => "waiting", "";
    Self::Returned => "returned", "";
    Self::BusyWaiting { cpu_ms, wait_ms } => "busy_waiting", number::busy(*cpu_ms, *wait_ms);
    Self::Stopping { reason } => "stopping", reason.to_string();
    Self::BudgetNotice => "budget_notice", "four fifths of its budget are used";
    Self::Overrun { tokens, micro_usd } => "overrun",
        format!("{} more than reserved", number::amounts(*tokens, *micro_usd));
    Self::BudgetDrawn { tokens, micro_usd } => "budget_drawn",
        format!("{} out of the pool", number::amounts(*tokens, *micro_usd));
    Self::BudgetRaised { tokens, micro_usd } => "budget_raised",
        format!("{} more, by the operator", number::amounts(*tokens, *micro_usd));
    Self::RequestReserved { request, model, tokens, micro_usd } => "request_reserved", format!(
        "{request} to {model}, {} at most",
        match micro_usd {
            Some(micro_usd) => number::amounts(*tokens, *micro_usd),
            None => number::tokens(TokenCount::Known(*tokens)),
        },
    );
    Self::RequestHeld { request, model, tokens, micro_usd, for_others } => "request_held", format!(
        "{request} to {model} waits {}, {} at most",
        if *for_others { "until requests beside it are over" } else { "for more budget" },
        match micro_usd {
            Some(micro_usd) => number::amounts(*tokens, *micro_usd),
            None => number::tokens(TokenCount::Known(*tokens)),
        },
    );
    Self::RequestSettled { request, model, ending, usage, cost } => "request_settled", {
        let used = number::used(usage, cost).unwrap_or_else(|| "nothing charged".to_owned());
        format!("{request} to {model}, {ending}: {used}")
    };
    Self::RequestRefused { code, message, times } => "request_refused", match times {
        None => format!("{code}: {message}"),
        Some(times) => format!("{code}: {} more", number::count(*times)),
    };
    Self::StallLent => "stall_lent", "its holders waited for it in silence";
    Self::Paused => "paused", "nothing more is started, by the operator's word; what runs goes on";
    Self::Unpaused => "unpaused", "the tree goes on";
    Self::BreakerOpened { agent, faults, wait_ms } => "breaker_opened", format!(
        "no run of the agent `{agent}` starts for {}: {}",
        number::milliseconds(*wait_ms),
        number::faults(*faults),
    );
    Self::BreakerClosed { agent } => "breaker_closed", format!("runs of the agent `{agent}` start again");
    Self::Parked { account, window, until, left } => "parked", format!(
        "no run of {account} starts before {}: {}",
        number::moment(*until),
        number::quota(window.as_deref(), *left),
    );
    Self::QuotaSeen { account, window, left, until } => "quota_seen", format!(
        "{} % of a quota ({window}) of {account} are left until {}",
        left / 10_000,
        number::moment(*until),
    );
    Self::Unparked { account } => "unparked", format!("runs of {account} start again");
    Self::Paced { account, most } => "paced", number::pace(account, *most);
    Self::MemoryShort(shortage) => "memory_short",
        format!("further runs wait for memory: {shortage}");
    Self::MemoryEnough => "memory_enough", "no run waits for memory any more";
    Self::HostBound { max_concurrent } => "host_bound",
        format!("at most {max_concurrent} at once over all trees of the user");
    Self::Priming { run, tokens } => "priming",
        format!("runs with the same prompt of about {} tokens wait for the first answer of {run}", number::count(*tokens));
    Self::Primed { run } => "primed", format!("no run waits for the first answer of {run} any more");
    Self::PoolShort { run } => "pool_short",
        format!("the next piece of {run} waits for the end of another: the budget that they share may not pay for it");
    Self::PoolEnough { run } => "pool_enough",
        format!("no piece of {run} waits because of the budget that they share any more");
    Self::HostFull => "host_full", "further runs wait for a slot, which the trees of the user share";
    Self::HostFree => "host_free", "no run waits for a slot of the host any more";
    Self::AccountBound { account, max_concurrent } => "account_bound",
        format!("at most {max_concurrent} runs of {account} at once over all trees of the user");
    Self::AccountFull { account } => "account_full",
        format!("further runs of {account} wait for a slot, which the trees of the user share");
    Self::AccountFree { account } => "account_free", format!("no run of {account} waits for a slot any more");
    Self::Ended(ending) => "ended", ending.reason.to_string();
    Self::Merged(merged) => "merged", format!(
        "{}: {}, {} without one{}",
        merged.strategy,
        number::many(merged.merged.into(), "result"),
        number::many(merged.failed.into(), "piece"),
        merged.chosen.as_ref().map_or_else(String::new, |chosen| format!("; chosen: {chosen}"))
    );
    Self::Alive => "alive", "runs work, and nothing else has happened for a while";
    Self::Reopened => "reopened", "a new supervisor holds the tree";
    Self::RootReopened(reopened) => "root_reopened", format!("by the operator: {reopened}");
    Self::Resumed { attempt, continues, after, wait_ms, changes: _ } => "resumed", {
        let how = if *continues { "goes on" } else { "begins again" };
        let wait = wait_ms.map(|wait| format!(" in {}", number::milliseconds(wait)));
        let after = after.as_ref().map(|fault| format!(", after: {fault}"));
        let (wait, after) = (wait.unwrap_or_default(), after.unwrap_or_default());
        format!("{how}{wait}, attempt {attempt}{after}")
    };
    Self::FellBack { number: _, runtime, model } => "fell_back", match model {
        Some(model) => format!("to the runtime {runtime}, with the model {model}"),
        None => format!("to the runtime {runtime}"),
    };
    Self::TurnEnded { .. } => "turn_ended", "further ones follow";
    Self::Letter { from, .. } => "letter", match from {
        Some(from) => format!("from {from}"),
        None => "from the operator".to_owned(),
    };
    Self::Kept { name, value } => "kept", format!("{name}, {}", number::bytes(value.size));
    Self::ObservationOpened { number, task_type } => "observation_opened",
        format!("{number}, does a task of the type `{task_type}` itself");
    Self::ObservationClosed { number, success } => "observation_closed",
        format!("{number}, {}", if *success { "done" } else { "failed" });
    Self::Delivered { redelivered, .. } => "delivered",
        if *redelivered { "to its parent, again" } else { "to its parent" };
    Self::Undelivered { .. } => "undelivered",
        "its parent is over, or did not take the answer that it was in";
    Self::StrayEnded { pid, name } => "stray_ended",
        format!("process {pid} ({name}), which had left its run, was ended");
    Self::KeeperFailed { pid, found, error } => "keeper_failed", {
        let rest = match error {
            None => "; another one has taken its place".to_owned(),
            Some(error) => format!(", and there is no other: {error}"),
        };
        format!("the keeper, process {pid}, {found}{rest}")
    };
    Self::Removal { error } => "removal", match error {
        Some(error) => format!("its folder could not be removed: {error}"),
        None => "its folder is gone at last".to_owned(),
    };
}
