//! Budgets of a day, which all trees of a user share.
//!
//! What a tree may spend is reserved when it is opened, out of what the day has left; what it has not spent by its end is free again. So
//! the sum over all trees is never more than the day allows, however many run at once, as far as each holds to its own budget.
//!
//! ```text
//!   turn             locked while one process reads and writes
//!   xxxxxx.budget    one for each tree of the day, locked by its supervisor as long as the tree lives
//! ```
//!
//! A tree whose supervisor was killed counts as having spent all that was reserved for it, on that day and until it is resumed. A tree that
//! goes on over midnight counts in the new day with what is reserved for it, and at its end with what it has spent since it was opened:
//! its supervisor writes the new day into its file when the day turns.
//!
//! Processes may have different time zones, and a clock may be set back. So a file of tomorrow counts as one of today, and only files that
//! are older than yesterday are removed.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;
use offshoot_config::HostSettings;
use offshoot_model::{
    BudgetGrant, Cost, EventKind, MicroUsd, RootId, Timestamp, TokenCount, Tree, Usage, number,
};
use offshoot_spawner::{Clock, EventStream, Session, SystemClock};
use offshoot_store::{Store, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The name of the folder below that of the user's programs.
const FOLDER: &str = "offshoot/days";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const TURN: &str = "turn";
const BUDGET: &str = "budget";

/// The size of each file. It is written over in place, which no full disk refuses.
const FILE_BYTES: usize = 512;

/// A tree for which the day has not enough left.
#[derive(Debug, thiserror::Error)]
pub enum DayError {
    /// The tree has no budget in this unit, so that nothing bounds what it adds to the day.
    #[error("{key} is set, and the tree has no budget in {unit}")]
    Unbounded {
        /// The key of the limit.
        key: &'static str,
        /// The unit in words.
        unit: &'static str,
        /// The option that sets a budget.
        flag: &'static str,
    },
    /// The budget of the tree is more than the day has left.
    #[error("{key} allows {most} a day, {taken} of it spent or reserved: {asked} more is too much")]
    Over {
        /// The key of the limit.
        key: &'static str,
        /// The limit, as people read it.
        most: String,
        /// The amount that is spent today or reserved for live trees.
        taken: String,
        /// The amount that the tree asked for.
        asked: String,
        /// The option that asks for less, with the most that it can ask for.
        flag: String,
    },
    /// The spending of other trees cannot be read or written down.
    #[error("what all trees spend in a day cannot be counted in {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The fault of the system.
        source: io::Error,
    },
}

impl DayError {
    /// Returns what can be done about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unbounded { flag, .. } => format!("give it one with {flag}"),
            Self::Over { flag, .. } => format!("ask for less with {flag}, or wait until tomorrow"),
            Self::Folder { .. } => {
                "mend that folder, or take host.usdPerDay and host.tokensPerDay out of the user's file"
                    .to_owned()
            }
        }
    }
}

/// The amounts in both units: millionths of a dollar, and tokens.
type Amounts = [u64; 2];

const UNITS: [(&str, &str, &str); 2] = [
    ("host.usdPerDay", "dollars", "--budget-usd"),
    ("host.tokensPerDay", "tokens", "--budget-tokens"),
];

/// The limits of a day.
#[derive(Clone, Debug)]
pub struct DayBudget {
    folder: PathBuf,
    most: [Option<u64>; 2],
}

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    /// The last local day on which the tree lived, as `20261127`.
    day: u32,
    root: Option<RootId>,
    reserved: Amounts,
    spent: Amounts,
    /// The amounts that the tree had used before its supervisor took it.
    before: Amounts,
}

/// The share of one tree.
#[derive(Debug)]
pub(crate) struct DayShare {
    of: DayBudget,
    path: PathBuf,
    file: File,
    /// The content that an earlier supervisor of the tree has left, which stands again where this one does not go on.
    earlier: Option<Written>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    written: Written,
    /// True once the tree is over: nothing more is reserved for it.
    is_settled: bool,
}

/// The files of all trees, but for one.
#[derive(Debug, Default)]
struct Others {
    /// The amounts that they have spent today or reserved.
    taken: Amounts,
    /// The file that an earlier supervisor of the tree in question has left.
    own: Option<(PathBuf, Written)>,
    /// The files that count no more.
    old: Vec<PathBuf>,
}

impl DayBudget {
    /// The limits of the user; none where no limit is set.
    pub(crate) fn of_user(state_home: Option<&Path>, settings: &HostSettings) -> Option<Self> {
        let usd = settings.usd_per_day.as_ref().map(|usd| usd.value.as_micros());
        let tokens = settings.tokens_per_day.as_ref().map(|tokens| tokens.value);
        let most = [usd, tokens];
        // Without a folder no tree is opened.
        let folder = state_home.unwrap_or(Path::new("/nonexistent")).join(FOLDER);
        most.iter().any(Option::is_some).then_some(Self { folder, most })
    }

    /// Returns what is spent today or reserved for live trees, with the limit, as people read them: one line for each limit that is set.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn lines(
        state_home: Option<&Path>,
        settings: &HostSettings,
        now: Timestamp,
    ) -> io::Result<Vec<String>> {
        let Some(own) = Self::of_user(state_home, settings) else { return Ok(Vec::new()) };
        let taken = match own.folder.is_dir() {
            true => {
                let _turn = own.turn()?;
                own.others(None, now, None)?.taken
            }
            false => [0; 2],
        };
        let line = |unit: usize| {
            let [taken, most] = [taken[unit], own.most[unit]?].map(|amount| text(unit, amount));
            Some(format!("{}: {taken} of {most} is spent today or reserved", UNITS[unit].0))
        };
        Ok([0, 1].into_iter().filter_map(line).collect())
    }

    /// Reserves the budget of a tree that is about to be opened, or of one that goes on and has used `before` already.
    pub(crate) fn reserve(
        &self,
        root: Option<RootId>,
        budget: BudgetGrant,
        before: (Usage, Cost),
        now: Timestamp,
    ) -> Result<DayShare, DayError> {
        let asked = [budget.usd.map(MicroUsd::as_micros), budget.tokens];
        for ((most, asked), (key, unit, flag)) in self.most.iter().zip(asked).zip(UNITS) {
            if most.is_some() && asked.is_none() {
                return Err(DayError::Unbounded { key, unit, flag });
            }
        }
        let asked = asked.map(Option::unwrap_or_default);
        self.reserve_in_turn(root, asked, before, now)?
    }

    /// Returns an error of the folder outside, and what came of it within.
    fn reserve_in_turn(
        &self,
        root: Option<RootId>,
        asked: Amounts,
        (usage, cost): (Usage, Cost),
        now: Timestamp,
    ) -> Result<Result<DayShare, DayError>, DayError> {
        let day = local_day(now);
        let before = amounts(usage, cost, [0; 2]);
        // What is not known counts as all that was reserved.
        let at_most = amounts(usage, cost, [u64::MAX; 2]);
        let reserve = || -> io::Result<Result<DayShare, DayError>> {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let _turn = self.turn()?;
            let Others { taken, own, old } = self.others(root, now, None)?;
            old.iter().try_for_each(fs::remove_file)?;
            let earlier = own.as_ref().map(|(_, written)| *written);
            let spent = earlier.filter(|earlier| earlier.day >= day).map_or([0; 2], |earlier| {
                // The life before has used so much of what was reserved for it.
                let used = |unit: usize| at_most[unit].saturating_sub(earlier.before[unit]);
                add(earlier.spent, [0, 1].map(|unit| used(unit).min(earlier.reserved[unit])))
            });
            if let Err(error) = self.check(add(taken, spent), asked) {
                return Ok(Err(error));
            }
            let (file, path) = match own {
                Some((path, _)) => (OpenOptions::new().read(true).write(true).open(&path)?, path),
                None => tempfile::Builder::new()
                    .suffix(&format!(".{BUDGET}"))
                    .tempfile_in(&self.folder)?
                    .keep()
                    .map_err(|error| error.error)?,
            };
            file.lock()?;
            let written = Written { day, root, reserved: asked, spent, before };
            written.write(&file)?;
            let state = Mutex::new(State { written, is_settled: false });
            Ok(Ok(DayShare { of: self.clone(), path, file, earlier, state }))
        };
        reserve().map_err(|source| DayError::Folder { folder: self.folder.clone(), source })
    }

    fn turn(&self) -> io::Result<File> {
        let turn = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.folder.join(TURN))?;
        turn.lock()?;
        Ok(turn)
    }

    /// Reads the files of all trees, but for the one at this path. What an earlier supervisor of this root has left is handed over apart.
    fn others(
        &self,
        root: Option<RootId>,
        now: Timestamp,
        except: Option<&Path>,
    ) -> io::Result<Others> {
        let (today, tomorrow) = (local_day(now), local_day(now.plus(DAY)));
        let old = local_day(before(now, 2 * DAY));
        let mut others = Others::default();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if Some(&*path) == except || path.extension().is_none_or(|end| end != BUDGET) {
                continue;
            }
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(of_file(&path, &error)),
            };
            let lives = match file.try_lock_shared() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(error)) => return Err(error),
            };
            let Some(written) = Written::read(&file) else { continue };
            let is_of_today = (today..=tomorrow).contains(&written.day);
            if !lives && root.is_some() && written.root == root {
                // A tree that went on while its last supervisor was still ending has two.
                let Some((kept, other)) = others.own.take() else {
                    others.own = Some((path, written));
                    continue;
                };
                let is_later = other.before.iter().sum::<u64>() < written.before.iter().sum();
                let (own, less) =
                    if is_later { ((path, written), other) } else { ((kept, other), written) };
                others.own = Some(own);
                if (today..=tomorrow).contains(&less.day) {
                    others.taken = add(others.taken, add(less.reserved, less.spent));
                }
            } else if is_of_today || lives {
                let spent = if is_of_today { written.spent } else { [0; 2] };
                others.taken = add(others.taken, add(written.reserved, spent));
            } else if written.day <= old {
                others.old.push(path);
            }
        }
        Ok(others)
    }

    fn check(&self, taken: Amounts, asked: Amounts) -> Result<(), DayError> {
        for (unit, (key, _, flag)) in UNITS.into_iter().enumerate() {
            let Some(most) = self.most[unit] else { continue };
            let (taken, asked) = (taken[unit], asked[unit]);
            if asked > most.saturating_sub(taken) {
                let left = most.saturating_sub(taken);
                let left = match unit {
                    0 => MicroUsd::from_micros(left).to_string(),
                    _ => left.to_string(),
                };
                return Err(DayError::Over {
                    key,
                    most: text(unit, most),
                    taken: text(unit, taken),
                    asked: text(unit, asked),
                    flag: format!("{flag} {left}"),
                });
            }
        }
        Ok(())
    }
}

impl DayShare {
    /// Keeps what is reserved for a tree that was opened, and gives it back where it was not.
    pub(crate) fn kept_by<E>(
        share: Option<Self>,
        opened: Result<Session, E>,
    ) -> Result<(Session, Option<Arc<Self>>), E> {
        match opened {
            Ok(session) => {
                share.iter().for_each(|share| share.opened(session.root()));
                Ok((session, share.map(Arc::new)))
            }
            Err(error) => {
                share.into_iter().for_each(Self::release);
                Err(error)
            }
        }
    }

    /// The tree is open, and has this root.
    pub(crate) fn opened(&self, root: RootId) {
        self.rewrite(|State { written, .. }| written.root = Some(root));
    }

    /// The tree was not opened, or did not go on.
    pub(crate) fn release(self) {
        let given_back = self.of.turn().and_then(|_turn| match self.earlier {
            Some(earlier) => earlier.write(&self.file),
            None => fs::remove_file(&self.path),
        });
        // The tree then counts as having spent what was reserved.
        if let Err(error) = given_back {
            tracing::warn!(%error, "what was reserved for a tree that was not opened is not given back");
        }
    }

    /// Reserves more, for a budget that is raised. For a tree that is over nothing is reserved.
    pub(crate) fn reserve_more(&self, more: BudgetGrant, now: Timestamp) -> Result<(), DayError> {
        let more = in_units(more);
        self.lives_on(now);
        let look = || {
            let _turn = self.of.turn()?;
            let others = self.of.others(None, now, Some(&self.path))?;
            let mut state = self.state.lock();
            if state.is_settled {
                return Ok(Ok(()));
            }
            let own = add(state.written.reserved, state.written.spent);
            let checked = self.of.check(add(others.taken, own), more);
            if checked.is_ok() {
                let reserved = add(state.written.reserved, more);
                let written = Written { reserved, ..state.written };
                written.write(&self.file)?;
                state.written = written;
            }
            Ok(checked)
        };
        let folder = self.of.folder.clone();
        look().map_err(|source| DayError::Folder { folder, source })?
    }

    /// Gives back what was reserved for a raise that was refused.
    pub(crate) fn give_back(&self, more: BudgetGrant) {
        let more = in_units(more);
        self.rewrite(|State { written, is_settled }| {
            if !*is_settled {
                written.reserved =
                    [0, 1].map(|unit| written.reserved[unit].saturating_sub(more[unit]));
            }
        });
    }

    /// Follows a tree to its end, and writes down what it has spent. Where the record ends before the tree, all that was reserved stays so.
    pub(crate) async fn follow(self: Arc<Self>, root: RootId, mut events: EventStream) {
        let (mut usage, mut cost, mut is_over) = (Usage::default(), Cost::NONE, false);
        loop {
            let today = until_midnight(SystemClock.now());
            let Ok(event) = tokio::time::timeout(today, events.next()).await else {
                self.lives_on(SystemClock.now());
                continue;
            };
            let Some(event) = event else { break };
            let Ok(event) = event else { return };
            // The timer rests while the computer sleeps.
            self.lives_on(event.at);
            match &event.kind {
                EventKind::Ended(ending) => {
                    (usage, cost) = (usage + ending.usage, cost + ending.cost);
                    is_over |= event.run == root.run();
                }
                EventKind::RootReopened(_) => is_over = false,
                _ => {}
            }
        }
        if is_over {
            self.settle(usage, cost, SystemClock.now());
        }
    }

    /// The tree lives at this time: on a new day it counts with what is reserved for it.
    fn lives_on(&self, now: Timestamp) {
        let today = local_day(now);
        if self.state.lock().written.day < today {
            self.rewrite(|State { written, .. }| (written.day, written.spent) = (today, [0; 2]));
        }
    }

    /// The tree is over, and has used so much in all its lives. What is not known counts as all that was reserved.
    fn settle(&self, usage: Usage, cost: Cost, now: Timestamp) {
        self.lives_on(now);
        self.rewrite(|State { written, is_settled }| {
            let used = amounts(usage, cost, add(written.before, written.reserved));
            let spent = [0, 1].map(|unit| used[unit].saturating_sub(written.before[unit]));
            written.spent = add(written.spent, spent);
            written.reserved = [0; 2];
            *is_settled = true;
        });
    }

    /// Changes the file in its turn, which is always taken before the lock of the state.
    fn rewrite(&self, change: impl FnOnce(&mut State)) {
        let turn = self.of.turn();
        let mut state = self.state.lock();
        change(&mut state);
        if let Err(error) = turn.and_then(|_turn| state.written.write(&self.file)) {
            tracing::warn!(%error, "what a tree has spent of the day is not written down");
        }
    }
}

impl Written {
    fn write(self, file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec(&self)?;
        text.resize(FILE_BYTES, b' ');
        file.write_all_at(&text, 0)
    }

    /// None for what no tree has written.
    fn read(file: &File) -> Option<Self> {
        let mut text = [0; FILE_BYTES];
        file.read_exact_at(&mut text, 0).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Returns what a tree may still spend by its record, where its budget is raised to `given`, and what it has used.
pub(crate) fn left(
    store: &dyn Store,
    root: RootId,
    given: BudgetGrant,
) -> Result<(BudgetGrant, (Usage, Cost)), StoreError> {
    let (mut tree, mut granted) = (Tree::new(), BudgetGrant::default());
    for event in store.events(root, 0) {
        let event = event?;
        match &event.kind {
            EventKind::Admitted(admitted) if event.run == root.run() => {
                granted = admitted.grant.budget;
            }
            // A raise of any run is one of all runs above it.
            EventKind::BudgetRaised { tokens, micro_usd } => {
                granted.tokens = granted.tokens.map(|had| had.saturating_add(*tokens));
                let more = |had: MicroUsd| {
                    MicroUsd::from_micros(had.as_micros().saturating_add(*micro_usd))
                };
                granted.usd = granted.usd.map(more);
            }
            _ => {}
        }
        tree.apply(&event);
    }
    let (usage, cost) = tree.total();
    let [usd, tokens] = amounts(usage, cost, [0; 2]);
    let usd_left = |had: MicroUsd| MicroUsd::from_micros(had.as_micros().saturating_sub(usd));
    let left = BudgetGrant {
        usd: granted.usd.max(given.usd).map(usd_left),
        tokens: granted.tokens.max(given.tokens).map(|had| had.saturating_sub(tokens)),
    };
    Ok((left, (usage, cost)))
}

fn of_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn in_units(budget: BudgetGrant) -> Amounts {
    [budget.usd.map_or(0, MicroUsd::as_micros), budget.tokens.unwrap_or(0)]
}

/// Returns what was used in both units; where that is not known, this.
fn amounts(usage: Usage, cost: Cost, unknown: Amounts) -> Amounts {
    let usd = match cost.unknown_runs {
        0 => cost.dollars().as_micros(),
        _ => unknown[0].max(cost.dollars().as_micros()),
    };
    let tokens = usage.total();
    let tokens = tokens.known().unwrap_or_else(|| unknown[1].max(tokens.lower_bound()));
    [usd, tokens]
}

/// An amount of the unit in this place, as people read it.
fn text(unit: usize, amount: u64) -> String {
    match unit {
        0 => number::dollars(MicroUsd::from_micros(amount)),
        _ => number::tokens(TokenCount::Known(amount)),
    }
}

fn add(one: Amounts, other: Amounts) -> Amounts {
    [one[0].saturating_add(other[0]), one[1].saturating_add(other[1])]
}

fn zoned(now: Timestamp) -> Zoned {
    let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    at.to_zoned(TimeZone::system())
}

fn before(now: Timestamp, duration: Duration) -> Timestamp {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

/// Returns the time that is left of the local day; at the end of all time, one day.
fn until_midnight(now: Timestamp) -> Duration {
    let now = zoned(now);
    let midnight = now.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    midnight.map_or(DAY, |midnight| now.duration_until(&midnight).unsigned_abs())
}

/// Returns the day in the time zone of the computer, as `20261127`.
fn local_day(now: Timestamp) -> u32 {
    let day = zoned(now).date();
    u32::from(day.year().unsigned_abs()) * 10_000
        + u32::from(day.month().unsigned_abs()) * 100
        + u32::from(day.day().unsigned_abs())
}

#[cfg(test)]
mod tests;
