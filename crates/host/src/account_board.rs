//! Walls of quotas, and services that have too much to do, in a folder of the user, of which all of their trees know.
//!
//! ```text
//!   ACCOUNT.json    the wall of the account, or when a run of it was answered after a reset
//!   ACCOUNT.pressed when the service of the account had too much to do for a run
//!   ACCOUNT.turn    locked by the tree that starts one run of the account after a reset
//! ```

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{Account, Timestamp};
use offshoot_spawner::{AccountBoard, AccountNews, ParkedAccount, ProbeTurn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::runtimes::EXEC;
use crate::state_file::{self, lockable, make_folder};

/// The name of the folder below that of the user's programs.
const FOLDER: &str = "offshoot/walls";

/// The end of the names of files that tell of pressure.
const PRESSED: &str = "pressed";

/// A folder with a file for each account of which a quota was used up. A file is written aside and renamed, so that it is whole or
/// not there; one that cannot be read says nothing. For
/// [`SpawnerBuilder::account_board`](offshoot_spawner::SpawnerBuilder::account_board); a [`Host`](crate::Host) has it.
#[derive(Debug)]
pub struct WallFolder {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Written {
    account: Account,
    window: Option<Arc<str>>,
    until: Timestamp,
    /// The time at which a run of the account was answered after its reset; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<Timestamp>,
}

/// The content of a file that tells of pressure.
#[derive(Serialize, Deserialize)]
struct Pressed {
    account: Account,
    at: Timestamp,
}

impl Written {
    fn parked(self) -> ParkedAccount {
        let Self { account, window, until, answered: _ } = self;
        ParkedAccount { account, window, until }
    }
}

impl WallFolder {
    /// The folder of the user, below that for the state of programs, which is made where it is not there. None where it cannot be: then
    /// each tree knows its own walls alone.
    pub fn of_user(state_home: Option<&Path>) -> Option<Self> {
        let folder = state_home?.join(FOLDER);
        let made = make_folder(&folder);
        made.inspect_err(|error| tracing::debug!(%error, "no folder for walls of quotas")).ok()?;
        Some(Self { folder })
    }

    fn write(&self, parked: &ParkedAccount) -> io::Result<()> {
        let ParkedAccount { account, window, until } = parked.clone();
        self.write_down(&Written { account, window, until, answered: None })
    }

    fn write_down(&self, written: &Written) -> io::Result<()> {
        state_file::write(&self.folder.join(file_name(&written.account)), written)
    }

    fn written(&self, account: &Account) -> Option<Written> {
        state_file::read(&self.folder.join(file_name(account)))
    }

    /// Waits for the turn of an account, and holds it as long as the file is open.
    fn lock(&self, account: &Account) -> io::Result<ProbeTurn> {
        let file = lockable(&self.folder.join(file_name(account)).with_extension("turn"))?;
        file.lock()?;
        let written = self.written(account);
        let answered_at = written.as_ref().and_then(|written| written.answered);
        let told = written.filter(|written| written.answered.is_none()).map(Written::parked);
        Ok(ProbeTurn { answered_at, told, hold: Box::new(file) })
    }

    /// Begins to watch. The thread that waits ends when the receiver is dropped.
    fn watch(&self, told: mpsc::UnboundedSender<AccountNews>) -> io::Result<()> {
        let changes = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&changes, &self.folder, WatchFlags::MOVED_TO)?;
        let (ended, ends) = pipe_with(PipeFlags::CLOEXEC)?;
        let (folder, follower) = (self.folder.clone(), told.clone());
        let follow = move || follow(&folder, &changes, &ended, &follower);
        thread::Builder::new().name("walls".to_owned()).spawn(follow)?;
        #[expect(clippy::disallowed_methods, reason = "it ends with its receiver")]
        tokio::spawn(async move {
            told.closed().await;
            drop(ends);
        });
        Ok(())
    }
}

/// Returns the walls of quotas of which trees of the user have told, whose folder for the state of programs this is. Some may be over.
pub fn known_walls(state_home: Option<&Path>) -> Vec<ParkedAccount> {
    state_home.map(|home| read(&home.join(FOLDER))).unwrap_or_default()
}

impl AccountBoard for WallFolder {
    fn tell(&self, parked: &ParkedAccount) {
        if let Err(error) = self.write(parked) {
            tracing::debug!(%error, "other trees cannot be told of a wall");
        }
    }

    fn turn(&self, account: &Account) -> BoxFuture<'static, ProbeTurn> {
        let (sender, turn) = oneshot::channel();
        let (board, account) = (Self { folder: self.folder.clone() }, account.clone());
        // A thread of its own: the wait for a lock cannot be called off, and no runtime is to wait for it.
        let waits = move || {
            let turn = board.lock(&account).inspect_err(|error| {
                tracing::debug!(%error, "no turn among the trees of the user");
            });
            // A tree that waits no longer has gone: its turn goes to the next one.
            drop(sender.send(turn.unwrap_or_else(|_| ProbeTurn::alone())));
        };
        let waits = thread::Builder::new().name("probe turn".to_owned()).spawn(waits);
        if let Err(error) = waits {
            tracing::debug!(%error, "no turn among the trees of the user");
        }
        turn.map(|turn| turn.unwrap_or_else(|_| ProbeTurn::alone())).boxed()
    }

    fn answered(&self, account: &Account, at: Timestamp) {
        let known = self.written(account);
        // A wall of which another tree has told meanwhile stands.
        if known.is_some_and(|known| known.until > at) {
            return;
        }
        let account = account.clone();
        let written = Written { account, window: None, until: at, answered: Some(at) };
        if let Err(error) = self.write_down(&written) {
            tracing::debug!(%error, "other trees cannot be told of an answer");
        }
    }

    fn known(&self) -> Vec<ParkedAccount> {
        read(&self.folder)
    }

    fn pressed(&self, account: &Account, at: Timestamp) {
        // Programs of several trees ask several services.
        if *account.runtime == *EXEC.name {
            return;
        }
        let path = self.folder.join(file_name(account)).with_extension(PRESSED);
        let pressed = Pressed { account: account.clone(), at };
        if let Err(error) = state_file::write(&path, &pressed) {
            tracing::debug!(%error, "other trees cannot be told of pressure");
        }
    }

    fn follow(&self) -> mpsc::UnboundedReceiver<AccountNews> {
        let (told, receiver) = mpsc::unbounded_channel();
        if let Err(error) = self.watch(told) {
            tracing::debug!(%error, "news of other trees are not heard of");
        }
        receiver
    }
}

/// Tells of all accounts whenever a file was written, until the other end of the pipe is closed.
fn follow(
    folder: &Path,
    changes: &OwnedFd,
    ended: &OwnedFd,
    told: &mpsc::UnboundedSender<AccountNews>,
) {
    loop {
        let mut either = [
            PollFd::new(changes, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN | PollFlags::HUP),
        ];
        match poll(&mut either, None) {
            Ok(_) if !either[1].revents().is_empty() => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if either[0].revents().contains(PollFlags::IN) {
            // The content of the notice does not matter: the files are read.
            let mut notice = [MaybeUninit::uninit(); 4096];
            if rustix::io::read(changes, &mut notice).is_err() {
                return;
            }
            let parked = read(folder).into_iter().map(AccountNews::Parked);
            for news in parked.chain(read_pressed(folder)) {
                if told.send(news).is_err() {
                    return;
                }
            }
        }
    }
}

fn read(folder: &Path) -> Vec<ParkedAccount> {
    let written = files(folder, "json").filter_map(|path| state_file::read(&path));
    written.map(Written::parked).collect()
}

/// Returns the pressure of which was told. That of long ago is told as well.
fn read_pressed(folder: &Path) -> impl Iterator<Item = AccountNews> {
    let pressed = files(folder, PRESSED).filter_map(|path| state_file::read(&path));
    pressed.map(|Pressed { account, at }| AccountNews::Pressed { account, at })
}

/// Returns the files of a folder whose names end so.
fn files(folder: &Path, ends: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(move |path| path.extension().is_some_and(|end| end == ends))
}

/// The name of the file of an account: its runtime, and the fingerprint of its credential where there is one.
pub(crate) fn file_name(account: &Account) -> String {
    format!("{}.json", account_name(account))
}

/// Returns a name for what belongs to an account: its runtime, and the fingerprint of its credential.
pub(crate) fn account_name(account: &Account) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let runtime: String = account.runtime.chars().map(plain).collect();
    format!("{runtime}-{}", account.credential.as_deref().unwrap_or("login"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(runtime: &str, until: u64) -> ParkedAccount {
        let account = Account::of_runtime(runtime);
        ParkedAccount { account, window: None, until: Timestamp::from_micros(until) }
    }

    #[tokio::test]
    async fn what_one_tells_the_others_know_and_hear() {
        let home = tempfile::tempdir().expect("a folder");
        let [one, other] =
            [(); 2].map(|()| WallFolder::of_user(Some(home.path())).expect("it can be made"));
        let mut heard = other.follow();
        assert_eq!(other.known(), []);
        one.tell(&parked("claude", 1));
        assert_eq!(heard.recv().await, Some(AccountNews::Parked(parked("claude", 1))));
        one.tell(&parked("claude", 2));
        assert_eq!(heard.recv().await, Some(AccountNews::Parked(parked("claude", 2))));
        assert_eq!(other.known(), [parked("claude", 2)], "the newest of an account stands");
        one.tell(&parked("../b c", 3));
        assert_eq!(other.known().len(), 2);
    }

    #[tokio::test]
    async fn two_supervisors_that_park_at_once_leave_one_whole_wall() {
        const EACH: u64 = 200;
        let home = tempfile::tempdir().expect("a folder");
        let board = || WallFolder::of_user(Some(home.path())).expect("it can be made");
        let mut heard = board().follow();
        let ends = [0, EACH].map(|from| {
            let board = board();
            thread::spawn(move || {
                (from..from + EACH).for_each(|until| board.tell(&parked("claude", until)));
            })
        });
        // A reader finds one wall or none meanwhile, and never half of one.
        while ends.iter().any(|end| !end.is_finished()) {
            assert!(board().known().len() <= 1);
            thread::yield_now();
        }
        ends.into_iter().for_each(|end| end.join().expect("it tells"));
        let [last] = &board().known()[..] else { panic!("one account has one wall") };
        assert!([EACH - 1, 2 * EACH - 1].map(|until| parked("claude", until)).contains(last));
        // The other trees hear of what stands in the end.
        while heard.recv().await != Some(AccountNews::Parked(last.clone())) {}
        let files = fs::read_dir(&board().folder).expect("the folder is there").count();
        assert_eq!(files, 1, "nothing is left beside it");
    }

    #[tokio::test]
    async fn pressure_that_one_tells_of_is_heard_by_the_others_and_is_no_wall() {
        let home = tempfile::tempdir().expect("a folder");
        let [one, other] =
            [(); 2].map(|()| WallFolder::of_user(Some(home.path())).expect("it can be made"));
        let mut heard = other.follow();
        let (account, at) = (Account::of_runtime("claude"), Timestamp::from_micros(7));
        one.pressed(&account, at);
        assert_eq!(heard.recv().await, Some(AccountNews::Pressed { account, at }));
        assert_eq!(other.known(), []);
    }

    #[tokio::test]
    async fn a_turn_goes_to_the_next_one_with_what_came_of_it() {
        let home = tempfile::tempdir().expect("a folder");
        let [one, other] =
            [(); 2].map(|()| WallFolder::of_user(Some(home.path())).expect("it can be made"));
        let account = Account::of_runtime("claude");
        one.tell(&parked("claude", 10));
        let first = one.turn(&account).await;
        assert_eq!((first.answered_at, &first.told), (None, &Some(parked("claude", 10))));
        let mut second = other.turn(&account);
        // Of another account it is free.
        drop(other.turn(&Account::of_runtime("openai")).await);
        assert!((&mut second).now_or_never().is_none(), "one at a time");
        one.answered(&account, Timestamp::from_micros(12));
        drop(first);
        let second = second.await;
        assert_eq!((second.answered_at, &second.told), (Some(Timestamp::from_micros(12)), &None));
        assert_eq!(other.known()[0].until, Timestamp::from_micros(12), "the wall is over");
        // One that waits no longer holds up none.
        drop(one.turn(&account));
        drop(second);
        drop(other.turn(&account).await);
    }

    #[test]
    fn an_answer_does_not_take_back_a_later_wall() {
        let home = tempfile::tempdir().expect("a folder");
        let board = WallFolder::of_user(Some(home.path())).expect("it can be made");
        board.tell(&parked("claude", 90));
        board.answered(&Account::of_runtime("claude"), Timestamp::from_micros(50));
        assert_eq!(board.known(), [parked("claude", 90)]);
    }

    #[test]
    fn a_damaged_file_says_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let board = WallFolder::of_user(Some(home.path())).expect("it can be made");
        fs::write(board.folder.join("x.json"), "{\"account\": 1").expect("a file");
        board.tell(&parked("claude", 1));
        assert_eq!(board.known(), [parked("claude", 1)]);
        assert!(WallFolder::of_user(None).is_none());
    }
}
