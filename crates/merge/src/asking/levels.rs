//! The groups of one level.

use std::ops::Range;

use super::{Asking, AskingWay};

/// Neighbours that become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The places among the results of the level.
    pub members: Range<usize>,
    /// True if a run is asked about them; else there is one, which goes to the next level as it is.
    pub asks: bool,
}

impl Asking {
    /// Returns the groups of a level, from 1, of results of so many tokens, in their order. Each level after the first has fewer than
    /// the one before, so that the last one has a single group: the answer of that is the answer.
    pub fn groups(&self, level: u32, tokens: &[u64]) -> Vec<Group> {
        let results = tokens.len();
        match self.way {
            AskingWay::Once if results == 0 => Vec::new(),
            AskingWay::Once => vec![Group { members: 0..results, asks: true }],
            AskingWay::Reduce(arity) => {
                let arity = usize::try_from(arity.get()).unwrap_or(usize::MAX);
                let ends = (0..results).step_by(arity);
                let members = ends.map(|start| start..results.min(start.saturating_add(arity)));
                members.map(|members| Group { asks: members.len() > 1, members }).collect()
            }
            AskingWay::BestOf(most) => {
                let members = within(most.get(), tokens, 2);
                members.map(|members| Group { asks: members.len() > 1, members }).collect()
            }
            AskingWay::Summarize(most) => {
                // What is too long by itself is made shorter before it stands beside others.
                let least = if level == 1 { 1 } else { 2 };
                let is_long = |place: usize| tokens[place] > most.get();
                let asks = |members: &Range<usize>| {
                    members.len() > 1 || level == 1 && (results == 1 || is_long(members.start))
                };
                let members = within(most.get(), tokens, least);
                members.map(|members| Group { asks: asks(&members), members }).collect()
            }
        }
    }
}

/// Groups of neighbours that have at most so many tokens together, or at least so many members.
fn within(most: u64, tokens: &[u64], least: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (mut end, mut sum) = (start, 0_u64);
        while let Some(&more) = tokens.get(end) {
            sum = sum.saturating_add(more);
            if sum > most && end - start >= least {
                break;
            }
            end += 1;
        }
        let group = start..end;
        start = end;
        Some(group).filter(|group| !group.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn groups(text: &str, level: u32, tokens: &[u64]) -> Vec<(Range<usize>, bool)> {
        let asking: Asking = text.parse().expect(text);
        let groups = asking.groups(level, tokens).into_iter();
        groups.map(|group| (group.members, group.asks)).collect()
    }

    #[test]
    fn neighbours_make_groups() {
        let check = |text: &str, results: usize, expected: &[(Range<usize>, bool)]| {
            assert_eq!(groups(text, 1, &vec![1; results]), expected, "{text} of {results}");
        };
        check("command:x", 0, &[]);
        check("command:x", 1, &[(0..1, true)]);
        check("command:x", 100, &[(0..100, true)]);
        check("reduce-with:2 -- x", 0, &[]);
        check("reduce-with:2 -- x", 1, &[(0..1, false)]);
        check("reduce-with:2 -- x", 2, &[(0..2, true)]);
        check("reduce-with:2 -- x", 5, &[(0..2, true), (2..4, true), (4..5, false)]);
        check("reduce-with:3 -- x", 5, &[(0..3, true), (3..5, true)]);
        check("summarize-with=x", 0, &[]);
        check("summarize-with=x", 1, &[(0..1, true)]);
        check("best-of=x", 0, &[]);
        check("best-of=x", 1, &[(0..1, false)]);
        check("best-of=x", 5, &[(0..5, true)]);
    }

    #[test]
    fn a_group_has_no_more_tokens_than_the_limit_where_that_can_be() {
        let check = |text: &str, level, tokens: &[u64], expected: &[(Range<usize>, bool)]| {
            assert_eq!(groups(text, level, tokens), expected, "{text}, {level}: {tokens:?}");
        };
        let summarize = "summarize-with:10=x";
        check(summarize, 1, &[5, 5, 5], &[(0..2, true), (2..3, false)]);
        check(summarize, 1, &[4, 4, 4, 9, 1], &[(0..2, true), (2..3, false), (3..5, true)]);
        check(summarize, 1, &[50, 1, 50], &[(0..1, true), (1..2, false), (2..3, true)]);
        check(summarize, 2, &[50, 1, 50], &[(0..2, true), (2..3, false)]);
        check("best-of:10=x", 1, &[50, 50, 50], &[(0..2, true), (2..3, false)]);
        check("best-of:10=x", 1, &[5, 5, 5, 5], &[(0..2, true), (2..4, true)]);
    }

    proptest! {
        #[test]
        fn every_result_is_in_one_group_and_levels_come_to_an_end(
            sizes in prop::collection::vec(0_u64..200, 1..500),
            number in 2_u32..100,
            way in prop::sample::select(&["reduce-with", "summarize-with", "best-of"][..]),
        ) {
            let asking: Asking = format!("{way}:{number}=a").parse().expect("a merge");
            let mut left = sizes;
            // Whatever the answers are like, as long as these.
            for level in 1..20 {
                let groups = asking.groups(level, &left);
                let mut next = 0;
                for group in &groups {
                    prop_assert_eq!(group.members.start, next);
                    prop_assert!(!group.members.is_empty());
                    prop_assert!(group.asks || group.members.len() == 1);
                    next = group.members.end;
                }
                prop_assert_eq!(next, left.len());
                prop_assert!(level == 1 || groups.len() < left.len());
                left.truncate(groups.len());
                if left.len() == 1 {
                    return Ok(());
                }
            }
            prop_assert!(false, "{} results are left", left.len());
        }
    }
}
