//! `offshoot plugin`, and plugins at work: found, judged, tried, loaded, merged by, or told why not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use offshoot_test_support::{named_pipe, plugin_library};

use crate::command::{Outcome, Place, Table, check};
use crate::plugin_program::python;

/// A plugin in a folder of this place, whose library is one of the awkward ones.
pub(crate) fn plugin(place: &Place, folder: &str, name: &str, library: &str) -> PathBuf {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let text = format!(
        "name = \"{name}\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nlicense = \"MIT\"\nruntimes = [\"upper\"]\n\
         merges = [\"longest\"]\n\n[files.{target}]\npath = \"libx.so\"\n"
    );
    let file = place.file(&format!("{folder}/{name}/plugin.toml"), text);
    let folder = file.parent().expect("a file is in a folder").to_owned();
    fs::copy(plugin_library(library), folder.join("libx.so")).expect("the file cannot be copied");
    for path in [
        file.as_path(),
        &folder,
        folder.parent().expect("the path has no folder"),
        &folder.join("libx.so"),
    ] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("the mode cannot be set");
    }
    folder
}

/// Removes the parts that differ from one machine or build to another.
fn plain(outcome: Outcome) -> Outcome {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    outcome.calling(&target, "TARGET")
}

#[test]
fn what_a_plugin_says_of_itself_moves_no_cursor() {
    let place = Place::new();
    let folder = plugin(&place, "plugins", "alien-allocator", "alien-allocator");
    let inspect = ["plugin", "inspect", folder.to_str().expect("a plain name")];
    let said = place.run(&inspect).expect_code(0).stdout().to_owned();
    assert!(said.contains("\npicks␛[2J and   merge chooses\n"), "{said}");
    fs::write(folder.join("plugin.toml"), "name = \"a\u{7f}b\"\n")
        .expect("the file cannot be written");
    let told = place.run(&inspect);
    assert!(!told.text().contains('\u{7f}'), "{}", told.text());
}

#[test]
fn a_runtime_and_a_merge_of_a_plugin_run_in_a_tree() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let run = place.run(&["run", "--plugin-path", "plugins", "--runtime", "upper", "hello"]);
    assert_eq!(run.expect_code(0).stdout(), "HELLO\n");
    let run = ["run", "--plugin-path", "plugins", "--runtime", "upper", "--json", "x"];
    assert_eq!(place.run(&run).expect_code(0).json()["data"], "X");
    let fanout = |merge: &str| {
        let tasks = ["--task", "one", "--task", "three", "--merge", merge];
        let how = ["fanout", "--plugin-path", "plugins", "--runtime", "upper"];
        place.run(&[&how[..], &tasks].concat())
    };
    assert_eq!(fanout("concatenate").expect_code(0).stdout(), "ONE\n---\nTHREE\n");
    assert_eq!(fanout("plugin:longest").expect_code(0).stdout(), "THREE\n");
    let early = fanout("plugin:longest=early").expect_code(0);
    assert!(["ONE\n", "THREE\n"].contains(&early.stdout()), "{}", early.stdout());
    check("plugin_refuses_parameters", &fanout("plugin:longest=refuse"));
    // In one tree with programs: a shell that asks for an agent of the plugin.
    place.file(
        "both.toml",
        "[plugins]\npath = [\"plugins\"]\n[agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
         [[agents.list]]\nid = \"loud\"\nruntime = \"upper\"\n",
    );
    let script = "\"$OFFSHOOT\" spawn --agent loud --wait 'from the plugin'; echo from a shell";
    let both = place.run(&["run", "--config", "both.toml", "x", "--", "sh", "-c", script]);
    assert_eq!(both.expect_code(0).stdout(), "FROM THE PLUGIN\nfrom a shell\n");
}

#[test]
fn the_agent_of_a_task_says_what_runs_it_before_the_command_line_does() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    place.file(
        "agents.toml",
        "[plugins]\npath = [\"plugins\"]\n[[agents.list]]\nid = \"loud\"\nruntime = \"upper\"\n\
         [[agents.list]]\nid = \"program\"\ncommand = [\"tr\", \"a-z\", \"b-za\"]\n\
         [[agents.list]]\nid = \"open\"\ndescription = \"says nothing of how\"\n",
    );
    place.file(
        "tasks",
        "{\"task\":\"one\"}\n{\"task\":\"two\",\"agent\":\"loud\"}\n\
         {\"task\":\"abc\",\"agent\":\"program\"}\n{\"task\":\"four\",\"agent\":\"open\"}\n",
    );
    let fanout = |how: &[&str]| {
        let words = ["-q", "fanout", "--config", "agents.toml", "--tasks", "tasks"];
        let fanout = place.run(&[&words, how].concat()).expect_code(0);
        fanout.stdout().to_owned()
    };
    assert_eq!(fanout(&["--", "rev"]), "eno\n---\nTWO\n---\nbcd\n---\nruof\n");
    assert_eq!(fanout(&["--runtime", "upper"]), "ONE\n---\nTWO\n---\nbcd\n---\nFOUR\n");
    // The agent of the command line is what it says there.
    let loud = ["--agent", "loud", "--", "rev"];
    assert_eq!(fanout(&loud), "eno\n---\nowt\n---\nbcd\n---\nruof\n");
}

#[test]
fn runtimes_of_plugins_are_those_that_a_tree_began_with() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    place.file(
        "agents.toml",
        "[plugins]\npath = [\"plugins\", \"more\"]\n[agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
         [[agents.list]]\nid = \"loud\"\nruntime = \"upper\"\n\
         [[agents.list]]\nid = \"late\"\nruntime = \"lower\"\n",
    );
    let late = plugin(&place, "others", "late", "raw");
    let package = fs::read_to_string(late.join("plugin.toml")).expect("the file cannot be read");
    place.file("others/late/plugin.toml", package.replace("upper", "lower"));
    let script = r#"cp -a others more; echo nothing >plugins/raw/libx.so
        "$OFFSHOOT" spawn --agent loud --wait 'still here'
        "$OFFSHOOT" spawn --agent late --wait x 2>&1"#;
    let tree = place.tree(&["--config", "agents.toml"], script);
    let said: Vec<&str> = tree.stdout().lines().collect();
    assert_eq!(
        said[..2],
        ["STILL HERE", "error: there is no runtime `lower` here"],
        "{}",
        tree.text()
    );
}

#[test]
fn a_plugin_merges_lines_too() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let lines = "{\"key\":\"a\",\"value\":\"short\"}\n{\"key\":\"b\",\"value\":\"much longer\"}\n";
    let merged =
        place.feed(&["merge", "--plugin-path", "plugins", "--strategy", "plugin:longest"], lines);
    assert_eq!(merged.expect_code(0).stdout(), "much longer\n");
}

#[test]
fn a_runtime_that_hangs_can_be_stopped() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let run = place.run(&[
        "run",
        "--plugin-path",
        "plugins",
        "--runtime",
        "upper",
        "--timeout",
        "1",
        "hang",
    ]);
    assert!(run.expect_code(1).stderr.contains("time"));
}

#[test]
fn the_first_of_a_name_is_used_and_no_other_is_opened() {
    let place = Place::new();
    plugin(&place, "good", "raw", "raw");
    plugin(&place, "bad", "raw", "aborts");
    let run = |first: &str, second: &str| {
        let paths = ["run", "--plugin-path", first, "--plugin-path", second];
        place.run(&[&paths[..], &["--runtime", "upper", "hello"]].concat())
    };
    assert_eq!(run("good", "bad").expect_code(0).stdout(), "HELLO\n");
    // One that cannot be used is told, and nothing else takes its place unseen.
    let refused = run("bad", "good").expect_code(5);
    assert!(refused.stderr.contains("bad/raw/libx.so"), "{}", refused.stderr);
}

#[test]
fn what_there_is_can_be_listed_and_looked_into() {
    let place = Place::new();
    check("plugin_list_empty", &plain(place.run(&["plugin", "list"])));
    plugin(&place, "one", "raw", "raw");
    plugin(&place, "two", "raw", "raw");
    let broken = plugin(&place, "two", "broken", "raw");
    fs::write(broken.join("plugin.toml"), "name = \"broken\"\nversoin = \"1\"\n")
        .expect("the file cannot be written");
    let paths = ["--plugin-path", "one", "--plugin-path", "two"];
    check("plugin_list", &plain(place.run(&[&["plugin", "list"], &paths[..]].concat())));
    let json =
        place.run(&[&["plugin", "list", "--json"], &paths[..]].concat()).expect_code(0).json();
    let states: Vec<_> =
        json.as_array().expect("a list").iter().map(|found| &found["state"]).collect();
    assert_eq!(states, ["usable", "unusable", "shadowed"]);
    check("plugin_inspect", &place.run(&["plugin", "inspect", "raw", "--plugin-path", "one"]));
    let file = place.run(&["plugin", "inspect", "one/raw/libx.so", "--json"]).expect_code(0).json();
    assert_eq!((&file["name"], &file["abi"]), (&"raw".into(), &"1.0".into()));
    check("plugin_inspect_broken", &place.run(&["plugin", "inspect", "two/broken"]));
    check(
        "plugin_inspect_unknown",
        &place.run(&["plugin", "inspect", "nothing", "--plugin-path", "one"]),
    );
}

/// Every way in which a plugin cannot be used: message with file, versions and what to do, exit 5, and no tree.
#[test]
fn what_cannot_be_used_is_told_and_no_tree_dies_of_it() {
    let mut table = Table::default();
    let place = Place::new();
    let run = |name: &str| {
        let folder = format!("plugins-{name}");
        place.run(&["run", "--plugin-path", &folder, "--runtime", "upper", "hello"])
    };
    for name in ["other-layout", "other-major", "no-plugin", "panic-aborts", "aborts"] {
        plugin(&place, &format!("plugins-{name}"), name, name);
        table.row(&run(name));
    }
    let file = |name: &str| plugin(&place, &format!("plugins-{name}"), name, "raw").join("libx.so");
    let text = file("text");
    fs::write(&text, "no library at all\n").expect("the file cannot be written");
    table.row(&run("text"));
    fs::remove_file(file("missing")).expect("the file cannot be removed");
    table.row(&run("missing"));
    let machine = file("machine");
    let mut bytes = fs::read(&machine).expect("the file cannot be read");
    // An s390x, on which these tests do not run.
    bytes[18] = 22;
    fs::write(&machine, &bytes).expect("the file cannot be written");
    table.row(&run("machine").calling(std::env::consts::ARCH, "OURS"));
    chmod(&file("writable"), 0o757);
    table.row(&run("writable"));
    let owner = file("owner");
    if std::os::unix::fs::chown(&owner, Some(12_345), None).is_ok() {
        check("plugin_owner", &run("owner"));
    }
    let name = file("name");
    let folder = name.parent().expect("the path has no folder");
    fs::rename(folder, folder.with_file_name("other")).expect("the file cannot be renamed");
    table.row(&run("name"));
    let disagrees = plugin(&place, "plugins-disagrees", "disagrees", "raw");
    assert!(disagrees.exists());
    table.row(&run("disagrees"));
    table.row(&place.run(&["run", "--runtime", "upper", "hello"]));
    let merge = ["fanout", "--merge", "plugin:nothing", "--task", "a", "--", "cat"];
    assert_eq!(place.run(&merge).code, 5);
    assert!(!place.path().join(".offshoot").exists(), "nothing was opened");
    table.check("plugin_wrong");
}

#[test]
fn a_project_is_asked_for_trust() {
    let place = Place::new();
    let folder = plugin(&place, ".offshoot/plugins", "raw", "raw");
    let run = || place.run(&["run", "--runtime", "upper", "-q", "hello"]);
    check("plugin_not_trusted", &run());
    check("plugin_trust", &place.run(&["plugin", "trust", "raw", "-q"]));
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
    // One byte more at the end is another library.
    let library = folder.join("libx.so");
    let mut bytes = fs::read(&library).expect("the file cannot be read");
    bytes.push(0);
    replace(&library, &bytes);
    check("plugin_changed", &run());
    place.run(&["plugin", "trust", "raw", "-q"]).expect_code(0);
    run().expect_code(0);
    place.run(&["plugin", "trust", "raw", "-q", "--remove"]).expect_code(0);
    run().expect_code(5);
    // To trust the whole project is to trust its plugins.
    place.run(&["trust", "-q"]).expect_code(0);
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
}

#[test]
fn what_a_trusted_project_only_points_to_has_to_be_trusted_itself() {
    let place = Place::new();
    let folder = plugin(&place, "tools", "raw", "raw");
    place.file(".offshoot/config.toml", "[plugins]\npath = [\"tools\"]\n");
    place.run(&["trust", "-q"]).expect_code(0);
    let run = || place.run(&["run", "--runtime", "upper", "-q", "hello"]);
    let refused = run().expect_code(5);
    assert!(refused.stderr.contains("tools/raw is not trusted"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`offshoot plugin trust raw`"), "{}", refused.stderr);
    place.run(&["plugin", "trust", "raw", "-q"]).expect_code(0);
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
    let library = folder.join("libx.so");
    let mut bytes = fs::read(&library).expect("the file cannot be read");
    bytes.push(0);
    replace(&library, &bytes);
    assert!(run().expect_code(5).stderr.contains("has changed since it was trusted"));
    // Nor does it help to trust the project, whose own files are as they were.
    place.run(&["trust", "-q"]).expect_code(0);
    run().expect_code(5);
}

#[test]
fn a_plugin_takes_the_place_of_another_only_when_it_is_in_order() {
    let place = Place::new();
    let folder = plugin(&place, "made", "raw", "raw");
    place.run(&["plugin", "add", "made/raw"]).expect_code(0);
    let home = place.path().join("home/.local/share/offshoot/plugins");
    let was = fs::read(home.join("raw/libx.so")).expect("it was copied");
    let mut new = was.clone();
    new.push(0);
    replace(&folder.join("libx.so"), &new);
    // Nothing can be trusted of a folder that others can write.
    chmod(&home, 0o777);
    let refused = place.run(&["plugin", "add", "made/raw", "--replace"]).expect_code(5);
    assert!(refused.stderr.contains("can be written by others"), "{}", refused.stderr);
    let found = |name: &str| fs::read(home.join(name)).expect("the file cannot be read");
    assert!(found("raw/libx.so") == was, "the old one is still there");
    chmod(&home, 0o755);
    place.run(&["plugin", "add", "made/raw", "--replace"]).expect_code(0);
    assert!(found("raw/libx.so") == new);
    let left: Vec<_> = fs::read_dir(&home).expect("the folder cannot be read").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        place.run(&["run", "--runtime", "upper", "hello"]).expect_code(0).stdout(),
        "HELLO\n"
    );
}

#[test]
fn a_plugin_is_taken_in_and_removed() {
    let place = Place::new();
    let folder = plugin(&place, "made", "raw", "raw");
    check("plugin_add", &place.run(&["plugin", "add", "made/raw"]));
    check("plugin_add_again", &place.run(&["plugin", "add", "made/raw"]));
    place.run(&["plugin", "add", "made/raw", "--replace"]).expect_code(0);
    fs::remove_dir_all(folder).expect("the folder cannot be removed");
    let run = || place.run(&["run", "--runtime", "upper", "hello"]);
    assert_eq!(run().expect_code(0).stdout(), "HELLO\n");
    let library = place.path().join("home/.local/share/offshoot/plugins/raw/libx.so");
    let mut bytes = fs::read(&library).expect("it was copied");
    bytes.push(0);
    replace(&library, &bytes);
    assert!(run().expect_code(5).stderr.contains("is not what its plugin.toml says"));
    check("plugin_remove", &place.run(&["plugin", "remove", "raw"]));
    check("plugin_remove_again", &place.run(&["plugin", "remove", "raw"]));
    run().expect_code(5);
}

#[test]
fn a_library_is_tried_out_once() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let run =
        || place.run(&["run", "-v", "--plugin-path", "plugins", "--runtime", "upper", "hello"]);
    assert!(run().expect_code(0).stderr.contains("trying out"));
    assert!(!run().expect_code(0).stderr.contains("trying out"));
}

#[test]
fn the_contract_is_checked_across_the_interface() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let checked = place.run(&[
        "plugin",
        "check",
        "raw",
        "--plugin-path",
        "plugins",
        "--hanging-task",
        "hang",
    ]);
    check("plugin_check", &checked);
    plugin(&place, "plugins", "aborts", "aborts");
    let checked = place.run(&["plugin", "check", "aborts", "--plugin-path", "plugins"]);
    assert!(checked.expect_code(5).stderr.contains("SIGABRT"));
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode cannot be set");
}

/// By rename, as everything that may be mapped.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).expect("the file cannot be written");
    chmod(&new, 0o755);
    fs::rename(&new, path).expect("the file cannot be renamed");
}

#[test]
fn copies_of_a_killed_supervisor_are_removed_by_the_next() {
    let place = Place::new();
    let folder = python(&place, "plugins");
    // It says over a pipe that its run has begun, and waits.
    let script = fs::read_to_string(folder.join("agent.py")).expect("the file cannot be read");
    let telling = "    if verb == \"wait\":\n        open(rest, \"w\").write(\"up\")\n";
    let script = script.replace("    if verb == \"wait\":\n", telling);
    fs::write(folder.join("agent.py"), script).expect("the file cannot be written");
    let fifo = place.path().join("fifo");
    named_pipe(&fifo);
    let temporary = place.path().join("tmp");
    fs::create_dir(&temporary).expect("the folder cannot be made");
    let copies = || fs::read_dir(&temporary).expect("the folder cannot be read").count();
    let run = |task: &str| {
        let words = ["run", "--plugin-path", "plugins", "--runtime", "python-agent", task];
        let mut command = place.command(&words);
        command.env("TMPDIR", &temporary);
        command
    };
    let mut child =
        run(&format!("wait {}", fifo.display())).spawn().expect("the program cannot be started");
    assert_eq!(fs::read_to_string(&fifo).expect("the agent writes"), "up");
    assert_eq!(copies(), 1);
    child.kill().expect("the process cannot be killed");
    child.wait().expect("the child cannot be waited for");
    assert_eq!(copies(), 1, "a process that is killed removes nothing");
    let next = place.outcome(run("hello"), &[]);
    assert_eq!(next.expect_code(0).stdout(), "HELLO\n");
    assert_eq!(copies(), 0);
}
