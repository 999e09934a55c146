//! One reservation, from the question until it is settled. Whatever happens to the request, its end tells the owner.

use std::sync::Arc;

use offshoot_model::RunId;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::ask::{Ask, RequestId, Reserve, Settle, Verdict};
use crate::bound::Bound;
use crate::known::Known;
use crate::price::PriceTable;
use crate::protocol::Protocol;
use crate::request::Part;
use crate::settle::{Charge, Ending};
use crate::usage::Report;

/// The data by which a request is settled. When this is dropped, the request is settled.
pub(crate) struct Reservation {
    pub(crate) asks: mpsc::UnboundedSender<Ask>,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) run: RunId,
    pub(crate) request: RequestId,
    pub(crate) protocol: Protocol,
    pub(crate) model: String,
    /// The most that the request can use and cost.
    pub(crate) bound: Bound,
    /// True while the owner holds something for the request, or may.
    pub(crate) is_open: bool,
    /// The ending, if the request were over now.
    pub(crate) ending: Ending,
    /// The use that was reported so far.
    pub(crate) report: Report,
    /// The limit of the answer, where it was shortened.
    pub(crate) shortened: Option<u64>,
    pub(crate) lesson: Option<Lesson>,
    /// The end of the run waits for this.
    pub(crate) _open: TaskTrackerToken,
}

/// The place where the tokens of the request are noted.
pub(crate) struct Lesson {
    pub(crate) known: Arc<Mutex<Known>>,
    pub(crate) parts: Vec<Part>,
}

impl Reservation {
    /// Asks the owner, whose answer may take a while; none where there is no owner any more. `is_last` says that no smaller bound follows, and `is_shortened`
    /// that a larger one was too much.
    pub(crate) async fn ask(&mut self, is_last: bool, is_shortened: bool) -> Option<Verdict> {
        let (answer, verdict) = oneshot::channel();
        let reserve = Reserve {
            run: self.run,
            request: self.request,
            protocol: self.protocol,
            model: self.model.clone(),
            bound: self.bound.clone(),
            is_last,
            is_shortened,
            answer,
        };
        self.is_open = true;
        if self.asks.send(Ask::Reserve(reserve)).is_err() {
            self.is_open = false;
            return None;
        }
        let verdict = verdict.await.ok();
        // Of what was not granted nothing is held.
        self.is_open = verdict == Some(Verdict::Granted);
        verdict
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let report = &self.report;
        let charge = Charge::of(&self.model, &self.bound, self.ending, report, |model| {
            self.prices.find(model)
        });
        tracing::debug!(
            request = self.request.0, ending = ?self.ending, tokens = charge.tokens.total(), dollars = ?charge.dollars,
            "a request is settled"
        );
        if let Some(excess) = charge.excess {
            tracing::warn!(
                request = self.request.0,
                model = self.model,
                ?excess,
                "a provider reported more than the bound"
            );
        }
        // With other models and rounds of tools the sum is not that of one reading.
        if report.input_known
            && report.others.is_empty()
            && let Some(lesson) = self.lesson.take()
        {
            lesson.known.lock().learn(&self.model, &lesson.parts, report.tokens.read());
        }
        let (run, request, ending) = (self.run, self.request, self.ending);
        let is_cut = ending == Ending::Answered
            && self.shortened.is_some_and(|limit| report.tokens.output >= limit);
        // Without an owner nothing is counted any more.
        let model = std::mem::take(&mut self.model);
        let _ = self.asks.send(Ask::Settle(Settle { run, request, model, ending, charge, is_cut }));
    }
}
