//! The keys while nothing is typed and nothing is asked.

use offshoot_model::{Node, Tree, number};

use super::{Screen, name};
use crate::intent::Intent;
use crate::key::Key;
use crate::mode::{Mode, Question, Typed, Typing};
use crate::order::Order;
use crate::replay::Replay;
use crate::rows::RowId;

impl Screen {
    pub(super) fn browse(&mut self, key: Key) -> Option<Intent> {
        if self.replay.is_some() && self.travel(key) {
            return None;
        }
        let page = self.page.max(1);
        match key {
            Key::Up | Key::Char('k') => self.go(self.at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.go(self.at + 1),
            Key::PageUp if self.detail.is_full() => self.detail.scroll(page, true),
            Key::PageDown if self.detail.is_full() => self.detail.scroll(page, false),
            Key::PageUp => self.go(self.at.saturating_sub(page)),
            Key::PageDown => self.go(self.at + page),
            Key::Home | Key::Char('g') => self.go(0),
            Key::End | Key::Char('G') => self.go(usize::MAX),
            Key::Right | Key::Char('l') => self.unfold(),
            Key::Left | Key::Char('h') => self.fold(),
            Key::Enter => self.detail.more(),
            Key::Escape => self.less(),
            Key::Tab => self.detail.turn(true),
            Key::BackTab => self.detail.turn(false),
            Key::Char('s') => self.sort(true),
            Key::Char('S') => self.sort(false),
            Key::Char('f') => self.filter.states = self.filter.states.turned(true),
            Key::Char('F') => self.filter.states = self.filter.states.turned(false),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('?') => self.mode = Mode::Help,
            Key::Char('r') => self.begin_or_end_replay(),
            Key::Char('q') => return Some(Intent::Quit),
            Key::Char('y') => return self.copy(),
            Key::Char('c') => self.cancel(),
            Key::Char('p') => return self.pause(),
            Key::Char('b') => self.begin_typing(Typed::Budget),
            Key::Char('w') => self.begin_typing(Typed::Letter),
            _ => {}
        }
        None
    }

    /// Selects the line at a position, or the last one.
    fn go(&mut self, at: usize) {
        self.refresh();
        let before = self.selected;
        self.at = at.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(self.at).map(|row| row.id);
        if self.selected != before {
            self.detail.follow();
        }
        self.is_fresh = false;
    }

    /// Another order. The first of a table is what it was sorted for; in the tree the selected run has its place.
    fn sort(&mut self, forward: bool) {
        self.order = self.order.turned(forward);
        if self.order != Order::Tree {
            (self.selected, self.at) = (None, 0);
        }
    }

    fn unfold(&mut self) {
        let Some(row) = self.rows.get(self.at).copied() else { return };
        match (row.open, row.id) {
            (Some(true), _) => self.go(self.at + 1),
            (Some(false), RowId::Run(_)) => drop(self.folds.remove(&row.id)),
            (Some(false), RowId::Group(..)) => drop(self.folds.insert(row.id)),
            (None, _) => {}
        }
    }

    /// Folds the selected line, else selects the one that it is below.
    fn fold(&mut self) {
        let Some(row) = self.rows.get(self.at).copied() else { return };
        match (row.open, row.id) {
            (Some(true), RowId::Run(_)) => drop(self.folds.insert(row.id)),
            (Some(true), RowId::Group(..)) => drop(self.folds.remove(&row.id)),
            _ => {
                let above = self.rows[..self.at].iter().rposition(|it| it.level < row.level);
                above.into_iter().for_each(|above| self.go(above));
            }
        }
    }

    /// Takes back one thing: the text and the statuses, then the room of the selected run.
    fn less(&mut self) {
        if !self.filter.is_empty() {
            self.filter = crate::filter::Filter::default();
        } else {
            self.detail.less();
        }
    }

    fn begin_or_end_replay(&mut self) {
        self.replay = match self.replay {
            Some(_) => None,
            None => Replay::new(&self.history),
        };
        self.lose_at_the_end();
    }

    /// Moves through the time of a replay; false if the key does not mean that.
    fn travel(&mut self, key: Key) -> bool {
        let Some(replay) = &mut self.replay else { return false };
        let history = &self.history;
        match key {
            Key::Char('[') => replay.hundredths(-1, history),
            Key::Char(']') => replay.hundredths(1, history),
            Key::Char('{') => replay.hundredths(-10, history),
            Key::Char('}') => replay.hundredths(10, history),
            Key::Char(',') => replay.event(false, history),
            Key::Char('.') => replay.event(true, history),
            Key::Char(' ') => replay.play(history),
            Key::Char('+') => replay.speed = replay.speed.saturating_mul(2),
            Key::Char('-') => replay.speed = (replay.speed / 2).max(1),
            _ => return false,
        }
        self.lose_at_the_end();
        true
    }

    /// At the end of a replay, what a dead supervisor left open is lost.
    fn lose_at_the_end(&mut self) {
        if let Some(replay) = self.replay.as_mut().filter(|replay| replay.at >= replay.last()) {
            self.lost.iter().for_each(|root| replay.tree.lose(*root));
        }
    }

    fn copy(&mut self) -> Option<Intent> {
        Some(Intent::Copy(self.node()?.run.to_string()))
    }

    /// The selected run, if something can be done about it. Otherwise the message says why not.
    fn alive(&mut self) -> Option<Node> {
        let refusal = if self.replay.is_some() {
            "this is a replay: `r` goes back to now"
        } else {
            match self.node() {
                None => "select one run: → unfolds",
                Some(node) if node.is_without_supervisor() => {
                    "its tree has no supervisor; `offshoot resume RUN` goes on with one of run, map or fanout"
                }
                Some(node) if node.status.is_terminal() => "this run is over",
                Some(node) => return Some(node.clone()),
            }
        };
        self.mode = Mode::Refused(refusal);
        None
    }

    fn cancel(&mut self) {
        let Some(node) = self.alive() else { return };
        let (alive, name) = (living(self.tree(), &node), name(&node));
        let text = match alive {
            0 | 1 => format!("cancel {name}?"),
            alive => format!("cancel {name} and what is below it, {} runs?", number::count(alive)),
        };
        let intent = Intent::Cancel { root: node.root, run: node.run, alive };
        self.mode = Mode::Asked(Question { text, intent });
    }

    fn pause(&mut self) -> Option<Intent> {
        // A group belongs to a tree too, and the whole tree is paused.
        let root = match self.selected? {
            RowId::Run(run) | RowId::Group(run, _) => self.tree().get(run)?.root,
        };
        if self.replay.is_some() || self.tree().get(root.run())?.status.is_terminal() {
            if self.alive().is_some() {
                self.mode = Mode::Refused("this tree is over");
            }
            return None;
        }
        Some(Intent::Pause { root, paused: self.tree().holds(root).paused_since.is_none() })
    }

    fn begin_typing(&mut self, kind: Typed) {
        let Some(node) = self.alive() else { return };
        let (root, run, name) = (node.root, node.run, name(&node));
        self.mode =
            Mode::Typing(Typing { kind, root, run, name, text: String::new(), mistake: None });
    }
}

/// Counts the runs that are not over: this one and all below it.
fn living(tree: &Tree, node: &Node) -> u64 {
    let itself = u64::from(!node.status.is_terminal());
    tree.children(node).fold(itself, |sum, child| sum + living(tree, child))
}
