//! Everything that is on the screen: what was told, what is selected, what keys mean.

mod browse;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offshoot_display::{Hold, is_at_work, neutral};
use offshoot_model::{Event, EventKind, Node, RootId, RunId, RunStatus, Timestamp, Tree};

use crate::detail::Detail;
use crate::filter::Filter;
use crate::history::History;
use crate::intent::Intent;
use crate::key::Key;
use crate::mode::Mode;
use crate::order::Order;
use crate::replay::Replay;
use crate::rows::{Row, RowId, Wanted};
use crate::said::{News, Said};

/// The screen. Events, moments and keys go in; [`draw`](crate::draw) shows it, and an [`Intent`] says what is wanted.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub(crate) history: History,
    live: Tree,
    lost: Vec<RootId>,
    /// The data folders of trees, where they are worth a word.
    pub(crate) folders: HashMap<RootId, String>,
    pub(crate) replay: Option<Replay>,
    /// The run that is shown with all below it; none for all trees.
    pub(crate) top: Option<RunId>,
    now: Timestamp,
    /// The silence of each run that holds a slot, and the moment at which it was told.
    silences: HashMap<RunId, Duration>,
    silences_at: Timestamp,
    pub(crate) order: Order,
    pub(crate) filter: Filter,
    folds: HashSet<RowId>,
    pub(crate) selected: Option<RowId>,
    /// The position of the selected line.
    pub(crate) at: usize,
    /// The first line that is seen.
    pub(crate) offset: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) counts: Counts,
    /// True while the lines are those of what is known by now.
    is_fresh: bool,
    /// Lines of the table that the last picture had room for.
    pub(crate) page: usize,
    pub(crate) detail: Detail,
    pub(crate) said: Said,
    pub(crate) mode: Mode,
    pub(crate) message: Option<Result<String, String>>,
    /// True once the record was read.
    pub(crate) is_read: bool,
}

/// Runs by their status, without those that only hold others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) by_status: HashMap<RunStatus, u64>,
    /// Runs that hold a slot, by their trees.
    pub(crate) slots: HashMap<RootId, u64>,
    /// True if tokens or money were told of any.
    pub(crate) has_usage: bool,
}

impl Screen {
    /// A screen that was told nothing yet.
    pub fn new(now: Timestamp) -> Self {
        Self { now, silences_at: now, ..Self::default() }
    }

    /// Shows this run with everything below it, and nothing else.
    #[must_use]
    pub fn top(mut self, run: RunId) -> Self {
        self.top = Some(run);
        self
    }

    /// Takes in the next event of a tree.
    pub fn event(&mut self, event: Event) {
        self.live.apply(&event);
        // Ticks come once a second, and an event may be later than the last one.
        self.now = self.now.max(event.at);
        let is_back = matches!(event.kind, EventKind::Reopened);
        let root = event.root;
        self.history.push(event);
        self.is_fresh = false;
        if is_back && self.lost.contains(&root) {
            self.find_again(root);
        }
    }

    /// True until the trees that were there at the beginning are read.
    pub fn reads(&self) -> bool {
        !self.is_read
    }

    /// All that was on record has been told; what comes now happens now.
    pub fn is_read(&mut self) {
        self.is_read = true;
    }

    /// The supervisor of a tree has gone: what has not ended is lost.
    pub fn lose(&mut self, root: RootId) {
        self.live.lose(root);
        self.lost.push(root);
        self.is_fresh = false;
    }

    /// A new supervisor holds a tree that was lost: its runs are what its events say.
    fn find_again(&mut self, root: RootId) {
        self.lost.retain(|lost| *lost != root);
        self.live = Tree::of(&self.history.events);
        self.lost.iter().for_each(|root| self.live.lose(*root));
    }

    /// Names the data folder of a tree, which is shown beside its root.
    pub fn folder(&mut self, root: RootId, folder: String) {
        self.folders.insert(root, neutral::line(&folder).into_owned());
        self.is_fresh = false;
    }

    /// Takes in the time for which runs have been silent, of all that hold a slot.
    pub fn silences(&mut self, silences: HashMap<RunId, Duration>, now: Timestamp) {
        (self.silences, self.silences_at) = (silences, now);
        self.is_fresh = false;
    }

    /// Takes in what a run said, see [`wants_output`](Self::wants_output).
    pub fn said(&mut self, run: RunId, news: News) {
        self.said.take(run, news);
    }

    /// Takes in how something ended that was wanted.
    pub fn told(&mut self, outcome: Result<String, String>) {
        let line = |text: String| neutral::line(&text).into_owned();
        self.message = Some(outcome.map(line).map_err(line));
    }

    /// Takes in the time.
    pub fn tick(&mut self, now: Timestamp) {
        if let Some(replay) = &mut self.replay {
            replay.pass(now.since(self.now), &self.history);
        }
        self.now = now;
        self.is_fresh = false;
    }

    /// True while a replay goes on by itself: the time is wanted more often then.
    pub fn is_playing(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.is_playing)
    }

    /// The run whose words are looked at, and its tree.
    pub fn wants_output(&self) -> Option<(RootId, RunId)> {
        let node = self.node().filter(|node| !node.runs_nothing())?;
        self.detail.wants_output().then_some((node.root, node.run))
    }

    /// The trees that are not over.
    pub fn open(&self) -> impl Iterator<Item = RootId> {
        self.live.open().map(|root| root.root)
    }

    /// Returns since when a tree is paused; none where it is not.
    pub fn paused(&self, root: RootId) -> Option<Timestamp> {
        self.live.holds(root).paused_since
    }

    /// Takes in a key. Returns what is wanted by it, unless the screen does that itself.
    pub fn key(&mut self, key: Key) -> Option<Intent> {
        self.message = None;
        self.is_fresh = false;
        match key {
            Key::Control('c') => return Some(Intent::Quit),
            Key::Control('z') => return Some(Intent::Suspend),
            Key::Control('l') => return Some(Intent::Redraw),
            _ => {}
        }
        match std::mem::take(&mut self.mode) {
            Mode::Browse => self.browse(key),
            Mode::Help => None,
            // What is typed for a run that has just ended must not become commands.
            Mode::Refused(text) => {
                if !matches!(key, Key::Enter | Key::Escape) {
                    self.mode = Mode::Refused(text);
                }
                None
            }
            Mode::Filter => {
                match key {
                    Key::Enter => return None,
                    Key::Escape => {
                        self.filter.text.clear();
                        return None;
                    }
                    _ => edit(&mut self.filter.text, key),
                }
                self.filter.text = self.filter.text.to_lowercase();
                self.mode = Mode::Filter;
                None
            }
            Mode::Typing(mut typing) => {
                typing.mistake = None;
                match key {
                    Key::Enter => {
                        let (mode, intent) = typing.done();
                        self.mode = mode;
                        return intent;
                    }
                    Key::Escape => return None,
                    _ => edit(&mut typing.text, key),
                }
                self.mode = Mode::Typing(typing);
                None
            }
            Mode::Asked(question) => (key == Key::Char('y')).then_some(question.intent),
        }
    }

    /// The moment that is shown.
    pub(crate) fn moment(&self) -> Timestamp {
        self.replay.as_ref().map_or(self.now, |replay| replay.at)
    }

    /// The moment until which events are shown. What happens while the screen is drawn is younger than its last tick.
    pub(crate) fn until(&self) -> Timestamp {
        self.replay.as_ref().map_or(Timestamp::from_micros(u64::MAX), |replay| replay.at)
    }

    /// All trees, as they are shown.
    pub(crate) fn tree(&self) -> &Tree {
        self.replay.as_ref().map_or(&self.live, |replay| &replay.tree)
    }

    /// The selected run.
    pub(crate) fn node(&self) -> Option<&Node> {
        match self.selected? {
            RowId::Run(run) => self.tree().get(run),
            RowId::Group(..) => None,
        }
    }

    /// The root of the tree that is selected: that of a run, or of a group of runs.
    pub(crate) fn root(&self) -> Option<&Node> {
        let (RowId::Run(run) | RowId::Group(run, _)) = self.selected?;
        self.tree().get(self.tree().get(run)?.root.run())
    }

    /// The reasons that hold a run back, or the tree of a root; a pause that the root above it tells is not among them.
    pub(crate) fn holds<'a>(&'a self, node: &'a Node) -> Vec<Hold<'a>> {
        match self.order {
            Order::Tree if node.parent.is_some() => Hold::beside_root(self.tree(), node),
            _ => Hold::of(self.tree(), node),
        }
    }

    /// The hold that is a run's state in place of its status: of a run in line in a table the pause of its tree is none.
    pub(crate) fn state<'a>(&'a self, node: &'a Node) -> Option<Hold<'a>> {
        let holds = self.holds(node).into_iter();
        holds.take(1).find(|hold| node.parent.is_none() || !matches!(hold, Hold::Paused(_)))
    }

    /// The time for which a run has been silent.
    pub(crate) fn silence(&self, run: RunId) -> Option<Duration> {
        let told = self.silences.get(&run).filter(|_| self.replay.is_none())?;
        // A run that has lost its slot since is not silent, and none was silent before it began.
        let node = self.live.get(run).filter(|node| is_at_work(node))?;
        Some((*told + self.now.since(self.silences_at)).min(node.age(self.now)?))
    }

    /// Brings the lines up to date. To be called before they are drawn.
    pub(crate) fn refresh(&mut self) {
        if std::mem::replace(&mut self.is_fresh, true) {
            return;
        }
        let none = HashMap::new();
        let wanted = Wanted {
            tree: self.tree(),
            top: self.top,
            order: self.order,
            filter: &self.filter,
            folds: &self.folds,
            selected: self.selected,
            now: self.moment(),
            silences: if self.replay.is_some() { &none } else { &self.silences },
        };
        let (rows, counts) = (wanted.rows(), self.count(&wanted));
        (self.rows, self.counts) = (rows, counts);
        let here = self.rows.iter().position(|row| Some(row.id) == self.selected);
        self.at = here.unwrap_or(self.at).min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(self.at).map(|row| row.id);
    }

    fn count(&self, wanted: &Wanted<'_>) -> Counts {
        let inside = self.top.map(|top| wanted.inside(top));
        let mut counts = Counts::default();
        for node in wanted.tree.nodes() {
            if node.runs_nothing()
                || node.replaced_by.is_some()
                || inside.as_ref().is_some_and(|inside| !inside.contains(&node.run))
            {
                continue;
            }
            *counts.by_status.entry(node.status).or_default() += 1;
            if is_at_work(node) {
                *counts.slots.entry(node.root).or_default() += 1;
            }
            counts.has_usage |= offshoot_display::used(&node.usage, &node.cost)
                .is_some_and(|used| used != offshoot_model::number::NOT_REPORTED);
        }
        counts
    }
}

/// The label of a run, else its agent.
pub(crate) fn name(node: &Node) -> String {
    match node.label.as_deref().map(neutral::line) {
        Some(label) if !label.is_empty() => label.into_owned(),
        _ => node.agent.to_string(),
    }
}

fn edit(text: &mut String, key: Key) {
    match key {
        Key::Char(char) if !char.is_control() => text.push(char),
        Key::Backspace => drop(text.pop()),
        Key::Control('u') => text.clear(),
        _ => {}
    }
}
