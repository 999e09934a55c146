//! The usage of a session, from the lines of the program. Pure.
//!
//! The program's totals are cumulative over the turns of a session and include what it started itself, so the last one
//! is taken and none is added. A result has one, and the program tells it at any moment when it is asked. Between two totals
//! the calls to the model are counted as they come.

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
    /// The usage of the run before this process, where it continues a session.
    before: Spent,
    /// The total with which this process began: that of the session, where the program keeps it. It was charged already.
    baseline: Spent,
    /// The last total of this process.
    last: Spent,
    /// Of calls since then.
    since: Tokens,
    /// The tokens that the current call has read.
    call: Option<Tokens>,
    /// True if the last result had no total of tokens, or one that cannot be right.
    lacks_tokens: bool,
    /// The same of the money.
    lacks_usd: bool,
}

impl Tokens {
    /// The numbers of one call to the model, without what it wrote: that is not known when it begins. None where one of
    /// them is no count.
    pub(crate) fn of_call(usage: &Value) -> Option<Self> {
        Some(Self {
            input: count(&usage["input_tokens"])?,
            output: 0,
            cache_read: count(&usage["cache_read_input_tokens"])?,
            cache_write: count(&usage["cache_creation_input_tokens"])?,
        })
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
            let output =
                usage["output_tokens"].as_u64().filter(|&count| count <= TokenCount::MAX)?;
            Some(Tokens { output, ..Tokens::of_call(usage)? })
        };
        let usd = result["total_cost_usd"].as_f64().and_then(MicroUsd::from_f64);
        let tokens = if result["modelUsage"].is_object() { table } else { own() };
        Self { tokens, usd }
    }

    /// From the answer to a request for the usage of the session; none where it has none.
    pub(crate) fn of_session(session: &Value) -> Option<Self> {
        let tokens = Self::of_models(&session["model_usage"])?.tokens;
        let usd = session["total_cost_usd"].as_f64().and_then(MicroUsd::from_f64);
        Some(Self { tokens, usd })
    }

    /// From a table with a row for each model. Without tokens where one of its numbers is no count.
    fn of_models(table: &Value) -> Option<Self> {
        let tokens = |row: &Value| {
            Some(Tokens {
                input: count(&row["inputTokens"])?,
                output: count(&row["outputTokens"])?,
                cache_read: count(&row["cacheReadInputTokens"])?,
                cache_write: count(&row["cacheCreationInputTokens"])?,
            })
        };
        let mut rows = table.as_object()?.values().map(tokens);
        let tokens = rows.try_fold(Tokens::default(), |sum, row| Some(sum.plus(row?)));
        Some(Self { tokens, usd: None })
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

/// A number of tokens, which is zero where it is left out and none where it cannot be one.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Null => Some(0),
        value => value.as_u64().filter(|&count| count <= TokenCount::MAX),
    }
}

impl Meter {
    /// The account of the same session in a further process.
    #[must_use]
    pub fn resume(self) -> Self {
        let before = Spent { tokens: Some(self.tokens()), usd: Some(self.usd()) };
        Self { before, ..Self::default() }
    }

    /// The total with which a process begins, before its first call: zero of a new session, and of one that goes on what
    /// the program has kept of it, which is not the same in all its versions.
    pub fn begins_at(&mut self, total: Spent) {
        self.baseline = total;
    }

    /// A call to the model has begun.
    pub fn call_began(&mut self, read: Tokens) {
        self.call_ended(None);
        self.call = Some(read);
    }

    /// A call has ended.
    pub fn call_ended(&mut self, output: Option<u64>) {
        if let Some(read) = self.call.take() {
            let written = Tokens { output: output.unwrap_or_default(), ..read };
            self.since = self.since.plus(written);
        }
    }

    /// A total, which contains each call that has ended.
    pub fn total(&mut self, total: Spent) {
        let Spent { tokens, usd } = total.minus(self.baseline);
        if tokens.is_some() {
            self.since = Tokens::default();
        }
        self.last = Spent { tokens: tokens.or(self.last.tokens), usd: usd.or(self.last.usd) };
    }

    /// The total of a turn that is over, and with it each of its calls.
    pub fn result(&mut self, total: Spent) {
        self.total(total);
        (self.lacks_tokens, self.lacks_usd) = (total.tokens.is_none(), total.usd.is_none());
        match total.tokens {
            Some(_) => self.call = None,
            None => self.call_ended(None),
        }
    }

    /// Tokens so far. None are known to be none.
    pub fn usage(&self) -> Usage {
        let Tokens { input, output, cache_read, cache_write } = self.tokens();
        Usage {
            input: TokenCount::reported(input),
            output: TokenCount::reported(output),
            cache_read: TokenCount::reported(cache_read),
            cache_write: TokenCount::reported(cache_write),
        }
    }

    /// Money so far, as far as the program has told.
    pub fn cost(&self) -> Cost {
        Cost::known(self.usd())
    }

    fn tokens(&self) -> Tokens {
        let last = self.last.tokens.unwrap_or_default();
        let own = last.plus(self.since).plus(self.call.unwrap_or_default());
        own.plus(self.before.tokens.unwrap_or_default())
    }

    fn usd(&self) -> MicroUsd {
        self.last.usd.unwrap_or_default() + self.before.usd.unwrap_or_default()
    }

    /// The account at the end. What calls after the last result have used, if any, is not known: then it is a lower bound.
    pub fn finish(&self, began: bool, ended_with_result: bool) -> (Usage, Cost) {
        let told = ended_with_result && !self.lacks_tokens;
        let usage = if told || !began { self.usage() } else { self.usage().cut_off() };
        let priced = ended_with_result && !self.lacks_usd;
        let unknown_runs = u32::from(began && !priced);
        (usage, Cost { unknown_runs, ..self.cost() })
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
    fn a_count_that_cannot_be_is_unknown() {
        let check = |value: Value, is_known: bool| {
            let row = json!({"inputTokens": value, "outputTokens": 1});
            let session = json!({"model_usage": {"a": row}, "total_cost_usd": 0.5});
            let told = Spent::of_session(&session).expect("a table");
            assert_eq!(told.tokens.is_some(), is_known, "{value}");
            assert_eq!(told.usd.map(MicroUsd::as_micros), Some(500_000));
            let usage = json!({"input_tokens": value, "output_tokens": 1});
            assert_eq!(Tokens::of_call(&usage).is_some(), is_known, "{value}");
            let result = Spent::of_result(&json!({"modelUsage": {"a": row}, "usage": {}}));
            assert_eq!(result.tokens.is_some(), is_known, "{value}");
        };
        check(json!(7), true);
        check(json!(null), true);
        for value in [json!(-1), json!(1.5), json!("7"), json!(u64::MAX), json!([])] {
            check(value, false);
        }
    }

    #[test]
    fn the_last_total_is_taken_and_none_is_added() {
        let mut meter = Meter::default();
        meter.result(spent(tokens(10, 5, 0, 0), 140));
        meter.result(spent(tokens(20, 10, 0, 0), 280));
        assert_eq!(known(&meter), (30, 280));
    }

    #[test]
    fn calls_count_until_a_total_has_them() {
        let mut meter = Meter::default();
        meter.call_began(tokens(10, 0, 0, 0));
        assert_eq!(known(&meter), (10, 0));
        meter.call_ended(Some(5));
        meter.call_ended(Some(5));
        assert_eq!(known(&meter), (15, 0), "one call ends once");
        meter.total(spent(tokens(10, 5, 0, 0), 140));
        assert_eq!(known(&meter), (15, 140), "in the middle of a turn");
        meter.call_began(tokens(20, 0, 1, 0));
        meter.total(spent(tokens(10, 5, 0, 0), 140));
        assert_eq!(known(&meter), (36, 140), "the call that runs is in no total");
        meter.call_began(tokens(30, 0, 0, 0));
        assert_eq!(known(&meter), (66, 140), "one that broke off has read all the same");
        meter.result(spent(tokens(60, 6, 1, 0), 900));
        assert_eq!(known(&meter), (67, 900));
    }

    #[test]
    fn a_session_that_goes_on_is_charged_once() {
        let (turn, twice) = (spent(tokens(10, 5, 0, 0), 140), spent(tokens(20, 10, 0, 0), 280));
        let zero = Spent { tokens: Some(Tokens::default()), usd: Some(MicroUsd::default()) };
        let mut meter = Meter::default();
        meter.begins_at(zero);
        meter.result(turn);
        let meter = meter.resume();
        assert_eq!(known(&meter), (15, 140), "before anything is told");
        // One version keeps the total of a session, another begins at zero.
        for (baseline, total) in [(turn, twice), (zero, turn)] {
            let mut meter = meter;
            meter.begins_at(baseline);
            meter.call_began(tokens(10, 0, 0, 0));
            assert_eq!(known(&meter), (25, 140), "{baseline:?}");
            meter.result(total);
            assert_eq!(known(&meter), (30, 280), "{baseline:?}");
            assert_eq!(known(&meter.resume()), (30, 280), "{baseline:?}");
        }
    }

    #[test]
    fn usage_of_another_process_is_not_charged_again() {
        let mut meter = Meter::default();
        meter.begins_at(spent(tokens(30, 15, 0, 0), 420));
        assert_eq!(known(&meter), (0, 0));
        meter.result(spent(tokens(40, 20, 0, 0), 560));
        assert_eq!(known(&meter), (15, 140));
    }

    #[test]
    fn what_was_not_told_is_unknown_and_what_was_is_a_lower_bound() {
        let mut meter = Meter::default();
        let zero = (Usage::default(), Cost::NONE);
        assert_eq!(meter.finish(false, false), zero, "nothing was ever asked");
        assert_eq!(meter.finish(true, false), (Usage::UNKNOWN, Cost::unknown()));
        meter.result(spent(tokens(10, 5, 0, 0), 140));
        let (usage, cost) = meter.finish(true, false);
        assert_eq!(usage.total(), TokenCount::AtLeast(15), "a second turn died");
        assert_eq!((cost.known_usd.as_micros(), cost.unknown_runs), (140, 1));
        assert_eq!(meter.finish(true, true).1, Cost::known(MicroUsd::from_micros(140)));
        meter.result(Spent::default());
        let (usage, cost) = meter.finish(true, true);
        assert_eq!(usage.total(), TokenCount::AtLeast(15), "a result without numbers");
        assert_eq!((cost.known_usd.as_micros(), cost.unknown_runs), (140, 1));
    }
}
