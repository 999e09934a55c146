//! Old results of tools, cut short before they are sent again. Pure.

use std::borrow::Cow;

use serde::Deserialize;

use crate::history::Message;

/// Settings of one agent: `agents.defaults.contextPruning` or its own.
///
/// Fields that are not known belong to other programs that read the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pruning {
    /// `off` (where absent) leaves everything; every other word switches it on.
    pub mode: Option<String>,
    /// Results behind the last so many answers of the model stay whole.
    pub keep_last_assistants: usize,
    /// The part that is cut out of the middle.
    pub soft_trim: SoftTrim,
}

/// The results that are cut, and the part of them that stays, in characters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SoftTrim {
    /// Up to this length a result stays whole.
    pub max_chars: usize,
    /// Of a longer one, what stays of its beginning.
    pub head_chars: usize,
    /// And of its end.
    pub tail_chars: usize,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { mode: None, keep_last_assistants: 3, soft_trim: SoftTrim::default() }
    }
}

impl Default for SoftTrim {
    fn default() -> Self {
        Self { max_chars: 4000, head_chars: 1500, tail_chars: 1500 }
    }
}

impl Pruning {
    /// The messages as they are sent. What was said stays as it is in the conversation.
    pub(crate) fn apply<'m>(&self, messages: &'m [Message]) -> Cow<'m, [Message]> {
        if self.mode.as_deref().is_none_or(|mode| mode == "off") {
            return messages.into();
        }
        let answers = messages.iter().enumerate().rev();
        let mut answers =
            answers.filter(|(_, message)| matches!(message, Message::Assistant { .. }));
        // The answers that are kept begin here; what stands before is old.
        let old = match self.keep_last_assistants.checked_sub(1) {
            None => messages.len(),
            Some(before) => answers.nth(before).map_or(0, |(at, _)| at),
        };
        let mut pruned = Cow::Borrowed(messages);
        for (at, message) in messages[..old].iter().enumerate() {
            if let Message::Tool { tool_call_id, content } = message
                && let Some(short) = self.soft_trim.apply(content)
            {
                let tool_call_id = tool_call_id.clone();
                pruned.to_mut()[at] = Message::Tool { tool_call_id, content: short.into() };
            }
        }
        pruned
    }
}

impl SoftTrim {
    fn apply(&self, text: &str) -> Option<String> {
        let length = text.chars().count();
        let kept = self.head_chars.saturating_add(self.tail_chars);
        if length <= self.max_chars.max(kept) {
            return None;
        }
        let head: String = text.chars().take(self.head_chars).collect();
        let tail: String = text.chars().skip(length - self.tail_chars).collect();
        let gone = length - kept;
        Some(format!("{head}\n[{gone} characters of this old result are left out]\n{tail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let assistant = || Message::Assistant { content: None, tool_calls: Vec::new() };
        let tool =
            |content: &str| Message::Tool { tool_call_id: "a".into(), content: content.into() };
        let long = "0123456789".repeat(3);
        vec![
            Message::User { content: long.as_str().into() },
            assistant(),
            tool(&long),
            assistant(),
            tool("short"),
            tool(&long),
            assistant(),
        ]
    }

    /// The lengths of what is sent.
    fn check(settings: &str, expected: [bool; 7]) {
        let settings: Pruning = serde_json::from_str(settings).expect("settings");
        let whole = messages();
        let pruned = settings.apply(&whole);
        let same: Vec<_> = whole.iter().zip(pruned.iter()).map(|(a, b)| a == b).collect();
        assert_eq!(same, expected, "{settings:?}");
    }

    const TRIM: &str = r#""softTrim": {"maxChars": 20, "headChars": 3, "tailChars": 2}"#;

    #[test]
    fn old_results_are_cut() {
        check(&format!("{{{TRIM}}}"), [true; 7]);
        check(&format!(r#"{{"mode": "off", {TRIM}}}"#), [true; 7]);
        let on = |keep| format!(r#"{{"mode": "cache-ttl", "keepLastAssistants": {keep}, {TRIM}}}"#);
        check(&on(3), [true; 7]);
        check(&on(2), [true, true, false, true, true, true, true]);
        check(&on(1), [true, true, false, true, true, false, true]);
        check(&on(0), [true, true, false, true, true, false, true]);
        check(&on(9), [true; 7]);
        check(r#"{"mode": "on", "keepLastAssistants": 0}"#, [true; 7]);
    }

    #[test]
    fn what_stays_of_one() {
        let trim = SoftTrim { max_chars: 9, head_chars: 2, tail_chars: 1 };
        assert_eq!(trim.apply("äöüäöüäöü"), None);
        let short = trim.apply("äöüäöüäöüx").expect("too long");
        assert_eq!(short, "äö\n[7 characters of this old result are left out]\nx");
        let silly = SoftTrim { max_chars: 1, head_chars: 9, tail_chars: 9 };
        assert_eq!(silly.apply("0123456789"), None, "nothing would be gained");
    }
}
