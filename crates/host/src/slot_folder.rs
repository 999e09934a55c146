//! Slots that all trees of a user share, counted in a folder of the user.
//!
//! ```text
//!   slots/                  those of all runs
//!   account-slots/NAME/     those of the runs of one account, each account with a folder of its own
//!     turn                  locked while a tree reads and writes
//!     ROOT-xxxxxx.claim     one for each tree, locked by its supervisor as long as the tree lives
//! ```
//!
//! There is no process that gives out slots: each tree reads all claims, takes what is due to it and free, and writes its own claim, all
//! under one lock. The notices of the kernel wake it when another tree writes, and when the file of another tree is closed, which is
//! also how the death of a supervisor is heard of. A claim that no process locks counts for nothing, and is removed.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use offshoot_model::RootId;
use offshoot_policy::host_share::{Claim, due, free_for_first};
use offshoot_spawner::{HostClaim, HostClaims, HostGrant, HostSlots, OnGrant, SlotPool};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::account_board::account_name;
use crate::error::at;
use crate::state_file::{lockable, make_folder};

/// The name of the folder below that of the user's programs.
const FOLDER: &str = "offshoot/slots";
/// The same for the folders of accounts.
const ACCOUNTS: &str = "offshoot/account-slots";

/// The number of times at which the folder of an account is tried, a second apart. Its runs fail after that.
const TRIES: u32 = 10;

const TURN: &str = "turn";
const CLAIM: &str = ".claim";

/// The size of each claim. It is written over in place, which no full disk refuses.
const CLAIM_BYTES: usize = 128;

/// The folder of a user in which all of its trees count the runs that hold a slot, those of the command too. For
/// [`SpawnerBuilder::host_slots`](offshoot_spawner::SpawnerBuilder::host_slots); a [`Host`](crate::Host) has it.
#[derive(Debug)]
pub struct SlotFolder {
    /// The folder for the state of programs; none where the user has none.
    state_home: Option<PathBuf>,
}

/// The content of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    /// The bound that the tree keeps, by the configuration that it was opened with.
    max: u32,
    holds: u32,
    debt: u32,
    wants: u32,
    turn: u64,
}

/// The end of the supervisor. The order of the fields is that in which they are dropped: the thread finds no sender any more when the
/// pipe wakes it for the last time.
struct Claims {
    sender: mpsc::Sender<HostClaim>,
    wake: OwnedFd,
}

/// The thread of one tree.
struct Sharer {
    folder: PathBuf,
    turn: File,
    max: u32,
    /// Removed when dropped.
    file: NamedTempFile,
    own: Written,
    written: Written,
    /// True if the claim goes to the end of the line with the next look.
    comes_last: bool,
    /// The number of the last claim that was taken in.
    taken_in: u64,
    /// The share that was told last.
    due: u32,
    /// True for the slots of all runs.
    is_of_host: bool,
    changes: OwnedFd,
    claims: mpsc::Receiver<HostClaim>,
    woken: OwnedFd,
    on_grant: OnGrant,
}

/// News since the last look.
#[derive(Default)]
struct News {
    claim: Option<HostClaim>,
    /// True if a claim was taken in which is not answered yet.
    asked: bool,
    /// The files of which an owner has gone.
    closed: Vec<OsString>,
    /// True if another tree has written or gone.
    others: bool,
    /// True if the last look ended with a fault.
    failed: bool,
    /// True if the tree is over.
    over: bool,
}

impl SlotFolder {
    /// The folder of the user, below that for the state of programs. It is made when the first tree shares slots.
    pub fn of_user(state_home: Option<&Path>) -> Self {
        Self { state_home: state_home.map(Path::to_owned) }
    }
}

/// The slots that the trees of a user hold at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsTaken {
    /// The most that may be taken; 0 where no tree counts its runs.
    pub max: u32,
    /// The number of slots that are taken.
    pub slots: u32,
    /// The number of trees that hold one.
    pub trees: usize,
    /// The number of trees of which runs wait for one.
    pub waiting: usize,
}

impl SlotsTaken {
    /// Reads what the trees of the user have written down, whose folder for the state of programs this is.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn of_user(state_home: Option<&Path>) -> io::Result<Self> {
        state_home.map_or(Ok(Self::default()), |home| Self::in_folder(&home.join(FOLDER)))
    }

    /// Reads the same of each account of which a tree counts its runs, with a name: that of its runtime, and the beginning of the fingerprint of its
    /// credential where there are several of one runtime.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be read.
    pub fn of_accounts(state_home: Option<&Path>) -> io::Result<Vec<(String, Self)>> {
        let Some(folder) = state_home.map(|home| home.join(ACCOUNTS)) else {
            return Ok(Vec::new());
        };
        let accounts = match fs::read_dir(folder) {
            Ok(accounts) => accounts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        for account in accounts {
            let account = account?;
            let taken = Self::in_folder(&account.path())?;
            let name = account.file_name().to_string_lossy().into_owned();
            all.extend((taken.max > 0).then_some((name, taken)));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let parts = |(name, _): &(String, Self)| {
            let (runtime, credential) = name.rsplit_once('-').unwrap_or((name, ""));
            (runtime.to_owned(), credential.chars().take(6).collect::<String>())
        };
        let names: Vec<(String, String)> = all.iter().map(parts).collect();
        let name = |(runtime, credential): &(String, String)| match names
            .iter()
            .filter(|(other, _)| other == runtime)
            .count()
        {
            1 => runtime.clone(),
            _ => format!("{runtime} ({credential})"),
        };
        Ok(names.iter().map(name).zip(all.into_iter().map(|(_, taken)| taken)).collect())
    }

    fn in_folder(folder: &Path) -> io::Result<Self> {
        let turn = match File::open(folder.join(TURN)) {
            Ok(turn) => turn,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        turn.lock_shared()?;
        let claims = live_claims(folder, None, |_| {})?;
        let taken = |claim: &&Written| claim.claim().holds > 0;
        Ok(Self {
            max: claims.iter().map(|claim| claim.max).max().unwrap_or(0),
            slots: claims.iter().map(|claim| claim.claim().holds).sum(),
            trees: claims.iter().filter(taken).count(),
            waiting: claims.iter().filter(|claim| claim.wants > claim.holds).count(),
        })
    }
}

impl HostSlots for SlotFolder {
    fn open(
        &self,
        root: RootId,
        pool: &SlotPool,
        max: u32,
        on_grant: OnGrant,
    ) -> io::Result<Box<dyn HostClaims>> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the user has no home folder");
        let home = self.state_home.as_deref().ok_or_else(missing)?;
        let (folder, mut tries) = match pool {
            SlotPool::Host => (home.join(FOLDER), 1),
            SlotPool::Account(account) => (home.join(ACCOUNTS).join(account_name(account)), TRIES),
        };
        let Joined { turn, file, own, changes, woken, wake } = loop {
            tries -= 1;
            match join(&folder, root, max) {
                Ok(joined) => break joined,
                Err(error) if tries > 0 && may_pass(&error) => {
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "no event says that there is room again, and the thread does nothing else"
                    )]
                    thread::sleep(Duration::from_secs(1));
                }
                Err(error) => return Err(at(&folder, &error)),
            }
        };
        let (sender, claims) = mpsc::channel();
        let sharer = Sharer {
            folder: folder.clone(),
            turn,
            max,
            file,
            own,
            written: own,
            comes_last: false,
            taken_in: 0,
            due: 0,
            is_of_host: *pool == SlotPool::Host,
            changes,
            claims,
            woken,
            on_grant,
        };
        let begun = thread::Builder::new().name("slots".to_owned()).spawn(move || sharer.run());
        begun.map_err(|error| at(&folder, &error))?;
        Ok(Box::new(Claims { sender, wake }))
    }
}

/// True for a fault that may be over soon: nothing is left of descriptors, watches, memory or space.
fn may_pass(error: &io::Error) -> bool {
    let none_left = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT];
    let is_full = matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory
    );
    is_full || none_left.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// The files of a tree in a folder, before it claims anything.
struct Joined {
    turn: File,
    file: NamedTempFile,
    own: Written,
    changes: OwnedFd,
    woken: OwnedFd,
    wake: OwnedFd,
}

/// Makes the files of a tree in this folder, which is made where it is not there.
fn join(folder: &Path, root: RootId, max: u32) -> io::Result<Joined> {
    make_folder(folder)?;
    let turn = lockable(&folder.join(TURN))?;
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&changes, folder, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
    let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // Locked before another tree can look at it, which would take it for left behind.
    turn.lock()?;
    let file =
        tempfile::Builder::new().prefix(&format!("{root}-")).suffix(CLAIM).tempfile_in(folder)?;
    file.as_file().lock()?;
    let own = Written { max, ..Written::default() };
    own.write(file.as_file())?;
    turn.unlock()?;
    Ok(Joined { turn, file, own, changes, woken, wake })
}

impl HostClaims for Claims {
    fn claim(&self, claim: HostClaim) {
        if self.sender.send(claim).is_ok() {
            // A pipe that is full wakes it as well.
            let _ = rustix::io::write(&self.wake, &[0]);
        }
    }
}

impl Sharer {
    fn run(mut self) {
        let mut news = News::default();
        loop {
            let looked = self.hear(&mut news).and_then(|()| match news.over {
                true => Ok(()),
                false => self.answer(&mut news),
            });
            if news.over {
                break;
            }
            if let Err(error) = looked {
                tracing::warn!(%error, "slots of the host cannot be counted, tried again in a second");
                news.failed = true;
            } else {
                news = News::default();
            }
        }
        // The others are woken by this, and see that nothing is claimed any more.
        let unlocks = self.turn.lock();
        let _ = Written::default().write(self.file.as_file());
        drop(self.file);
        drop(unlocks);
    }

    /// Waits until the tree claims something, or another tree has written or gone; after a fault, no longer than until the next try.
    fn hear(&mut self, news: &mut News) -> io::Result<()> {
        // The tree claims nothing twice, and no other tree may write: no event says that a fault is over.
        let most = Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut either =
            [PollFd::new(&self.changes, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        let waited = match poll(&mut either, news.failed.then_some(&most)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error)),
        };
        let mut bytes = [0; 64];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
        news.over |= loop {
            match self.claims.try_recv() {
                Ok(claim) => {
                    let back = news.claim.map_or(0, |before: HostClaim| before.back);
                    news.claim = Some(HostClaim { back: back + claim.back, ..claim });
                }
                Err(error) => break error == mpsc::TryRecvError::Disconnected,
            }
        };
        waited.and_then(|()| self.read_notices(news))
    }

    /// Reads what the kernel has noticed. What this tree itself has written is no news.
    fn read_notices(&self, news: &mut News) -> io::Result<()> {
        let own = self.file.path().file_name();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut notices = inotify::Reader::new(&self.changes, &mut buffer);
        loop {
            let notice = match notices.next() {
                Ok(notice) => notice,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            // A notice without a name says that there were too many.
            let name = notice.file_name().map(|name| OsString::from_vec(name.to_bytes().to_vec()));
            if name.as_deref().is_some_and(|name| Some(name) == own) {
                continue;
            }
            news.others = true;
            if notice.events().contains(ReadFlags::CLOSE_WRITE) {
                news.closed.extend(name.filter(|name| is_claim(name)));
            }
        }
    }

    /// Takes what is due and free, and tells the tree.
    fn answer(&mut self, news: &mut News) -> io::Result<()> {
        if let Some(claim) = news.claim.take() {
            self.take(claim);
            news.asked = true;
        }
        if !news.asked && !news.others && !news.failed {
            return Ok(());
        }
        for name in &news.closed {
            // The kernel tells of a file that is closed just before its lock is free.
            if let Ok(file) = File::open(self.folder.join(name)) {
                file.lock_shared()?;
            }
        }
        self.turn.lock()?;
        let shared = self.share();
        self.turn.unlock()?;
        let (grant, due_with_it) = shared?;
        let asked = news.asked && self.own.wants > self.own.holds - grant.more;
        if asked || grant.more > 0 || grant.due != self.due {
            self.due = grant.due;
            (self.on_grant)(grant);
        }
        // The slot that cannot be divided is due to another tree as soon as this one has it, and no other may write to say so. Told behind the
        // grant: by then a run has started with it. A slot of an account may be kept for a run that waits for the host, and would go to and fro
        // unused.
        if self.is_of_host && due_with_it != self.due {
            self.due = due_with_it;
            (self.on_grant)(HostGrant { more: 0, due: due_with_it, ..grant });
        }
        Ok(())
    }

    /// Takes in what the tree claims. What begins to wait, or goes on to wait when it has given up a slot, comes last.
    fn take(&mut self, claim: HostClaim) {
        let HostClaim { number, back, debt, wants } = claim;
        self.taken_in = number;
        let waited = self.own.wants > self.own.holds;
        let holds = self.own.holds.saturating_sub(back);
        self.own = Written { holds, debt, wants, ..self.own };
        self.comes_last |= wants > holds && (!waited || back > 0);
    }

    /// Takes what is due and free. Returns it, with the number that is due to the tree once it has that.
    fn share(&mut self) -> io::Result<(HostGrant, u32)> {
        let remove = |left: &Path| drop(fs::remove_file(left));
        let others = live_claims(&self.folder, Some(self.file.path()), remove)?;
        if std::mem::take(&mut self.comes_last) {
            let newest = others.iter().map(|other| other.turn).max();
            self.own.turn = newest.unwrap_or(0).max(self.own.turn) + 1;
        }
        let all = |own: &Written| -> Vec<Claim> {
            std::iter::once(own).chain(&others).map(Written::claim).collect()
        };
        let before = all(&self.own);
        let (due_before, more) = (due(self.max, &before)[0], free_for_first(self.max, &before));
        let own = Written { holds: self.own.holds + more, ..self.own };
        if own != self.written {
            own.write(self.file.as_file())?;
            self.written = own;
        }
        self.own = own;
        let due_with_it = due(self.max, &all(&own))[0];
        Ok((HostGrant { more, due: due_before, claim: self.taken_in }, due_with_it))
    }
}

/// Returns the claims in a folder that a process locks, but for one of them. Those of dead processes are handed over by their paths.
fn live_claims(
    folder: &Path,
    own: Option<&Path>,
    mut left: impl FnMut(&Path),
) -> io::Result<Vec<Written>> {
    let mut claims = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if Some(&*path) == own || !path.file_name().is_some_and(is_claim) {
            continue;
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            // Gone meanwhile, or of another user, whose trees are not counted here.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                continue;
            }
            Err(error) => return Err(at(&path, &error)),
        };
        match file.try_lock_shared() {
            Ok(()) => left(&path),
            Err(TryLockError::WouldBlock) => claims.extend(Written::read(&file)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(claims)
}

impl Written {
    fn claim(&self) -> Claim {
        let &Self { holds, debt, wants, turn, max: _ } = self;
        Claim { wants, holds: holds.saturating_add(debt), turn }
    }

    fn write(self, file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec(&self)?;
        text.resize(CLAIM_BYTES, b' ');
        file.write_all_at(&text, 0)
    }

    /// None for what no tree has written.
    fn read(file: &File) -> Option<Self> {
        let mut text = [0; CLAIM_BYTES];
        file.read_exact_at(&mut text, 0).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn is_claim(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().ends_with(CLAIM.as_bytes())
}

#[cfg(test)]
mod tests;
