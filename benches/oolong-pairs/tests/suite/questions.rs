//! The tasks, against a second account of them that looks at each pair.

use jiff::civil::{Date, date};
use offshoot_oolong_pairs::Label::{
    self, Abbreviation as A, Description as D, Entity as E, Human as H, Location as L, Number as N,
};
use offshoot_oolong_pairs::{Corpus, Labelled, Profiles, QUESTIONS, Recipe};
use proptest::prelude::*;

/// The entries of one user.
struct User(Vec<Labelled>);

impl User {
    fn n(&self, label: Label) -> usize {
        self.0.iter().filter(|entry| entry.label == label).count()
    }

    fn any(&self, first: Label, second: Label) -> bool {
        self.n(first) + self.n(second) > 0
    }

    fn none(&self, label: Label, wrong: impl Fn(Date) -> bool) -> bool {
        !self.0.iter().any(|entry| entry.label == label && wrong(entry.date))
    }
}

/// True if the tasks ask for a pair, of which the first is the one and the second is the other.
fn asks(task: u8, a: &User, b: &User) -> bool {
    let both = |of: &dyn Fn(&User) -> bool| of(a) && of(b);
    match task {
        1 => both(&|u| u.any(N, L)),
        2 => both(&|u| u.any(E, H)),
        3 => both(&|u| u.any(D, A)),
        4 => both(&|u| u.any(H, L) && u.none(H, |day| day <= date(2023, 1, 6))),
        5 => both(&|u| u.any(E, N) && u.none(E, |day| day >= date(2023, 3, 15))),
        6 => both(&|u| u.any(L, A)),
        7 => both(&|u| u.any(D, N) && u.none(N, |day| day <= date(2023, 2, 1))),
        8 => both(&|u| u.any(H, D)),
        9 => both(&|u| u.any(E, L) && u.none(L, |day| day <= date(2023, 4, 10))),
        10 => both(&|u| u.any(N, A) && u.none(A, |day| day >= date(2023, 5, 20))),
        11 => a.n(E) >= 1 && a.n(A) >= 1 && b.n(E) == 1,
        12 => a.n(N) >= 2 && b.n(L) >= 1 && b.n(H) >= 1,
        13 => a.n(D) == 1 && b.n(A) >= 1 && b.n(E) >= 1,
        14 => a.n(H) >= 1 && a.n(N) >= 1 && b.n(L) == 2,
        15 => a.n(E) >= 1 && a.n(L) >= 1 && a.n(A) >= 1 && b.n(N) == 1,
        16 => a.n(D) >= 1 && a.n(H) >= 1 && b.n(E) >= 2 && b.n(A) == 1,
        17 => a.n(N) == 1 && b.n(L) >= 1 && b.n(D) >= 1,
        18 => a.n(A) >= 1 && a.n(H) == 1 && b.n(E) >= 1 && b.n(N) >= 1,
        19 => a.n(L) >= 2 && a.n(E) >= 1 && b.n(D) == 1 && b.n(A) == 1,
        20 => a.n(N) >= 1 && a.n(H) >= 1 && b.n(L) >= 1 && b.n(E) >= 1 && b.n(A) == 1,
        _ => panic!("there are 20 tasks"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn pairs_are_those_that_the_task_asks_for(seed: u64, users in 0.05..0.3) {
        let corpus = Corpus::generate(&Recipe { tokens: 4_000, seed, users: Some(users) });
        let labelled = corpus.labelled();
        let mut ids: Vec<u32> = labelled.iter().map(|entry| entry.user).collect();
        ids.sort_unstable();
        ids.dedup();
        let of = |id| User(labelled.iter().copied().filter(|entry| entry.user == id).collect());
        let users: Vec<(u32, User)> = ids.into_iter().map(|id| (id, of(id))).collect();
        let profiles: Profiles = labelled.iter().copied().collect();
        for question in &QUESTIONS {
            let mut expected = Vec::new();
            for (place, (low, a)) in users.iter().enumerate() {
                for (high, b) in &users[place + 1..] {
                    if asks(question.number, a, b) || asks(question.number, b, a) {
                        expected.push((*low, *high));
                    }
                }
            }
            prop_assert_eq!(profiles.pairs(question), expected, "task {}", question.number);
        }
    }
}

#[test]
fn a_day_is_on_neither_side_of_itself() {
    let entry = |user, date, label| Labelled { user, date, label };
    let pair =
        |day: Date| -> Profiles { [entry(1, day, H), entry(2, day, H)].into_iter().collect() };
    let fourth = &QUESTIONS[3];
    assert_eq!(pair(date(2023, 1, 6)).pairs(fourth), []);
    assert_eq!(pair(date(2023, 1, 7)).pairs(fourth), [(1, 2)]);
    // A user without an entry of the label.
    let vacuous: Profiles =
        [1, 2].map(|user| entry(user, date(2022, 6, 1), L)).into_iter().collect();
    assert_eq!(vacuous.pairs(fourth), [(1, 2)]);
}

#[test]
fn questions_are_numbered_and_say_what_they_ask() {
    let numbers: Vec<u8> = QUESTIONS.iter().map(|question| question.number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(
        QUESTIONS[18].to_string(),
        "List all pairs of user ids where one user has at least 2 instances with the label `location` and at least 1 instance \
         with the label `entity` and the other user has exactly 1 instance with the label `description and abstract concept` and \
         exactly 1 instance with the label `abbreviation`. No pair twice, the lower id first, one pair a line: (id1, id2)"
    );
}
