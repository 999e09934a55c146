//! The generator of contexts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::date;
use offshoot_oolong_pairs::{Corpus, Entry, Label, Recipe};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_context_is_as_its_recipe_says(seed: u64, tokens in 500_u64..20_000, users in prop::option::of(0.05..0.3)) {
        let recipe = Recipe { tokens, seed, users };
        let corpus = Corpus::generate(&recipe);
        prop_assert_eq!(&corpus, &Corpus::generate(&recipe), "the same seed gives the same context");
        let text = corpus.text();
        let room = tokens * 4 * 95 / 100;
        prop_assert!(text.len() as u64 <= room && text.len() as u64 + 200 > room, "{} of {}", text.len(), room);
        let read: Vec<Entry> = text.lines().map(|line| line.parse().expect("an entry")).collect();
        prop_assert_eq!(&read, &corpus.entries);
        for (entry, &label) in corpus.entries.iter().zip(&corpus.labels) {
            prop_assert_eq!(Label::of(&entry.instance), Some(label));
            prop_assert!((10_000..=99_999).contains(&entry.user));
            prop_assert!((date(2022, 5, 1)..=date(2025, 5, 31)).contains(&entry.date));
        }
        let ids: BTreeSet<u32> = corpus.entries.iter().map(|entry| entry.user).collect();
        let most = (corpus.entries.len() as f64 * users.unwrap_or(0.3)).round().max(2.0);
        prop_assert!(ids.len() as f64 <= most);
    }
}

#[test]
fn most_entries_are_of_a_fifth_of_the_users() {
    let corpus = Corpus::generate(&Recipe { tokens: 100_000, seed: 9, users: Some(0.1) });
    let mut counts = BTreeMap::<u32, usize>::new();
    corpus.entries.iter().for_each(|entry| *counts.entry(entry.user).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let users = (corpus.entries.len() as f64 * 0.1).round() as usize;
    let busy: usize = counts[..users / 5].iter().sum();
    let share = busy as f64 / corpus.entries.len() as f64;
    assert!((0.77..0.85).contains(&share), "{share}");
}

#[test]
fn another_seed_gives_another_context() {
    let of = |seed| Corpus::generate(&Recipe { tokens: 2_000, seed, users: None });
    assert_ne!(of(1), of(2));
}
