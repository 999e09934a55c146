//! The meanings of a text that names runs.

use std::ops::RangeInclusive;

use offshoot_model::{RunId, SessionKey};

/// A text, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// The bare word `main`.
    MainSessions,
    /// A whole key.
    Session(SessionKey),
    /// All runs whose id begins so.
    Runs(RangeInclusive<RunId>),
    /// All runs with this label.
    Labelled(String),
}

impl Sought {
    /// Returns what a text may mean. A later meaning counts where no run has an earlier one: a label may look like the beginning of
    /// an id.
    pub(crate) fn meanings(text: &str) -> Vec<Self> {
        let text = text.trim();
        let main = text.eq_ignore_ascii_case("main").then_some(Self::MainSessions);
        let runs = runs(text).map(Self::Runs);
        let session = SessionKey::parse(text).ok().map(Self::Session);
        let labelled = (!text.is_empty()).then(|| Self::Labelled(text.to_owned()));
        main.or(runs).or(session).into_iter().chain(labelled).collect()
    }
}

/// All ids that begin with these digits. Hyphens are for people: where they stand makes no difference.
fn runs(text: &str) -> Option<RangeInclusive<RunId>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|&char| char != '-')
        .map(|char| char.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let end = |filler: u8| {
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digit = |at: usize| digits.get(at).copied().unwrap_or(filler);
            *byte = digit(2 * at) << 4 | digit(2 * at + 1);
        }
        RunId::from_bytes(bytes)
    };
    Some(end(0)..=end(15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let words = |sought: &Sought| match sought {
            Sought::MainSessions => Some("main sessions".to_owned()),
            Sought::Session(key) => Some(format!("session {key}")),
            Sought::Runs(runs) => Some(format!("{}..{}", runs.start(), runs.end())),
            Sought::Labelled(label) => {
                assert_eq!(label, text.trim());
                None
            }
        };
        let meanings = Sought::meanings(text);
        assert_eq!(
            meanings.iter().find_map(words).as_deref().unwrap_or("nothing"),
            expected,
            "{text:?}"
        );
        let labelled = meanings.iter().filter(|sought| matches!(sought, Sought::Labelled(_)));
        assert_eq!(labelled.count(), usize::from(!text.is_empty()), "{text:?}");
    }

    #[test]
    fn texts_are_understood() {
        let whole = "01988b9e-1234-7abc-8def-0123456789ab";
        check(whole, &format!("{whole}..{whole}"));
        check(&whole.to_uppercase(), &format!("{whole}..{whole}"));
        check("0", "00000000-0000-0000-0000-000000000000..0fffffff-ffff-ffff-ffff-ffffffffffff");
        check(
            " 01988b9e-1 ",
            "01988b9e-1000-0000-0000-000000000000..01988b9e-1fff-ffff-ffff-ffffffffffff",
        );
        check(&format!("{whole}0"), "nothing");
        check("main", "main sessions");
        check("Agent:Main:Main", "session agent:main:main");
        check("agent:main:subagent:", "nothing");
        check("-", "nothing");
        check("", "nothing");
        check("wizard", "nothing");
    }
}
