//! The generator: a context of a wanted length from a seed, with the labels that the reader has to find.

use std::collections::BTreeSet;

use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::Xoshiro256PlusPlus;

use crate::{Entry, Label, Labelled};

/// Characters of a token, and the part of the wanted length that is filled: room is left for the question.
const CHARACTERS: u64 = 4;
const FILLED: (u64, u64) = (95, 100);

/// Of the entries, this part goes to the first fifth of the users.
const TO_THE_BUSY: f64 = 0.8;
const BUSY: usize = 5;

/// The parts of a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// The length of context and question together.
    pub tokens: u64,
    /// The seed: the same one gives the same context, byte for byte.
    pub seed: u64,
    /// Users by entries; drawn from 0.05 to 0.3 where absent.
    pub users: Option<f64>,
}

/// A context and its hidden labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// The lines, in order.
    pub entries: Vec<Entry>,
    /// The label of each line.
    pub labels: Vec<Label>,
}

impl Corpus {
    /// Makes the context of a recipe.
    pub fn generate(recipe: &Recipe) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(recipe.seed);
        let shares = shares(&mut random);
        let ratio = recipe.users.unwrap_or_else(|| random.random_range(0.05..0.3));
        let room = recipe.tokens * CHARACTERS * FILLED.0 / FILLED.1;
        let (first, last) = (date(2022, 5, 1), date(2025, 5, 31));
        let days = (last - first).get_days();
        // The length of a line does not depend on its user: each id has five digits.
        let (mut entries, mut labels, mut length) = (Vec::new(), Vec::new(), 0);
        loop {
            let label = drawn(&shares, random.random_range(0.0..1.0));
            let date: Date = first + i64::from(random.random_range(0..=days)).days();
            let entry = Entry { date, user: 10_000, instance: label.instance(&mut random) };
            // Counted with the end of its line.
            length += entry.to_string().len() as u64 + 1;
            if length > room && !entries.is_empty() {
                break;
            }
            entries.push(entry);
            labels.push(label);
        }
        let count = ((entries.len() as f64 * ratio).round() as usize).clamp(2, 90_000);
        let users = users(count, &mut random);
        let busy = users.len().div_ceil(BUSY);
        for entry in &mut entries {
            let is_busy = busy == users.len() || random.random_bool(TO_THE_BUSY);
            let among = if is_busy { 0..busy } else { busy..users.len() };
            entry.user = users[random.random_range(among)];
        }
        Self { entries, labels }
    }

    /// Returns the context as text, a line for each entry.
    pub fn text(&self) -> String {
        self.entries.iter().map(|entry| format!("{entry}\n")).collect()
    }

    /// Returns the entries with their labels: what a perfect labeller says.
    pub fn labelled(&self) -> Vec<Labelled> {
        let pairs = self.entries.iter().zip(&self.labels);
        pairs
            .map(|(entry, &label)| Labelled { user: entry.user, date: entry.date, label })
            .collect()
    }
}

/// The share of each label. Drawn, because equal ones leave no room for labels that are rare.
fn shares(random: &mut Xoshiro256PlusPlus) -> [f64; 6] {
    let weights = Label::ALL.map(|_| random.random_range(0.5..1.5));
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

fn drawn(shares: &[f64; 6], mut point: f64) -> Label {
    for (label, share) in Label::ALL.into_iter().zip(shares) {
        if point < *share {
            return label;
        }
        point -= share;
    }
    Label::Abbreviation
}

/// So many ids, none twice, in the order in which they were drawn.
fn users(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    let mut users = Vec::with_capacity(count);
    while users.len() < count {
        let user = random.random_range(10_000..=99_999);
        if seen.insert(user) {
            users.push(user);
        }
    }
    users
}
