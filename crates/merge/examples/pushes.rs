//! Measures the results per second that a fold takes, answer included: `cargo run --release -p offshoot-merge --example pushes`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use offshoot_merge::{Fold, NothingStored, OnFailure, Strategy};
use offshoot_model::Payload;

type Make = fn(u32) -> Payload;

const RESULTS: u32 = 1_000_000;

fn main() -> io::Result<()> {
    let kinds: [(&str, Make); 4] = [
        ("texts, 10 distinct", |index| Payload::text(format!("answer number {}", index % 10))),
        ("texts, all distinct", |index| Payload::text(format!("answer number {index}"))),
        ("numbers", |index| json((index % 1000).to_string())),
        ("objects", |index| json(format!(r#"{{"b":[{}],"a":"x"}}"#, index % 10))),
    ];
    for (name, make) in kinds {
        for strategy in [
            Strategy::Concatenate,
            Strategy::Structured,
            Strategy::Vote,
            Strategy::Summarize,
            Strategy::Sum,
        ] {
            if strategy == Strategy::Sum && name != "numbers" {
                continue;
            }
            let results: Vec<(Arc<str>, Payload)> =
                (0..RESULTS).map(|index| (format!("piece-{index}").into(), make(index))).collect();
            let (push, write) = measure(strategy, results)?;
            let rate = |seconds: f64| f64::from(RESULTS) / seconds / 1e6;
            writeln!(
                io::stdout(),
                "{strategy:12} {name:20} {:6.2} M pushes/s  {:6.2} M/s with the answer",
                rate(push),
                rate(push + write)
            )?;
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn measure(strategy: Strategy, results: Vec<(Arc<str>, Payload)>) -> io::Result<(f64, f64)> {
    let start = Instant::now();
    let mut fold = Fold::new(strategy, OnFailure::Fail);
    for (index, (key, value)) in results.into_iter().enumerate() {
        fold.push(index as u32, key, Ok(value));
    }
    let pushed = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let answer = fold.finish(RESULTS).map_err(io::Error::other)?;
    answer.write_to(&mut io::sink(), &NothingStored)?;
    Ok((pushed, start.elapsed().as_secs_f64()))
}

fn json(text: String) -> Payload {
    Payload::json(text).expect("these are JSON")
}
