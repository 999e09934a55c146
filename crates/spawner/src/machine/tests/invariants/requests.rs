//! Invariants of requests to models: none leaves without its reservation, and each is charged once and no more than was reserved.

use offshoot_model::{RequestEnding, RunId, TokenCount, Usage};

use super::Ledger;

impl Ledger {
    pub(super) fn reserve_request(&mut self, run: RunId, request: u64, tokens: u64) {
        assert!(!self.stopping.contains(&run), "what is to stop asks no model any more");
        let before = self.requests.insert(request, (run, tokens));
        assert_eq!(before, None, "a request is reserved once");
    }

    pub(super) fn settle_request(
        &mut self,
        run: RunId,
        request: u64,
        ending: RequestEnding,
        usage: &Usage,
    ) {
        let reserved =
            self.requests.remove(&request).expect("it was reserved, and is charged once");
        let charged = usage.total().charged();
        assert_eq!(reserved.0, run, "it is charged to the run that has sent it");
        assert!(charged <= reserved.1, "no charge is above what was reserved");
        if ending == RequestEnding::Lost {
            assert_eq!(charged, reserved.1, "what is not known is charged at its bound");
            *self.seen.entry("request lost").or_default() += 1;
        }
        let so_far = TokenCount::Known(self.reported(run) + charged);
        self.spend(run, &Usage { input: so_far, ..Usage::default() });
        self.return_unused(run);
    }

    pub(super) fn assert_no_request_is_open(&self, run: RunId) {
        assert_eq!(self.held_for_requests(run), 0, "no request outlives its run");
    }

    /// The tokens that are held for the requests of a run.
    pub(super) fn held_for_requests(&self, run: RunId) -> u128 {
        let own = self.requests.values().filter(|(sender, _)| *sender == run);
        own.map(|(_, tokens)| u128::from(*tokens)).sum()
    }
}
