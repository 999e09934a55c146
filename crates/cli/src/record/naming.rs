//! The run that a user means by a text.
//!
//! A text may mean several runs: the beginning of an id is shared by runs that were made in the same minute, and a label by runs of several
//! trees. A label means the only run with it that is not over, to every command. Where none lives, a command that only looks takes the run of the newest
//! tree that has the label, and of ids that begin in the same way the root. What was chosen is said. Anything else is refused, with the runs that may be meant.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use offshoot_display::{neutral, number};
use offshoot_model::{RootId, RunId, RunStatus, SessionKey};
use offshoot_policy::NAMES_OF_NEWEST;
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{FIND_LIMIT, FoundRun};

use super::Record;
use crate::code::{FailureCode, NoteCode};
use crate::command::malformed_key;
use crate::door::own;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::listing;

/// The runs that a text may mean, the newest first.
struct Candidates {
    runs: Vec<FoundRun>,
    /// True if the text is the beginning of an id, and no label.
    by_id: bool,
    /// True if there may be more of them than were looked at.
    is_cut: bool,
}

/// Returns a text as the digits of an id are compared.
fn digits(text: &str) -> String {
    text.trim().replace('-', "").to_ascii_lowercase()
}

impl Record {
    /// Opens the record in which a run is to be found, and finds it.
    pub(crate) fn open_with(cx: &Invocation, text: &str) -> Result<(Self, FoundRun), Failure> {
        let record = Self::open_for(cx, text)?;
        let found = record.find(text)?;
        Ok((record, found))
    }

    /// The same for a command that only looks. Of several runs with a label it is the only one that is not over, else the one of the newest tree that
    /// has it. Of a root and runs below it whose ids begin in the same way, it is the root. That is said.
    pub(crate) fn open_to_look(cx: &Invocation, text: &str) -> Result<(Self, FoundRun), Failure> {
        let record = Self::open_for(cx, text)?;
        let candidates = record.candidates(text)?;
        let found = match (candidates.runs.len() > 1, candidates.by_id) {
            (false, _) => None,
            (true, true) => record.only_root(text, cx)?,
            (true, false) => match record.only_live(text, &candidates, cx)? {
                Some(live) => Some(live),
                None => record.in_newest(text, &candidates.runs, cx)?,
            },
        };
        let found = found.map_or_else(|| record.only(text, candidates), Ok)?;
        Ok((record, found))
    }

    /// The same for a command that changes something. Of several runs with a label it is the only one that is not over. That is said. The
    /// beginning of an id that several runs share means none.
    pub(crate) fn open_to_act(cx: &Invocation, text: &str) -> Result<(Self, FoundRun), Failure> {
        let record = Self::open_for(cx, text)?;
        let candidates = record.candidates(text)?;
        let live = record.only_live(text, &candidates, cx)?;
        let found = live.map_or_else(|| record.only(text, candidates), Ok)?;
        Ok((record, found))
    }

    /// Opens the record and finds a run whose changes are to be brought here. Inside an agent it is that agent's own, or one below.
    pub(crate) fn open_own_to_act(
        cx: &Invocation,
        text: &str,
    ) -> Result<(Self, FoundRun), Failure> {
        let own = own(text, cx)?.map(|run| run.to_string());
        Self::open_with(cx, own.as_deref().unwrap_or(text))
    }

    /// Opens the record and finds a run to look at in it. Inside an agent it is that agent's own, or one below: what else is on record is not
    /// for it.
    pub(crate) fn open_own(cx: &Invocation, text: &str) -> Result<(Self, FoundRun), Failure> {
        match own(text, cx)? {
            Some(run) => Self::open_with(cx, &run.to_string()),
            None => Self::open_to_look(cx, text),
        }
    }

    /// Opens the record and finds the tree in which a run is: all runs that may be meant are of one.
    pub(crate) fn open_tree(cx: &Invocation, text: &str) -> Result<(Self, FoundRun), Failure> {
        let record = Self::open_for(cx, text)?;
        let mut candidates = record.candidates(text)?;
        let mut roots: BTreeSet<RootId> = record.roots_from(text)?.into_iter().collect();
        if !candidates.is_cut {
            roots.extend(candidates.runs.iter().map(|found| found.root));
        }
        if roots.len() == 1 && candidates.runs.len() > 1 {
            let root = roots.first().map(|root| root.run().to_string());
            candidates.runs = record.store.find(&root.unwrap_or_default())?;
        }
        let found = record.only(text, candidates)?;
        Ok((record, found))
    }

    /// Finds the one run that a user names.
    pub(crate) fn find(&self, text: &str) -> Result<FoundRun, Failure> {
        self.only(text, self.candidates(text)?)
    }

    /// Returns the runs that may be meant.
    fn candidates(&self, text: &str) -> Result<Candidates, Failure> {
        // A text that begins like a key must be a key: the error names its mistake, not a missing run.
        if text.trim_start().to_ascii_lowercase().starts_with("agent:") {
            SessionKey::parse(text).map_err(|error| malformed_key(&error))?;
        }
        let listed = text.strip_prefix('@').and_then(|number| number.parse().ok());
        let named = match (text, listed) {
            (_, Some(number)) => Some(listing::run(self, number)?),
            (text, None) if NAMES_OF_NEWEST.contains(&text) => {
                self.summaries()?.last().map(|newest| newest.root.run())
            }
            _ => None,
        };
        let text = named.map_or_else(|| text.to_owned(), |run| run.to_string());
        let mut found = self.store.find(&text)?;
        let mut is_cut = found.len() >= FIND_LIMIT;
        // As rows print it: `AGENT: LABEL`.
        if found.is_empty()
            && let Some((agent, label)) = text.split_once(": ")
        {
            found = self.store.find(label)?;
            is_cut = found.len() >= FIND_LIMIT;
            found.retain(|run| run.key.agent_str() == agent);
        }
        if found.len() > 1 && found.iter().all(|run| run.root == found[0].root) {
            self.leave_out_replaced(&mut found)?;
        }
        let beginning = digits(&text);
        let by_id =
            found.iter().any(|found| digits(&found.run.to_string()).starts_with(&beginning));
        Ok(Candidates { runs: found, by_id, is_cut })
    }

    /// Returns the one run that is meant, or refuses.
    fn only(&self, text: &str, candidates: Candidates) -> Result<FoundRun, Failure> {
        let Candidates { mut runs, is_cut, .. } = candidates;
        match runs.len() {
            0 if !is_cut => Err(self.unknown(text)?),
            1 => Ok(runs.remove(0)),
            many => Err(self.ambiguous(text, many, &runs)?),
        }
    }

    /// Returns the only one of several runs with a label that is not over; none where not all runs with it were looked at.
    fn only_live(
        &self,
        text: &str,
        candidates: &Candidates,
        cx: &Invocation,
    ) -> Result<Option<FoundRun>, Failure> {
        let Candidates { runs, by_id, is_cut } = candidates;
        if runs.len() < 2 || *by_id || *is_cut {
            return Ok(None);
        }
        let mut live = Vec::new();
        for run in runs {
            let is_over = self.store.ending(run.root, run.run)?.is_some();
            if !is_over && !self.is_abandoned(run.root)? {
                live.push(run);
            }
        }
        let [run] = live.as_slice() else { return Ok(None) };
        cx.output.note(
            NoteCode::LiveOfLabel,
            format_args!(
                "`{text}` stands in several trees, and means the one run of them that is not over: {}",
                run.run
            ),
        );
        Ok(Some(FoundRun::clone(run)))
    }

    /// Returns the one of these runs that is of the newest tree among theirs.
    fn in_newest(
        &self,
        text: &str,
        candidates: &[FoundRun],
        cx: &Invocation,
    ) -> Result<Option<FoundRun>, Failure> {
        let newest = candidates.iter().map(|found| found.root).max();
        let is_newest = |found: &&FoundRun| Some(found.root) == newest;
        let mut found: Vec<_> = candidates.iter().filter(is_newest).cloned().collect();
        if found.len() > 1 {
            self.leave_out_replaced(&mut found)?;
        }
        let [run] = found.as_slice() else { return Ok(None) };
        cx.output.note(
            NoteCode::NewestOfLabel,
            format_args!(
                "`{text}` stands in several trees, and means that of the newest tree that has it: {}",
                run.run
            ),
        );
        Ok(found.pop())
    }

    /// Returns the one root whose id begins so.
    fn only_root(&self, text: &str, cx: &Invocation) -> Result<Option<FoundRun>, Failure> {
        let roots = self.roots_from(text)?;
        let [root] = roots.as_slice() else { return Ok(None) };
        cx.output.note(
            NoteCode::RootOfBeginning,
            format_args!("the ids of several runs begin with `{text}`; it means the root: {root}"),
        );
        Ok(self.store.find(&root.run().to_string())?.pop())
    }

    /// Returns the roots whose ids begin with this text, the oldest first.
    fn roots_from(&self, text: &str) -> Result<Vec<RootId>, Failure> {
        let beginning = digits(text);
        if beginning.is_empty() {
            return Ok(Vec::new());
        }
        let roots = self.summaries()?.into_iter().map(|summary| summary.root);
        Ok(roots.filter(|root| digits(&root.to_string()).starts_with(&beginning)).collect())
    }

    /// Leaves out runs of a tree in place of which another one has run: a label means the newest.
    fn leave_out_replaced(&self, found: &mut Vec<FoundRun>) -> Result<(), Failure> {
        let tree = self.tree(found[0].root)?;
        found.retain(|run| tree.get(run.run).is_none_or(|node| node.replaced_by.is_none()));
        Ok(())
    }

    /// Returns the error about a text that means no run, with labels of the newest tree that have it in them.
    fn unknown(&self, text: &str) -> Result<Failure, Failure> {
        /// More names do not help.
        const NAMED: usize = 3;
        let failure =
            Failure::input(FailureCode::NoSuchRun, format_args!("there is no run `{text}`"));
        let tree = self.summaries()?.last().map(|newest| self.tree(newest.root)).transpose()?;
        let labels = tree.iter().flat_map(|tree| tree.nodes()).filter_map(|node| {
            let label = node.label.as_deref().filter(|label| label.contains(text));
            label.filter(|_| node.replaced_by.is_none())
        });
        let mut similar: Vec<String> =
            labels.take(NAMED + 1).map(|label| format!("`{}`", neutral::line(label))).collect();
        let more = if similar.len() > NAMED { ", …" } else { "" };
        similar.truncate(NAMED);
        let similar = match similar.join(", ") {
            none if none.is_empty() => none,
            names => format!("labels of the newest tree with this in them: {names}{more}; "),
        };
        Ok(failure.hint(format_args!(
            "{similar}`offshoot list --all` shows all runs; a run is named by its id, a unique beginning of it, its session key, \
             its label, `last` or `main` for the newest root, or `@N` as the last listing printed it"
        )))
    }

    /// Returns the error about a text that may mean any of these runs, which tells them apart: those that are not over first.
    fn ambiguous(&self, text: &str, many: usize, found: &[FoundRun]) -> Result<Failure, Failure> {
        let now = SystemClock.now();
        // Roots are older than the runs below them, of which there may be more than are listed.
        let mut found = found.to_vec();
        for root in self.roots_from(text)?.into_iter().rev().take(FIND_LIMIT) {
            found.retain(|run| run.run != root.run());
            found.splice(0..0, self.store.find(&root.run().to_string())?);
        }
        let many = many.max(found.len());
        let mut lines = Vec::new();
        let mut trees = HashMap::new();
        for run in found.iter().take(FIND_LIMIT) {
            let status = match self.store.ending(run.root, run.run)? {
                Some(ending) => Some(ending.status()),
                None => {
                    let tree = match trees.entry(run.root) {
                        Entry::Occupied(read) => read.into_mut(),
                        Entry::Vacant(unread) => unread.insert(self.tree(run.root)?),
                    };
                    tree.get(run.run).map(|node| node.status)
                }
            };
            let is_over = status.is_some_and(RunStatus::is_terminal);
            let status = status.map(|status| status.to_string()).unwrap_or_default();
            let age = run.run.made_at().map(|at| number::duration(now.since(at)));
            let age = age.map(|age| format!("  {age} ago")).unwrap_or_default();
            let label = self.label(run.root, run.run)?;
            let tree = if run.run == run.root.run() {
                None
            } else {
                self.label(run.root, run.root.run())?
            };
            let tree = tree.map(|tree| format!(" of {tree}")).unwrap_or_default();
            let label = label.unwrap_or_default();
            let line = format!("\n  {}  {}  {status}{age}  {label}{tree}", run.run, run.key);
            lines.push((is_over, line.trim_end().to_owned()));
        }
        lines.sort_by_key(|(is_over, _)| *is_over);
        let are_over = lines.iter().all(|(is_over, _)| *is_over);
        let list: String = lines.into_iter().map(|(_, line)| line).collect();
        let more = if many >= FIND_LIMIT { " or more" } else { "" };
        Ok(Failure::input(
            FailureCode::AmbiguousRun,
            format_args!("`{text}` may be any of {many}{more} runs:{list}"),
        )
        .hint(match are_over {
            true => "all of these are over; to look at one, write more of its id, or its whole session key",
            false => "write more of the id, or the whole session key",
        }))
    }

    /// Returns the label of a run, as people read it.
    fn label(&self, root: RootId, run: RunId) -> Result<Option<String>, Failure> {
        let admitted = self.store.admitted(root, run)?;
        let label = admitted.as_ref().and_then(|admitted| admitted.label.as_deref());
        Ok(label.map(|label| neutral::line(label).into_owned()))
    }
}
