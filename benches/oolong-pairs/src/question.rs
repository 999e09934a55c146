//! The twenty tasks, as data.

use std::fmt;

use jiff::civil::{Date, date};

use crate::Label::{self, Abbreviation, Description, Entity, Human, Location, Number};
use crate::Profile;

/// One task: which pairs of users are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The number, from 1.
    pub number: u8,
    /// The pairs.
    pub pairs: Pairs,
}

/// The condition on the two users of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pairs {
    /// Both users have at least one entry with one of these labels, and all their entries of a label lie on one side of a day.
    Alike([Label; 2], Option<Bound>),
    /// One user fulfils the first condition, the other one the second.
    Apart(&'static [Count], &'static [Count]),
}

/// The side of a day on which all entries of a label lie; true of a user without such an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The label.
    pub label: Label,
    /// The side.
    pub side: Side,
    /// The day, which is on neither side.
    pub day: Date,
}

/// A side of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the day.
    Before,
    /// After the day.
    After,
}

/// A condition on the number of entries with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// At least so many.
    AtLeast(Label, u32),
    /// Exactly so many.
    Exactly(Label, u32),
}

use Count::{AtLeast, Exactly};
use Side::{After, Before};

const fn alike(number: u8, first: Label, second: Label) -> Question {
    Question { number, pairs: Pairs::Alike([first, second], None) }
}

const fn bounded(number: u8, labels: [Label; 2], label: Label, side: Side, day: Date) -> Question {
    Question { number, pairs: Pairs::Alike(labels, Some(Bound { label, side, day })) }
}

const fn apart(number: u8, one: &'static [Count], other: &'static [Count]) -> Question {
    Question { number, pairs: Pairs::Apart(one, other) }
}

/// The tasks, in their order.
pub const QUESTIONS: [Question; 20] = [
    alike(1, Number, Location),
    alike(2, Entity, Human),
    alike(3, Description, Abbreviation),
    bounded(4, [Human, Location], Human, After, date(2023, 1, 6)),
    bounded(5, [Entity, Number], Entity, Before, date(2023, 3, 15)),
    alike(6, Location, Abbreviation),
    bounded(7, [Description, Number], Number, After, date(2023, 2, 1)),
    alike(8, Human, Description),
    bounded(9, [Entity, Location], Location, After, date(2023, 4, 10)),
    bounded(10, [Number, Abbreviation], Abbreviation, Before, date(2023, 5, 20)),
    apart(11, &[AtLeast(Entity, 1), AtLeast(Abbreviation, 1)], &[Exactly(Entity, 1)]),
    apart(12, &[AtLeast(Number, 2)], &[AtLeast(Location, 1), AtLeast(Human, 1)]),
    apart(13, &[Exactly(Description, 1)], &[AtLeast(Abbreviation, 1), AtLeast(Entity, 1)]),
    apart(14, &[AtLeast(Human, 1), AtLeast(Number, 1)], &[Exactly(Location, 2)]),
    apart(
        15,
        &[AtLeast(Entity, 1), AtLeast(Location, 1), AtLeast(Abbreviation, 1)],
        &[Exactly(Number, 1)],
    ),
    apart(
        16,
        &[AtLeast(Description, 1), AtLeast(Human, 1)],
        &[AtLeast(Entity, 2), Exactly(Abbreviation, 1)],
    ),
    apart(17, &[Exactly(Number, 1)], &[AtLeast(Location, 1), AtLeast(Description, 1)]),
    apart(
        18,
        &[AtLeast(Abbreviation, 1), Exactly(Human, 1)],
        &[AtLeast(Entity, 1), AtLeast(Number, 1)],
    ),
    apart(
        19,
        &[AtLeast(Location, 2), AtLeast(Entity, 1)],
        &[Exactly(Description, 1), Exactly(Abbreviation, 1)],
    ),
    apart(
        20,
        &[AtLeast(Number, 1), AtLeast(Human, 1)],
        &[AtLeast(Location, 1), AtLeast(Entity, 1), Exactly(Abbreviation, 1)],
    ),
];

impl Count {
    fn holds(self, user: &Profile) -> bool {
        match self {
            AtLeast(label, count) => user.count(label) >= count,
            Exactly(label, count) => user.count(label) == count,
        }
    }
}

impl Bound {
    fn holds(self, user: &Profile) -> bool {
        let is_on_side = |date: &Date| match self.side {
            Before => *date < self.day,
            After => *date > self.day,
        };
        user.dates(self.label).iter().all(is_on_side)
    }
}

impl Pairs {
    /// True if a user can be the one, and true if it can be the other one.
    pub(crate) fn places(self, user: &Profile) -> (bool, bool) {
        match self {
            Self::Alike(labels, bound) => {
                let has_one = labels.iter().any(|&label| user.count(label) >= 1);
                let fits = has_one && bound.is_none_or(|bound| bound.holds(user));
                (fits, fits)
            }
            Self::Apart(one, other) => {
                let all = |counts: &[Count]| counts.iter().all(|count| count.holds(user));
                (all(one), all(other))
            }
        }
    }
}

impl fmt::Display for Question {
    /// The question in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("List all pairs of user ids ")?;
        match &self.pairs {
            Pairs::Alike([first, second], bound) => {
                let (first, second) = (first.name(), second.name());
                write!(
                    f,
                    "where both users have at least one instance with the label `{first}` or `{second}`"
                )?;
                if let Some(Bound { label, side, day }) = bound {
                    let side = if *side == Before { "before" } else { "after" };
                    let (label, day) = (label.name(), day.strftime("%B %d, %Y"));
                    write!(
                        f,
                        ", and all instances with the label `{label}` of both users are {side} {day}"
                    )?;
                }
            }
            Pairs::Apart(one, other) => {
                write!(
                    f,
                    "where one user has {} and the other user has {}",
                    Counts(one),
                    Counts(other)
                )?;
            }
        }
        f.write_str(". No pair twice, the lower id first, one pair a line: (id1, id2)")
    }
}

struct Counts<'a>(&'a [Count]);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, count) in self.0.iter().enumerate() {
            let (how, count, label) = match count {
                AtLeast(label, count) => ("at least", count, label),
                Exactly(label, count) => ("exactly", count, label),
            };
            let and = if place == 0 { "" } else { " and " };
            let s = if *count == 1 { "" } else { "s" };
            write!(f, "{and}{how} {count} instance{s} with the label `{}`", label.name())?;
        }
        Ok(())
    }
}
