//! Commands of git that are killed, each in its turn, early and late.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use offshoot_test_support::soak;

use crate::world::{World, environment, make_executable, run, write};

/// A program in place of git: the command with the number in the file `at` is killed after so many milliseconds.
const KILLED: &str = r#"#!/bin/sh
here=$(dirname "$0")
n=$(($(cat "$here/count") + 1))
echo "$n" > "$here/count"
if [ "$n" = "$(cat "$here/at")" ]; then
    REAL "$@" <&0 &
    after=$(cat "$here/after")
    [ "$after" = 0 ] || sleep "0.00$after"
    kill -KILL $! 2>/dev/null
    kill -KILL $$
fi
exec REAL "$@"
"#;

/// So many moments are tried where no number is given.
const FEW: u64 = 40;

#[tokio::test]
async fn no_killed_command_of_git_loses_a_change() {
    let real = std::env::split_paths(&std::env::var_os("PATH").expect("a path"))
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .expect("git");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("git");
    let text = KILLED.replace("REAL", &String::from_utf8_lossy(real.as_os_str().as_bytes()));
    write(folder.path(), "git", text);
    make_executable(&program);
    let set = |name: &str, number: u32| write(folder.path(), name, format!("{number}\n"));
    let mut environment = environment();
    for (name, value) in &mut environment {
        if name == "PATH" {
            let mut path = folder.path().as_os_str().to_owned();
            path.push(":");
            path.push(&value);
            *value = path;
        }
    }
    let clean = World::new();
    let world = World::empty(environment);
    fs::rename(clean.repository(), world.repository()).expect("a move");
    let wanted: u64 = soak::asked("OFFSHOOT_TEST_KILLS", FEW);
    let (mut points, mut round) = (0, 0);
    while points < wanted {
        for isolation in ["worktree", "copy"] {
            for at in 1.. {
                set("count", 0);
                set("at", at);
                set("after", round * 3 % 10);
                check(&world, isolation).await;
                let count = fs::read_to_string(folder.path().join("count")).expect("a number");
                if count.trim().parse::<u32>().expect("a number") < at {
                    break;
                }
                points += 1;
            }
        }
        round += 1;
    }
    let what = "a command of git is killed while a folder of a run is made, or brought back";
    soak::write_down(what, points, points);
}

/// Works in a folder, and takes what comes back: at once, or by what is left on disk.
async fn check(world: &World, isolation: &str) {
    let run = run();
    let made = loop {
        match world.make(run, isolation, &world.repository()).await {
            Ok(made) => break made,
            // A user would ask again.
            Err(_) => assert!(!world.repository().join(".git/worktrees").exists()),
        }
    };
    write(&made.folder, "new", "new\n");
    write(&made.folder, "a", "changed\n");
    let gathered = loop {
        if let Ok(gathered) = world.workspaces.gather(run).await {
            break gathered.expect("changes");
        }
        let left = world.workspaces.left().await.expect("a list");
        assert_eq!(left.len(), 1);
        assert!(made.folder.join("new").exists());
    };
    let kept = gathered.about.kept.expect("it is safe");
    assert_eq!(kept.files, 2);
    check_patch(&gathered.patch.expect("a patch"));
    world.workspaces.discard(run).await.expect("removed");
    world.check_nothing_left();
}

fn check_patch(patch: &Path) {
    let text = fs::read_to_string(patch).expect("a patch");
    assert!(text.contains("+changed\n") && text.contains("+new\n"), "{text}");
}
