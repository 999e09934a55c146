//! Merges by plugins, as the agents of a tree ask for them: at the door, by the command, and over MCP.

use std::fs::{self, Permissions};
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;

use offshoot_test_support::{workspace_plugin, workspace_program};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use serde_json::{Value, json};

use crate::command::{Outcome, Place};
use crate::door_methods::ask;
use crate::mcp::Client;
use crate::plugin::plugin;

/// The plugin whose merge misbehaves, in the folder `plugins` of this place.
fn misbehave(place: &Place) {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let text = format!(
        "name = \"misbehave\"\nversion = \"{}\"\nabi = \"1.0\"\nlicense = \"MIT\"\nmerges = [\"misbehave\"]\n\n\
         [files.{target}]\npath = \"libx.so\"\n",
        env!("CARGO_PKG_VERSION")
    );
    let file = place.file("plugins/misbehave/plugin.toml", text);
    let folder = file.parent().expect("a file is in a folder");
    fs::copy(workspace_plugin("misbehave"), folder.join("libx.so"))
        .expect("the file cannot be copied");
    let above = folder.parent().expect("the path has no folder");
    for path in [file.as_path(), folder, above, &folder.join("libx.so")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("the mode cannot be set");
    }
}

/// The lines of an answer.
fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout().lines().collect()
}

const PLUGINS: &[&str] = &["--plugin-path", "plugins"];

#[test]
fn the_command_inside_an_agent_merges_by_a_plugin() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let script = r#""$OFFSHOOT" spawn x -- echo short >run; "$OFFSHOOT" spawn x -- echo 'much longer' >/dev/null
        "$OFFSHOOT" wait --merge plugin:longest
        "$OFFSHOOT" merge --strategy plugin:longest
        "$OFFSHOOT" merge --strategy plugin:longest --result "$(cat run)"
        "$OFFSHOOT" fanout --task 'a task' --merge plugin:longest -- cat
        "$OFFSHOOT" wait --merge plugin:longest=refuse 2>&1; echo $?
        "$OFFSHOOT" merge --strategy plugin:nothing 2>&1; echo $?
        "$OFFSHOOT" -q merge --strategy plugin:longest --plugin-path plugins 2>/dev/null; echo $?
        "$OFFSHOOT" -q fanout --task x --plugin-path plugins -- cat 2>/dev/null; echo $?"#;
    let merged = place.tree(PLUGINS, script).expect_code(0);
    let [wait, all, one, fanout, refused, wrong, unknown, hint, unusable, path, nested] =
        lines(&merged)[..]
    else {
        panic!("{}", merged.text());
    };
    assert_eq!([wait, all, one, fanout], ["much longer", "much longer", "short", "a task"]);
    assert_eq!((refused, wrong), ("error: merge `longest`: no such parameter", "2"));
    assert_eq!(unknown, "error: there is no merge `nothing` among the plugins here");
    assert!(hint.starts_with("hint: there are longest; looked in "), "{hint}");
    assert_eq!(unusable, "5");
    // No agent says where plugins are.
    assert_eq!([path, nested], ["2", "2"]);
}

#[test]
fn an_early_answer_cancels_the_rest_of_what_is_waited_for() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let script = r#"slow=$("$OFFSHOOT" spawn x -- sleep 1000); "$OFFSHOOT" spawn x -- echo early >/dev/null
        "$OFFSHOOT" wait --merge plugin:longest=early 2>/dev/null
        "$OFFSHOOT" wait --json "$slow""#;
    let merged = place.tree(PLUGINS, script);
    let (early, rest) = merged.stdout().split_once('\n').expect("a line");
    assert_eq!(early, "early");
    let cancelled: Value = serde_json::from_str(rest).expect("JSON");
    assert_eq!(cancelled[0]["status"], "cancelled", "{cancelled}");
}

#[test]
fn parameters_reach_a_merge_and_its_answer_is_a_value() {
    let place = Place::new();
    workspace_program("merge-jq", &place.path().join("plugins"));
    let script = r#"for number in 3 4 5; do "$OFFSHOOT" spawn --label n$number x -- echo $number >/dev/null; done
        "$OFFSHOOT" wait --merge 'plugin:merge-jq=map(.value | tonumber) | add'
        "$OFFSHOOT" merge --strategy 'plugin:merge-jq={"program": "map({(.key): .value}) | add", "seconds": 5}'
        "$OFFSHOOT" merge --json --strategy 'plugin:merge-jq=map(.value | ascii_downcase | length) | add' >merged
        "$OFFSHOOT" context get "$(sed -n 's/.*"name": "\(.*\)".*/\1/p' merged)"; echo
        "$OFFSHOOT" wait --merge 'plugin:merge-jq=map(' 2>/dev/null; echo $?
        "$OFFSHOOT" wait --merge 'plugin:merge-jq=error("no")' 2>&1; echo $?
        "$OFFSHOOT" spawn x -- sh -c 'exit 3' >/dev/null
        "$OFFSHOOT" wait --on-failure include --merge 'plugin:merge-jq=map(.status)' 2>/dev/null"#;
    let merged = place.tree(PLUGINS, script).expect_code(0);
    let [sum, object, value, wrong, said, failed, statuses] = lines(&merged)[..] else {
        panic!("{}", merged.text());
    };
    assert_eq!([sum, object], ["12", r#"{"n3":"3","n4":"4","n5":"5"}"#]);
    assert_eq!((value, wrong, failed), ("3", "2", "1"));
    assert!(said.contains("no"), "{said}");
    assert_eq!(statuses, r#"["completed","completed","completed","failed"]"#);
}

#[test]
fn a_merge_that_cannot_begin_is_the_reason_of_its_tree() {
    let place = Place::new();
    misbehave(&place);
    place.file("in", "a\nb\n");
    let map = ["--split", "lines:1", "--merge", "plugin:misbehave=begin", "in", "--", "cat"];
    let map = place.run(&[&["map"], PLUGINS, &map].concat());
    assert!(map.code != 0 && map.stderr.contains("it panicked"), "{}", map.text());
    let list = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let [root] = &list.as_array().expect("a list")[..] else { panic!("nothing else ran: {list}") };
    assert_eq!(root["status"], "failed", "{root}");
    let show =
        place.run(&["show", root["runId"].as_str().expect("the run has no id")]).expect_code(0);
    assert!(show.stdout().contains("it panicked"), "{}", show.stdout());
}

#[test]
fn a_merge_that_panics_or_blocks_is_an_answer() {
    let place = Place::new();
    misbehave(&place);
    // The patience of the caller is over while the merge has its first result, and the tree ends all the same.
    let script = r#""$OFFSHOOT" spawn x -- echo here >/dev/null
        for place in begin push finish well; do
            "$OFFSHOOT" wait --merge plugin:misbehave=$place 2>&1 | tr '\n' ' '; echo
            "$OFFSHOOT" wait --merge plugin:misbehave=$place >/dev/null 2>&1; echo $?
        done
        "$OFFSHOOT" spawn x -- sleep 1000 >slow
        "$OFFSHOOT" wait --timeout 2 --merge plugin:misbehave=block 2>/dev/null; echo $?
        "$OFFSHOOT" cancel "$(cat slow)"
        "$OFFSHOOT" spawn --wait x -- echo alive"#;
    let merged = place.tree(PLUGINS, script).expect_code(0);
    let [begin, five, push, one, finish, same, well, done, blocked, alive] = lines(&merged)[..]
    else {
        panic!("{}", merged.text());
    };
    for said in [begin, push, finish] {
        assert!(said.contains("merge `misbehave`: it panicked: "), "{said}");
        assert!(said.contains("tests/plugin-misbehave/src/lib.rs:"), "{said}");
    }
    assert_eq!([five, one, same, done], ["5", "1", "1", "0"]);
    assert_eq!([well.trim(), blocked, alive], ["well", "1", "alive"]);
}

/// Returns the answer to an agent that has changed this, in the words of its command.
fn after(place: &Place, more: &[&str], deed: &str) -> String {
    let script = format!(
        r#""$OFFSHOOT" spawn x -- echo short >/dev/null; "$OFFSHOOT" wait >/dev/null
        {deed}
        "$OFFSHOOT" wait --merge plugin:longest 2>&1; echo $?"#
    );
    let refused = place.tree(more, &script).expect_code(0);
    let [message, .., code] = lines(&refused)[..] else { panic!("{}", refused.text()) };
    assert_eq!(code, "5", "{}", refused.text());
    assert!(!refused.stdout().contains("short"), "{}", refused.stdout());
    message.to_owned()
}

#[test]
fn no_agent_brings_a_library_of_its_own() {
    let changed = |deed: &str| {
        let place = Place::new();
        plugin(&place, "plugins", "raw", "raw");
        plugin(&place, "others", "aborts", "aborts");
        let message = after(&place, PLUGINS, deed);
        assert!(message.contains("`raw`"), "{message}");
        assert!(message.ends_with("/plugins/raw has changed since this tree began"), "{message}");
    };
    // By another file in its place, by other bytes in it, by another description, and also once it is loaded.
    changed("cp others/aborts/libx.so new; chmod 755 new; mv new plugins/raw/libx.so");
    changed(
        "cat others/aborts/libx.so >plugins/raw/libx.so.new; cat plugins/raw/libx.so.new >plugins/raw/libx.so",
    );
    changed("echo >>plugins/raw/plugin.toml");
    changed(
        r#""$OFFSHOOT" wait --merge plugin:longest >/dev/null; echo >>plugins/raw/plugin.toml"#,
    );

    // A plugin that was not there, or was hidden behind another one of its name.
    let new = |before: &dyn Fn(&Place), more: &[&str], deed: &str| {
        let place = Place::new();
        plugin(&place, "others", "raw", "raw");
        before(&place);
        let message = after(&place, more, deed);
        assert!(message.ends_with("/raw was not there when this tree began"), "{message}");
    };
    let none = |_: &Place| ();
    new(&none, PLUGINS, "cp -a others plugins");
    let project = |place: &Place| {
        place.file(".offshoot/plugins/README", "");
    };
    new(&project, &[], "cp -a others/raw .offshoot/plugins/raw");
    let home =
        "mkdir -p home/.local/share/offshoot; cp -a others home/.local/share/offshoot/plugins";
    new(&none, &[], home);
    let broken = |place: &Place| {
        place.file("plugins/raw/plugin.toml", "name = \"raw\"\n");
    };
    new(
        &broken,
        PLUGINS,
        "cp others/raw/* plugins/raw; chmod 755 plugins plugins/raw plugins/raw/*",
    );

    // Nor is it the agent whose trust counts.
    let place = Place::new();
    plugin(&place, ".offshoot/plugins", "raw", "raw");
    let message = after(&place, &[], r#""$OFFSHOOT" -q plugin trust raw >/dev/null"#);
    assert!(message.ends_with(".offshoot/plugins/raw is not trusted"), "{message}");
    assert_eq!(place.run(&["plugin", "trust", "raw"]).code, 0);
    let script =
        r#""$OFFSHOOT" spawn x -- echo short >/dev/null; "$OFFSHOOT" wait --merge plugin:longest"#;
    assert_eq!(place.tree(&[], script).expect_code(0).stdout(), "short\n");
}

#[test]
fn settings_reach_a_merge_and_are_held_against_the_schema() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let merged = |settings: &str| {
        place.file("c.toml", format!("[plugins]\npath = [\"plugins\"]\n{settings}\n"));
        let strategy = ["--config", "c.toml", "--strategy", "plugin:longest"];
        place.feed(&[&["merge"], &strategy[..]].concat(), "{\"key\":\"a\",\"value\":\"x\"}\n")
    };
    assert_eq!(merged("").expect_code(0).stdout(), "x\n");
    let refused = merged("[plugins.merges.longest]\nrefuse = true").expect_code(5);
    let said = "refused to give the merge `longest`: it does not like its settings";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    merged("[plugins.options.raw]\nlevel = 3").expect_code(0);
    let refused = merged("[plugins.options.raw]\nlevel = \"high\"").expect_code(5);
    let said = "do not fit its schema: /level: \"high\" is not of type \"integer\"";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
}

/// A library that is judged at one reading and loaded at another could be two different ones.
#[test]
fn a_library_is_read_once_each_time_it_is_judged() {
    let place = Place::new();
    let folder = plugin(&place, "plugins", "raw", "raw");
    let script =
        r#""$OFFSHOOT" spawn x -- echo short >/dev/null; "$OFFSHOOT" wait --merge plugin:longest"#;
    let merged = || place.tree(PLUGINS, script).expect_code(0);
    // The first time it is opened once more, in a process that tries it out.
    assert_eq!(merged().stdout(), "short\n");
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("a watch");
    // With the closing too, because two events that are the same are told as one.
    let told = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
    inotify::add_watch(&watch, folder.join("libx.so"), told).expect("it is missing");
    assert_eq!(merged().stdout(), "short\n");
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let opened = std::iter::from_fn(|| events.next().ok().map(|event| event.events()));
    let opened = opened.filter(|event| event.contains(ReadFlags::OPEN)).count();
    assert_eq!(opened, 2, "when the tree began, and when the merge was asked for");
}

#[test]
fn children_are_merged_by_a_plugin_or_not_asked_for() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let answers = ask(
        &place,
        PLUGINS,
        r#"
sh = lambda script: {"task": "x", "command": ["sh", "-c", script]}
by = lambda strategy, **more: {"merge": {"strategy": strategy, "onFailure": "skip"}, **more}
ask("spawn_many", children=[sh("echo 1")], wait=by("plugin:longest=refuse"))
ask("spawn_many", children=[sh("echo 1")], wait=by("plugin:nothing"))
ask("list")
ask("spawn_many", children=[sh("echo one"), sh("echo three"), sh("exit 3")], wait=by("plugin:longest"))
ask("merge", order={"strategy": "plugin:longest"}, results=[{"key": "a", "value": [1, 2]}, {"key": "b", "value": 3}])
ask("spawn_many", children=[sh("echo early"), sh("sleep 1000")], wait=by("plugin:longest=early"))
ask("spawn_many", children=[sh("echo x"), sh("sleep 1000")], wait=by("plugin:longest", timeoutMs=1))
ask("cancel", run=a[-1]["children"][1]["runId"])
"#,
    );
    let [refused, unknown, list, many, brought, early, late, _] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (&refused["code"], &refused["field"]),
        (&json!("invalid_request"), &json!("merge.strategy"))
    );
    assert_eq!(unknown["code"], "plugin_unusable", "{unknown}");
    assert!(unknown["message"].as_str().is_some_and(|it| it.contains("nothing")), "{unknown}");
    assert_eq!(list["sessions"].as_array().map_or(0, Vec::len), 0, "{list}");
    let merged = &many["waited"]["merged"];
    assert_eq!((&merged["data"], &merged["strategy"]), (&json!("three"), &json!("plugin:longest")));
    assert_eq!(merged["failed"], json!([many["children"][2]["runId"]]));
    assert_eq!(brought["data"], json!([1, 2]));
    // What the answer has no need of is cancelled.
    assert_eq!(early["waited"]["merged"]["data"], "early");
    assert_eq!(early["waited"]["ended"][1]["status"], "cancelled");
    // A plugin is asked for its answer when all results are in, and has no part of one before.
    let late = &late["waited"]["merged"];
    assert!(
        late["error"].as_str().is_some_and(|it| it.contains("of 2 results are missing")),
        "{late}"
    );
    assert_eq!((&late["data"], &late["name"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_plugin_merges_for_a_model() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    place.file("plugins.toml", "[plugins]\npath = [\"plugins\"]\n");
    let mut client = Client::start(&place, &["--config", "plugins.toml", "--", "sh"]);
    let merge = json!({ "strategy": "plugin:longest" });
    let many = |tasks: [&str; 2], strategy: &str| {
        let tasks: Vec<Value> = tasks.iter().map(|task| json!({ "task": task })).collect();
        json!({ "tasks": tasks, "wait": true, "merge": { "strategy": strategy } })
    };
    let merged =
        client.call("sessions_spawn_many", many(["echo one", "echo three"], "plugin:longest"));
    assert_eq!(merged["merged"]["data"], "three", "{merged}");
    assert_eq!(client.call("sessions_wait", json!({ "merge": merge }))["merged"]["data"], "three");
    assert_eq!(client.call("sessions_merge", merge)["data"], "three");
    let early = many(["echo early", "sleep 1000"], "plugin:longest=early");
    let early = client.call("sessions_spawn_many", early);
    assert_eq!(
        (&early["merged"]["data"], &early["status"]),
        (&json!("early"), &json!("ended")),
        "{early}"
    );
    assert_eq!(early["ended"][1]["status"], "cancelled", "{early}");
    let refused = client.call("sessions_merge", json!({ "strategy": "plugin:longest=refuse" }));
    assert_eq!(refused["code"], "invalid_request", "{refused}");
    // Written into the very file that is loaded.
    place.file("plugins/raw/libx.so", "another one");
    let refused = client.call("sessions_merge", json!({ "strategy": "plugin:longest" }));
    assert_eq!(refused["code"], "plugin_unusable", "{refused}");
    assert_eq!(client.leave().0, 0);
}
