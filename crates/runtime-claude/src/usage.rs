//! What a session used, from what the program says. Pure.
//!
//! The program's totals are cumulative over the turns of a session and include what it started itself, so the last one
//! is taken and none is added. Between two results the calls to the model are counted as they come.

use offshoot_model::{Cost, MicroUsd, TokenCount, Usage};
use serde_json::Value;

/// Tokens of the four kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read, without what came from or went to the cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Read, and written to the cache.
    pub cache_write: u64,
}

/// A total as a result has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// None where the result says nothing.
    pub tokens: Option<Tokens>,
    /// None where the result says nothing, or no amount that can be.
    pub usd: Option<MicroUsd>,
}

/// The account of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// What the run had used before this process, where it goes on with a session.
    before: Option<Spent>,
    /// Whether the session was begun by somebody who is gone, and nobody knows what it had used.
    takes_up: bool,
    /// What that was, in so far as totals contain it: it was charged to whoever used it.
    foreign: Spent,
    /// Whether the process's totals begin at zero all the same; known after its first result.
    begins_at_zero: Option<bool>,
    /// The last total.
    last: Spent,
    /// Of calls since then.
    since: Tokens,
    /// What the call that runs has read.
    call: Option<Tokens>,
}

impl Tokens {
    /// The numbers of one call to the model, without what it wrote: that is not known when it begins.
    pub(crate) fn of_call(usage: &Value) -> Self {
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        Self {
            input: count("input_tokens"),
            output: 0,
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
        }
    }

    /// All four together.
    pub fn total(self) -> u64 {
        let Self { input, output, cache_read, cache_write } = self;
        [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add)
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            input: join(self.input, other.input),
            output: join(self.output, other.output),
            cache_read: join(self.cache_read, other.cache_read),
            cache_write: join(self.cache_write, other.cache_write),
        }
    }
}

impl Spent {
    /// From a result. Its `usage` leaves out what the session started itself, so it counts only where the table of
    /// models is missing.
    pub(crate) fn of_result(result: &Value) -> Self {
        let table = Self::of_models(&result["modelUsage"]).and_then(|spent| spent.tokens);
        let usage = &result["usage"];
        let own = || {
            let output = usage["output_tokens"].as_u64()?;
            Some(Tokens { output, ..Tokens::of_call(usage) })
        };
        let usd = result["total_cost_usd"].as_f64().and_then(MicroUsd::from_f64);
        Self { tokens: table.or_else(own), usd }
    }

    /// From a table with a row for each model.
    pub(crate) fn of_models(table: &Value) -> Option<Self> {
        let tokens = |row: &Value| {
            let count = |name: &str| row[name].as_u64().unwrap_or_default();
            Tokens {
                input: count("inputTokens"),
                output: count("outputTokens"),
                cache_read: count("cacheReadInputTokens"),
                cache_write: count("cacheCreationInputTokens"),
            }
        };
        let rows = || table.as_object().map(|rows| rows.values());
        let usd = |row: &Value| row["costUSD"].as_f64().and_then(MicroUsd::from_f64);
        Some(Self {
            tokens: Some(rows()?.map(tokens).fold(Tokens::default(), Tokens::plus)),
            usd: rows()?.map(usd).try_fold(MicroUsd::default(), |sum, usd| Some(sum + usd?)),
        })
    }

    fn minus(self, other: Self) -> Self {
        let usd = |total: MicroUsd| {
            let other = other.usd.unwrap_or_default().as_micros();
            MicroUsd::from_micros(total.as_micros().saturating_sub(other))
        };
        Self {
            tokens: self.tokens.map(|tokens| tokens.minus(other.tokens.unwrap_or_default())),
            usd: self.usd.map(usd),
        }
    }
}

impl Meter {
    /// The account of a session that goes on in a new process, after it had used this.
    pub fn resumed(before: Spent) -> Self {
        Self { before: Some(before), ..Self::default() }
    }

    /// The account of a session that somebody has begun who is gone. It counts from here.
    pub fn taken_up() -> Self {
        Self { takes_up: true, ..Self::default() }
    }

    /// The account of the same session in a further process.
    #[must_use]
    pub fn resume(self) -> Self {
        let before = Spent { tokens: Some(self.tokens()), usd: Some(self.usd()) };
        let Self { takes_up, foreign, .. } = self;
        Self { takes_up, foreign, ..Self::resumed(before) }
    }

    /// A call to the model has begun.
    pub fn call_began(&mut self, read: Tokens) {
        self.call_ended(None);
        self.call = Some(read);
    }

    /// It has ended.
    pub fn call_ended(&mut self, output: Option<u64>) {
        if let Some(read) = self.call.take() {
            let written = Tokens { output: output.unwrap_or_default(), ..read };
            self.since = self.since.plus(written);
        }
    }

    /// A result with its total, and what of it came since the last one.
    pub fn result(&mut self, total: Spent, since_last: Option<Spent>) {
        if std::mem::take(&mut self.takes_up) {
            self.foreign = since_last.map(|new| total.minus(new)).unwrap_or_default();
        }
        let since_last = since_last.and_then(|spent| spent.tokens);
        if let Some(before) = self.before {
            let foreign = self.foreign.tokens.unwrap_or_default();
            let before = before.tokens.unwrap_or_default().plus(foreign).total();
            // A total of old and new is more than the new alone. A program that does not tell the new apart began at
            // zero in every version that was looked at; were it not so, too much would be charged and not too little.
            let at_zero = || match (total.tokens, since_last) {
                (Some(total), Some(new)) => total.total() < new.total().saturating_add(before),
                _ => true,
            };
            self.begins_at_zero.get_or_insert_with(at_zero);
        }
        self.last = match self.begins_at_zero {
            Some(true) => total,
            _ => total.minus(self.foreign),
        };
        self.since = Tokens::default();
        self.call = None;
    }

    /// Tokens so far. None are known to be none.
    pub fn usage(&self) -> Usage {
        let Tokens { input, output, cache_read, cache_write } = self.tokens();
        Usage {
            input: TokenCount::Known(input),
            output: TokenCount::Known(output),
            cache_read: TokenCount::Known(cache_read),
            cache_write: TokenCount::Known(cache_write),
        }
    }

    /// Money so far, as far as the program has told.
    pub fn cost(&self) -> Cost {
        Cost::known(self.usd())
    }

    fn tokens(&self) -> Tokens {
        let last = self.last.tokens.unwrap_or_default();
        let own = last.plus(self.since).plus(self.call.unwrap_or_default());
        let earlier = self.earlier().and_then(|earlier| earlier.tokens);
        own.plus(earlier.unwrap_or_default())
    }

    fn usd(&self) -> MicroUsd {
        let earlier = self.earlier().and_then(|earlier| earlier.usd);
        self.last.usd.unwrap_or_default() + earlier.unwrap_or_default()
    }

    /// The account at the end. What calls after the last result have cost, if any, nobody can say.
    pub fn finish(&self, began: bool, ended_with_result: bool) -> (Usage, Cost) {
        let told = ended_with_result && self.last.tokens.is_some();
        let usage = if told || !began { self.usage() } else { Usage::UNKNOWN };
        let priced = ended_with_result && self.last.usd.is_some();
        let unknown_runs = u32::from(began && !priced);
        (usage, Cost { unknown_runs, ..self.cost() })
    }

    /// What this process's totals leave out. Before the first result they leave out everything.
    fn earlier(&self) -> Option<Spent> {
        self.before.filter(|_| self.begins_at_zero != Some(false))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Tokens {
        Tokens { input, output, cache_read, cache_write }
    }

    fn spent(tokens: Tokens, micros: u64) -> Spent {
        Spent { tokens: Some(tokens), usd: Some(MicroUsd::from_micros(micros)) }
    }

    fn known(meter: &Meter) -> (u64, u64) {
        let total = meter.usage().total().known().expect("everything was told");
        (total, meter.cost().known_usd.as_micros())
    }

    #[test]
    fn a_result_has_one_total() {
        let row = |n: u64| {
            json!({"inputTokens": n, "outputTokens": 2 * n, "cacheReadInputTokens": 3 * n,
                   "cacheCreationInputTokens": 4 * n, "webSearchRequests": 9})
        };
        let own = json!({"input_tokens": 7, "output_tokens": 8, "cache_read_input_tokens": 9});
        for (result, expected) in [
            (
                json!({"modelUsage": {"a": row(1), "b": row(10)}, "usage": own}),
                Some(tokens(11, 22, 33, 44)),
            ),
            (json!({"modelUsage": {}, "usage": own}), Some(Tokens::default())),
            (json!({"usage": own}), Some(tokens(7, 8, 9, 0))),
            (json!({"usage": {}}), None),
            (json!({}), None),
        ] {
            assert_eq!(Spent::of_result(&result).tokens, expected, "{result}");
        }
        for (cost, micros) in [(json!(0.00042), Some(420)), (json!(-1), None), (json!("x"), None)] {
            let found = Spent::of_result(&json!({"total_cost_usd": cost})).usd;
            assert_eq!(found.map(MicroUsd::as_micros), micros, "{cost}");
        }
    }

    #[test]
    fn the_last_total_is_taken_and_none_is_added() {
        let mut meter = Meter::default();
        meter.result(spent(tokens(10, 5, 0, 0), 140), None);
        meter.result(spent(tokens(20, 10, 0, 0), 280), None);
        assert_eq!(known(&meter), (30, 280));
    }

    #[test]
    fn calls_count_until_their_result_comes() {
        let mut meter = Meter::default();
        meter.call_began(tokens(10, 0, 0, 0));
        assert_eq!(known(&meter), (10, 0));
        meter.call_ended(Some(5));
        meter.call_ended(Some(5));
        assert_eq!(known(&meter), (15, 0), "one call ends once");
        meter.call_began(tokens(20, 0, 1, 0));
        meter.call_began(tokens(30, 0, 0, 0));
        assert_eq!(known(&meter), (66, 0), "one that broke off has read all the same");
        meter.result(spent(tokens(60, 6, 1, 0), 9), None);
        assert_eq!(known(&meter), (67, 9));
    }

    #[test]
    fn a_session_that_goes_on_is_charged_once() {
        let before = spent(tokens(20, 10, 0, 0), 280);
        let new = spent(tokens(10, 5, 0, 0), 140);
        let check = |total: Spent, since_last, expected| {
            let mut meter = Meter::resumed(before);
            assert_eq!(known(&meter), (30, 280), "before anything is told");
            meter.result(total, since_last);
            assert_eq!(known(&meter), expected, "{total:?} {since_last:?}");
        };
        check(spent(tokens(30, 15, 0, 0), 420), Some(new), (45, 420));
        check(new, Some(new), (45, 420));
        check(new, None, (45, 420));
        // The second result of the same process is read as the first was.
        let mut meter = Meter::resumed(before);
        meter.result(new, Some(new));
        meter.result(spent(tokens(60, 30, 0, 0), 840), Some(spent(tokens(50, 25, 0, 0), 700)));
        assert_eq!(known(&meter), (120, 1120));
    }

    #[test]
    fn a_session_may_go_on_more_than_once() {
        let (turn, twice) = (spent(tokens(10, 5, 0, 0), 140), spent(tokens(20, 10, 0, 0), 280));
        let mut meter = Meter::default();
        meter.result(turn, None);
        let mut meter = meter.resume();
        assert_eq!(known(&meter), (15, 140));
        // Its totals go on from the saved one; those of the next process begin at zero.
        meter.result(twice, Some(turn));
        let mut meter = meter.resume();
        assert_eq!(known(&meter), (30, 280));
        meter.result(turn, Some(turn));
        assert_eq!(known(&meter), (45, 420));
    }

    #[test]
    fn what_somebody_else_has_used_is_not_charged_again() {
        let (turn, four) = (spent(tokens(10, 5, 0, 0), 140), spent(tokens(40, 20, 0, 0), 560));
        let five = spent(tokens(50, 25, 0, 0), 700);
        let mut meter = Meter::taken_up();
        assert_eq!(known(&meter), (0, 0));
        meter.result(four, Some(turn));
        assert_eq!(known(&meter), (15, 140), "three of the four were somebody else's");
        let mut again = meter.resume();
        again.result(five, Some(turn));
        assert_eq!(known(&again), (30, 280), "and still are in another process");
        let mut at_zero = meter.resume();
        at_zero.result(turn, Some(turn));
        assert_eq!(known(&at_zero), (30, 280), "where totals begin at zero too");
    }

    #[test]
    fn what_nobody_told_is_unknown() {
        let mut meter = Meter::default();
        let zero = (Usage::default(), Cost::NONE);
        assert_eq!(meter.finish(false, false), zero, "nothing was ever asked");
        assert_eq!(meter.finish(true, false), (Usage::UNKNOWN, Cost::unknown()));
        meter.result(spent(tokens(10, 5, 0, 0), 140), None);
        let (usage, cost) = meter.finish(true, false);
        assert_eq!(usage, Usage::UNKNOWN, "a second turn died");
        assert_eq!((cost.known_usd.as_micros(), cost.unknown_runs), (140, 1));
        assert_eq!(meter.finish(true, true).1, Cost::known(MicroUsd::from_micros(140)));
        meter.result(Spent::default(), None);
        assert_eq!(meter.finish(true, true), (Usage::UNKNOWN, Cost::unknown()));
    }
}
