//! The known tokens of a run's conversations. Pure.
//!
//! A provider says how many tokens it read. The next request of that conversation is the same and some more, so at most so many tokens
//! and one for each byte that was added. Requests are compared part by part and not as one text: a program may have dropped a part, or
//! put one in the middle, and the sum holds all the same.

use std::collections::{HashMap, VecDeque};

use crate::request::{More, Part};

/// Requests of a run whose tokens are known.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The latest first.
    requests: VecDeque<Read>,
}

#[derive(Clone, Debug)]
struct Read {
    model: String,
    parts: HashMap<[u8; 16], u32>,
    tokens: u64,
}

/// A program rarely leads more conversations at once. One that does reserves more than it would have to.
const REQUESTS: usize = 16;

/// Tokens that a provider adds to a request of which nothing is known: how a conversation is laid out, and how tools are explained.
const LAYOUT_TOKENS: u64 = 2_000;

impl Known {
    /// The most tokens that a request can have. `window` is what the model can read at all.
    pub fn bound(&self, model: &str, parts: &[Part], window: u64) -> u64 {
        let alone = LAYOUT_TOKENS.saturating_add(sum(parts.iter(), window));
        let of_known = self.requests.iter().filter(|read| read.model == model).map(|read| {
            let mut left = read.parts.clone();
            let is_new = |part: &&Part| match left.get_mut(&part.digest) {
                Some(count) if *count > 0 && !part.changes => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            read.tokens.saturating_add(sum(parts.iter().filter(is_new), window))
        });
        // What a provider has read is not above what the model can read, whatever its price says.
        let of_model = self.requests.iter().filter(|read| read.model == model);
        let window = of_model.map(|read| read.tokens).fold(window, u64::max);
        of_known.fold(alone, u64::min).min(window)
    }

    /// Learns how many tokens a request had.
    pub fn learn(&mut self, model: &str, parts: &[Part], tokens: u64) {
        let mut counted: HashMap<[u8; 16], u32> = HashMap::new();
        for part in parts {
            *counted.entry(part.digest).or_default() += 1;
        }
        // What all stands in this one too has nothing more to tell: it was an earlier request of the conversation.
        let continues = |read: &Read| {
            read.model == model
                && read
                    .parts
                    .iter()
                    .all(|(digest, count)| counted.get(digest).is_some_and(|now| now >= count))
        };
        self.requests.retain(|read| !continues(read));
        self.requests.truncate(REQUESTS - 1);
        self.requests.push_front(Read { model: model.to_owned(), parts: counted, tokens });
    }
}

fn sum<'p>(parts: impl Iterator<Item = &'p Part>, window: u64) -> u64 {
    let tokens = |part: &Part| match part.more {
        More::Tokens(more) => part.bytes.saturating_add(more),
        More::Window => window,
    };
    parts.map(tokens).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(digest: u8, bytes: u64) -> Part {
        Part { digest: [digest; 16], bytes, more: More::Tokens(0), changes: false }
    }

    const WINDOW: u64 = 1_000_000;

    #[test]
    fn what_was_read_before_is_known() {
        let mut known = Known::default();
        let first = [part(1, 10_000), part(2, 5_000)];
        assert_eq!(known.bound("m", &first, WINDOW), 17_000);
        known.learn("m", &first, 3_400);
        let second = [part(1, 10_000), part(2, 5_000), part(3, 100)];
        assert_eq!(known.bound("m", &first, WINDOW), 3_400);
        assert_eq!(known.bound("m", &second, WINDOW), 3_500);
        assert_eq!(known.bound("other", &second, WINDOW), 17_100, "another model counts otherwise");
        // A part twice is known once.
        let twice = [part(1, 10_000), part(2, 5_000), part(2, 5_000)];
        assert_eq!(known.bound("m", &twice, WINDOW), 8_400);
        // Dropped and put in the middle.
        let other = [part(4, 50), part(2, 5_000)];
        assert_eq!(known.bound("m", &other, WINDOW), 3_450);
        // Nothing of it is known, and it is small: its own bytes are the smaller bound.
        assert_eq!(known.bound("m", &[part(9, 10)], WINDOW), 2_010);
        assert_eq!(known.bound("n", &first, 1_000), 1_000, "no more than the model can read");
        assert_eq!(known.bound("m", &second, 1_000), 3_400, "and it has read so many");
    }

    #[test]
    fn what_the_provider_holds_counts_once_if_it_cannot_change() {
        let mut known = Known::default();
        let held = |changes| Part { more: More::Window, changes, ..part(1, 20) };
        let request = |changes| [held(changes), part(2, 100)];
        assert_eq!(known.bound("m", &request(false), WINDOW), WINDOW);
        known.learn("m", &request(false), 5_000);
        assert_eq!(known.bound("m", &request(false), WINDOW), 5_000);
        assert_eq!(known.bound("m", &request(true), WINDOW), WINDOW);
    }

    #[test]
    fn a_conversation_is_kept_once_and_a_few_beside_each_other() {
        let mut known = Known::default();
        for length in 1..50u8 {
            let parts: Vec<_> = (0..length).map(|at| part(at, 10)).collect();
            known.learn("m", &parts, length.into());
        }
        assert_eq!(known.requests.len(), 1);
        for conversation in 100..150u8 {
            known.learn("m", &[part(conversation, 10)], 1);
        }
        assert_eq!(known.requests.len(), REQUESTS);
    }

    proptest! {
        /// A provider that counts at most a token for each byte, and the layout once.
        #[test]
        fn the_bound_holds_for_every_conversation(
            requests in prop::collection::vec(prop::collection::vec(0u8..12, 0..8), 1..20),
            weights in prop::collection::vec(0u64..=100, 12),
        ) {
            let mut known = Known::default();
            for request in requests {
                let parts: Vec<_> = request.iter().map(|name| part(*name, 100)).collect();
                let tokens = 1_000 + request.iter().map(|name| weights[usize::from(*name)]).sum::<u64>();
                prop_assert!(known.bound("m", &parts, WINDOW) >= tokens);
                known.learn("m", &parts, tokens);
            }
        }
    }
}
