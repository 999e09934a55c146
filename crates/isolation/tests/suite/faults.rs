//! Disks without room.

use std::fs;

use offshoot_isolation::{Git, IsolationError, Order, Workspaces};
use offshoot_model::RootId;
use offshoot_process::{Options, Processes};
use offshoot_test_support::Disk;

use crate::world::{World, environment, git, run, write};

#[tokio::test]
async fn without_room_nothing_is_lost() {
    let world = World::new();
    let Some(disk) = Disk::of(2 << 20) else { return };
    let processes = Processes::start(Options::default()).expect("processes");
    let found = Git::find(processes, environment()).expect("git");
    let data = disk.path().canonicalize().expect("a path");
    let workspaces = Workspaces::open(&data, found).expect("a shelf");
    let run = run();
    let order = || Order {
        run,
        root: RootId::new(run),
        isolation: "worktree".parse().expect("it"),
        folder: world.repository(),
        continues: false,
    };
    // Too little for the worktree.
    write(&world.repository(), "large", noise(4 << 20));
    git(&world.repository(), &["add", "large"]);
    git(&world.repository(), &["commit", "-q", "-m", "large"]);
    let error = workspaces.make(order()).await.expect_err("no room");
    assert!(matches!(error, IsolationError::Git { .. }), "{error:?}");
    assert!(!world.repository().join(".git/worktrees").exists());
    git(&world.repository(), &["reset", "-q", "--hard", "HEAD~1"]);
    // Too little for the patch.
    let made = workspaces.make(order()).await.expect("a folder");
    write(&made.folder, "new", noise(300 << 10));
    let filler = disk.path().join("filler");
    let free = rustix::fs::statvfs(disk.path()).expect("a disk");
    let free = usize::try_from(free.f_bavail * free.f_frsize).expect("it is small");
    fs::write(&filler, vec![1; free.saturating_sub(100 << 10)]).expect("room for this");
    workspaces.gather(run).await.expect_err("no room");
    assert!(made.folder.join("new").exists());
    fs::remove_file(&filler).expect("it goes");
    let gathered = workspaces.gather(run).await.expect("a patch").expect("changes");
    let base = gathered.about.base.expect("a commit");
    let applied = world.applied(&base, &gathered.patch.expect("a patch"));
    assert_eq!(fs::read(applied.path().join("new")).expect("it"), noise(300 << 10));
    workspaces.discard(run).await.expect("removed");
}

/// Bytes that do not get smaller.
fn noise(many: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..many).map(|_| next()).collect()
}
