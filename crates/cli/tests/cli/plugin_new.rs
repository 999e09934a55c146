//! `offshoot plugin new`: what it makes builds outside this workspace, passes its own test, and runs in a real tree.

use std::fs;
use std::path::{Path, PathBuf};

use offshoot_fake_model_api::{Condition, Reply, Rule, ToolCall};
use offshoot_real_clients::install;
use offshoot_test_support::{release_build, skip};
use serde_json::{Value, json};

use crate::command::{Place, check};
use crate::stage::Stage;

fn sources() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().expect("the sources are there")
}

#[test]
fn what_is_made_builds_and_runs_in_a_tree() {
    let place = Place::new();
    let made = place.run(&["plugin", "new", "--runtime", "my-agent", "-q"]);
    check("plugin_new", &made);
    let sdk = sources().join("crates/plugin-sdk");
    let sdk = sdk.to_str().expect("a plain name");
    place.run(&["plugin", "new", "--merge", "longest", "--sdk", sdk]).expect_code(0);
    let program = ["plugin", "new", "--language", "rust-process", "--sdk", sdk];
    place.run(&[&program[..], &["--runtime", "its-own"]].concat()).expect_code(0);
    place.run(&[&program[..], &["--merge", "apart"]].concat()).expect_code(0);
    for name in ["my-agent", "longest", "its-own", "apart"] {
        let folder = place.path().join(name);
        release_build(&folder, &["test"], &[]);
        let built = release_build(&folder, &["build", "--features", "conformance"], &[]);
        // Where its plugin.toml says that it is. The files of a program are no links.
        let program = built.join(name);
        if program.is_file() {
            fs::create_dir_all(folder.join("target/release")).expect("the folder cannot be made");
            fs::copy(program, folder.join("target/release").join(name))
                .expect("the file cannot be copied");
        } else {
            let target = built.parent().expect("a profile lies in a target folder");
            std::os::unix::fs::symlink(target, folder.join("target"))
                .expect("the link cannot be made");
        }
    }
    for (runtime, name) in [("my-agent", "longest"), ("its-own", "apart")] {
        let run = ["run", "--plugin-path", runtime, "--runtime", runtime, "hello"];
        assert_eq!(place.run(&run).expect_code(0).stdout(), "hello\n");
        let plugin = format!("plugin:{name}");
        let merge = ["--plugin-path", name, "--merge", &plugin];
        let tasks = ["fanout", "--task", "a", "--task", "bcd", "--", "cat"];
        let merged = place.run(&[&tasks[..1], &merge, &tasks[1..]].concat());
        assert_eq!(merged.expect_code(0).stdout(), "bcd\n");
    }
    // Taken in, with settings, in one tree with a program.
    for name in ["my-agent", "longest", "its-own", "apart"] {
        place.run(&["plugin", "add", name]).expect_code(0);
    }
    place.file(
        "both.toml",
        "[runtimes.my-agent.options]\nprefix = \"it says: \"\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
         [[agents.list]]\nid = \"made\"\nruntime = \"my-agent\"\n",
    );
    let script = "\"$OFFSHOOT\" spawn --agent made --wait hello; echo from a shell";
    let both = place.run(&["run", "--config", "both.toml", "x", "--", "sh", "-c", script]);
    assert_eq!(both.expect_code(0).stdout(), "it says: hello\nfrom a shell\n");
    // What the host's conformance tests ask, asked of what was made.
    for (name, hanging) in
        [("my-agent", "wait"), ("longest", "none"), ("its-own", "wait"), ("apart", "none")]
    {
        let checked =
            place.run(&["plugin", "check", name, "--hanging-task", hanging]).expect_code(0);
        let (said, kept) = (checked.stdout(), checked.stdout().matches("  kept  ").count());
        // What is made asks for no children.
        let skipped = said.lines().filter(|line| line.contains("skipped"));
        assert!(skipped.into_iter().all(|line| line.contains("asks for a child")), "{said}");
        assert!(!said.contains("BROKEN") && kept > 10, "{said}");
    }
    // A slip in the settings is told before a tree is opened.
    let slip = "[runtimes.my-agent.options]\nprefiks = \"x\"\n";
    place.file("slip.toml", slip);
    let slip = place.run(&["run", "--config", "slip.toml", "--runtime", "my-agent", "hello"]);
    assert!(slip.expect_code(5).stderr.contains("unknown field `prefiks`"));
    next_to_claude(&place.path());
    // Built once more, so that its panics would end the tree: told before there is one.
    release_build(&place.path().join("my-agent"), &["rustc", "--", "-C", "panic=abort"], &[]);
    let run = ["run", "--plugin-path", "my-agent", "--runtime", "my-agent", "hello"];
    let refused = place.run(&run).expect_code(5);
    assert!(refused.stderr.contains("libmy_agent.so was built with panic = \"abort\""));
    assert!(refused.stderr.contains("hint: take `panic = \"abort\"` out"));
}

#[test]
fn what_is_made_as_a_program_passes_the_check_as_it_is() {
    let place = Place::new();
    for (name, language, file) in
        [("python-agent", "python", "agent.py"), ("node-agent", "javascript", "agent.mjs")]
    {
        let new = ["plugin", "new", "--runtime", name, "--language", language];
        let made = place.run(&new).expect_code(0);
        assert!(made.stderr.contains(&format!("cd {name} && offshoot plugin check .")));
        // The examples of this repository are what is made.
        let example = sources().join("plugins").join(name);
        for file in [file, "plugin.toml", "README.md"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok();
            assert_eq!(read(&place.path().join(name)), read(&example), "{file}");
        }
    }
    let longest = ["plugin", "new", "--merge", "longest", "--language"];
    place.run(&[&longest[..], &["python"]].concat()).expect_code(0);
    let shortest = ["plugin", "new", "--merge", "shortest", "--language", "javascript"];
    place.run(&shortest).expect_code(0);
    type_checked(&place, &["node-agent", "shortest"]);
    let asks = ["--hanging-task", "wait", "--asking-task", "ask a child"];
    let node = [&["plugin", "check", "node-agent"][..], &asks].concat();
    let in_node = ["plugin", "check", "shortest", "--hanging-task", "none"];
    let has_node = place.command_of("node", &["--version"]).output().is_ok();
    if !has_node {
        skip("what_is_made_as_a_program_passes_the_check_as_it_is", "there is no node");
    }
    let hangs = [&["plugin", "check", "python-agent"][..], &asks].concat();
    let merge = ["plugin", "check", "longest", "--hanging-task", "none"];
    let of_node = [&node[..], &in_node].into_iter().filter(|_| has_node);
    for check in [&hangs[..], &merge].into_iter().chain(of_node) {
        let checked = place.run(check).expect_code(0);
        let (said, kept) = (checked.stdout(), checked.stdout().matches("  kept  ").count());
        assert!(!said.contains("BROKEN") && kept > 10, "{said}");
    }
    let tasks = ["fanout", "--task", "a", "--task", "bcd", "--", "cat"];
    for name in ["longest", "shortest"].into_iter().take(if has_node { 2 } else { 1 }) {
        for merge in [format!("plugin:{name}"), format!("plugin:{name}={{\"enough\":3}}")] {
            let merge = ["--plugin-path", name, "--merge", &merge];
            let merged = place.run(&[&tasks[..1], &merge, &tasks[1..]].concat());
            assert_eq!(merged.expect_code(0).stdout(), "bcd\n", "{merge:?}");
        }
    }
}

#[test]
fn what_is_made_in_typescript_compiles_passes_the_check_and_runs_in_a_tree() {
    let test = "what_is_made_in_typescript_compiles_passes_the_check_and_runs_in_a_tree";
    let place = Place::new();
    let new = ["plugin", "new", "--language", "typescript"];
    place.run(&[&new[..], &["--runtime", "typescript-agent"]].concat()).expect_code(0);
    place.run(&[&new[..], &["--merge", "longest"]].concat()).expect_code(0);
    let example = sources().join("plugins/typescript-agent");
    for file in ["plugin.toml", "README.md", "start.mjs", "tsconfig.json", "src/agent.mts"] {
        let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok();
        assert_eq!(read(&place.path().join("typescript-agent")), read(&example), "{file}");
    }
    let Some(clients) = install(test) else { return };
    let strips = ["-p", "Boolean(process.features.typescript)"];
    let strips = place.command_of("node", &strips).output().expect("node has just installed them");
    // As it is where node takes the types out, and in any case after a build.
    if strips.stdout.trim_ascii() == b"true" {
        in_typescript(&place);
    } else {
        let told = place.run(&["plugin", "check", "longest"]);
        assert!(told.stderr.contains("make src/agent.mjs with tsc"), "{}", told.stderr);
    }
    let compiler = clients.typescript();
    let compiler = compiler.to_str().expect("a plain name");
    let roots = clients.folder().join("node_modules/@types");
    let roots = roots.to_str().expect("a plain name");
    for name in ["typescript-agent", "longest"] {
        let built = place.command_of(compiler, &["-p", name, "--typeRoots", roots]).output();
        let built = built.expect("the compiler can be started");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
    }
    in_typescript(&place);
}

/// Checks both plugins, and runs two pieces with a child each, one of whose answers the merge takes.
fn in_typescript(place: &Place) {
    for (name, hangs) in [("typescript-agent", "wait"), ("longest", "none")] {
        let check = ["plugin", "check", name, "--hanging-task", hangs, "--asking-task", "ask x"];
        let checked = place.run(&check).expect_code(0);
        let (said, kept) = (checked.stdout(), checked.stdout().matches("  kept  ").count());
        assert!(!said.contains("BROKEN") && kept > 10, "{said}");
    }
    place.file(
        "t.toml",
        "[plugins]\npath = [\"typescript-agent\", \"longest\"]\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n\
         [[agents.list]]\nid = \"main\"\nruntime = \"typescript-agent\"\n",
    );
    let fanout = ["fanout", "--config", "t.toml", "--merge", "plugin:longest"];
    let tasks = ["--task", "ask of a child", "--task", "hi"];
    let merged = place.run(&[&fanout[..], &tasks].concat()).expect_code(0);
    assert_eq!(merged.stdout(), "OF A CHILD\n");
}

/// Checks the types that stand in the comments of these plugins, with the compiler of TypeScript.
fn type_checked(place: &Place, names: &[&str]) {
    let Some(clients) = install("what_is_made_as_a_program_passes_the_check_as_it_is") else {
        return;
    };
    let compiler = clients.typescript();
    let compiler = compiler.to_str().expect("a plain name");
    let roots = clients.folder().join("node_modules/@types");
    let roots = roots.to_str().expect("a plain name");
    let files: Vec<String> = names.iter().map(|name| format!("{name}/agent.mjs")).collect();
    let options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--module", "nodenext"];
    let options = [&options[..], &["--target", "es2022", "--types", "node", "--typeRoots", roots]];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let checked = place.command_of(compiler, &[&options.concat()[..], &files].concat()).output();
    let checked = checked.expect("the compiler can be started");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// One tree of Claude Code, programs and what was made: two of the one have each a child of both others, and the plugin
/// merges what they say.
fn next_to_claude(made: &Path) {
    let Some(clients) = install("what_is_made_builds_and_runs_in_a_tree") else { return };
    let at = |task: &str, step, reply| {
        Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
    };
    let spawn = |agent: &str| ToolCall {
        name: "mcp__offshoot__sessions_spawn".to_owned(),
        input: json!({"task": format!("for {agent}"), "agentId": agent, "wait": true}),
    };
    let both = || Reply::Calls(vec![spawn("made"), spawn("shell")]);
    let rules = [
        at("brief", 1, both()),
        at("brief", 2, Reply::text("{{results:/outcome/data}}")),
        at("wordy", 1, both()),
        at("wordy", 2, Reply::text("they say [{{results:/outcome/data}}]")),
    ];
    let stage = Stage::new(clients, rules);
    for name in ["my-agent", "longest"] {
        let folder = made.join(name);
        let folder = folder.to_str().expect("a plain name");
        stage.place.run(&["plugin", "add", folder]).expect_code(0);
    }
    stage.place.file(
        "c.toml",
        "[runtimes.my-agent.options]\nprefix = \"made: \"\n\
         [runtimes.exec]\ncost = \"none\"\n\
         [agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n\
         [[agents.list]]\nid = \"lead\"\nruntime = \"claude\"\n\
         [[agents.list]]\nid = \"made\"\nruntime = \"my-agent\"\n\
         [[agents.list]]\nid = \"shell\"\nruntime = \"exec\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n",
    );
    let fanout = ["fanout", "-q", "--config", "c.toml", "--agent", "lead", "--task", "brief"];
    let merge = ["--task", "wordy", "--merge", "plugin:longest"];
    let merged = stage.run(&[&fanout[..], &merge].concat());
    // The two children of a piece run at once, and Claude lists what they say as they end.
    let merged = merged.expect_code(0);
    let said = merged.stdout();
    let orders = ["they say [made: for made FOR SHELL]\n", "they say [FOR SHELL made: for made]\n"];
    assert!(orders.contains(&said), "{said}");
    assert_eq!(stage.agents(), 0);
    // What the record knows of it: the pieces, the children of each, and nothing that breaks a rule.
    let tree = stage.place.run(&["tree", "--json"]).json();
    let below = |node: &Value| -> Vec<(String, String)> {
        let children = node["children"].as_array().expect("a list").iter();
        let mut below: Vec<_> = children
            .map(|child| (child["agent"].to_string(), child["status"].to_string()))
            .collect();
        below.sort();
        below
    };
    let completed = |agents: [&str; 2]| {
        agents.map(|agent| (format!("{agent:?}"), "\"completed\"".to_owned())).to_vec()
    };
    assert_eq!(below(&tree[0]), completed(["lead", "lead"]), "{tree}");
    for piece in tree[0]["children"].as_array().expect("a list") {
        assert_eq!(below(piece), completed(["made", "shell"]), "{tree}");
    }
    let root = tree[0]["runId"].as_str().expect("a run has an id");
    stage.place.run(&["audit", root]).expect_code(0);
}

#[test]
fn the_first_plugin_of_the_page_runs_as_it_stands_there() {
    let page =
        fs::read_to_string(sources().join("docs/plugins.md")).expect("the file cannot be read");
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("it is on the page");
        rest.split_once("```").expect("a block has an end").0
    };
    let place = Place::new();
    place.file("shout/plugin.toml", block("toml"));
    place.file("shout/shout.py", block("python"));
    let program = env!("CARGO_BIN_EXE_offshoot");
    let script = format!("offshoot() {{ '{program}' \"$@\"; }}\ncd shout\n{}", block("sh"));
    let ran = place.command_of("sh", &["-e", "-c", &script]).output().expect("there is a shell");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!said.contains("BROKEN") && said.contains("\nHELLO\n"), "{said}");
    // It was added: from now on it needs no path.
    assert_eq!(place.run(&["run", "--runtime", "shout", "hi"]).expect_code(0).stdout(), "HI\n");
}

#[test]
fn what_cannot_be_made_is_told() {
    let place = Place::new();
    check("plugin_new_no_sdk", &place.run(&["plugin", "new", "--merge", "x", "--sdk", "nowhere"]));
    check("plugin_new_bad_name", &place.run(&["plugin", "new", "--runtime", "Not a name"]));
    place.file("taken/file", "");
    check("plugin_new_taken", &place.run(&["plugin", "new", "--runtime", "taken"]));
    check("plugin_new_nothing", &place.run(&["plugin", "new"]));
}
