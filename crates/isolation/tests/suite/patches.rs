//! Patches: what was changed in a folder is in them, and nothing else is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::world::{World, git, make_executable, run, write};

/// Changes a folder in all the ways that a patch must know.
fn change(folder: &Path) {
    write(folder, "a", "one\n2\nthree\n");
    write(folder, "new", "new\n");
    write(folder, "with space/and \"quote\"\n", "odd\n");
    write(folder, "blob", (0..=255).rev().collect::<Vec<u8>>());
    write(folder, "new blob", [0, 159, 146, 150]);
    write(folder, "empty", "");
    write(folder, "ignored", "no\n");
    fs::create_dir(folder.join("e")).expect("a folder");
    fs::rename(folder.join("d/b"), folder.join("e/moved")).expect("a move");
    fs::remove_file(folder.join("d/gone")).expect("it goes");
    make_executable(&folder.join("script"));
    symlink("a", folder.join("inside")).expect("a link");
    symlink("/etc/passwd", folder.join("outside")).expect("a link");
    write(folder, "inner/.git/HEAD", "ref: refs/heads/main\n");
    write(folder, "inner/x/y", "in a broken repository\n");
    let own = folder.join("own");
    fs::create_dir(&own).expect("a folder");
    git(&own, &["init", "-q"]);
    write(&own, "z", "in a repository of its own\n");
}

/// Checks that a folder has what [`change`] does.
fn check_changed(folder: &Path) {
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    assert_eq!(text("a"), "one\n2\nthree\n");
    assert_eq!(text("with space/and \"quote\"\n"), "odd\n");
    assert_eq!(fs::read(folder.join("blob")).expect("it")[0], 255);
    assert_eq!(fs::read(folder.join("new blob")).expect("it"), [0, 159, 146, 150]);
    assert_eq!(text("empty"), "");
    assert_eq!(text("e/moved").len(), 120);
    assert!(!folder.join("d").exists());
    assert_eq!(text("inner/x/y"), "in a broken repository\n");
    assert_eq!(text("own/z"), "in a repository of its own\n");
    assert_eq!(fs::read_link(folder.join("outside")).expect("a link"), Path::new("/etc/passwd"));
    assert_eq!(fs::read_link(folder.join("inside")).expect("a link"), Path::new("a"));
    let staged = git(folder, &["ls-files", "--stage", "script"]);
    assert!(staged.starts_with("100755"), "{staged}");
}

#[tokio::test]
async fn all_kinds_of_changes_come_back_and_nothing_of_the_user_is_touched() {
    for isolation in ["worktree", "copy"] {
        let world = World::new();
        let before = world.of_user();
        let run = run();
        let made = world.make(run, isolation, &world.repository()).await.expect("a folder");
        change(&made.folder);
        let gathered = world.workspaces.gather(run).await.expect("a patch").expect("changes");
        let base = gathered.about.base.clone().expect("a commit");
        assert_eq!(base, git(&world.repository(), &["rev-parse", "HEAD"]));
        let patch = gathered.patch.clone().expect("a patch");
        assert_eq!(gathered.about.kept.as_ref().expect("it is safe").files, 13, "{isolation}");
        let applied = world.applied(&base, &patch);
        check_changed(applied.path());
        let text = fs::read_to_string(&patch).expect("text");
        assert!(text.contains("rename from d/b\nrename to e/moved"), "{text}");
        assert!(!text.contains("ignored"));
        let notes = gathered.about.notes.join("\n");
        assert!(notes.contains("links that lead out of the folder: outside to /etc/passwd"));
        assert!(notes.contains("in the patch without their history: own/"), "{notes}");
        assert!(notes.contains("not in the patch: ignored"), "{notes}");
        // Asked again it is the same.
        assert_eq!(world.workspaces.gather(run).await.expect("again").expect("it"), gathered);
        world.workspaces.discard(run).await.expect("removed");
        assert_eq!(world.of_user(), before, "{isolation}");
        world.check_nothing_left();
    }
}

#[tokio::test]
async fn a_folder_without_changes_has_no_patch() {
    let world = World::new();
    for isolation in ["worktree", "copy"] {
        let run = run();
        world.make(run, isolation, &world.repository()).await.expect("a folder");
        let gathered = world.workspaces.gather(run).await.expect("it").expect("a folder");
        assert_eq!(gathered.patch, None);
        world.workspaces.discard(run).await.expect("removed");
    }
    world.check_nothing_left();
}

#[tokio::test]
async fn commits_and_hidden_changes_of_an_agent_are_in_the_patch() {
    let world = World::new();
    let run = run();
    let made = world.make(run, "worktree", &world.repository()).await.expect("a folder");
    let folder = made.folder;
    write(&folder, "a", "committed\n");
    git(&folder, &["commit", "-q", "-a", "-m", "by the agent"]);
    git(&folder, &["update-index", "--assume-unchanged", "blob"]);
    write(&folder, "blob", "hidden\n");
    // A way to have git look elsewhere.
    fs::write(folder.join(".git"), "gitdir: /nonexistent\n").expect("a file");
    let gathered = world.workspaces.gather(run).await.expect("a patch").expect("changes");
    let base = gathered.about.base.expect("a commit");
    let applied = world.applied(&base, &gathered.patch.expect("a patch"));
    assert_eq!(fs::read_to_string(applied.path().join("a")).expect("a"), "committed\n");
    assert_eq!(fs::read_to_string(applied.path().join("blob")).expect("blob"), "hidden\n");
    world.workspaces.discard(run).await.expect("removed");
    world.check_nothing_left();
}

#[tokio::test]
async fn a_folder_that_became_a_link_is_not_followed() {
    let world = World::new();
    let run = run();
    let made = world.make(run, "worktree", &world.repository()).await.expect("a folder");
    fs::remove_dir_all(&made.folder).expect("it goes");
    symlink(world.repository(), &made.folder).expect("a link");
    world.workspaces.discard(run).await.expect("removed");
    assert!(world.repository().join("a").exists());
    world.check_nothing_left();
}

#[tokio::test]
async fn a_run_that_goes_on_finds_its_changes() {
    let world = World::new();
    let run = run();
    for isolation in ["worktree", "copy"] {
        let made = world.make(run, isolation, &world.repository()).await.expect("a folder");
        write(&made.folder, "a", "one\ntwo\nthree\nfour\n");
        write(&made.folder, "new", "new\n");
        // An attempt that begins anew finds nothing of it.
        let again = world.make(run, isolation, &world.repository()).await.expect("a folder");
        assert!(!again.folder.join("new").exists());
        let again = world.make_again(run, isolation, &world.repository(), true).await;
        assert!(again.expect("a folder").folder.join("new").exists());
        let second = world.workspaces.gather(run).await.expect("a patch").expect("changes");
        assert_eq!(second.about.kept.expect("it is safe").files, 2);
        world.workspaces.discard(run).await.expect("removed");
    }
    world.check_nothing_left();
}

/// A file that is ignored, and that the agent has added by itself, is its work. Others are named.
#[tokio::test]
async fn what_an_agent_adds_although_it_is_ignored_comes_back() {
    for isolation in ["worktree", "copy"] {
        let world = World::new();
        let repository = world.repository();
        write(&repository, ".gitignore", "*.log\nbuild/\n");
        git(&repository, &["add", "-A"]);
        git(
            &repository,
            &["-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "-qm", "i"],
        );
        write(&repository, "kept.log", "as it was\n");
        let run = run();
        let made = world.make(run, isolation, &repository).await.expect("a folder");
        let folder = &made.folder;
        for (name, text) in [
            ("committed.log", "precious\n"),
            ("staged.log", "staged\n"),
            ("build/x.o", "object"),
            ("loose.log", "loose\n"),
        ] {
            write(folder, name, text);
        }
        git(folder, &["add", "-f", "committed.log"]);
        git(folder, &["-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "-qm", "f"]);
        git(folder, &["add", "-f", "staged.log"]);
        let gathered = world.workspaces.gather(run).await.expect("a patch").expect("changes");
        let text = fs::read_to_string(gathered.patch.expect("a patch")).expect("text");
        assert!(text.contains("+precious") && text.contains("+staged"), "{isolation}: {text}");
        assert!(!text.contains("loose"), "{isolation}: {text}");
        let notes = gathered.about.notes.join("\n");
        let named = "ignored, and so not in the patch: build/, loose.log";
        assert!(notes.contains(named), "{isolation}: {notes}");
    }
}

/// A folder without a file that git would take has a copy nevertheless.
#[tokio::test]
async fn an_empty_folder_is_copied_and_what_is_made_in_it_comes_back() {
    let world = World::new();
    let folder = world.path().join("nothing");
    fs::create_dir(&folder).expect("a folder");
    for change in [true, false] {
        let run = run();
        let made = world.make(run, "copy", &folder).await.expect("a folder");
        if change {
            write(&made.folder, "a", "w\n");
        }
        let gathered = world.workspaces.gather(run).await.expect("brought back").expect("it");
        let patch = gathered.patch.map(|patch| fs::read_to_string(patch).expect("text"));
        assert_eq!(patch.is_some_and(|patch| patch.contains("+w")), change);
        world.workspaces.discard(run).await.expect("removed");
    }
}
