//! One run, explained: why it exists, what it was granted, what it used and why it ended.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Admitted, Cleanup, Ending, Event, EventKind, Grant, InputRange, Node, Origin, Payload, Reason,
    Refusal, RootId, RunId, RunStatus, TokenCount, ToolUse, Tree,
};

use crate::branch::beside_status;
use crate::line::why;
use crate::style::Style;
use crate::{name, neutral, number, used};

/// Gathers what a record says about one run. Shown as lines of `word  what`, without a newline at its end; shows
/// nothing while the record has not named the run.
#[derive(Clone, Debug)]
pub struct Show {
    run: RunId,
    style: Style,
    tree: Tree,
    admitted: Option<Box<Admitted>>,
    stopping: Option<Reason>,
    ending: Option<Box<Ending>>,
    refusals: Vec<(Refusal, Option<u64>)>,
    /// The number of reports that the run has made, and the last one.
    reports: u64,
    report: Option<Arc<str>>,
    /// The number of tools that the run has used, and the last one.
    tool_uses: u64,
    tool_use: Option<Box<ToolUse>>,
    /// The texts of its other events, by the word of the event.
    notes: Vec<(&'static str, String)>,
}

/// The number of characters of a task or an answer that are shown; the rest is a matter for the command that prints it whole.
const TEXT: usize = 2000;

impl Show {
    /// About this run; nothing known yet.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            style: Style::Plain,
            tree: Tree::new(),
            admitted: None,
            stopping: None,
            ending: None,
            refusals: Vec::new(),
            reports: 0,
            report: None,
            tool_uses: 0,
            tool_use: None,
            notes: Vec::new(),
        }
    }

    /// In this style; plain unless asked.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Takes in one event of the run's tree, whichever run it is about.
    pub fn apply(&mut self, event: &Event) {
        self.tree.apply(event);
        if event.run != self.run {
            return;
        }
        match &event.kind {
            EventKind::Admitted(admitted) => self.admitted = Some(admitted.clone()),
            EventKind::Refused { refusal, times } => {
                self.refusals.push(((**refusal).clone(), *times));
            }
            EventKind::Reported { text } => {
                (self.reports, self.report) = (self.reports + 1, Some(Arc::clone(text)));
            }
            EventKind::ToolUsed(used) => {
                (self.tool_uses, self.tool_use) = (self.tool_uses + 1, Some(used.clone()));
            }
            EventKind::Stopping { reason } => self.stopping = Some((**reason).clone()),
            EventKind::Ended(ending) => self.ending = Some(ending.clone()),
            EventKind::Starting
            | EventKind::Started { .. }
            | EventKind::Progress { .. }
            | EventKind::Used { .. }
            | EventKind::Kept { .. }
            | EventKind::Waiting
            | EventKind::Returned => {}
            kind => self.notes.push((kind.name(), neutral::line(&kind.text()).into_owned())),
        }
    }

    /// The supervisor of the run's tree is gone: what the record leaves open is lost. To be called after the last event.
    pub fn lose(&mut self, root: RootId) {
        self.tree.lose(root);
    }

    fn rows(&self, node: &Node, admitted: &Admitted) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("run", node.run.to_string()),
            ("session", node.key.to_string()),
            ("agent", name::of(node)),
            ("why", self.origin(node)),
        ];
        let mut row = |word, text: Option<String>| rows.extend(text.map(|text| (word, text)));
        row(
            "runtime",
            admitted.runtime.as_deref().map(|runtime| neutral::line(runtime).into_owned()),
        );
        row("input", admitted.input.as_ref().map(input));
        row("granted", Some(granted(&admitted.grant)));
        row("task", Some(payload(&admitted.task)));
        row("status", Some(self.status(node)));
        row("times", Some(times(node)));
        row("used", used(&node.usage, &node.cost));
        row("afterwards", afterwards(admitted).map(str::to_owned));
        let below = self.tree.children(node).len();
        let (usage, cost) = self.tree.subtree(node);
        let with_below = used(&usage, &cost).filter(|_| below > 0);
        row("with all below", with_below);
        row("children", (below > 0).then(|| self.children(node)));
        for (refusal, times) in &self.refusals {
            row("refused", Some(refused(refusal, *times)));
        }
        row("reported", self.report.as_deref().map(|text| last_of(text, self.reports, "reports")));
        let tool_use = self.tool_use.as_ref().map(ToString::to_string);
        row("tools", tool_use.map(|used| last_of(&used, self.tool_uses, "uses")));
        for (word, note) in &self.notes {
            row(word, Some(note.clone()));
        }
        row("hint", node.reason.as_ref().and_then(Reason::hint).map(str::to_owned));
        let ending = self.ending.as_deref();
        row("answer", ending.and_then(|ending| ending.output.as_ref()).map(payload));
        rows
    }

    fn origin(&self, node: &Node) -> String {
        let parent = node.parent.and_then(|parent| self.tree.get(parent));
        match (node.origin, parent) {
            (Origin::Root, _) => "opened by the operator".to_owned(),
            (Origin::Piece, Some(parent)) => {
                format!("a piece of {} ({})", name::of(parent), parent.run)
            }
            (Origin::Piece, None) => "a piece of the operator's own request".to_owned(),
            (Origin::Agent, Some(parent)) => {
                format!(
                    "asked for by {} ({}), at depth {}",
                    name::of(parent),
                    parent.run,
                    node.depth
                )
            }
            (Origin::Agent, None) => format!("asked for by an agent, at depth {}", node.depth),
        }
    }

    fn status(&self, node: &Node) -> String {
        let why = match (&self.ending, &self.stopping) {
            (Some(ending), _) => why(ending),
            (None, _) if node.status.is_terminal() => node.reason.as_ref().map(beside_status),
            (None, Some(reason)) => {
                Some(format!("asked to stop: {}", neutral::line(&reason.to_string())))
            }
            (None, None) => None,
        };
        match why {
            Some(why) => format!("{}  {why}", self.style.status(node.status)),
            None => self.style.status(node.status).to_string(),
        }
    }

    fn children(&self, node: &Node) -> String {
        let mut counts: Vec<(RunStatus, u64)> = Vec::new();
        for child in self.tree.children(node) {
            match counts.iter_mut().find(|(status, _)| *status == child.status) {
                Some((_, count)) => *count += 1,
                None => counts.push((child.status, 1)),
            }
        }
        counts.sort_unstable();
        let counts =
            counts.iter().map(|(status, count)| format!("{} {status}", number::count(*count)));
        counts.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(node), Some(admitted)) = (self.tree.get(self.run), &self.admitted) else {
            return Ok(());
        };
        let rows = self.rows(node, admitted);
        let width = rows.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        for (position, (word, text)) in rows.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{:width$}", self.style.faint(word))?;
            let mut lines = text.trim_end().lines();
            write!(f, "  {}", lines.next().unwrap_or_default())?;
            lines.try_for_each(|line| write!(f, "\n{:width$}  {line}", ""))?;
        }
        Ok(())
    }
}

/// Returns the treatment of the session afterwards, where it is not the ordinary one.
fn afterwards(admitted: &Admitted) -> Option<&'static str> {
    let asked = admitted.particulars.as_ref().and_then(|particulars| particulars.cleanup);
    match (admitted.cleanup, asked) {
        (Cleanup::Delete, _) => Some("deleted once its answer is handed over"),
        (Cleanup::Keep, Some(Cleanup::Delete)) => {
            Some("kept, although it was to be deleted: it is kept above it")
        }
        (Cleanup::Keep, Some(Cleanup::Keep)) => Some("kept, with all below it"),
        (Cleanup::Keep, None) => None,
    }
}

fn times(node: &Node) -> String {
    let mut times = format!("asked {}", number::moment(node.admitted_at));
    if let Some(at) = node.started_at {
        times.push_str(&format!(", started {}", number::moment(at)));
    }
    if let Some(at) = node.ended_at {
        times.push_str(&format!(", ended {}", number::moment(at)));
    }
    match node.execution_time() {
        Some(time) => format!("{times}: {}", number::duration(time)),
        None => times,
    }
}

fn granted(grant: &Grant) -> String {
    let seconds = |limit: u64| match limit {
        0 => "none".to_owned(),
        limit => number::duration(Duration::from_secs(limit)),
    };
    let mut parts = vec![match grant.may_spawn {
        true => format!("children down to depth {}", grant.max_depth),
        false => "no children".to_owned(),
    }];
    parts.push(match &grant.tools.allow {
        None => "all tools".to_owned(),
        Some(allow) if allow.is_empty() => "no tools".to_owned(),
        Some(allow) => format!("tools {}", words(allow)),
    });
    if !grant.tools.deny.is_empty() {
        parts.push(format!("never {}", words(&grant.tools.deny)));
    }
    if let Some(tokens) = grant.budget.tokens {
        parts.push(number::tokens(TokenCount::Known(tokens)));
    }
    if let Some(usd) = grant.budget.usd {
        parts.push(number::dollars(usd));
    }
    parts.push(format!("time limit {}", seconds(grant.run_timeout_seconds)));
    parts.push(format!("limit of silence {}", seconds(grant.idle_timeout_seconds)));
    parts.join(", ")
}

fn words(rights: &BTreeSet<String>) -> String {
    let words: Vec<_> = rights.iter().map(|right| neutral::line(right)).collect();
    words.join(" ")
}

fn input(input: &InputRange) -> String {
    let path = input.path.to_string_lossy();
    let (length, offset) = (number::bytes(input.length), number::count(input.offset));
    format!("{length} of {} from byte {offset}", neutral::line(&path))
}

/// Returns the last of so many texts, which are called `what`.
fn last_of(text: &str, count: u64, what: &str) -> String {
    let text = neutral::line(text);
    match count {
        1 => text.into_owned(),
        _ => format!("{text} (the last of {} {what})", number::count(count)),
    }
}

fn refused(refusal: &Refusal, times: Option<u64>) -> String {
    let message = neutral::line(&refusal.message);
    let mut text = format!("{}: {message}{}", refusal.code, number::times(times));
    if let Some(setting) = &refusal.governed_by {
        let (key, value) = (neutral::line(&setting.key), neutral::line(setting.value.as_str()));
        text.push_str(&format!("\n{key} is {value} ({})", neutral::line(&setting.origin)));
    }
    text
}

/// The beginning of a value; what a stored one is.
fn payload(payload: &Payload) -> String {
    let text = match payload {
        Payload::Text(text) => text,
        Payload::Json(json) => json.as_str(),
        Payload::Stored(value) => {
            return format!(
                "{} of {} in the store, {}",
                number::bytes(value.size),
                value.kind,
                value.hash
            );
        }
    };
    match text.char_indices().nth(TEXT) {
        None => neutral::block(text),
        Some((cut, _)) => {
            let rest = number::bytes((text.len() - cut) as u64);
            format!("{}…\n({rest} more)", neutral::block(&text[..cut]))
        }
    }
}
