//! The answer does not depend on the order in which results come in, and is what a plain reading of the rules gives.

use offshoot_merge::{Fold, NothingStored, OnFailure, Strategy};
use offshoot_model::Payload;
use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use serde_json::Value;

const TIMELESS: [Strategy; 6] = [
    Strategy::Concatenate,
    Strategy::Structured,
    Strategy::StructuredBase64,
    Strategy::Vote,
    Strategy::Summarize,
    Strategy::Sum,
];

/// A value in few enough forms that equal ones meet, with its JSON meaning.
fn payload() -> impl Generator<Value = (Payload, Value)> {
    let scalar = prop_oneof![
        (-3_i64..3).prop_map(Value::from),
        "[ab\"\\\\\n\u{e4}]{0,3}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-c]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    (value, any::<bool>()).prop_map(|(value, as_text)| match (&value, as_text) {
        (Value::String(text), true) => (Payload::text(text.as_str()), value),
        (_, true) => (json(serde_json::to_string_pretty(&value)), value),
        (_, false) => (json(serde_json::to_string(&value)), value),
    })
}

fn json(text: serde_json::Result<String>) -> Payload {
    text.and_then(Payload::json).expect("a value is JSON")
}

/// Results and an order in which they end.
fn results() -> impl Generator<Value = (Vec<(Payload, Value)>, Vec<usize>)> {
    prop::collection::vec(payload(), 0..12).prop_flat_map(|results| {
        let order: Vec<usize> = (0..results.len()).collect();
        (Just(results), Just(order).prop_shuffle())
    })
}

fn answer(
    strategy: Strategy,
    results: &[(Payload, Value)],
    order: &[usize],
) -> Result<String, String> {
    let mut fold = Fold::new(strategy, OnFailure::Fail);
    for &index in order {
        fold.push(index as u32, format!("k{index}").into(), Ok(results[index].0.clone()));
    }
    let answer = fold.finish(results.len() as u32).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    answer.write_to(&mut out, &NothingStored).expect("writing to memory failed");
    assert_eq!(answer.len(), Some(out.len() as u64));
    Ok(String::from_utf8(out).expect("text"))
}

/// The rules, read plainly, over whole values.
fn reference(strategy: Strategy, values: &[&Value]) -> Result<Value, ()> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let pretty = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).expect("a value"),
    };
    let keyed = values.iter().enumerate();
    Ok(match strategy {
        Strategy::Concatenate => {
            values.iter().map(|value| text(value)).collect::<Vec<_>>().join("\n---\n").into()
        }
        Strategy::Structured | Strategy::StructuredBase64 => {
            keyed.map(|(index, &value)| (format!("k{index}"), value.clone())).collect()
        }
        Strategy::Summarize => keyed
            .map(|(index, value)| {
                format!("[Result {} from k{index}]:\n{}", index + 1, pretty(value))
            })
            .collect::<Vec<_>>()
            .join("\n\n")
            .into(),
        Strategy::Vote => {
            let mut counts: Vec<(&Value, u64)> = Vec::new();
            for &value in values {
                match counts.iter_mut().find(|(candidate, _)| *candidate == value) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((value, 1)),
                }
            }
            let most = counts.iter().map(|(_, count)| *count).max();
            let winner = counts.iter().find(|(_, count)| Some(*count) == most);
            let counts: Vec<Value> = counts
                .iter()
                .map(|(value, count)| serde_json::json!({ "count": count, "value": value }))
                .collect();
            serde_json::json!([winner.map(|(value, _)| value), counts])
        }
        Strategy::Sum => {
            let number = |value: &&Value| match value {
                Value::Number(number) => number.as_i64().ok_or(()),
                _ => Err(()),
            };
            values.iter().map(number).sum::<Result<i64, ()>>()?.into()
        }
        Strategy::First | Strategy::Quorum(_) => return Err(()),
    })
}

proptest! {
    #[test]
    fn any_order_gives_the_same_answer((results, order) in results()) {
        let in_order: Vec<usize> = (0..results.len()).collect();
        for strategy in TIMELESS {
            prop_assert_eq!(
                answer(strategy, &results, &order),
                answer(strategy, &results, &in_order),
                "{}", strategy
            );
        }
    }

    #[test]
    fn same_as_a_plain_reading((results, order) in results()) {
        let values: Vec<&Value> = results.iter().map(|(_, value)| value).collect();
        for strategy in TIMELESS {
            let found = answer(strategy, &results, &order);
            let Ok(expected) = reference(strategy, &values) else {
                prop_assert!(found.is_err());
                continue;
            };
            let found = found.expect("the reference has an answer");
            let found = match strategy {
                Strategy::Concatenate | Strategy::Summarize => Value::from(found),
                Strategy::Vote => {
                    let value: Value = serde_json::from_str(&found).expect("JSON");
                    let votes = value["votes"].as_object().expect("an object");
                    // A name is the JSON text of the value, as it was first written.
                    for (name, vote) in votes {
                        let named: Value = serde_json::from_str(name).expect("JSON");
                        prop_assert_eq!(&named, &vote["value"]);
                    }
                    serde_json::json!([value["winner"], votes.values().collect::<Vec<_>>()])
                }
                _ => serde_json::from_str(&found).expect("JSON"),
            };
            prop_assert_eq!(found, expected, "{}", strategy);
        }
    }

    #[test]
    fn sums_are_exact(numbers in prop::collection::vec((any::<i64>(), 0_u32..6), 0..20)) {
        let texts = numbers.iter().map(|(digits, scale)| (Payload::text(format!("{digits}e-{scale}")), Value::Null));
        let results: Vec<_> = texts.collect();
        let order: Vec<usize> = (0..results.len()).rev().collect();
        let found = answer(Strategy::Sum, &results, &order).expect("numbers");
        // In units of 10^-5 everything is an integer.
        let expected: i128 =
            numbers.iter().map(|&(digits, scale)| i128::from(digits) * 10_i128.pow(5 - scale)).sum();
        let (whole, fraction) = found.split_once('.').unwrap_or((&found, ""));
        let units: i128 = format!("{whole}{fraction:0<5}").parse().expect("digits");
        prop_assert_eq!(units, expected);
        prop_assert!(!fraction.ends_with('0'));
    }

    #[test]
    fn no_text_panics(texts in prop::collection::vec(".*", 0..6)) {
        let results: Vec<_> = texts.iter().map(|text| (Payload::text(text.as_str()), Value::Null)).collect();
        let order: Vec<usize> = (0..results.len()).collect();
        for strategy in TIMELESS {
            if let Ok(text) = answer(strategy, &results, &order)
                && matches!(strategy, Strategy::Structured | Strategy::StructuredBase64 | Strategy::Vote)
            {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
            }
        }
    }
}
