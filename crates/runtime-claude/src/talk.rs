//! The state of a session while it runs: a fold of its lines. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use offshoot_model::{JsonText, Reason, ToolUse, Usage};
use offshoot_process::{Finished as Ended, Kept};
use offshoot_runtime::{Finished, Output, OutputFormat, diagnostics};

use crate::lines::{Assistant, Init, Line, QuotaLeft, Retry, TurnResult};
use crate::outcome::{self, Evidence};
use crate::tools::OWN_SERVER;
use crate::usage::Meter;

/// The state of a session.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    meter: Meter,
    evidence: Evidence,
    /// The last text, which is not always the answer.
    last_text: Option<String>,
    /// True if it came so far that it may have used something.
    began: bool,
    /// True if our own tools must be there.
    needs_own_server: bool,
    /// The session's id, by which a further process goes on with it.
    session: Option<String>,
    /// The model that answers, once it is known.
    model: Option<String>,
    /// A turn is under way, or will begin.
    in_turn: bool,
    /// Messages that were sent and that no turn has answered.
    owed: BTreeSet<String>,
    /// True if the program tells which messages a turn answers.
    tells_messages: bool,
}

/// The effect that a line asks of the code that runs the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// To tell people a line, and the tools that are used.
    Told {
        /// The model that answers from here on, where it has changed.
        model: Option<String>,
        /// The line, where there is one.
        line: Option<String>,
        /// The tools.
        tools: Vec<ToolUse>,
    },
    /// To tell that the service is asked again after this wait, and why.
    BacksOff {
        /// The fault, in words.
        why: String,
        /// The wait.
        wait: Duration,
        /// True if the service has too much to do, or is not there.
        is_pressure: bool,
    },
    /// To tell what has been used.
    Used,
    /// To tell what is left of quotas of the account.
    QuotaLeft(Vec<QuotaLeft>),
    /// To ask the program what has been used.
    AskUsage,
    /// To tell what has been used to the parties that have asked, up to this request.
    Answered(String),
    /// To decide how it goes on.
    TurnEnded,
    /// To end it.
    End,
}

/// The word for a key or a login that is no good.
const UNAUTHORIZED: &str = "authentication_failed";

/// The beginning of the ids of requests for what a session has used; their number follows.
pub(crate) const USAGE: &str = "usage-";

/// The id of the request for what a session has used before its process does anything.
pub(crate) const BASELINE: &str = "usage-0";

/// Of what it says, this many characters are told to people.
const PROGRESS_CHARS: usize = 200;

impl Talk {
    /// A session that has said nothing yet.
    pub fn new(needs_own_server: bool) -> Self {
        Self { needs_own_server, ..Self::default() }
    }

    /// True if a turn has ever begun.
    pub fn began(&self) -> bool {
        self.began
    }

    /// The account so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The answer of the last turn, where it was one.
    pub fn answer(&self) -> Option<&str> {
        let result = self.evidence.result.as_ref().filter(|result| is_success(result))?;
        result.structured_output.as_deref().or(result.result.as_deref())
    }

    /// The session's id, once it is known.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// True if a message that is sent now goes into the turn that is under way, or follows it, and is answered for sure. A
    /// program that does not tell what it answers gets none: it would not be known which result is the last.
    pub fn takes_letters(&self) -> bool {
        self.in_turn && self.tells_messages
    }

    /// A message has been sent, with this id.
    pub fn said(&mut self, message: String) {
        self.owed.insert(message);
        self.begin_turn();
    }

    /// Takes note that the process is gone and another one continues the session.
    pub fn goes_on(&mut self) {
        self.meter = self.meter.resume();
        self.evidence = Evidence { spoke: true, ..Evidence::default() };
    }

    /// True if a turn is under way that may be using something.
    pub fn is_at_work(&self) -> bool {
        self.in_turn && self.began
    }

    /// Notes that the program has been asked to break off its turn. The next result is the last one.
    pub fn interrupted(&mut self) {
        self.evidence.interrupted = true;
        self.owed.clear();
    }

    /// True if the program has been asked to break off its turn.
    pub fn is_interrupted(&self) -> bool {
        self.evidence.interrupted
    }

    /// Takes note that the process is being ended because it did not exit by itself.
    pub fn lingers(&mut self) {
        self.evidence.lingered = true;
    }

    /// Takes one line.
    pub fn hear(&mut self, line: Line) -> Option<Effect> {
        if let Line::Garbage(garbage) = line {
            self.evidence.garbage.get_or_insert(garbage);
            return None;
        }
        self.evidence.spoke = true;
        match line {
            Line::Init(init) => self.init(init),
            Line::Assistant(assistant) => self.assistant(assistant),
            Line::Retry(retry) => Some(self.refused(&retry)),
            Line::CallBegan(read) => {
                self.meter.call_began(read);
                Some(Effect::Used)
            }
            Line::CallEnded { output } => {
                self.meter.call_ended(output);
                Some(Effect::Used)
            }
            Line::CallBooked => Some(Effect::AskUsage),
            Line::Answer { request, spent } => {
                match spent {
                    // A process is asked before it is given anything to do.
                    Some(spent) if request == BASELINE => {
                        self.meter.begins_at(spent);
                        return None;
                    }
                    Some(spent) => self.meter.total(spent),
                    None => {}
                }
                Some(Effect::Answered(request))
            }
            Line::Quota(mut quota) => {
                let left = std::mem::take(&mut quota.left);
                self.evidence.quota = quota.is_used_up.then_some(quota);
                (!left.is_empty()).then_some(Effect::QuotaLeft(left))
            }
            Line::Result(result) => Some(self.result(*result)),
            Line::Done { message } => {
                self.owed.remove(&message);
                self.end_turn()
            }
            Line::Other | Line::ToolResults(_) | Line::Garbage(_) => None,
        }
    }

    /// Returns the result of the run, now that the process is gone.
    pub fn finish(mut self, ended: Ended, format: OutputFormat) -> Finished {
        if self.in_turn {
            // The result of an earlier turn is no evidence of this one.
            self.evidence.result = None;
        }
        let reason = match &ended.stdout.error {
            Some(error) => Reason::RuntimeError {
                message: format!("its output cannot be read: {error}"),
                retryable: false,
            },
            None => outcome::reason(&self.evidence, &ended),
        };
        let told = self.evidence.result.is_some() || self.evidence.unused;
        let retry_after = self.evidence.retry_after.filter(|_| reason.is_retryable());
        let (usage, cost) = self.meter.finish(self.began, told);
        let diagnostics = match &ended.stderr.kept {
            Kept::Memory(stderr) if !reason.status().is_success() => diagnostics(stderr),
            _ => None,
        };
        let output = self.output(format);
        Finished { reason, output, diagnostics, usage: Some(usage), cost: Some(cost), retry_after }
    }

    /// Returns the result of the run, where the process that was to continue could not be started.
    pub fn broken_off(self, reason: Reason) -> Finished {
        let (usage, cost) = self.meter.finish(self.began, self.evidence.result.is_some());
        Finished { usage: Some(usage), cost: Some(cost), ..Finished::of(reason) }
    }

    /// The service has refused a call. A login that has run out is renewed with the first refusal; a second one means that the
    /// key is no good, and the program would go on asking for minutes.
    fn refused(&mut self, retry: &Retry) -> Effect {
        let Retry { attempt, max_retries, delay_ms, error } = retry;
        let wait = Duration::from_millis(*delay_ms);
        self.evidence.retry_after = Some(wait);
        if outcome::is_retryable(Some(error), None) {
            return Effect::BacksOff {
                why: format!("{error}; retry {attempt} of {max_retries}"),
                wait,
                // Where a quota is used up, that is told by itself.
                is_pressure: retry.is_pressure() && self.evidence.quota.is_none(),
            };
        }
        if error != UNAUTHORIZED || *attempt < 2 {
            let seconds = *delay_ms as f64 / 1000.0;
            let line =
                format!("{error}: tries again in {seconds:.1} s ({attempt} of {max_retries})");
            return Effect::Told { model: None, line: Some(line), tools: Vec::new() };
        }
        let message = format!("the service refuses the key or the login ({UNAUTHORIZED})");
        self.evidence.broken = Some(message);
        // A refused call uses nothing.
        self.evidence.unused = self.meter.usage() == Usage::default();
        Effect::End
    }

    fn begin_turn(&mut self) {
        if !self.in_turn {
            self.in_turn = true;
            self.evidence.result = None;
            self.evidence.assistant_error = None;
        }
    }

    fn result(&mut self, result: TurnResult) -> Effect {
        self.meter.result(result.spent);
        if !self.tells_messages {
            self.owed.clear();
        }
        for message in &result.messages {
            self.owed.remove(message);
        }
        // A failed turn ends the session, whatever prompts are still to come.
        if !is_success(&result) {
            self.owed.clear();
        }
        self.evidence.result = Some(result);
        self.end_turn().unwrap_or(Effect::Used)
    }

    /// The turn is over once there is a result, and no message that it does not answer.
    fn end_turn(&mut self) -> Option<Effect> {
        let over = self.in_turn && self.owed.is_empty() && self.evidence.result.is_some();
        over.then(|| {
            self.in_turn = false;
            Effect::TurnEnded
        })
    }

    fn init(&mut self, init: Init) -> Option<Effect> {
        self.began = true;
        self.tells_messages |= !init.messages.is_empty();
        self.session = init.session.or(self.session.take());
        // Each turn names the model that was asked for, which is not always the one that answers.
        self.model = self.model.take().or(init.model);
        self.begin_turn();
        // A message that came too late for the last turn has one of its own.
        self.evidence.result = None;
        if !self.needs_own_server {
            return None;
        }
        let state = init.servers.iter().find(|(name, _)| name == OWN_SERVER);
        match state.map(|(_, state)| state.as_str()) {
            Some("connected") => None,
            // The program waits for the server: one that is still starting will not be among the tools of the first prompt.
            state => {
                let state = state.unwrap_or("missing");
                let message = format!("the tools for sub-agents did not come up: {state}");
                self.evidence.broken = Some(message);
                Some(Effect::End)
            }
        }
    }

    fn assistant(&mut self, assistant: Assistant) -> Option<Effect> {
        let Assistant { text, calls, model, error } = assistant;
        if error.is_some() {
            // Not the model's words: they come again as the result.
            self.evidence.assistant_error = error;
            return None;
        }
        let line = text.lines().find(|line| !line.trim().is_empty());
        let line = line.map(|line| line.trim().chars().take(PROGRESS_CHARS).collect());
        if line.is_some() {
            self.last_text = Some(text);
        }
        let model = model.and_then(|model| self.answers_with(model));
        let is_told = model.is_some() || line.is_some() || !calls.is_empty();
        is_told.then_some(Effect::Told { model, line, tools: calls })
    }

    /// Takes note of the model of an answer. Returns it where it is not that of the answer before.
    fn answers_with(&mut self, model: String) -> Option<String> {
        let before = self.model.replace(model.clone())?;
        (family(&before) != family(&model)).then_some(model)
    }

    fn output(self, format: OutputFormat) -> Output {
        match self.evidence.result {
            Some(result) if is_success(&result) => {
                match (result.structured_output, result.result) {
                    (Some(json), _) => JsonText::parse(json.clone())
                        .map_or_else(|_| Output::Text(json.into()), Output::Json),
                    (None, Some(text)) => Output::of_text(text, format),
                    (None, None) => Output::None,
                }
            }
            _ => self.last_text.map_or(Output::None, |text| Output::Text(text.into())),
        }
    }
}

/// Returns the name of a model without what names differ in that mean the same: the date and number of its version, the size of its window, and
/// the provider that serves it.
fn family(model: &str) -> &str {
    let model = model.find("claude-").map_or(model, |at| &model[at..]);
    let model = model.split(['[', '@']).next().unwrap_or(model);
    let model = model
        .rsplit_once("-v")
        .filter(|(_, number)| number.contains(':') && is_number(number, ':'))
        .map_or(model, |it| it.0);
    match model.rsplit_once('-') {
        Some((name, "latest")) => name,
        Some((name, date)) if date.len() == 8 && is_number(date, '0') => name,
        _ => model,
    }
}

/// True for digits, among which this character may stand.
fn is_number(text: &str, between: char) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_digit() || it == between)
}

fn is_success(result: &TurnResult) -> bool {
    result.subtype == "success" && !result.is_error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::parse;

    #[test]
    fn our_own_tools_must_come_up() {
        let init = |servers: &str| {
            let line = format!(r#"{{"type":"system","subtype":"init","mcp_servers":[{servers}]}}"#);
            Talk::new(true).hear(parse(line.as_bytes()))
        };
        assert_eq!(init(r#"{"name":"offshoot","status":"connected"}"#), None);
        assert_eq!(init(r#"{"name":"offshoot","status":"pending"}"#), Some(Effect::End));
        assert_eq!(init(r#"{"name":"offshoot","status":"failed"}"#), Some(Effect::End));
        assert_eq!(init(r#"{"name":"git","status":"connected"}"#), Some(Effect::End));
        assert_eq!(Talk::new(false).hear(parse(br#"{"type":"system","subtype":"init"}"#)), None);
    }

    const INIT: &str = r#"{"type":"system","subtype":"init","user_message_uuids":["1"]}"#;

    fn result(answer: &str, messages: &[&str]) -> String {
        let (kind, is_error) = ("success", answer == "error");
        serde_json::json!({"type": "result", "subtype": kind, "is_error": is_error,
                           "result": answer, "user_message_uuids": messages})
        .to_string()
    }

    fn done(message: &str) -> String {
        format!(r#"{{"type":"command_lifecycle","command_uuid":"{message}","state":"completed"}}"#)
    }

    /// A talk in which these messages were sent and then these lines came, and what the last line asks.
    fn talk(messages: &[&str], lines: &[&str]) -> (Talk, Option<Effect>) {
        let mut talk = Talk::default();
        messages.iter().for_each(|message| talk.said((*message).to_owned()));
        let effect = lines.iter().map(|line| talk.hear(parse(line.as_bytes()))).last();
        (talk, effect.flatten())
    }

    #[test]
    fn a_further_turn_owes_a_result_of_its_own() {
        let (mut talk, effect) = talk(&["1"], &[INIT, &result("a", &["1"])]);
        assert_eq!((talk.answer(), effect), (Some("a"), Some(Effect::TurnEnded)));
        talk.said("2".to_owned());
        assert_eq!(talk.answer(), None);
    }

    #[test]
    fn a_turn_is_over_when_every_message_is_answered() {
        let check = |lines: &[&str], expected: Option<Effect>| {
            let lines = [&[INIT], lines].concat();
            assert_eq!(talk(&["1", "2"], &lines).1, expected, "{lines:?}");
        };
        let (first, both) = (&*result("a", &["1"]), &*result("a", &["1", "2"]));
        let second = &*result("b", &["2"]);
        check(&[both], Some(Effect::TurnEnded));
        check(&[both, &done("1")], None);
        check(&[first], Some(Effect::Used));
        check(&[first, &done("1")], None);
        check(&[first, &done("2")], Some(Effect::TurnEnded));
        check(&[first, &done("2"), &done("1")], None);
        check(&[first, INIT], None);
        check(&[first, INIT, second], Some(Effect::TurnEnded));
        check(&[&result("error", &["1"])], Some(Effect::TurnEnded));
    }

    #[test]
    fn one_that_does_not_tell_what_it_answers_gets_no_letters() {
        let silent = r#"{"type":"system","subtype":"init"}"#;
        assert!(!talk(&["1"], &[]).0.takes_letters());
        assert!(!talk(&["1"], &[silent]).0.takes_letters());
        assert!(talk(&["1"], &[INIT]).0.takes_letters());
        assert!(!talk(&["1"], &[INIT, &result("a", &["1"])]).0.takes_letters());
        let plain = r#"{"type":"result","subtype":"success","is_error":false,"result":"a"}"#;
        assert_eq!(talk(&["1"], &[silent, plain]).1, Some(Effect::TurnEnded));
    }

    #[test]
    fn progress_is_one_line_and_the_tools_that_are_used() {
        let mut talk = Talk::default();
        let mut hear = |content: &str| {
            let line = format!(r#"{{"type":"assistant","message":{{"content":[{content}]}}}}"#);
            talk.hear(parse(line.as_bytes()))
        };
        let told = |line, tools| Some(Effect::Told { model: None, line, tools });
        let progress = |text: &str| told(Some(text.to_owned()), Vec::new());
        let call = r#"{"type":"tool_use","name":"Bash","input":{"command":"ls"}}"#;
        let bash = ToolUse::new("Bash", &serde_json::json!({"command": "ls"}));
        assert_eq!(hear(call), told(None, vec![bash.clone()]));
        let said = r#"{"type":"text","text":"I look"},"#;
        let both = vec![bash, ToolUse::named("Read")];
        let calls = format!(r#"{said}{call},{{"type":"tool_use","name":"Read"}}"#);
        assert_eq!(hear(&calls), told(Some("I look".to_owned()), both));
        assert_eq!(hear(r#"{"type":"text","text":"\n first\nsecond"}"#), progress("first"));
        assert_eq!(hear(r#"{"type":"thinking"}"#), None);
        let long = format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(500));
        assert_eq!(hear(&long), progress(&"x".repeat(200)));
    }

    #[test]
    fn another_model_that_answers_is_told_once() {
        let mut talk = Talk::default();
        let mut hear = |line: String| match talk.hear(parse(line.as_bytes())) {
            Some(Effect::Told { model, .. }) => model,
            _ => None,
        };
        let init =
            |model: &str| format!(r#"{{"type":"system","subtype":"init","model":"{model}"}}"#);
        let said = |model: &str| {
            let content = r#"[{"type":"text","text":"a"}]"#;
            format!(r#"{{"type":"assistant","message":{{"model":"{model}","content":{content}}}}}"#)
        };
        let inner = said("small").replacen('{', r#"{"parent_tool_use_id":"t","#, 1);
        for (line, expected) in [
            (init("large-1[1m]"), None),
            (said("large-1-20250929"), None),
            (said("large-1-latest"), None),
            (said("large-1@20250929"), None),
            // One of the program itself, and one of an agent inside it.
            (said("<synthetic>"), None),
            (inner, None),
            (said("small"), Some("small")),
            (said("small"), None),
            // A further turn names the model that was asked for.
            (init("large-1"), None),
            (said("small"), None),
            (said("large-1"), Some("large-1")),
        ] {
            assert_eq!(hear(line.clone()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn one_model_has_many_names() {
        for name in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5[1m]",
            "claude-sonnet-4-5-latest",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5@20250929",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic/claude-sonnet-4-5",
        ] {
            assert_eq!(family(name), "claude-sonnet-4-5", "{name}");
        }
        assert_eq!(family("sonnet"), "sonnet");
        assert_ne!(family("claude-sonnet-4"), family("claude-sonnet-4-5"));
    }
}
