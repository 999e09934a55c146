//! The usage of a run, from the answers of the endpoint. Pure.

use offshoot_model::{Cost, MicroUsd, TokenCount, Usage};
use serde::Deserialize;
use serde_json::Value;

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read, without what came from a cache.
    pub input: u64,
    /// Written by the model, what it thought included.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Read and written to a cache.
    pub cache_write: u64,
}

/// The price of a model's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    /// Dollars for a million tokens read.
    pub input_per_million: MicroUsd,
    /// For a million written.
    pub output_per_million: MicroUsd,
    /// For a million read from a cache; as others where absent.
    #[serde(default)]
    pub cache_read_per_million: Option<MicroUsd>,
    /// For a million that were read and written to a cache; as others where absent.
    #[serde(default)]
    pub cache_write_per_million: Option<MicroUsd>,
}

/// The knowledge of the price of a run's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pricing {
    /// Calls cost nothing.
    Free,
    /// So much.
    Known(Price),
    /// The price is not known.
    Unknown,
}

/// The account of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    /// Of the model that is asked now.
    pricing: Pricing,
    usage: Usage,
    cost: Cost,
    /// The most that a call has used that was asked for and is not accounted for.
    open: Option<Bound>,
}

impl Tokens {
    /// From the `usage` of an answer; none where there is none, or one of its numbers cannot be a count.
    pub fn of(usage: &Value) -> Option<Self> {
        // No request is without a token, and a number that is left out says nothing.
        let prompt = usage.get("prompt_tokens").and_then(count).filter(|prompt| *prompt > 0)?;
        let total = said(usage, "total_tokens")?.map(|total| total.saturating_sub(prompt));
        // Some services leave what a model thought out of what it wrote, and have it in the total.
        let thought = said(&usage["completion_tokens_details"], "reasoning_tokens")?;
        let output = said(usage, "completion_tokens")?.or(total)?;
        let output = output.max(total.unwrap_or(0)).max(thought.unwrap_or(0));
        let details = &usage["prompt_tokens_details"];
        let cached = count(&details["cached_tokens"])?.min(prompt);
        // The name differs among services that put others behind one endpoint.
        let names = ["cache_write_tokens", "cache_creation_tokens"];
        let written = names.into_iter().find_map(|name| details.get(name));
        let written = written.map_or(Some(0), count)?.min(prompt - cached);
        Some(Self {
            input: prompt - cached - written,
            output,
            cache_read: cached,
            cache_write: written,
        })
    }

    fn usage(self) -> Usage {
        let Self { input, output, cache_read, cache_write } = self;
        Usage {
            input: TokenCount::Known(input),
            output: TokenCount::Known(output),
            cache_read: TokenCount::Known(cache_read),
            cache_write: TokenCount::Known(cache_write),
        }
    }

    /// Returns the tokens of the conversation after this call.
    pub(crate) fn context(self) -> u64 {
        let Self { input, output, cache_read, cache_write } = self;
        [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add)
    }
}

/// The number of this name, within which none stands for one that is left out; none where it cannot be a number of tokens.
fn said(numbers: &Value, name: &str) -> Option<Option<u64>> {
    match numbers.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(number) => count(number).map(Some),
    }
}

/// A number of tokens, which is zero where it is left out and none where it cannot be one.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Null => Some(0),
        value => value.as_u64().filter(|&count| count <= TokenCount::MAX),
    }
}

impl Price {
    /// Rounded up to the next millionth of a dollar: an estimate that errs, errs upwards.
    fn of(self, tokens: Tokens) -> MicroUsd {
        let Tokens { input, output, cache_read, cache_write } = tokens;
        let written = self.cache_write_per_million.unwrap_or(self.input_per_million);
        let cached = self.cache_read_per_million.unwrap_or(self.input_per_million);
        let rows = [
            (input, self.input_per_million),
            (output, self.output_per_million),
            (cache_read, cached),
            (cache_write, written),
        ];
        let parts = rows.map(|(count, price)| u128::from(count) * u128::from(price.as_micros()));
        let micros = parts.into_iter().sum::<u128>().div_ceil(1_000_000);
        MicroUsd::from_micros(micros.try_into().unwrap_or(u64::MAX))
    }

    /// The price where it is not known if what is read goes into a cache.
    fn at_most(self) -> Self {
        let written = self.cache_write_per_million.unwrap_or_default();
        Self { input_per_million: self.input_per_million.max(written), ..self }
    }
}

/// The most that a call can have used, where the endpoint does not say what it used: no token is shorter than a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The numbers of tokens.
    pub(crate) tokens: Tokens,
    /// True if it cannot have been more. A model that may think as long as it likes may have written more than came.
    pub(crate) is_whole: bool,
}

impl Bound {
    /// Returns the usage of a call of which nothing more is known.
    fn usage(self) -> Usage {
        let Tokens { input, output, .. } = self.tokens;
        Usage {
            input: TokenCount::estimated(input),
            output: TokenCount::estimated(output),
            // What is read from a cache, or written to one, stands in the input.
            ..Usage::default()
        }
    }
}

impl Pricing {
    /// Of one call. Without numbers it is what the call can have used at most.
    fn of(self, tokens: Option<Tokens>, bound: Bound) -> Cost {
        let estimated =
            |tokens, price: Price| Cost { estimated_usd: price.of(tokens), ..Cost::NONE };
        match (self, tokens) {
            (Self::Free, _) => Cost::NONE,
            (Self::Known(price), Some(tokens)) => estimated(tokens, price),
            (Self::Known(price), None) => {
                let unknown_runs = u32::from(!bound.is_whole);
                Cost { unknown_runs, ..estimated(bound.tokens, price.at_most()) }
            }
            (Self::Unknown, _) => Cost::unknown(),
        }
    }
}

impl Meter {
    pub(crate) fn new(pricing: Pricing) -> Self {
        Self { pricing, usage: Usage::default(), cost: Cost::NONE, open: None }
    }

    /// Another model is asked from now on.
    pub(crate) fn goes_on_with(&mut self, pricing: Pricing) {
        self.pricing = pricing;
    }

    /// A call was sent. Where it is given up, it is charged what it can have used.
    pub(crate) fn call_began(&mut self, bound: Bound) {
        self.open = Some(bound);
    }

    /// The call was refused before the model saw it.
    pub(crate) fn call_refused(&mut self) {
        self.open = None;
    }

    /// Ends a call. Without numbers it is charged what it can have used.
    pub(crate) fn call_ended(&mut self, tokens: Option<Tokens>, bound: Bound) {
        self.open = None;
        (self.usage, self.cost) = self.with(tokens, bound);
    }

    /// Tokens so far. A call that is under way, or was given up, is charged what it can have used.
    pub(crate) fn usage(&self) -> Usage {
        self.open.map_or(self.usage, |bound| self.with(None, bound).0)
    }

    /// Money so far.
    pub(crate) fn cost(&self) -> Cost {
        self.open.map_or(self.cost, |bound| self.with(None, bound).1)
    }

    /// Returns what was used together with one more call.
    fn with(&self, tokens: Option<Tokens>, bound: Bound) -> (Usage, Cost) {
        let usage = tokens.map_or_else(|| bound.usage(), Tokens::usage);
        (self.usage + usage, plus(self.cost, self.pricing.of(tokens, bound)))
    }
}

/// Adds the costs of two calls of one run: unknown costs count as one run, however many calls they are of.
fn plus(one: Cost, other: Cost) -> Cost {
    let both = one + other;
    Cost { unknown_runs: both.unknown_runs.min(1), ..both }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOTHING: Tokens = Tokens { input: 0, output: 0, cache_read: 0, cache_write: 0 };

    /// Ten thousand bytes went, and the model may have thought longer than it wrote.
    const BOUND: Bound =
        Bound { tokens: Tokens { input: 10_000, output: 1_000, ..NOTHING }, is_whole: false };

    fn tokens(input: u64, output: u64) -> Option<Tokens> {
        Some(Tokens { input, output, ..NOTHING })
    }

    #[test]
    fn tokens_of_an_answer() {
        for (usage, expected) in [
            (json!({"prompt_tokens": 9, "completion_tokens": 2}), Some((9, 2, 0))),
            (
                json!({"prompt_tokens": 9, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 4}}),
                Some((5, 2, 4)),
            ),
            (
                json!({"prompt_tokens": 1, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 4}}),
                Some((0, 0, 1)),
            ),
            (
                json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 100}),
                Some((1, 99, 0)),
            ),
            (
                json!({"prompt_tokens": 1, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 50}}),
                Some((1, 50, 0)),
            ),
            (json!({"prompt_tokens": 9}), None),
            (json!({"prompt_tokens": 9, "completion_tokens": null}), None),
            (json!({"prompt_tokens": null, "completion_tokens": null}), None),
            (json!({"prompt_tokens": 0, "completion_tokens": 0}), None),
            (json!({}), None),
            (json!(null), None),
            (json!({"prompt_tokens": -3, "completion_tokens": 2}), None),
            (json!({"prompt_tokens": 9, "completion_tokens": -2}), None),
            (json!({"prompt_tokens": 9, "completion_tokens": 2.5}), None),
            (json!({"prompt_tokens": "9"}), None),
            (json!({"prompt_tokens": 9, "completion_tokens": u64::MAX}), None),
            (
                json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": "4"}}),
                None,
            ),
        ] {
            let found = Tokens::of(&usage);
            let found = found.map(|tokens| (tokens.input, tokens.output, tokens.cache_read));
            assert_eq!(found, expected, "{usage}");
        }
    }

    #[test]
    fn what_was_written_to_a_cache_has_a_price_of_its_own() {
        let usd = |text: &str| text.parse::<MicroUsd>().expect("dollars");
        let price = Price {
            input_per_million: usd("3"),
            cache_write_per_million: Some(usd("3.75")),
            ..Price::default()
        };
        for name in ["cache_write_tokens", "cache_creation_tokens"] {
            let details = json!({"cached_tokens": 2_000, name: 4_000});
            let usage = json!({"prompt_tokens": 7_000, "completion_tokens": 0, "prompt_tokens_details": details});
            let tokens = Tokens::of(&usage).expect("they are counts");
            assert_eq!((tokens.input, tokens.cache_read, tokens.cache_write), (1000, 2000, 4000));
            let mut meter = Meter::new(Pricing::Known(price));
            meter.call_ended(Some(tokens), BOUND);
            assert_eq!(meter.usage().cache_write.known(), Some(4000));
            assert_eq!(meter.cost().estimated_usd, MicroUsd::from_micros(3 * 3000 + 15_000));
        }
        // Where nothing was said, all of it may have been written.
        let mut meter = Meter::new(Pricing::Known(price));
        meter.call_ended(None, BOUND);
        assert_eq!(meter.cost().estimated_usd, MicroUsd::from_micros(37_500));
    }

    #[test]
    fn calls_add_up_and_one_that_is_unknown_stays_so() {
        let mut meter = Meter::new(Pricing::Free);
        meter.call_began(BOUND);
        assert_eq!(meter.usage().total(), TokenCount::Estimated(11_000), "it may be given up now");
        meter.call_ended(tokens(10, 5), BOUND);
        meter.call_began(BOUND);
        meter.call_refused();
        meter.call_began(BOUND);
        meter.call_ended(tokens(1, 1), BOUND);
        assert_eq!(meter.usage().total().known(), Some(17));
        meter.call_ended(None, BOUND);
        meter.call_ended(tokens(1, 1), BOUND);
        assert_eq!(meter.usage().total(), TokenCount::Estimated(11_019));
        assert_eq!(meter.cost(), Cost::NONE);
    }

    #[test]
    fn what_it_cost() {
        let usd = |text: &str| text.parse::<MicroUsd>().expect("dollars");
        let price = Price {
            input_per_million: usd("0.15"),
            output_per_million: usd("0.6"),
            cache_read_per_million: Some(usd("0.075")),
            cache_write_per_million: None,
        };
        let mut meter = Meter::new(Pricing::Known(price));
        assert_eq!(meter.cost(), Cost::NONE, "nothing was asked for");
        meter.call_began(BOUND);
        meter.call_ended(
            Some(Tokens { input: 1000, output: 100, cache_read: 1000, ..NOTHING }),
            BOUND,
        );
        assert_eq!(meter.cost().estimated_usd, MicroUsd::from_micros(150 + 60 + 75));
        meter.goes_on_with(Pricing::Free);
        meter.call_ended(tokens(1000, 1000), BOUND);
        let known = Cost { estimated_usd: MicroUsd::from_micros(285), ..Cost::NONE };
        assert_eq!(meter.cost(), known);
        meter.goes_on_with(Pricing::Known(price));
        meter.call_ended(None, Bound { is_whole: true, ..BOUND });
        let bounded = Cost { estimated_usd: MicroUsd::from_micros(285 + 2100), ..Cost::NONE };
        assert_eq!(meter.cost(), bounded, "never free");
        meter.call_ended(None, Bound::default());
        meter.call_ended(None, Bound::default());
        assert_eq!(
            meter.cost(),
            Cost { unknown_runs: 1, ..bounded },
            "one run, however many calls"
        );
        let mut unknown = Meter::new(Pricing::Unknown);
        assert_eq!(unknown.cost(), Cost::NONE);
        unknown.call_began(BOUND);
        unknown.call_refused();
        assert_eq!(unknown.cost(), Cost::NONE, "the model never saw it");
        unknown.call_began(BOUND);
        unknown.call_ended(tokens(1, 1), BOUND);
        assert_eq!(unknown.cost(), Cost::unknown());
    }
}
