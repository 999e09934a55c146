//! The bound of a request: what it can cost at most. Pure.

use offshoot_model::MicroUsd;

use crate::known::Known;
use crate::price::{ModelPrice, Service, Tokens};
use crate::request::{CacheWrite, Request};

/// The most that a request can use and cost. The parts are kept apart, so that each can be charged when it alone stays unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Tokens that the model reads.
    pub input: u64,
    /// Tokens that it writes.
    pub output: u64,
    /// In dollars.
    pub cost: BoundCost,
}

/// The most that a request can cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundCost {
    /// So much.
    Priced {
        /// For what is read.
        input: MicroUsd,
        /// For what is written.
        output: MicroUsd,
        /// For the uses of tools that the provider runs.
        tools: MicroUsd,
    },
    /// The price is not known, for this reason.
    Unpriced(String),
}

/// The limit of an answer, where neither the request nor the price of the model has one.
pub const OUTPUT_TOKENS: u64 = 32_000;

/// The least limit of an answer that is written into a request for want of budget: with less an agent cannot write a tool call of some length.
pub const LEAST_OUTPUT_TOKENS: u64 = 1_024;

/// Tokens that a model can read, where its price does not say it: more than any that is sold by tokens.
const WINDOW_TOKENS: u64 = 2_000_000;

/// Tokens that a model can read where a request asks for its longest context, by the name of the beta of the Messages API: `context-1m-…`.
const LONG_WINDOW_TOKENS: u64 = 1_000_000;

impl Bound {
    /// The tokens of both.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The dollars; none where the price is not known.
    pub fn dollars(&self) -> Option<MicroUsd> {
        match self.cost {
            BoundCost::Priced { input, output, tools } => Some(input + output + tools),
            BoundCost::Unpriced(_) => None,
        }
    }

    /// The bound of a request whose answer has at most `limit` tokens.
    pub fn of(request: &Request, known: &Known, price: Option<&ModelPrice>, limit: u64) -> Self {
        let window = window(request, price);
        Self::with_input(request, known.bound(&request.model, &request.parts, window), price, limit)
    }

    /// The bound, where the provider has counted the tokens of the request. What it says is near, and a margin is added.
    pub fn counted(request: &Request, tokens: u64, price: Option<&ModelPrice>, limit: u64) -> Self {
        let margin = tokens / 20 + 500;
        Self::with_input(request, tokens.saturating_add(margin), price, limit)
    }

    fn with_input(request: &Request, input: u64, price: Option<&ModelPrice>, limit: u64) -> Self {
        let most = price.and_then(|price| price.max_output);
        let answer = most.map_or(limit, |most| limit.min(most));
        let output = answer.saturating_mul(request.candidates).saturating_add(request.more_output);
        let (rounds, tools) = match rounds(request, price) {
            Ok(found) => found,
            Err(why) => return Self { input, output, cost: BoundCost::Unpriced(why) },
        };
        // With each use of a tool the model reads all again, and what the tool found.
        let input = input.saturating_add(window(request, price).saturating_mul(rounds));
        let Some(price) = price else {
            let why = format!("the model {} has no price", request.model);
            return Self { input, output, cost: BoundCost::Unpriced(why) };
        };
        if let Some(why) = request.unpriced {
            return Self { input, output, cost: BoundCost::Unpriced(why.to_owned()) };
        }
        // What is read is written to a cache where the request asks for that, or the price list says that the provider may.
        let dearest = [
            (price.rates.input, Tokens { input, ..Tokens::default() }),
            (price.rates.cache_write, Tokens { cache_write: input, ..Tokens::default() }),
            (price.rates.cache_write_hour, Tokens { cache_write_hour: input, ..Tokens::default() }),
        ];
        let may = match request.cache {
            CacheWrite::Hour => &dearest[..],
            CacheWrite::Minutes => &dearest[..2],
            CacheWrite::Unasked if price.caches_unasked => &dearest[..2],
            CacheWrite::Unasked => &dearest[..1],
        };
        let (_, read) = may.iter().max_by_key(|(rate, _)| *rate).expect("there is one");
        let service = dearest_service(request);
        let written = Tokens { output, ..*read };
        let input = price.cost_at_most(read, service);
        // With what was read, so that the border of long requests counts for what is written too. Rounded up twice.
        let both = price.cost_at_most(&written, service);
        let output_cost =
            MicroUsd::from_micros(both.as_micros().saturating_sub(input.as_micros()) + 1);
        let output_cost = if output == 0 { MicroUsd::default() } else { output_cost };
        let cost = BoundCost::Priced { input, output: output_cost, tools };
        Self { input: read.read(), output, cost }
    }
}

fn window(request: &Request, price: Option<&ModelPrice>) -> u64 {
    match price.and_then(|price| price.context_window) {
        Some(window) if request.is_long => window.max(LONG_WINDOW_TOKENS),
        Some(window) => window,
        None => WINDOW_TOKENS,
    }
}

/// Returns the dearest way in which a request can be served.
fn dearest_service(request: &Request) -> Service {
    let tier = request.tier.as_deref();
    Service {
        // What is not said is decided by settings of the account.
        priority: !matches!(tier, Some("standard_only" | "default" | "flex" | "standard")),
        // Cheaper, and not always had.
        flex: false,
        fast: request.fast,
        region: request.region.as_deref() != Some("global"),
    }
}

/// Returns the number of times that tools of the provider can be used, and the cost of the uses.
fn rounds(request: &Request, price: Option<&ModelPrice>) -> Result<(u64, MicroUsd), String> {
    let mut rounds = 0u64;
    let mut cost = MicroUsd::default();
    for tool in &request.server_tools {
        let kind = &tool.kind;
        let uses = tool
            .uses
            .ok_or_else(|| format!("the uses of the provider's tool {kind} have no bound"))?;
        let family = tool.family();
        let of_one = price.and_then(|price| price.server_tools.get(family));
        let of_one = of_one.ok_or_else(|| format!("the provider's tool {kind} has no price"))?;
        rounds = rounds.saturating_add(uses);
        cost = cost + MicroUsd::from_micros(of_one.as_micros().saturating_mul(uses));
    }
    Ok((rounds, cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::{Factor, Rates};
    use crate::protocol::Protocol;

    fn usd(text: &str) -> MicroUsd {
        text.parse().expect("dollars")
    }

    fn price() -> ModelPrice {
        let mut price = ModelPrice::flat(Rates::of(usd("10"), usd("50")));
        price.max_output = Some(1_000);
        price.context_window = Some(100_000);
        price.server_tools = [("web_search", usd("0.01"))].into();
        price
    }

    fn request(more: &str) -> Request {
        let body = format!("{{\"model\":\"m\"{more}}}");
        Request::read(Protocol::Messages, None, false, body.as_bytes()).expect("a request")
    }

    fn dollars(more: &str, price: &ModelPrice, limit: u64) -> Option<MicroUsd> {
        // Counted, so that the numbers do not hang on the length of the text: 9,500 tokens become 10,475.
        Bound::counted(&request(more), 9_500, Some(price), limit).dollars()
    }

    #[test]
    fn the_dearest_rate_that_can_apply() {
        let price = price();
        let check = |more: &str, limit, expected: &str| {
            assert_eq!(dollars(more, &price, limit), Some(usd(expected)), "{more}");
        };
        check("", 0, "0.10475");
        check("", 100, "0.109751");
        check("", 5_000, "0.154751");
        let mark =
            |ttl: &str| format!(r#","system":[{{"cache_control":{{"type":"ephemeral"{ttl}}}}}]"#);
        check(&mark(""), 0, "0.130938");
        check(&mark(r#","ttl":"1h""#), 0, "0.2095");
        check(r#","tools":[{"type":"web_search_1","max_uses":2}]"#, 0, "2.12475");
        let caches = ModelPrice { caches_unasked: true, ..price.clone() };
        assert_eq!(dollars("", &caches, 0), Some(usd("0.130938")));
        let mut tiers = price.clone();
        tiers.priority = Some(Factor::from_millionths(2_000_000));
        tiers.fast = Some(Factor::from_millionths(6_000_000));
        tiers.region = Some(Factor::from_millionths(1_100_000));
        for (more, expected) in [
            ("", "0.23045"),
            (r#","service_tier":"standard_only""#, "0.115225"),
            (r#","service_tier":"standard_only","inference_geo":"global""#, "0.10475"),
            (r#","service_tier":"flex","inference_geo":"global""#, "0.10475"),
            (
                r#","service_tier":"standard_only","inference_geo":"global","speed":"fast""#,
                "0.6285",
            ),
        ] {
            assert_eq!(dollars(more, &tiers, 0), Some(usd(expected)), "{more}");
        }
    }

    #[test]
    fn the_longest_context_is_wider_than_the_price_says() {
        let price = ModelPrice { context_window: Some(200_000), ..price() };
        let text = "x".repeat(300_000);
        let asked = request(&format!(r#","system":"{text}""#));
        let input = |asked: &Request| Bound::of(asked, &Known::default(), Some(&price), 0).input;
        assert_eq!(input(&asked), 200_000);
        let mut long = asked;
        long.is_long = true;
        assert!(input(&long) > 300_000);
    }

    #[test]
    fn unknown_cost_is_not_free() {
        let known = Known::default();
        let why = |more: &str, price: Option<&ModelPrice>| match Bound::of(
            &request(more),
            &known,
            price,
            10,
        )
        .cost
        {
            BoundCost::Unpriced(why) => why,
            priced => panic!("{more}: {priced:?}"),
        };
        let price = price();
        assert_eq!(why("", None), "the model m has no price");
        assert_eq!(
            why(r#","tools":[{"type":"web_search_1"}]"#, Some(&price)),
            "the uses of the provider's tool web_search_1 have no bound"
        );
        assert_eq!(
            why(r#","tools":[{"type":"advisor_1","max_uses":1}]"#, Some(&price)),
            "the provider's tool advisor_1 has no price"
        );
        let bound = Bound::of(&request(""), &known, None, 10);
        assert_eq!((bound.dollars(), bound.output), (None, 10));
        assert!(bound.input > 0, "its tokens are bounded all the same");
    }

    #[test]
    fn each_answer_may_be_as_long_as_the_limit() {
        let body = br#"{"model":"m","n":3}"#;
        let request = Request::read(Protocol::Chat, None, false, body).expect("a request");
        let known = Known::default();
        let price = price();
        assert_eq!(Bound::of(&request, &known, Some(&price), 50).output, 150);
        assert_eq!(Bound::of(&request, &known, Some(&price), 5_000).output, 3_000);
        assert_eq!(Bound::of(&request, &known, None, 5_000).output, 15_000);
    }
}
