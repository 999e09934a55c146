//! Coming back to a large record: reading it all, and the commands that look at it.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use offshoot_merge::Strategy;
use offshoot_model::{Tree, number};
use offshoot_spawner::RunSpec;
use offshoot_store::{DataFolder, SqliteStore, Store};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::outcome::{Outcome, Unit};
use crate::programs::{ours as our_programs, silent, succeed};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "reopen", what: "come back to a record of 100,000 runs", measure };

const FIRST_SCREEN: &str = "offshoot watch, first screen with runs";

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(100_000, 1_000);
    let folder = setting.scratch()?;
    setup(setting, folder.path(), runs)?;
    let offshoot = our_programs()?.offshoot;
    let look = |word: &'static str| {
        let (offshoot, folder) = (&offshoot, folder.path());
        move || {
            let mut look = silent(offshoot);
            look.arg("--data-dir").arg(folder).arg(word).current_dir(folder);
            timed(|| succeed(&mut look)).map(|(seconds, ())| seconds)
        }
    };
    // The mark before a run with others below it.
    let first = "▾".to_owned();
    let all = format!("{} completed", number::count(runs));
    let watch = |words: String| {
        let (offshoot, folder) = (&offshoot, folder.path());
        move || until_screen(offshoot, folder, &words)
    };
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("open the store and fold the tree", || reopen(folder.path(), runs)),
            Side::new("offshoot tree", look("tree")),
            Side::new("offshoot list", look("list")),
            Side::new("offshoot stats", look("stats")),
            Side::new(FIRST_SCREEN, watch(first)),
            Side::new("offshoot watch, all runs", watch(all)),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("time"), samples)
        .at_most("open the store and fold the tree", 2.0)
        .at_most("offshoot tree", 1.0)
        .at_most("offshoot list", 1.0)
        .at_most("offshoot stats", 1.0)
        .at_most(FIRST_SCREEN, 0.2)
        .note(format!("{runs} pieces below one root")))
}

/// The time until the screen of `offshoot watch` has these words.
fn until_screen(offshoot: &Path, folder: &Path, words: &str) -> Result<f64> {
    const ROWS: u16 = 50;
    const COLUMNS: u16 = 200;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&screen, size)?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let other = File::from(open(ptsname(&screen, Vec::new())?, flags, Mode::empty())?);
    let mut screen = File::from(screen);
    let end = || other.try_clone().map(Stdio::from);
    // A size is asked of the controlling terminal.
    let mut watch = Command::new("setsid");
    watch.arg("--ctty").arg(offshoot).arg("--data-dir").arg(folder).args(["watch", "last"]);
    watch.current_dir(folder).env("TERM", "xterm-256color");
    watch.stdin(end()?).stdout(end()?).stderr(end()?);
    let mut parser = vt100::Parser::new(ROWS, COLUMNS, 0);
    let mut bytes = vec![0; 65536];
    let mut child = None;
    let (seconds, ()) = timed(|| {
        child = Some(watch.spawn()?);
        while !parser.screen().contents().contains(words) {
            let read = screen.read(&mut bytes)?;
            parser.process(&bytes[..read]);
        }
        Ok(())
    })?;
    if let Some(mut child) = child {
        child.kill()?;
        child.wait()?;
    }
    Ok(seconds)
}

fn setup(setting: &Setting, folder: &Path, runs: u64) -> Result<()> {
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, closure())?;
    let tree = engine.run(pieces(runs), RunSpec::in_folder("/"), Strategy::Sum);
    setting.runtime()?.block_on(tree)
}

fn reopen(folder: &Path, runs: u64) -> Result<f64> {
    let (seconds, tree) = timed(|| {
        let store = SqliteStore::open(&DataFolder::open(folder)?)?;
        let mut tree = Tree::new();
        for event in store.all_events() {
            tree.apply(&event?);
        }
        Ok(black_box(tree))
    })?;
    assert_eq!(tree.nodes().count() as u64, runs + 1, "nothing is lost");
    Ok(seconds)
}
