//! One run, explained: why it exists, what it was granted, what it used and why it ended.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Admitted, Changes, Cleanup, Ending, Event, EventKind, Grant, InputRange, Node, Origin, Payload,
    Reason, Refusal, RequestEnding, RootId, RunId, RunStatus, Timestamp, ToolUse, TraceStep, Tree,
    VariableRef, Window,
};

use crate::advice::in_tree;
use crate::held::held;
use crate::line::why;
use crate::stats::UNKNOWN_MODEL;
use crate::style::Style;
use crate::{branch, name, needs, neutral, number, rights, used};

/// Gathers what a record says about one run. Shown as lines of `word  what`, without a newline at its end; shows
/// nothing while the record has not named the run.
#[derive(Clone, Debug)]
pub struct Show {
    run: RunId,
    style: Style,
    tree: Tree,
    story: Story,
    at_work: AtWork,
    /// The task of the root, of a run below it.
    request: Option<Payload>,
    /// The terms of the runs that were admitted before it.
    grants: HashMap<RunId, Arc<Grant>>,
    /// True if its answer is not in the store any more.
    has_lost_answer: bool,
}

/// The signs of life of a run that is not over.
#[derive(Clone, Debug, Default)]
pub struct AtWork {
    /// The time since its first slot.
    pub age: Option<Duration>,
    /// The time for which it has been silent. `None` where it waits for its children, or where its supervisor does not answer.
    pub silence: Option<Duration>,
    /// The last lines that it said, the newest last.
    pub lines: Vec<String>,
    /// The time at which it said the last of them.
    pub said_at: Option<Timestamp>,
}

/// The events of one run, as far as its explanation needs them.
#[derive(Clone, Debug, Default)]
pub struct Story {
    admitted: Option<Box<Admitted>>,
    /// The beginning of its piece of the input.
    piece: Option<String>,
    /// The terms of the run that asked for it.
    parent: Option<Arc<Grant>>,
    stopping: Option<Reason>,
    ending: Option<Box<Ending>>,
    /// The runtimes that have taken the run over, in order.
    fallbacks: Vec<Arc<str>>,
    /// The models that it has asked, as far as its record names them, in the order of their first request.
    models: Vec<Arc<str>>,
    refusals: Vec<(Refusal, Option<u64>)>,
    /// The number of reports that the run has made, and the last one.
    reports: u64,
    report: Option<Arc<str>>,
    /// The number of tools that the run has used, and the last one.
    tool_uses: u64,
    tool_use: Option<Box<ToolUse>>,
    /// The number of its requests to models that are over, by their ends: those that went through the meter, and those that a killed attempt
    /// without the meter may have made.
    requests: BTreeMap<RequestEnding, u64>,
    /// Requests to models that were refused, by the code of the refusal.
    refused_requests: BTreeMap<Arc<str>, u64>,
    /// The texts of its other events, by the word of the event.
    notes: Vec<(&'static str, String)>,
}

/// The number of characters of a task or an answer that are shown; the rest is a matter for the command that prints it whole.
const TEXT: usize = 2000;
/// The way on with a run whose tree is open, and has no supervisor.
const OF_ABANDONED: &str = "`offshoot resume RUN` goes on with its tree, and `offshoot cancel` of its root ends it; a run that its runtime cannot continue runs again where `onInterrupt` is `rerun`, as it is for pieces of a map or a fanout";

impl Show {
    /// About this run, in this style; nothing known yet.
    pub fn new(run: RunId, style: Style) -> Self {
        Self {
            run,
            style,
            tree: Tree::new(),
            story: Story::default(),
            at_work: AtWork::default(),
            request: None,
            grants: HashMap::new(),
            has_lost_answer: false,
        }
    }

    /// Returns the answer of the run, where it is a value of the store.
    pub fn stored_answer(&self) -> Option<VariableRef> {
        match self.story.ending.as_ref()?.output.as_ref()? {
            Payload::Stored(value) => Some(*value),
            Payload::Text(_) | Payload::Json(_) => None,
        }
    }

    /// Takes in that the answer is not in the store any more.
    pub fn lose_answer(&mut self) {
        self.has_lost_answer = true;
    }

    /// Takes in one event of the run's tree, whichever run it is about.
    pub fn apply(&mut self, event: &Event) {
        self.tree.apply(event);
        if event.run == self.run {
            self.story.apply(event);
        }
        if let EventKind::Admitted(admitted) = &event.kind
            && event.run == event.root.run()
            && event.run != self.run
        {
            self.request = Some(admitted.task.clone());
        }
        // Until the run itself is admitted, which is after its parent.
        if let (EventKind::Admitted(admitted), None) = (&event.kind, &self.story.admitted) {
            self.grants.insert(event.run, Arc::clone(&admitted.grant));
        }
        if let Some(parent) = self.story.admitted.as_ref().and_then(|admitted| admitted.parent)
            && let Some(grant) = self.grants.remove(&parent)
        {
            self.story.parent = Some(grant);
            self.grants.clear();
        }
    }

    /// The run, once it was admitted.
    pub fn node(&self) -> Option<&Node> {
        self.tree.get(self.run)
    }

    /// Takes in the signs of life of the run. Only of a run that is not over.
    pub fn at_work(&mut self, at_work: AtWork) {
        self.at_work = at_work;
    }

    /// Returns the piece of the input that the run reads; none where it reads none.
    pub fn input(&self) -> Option<&InputRange> {
        self.story.admitted.as_ref()?.input.as_ref()
    }

    /// Takes in how that piece begins.
    pub fn piece(&mut self, text: String) {
        self.story.piece = Some(text);
    }

    /// The supervisor of the run's tree is gone: what the record leaves open is lost. To be called after the last event.
    pub fn lose(&mut self, root: RootId) {
        self.tree.lose(root);
    }
}

impl Story {
    /// Takes note of a model that is asked.
    fn asks(&mut self, model: &Arc<str>) {
        if **model != *UNKNOWN_MODEL && !self.models.contains(model) {
            self.models.push(Arc::clone(model));
        }
    }

    fn note(&mut self, word: &'static str, kind: &EventKind) {
        self.notes.push((word, neutral::line(&kind.text()).into_owned()));
    }

    /// Takes in one event of the run.
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Admitted(admitted) => {
                let particulars = admitted.particulars.as_deref();
                let model = particulars.and_then(|particulars| particulars.model.as_deref());
                model.into_iter().for_each(|model| self.asks(&model.into()));
                self.admitted = Some(admitted.clone());
            }
            EventKind::Refused { refusal, times } => {
                self.refusals.push(((**refusal).clone(), *times));
            }
            EventKind::Reported { text } => {
                (self.reports, self.report) = (self.reports + 1, Some(Arc::clone(text)));
            }
            EventKind::ToolUsed(used) => {
                (self.tool_uses, self.tool_use) = (self.tool_uses + 1, Some(used.clone()));
            }
            EventKind::RequestSettled { ending, .. } => {
                *self.requests.entry(*ending).or_default() += 1;
            }
            EventKind::RequestRefused { code, times, .. } => {
                *self.refused_requests.entry(Arc::clone(code)).or_default() += times.unwrap_or(1);
            }
            EventKind::Stopping { reason } => self.stopping = Some((**reason).clone()),
            EventKind::Ended(ending) => self.ending = Some(ending.clone()),
            EventKind::Starting
            | EventKind::Started { .. }
            | EventKind::Progress { .. }
            | EventKind::Used { .. }
            | EventKind::QuotaSeen { .. }
            | EventKind::Paced { .. }
            | EventKind::Priming { .. }
            | EventKind::Primed { .. }
            | EventKind::PoolShort { .. }
            | EventKind::PoolEnough { .. }
            | EventKind::Kept { .. }
            | EventKind::Waiting
            | EventKind::Returned
            // The times of the run tell.
            | EventKind::Alive => {}
            EventKind::RequestReserved { model, .. } => self.asks(model),
            kind @ EventKind::ModelChanged { model } => {
                self.asks(model);
                self.note(kind.name(), kind);
            }
            kind @ EventKind::FellBack { runtime, model, .. } => {
                self.fallbacks.push(Arc::clone(runtime));
                model.iter().for_each(|model| self.asks(model));
                self.note("fell back", kind);
            }
            // An answer is merged anew after pieces ran again: the last one stands.
            kind @ EventKind::Merged(_) => {
                self.notes.retain(|(word, _)| *word != kind.name());
                self.note(kind.name(), kind);
            }
            kind => self.note(kind.name(), kind),
        }
    }

    /// The explanation in rows of a word and what there is to say; nothing while the run was not admitted.
    pub fn rows(&self, tree: &Tree, node: &Node, style: Style) -> Vec<(&'static str, String)> {
        let Some(admitted) = self.admitted.as_deref() else { return Vec::new() };
        let chosen = admitted.chosen_by().map(|words| {
            format!("; its agent was chosen by the words: {}", neutral::line(&words.join(", ")))
        });
        let mut rows = vec![
            ("run", node.run.to_string()),
            ("session", node.key.to_string()),
            ("agent", name::of(node)),
            ("why", origin(tree, node) + &chosen.unwrap_or_default()),
        ];
        let mut row = |word, text: Option<String>| rows.extend(text.map(|text| (word, text)));
        row("in place of", node.instead.map(|before| before.to_string()));
        row("replaced by", node.replaced_by.map(|next| next.to_string()));
        row("trace", (node.depth > 1).then(|| trace(tree, node)));
        let runtimes = admitted.runtime.iter().chain(&self.fallbacks);
        let runtimes: Vec<_> = runtimes.map(|runtime| neutral::line(runtime)).collect();
        row("runtime", (!runtimes.is_empty()).then(|| runtimes.join(", then ")));
        let models: Vec<_> = self.models.iter().map(|model| neutral::line(model)).collect();
        row("model", (!models.is_empty()).then(|| models.join(", ")));
        let text = self.piece.as_deref().map(|text| format!(": {}", neutral::line(text)));
        let text = text.unwrap_or_default();
        row("input", admitted.input.as_ref().map(|range| format!("{}{text}", input(range))));
        row("granted", Some(rights::granted(&admitted.grant, self.parent.as_deref())));
        // Among the terms of a root they stand already.
        row("limits", admitted.parent.and_then(|_| rights::time_limits(&admitted.grant)));
        row("task", Some(payload(&admitted.task)));
        row("status", Some(self.status(node, style)));
        row("held", Some(held(tree, node).join("\n")).filter(|held| !held.is_empty()));
        let needs = (!node.needs.is_empty()).then(|| needs::lines(tree, &node.needs));
        row("needs", needs);
        row("times", Some(times(node)));
        row("used", used(&node.usage, &node.cost));
        let has_asked = !self.requests.is_empty() || !self.refused_requests.is_empty();
        row("requests", has_asked.then(|| requests(&self.requests, &self.refused_requests)));
        row("quota", Some(windows(tree, node)).filter(|windows| !windows.is_empty()));
        row("afterwards", afterwards(admitted).map(str::to_owned));
        let below = tree.children(node).len();
        let (usage, cost) = tree.subtree(node);
        let with_below = used(&usage, &cost).filter(|_| below > 0);
        row("with all below", with_below);
        row("children", (below > 0).then(|| children(tree, node)));
        for (refusal, times) in &self.refusals {
            row("refused", Some(refused(refusal, *times)));
        }
        row("reported", self.report.as_deref().map(|text| last_of(text, self.reports, "reports")));
        let tool_use = self.tool_use.as_ref().map(ToString::to_string);
        row("tools", tool_use.map(|used| last_of(&used, self.tool_uses, "uses")));
        for (word, note) in &self.notes {
            row(word, Some(note.clone()));
        }
        let ending = self.ending.as_deref();
        let said = ending.and_then(|ending| ending.diagnostics.as_deref());
        row("said", said.filter(|said| said.trim().contains('\n')).map(neutral::block));
        let words = ending.and_then(|ending| ending.said.as_ref());
        row("its words", words.map(|said| neutral::block(&said.to_string())));
        row("changes", ending.and_then(|ending| ending.changes.as_deref()).map(changes));
        let has_logs = !node.runs_nothing();
        let logs = match node.status.is_terminal() || node.is_without_supervisor() {
            true => format!("`offshoot logs {}` prints what it said", node.run),
            false => format!("`offshoot logs {} -t -f` prints what it says, with times", node.run),
        };
        row("logs", has_logs.then_some(logs));
        let hint = match ending {
            Some(ending) => ending.hint(),
            None if node.is_without_supervisor() => Some(OF_ABANDONED),
            None => node.reason.as_ref().and_then(Reason::hint),
        };
        row("hint", hint.map(|hint| in_tree(hint, node.root).into_owned()));
        // What a run that failed has printed is no answer.
        let word = if node.status.is_success() { "answer" } else { ANSWER_OF_FAILED };
        row(word, ending.and_then(|ending| ending.output.as_ref()).map(payload));
        rows
    }

    fn status(&self, node: &Node, style: Style) -> String {
        let why = match (&self.ending, &self.stopping) {
            (Some(ending), _) => why(ending),
            (None, _) if node.status.is_terminal() => branch::why(node),
            (None, Some(reason)) => {
                Some(format!("asked to stop: {}", neutral::line(&reason.to_string())))
            }
            (None, None) => None,
        };
        match why {
            Some(why) => format!("{}  {why}", style.status(node.status)),
            None => style.status(node.status).to_string(),
        }
    }
}

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(node) = self.tree.get(self.run) else { return Ok(()) };
        let mut rows = self.story.rows(&self.tree, node, self.style);
        let place = rows.iter().position(|(word, _)| *word == "times").map_or(0, |at| at + 1);
        let AtWork { age, silence, lines, said_at } = &self.at_work;
        if !lines.is_empty() {
            let at = said_at.map(|at| format!("at {}", number::moment(at)).into());
            let lines = lines.iter().map(|line| neutral::line(line));
            let lines: Vec<_> = at.into_iter().chain(lines).collect();
            rows.insert(place, ("last said", lines.join("\n")));
        }
        if let Some(silence) = silence {
            let admitted = self.story.admitted.as_ref();
            let limit = admitted.map_or(0, |admitted| admitted.grant.idle_timeout_seconds);
            let silence = number::duration(*silence);
            let text = match limit {
                0 => silence,
                limit => {
                    let limit = number::duration(Duration::from_secs(limit));
                    format!("{silence}, and is ended after {limit}")
                }
            };
            rows.insert(place, ("silent for", text));
        }
        if let Some(age) = age {
            rows.insert(place, ("runs for", number::duration(*age)));
        }
        // A piece of a map has the words of its root itself.
        let own = self.story.admitted.as_ref().map(|admitted| &admitted.task);
        if let Some(request) = &self.request
            && Some(request) != own
            && request.size() > 0
        {
            let task = rows.iter().position(|(word, _)| *word == "task").unwrap_or(0);
            rows.insert(task, ("root's task", payload(request)));
        }
        if self.has_lost_answer
            && let Some((_, text)) =
                rows.iter_mut().find(|(word, _)| ["answer", ANSWER_OF_FAILED].contains(word))
        {
            text.push_str(", which was deleted");
        }
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

/// The name of the row with the answer of a run that did not complete.
const ANSWER_OF_FAILED: &str = "partial answer";

fn origin(tree: &Tree, node: &Node) -> String {
    let parent = node.parent.and_then(|parent| tree.get(parent));
    match (node.origin, parent) {
        (Origin::Root, _) => "opened by the operator".to_owned(),
        (Origin::Piece, Some(parent)) => {
            format!("a piece of {} ({})", name::of(parent), parent.run)
        }
        (Origin::Piece, None) => "a piece of the operator's own request".to_owned(),
        (Origin::Agent, Some(parent)) => {
            format!("asked for by {} ({}), at depth {}", name::of(parent), parent.run, node.depth)
        }
        (Origin::Agent, None) => format!("asked for by an agent, at depth {}", node.depth),
    }
}

/// The runs from the root down to this one, a line each.
fn trace(tree: &Tree, node: &Node) -> String {
    let line = |step: &TraceStep| format!("{} ({})", step.agent, step.run_id);
    let lines: Vec<String> = tree.trace(node).iter().map(line).collect();
    lines.join("\n→ ")
}

/// Counts the children of a run by their status, and those whose place another one has taken apart.
fn children(tree: &Tree, node: &Node) -> String {
    let mut counts: BTreeMap<RunStatus, u64> = BTreeMap::new();
    let mut again = 0;
    for child in tree.children(node) {
        if child.replaced_by.is_some() {
            again += 1;
            continue;
        }
        *counts.entry(child.status).or_default() += 1;
    }
    let counts = counts.iter().map(|(status, count)| format!("{} {status}", number::count(*count)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    match again {
        0 => counts,
        again => format!("{counts}; {} before them ran again", number::count(again)),
    }
}

/// Counts the requests of a run to models by their ends, and those that were refused by their codes.
fn requests(requests: &BTreeMap<RequestEnding, u64>, refused: &BTreeMap<Arc<str>, u64>) -> String {
    let count =
        |(ending, count): (&RequestEnding, &u64)| format!("{} {ending}", number::count(*count));
    let refusal = |(code, count): (&Arc<str>, &u64)| {
        format!("{} refused ({})", number::count(*count), neutral::line(code))
    };
    let counts: Vec<String> =
        requests.iter().map(count).chain(refused.iter().map(refusal)).collect();
    format!("to models: {}", counts.join(", "))
}

/// Returns the part that is left of a window of a quota, as people read it.
pub fn window_left(window: &Window) -> String {
    let of = format!("{} of {}", window.window, window.account);
    let left = window.left / 10_000;
    format!("{left} % of {} are left, until {}", neutral::line(&of), number::moment(window.until))
}

/// Returns the windows of quotas of which the services of a tree have told, each on a line: beside its root alone.
fn windows(tree: &Tree, node: &Node) -> String {
    let is_root = node.run == node.root.run();
    let windows = tree.windows(node.root, Timestamp::EPOCH).filter(|_| is_root);
    windows.map(window_left).collect::<Vec<_>>().join("\n")
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
    let moments = [
        ("asked", Some(node.admitted_at)),
        ("started", node.started_at),
        ("ended", node.ended_at),
        ("last event of its tree", node.left_at()),
    ];
    let moment = |(word, at): (&str, Option<_>)| Some(format!("{word} {}", number::moment(at?)));
    let mut times = moments.into_iter().filter_map(moment).collect::<Vec<_>>().join(", ");
    let time = match node.left_at() {
        Some(at) => node.age(at),
        None => node.execution_time(),
    };
    if let Some(time) = time {
        times.push_str(&format!(": {}", number::duration(time)));
    }
    let dead = node.time_without_supervisor();
    if !dead.is_zero() {
        times.push_str(&format!(", and {} without a supervisor", number::duration(dead)));
    }
    times
}

/// The changes that a run made in a folder of its own, and how they are had.
fn changes(changes: &Changes) -> String {
    let mut lines = vec![format!("{changes}, in a {}", changes.isolation)];
    if changes.patch.is_some() {
        lines.push("`--patch` prints them, and `offshoot apply` brings them here".to_owned());
    }
    lines.extend(changes.notes.iter().map(|note| neutral::line(note).into_owned()));
    neutral::block(&lines.join("\n"))
}

fn input(input: &InputRange) -> String {
    let path = input.path.to_string_lossy();
    let (length, offset) = (number::bytes(input.length), number::count(input.offset));
    let header = match input.header {
        0 => String::new(),
        header => format!(", after its first {}", number::bytes(header)),
    };
    format!("{length} of {} from byte {offset}{header}", neutral::line(&path))
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
