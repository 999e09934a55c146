//! The sandboxes of `docs/security.md`, as they are written there, with agents that try to get out.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use offshoot_test_support::{bubblewrap, installed, lacking, skip};

use crate::command::Place;

const PAGE: &str = include_str!("../../../../docs/security.md");

/// The first block of code behind these words, with the paths of this test in place of those of the page.
fn recipe(behind: &str, language: &str, place: &Place) -> String {
    let (_, rest) = PAGE.split_once(behind).expect("the page has the words");
    let (_, block) = rest.split_once(&format!("```{language}\n")).expect("and a block behind");
    let (block, _) = block.split_once("```").expect("which ends");
    let programs = Path::new(env!("CARGO_BIN_EXE_offshoot")).parent().expect("it is in a folder");
    block
        .replace("/home/me/project", &place.path().display().to_string())
        .replace("/home/me/.cargo/bin", &programs.display().to_string())
        .replace("/home/me/.claude", &place.path().join("home").display().to_string())
}

#[test]
fn an_agent_in_bubblewrap_sees_the_door_and_its_own_folder() {
    if bubblewrap("an_agent_in_bubblewrap_sees_the_door_and_its_own_folder").is_none() {
        return;
    }
    let place = Place::new();
    let outside = tempfile::tempdir().expect("no temporary folder can be made");
    fs::write(outside.path().join("secret"), "outside\n").expect("the file cannot be written");
    let script = place.file("sandbox", recipe("**Bubblewrap**", "sh", &place));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700))
        .expect("the mode cannot be set");
    let config = recipe("**Bubblewrap**", "toml", &place);
    let config = config.replace("runtimes.claude", "runtimes.exec");
    place.file(
        "c.toml",
        config.replace("/home/me/.config/offshoot/sandbox", &script.display().to_string()),
    );
    place.file("notes", "inside\n");
    place.file(
        "agent.sh",
        r#"ls .offshoot | paste -sd' '; ls .offshoot/contexts/* | wc -l
           cat .offshoot/offshoot.db "$1" 2>&1 | grep -c 'No such file'
           rm "$OFFSHOOT_SOCKET" 2> /dev/null || echo kept
           ls -d /proc/[0-9]* | wc -l | sed 's/^[0-9]$/few/'
           "$OFFSHOOT" context put notes notes; "$OFFSHOOT" context get notes
           "$OFFSHOOT" context put secret "$1" 2> /dev/null || echo unread
           # A large answer, whose file is not shown to it, comes through the door.
           "$OFFSHOOT" spawn --wait --give notes x -- sh -c 'cat "${OFFSHOOT_CONTEXT%/*}/context/notes"; yes | head -c 300000' | cksum
           "$OFFSHOOT" -q spawn --wait deeper -- sh -c '"$OFFSHOOT" -q spawn x -- true 2> /dev/null; echo $?'"#,
    );
    let secret = outside.path().join("secret").display().to_string();
    let outcome = place.run(
        &[
            &["-q", "run", "--config", "c.toml", "--allow-recursive-spawn", "--max-depth", "1"][..],
            &["--context", "given=notes", "x", "--", "sh", "agent.sh", &secret],
        ]
        .concat(),
    );
    let mut answer = "inside\n".to_owned();
    answer.push_str(&"y\n".repeat(150_000));
    place.file("whole", answer);
    let sum = place.run(&["-q", "run", "x", "--", "sh", "-c", "cksum < whole"]);
    let expected = format!("contexts doors\n1\n2\nkept\nfew\ninside\nunread\n{}3\n", sum.stdout());
    assert_eq!(outcome.expect_code(0).stdout(), expected);
}

#[test]
fn an_agent_in_a_container_has_its_task_and_no_door() {
    let test = "an_agent_in_a_container_has_its_task_and_no_door";
    if installed("podman").is_none() {
        return skip(test, "podman is missing");
    }
    let place = Place::new();
    let root = place.path().join("root");
    for folder in ["usr", "proc", "sys", "dev", "tmp", "etc", "run", "var"] {
        fs::create_dir_all(root.join(folder)).expect("the folder cannot be made");
    }
    for folder in ["bin", "lib", "lib64"] {
        symlink(Path::new("usr").join(folder), root.join(folder)).expect("the link cannot be made");
    }
    let root = root.display().to_string();
    let probe =
        ["run", "--rm", "--network=none", "--volume=/usr:/usr:ro", "--rootfs", &root, "true"];
    let probe = place.outcome(place.command_of("podman", &probe), &[]);
    if probe.code != 0 {
        return lacking(test, &format!("podman can run nothing here: {}", probe.stderr.trim()));
    }
    place.file("c.toml", recipe("**A container without an image**", "toml", &place));
    let script = "cat; echo; echo \"$OFFSHOOT_TASK and ${OFFSHOOT_SOCKET:-no door}\"; ls -A /tmp";
    let words = ["-q", "run", "--config", "c.toml", "task", "--", "sh", "-c", script];
    let outcome = place.run(&words).expect_code(0);
    assert_eq!(outcome.stdout(), "task\ntask and no door\n");
}
