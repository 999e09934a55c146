//! The meter of one tree: agents ask their models through it, and the tree decides about each request.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_meter::{
    Ask, Charge, Ending, Meter, Options, Refusal, Refused, Reserve, Reset, Runs, Seen, Settle,
    Terms, Ticket, Tokens, Verdict, Wall, Window,
};
use offshoot_model::{
    Cost, ProcessIdentity, RequestEnding, RootId, RunId, Timestamp, TokenCount, Usage,
};
use offshoot_process::Identity;
use offshoot_runtime::{MeterPass, Pass};
use offshoot_spawner::{
    Agents, MeterOrder, ModelCharge, ModelRequest, RefusedRequest, RequestVerdict, SeenQuota,
    TicketIssuer, WallReset,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::metering::Metering;

/// A meter that listens, and answers once its tree is open.
#[derive(Debug)]
pub(crate) struct TreeMeter {
    meter: Meter,
    asks: mpsc::UnboundedReceiver<Ask>,
    desk: MeterDesk,
}

/// The place where runs are let in. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct MeterDesk {
    metering: Arc<Metering>,
    runs: Runs,
    address: Arc<str>,
    asks: mpsc::UnboundedSender<Ask>,
}

impl TreeMeter {
    /// Listens on a free port of this machine.
    pub(crate) async fn bind(metering: &Arc<Metering>) -> io::Result<Self> {
        let (sender, asks) = mpsc::unbounded_channel();
        let options = Options {
            prices: metering.prices.clone(),
            client: metering.client.clone(),
            ..Options::default()
        };
        let meter = Meter::open(options, sender.clone()).await?;
        let desk = MeterDesk {
            metering: Arc::clone(metering),
            runs: meter.runs(),
            address: format!("http://{}", meter.address()).into(),
            asks: sender,
        };
        Ok(Self { meter, asks, desk })
    }

    /// The place where runs are let in.
    pub(crate) fn desk(&self) -> MeterDesk {
        self.desk.clone()
    }

    /// Answers from now on, for as long as what is returned is kept. This tree decides.
    pub(crate) fn open(self, agents: Agents) -> JoinSet<()> {
        let Self { meter, asks, desk: _ } = self;
        let mut tasks = JoinSet::new();
        tasks.spawn(meter.serve());
        tasks.spawn(decide(asks, agents));
        tasks
    }
}

impl TicketIssuer for MeterDesk {
    /// Issues none: a desk lets runs in to the meter alone.
    fn issue(&self, _root: RootId, _run: RunId) -> Option<Pass> {
        None
    }

    /// Lets a run in that is about to start; none where its runtime is not metered.
    fn meter(&self, order: MeterOrder<'_>) -> Result<Option<MeterPass>, String> {
        let MeterOrder { run, runtime, left, allows_unknown_cost, pauses_at_cap } = order;
        let Some(metered) = self.metering.runtime(runtime) else { return Ok(None) };
        let metered = metered.as_ref().map_err(|error| format!("{error}; {}", error.hint()))?;
        // Without random numbers any ticket could be guessed.
        let no_ticket = |error| format!("it cannot be given a ticket for the meter: {error}");
        let ticket = Ticket::mint().map_err(no_ticket)?;
        let output_limit = left.usd.and_then(|usd| self.metering.output_limit(usd));
        let terms = Terms {
            // The dollars of a subscription are notional: what has no price is let through.
            dollars: left.usd.is_some() && !metered.own_login,
            allow_unknown_cost: allows_unknown_cost,
            allow_server_tools: false,
            output_limit,
            shortens: !pauses_at_cap,
            upstreams: metered.upstreams.clone(),
            plugin: metered.plugin_processes(),
        };
        self.runs.admit(run, &ticket, terms);
        Ok(Some(MeterPass {
            address: Arc::clone(&self.address),
            ticket: ticket.expose().into(),
            own_login: metered.own_login,
            key_variable: metered.key_variable.clone(),
            protocols: metered.protocols(),
            output_tokens: output_limit,
        }))
    }

    /// A run has started: its connections are those of this process.
    fn started(&self, run: RunId, process: Option<ProcessIdentity>) {
        let identity =
            |ProcessIdentity { pid, start_time, .. }: ProcessIdentity| Identity { pid, start_time };
        self.runs.started(run, process.map(identity));
    }

    /// A run is over. When this answers, the tree has been told the end of each of its requests.
    fn ended(&self, run: RunId) -> BoxFuture<'static, ()> {
        let Self { runs, asks, .. } = self.clone();
        async move {
            runs.end(run).await;
            let (told, taken) = oneshot::channel();
            if asks.send(Ask::Taken(told)).is_ok() {
                // Without a task that takes them nothing is counted any more.
                let _ = taken.await;
            }
        }
        .boxed()
    }
}

/// Hands each request to the tree, in the order in which they come.
async fn decide(mut asks: mpsc::UnboundedReceiver<Ask>, agents: Agents) {
    let mut waiting = JoinSet::new();
    loop {
        let ask = tokio::select! {
            biased;
            Some(_) = waiting.join_next() => continue,
            ask = asks.recv() => ask,
        };
        match ask {
            None => return,
            Some(Ask::Reserve(reserve)) => {
                let Reserve { run, request, model, bound, is_last, is_shortened, answer, .. } =
                    reserve;
                let asked = ModelRequest {
                    run,
                    request: request.0,
                    model: model.into(),
                    tokens: bound.tokens(),
                    usd: bound.dollars(),
                    is_last,
                    is_shortened,
                };
                let verdict = agents.request_asked(asked);
                waiting.spawn(async move {
                    // Dropped, the answer says that the tree is over. The program may have gone.
                    if let Ok(told) = verdict.await {
                        let _ = answer.send(verdict_of(told));
                    }
                });
            }
            Some(Ask::Settle(settle)) => agents.request_over(charge_of(settle)),
            Some(Ask::Refused(Refused { run, refusal })) => {
                let Refusal { code, message, .. } = refusal;
                agents.request_refused(RefusedRequest {
                    run,
                    code: code.into(),
                    message: message.into(),
                });
            }
            Some(Ask::Taken(told)) => drop(told.send(())),
            Some(Ask::Seen(seen)) => {
                tracing::debug!(run = %seen.run, state = ?seen.state, "limits of an account");
                quotas_of(seen).into_iter().for_each(|quota| agents.quota_seen(quota));
            }
        }
    }
}

fn verdict_of(told: RequestVerdict) -> Verdict {
    match told {
        RequestVerdict::Granted => Verdict::Granted,
        RequestVerdict::TooMuch(refusal) => Verdict::TooMuch(Refusal::from(&*refusal)),
        RequestVerdict::Refused(refusal) => Verdict::Refused(Refusal::from(&*refusal)),
    }
}

fn charge_of(settle: Settle) -> ModelCharge {
    let Settle { run, request, model, ending, charge, is_cut } = settle;
    let Charge { tokens, dollars, is_reported, .. } = charge;
    let Tokens { input, cache_read, cache_write, cache_write_hour, output } = tokens;
    let usage = Usage {
        input: TokenCount::Known(input),
        output: TokenCount::Known(output),
        cache_read: TokenCount::Known(cache_read),
        cache_write: TokenCount::Known(cache_write.saturating_add(cache_write_hour)),
    };
    // A provider that is overloaded, or has no room for the requests of this account.
    let is_pressure = matches!(ending, Ending::Declined(429 | 503 | 529));
    let ending = match ending {
        Ending::Answered => RequestEnding::Answered,
        Ending::Unreported => RequestEnding::Unreported,
        Ending::Broken => RequestEnding::Broken,
        Ending::Declined(_) => RequestEnding::Declined,
        Ending::NotSent => RequestEnding::NotSent,
    };
    // What was not reported is charged at its bound, and those dollars are none that the meter has counted.
    let known = if is_reported { Cost::metered } else { Cost::estimated };
    let cost = dollars.map_or_else(Cost::unknown, known);
    let (request, model) = (request.0, model.into());
    ModelCharge { run, request, model, ending, usage, cost, is_pressure, is_cut }
}

/// The quotas that an answer speaks of, with their resets: one that is used up, or what is left of each.
fn quotas_of(seen: Seen) -> Vec<SeenQuota> {
    let Seen { run, state, .. } = seen;
    let quota = |window: Option<&str>, reset: Option<Reset>, left| {
        // As the programs of the provider call it.
        let window = window.map(|window| match window {
            "5h" => "five_hour".into(),
            "7d" => "seven_day".into(),
            other => other.into(),
        });
        Some(SeenQuota { run, window, reset: reset_of(reset?)?, left })
    };
    if let Some(Wall { window, reset }) = &state.wall {
        return quota(window.as_deref(), *reset, None).into_iter().collect();
    }
    let left = |window: &Window| {
        let used = window.used.or_else(|| {
            let (limit, remaining) = (window.limit?, window.remaining?);
            Some(1.0 - remaining as f64 / limit.max(1) as f64)
        })?;
        // A cast of a float ends at its bounds.
        Some(((1.0 - used) * 1e6).round() as u32)
    };
    let windows = state.windows.iter();
    windows
        .filter_map(|(name, window)| quota(Some(name), window.reset, Some(left(window)?)))
        .collect()
}

fn reset_of(reset: Reset) -> Option<WallReset> {
    Some(match reset {
        Reset::At(seconds) => {
            let micros = u64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
            WallReset::At(Timestamp::from_micros(micros))
        }
        Reset::After(length) => WallReset::In(length),
    })
}

#[cfg(test)]
mod tests {
    use offshoot_meter::RequestId;

    use super::*;

    #[test]
    fn a_provider_that_has_too_much_to_do_is_told_from_one_that_refuses() {
        let is_pressure = |ending| {
            let charge = Charge::NOTHING;
            let run = RunId::from_bytes([1; 16]);
            let (request, model) = (RequestId(1), "m".to_owned());
            charge_of(Settle { run, request, model, ending, charge, is_cut: false }).is_pressure
        };
        let declined = [400, 401, 429, 500, 503, 529];
        let found = declined.map(|status| is_pressure(Ending::Declined(status)));
        assert_eq!(found, [false, false, true, false, true, true]);
        assert!(![Ending::Answered, Ending::Broken, Ending::NotSent].into_iter().any(is_pressure));
    }
}
