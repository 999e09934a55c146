//! The charge of a request once its answer is over. Pure.

use offshoot_model::{CostKnowledge, MicroUsd};

use crate::bound::{Bound, BoundCost};
use crate::price::{ModelPrice, Tokens};
use crate::usage::Report;

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The request never left: the program closed its connection first, or the provider could not be reached.
    NotSent,
    /// The provider refused it with this status, and charges nothing for that.
    Declined(u16),
    /// The answer came to its end, and said what it used.
    Answered,
    /// The answer came to its end, and did not say what it used: what is not known is charged at its bound.
    Unreported,
    /// The answer broke off, on whichever side: what is not known is charged at its bound.
    Broken,
}

/// The charge of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Tokens: as they were reported, and the bound for what was not.
    pub tokens: Tokens,
    /// Dollars in the same way; none where the price is not known.
    pub dollars: Option<MicroUsd>,
    /// The source of the dollars.
    pub knowledge: CostKnowledge,
    /// True if the provider has reported all that is charged.
    pub is_reported: bool,
    /// The use that was reported above the bound.
    pub excess: Option<Excess>,
}

/// The use that a provider reported above the bound of a request. It is charged all the same, and no bound should be exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// Tokens read above the bound of those.
    pub input: u64,
    /// Tokens written above the bound of those.
    pub output: u64,
    /// Dollars above the bound.
    pub dollars: MicroUsd,
}

impl Charge {
    /// The charge of a request that cost nothing.
    pub const NOTHING: Self = Self {
        tokens: Tokens { input: 0, cache_read: 0, cache_write: 0, cache_write_hour: 0, output: 0 },
        dollars: Some(MicroUsd::from_micros(0)),
        knowledge: CostKnowledge::None,
        is_reported: true,
        excess: None,
    };

    /// The charge of a request. `price_of` finds the prices of models.
    pub fn of<'p>(
        model: &str,
        bound: &Bound,
        ending: Ending,
        report: &Report,
        price_of: impl Fn(&str) -> Option<&'p ModelPrice>,
    ) -> Self {
        if let Ending::NotSent | Ending::Declined(_) = ending {
            return Self::NOTHING;
        }
        let reported = report.others.values().fold(report.tokens, |sum, other| sum.plus(*other));
        let mut tokens = reported;
        if !report.input_known {
            tokens.input =
                tokens.input.max(bound.input.saturating_sub(tokens.read() - tokens.input));
        }
        if !report.output_known {
            tokens.output = tokens.output.max(bound.output);
        }
        let dollars = dollars(model, bound, report, price_of);
        let knowledge = match (dollars, report.is_whole()) {
            (None, _) => CostKnowledge::Unknown,
            (Some(_), true) => CostKnowledge::Reported,
            (Some(_), false) => CostKnowledge::Bounded,
        };
        let both = dollars.zip(bound.dollars());
        let beyond = both.map(|(all, bound)| all.as_micros().saturating_sub(bound.as_micros()));
        let excess = Excess {
            input: reported.read().saturating_sub(bound.input),
            output: reported.output.saturating_sub(bound.output),
            dollars: MicroUsd::from_micros(beyond.unwrap_or(0)),
        };
        let excess = Some(excess).filter(|excess| *excess != Excess::default());
        Self { tokens, dollars, knowledge, is_reported: report.is_whole(), excess }
    }
}

fn dollars<'p>(
    model: &str,
    bound: &Bound,
    report: &Report,
    price_of: impl Fn(&str) -> Option<&'p ModelPrice>,
) -> Option<MicroUsd> {
    let price = price_of(model)?;
    let BoundCost::Priced { input, output, tools } = bound.cost else {
        // What could not be bounded is known once all was reported and has a price.
        return report.is_whole().then(|| reported_dollars(price, report, &price_of)).flatten();
    };
    if report.is_whole() {
        return reported_dollars(price, report, &price_of);
    }
    // What was read decides which prices the rest has, so the parts are told apart at the bound.
    let read = Tokens { output: 0, ..report.tokens };
    let read = if report.input_known { price.cost(&read, report.service) } else { input };
    let written = price.cost(&report.tokens, report.service).as_micros();
    let written = MicroUsd::from_micros(written.saturating_sub(read.as_micros()));
    let others = other_dollars(report, &price_of)?;
    Some(read + output.max(written) + tools + others)
}

fn reported_dollars<'p>(
    price: &ModelPrice,
    report: &Report,
    price_of: impl Fn(&str) -> Option<&'p ModelPrice>,
) -> Option<MicroUsd> {
    let mut sum = price.cost(&report.tokens, report.service) + other_dollars(report, price_of)?;
    for (family, uses) in &report.tools {
        // Uses of the program's own tools are not reported here, so one without a price costs an unknown amount.
        let of_one = price.server_tools.get(family.as_str())?;
        sum = sum + MicroUsd::from_micros(of_one.as_micros().saturating_mul(*uses));
    }
    Some(sum)
}

fn other_dollars<'p>(
    report: &Report,
    price_of: impl Fn(&str) -> Option<&'p ModelPrice>,
) -> Option<MicroUsd> {
    let mut sum = MicroUsd::default();
    for (model, tokens) in &report.others {
        sum = sum + price_of(model)?.cost(tokens, report.service);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::price::Rates;

    fn usd(text: &str) -> MicroUsd {
        text.parse().expect("dollars")
    }

    fn price() -> ModelPrice {
        ModelPrice::flat(Rates::of(usd("10"), usd("50")))
    }

    fn bound() -> Bound {
        let cost =
            BoundCost::Priced { input: usd("0.01"), output: usd("0.05"), tools: usd("0.001") };
        Bound { input: 1_000, output: 1_000, cost }
    }

    fn report(input: u64, output: u64, known: (bool, bool)) -> Report {
        let tokens = Tokens { input, output, ..Tokens::default() };
        Report { tokens, input_known: known.0, output_known: known.1, ..Report::default() }
    }

    fn charge(ending: Ending, report: &Report) -> Charge {
        let price = price();
        Charge::of("m", &bound(), ending, report, |model| (model == "m").then_some(&price))
    }

    #[test]
    fn what_is_unknown_is_charged_at_its_bound() {
        let check = |report: Report, tokens: u64, dollars: &str, knowledge| {
            let charge = charge(Ending::Broken, &report);
            let found = (charge.tokens.total(), charge.dollars, charge.knowledge);
            assert_eq!(found, (tokens, Some(usd(dollars)), knowledge), "{report:?}");
            assert_eq!(charge.excess, None);
        };
        use CostKnowledge::{Bounded, Reported};
        check(report(100, 10, (true, true)), 110, "0.0015", Reported);
        check(report(100, 10, (true, false)), 1_100, "0.052", Bounded);
        check(report(0, 0, (false, false)), 2_000, "0.061", Bounded);
    }

    #[test]
    fn what_never_left_or_was_declined_costs_nothing() {
        let all = report(100, 10, (true, true));
        assert_eq!(charge(Ending::NotSent, &all), Charge::NOTHING);
        assert_eq!(charge(Ending::Declined(529), &all), Charge::NOTHING);
    }

    #[test]
    fn a_report_above_the_bound_is_charged_and_named() {
        let charge = charge(Ending::Answered, &report(1_500, 2_000, (true, true)));
        assert_eq!(charge.dollars, Some(usd("0.115")));
        let excess = Excess { input: 500, output: 1_000, dollars: usd("0.054") };
        assert_eq!(charge.excess, Some(excess));
    }

    #[test]
    fn each_part_above_its_bound_is_named_alone() {
        let excess = |input, output, tools| {
            let mut report = report(input, output, (true, true));
            report.tools.extend((tools > 0).then(|| ("web_search".to_owned(), tools)));
            let mut price = price();
            price.server_tools = [("web_search", usd("0.01"))].into();
            let charge = Charge::of("m", &bound(), Ending::Answered, &report, |_| Some(&price));
            charge.excess.map(|it| (it.input, it.output, it.dollars.as_micros()))
        };
        assert_eq!(excess(1_000, 1_000, 0), None);
        assert_eq!(excess(1_001, 10, 0), Some((1, 0, 0)));
        assert_eq!(excess(10, 1_001, 0), Some((0, 1, 0)));
        assert_eq!(excess(0, 0, 7), Some((0, 0, 9_000)));
    }

    #[test]
    fn what_was_read_from_a_cache_is_a_part_of_the_bound() {
        let tokens = Tokens { input: 100, cache_read: 300, ..Tokens::default() };
        let charge = charge(Ending::Broken, &Report { tokens, ..Report::default() });
        let Tokens { input, cache_read, output, .. } = charge.tokens;
        assert_eq!([input, cache_read, output], [700, 300, 1_000]);
    }

    #[test]
    fn what_has_no_price_has_no_cost_that_is_known() {
        let price = price();
        let none = |_: &str| None;
        let whole = report(100, 10, (true, true));
        let unknown = Charge::of("x", &bound(), Ending::Answered, &whole, none);
        assert_eq!((unknown.dollars, unknown.knowledge), (None, CostKnowledge::Unknown));
        assert_eq!(unknown.tokens.total(), 110);
        // An unbounded request has a cost once all was told.
        let unbounded = Bound { cost: BoundCost::Unpriced("a reason".into()), ..bound() };
        let of = |report: &Report| {
            Charge::of("m", &unbounded, Ending::Answered, report, |_| Some(&price)).dollars
        };
        assert_eq!(of(&whole), Some(usd("0.0015")));
        assert_eq!(of(&report(100, 10, (true, false))), None);
        // Another model without a price, and a tool without one.
        let mut other = whole.clone();
        other.others.insert("big".into(), Tokens { input: 5, ..Tokens::default() });
        let priced = |model: &str| (model == "m").then_some(&price);
        assert_eq!(Charge::of("m", &bound(), Ending::Answered, &other, priced).dollars, None);
        let mut tool = whole;
        tool.tools.insert("web_search".into(), 2);
        assert_eq!(charge(Ending::Answered, &tool).dollars, None);
    }

    proptest! {
        #[test]
        fn within_the_bound_no_charge_is_above_it(
            input in 0u64..=1_000, output in 0u64..=1_000, input_known: bool, output_known: bool,
        ) {
            let report = report(input, output, (input_known, output_known));
            let charge = charge(Ending::Broken, &report);
            prop_assert_eq!(charge.excess, None);
            prop_assert!(charge.dollars <= bound().dollars());
            prop_assert!(charge.tokens.total() <= bound().tokens());
            prop_assert!(charge.tokens.total() >= input + output);
        }
    }
}
