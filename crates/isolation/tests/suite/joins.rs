//! Many patches and one branch, and the way back to the files of the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_isolation::{Bring, Brought, Check, Contribution, Joined, Joint};
use offshoot_model::RootId;

use crate::world::{World, git, run, write};

impl World {
    /// The patch of a run that changes the files in this way.
    async fn contribution(&self, key: &str, change: impl FnOnce(&Path)) -> Contribution {
        let run = run();
        let made = self.make(run, "worktree", &self.repository()).await.expect("a folder");
        change(&made.folder);
        let gathered = self.workspaces.gather(run).await.expect("a patch").expect("a folder");
        let patch = gathered.patch.map(|patch| {
            let kept: PathBuf = self.path().join(format!("kept-{run}"));
            fs::copy(patch, &kept).expect("a copy");
            kept
        });
        let base = gathered.about.base;
        self.workspaces.discard(run).await.expect("removed");
        Contribution { key: key.to_owned(), run: run.to_string(), base, patch }
    }

    async fn join(&self, patches: Vec<Contribution>, check: Option<&str>) -> Joined {
        let id = run();
        let (root, limit) = (RootId::new(id), Duration::from_secs(60));
        let limit = if check == Some(HANGS) { Duration::from_millis(300) } else { limit };
        let check = check.map(|command| Check { command: command.to_owned(), limit, id, root });
        let (folder, branch) = (self.repository(), "offshoot/joined".to_owned());
        let joint = Joint { folder, branch, patches, check };
        self.workspaces.join(&joint).await.expect("it is joined")
    }
}

const HANGS: &str = "test ! -e culprit || sleep 600";

fn keys<T>(all: &[T], key: impl Fn(&T) -> &str) -> Vec<&str> {
    all.iter().map(key).collect()
}

#[tokio::test]
async fn conflicts_say_which_files_and_whose() {
    let world = World::new();
    let patches = vec![
        world.contribution("first", |folder| write(folder, "a", "ONE\ntwo\nthree\n")).await,
        world.contribution("far", |folder| write(folder, "a", "one\ntwo\nTHREE\n")).await,
        world.contribution("same", |folder| write(folder, "a", "1\ntwo\nthree\n")).await,
        world.contribution("idle", |_| ()).await,
        world.contribution("moves", |f| fs::rename(f.join("d/b"), f.join("c")).expect("it")).await,
        world.contribution("edits", |f| write(f, "d/b", "bytes\n".repeat(21))).await,
        Contribution { base: None, ..world.contribution("copy", |f| write(f, "x", "x")).await },
    ];
    let before = world.of_user();
    let joined = world.join(patches, None).await;
    let after = world.of_user();
    assert_eq!((&before[..2], &before[3..6]), (&after[..2], &after[3..6]));
    assert_eq!(keys(&joined.applied, |it| &it.key), ["first", "far", "moves", "edits"]);
    assert_eq!(keys(&joined.conflicts, |it| &it.key), ["copy", "same"]);
    assert_eq!(joined.conflicts[1].files["a"], ["first"], "far has changed other lines");
    assert_eq!(joined.unchanged, ["idle"]);
    let show = |file: &str| git(&world.repository(), &["show", &format!("offshoot/joined:{file}")]);
    assert_eq!(show("a"), "ONE\ntwo\nTHREE");
    assert_eq!(show("c").lines().count(), 21, "a change follows a file that was moved");
    let log = git(&world.repository(), &["log", "--format=%s", "offshoot/joined"]);
    assert_eq!(log, "edits\nmoves\nfar\nfirst\nbegin");
}

/// A patch that another one stands in the way of is tried again once that one is left out.
#[tokio::test]
async fn a_culprit_takes_its_conflicts_with_it() {
    let world = World::new();
    let line = |text: &str| format!("one\n{text}\nthree\n");
    let patches = vec![
        world.contribution("other", |folder| write(folder, "d/b", "first\n")).await,
        world.contribution("bad", |folder| write(folder, "a", line("bad"))).await,
        world.contribution("good", |folder| write(folder, "a", line("good"))).await,
        world.contribution("late", |folder| write(folder, "a", line("late"))).await,
        world.contribution("last", |folder| write(folder, "z", "z\n")).await,
    ];
    let joined = world.join(patches, Some("! grep -q bad a")).await;
    assert_eq!(keys(&joined.applied, |it| &it.key), ["other", "good", "last"]);
    assert_eq!(keys(&joined.left_out, |it| &it.key), ["bad"]);
    assert_eq!(keys(&joined.conflicts, |it| &it.key), ["late"]);
    assert_eq!(joined.conflicts[0].files["a"], ["good"]);
    assert!(joined.check.expect("a verdict").passes);
}

#[tokio::test]
async fn forty_patches_one_tested_branch() {
    let world = World::new();
    let mut patches = Vec::new();
    for number in 0..40 {
        let change = |folder: &Path| {
            write(folder, &format!("part-{number}"), "x\n");
            // Two that fail alone, and two that fail together.
            match number {
                7 | 31 => write(folder, &format!("culprit-{number}"), "x\n"),
                12 => write(folder, "half", "x\n"),
                25 => write(folder, "other", "x\n"),
                _ => {}
            }
        };
        patches.push(world.contribution(&number.to_string(), change).await);
    }
    let check =
        "ls culprit-* >/dev/null 2>&1 && { echo found; exit 3; }; ! [ -e half -a -e other ]";
    let joined = world.join(patches, Some(check)).await;
    assert_eq!(keys(&joined.left_out, |it| &it.key), ["7", "25", "31"]);
    assert_eq!(joined.left_out[0].why, "exited with code 3");
    assert_eq!(joined.left_out[0].said, "found");
    assert_eq!(joined.applied.len(), 37);
    let verdict = joined.check.expect("a check");
    assert!(verdict.passes && verdict.runs <= 25, "{verdict:?}");
    let files = git(&world.repository(), &["ls-tree", "--name-only", "offshoot/joined"]);
    assert_eq!(files.lines().filter(|file| file.starts_with("part-")).count(), 37);
    world.check_nothing_left();
}

#[tokio::test]
async fn a_check_that_hangs_fails_and_one_that_fails_anyway_blames_no_patch() {
    let world = World::new();
    let good = || world.contribution("good", |folder| write(folder, "good", "x\n"));
    let culprit = world.contribution("culprit", |folder| write(folder, "culprit", "x\n")).await;
    let joined = world.join(vec![good().await, culprit, good().await], Some(HANGS)).await;
    assert_eq!(keys(&joined.left_out, |it| &it.key), ["culprit"]);
    assert!(joined.left_out[0].why.starts_with("did not end within"), "{joined:?}");
    assert!(joined.check.expect("a check").passes);
    let joined = world.join(vec![good().await], Some("exit 1")).await;
    assert!(joined.left_out.is_empty());
    let verdict = joined.check.expect("a check");
    assert!(!verdict.passes && verdict.why.ends_with("also without any patch"), "{verdict:?}");
    assert_eq!(joined.applied.len(), 1);
    world.check_nothing_left();
}

#[tokio::test]
async fn changes_are_brought_whole_or_not_at_all() {
    let world = World::new();
    let repository = world.repository();
    let made = world
        .contribution("x", |folder| {
            write(folder, "a", "one\n2\nthree\n");
            write(folder, "new", "new\n");
        })
        .await;
    let what =
        Bring::Patch { patch: made.patch.clone().expect("a patch"), base: made.base.clone() };
    let bring = async || world.workspaces.bring(&repository, &what).await.expect("an answer");
    write(&repository, "a", "dirty\n");
    write(&repository, "blob", "dirty too, and not in the way\n");
    assert_eq!(bring().await, Brought::Dirty(vec!["a".to_owned()]));
    assert!(!repository.join("new").exists());
    git(&repository, &["checkout", "-q", "a"]);
    write(&repository, "new", "mine\n");
    assert_eq!(bring().await, Brought::Dirty(vec!["new".to_owned()]));
    fs::remove_file(repository.join("new")).expect("it goes");
    write(&repository, "a", "one\nTWO\nthree\n");
    git(&repository, &["commit", "-q", "-m", "other", "a"]);
    assert_eq!(bring().await, Brought::Conflict(vec!["a".to_owned()]));
    write(&repository, "a", "zero\none\ntwo\nthree\n");
    git(&repository, &["commit", "-q", "-m", "other", "a"]);
    assert_eq!(bring().await, Brought::Done(vec!["a".to_owned(), "new".to_owned()]));
    assert_eq!(fs::read_to_string(repository.join("a")).expect("a"), "zero\none\n2\nthree\n");
    assert_eq!(git(&repository, &["diff", "--cached", "--name-only"]), "");
    // A folder without a repository takes a patch that fits.
    let plain = world.path().join("plain");
    write(&plain, "a", "one\ntwo\nthree\n");
    let brought = world.workspaces.bring(&plain, &what).await.expect("an answer");
    assert_eq!(brought, Brought::Done(vec!["a".to_owned(), "new".to_owned()]));
    let brought = world.workspaces.bring(&plain, &what).await.expect("an answer");
    assert!(matches!(brought, Brought::Unfit(_)), "{brought:?}");
}

#[tokio::test]
async fn a_file_in_the_place_of_a_folder_has_its_own_name_and_an_owner() {
    let world = World::new();
    let file = world.contribution("file", |folder| write(folder, "n", "a file\n")).await;
    let folder = world
        .contribution("folder", |folder| {
            fs::create_dir(folder.join("n")).expect("a folder");
            write(folder, "n/x", "a file in it\n");
        })
        .await;
    for (first, second) in [(&file, &folder), (&folder, &file)] {
        let joined = world.join(vec![first.clone(), second.clone()], None).await;
        assert_eq!(keys(&joined.applied, |it| &it.key), [&*first.key]);
        let conflict = &joined.conflicts[0];
        assert_eq!(conflict.key, second.key);
        let files: Vec<_> = conflict.files.iter().collect();
        let owner = vec![first.key.clone()];
        assert_eq!(files, [(&"n".to_owned(), &owner)], "{first:?}");
        git(&world.repository(), &["branch", "-D", "offshoot/joined"]);
    }
}

#[tokio::test]
async fn what_a_killed_check_leaves_is_swept_and_what_is_in_use_is_not() {
    let world = World::new();
    let patch = world.contribution("one", |folder| write(folder, "begun", "")).await;
    let begun = world.path().join("fifo");
    offshoot_test_support::named_pipe(&begun);
    let shelf = world.path().join("data/isolated");
    let scratch = || {
        let names = fs::read_dir(&shelf).expect("a shelf").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().contains(".scratch")).count()
    };
    let hangs = format!("echo > {}; sleep 600", begun.display());
    let read = tokio::task::spawn_blocking(move || fs::read(&begun));
    tokio::select! {
        biased;
        _ = world.join(vec![patch], Some(&hangs)) => panic!("the check hangs"),
        read = read => drop(read.expect("a thread").expect("the check has begun")),
    }
    // Dropped as by `kill -9`: nothing was removed, and nothing is at work any more.
    assert_eq!(scratch(), 1);
    // A child that a neighbour of this test was about to start has its lock until the child's program begins. What is unlocked, and not only
    // closed, is free in each process that has inherited it.
    let barrier = fs::File::open(shelf.join(".git")).expect("the barrier");
    barrier.lock().and_then(|()| barrier.unlock()).expect("a lock");
    world.workspaces.left().await.expect("a list");
    assert_eq!(scratch(), 0);
    // Another one at work.
    barrier.lock_shared().expect("a lock");
    write(&shelf, "offshoot-other-1.scratch", "");
    world.workspaces.left().await.expect("a list");
    assert_eq!(scratch(), 1);
    barrier.unlock().expect("a lock");
    let root = RootId::new(run());
    let data = world.path().join("data");
    offshoot_isolation::Workspaces::prune(&data, root, true).expect("a look");
    assert_eq!(scratch(), 1);
    offshoot_isolation::Workspaces::prune(&data, root, false).expect("pruned");
    assert_eq!(scratch(), 0);
}
