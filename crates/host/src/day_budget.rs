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
//! A tree whose supervisor was killed counts as having spent all that was reserved for it, on that day and until it is resumed or cancelled. A tree that
//! goes on over midnight counts in the new day with what is reserved for it, and at its end with what it has spent since it was opened:
//! its supervisor writes the new day into its file when the day turns.
//!
//! Processes may have different time zones, and a clock may be set back. So a file of tomorrow counts as one of today, and only files that
//! are older than yesterday are removed.

mod local_day;
mod share;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use offshoot_config::HostSettings;
use offshoot_model::{BudgetGrant, Cost, MicroUsd, RootId, Timestamp, TokenCount, Usage, number};
use serde::{Deserialize, Serialize};

use self::local_day::{DAY, earlier, local_day};
use crate::error::at;
use crate::state_file::{lockable, make_folder};

pub(crate) use self::share::{DayShare, left};

/// The name of the folder below that of the user's programs.
const FOLDER: &str = "offshoot/days";

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
        /// The most that can be asked for, as an option has it.
        left: String,
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
            Self::Over { key, left, .. } => {
                let unit = UNITS.iter().find(|(of, ..)| of == key);
                over(unit.map_or("", |(.., flag)| flag), left)
            }
            Self::Folder { .. } => {
                "mend that folder, or take host.usdPerDay and host.tokensPerDay out of the user's file"
                    .to_owned()
            }
        }
    }

    /// Returns what can be done about it where the budget of a tree is raised.
    pub fn hint_of_raise(&self) -> String {
        match self {
            Self::Over { key, left, .. } => match *key == UNITS[0].0 {
                true => over("--add", left),
                false => over("--add-tokens", left),
            },
            Self::Unbounded { .. } | Self::Folder { .. } => self.hint(),
        }
    }
}

fn over(flag: &str, left: &str) -> String {
    format!(
        "ask for less with {flag} {left}, or wait until tomorrow; a tree that has lost its supervisor keeps what it has reserved until `offshoot cancel RUN` ends it, and `offshoot doctor` says whether there is one"
    )
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

/// The files of all trees, but for one.
#[derive(Debug, Default)]
struct Counted {
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
        let taken = own.taken(now)?;
        let line = |unit: usize| {
            let [taken, most] = [taken[unit], own.most[unit]?].map(|amount| text(unit, amount));
            Some(format!("{}: {taken} of {most} is spent today or reserved", UNITS[unit].0))
        };
        Ok([0, 1].into_iter().filter_map(line).collect())
    }

    /// Returns the reason why a tree with this budget would not be opened at this moment; none where it would be.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn refusal(
        state_home: Option<&Path>,
        settings: &HostSettings,
        budget: BudgetGrant,
        now: Timestamp,
    ) -> io::Result<Option<DayError>> {
        let Some(own) = Self::of_user(state_home, settings) else { return Ok(None) };
        let asked = match own.asked(budget) {
            Ok(asked) => asked,
            Err(error) => return Ok(Some(error)),
        };
        if state_home.is_none() {
            let source = io::Error::from(io::ErrorKind::NotFound);
            return Ok(Some(DayError::Folder { folder: own.folder, source }));
        }
        let taken = own.taken(now)?;
        Ok(own.check(taken, asked, [0; 2]).err())
    }

    /// Returns what all trees have spent today or reserved.
    fn taken(&self, now: Timestamp) -> io::Result<Amounts> {
        // Before the first tree there is no folder.
        if !self.folder.is_dir() {
            return Ok([0; 2]);
        }
        let _turn = self.turn()?;
        Ok(self.count(None, now, None)?.taken)
    }

    /// Returns what a tree with this budget reserves.
    fn asked(&self, budget: BudgetGrant) -> Result<Amounts, DayError> {
        let asked = [budget.usd.map(MicroUsd::as_micros), budget.tokens];
        for ((most, asked), (key, unit, flag)) in self.most.iter().zip(asked).zip(UNITS) {
            if most.is_some() && asked.is_none() {
                return Err(DayError::Unbounded { key, unit, flag });
            }
        }
        Ok(asked.map(Option::unwrap_or_default))
    }

    /// Reserves the budget of a tree that is about to be opened, or of one that goes on and has used so much already.
    pub(crate) fn reserve(
        &self,
        root: Option<RootId>,
        budget: BudgetGrant,
        (usage, cost): (Usage, Cost),
        now: Timestamp,
    ) -> Result<DayShare, DayError> {
        let asked = self.asked(budget)?;
        let day = local_day(now);
        let before = amounts(usage, cost, [0; 2]);
        // What is not known counts as all that was reserved.
        let at_most = amounts(usage, cost, [u64::MAX; 2]);
        let reserve = || -> io::Result<Result<DayShare, DayError>> {
            make_folder(&self.folder)?;
            let _turn = self.turn()?;
            let Counted { taken, own, old } = self.count(root, now, None)?;
            old.iter().try_for_each(fs::remove_file)?;
            let left = own.as_ref().map(|(_, written)| *written);
            let spent = left.filter(|left| left.day >= day).map_or([0; 2], |left| {
                // The life before has used so much of what was reserved for it.
                let used = |unit: usize| at_most[unit].saturating_sub(left.before[unit]);
                add(left.spent, [0, 1].map(|unit| used(unit).min(left.reserved[unit])))
            });
            if let Err(error) = self.check(add(taken, spent), asked, before) {
                return Ok(Err(error));
            }
            let is_new = own.is_none();
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
            // After a power failure the day would count nothing of what the tree has spent.
            if is_new {
                file.sync_all()?;
                File::open(&self.folder)?.sync_all()?;
            }
            Ok(Ok(DayShare::new(self.clone(), (path, file), written, left)))
        };
        reserve().map_err(|source| DayError::Folder { folder: self.folder.clone(), source })?
    }

    /// Takes over what the killed supervisor of a tree had reserved on this day, to settle it at the end of the tree. None where nothing of it
    /// counts any more.
    pub(crate) fn left_by(
        &self,
        root: RootId,
        now: Timestamp,
    ) -> Result<Option<DayShare>, DayError> {
        let look = || -> io::Result<Option<DayShare>> {
            if !self.folder.is_dir() {
                return Ok(None);
            }
            let _turn = self.turn()?;
            let own = self.count(Some(root), now, None)?.own;
            let Some((path, written)) = own.filter(|(_, own)| own.day >= local_day(now)) else {
                return Ok(None);
            };
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            file.lock()?;
            Ok(Some(DayShare::new(self.clone(), (path, file), written, Some(written))))
        };
        look().map_err(|source| DayError::Folder { folder: self.folder.clone(), source })
    }

    fn turn(&self) -> io::Result<File> {
        let turn = lockable(&self.folder.join(TURN))?;
        turn.lock()?;
        Ok(turn)
    }

    /// Counts the files of all trees, but for the one at this path. What an earlier supervisor of this root has left is handed over apart.
    fn count(
        &self,
        root: Option<RootId>,
        now: Timestamp,
        except: Option<&Path>,
    ) -> io::Result<Counted> {
        let (today, tomorrow) = (local_day(now), local_day(now.plus(DAY)));
        let old = local_day(earlier(now, 2 * DAY));
        let is_of_today = |written: &Written| (today..=tomorrow).contains(&written.day);
        let (mut counted, mut own) = (Counted::default(), Vec::new());
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if Some(&*path) == except || path.extension().is_none_or(|end| end != BUDGET) {
                continue;
            }
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(at(&path, &error)),
            };
            let lives = match file.try_lock_shared() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(error)) => return Err(at(&path, &error)),
            };
            let Some(written) = Written::read(&file) else { continue };
            if !lives && root.is_some() && written.root == root {
                own.push((path, written));
            } else if is_of_today(&written) {
                counted.taken = add(counted.taken, add(written.reserved, written.spent));
            } else if lives {
                counted.taken = add(counted.taken, written.reserved);
            } else if written.day <= old {
                counted.old.push(path);
            }
        }
        // A tree that went on while its last supervisor was still ending has two: the later one goes on.
        own.sort_by_key(|(_, written)| written.before);
        counted.own = own.pop();
        for (_, written) in own.iter().filter(|(_, written)| is_of_today(written)) {
            counted.taken = add(counted.taken, add(written.reserved, written.spent));
        }
        Ok(counted)
    }

    fn check(&self, taken: Amounts, asked: Amounts, before: Amounts) -> Result<(), DayError> {
        for (unit, (key, ..)) in UNITS.into_iter().enumerate() {
            let Some(most) = self.most[unit] else { continue };
            let (taken, asked) = (taken[unit], asked[unit]);
            if asked > most.saturating_sub(taken) {
                // A budget is that of a whole tree, with what it has used before.
                let left = most.saturating_sub(taken).saturating_add(before[unit]);
                let left = match unit {
                    0 => MicroUsd::from_micros(left).to_string(),
                    _ => left.to_string(),
                };
                return Err(DayError::Over {
                    key,
                    most: text(unit, most),
                    taken: text(unit, taken),
                    asked: text(unit, asked),
                    left,
                });
            }
        }
        Ok(())
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

/// Returns what was used in both units; where that is not known, this.
fn amounts(usage: Usage, cost: Cost, unknown: Amounts) -> Amounts {
    let usd = match cost.unknown_runs {
        0 => cost.dollars().as_micros(),
        _ => unknown[0].max(cost.dollars().as_micros()),
    };
    let tokens = usage.total();
    let tokens = match tokens.is_settled() {
        true => tokens.charged(),
        false => unknown[1].max(tokens.charged()),
    };
    [usd, tokens]
}

/// An amount of the unit in this place, as people read it.
fn text(unit: usize, amount: u64) -> String {
    match unit {
        0 => number::exact_dollars(MicroUsd::from_micros(amount)),
        _ => number::tokens(TokenCount::Known(amount)),
    }
}

fn add(one: Amounts, other: Amounts) -> Amounts {
    [one[0].saturating_add(other[0]), one[1].saturating_add(other[1])]
}

#[cfg(test)]
mod tests;
