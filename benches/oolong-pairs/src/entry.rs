//! One line of the context, and what a labeller says of it.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::fmt::strtime;

use crate::Label;

const DATE: &str = "%b %d, %Y";

/// One line of the context: `Date: Feb 02, 2023 || User: 76153 || Instance: Who wrote …?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The day.
    pub date: Date,
    /// The user.
    pub user: u32,
    /// The text, whose label is hidden.
    pub instance: String,
}

/// An entry with its label, without its text: a line of an answer, `76153 2023-02-02 H`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labelled {
    /// The user.
    pub user: u32,
    /// The day.
    pub date: Date,
    /// The label.
    pub label: Label,
}

/// A text that is no line of a context or of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no {1}")]
pub struct ParseLineError(String, &'static str);

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, user, instance } = self;
        write!(f, "Date: {} || User: {user} || Instance: {instance}", date.strftime(DATE))
    }
}

impl FromStr for Entry {
    type Err = ParseLineError;

    fn from_str(line: &str) -> Result<Self, ParseLineError> {
        let parse = || {
            let (date, rest) = line.strip_prefix("Date: ")?.split_once(" || User: ")?;
            let (user, instance) = rest.split_once(" || Instance: ")?;
            let date = strtime::parse(DATE, date).ok()?.to_date().ok()?;
            Some(Self { date, user: user.parse().ok()?, instance: instance.to_owned() })
        };
        parse().ok_or_else(|| ParseLineError(line.to_owned(), "entry"))
    }
}

impl fmt::Display for Labelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, date, label } = self;
        write!(f, "{user} {date} {}", label.letter())
    }
}

impl FromStr for Labelled {
    type Err = ParseLineError;

    fn from_str(line: &str) -> Result<Self, ParseLineError> {
        let parse = || {
            let mut words = line.split(' ');
            let user = words.next()?.parse().ok()?;
            let date = words.next()?.parse().ok()?;
            let label = Label::of_letter(words.next()?)?;
            words.next().is_none().then_some(Self { user, date, label })
        };
        parse().ok_or_else(|| ParseLineError(line.to_owned(), "labelled entry"))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_line_is_read_as_written() {
        let line = "Date: Feb 02, 2023 || User: 76153 || Instance: Who wrote it?";
        let entry: Entry = line.parse().expect("an entry");
        assert_eq!((entry.date, entry.user), (date(2023, 2, 2), 76153));
        assert_eq!(entry.to_string(), line);
        let answer = "76153 2023-02-02 H";
        let labelled: Labelled = answer.parse().expect("an answer");
        assert_eq!(labelled.to_string(), answer);
    }

    #[test]
    fn anything_else_is_no_line() {
        for text in ["", "Date: Feb 30, 2023 || User: 1 || Instance: x", "User: 1", "---"] {
            assert!(text.parse::<Entry>().is_err(), "{text}");
        }
        for text in ["", "1 2023-02-02", "1 2023-02-02 X", "1 2023-02-02 H H", "x 2023-02-02 H"] {
            assert!(text.parse::<Labelled>().is_err(), "{text}");
        }
    }
}
