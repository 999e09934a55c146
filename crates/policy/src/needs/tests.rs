//! Orders of tasks: tables of what is refused, and properties of what is ordered.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(tasks: &[(&str, &[&str])], expected: Result<&[&str], &str>) {
    let needs: Vec<Vec<String>> =
        tasks.iter().map(|(_, needs)| needs.iter().map(|&id| id.to_owned()).collect()).collect();
    let named: Vec<Named<'_>> = tasks
        .iter()
        .zip(&needs)
        .map(|((id, _), needs)| Named { id: Some(*id).filter(|id| !id.is_empty()), needs })
        .collect();
    let found = places(&named).map(|needs| order(&needs).expect("there is no cycle"));
    let found = found.map(|order| order.into_iter().map(|at| tasks[at].0).collect::<Vec<_>>());
    let found = found.map_err(|error| format!("{}: {error}", error.at()));
    let expected = expected.map(<[&str]>::to_vec).map_err(str::to_owned);
    assert_eq!(found, expected);
}

#[test]
fn names_become_an_order_or_an_error_that_names_them() {
    check(&[], Ok(&[]));
    check(&[("a", &[]), ("b", &["a"])], Ok(&["a", "b"]));
    check(&[("b", &["a"]), ("c", &[]), ("a", &[])], Ok(&["c", "a", "b"]));
    check(&[("", &["a"]), ("", &[]), ("a", &[])], Ok(&["", "a", ""]));
    check(&[("a", &["a"])], Err("0: tasks need each other in a cycle: a → a"));
    let round = [("x", &["b"][..]), ("c", &["b"]), ("a", &["c"]), ("b", &["a"])];
    check(&round, Err("1: tasks need each other in a cycle: c → b → a → c"));
    check(
        &[("fetch", &[]), ("b", &["fecth"])],
        Err("1: no task has the id `fecth`; the nearest is `fetch`"),
    );
    check(&[("a", &["zzzzzz"])], Err("0: no task has the id `zzzzzz`"));
    check(&[("a", &[]), ("a", &[])], Err("1: two tasks have the id `a`"));
    check(&[("a", &[]), ("b", &["a", "a"])], Err("1: `a` stands twice in `needs`"));
}

#[test]
fn a_wave_is_one_behind_the_last_that_is_needed() {
    let needs = [vec![], vec![0], vec![], vec![1, 2], vec![2]];
    assert_eq!(waves(&needs), [0, 1, 0, 2, 1]);
}

#[test]
fn a_chain_of_ten_thousand_that_stands_the_wrong_way_round_is_ordered() {
    let many = 10_000;
    let needs: Vec<Vec<usize>> =
        (0..many).map(|at| if at + 1 < many { vec![at + 1] } else { vec![] }).collect();
    let order = order(&needs).expect("there is no cycle");
    assert!(order.into_iter().eq((0..many).rev()));
}

/// Any graph of so many places, cycles among them.
fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1_usize..12).prop_flat_map(|many| vec(vec(0..many, 0..4), many))
}

proptest! {
    #[test]
    fn each_place_comes_once_and_behind_what_it_needs_or_a_cycle_is_one(needs in graph()) {
        match order(&needs) {
            Ok(order) => {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert!(sorted.into_iter().eq(0..needs.len()));
                let waves = waves(&needs);
                for (at, &place) in order.iter().enumerate() {
                    for need in &needs[place] {
                        prop_assert!(order[..at].contains(need));
                        prop_assert!(waves[*need] < waves[place]);
                    }
                }
            }
            Err(cycle) => {
                prop_assert!(cycle.len() > 1 && cycle.first() == cycle.last());
                for pair in cycle.windows(2) {
                    prop_assert!(needs[pair[0]].contains(&pair[1]));
                }
            }
        }
    }

    #[test]
    fn what_needs_only_what_is_before_it_stays_in_its_order(needs in graph()) {
        let earlier = |(at, needs): (usize, Vec<usize>)| -> Vec<usize> {
            needs.into_iter().filter(|need| *need < at).collect()
        };
        let needs: Vec<_> = needs.into_iter().enumerate().map(earlier).collect();
        prop_assert_eq!(order(&needs), Ok((0..needs.len()).collect()));
    }
}
