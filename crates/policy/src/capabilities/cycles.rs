//! The cycles of a graph of numbers.

use std::collections::{BTreeSet, VecDeque};

/// Returns cycles of two or more nodes: of each edge that is part of one, the shortest. A cycle is told once, from its smallest
/// node, and ends with that node again; the order is that of their nodes. An edge from a node to itself forms none.
///
/// All cycles would be too many: ten nodes with every edge have more than a million.
pub(super) fn find(graph: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut found = BTreeSet::new();
    for target in 0..graph.len() {
        let before = shortest_from(graph, target);
        let sources = (0..graph.len()).filter(|from| graph[*from].contains(&target));
        for source in sources.filter(|from| *from != target) {
            found.extend(walked_back(&before, target, source));
        }
    }
    found.into_iter().collect()
}

/// Returns for each node the one before it on a shortest path from this one; none for the start and for what is not reached.
fn shortest_from(graph: &[Vec<usize>], start: usize) -> Vec<Option<usize>> {
    let mut before = vec![None; graph.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &next in &graph[at] {
            if next != start && before[next].is_none() {
                before[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    before
}

/// The path from `start` to `end`, closed to a cycle that begins with its smallest node. None where `end` is not reached.
fn walked_back(before: &[Option<usize>], start: usize, end: usize) -> Option<Vec<usize>> {
    let mut path = vec![end];
    while *path.last()? != start {
        path.push(before[*path.last()?]?);
    }
    path.reverse();
    let smallest = path.iter().enumerate().min_by_key(|(_, node)| **node)?.0;
    path.rotate_left(smallest);
    path.push(path[0]);
    Some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_cycle_is_told_once_from_its_smallest_node() {
        let check = |graph: &[&[usize]], expected: &[&[usize]]| {
            let graph: Vec<Vec<usize>> = graph.iter().map(|edges| edges.to_vec()).collect();
            assert_eq!(find(&graph), expected, "{graph:?}");
        };
        check(&[], &[]);
        check(&[&[0]], &[]);
        check(&[&[1], &[]], &[]);
        check(&[&[1], &[0]], &[&[0, 1, 0]]);
        check(&[&[0, 1], &[1, 0]], &[&[0, 1, 0]]);
        check(&[&[2], &[0], &[1]], &[&[0, 2, 1, 0]]);
        // Two that share a node, and one behind a path that leads nowhere back.
        check(&[&[1, 2], &[0], &[0]], &[&[0, 1, 0], &[0, 2, 0]]);
        check(&[&[1], &[2], &[3], &[1]], &[&[1, 2, 3, 1]]);
        // A long way round an edge that has a short one.
        check(&[&[1], &[0, 2], &[0]], &[&[0, 1, 0], &[0, 1, 2, 0]]);
    }

    fn reaches(graph: &[Vec<usize>], from: usize, to: usize) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                next.extend(&graph[at]);
            }
        }
        false
    }

    proptest! {
        #[test]
        fn every_edge_that_can_come_back_is_in_a_cycle_and_no_other(
            edges in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 6), 6),
        ) {
            let targets = |row: &Vec<bool>| (0..6).filter(|at| row[*at]).collect::<Vec<usize>>();
            let graph: Vec<Vec<usize>> = edges.iter().map(targets).collect();
            let cycles = find(&graph);
            let mut covered = BTreeSet::new();
            for cycle in &cycles {
                let (first, last) = (cycle.first(), cycle.last());
                prop_assert_eq!(first, last);
                let inner: BTreeSet<_> = cycle[1..].iter().collect();
                prop_assert_eq!(inner.len(), cycle.len() - 1, "a node stands twice in {:?}", cycle);
                for edge in cycle.windows(2) {
                    prop_assert!(graph[edge[0]].contains(&edge[1]));
                    covered.insert((edge[0], edge[1]));
                }
            }
            for from in 0..6 {
                for &to in graph[from].iter().filter(|to| **to != from) {
                    let can_come_back = reaches(&graph, to, from);
                    prop_assert_eq!(covered.contains(&(from, to)), can_come_back, "{} {}", from, to);
                }
            }
        }
    }
}
