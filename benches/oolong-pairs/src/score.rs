//! F1 over sets of pairs.

use std::cmp::Ordering;

use crate::{Profiles, QUESTIONS, Question};

/// The score of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// The number of the task.
    pub task: u8,
    /// Pairs that are right.
    pub expected: usize,
    /// Pairs that were answered.
    pub answered: usize,
    /// Pairs of the answer that are right.
    pub hits: usize,
}

impl Score {
    /// Compares the pairs that were answered with those that are right. Both are in order, and have none twice.
    pub fn of(task: u8, expected: &[(u32, u32)], answered: &[(u32, u32)]) -> Self {
        let (mut left, mut right, mut hits) = (0, 0, 0);
        while let (Some(a), Some(b)) = (expected.get(left), answered.get(right)) {
            let order = a.cmp(b);
            left += usize::from(order != Ordering::Greater);
            right += usize::from(order != Ordering::Less);
            hits += usize::from(order == Ordering::Equal);
        }
        Self { task, expected: expected.len(), answered: answered.len(), hits }
    }

    /// Returns the harmonic mean of precision and recall: 1 where both sets are empty, 0 where one is.
    pub fn f1(&self) -> f64 {
        match self.expected + self.answered {
            0 => 1.0,
            both => 2.0 * self.hits as f64 / both as f64,
        }
    }

    /// True if no pair is right: such a task is reported apart.
    pub fn is_empty(&self) -> bool {
        self.expected == 0
    }
}

/// Scores all tasks.
pub fn scores(truth: &Profiles, answered: &Profiles) -> Vec<Score> {
    let score = |question: &Question| {
        Score::of(question.number, &truth.pairs(question), &answered.pairs(question))
    };
    QUESTIONS.iter().map(score).collect()
}

/// Returns the mean F1 of the tasks that have an answer; none where none has.
pub fn mean(scores: &[Score]) -> Option<f64> {
    let with_answer: Vec<f64> =
        scores.iter().filter(|score| !score.is_empty()).map(Score::f1).collect();
    (!with_answer.is_empty()).then(|| with_answer.iter().sum::<f64>() / with_answer.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_is_a_table() {
        let pairs = [(1, 2), (1, 3), (2, 3)];
        for (expected, answered, f1) in [
            (&pairs[..], &pairs[..], 1.0),
            (&[], &[], 1.0),
            (&pairs[..], &[], 0.0),
            (&[], &pairs[..], 0.0),
            (&pairs[..2], &pairs[1..], 0.5),
            (&pairs[..1], &pairs[1..], 0.0),
            (&pairs[..], &pairs[..1], 0.5),
        ] {
            let score = Score::of(1, expected, answered);
            assert!((score.f1() - f1).abs() < 1e-9, "{expected:?} {answered:?}: {score:?}");
        }
    }
}
