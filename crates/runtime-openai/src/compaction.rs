//! The summaries of long conversations: when they are due, and how the model is asked for them. Pure.

use serde::Deserialize;

use crate::history::{History, Message};

/// Settings of one agent: `agents.defaults.compaction` or its own.
///
/// Fields that are not known belong to other programs that read the same settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    /// `off` switches it off; every other word leaves it on.
    pub mode: Option<String>,
    /// Past so many tokens a conversation is summed up before the model is asked again. None: never, unless the service
    /// says that it is too long.
    pub at_tokens: Option<u64>,
    /// Further instructions for the model when it is asked for a summary.
    pub instructions: Option<String>,
}

/// The moment at which the next summary is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    limit: Option<u64>,
    next: u64,
}

const REQUEST: &str = "\
This conversation has become too long to go on with. Write down what is needed to finish without it: what was asked, what \
has been done and found out, every identifier, number and decision that still matters, what is under way, and what is left \
to do. Everything that you leave out is gone. Answer with these notes alone, and call no tools.";

impl Compaction {
    /// True if conversations are summed up at all.
    pub(crate) fn is_on(&self) -> bool {
        self.mode.as_deref() != Some("off")
    }

    /// Past how many tokens.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.at_tokens.filter(|_| self.is_on())
    }

    /// The conversation that asks for a summary of another; none where there is nothing to sum up.
    pub(crate) fn request(&self, history: &History) -> Option<Vec<Message>> {
        let past = history.to_sum_up();
        if past.is_empty() {
            return None;
        }
        let content = match &self.instructions {
            Some(more) => format!("{REQUEST}\n\n{more}"),
            None => REQUEST.to_owned(),
        };
        Some([past, &[Message::User { content: content.into() }]].concat())
    }
}

impl Due {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, next: limit.unwrap_or_default() }
    }

    /// True if a conversation of so many tokens is to be summed up.
    pub(crate) fn is_past(&self, tokens: u64) -> bool {
        self.limit.is_some() && tokens > self.next
    }

    /// A summary has left so many tokens. Where they are too many again, the next one waits until it has something to do:
    /// otherwise every answer would be followed by a summary.
    pub(crate) fn left(&mut self, tokens: u64) {
        let limit = self.limit.unwrap_or_default();
        self.next = limit.max(tokens.saturating_add(limit / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        #[track_caller]
        fn check(settings: &str, on: bool, limit: Option<u64>) {
            let settings: Compaction = serde_json::from_str(settings).expect("settings");
            assert_eq!((settings.is_on(), settings.limit()), (on, limit), "{settings:?}");
        }
        check("{}", true, None);
        check(r#"{"mode": "safeguard", "atTokens": 10}"#, true, Some(10));
        check(r#"{"mode": "off", "atTokens": 10}"#, false, None);
        check(r#"{"atTokens": 10, "reserveTokensFloor": 3}"#, true, Some(10));
    }

    #[test]
    fn a_summary_that_is_too_long_itself_is_not_summed_up_at_once() {
        let mut due = Due::new(Some(100));
        assert!(!due.is_past(100));
        assert!(due.is_past(101));
        due.left(20);
        assert!(!due.is_past(100) && due.is_past(101));
        due.left(120);
        assert!(!due.is_past(170) && due.is_past(171));
        assert!(!Due::new(None).is_past(u64::MAX));
    }

    #[test]
    fn the_request_stands_behind_what_it_is_about() {
        let settings =
            Compaction { instructions: Some("In French.".into()), ..Compaction::default() };
        let mut history = History::new(None, "go".into());
        assert_eq!(settings.request(&history), None);
        history.answered(&crate::reply::Reply { text: "a".into(), ..Default::default() });
        let request = settings.request(&history).expect("something to sum up");
        assert_eq!(request[..2], *history.messages);
        let [_, _, Message::User { content }] = &request[..] else { panic!("{request:?}") };
        assert!(
            content.starts_with("This conversation") && content.ends_with("\n\nIn French."),
            "{content}"
        );
    }
}
