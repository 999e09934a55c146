//! The prices of models, and what tokens cost by them. Pure.

use std::collections::HashMap;

use offshoot_config::Price as Configured;
use offshoot_model::MicroUsd;

/// Tokens by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tokens {
    /// Read, without those of a cache.
    pub input: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Read, and written to a cache for some minutes.
    pub cache_write: u64,
    /// Read, and written to a cache for an hour.
    pub cache_write_hour: u64,
    /// Written by the model, what it thought included.
    pub output: u64,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// For tokens read.
    pub input: MicroUsd,
    /// For tokens written by the model.
    pub output: MicroUsd,
    /// For tokens read from a cache.
    pub cache_read: MicroUsd,
    /// For tokens written to a cache for some minutes.
    pub cache_write: MicroUsd,
    /// For tokens written to a cache for an hour.
    pub cache_write_hour: MicroUsd,
}

/// Other rates for requests that read much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongContext {
    /// Requests that read more tokens than this have these rates.
    pub above: u64,
    /// The rates, of all tokens of such a request.
    pub rates: Rates,
}

/// A number by which prices are multiplied for a way of being served, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u64);

/// The price of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPrice {
    /// The rates of an ordinary request.
    pub rates: Rates,
    /// The rates of one that reads much.
    pub long: Option<LongContext>,
    /// The factor of requests that go before others.
    pub priority: Option<Factor>,
    /// The factor of a faster answer.
    pub fast: Option<Factor>,
    /// The factor of requests that may wait.
    pub flex: Option<Factor>,
    /// The factor of requests that stay in one region.
    pub region: Option<Factor>,
    /// The most that the model writes into one answer.
    pub max_output: Option<u64>,
    /// The most that it reads and writes.
    pub context_window: Option<u64>,
    /// True if the provider may write to its cache what no request asks it to, and charges for that.
    pub caches_unasked: bool,
    /// The price of one use of a tool that the provider runs, by the tool's family.
    pub server_tools: HashMap<&'static str, MicroUsd>,
}

/// The prices of all models that have one.
#[derive(Clone, Debug, Default)]
pub struct PriceTable(HashMap<String, ModelPrice>);

/// The way in which a request was served, where that changes its price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The request went before others.
    pub priority: bool,
    /// The request could wait.
    pub flex: bool,
    /// The request was answered faster.
    pub fast: bool,
    /// The request stayed in one region.
    pub region: bool,
}

impl Tokens {
    /// All that the model read.
    pub fn read(&self) -> u64 {
        let parts = [self.input, self.cache_read, self.cache_write, self.cache_write_hour];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// All together, which is what a budget of tokens counts.
    pub fn total(&self) -> u64 {
        self.read().saturating_add(self.output)
    }

    /// Returns the larger of each two counts.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    /// Returns the sum of each two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            input: of(self.input, other.input),
            cache_read: of(self.cache_read, other.cache_read),
            cache_write: of(self.cache_write, other.cache_write),
            cache_write_hour: of(self.cache_write_hour, other.cache_write_hour),
            output: of(self.output, other.output),
        }
    }
}

impl Rates {
    /// Rates that are written as two, the others being what providers usually take: nothing less for what comes from a cache, and for
    /// what is written to one a quarter more, or twice as much for an hour.
    pub fn of(input: MicroUsd, output: MicroUsd) -> Self {
        let times = |percent: u64| {
            MicroUsd::from_micros(input.as_micros().saturating_mul(percent).div_ceil(100))
        };
        Self {
            input,
            output,
            cache_read: input,
            cache_write: times(125),
            cache_write_hour: times(200),
        }
    }

    /// Micro-dollars times a million.
    fn weigh(&self, tokens: &Tokens) -> u128 {
        let rows = [
            (tokens.input, self.input),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
            (tokens.cache_write_hour, self.cache_write_hour),
            (tokens.output, self.output),
        ];
        let parts = rows.map(|(count, rate)| u128::from(count) * u128::from(rate.as_micros()));
        parts.into_iter().fold(0, u128::saturating_add)
    }
}

impl Factor {
    const ONE: u64 = 1_000_000;

    /// From millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    fn of(self, amount: u128) -> u128 {
        amount.saturating_mul(self.0.into()).div_ceil(Self::ONE.into())
    }
}

impl ModelPrice {
    /// A price without anything that depends on how a request is served.
    pub fn flat(rates: Rates) -> Self {
        Self { rates, ..Self::default() }
    }

    /// The cost of these tokens as they were served, rounded up to the next millionth of a dollar.
    pub fn cost(&self, tokens: &Tokens, service: Service) -> MicroUsd {
        let rates = self.long.filter(|long| tokens.read() > long.above);
        let weight = rates.map_or(self.rates, |long| long.rates).weigh(tokens);
        self.served(weight, service)
    }

    /// The most that these tokens can cost: at the dearest rates that a request which reads so many tokens can have.
    pub fn cost_at_most(&self, tokens: &Tokens, service: Service) -> MicroUsd {
        let long = self.long.filter(|long| tokens.read() > long.above);
        let weight = self.rates.weigh(tokens);
        let weight = long.map_or(weight, |long| weight.max(long.rates.weigh(tokens)));
        self.served(weight, service)
    }

    fn served(&self, weight: u128, service: Service) -> MicroUsd {
        let factors = [
            self.priority.filter(|_| service.priority),
            self.flex.filter(|_| service.flex),
            self.fast.filter(|_| service.fast),
            self.region.filter(|_| service.region),
        ];
        let weight = factors.into_iter().flatten().fold(weight, |weight, factor| factor.of(weight));
        let micros = weight.div_ceil(1_000_000);
        MicroUsd::from_micros(micros.try_into().unwrap_or(u64::MAX))
    }
}

impl PriceTable {
    /// The table of these models.
    pub fn new(models: impl IntoIterator<Item = (String, ModelPrice)>) -> Self {
        Self(models.into_iter().collect())
    }

    /// The table of a configuration. A model without a price for input and output has none.
    pub fn of<'c>(prices: impl IntoIterator<Item = (&'c String, &'c Configured)>) -> Self {
        let row = |(name, price): (&String, &Configured)| Some((name.clone(), configured(price)?));
        Self(prices.into_iter().filter_map(row).collect())
    }

    /// Finds the price of a model. A name with a date at its end is the name without it, and so is one with `models/` before it.
    pub fn find(&self, model: &str) -> Option<&ModelPrice> {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let exact = self.0.get(model);
        exact.or_else(|| without_date(model).and_then(|model| self.0.get(model)))
    }
}

/// `name-20260131`, `name-2026-01-31` and `name@20260131` are `name`.
fn without_date(model: &str) -> Option<&str> {
    let is_date = |text: &str, form: &str| {
        let fits = |(byte, form): (u8, u8)| {
            if form == b'0' { byte.is_ascii_digit() } else { byte == form }
        };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
    };
    ["-00000000", "-0000-00-00", "@00000000"].into_iter().find_map(|form| {
        let at = model.len().checked_sub(form.len()).filter(|at| model.is_char_boundary(*at))?;
        let (name, end) = model.split_at(at);
        (is_date(end, form) && !name.is_empty()).then_some(name)
    })
}

fn configured(price: &Configured) -> Option<ModelPrice> {
    let input = price.input_per_million.as_ref()?.value;
    let output = price.output_per_million.as_ref()?.value;
    let usual = Rates::of(input, output);
    let amount = |set: &Option<offshoot_config::Valued<MicroUsd>>, otherwise| {
        set.as_ref().map_or(otherwise, |set| set.value)
    };
    let cache_write = amount(&price.cache_write_per_million, usual.cache_write);
    let rates = Rates {
        cache_read: amount(&price.cache_read_per_million, usual.cache_read),
        cache_write,
        cache_write_hour: amount(&price.cache_write_hour_per_million, usual.cache_write_hour),
        ..usual
    };
    let long = price.long_context_tokens.as_ref().map(|above| {
        let input = amount(&price.long_input_per_million, input);
        let usual = Rates::of(input, amount(&price.long_output_per_million, output));
        // What is not written has the ratio to its input that it has in ordinary requests.
        let like = |rate: MicroUsd| {
            let (rate, long, short) =
                (u128::from(rate.as_micros()), input.as_micros(), rates.input.as_micros());
            let scaled = (rate * u128::from(long)).div_ceil(u128::from(short.max(1)));
            MicroUsd::from_micros(scaled.try_into().unwrap_or(u64::MAX))
        };
        let rates = Rates {
            cache_read: like(rates.cache_read),
            cache_write: like(rates.cache_write),
            cache_write_hour: like(rates.cache_write_hour),
            ..usual
        };
        LongContext { above: above.value.get(), rates }
    });
    let factor = |set: &Option<offshoot_config::Valued<offshoot_config::Factor>>| {
        set.as_ref().map(|set| Factor(set.value.millionths().into()))
    };
    let tools = [
        ("web_search", &price.web_search_per_use),
        ("web_fetch", &price.web_fetch_per_use),
        ("file_search", &price.file_search_per_use),
    ];
    Some(ModelPrice {
        rates,
        long,
        priority: factor(&price.priority_factor),
        fast: factor(&price.fast_factor),
        flex: factor(&price.flex_factor),
        region: factor(&price.region_factor),
        max_output: price.max_output_tokens.as_ref().map(|set| set.value.get()),
        context_window: price.context_window_tokens.as_ref().map(|set| set.value.get()),
        // A price for what is written to a cache is in the list because the provider charges it.
        caches_unasked: price.cache_write_per_million.is_some(),
        server_tools: tools
            .into_iter()
            .filter_map(|(name, set)| Some((name, set.as_ref()?.value)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use offshoot_config::{Loader, Source, SourceKind};
    use proptest::prelude::*;

    use super::*;

    fn usd(text: &str) -> MicroUsd {
        text.parse().expect("dollars")
    }

    fn sonnet() -> ModelPrice {
        let mut price =
            ModelPrice::flat(Rates { cache_read: usd("0.3"), ..Rates::of(usd("3"), usd("15")) });
        let long = Rates { cache_read: usd("0.6"), ..Rates::of(usd("6"), usd("22.5")) };
        price.long = Some(LongContext { above: 200_000, rates: long });
        price.fast = Some(Factor::from_millionths(6_000_000));
        price.region = Some(Factor::from_millionths(1_100_000));
        price.flex = Some(Factor::from_millionths(500_000));
        price
    }

    #[test]
    fn tokens_have_their_rates() {
        let price = sonnet();
        let plain = Service::default();
        let check = |tokens: Tokens, service: Service, expected: &str| {
            assert_eq!(price.cost(&tokens, service), usd(expected), "{tokens:?} {service:?}");
        };
        let input = |input| Tokens { input, ..Tokens::default() };
        check(input(1_000_000 / 10), plain, "0.3");
        check(Tokens { output: 1000, ..Tokens::default() }, plain, "0.015");
        check(Tokens { cache_read: 100_000, ..Tokens::default() }, plain, "0.03");
        check(Tokens { cache_write: 100_000, ..Tokens::default() }, plain, "0.375");
        check(Tokens { cache_write_hour: 100_000, ..Tokens::default() }, plain, "0.6");
        // Rounded up: a token costs something.
        check(Tokens { cache_read: 1, ..Tokens::default() }, plain, "0.000001");
        check(Tokens::default(), plain, "0");
        // At the border, and above it for all tokens.
        check(input(200_000), plain, "0.6");
        check(Tokens { output: 1000, ..input(200_001) }, plain, "1.222506");
        check(input(100_000), Service { fast: true, ..plain }, "1.8");
        check(input(100_000), Service { region: true, ..plain }, "0.33");
        check(input(100_000), Service { flex: true, ..plain }, "0.15");
        check(input(100_000), Service { fast: true, region: true, ..plain }, "1.98");
        // No factor is known, so none is taken.
        check(input(100_000), Service { priority: true, ..plain }, "0.3");
    }

    #[test]
    fn a_bound_at_the_border_of_long_requests_has_the_ordinary_rates() {
        let most = |input| {
            sonnet().cost_at_most(&Tokens { input, ..Tokens::default() }, Service::default())
        };
        assert_eq!([most(200_000), most(200_001)], [usd("0.6"), usd("1.200006")]);
    }

    /// The price of the one model of a configuration.
    fn of_text(lines: &str) -> Option<ModelPrice> {
        let text = format!("[prices.m]\n{lines}\n");
        let source = Source::new(SourceKind::User, "/c.toml", text);
        let config = Loader::new().file(source).load().expect("a configuration");
        PriceTable::of(config.prices()).find("m").cloned()
    }

    #[test]
    fn a_price_without_both_rates_is_none() {
        assert_eq!(of_text("inputPerMillion = 3"), None);
        assert_eq!(of_text("outputPerMillion = 15"), None);
        let price = of_text("inputPerMillion = 3\noutputPerMillion = 15").expect("a price");
        assert_eq!(price, ModelPrice::flat(Rates::of(usd("3"), usd("15"))));
        assert_eq!(price.rates.cache_write, usd("3.75"));
        assert_eq!(price.rates.cache_write_hour, usd("6"));
    }

    #[test]
    fn a_configured_price_has_all_that_is_written() {
        let price = of_text(
            "inputPerMillion = 3\noutputPerMillion = 15\ncacheReadPerMillion = 0.3\n\
             cacheWritePerMillion = 4\ncacheWriteHourPerMillion = 7\n\
             priorityFactor = 2\nfastFactor = 6\nflexFactor = 0.5\nregionFactor = 1.1\n\
             maxOutputTokens = 64000\ncontextWindowTokens = 200000\n\
             webSearchPerUse = 0.01\nfileSearchPerUse = 0.0025",
        );
        let rates = Rates {
            input: usd("3"),
            output: usd("15"),
            cache_read: usd("0.3"),
            cache_write: usd("4"),
            cache_write_hour: usd("7"),
        };
        let factor = |millionths| Some(Factor::from_millionths(millionths));
        let expected = ModelPrice {
            rates,
            long: None,
            priority: factor(2_000_000),
            fast: factor(6_000_000),
            flex: factor(500_000),
            region: factor(1_100_000),
            max_output: Some(64_000),
            context_window: Some(200_000),
            caches_unasked: true,
            server_tools: [("web_search", usd("0.01")), ("file_search", usd("0.0025"))].into(),
        };
        assert_eq!(price, Some(expected));
    }

    #[test]
    fn long_requests_have_the_ratios_of_ordinary_ones() {
        let check = |lines: &str, expected: [&str; 5]| {
            let lines = format!(
                "inputPerMillion = 3\noutputPerMillion = 15\nlongContextTokens = 200000\n{lines}"
            );
            let long = of_text(&lines).and_then(|price| price.long).expect("rates of long ones");
            let Rates { input, output, cache_read, cache_write, cache_write_hour } = long.rates;
            let found = [input, output, cache_read, cache_write, cache_write_hour];
            assert_eq!(found, expected.map(usd), "{lines}");
            assert_eq!(long.above, 200_000);
        };
        let long = "longInputPerMillion = 6\nlongOutputPerMillion = 22.5\n";
        check(long, ["6", "22.5", "6", "7.5", "12"]);
        let cache =
            "cacheReadPerMillion = 0.3\ncacheWritePerMillion = 4\ncacheWriteHourPerMillion = 7";
        check(&format!("{long}{cache}"), ["6", "22.5", "0.6", "8", "14"]);
        check("longInputPerMillion = 4", ["4", "15", "4", "5", "8"]);
        check("longOutputPerMillion = 20", ["3", "20", "3", "3.75", "6"]);
        // Rounded up, where it is no whole millionth.
        check(
            "cacheReadPerMillion = 0.1\nlongInputPerMillion = 4",
            ["4", "15", "0.133334", "5", "8"],
        );
    }

    #[test]
    fn a_model_is_known_by_its_name() {
        let table = PriceTable::new([("m-1".to_owned(), sonnet())]);
        for known in ["m-1", "models/m-1", "m-1-20260131", "m-1-2026-01-31", "m-1@20260131"] {
            assert!(table.find(known).is_some(), "{known}");
        }
        for unknown in
            ["", "m", "m-10", "m-1-2026013", "m-1-latest", "x/m-1", "-20260131", "m-1-2026013é"]
        {
            assert!(table.find(unknown).is_none(), "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn the_bound_is_never_below_the_cost(
            input in 0u64..400_000, read in 0u64..400_000, write in 0u64..400_000, output in 0u64..100_000,
            fast: bool, region: bool,
        ) {
            let tokens = Tokens { input, cache_read: read, cache_write: write, cache_write_hour: 0, output };
            let service = Service { fast, region, ..Service::default() };
            let price = sonnet();
            prop_assert!(price.cost(&tokens, service) <= price.cost_at_most(&tokens, service));
            // More tokens never cost less.
            let more = Tokens { input: input + 1, ..tokens };
            prop_assert!(price.cost(&more, service) >= price.cost(&tokens, service));
        }
    }
}
