//! Repositories of all kinds, and folders without one.

use std::fs;
use std::path::Path;

use offshoot_isolation::{Git, IsolationError};
use offshoot_process::{Options, Processes};

use crate::world::{World, environment, git, run, write};

#[tokio::test]
async fn uncommitted_changes_are_in_a_copy_and_not_in_a_worktree() {
    let world = World::new();
    write(&world.repository(), "a", "dirty\n");
    write(&world.repository(), "untracked", "x\n");
    let worktree = world.make(run(), "worktree", &world.repository()).await.expect("a folder");
    assert!(worktree.notes[0].starts_with("2 uncommitted changes of "), "{:?}", worktree.notes);
    assert_eq!(fs::read_to_string(worktree.folder.join("a")).expect("a"), "one\ntwo\nthree\n");
    let id = run();
    let copy = world.make(id, "copy", &world.repository()).await.expect("a folder");
    assert_eq!(fs::read_to_string(copy.folder.join("a")).expect("a"), "dirty\n");
    write(&copy.folder, "a", "dirtier\n");
    let gathered = world.workspaces.gather(id).await.expect("a patch").expect("changes");
    assert_eq!(gathered.about.base, None, "no commit has these files");
    let patch = fs::read_to_string(gathered.patch.expect("a patch")).expect("text");
    assert!(patch.contains("-dirty\n+dirtier\n") && !patch.contains("untracked"), "{patch}");
}

#[tokio::test]
async fn a_worktree_begins_with_the_commit_that_is_named() {
    let world = World::new();
    let repository = world.repository();
    write(&repository, "sub/later", "x\n");
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "later"]);
    let made = world.make(run(), "worktree:HEAD~1", &repository.join("sub")).await.expect("it");
    assert!(made.folder.ends_with("sub") && made.folder.is_dir());
    assert!(!made.folder.join("later").exists());
    let error = world.make(run(), "worktree:no-such", &repository).await.expect_err("no commit");
    assert!(matches!(error, IsolationError::NoCommit { .. }), "{error}");
}

#[tokio::test]
async fn what_has_no_worktrees_says_so() {
    let world = World::empty(environment());
    let path = world.path();
    let check = async |folder: &Path, expected: fn(&IsolationError) -> bool| {
        let error = world.make(run(), "worktree", folder).await.expect_err("no worktree");
        assert!(expected(&error), "{error:?}");
        assert!(error.hint().is_some(), "{error}");
    };
    check(&path, |error| matches!(error, IsolationError::NoRepository { .. })).await;
    git(&path, &["init", "-q", "--bare", "bare"]);
    check(&path.join("bare"), |error| matches!(error, IsolationError::Bare { .. })).await;
    git(&path, &["init", "-q", "unborn"]);
    check(&path.join("unborn"), |error| matches!(error, IsolationError::NoCommit { .. })).await;
    let broken = path.join("broken");
    git(&path, &["init", "-q", "broken"]);
    write(&broken, "a", "a\n");
    git(&broken, &["add", "a"]);
    git(&broken, &["commit", "-q", "-m", "a"]);
    let blob = git(&broken, &["rev-parse", "HEAD:a"]);
    let (shelf, name) = blob.split_at(2);
    fs::remove_file(broken.join(".git/objects").join(shelf).join(name)).expect("an object");
    check(&broken, |error| matches!(error, IsolationError::Git { .. })).await;
    assert!(!broken.join(".git/worktrees").exists());
    // A copy needs no repository.
    let id = run();
    fs::create_dir(path.join("plain")).expect("a folder");
    write(&path.join("plain"), "x", "1\n");
    let copy = world.make(id, "copy", &path.join("plain")).await.expect("a copy");
    write(&copy.folder, "x", "2\n");
    let gathered = world.workspaces.gather(id).await.expect("a patch").expect("changes");
    let patch = fs::read_to_string(gathered.patch.expect("a patch")).expect("text");
    assert!(patch.ends_with("@@ -1 +1 @@\n-1\n+2\n"), "{patch}");
    world.workspaces.discard(id).await.expect("removed");
    world.check_nothing_left();
}

#[tokio::test]
async fn a_copy_within_a_repository_is_in_none() {
    let world = World::new();
    git(&world.path(), &["init", "-q"]);
    write(&world.path(), "plain/x", "1\n");
    let copy = world.make(run(), "copy", &world.path().join("plain")).await.expect("a copy");
    let probe = Processes::start(Options::default()).expect("processes");
    let git = Git::find(probe, environment()).expect("git");
    let error = offshoot_isolation::Repository::of(&git, &copy.folder, "HEAD").await;
    error.expect_err("a command of git here would change the files of the user");
}

#[tokio::test]
async fn no_git_is_said() {
    let processes = Processes::start(Options::default()).expect("processes");
    let error = Git::find(processes, [("PATH".into(), "/nonexistent".into())]).expect_err("none");
    assert!(matches!(error, IsolationError::NoGit(_)));
    assert!(error.hint().expect("a hint").contains("install git"));
}

#[tokio::test]
async fn shallow_clones_submodules_and_pointers() {
    let world = World::new();
    let repository = world.repository();
    git(&world.path(), &["init", "-q", "other"]);
    git(&world.path().join("other"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    let other = world.path().join("other").display().to_string();
    git(&repository, &["submodule", "--quiet", "add", &other, "module"]);
    write(&repository, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    write(&repository, "big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n");
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "submodule and pointer"]);
    let url = format!("file://{}", repository.display());
    git(&world.path(), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let shallow = world.path().join("shallow");
    let id = run();
    let made = world.make(id, "worktree", &shallow).await.expect("a folder");
    assert_eq!(
        made.notes,
        ["submodules are empty folders in it: module", "files of LFS are pointers in it: big.bin"]
    );
    write(&made.folder, "a", "changed\n");
    let gathered = world.workspaces.gather(id).await.expect("a patch").expect("changes");
    assert_eq!(gathered.about.kept.expect("it is safe").files, 1);
    world.workspaces.discard(id).await.expect("removed");
}

#[tokio::test]
async fn hooks_and_filters_of_the_repository_are_its_own() {
    let world = World::new();
    let hook = world.repository().join(".git/hooks/post-checkout");
    write(&world.repository(), ".git/hooks/post-checkout", "#!/bin/sh\ntouch \"$PWD/hooked\"\n");
    crate::world::make_executable(&hook);
    let made = world.make(run(), "worktree", &world.repository()).await.expect("a folder");
    assert!(!made.folder.join("hooked").exists());
}

#[tokio::test]
async fn forty_worktrees_at_once() {
    let world = World::new();
    let runs: Vec<_> = (0..40).map(|_| run()).collect();
    let work = runs.iter().map(async |run| {
        let made = world.make(*run, "worktree", &world.repository()).await.expect("a folder");
        write(&made.folder, &run.to_string(), "mine\n");
        let gathered = world.workspaces.gather(*run).await.expect("a patch").expect("changes");
        assert_eq!(gathered.about.kept.expect("it is safe").files, 1);
        world.workspaces.discard(*run).await.expect("removed");
    });
    futures_util::future::join_all(work).await;
    world.check_nothing_left();
}
