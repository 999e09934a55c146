//! `offshoot trust`: what comes with a checkout takes effect only when the user says so.

use std::fs;

use offshoot_test_support::named_pipe;

use crate::command::{Place, Table, check};

const CONFIG: &str = "[agents.defaults.subagents]\nmaxDepth = 5\n";

fn max_depth(place: &Place) -> serde_json::Value {
    let resolved = place.run(&["config", "resolve", "--json"]).expect_code(0).json();
    resolved["maxDepth"]["value"].clone()
}

#[test]
fn a_projects_file_counts_once_it_is_trusted() {
    let place = Place::new();
    place.file(".offshoot/config.toml", CONFIG);
    place.file(".offshoot/agents/scout.md", "---\nname: scout\n---\n");
    assert_eq!(max_depth(&place), 3);
    check("trust_ignored", &place.run(&["config", "resolve"]).messages());
    check("trust", &place.run(&["trust"]));
    assert_eq!(max_depth(&place), 5);
    check("trust_list", &place.run(&["trust", "--list"]));

    place.file(".offshoot/agents/other.md", "---\nname: other\n---\n");
    assert_eq!(max_depth(&place), 3, "a new file is as good as a changed one");
    check("trust_changed", &place.run(&["config", "resolve"]).messages());
    check("trust_list_changed", &place.run(&["trust", "--list"]));
    place.run(&["trust", "--json"]).expect_code(0);
    assert_eq!(max_depth(&place), 5);

    check("trust_remove", &place.run(&["trust", "--remove"]));
    assert_eq!(max_depth(&place), 3);
    check("trust_remove_again", &place.run(&["trust", "--remove"]));
}

#[test]
fn definitions_in_markdown_are_agents_once_they_are_trusted() {
    let place = Place::new();
    place.file(
        ".claude/agents/scout.md",
        "---\nname: scout\ndescription: looks\nmax_depth: 2\n---\nLook.\n",
    );
    place.file(".claude/agents/note.txt", "no definition");
    let resolve = || place.run(&["config", "resolve", "--agent", "scout", "--json"]);
    let unknown = resolve().expect_code(2);
    assert!(unknown.stderr.contains("there is no agent `scout`"), "{}", unknown.stderr);
    place.run(&["trust"]).expect_code(0);
    assert_eq!(resolve().expect_code(0).json()["maxDepth"]["value"], 2);
}

#[test]
fn what_is_not_trusted_is_not_even_read() {
    let place = Place::new();
    place.file(".offshoot/config.toml", b"\xff = [");
    place.run(&["config", "resolve"]).expect_code(0);
    place.run(&["trust"]).expect_code(0);
    place.run(&["config", "resolve"]).expect_code(2);
}

#[test]
fn the_nearest_project_upwards_is_meant() {
    let place = Place::new();
    place.file(".offshoot/config.toml", CONFIG);
    place.file("a/b/c/file", "");
    let below = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.current_dir(place.path().join("a/b/c"));
        place.outcome(command, &[]).expect_code(0)
    };
    below(&["trust"]);
    assert_eq!(below(&["config", "resolve", "--json"]).json()["maxDepth"]["value"], 5);
}

#[test]
fn a_folder_that_is_gone_can_be_forgotten() {
    let place = Place::new();
    place.file("p/.offshoot/config.toml", CONFIG);
    place.run(&["trust", "p"]).expect_code(0);
    fs::remove_dir_all(place.path().join("p")).expect("the folder cannot be removed");
    check("trust_list_gone", &place.run(&["trust", "--list"]));
    place.run(&["trust", "--remove", "p"]).expect_code(0);
    assert_eq!(place.run(&["trust", "--list"]).expect_code(0).stdout(), "");
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    let mut table = Table::default();
    let place = Place::new();
    table.row(&place.run(&["trust"]));
    fs::create_dir_all(place.path().join("p/.offshoot/agents")).expect("the folder cannot be made");
    let link = place.path().join("p/.offshoot/agents/elsewhere");
    std::os::unix::fs::symlink(place.path().join("home"), link).expect("the link cannot be made");
    table.row(&place.run(&["trust", "p"]));

    place.file("q/.offshoot/config.toml", CONFIG);
    let mut command = place.command(&["trust", "q"]);
    command.env_remove("HOME");
    table.row(&place.outcome(command, &[]));
    place.file("home/.local/state/offshoot/trust.json", "{");
    table.row(&place.run(&["trust", "q"]));
    table.check("trust_wrong");
}

#[test]
fn what_was_compared_is_what_takes_effect() {
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    let place = Place::new();
    let files = [
        place.file(".offshoot/config.toml", CONFIG),
        place.file(".offshoot/agents/scout.md", "---\nname: scout\n---\n"),
    ];
    place.run(&["trust"]).expect_code(0);
    // A file that is opened once cannot be another one when it is opened again.
    let inotify =
        init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("the system has no room for it");
    for file in &files {
        add_watch(&inotify, file, WatchFlags::OPEN).expect("it is missing");
    }
    assert_eq!(max_depth(&place), 5);
    let mut space = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(&inotify, &mut space);
    let mut opened = 0;
    while events.next().is_ok_and(|event| event.events().contains(ReadFlags::OPEN)) {
        opened += 1;
    }
    assert_eq!(opened, files.len());
}

#[test]
fn a_script_that_a_definition_names_is_trusted_with_it() {
    let place = Place::new();
    let config = "[[agents.list]]\nid = \"main\"\ncommand = [\"sh\", \"tools/agent.sh\"]\n\n\
                  [runtimes.exec]\nwrap = [\"env\", \"A=./b\", \"./wrap.sh\"]\n\n\
                  [runtimes.claude.options.servers.notes]\ncommand = \"node\"\nargs = [\"notes.js\"]\n\n\
                  [audit]\nheads = [\"./heads.sh\", \"beside.sh-is-no-argument\"]\n";
    place.file(".offshoot/config.toml", config);
    let script = place.file("tools/agent.sh", "echo good\n");
    let wrap = place.file("wrap.sh", "exec \"$@\"\n");
    let server = place.file("notes.js", "");
    let heads = place.file("heads.sh", "cat\n");
    place.file("beside.sh", "");
    check("trust_script", &place.run(&["trust"]));
    let origin = || {
        let resolved = place.run(&["agents", "show", "main", "--json"]).expect_code(0);
        resolved.stdout().contains("agent.sh")
    };
    assert!(origin());
    place.file("beside.sh", "changed");
    assert!(origin(), "no definition names it");
    let scripts =
        [(&script, "echo good\n"), (&wrap, "exec \"$@\"\n"), (&server, ""), (&heads, "cat\n")];
    for (path, content) in scripts {
        fs::write(path, "echo evil\n").expect("the file cannot be written");
        assert!(!origin(), "{} is another one", path.display());
        fs::write(path, content).expect("the file cannot be written");
        assert!(origin());
    }
    fs::remove_file(script).expect("the file cannot be removed");
    assert!(!origin(), "nor is one trusted that is gone");
    check("trust_list_script", &place.run(&["trust", "--list"]));
}

#[test]
fn a_file_that_acts_for_the_user_is_trusted_with_its_project() {
    let place = Place::new();
    let config = "[[agents.list]]\nid = \"main\"\ncwd = \"sub\"\ncommand = [\"sh\", \"run.sh\"]\n\n\
                  [[agents.list]]\nid = \"b\"\ncommand = [\"sh\", \"-c\", \"PORT=1 exec ./inner.sh\"]\n\n\
                  [[agents.list]]\nid = \"c\"\ncommand = [\"node\", \"--require=hook.js\"]\n\n\
                  [runtimes.claude.options.settings]\napiKeyHelper = \"./helper.sh\"\n\n\
                  [runtimes.openai.options]\ncertificates = \"ca.pem\"\n\n\
                  [plugins.options.notes]\nkeyFile = \"notes.key\"\n\n\
                  [audit]\nheads = \"heads.log\"\nsign = \"keys/key\"\n";
    place.file(".offshoot/config.toml", config);
    let names =
        ["sub/run.sh", "inner.sh", "hook.js", "helper.sh", "ca.pem", "notes.key", "keys/key"];
    let files = names.map(|name| place.file(name, "good"));
    let log = place.file("heads.log", "");
    check("trust_files", &place.run(&["trust"]));
    let is_trusted = || {
        let agents = place.run(&["agents", "show", "main", "--json"]).expect_code(0);
        agents.stdout().contains("run.sh")
    };
    fs::write(log, "a line").expect("the file cannot be written");
    assert!(is_trusted(), "offshoot itself appends to that file");
    let exchanged = |path: &std::path::PathBuf| {
        fs::write(path, "evil").expect("the file cannot be written");
        let ignored = !is_trusted();
        fs::write(path, "good").expect("the file cannot be written");
        assert!(is_trusted());
        ignored
    };
    let passed: Vec<_> = files.iter().filter(|path| !exchanged(path)).collect();
    assert_eq!(passed, [] as [&std::path::PathBuf; 0]);
}

#[test]
fn what_a_name_leads_to_is_trusted_however_it_leads_there() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let config = "[[agents.list]]\nid = \"main\"\n\
                  command = [\"sh\", \"-c\", \"./run.sh; ./out.sh; x/../up.sh; curl https://a/b > made/; exec bin/later\"]\n";
    place.file("p/.offshoot/config.toml", config);
    for name in ["p/scripts/a.sh", "p/scripts/b.sh", "p/up.sh", "outside/up.sh", "outside.sh"] {
        place.file(name, name);
    }
    fs::create_dir_all(place.path().join("outside/x")).expect("the folder cannot be made");
    fs::create_dir(place.path().join("p/x")).expect("the folder cannot be made");
    let path = |name: &str| place.path().join("p").join(name);
    let link = |to: &str, name: &str| {
        // A folder or a link, or nothing.
        let _ = fs::remove_dir(path(name)).or_else(|_| fs::remove_file(path(name)));
        symlink(to, path(name)).expect("the link cannot be made");
    };
    link("scripts/a.sh", "run.sh");
    link("../outside.sh", "out.sh");
    check("trust_links", &place.run(&["trust", "p"]));
    let is_trusted = || {
        let mut command = place.command(&["agents", "show", "main", "--json"]);
        command.current_dir(path(""));
        place.outcome(command, &[]).expect_code(0).stdout().contains("run.sh")
    };
    assert!(is_trusted());
    link("scripts/b.sh", "run.sh");
    assert!(!is_trusted(), "a link leads elsewhere");
    link("scripts/a.sh", "run.sh");
    assert!(is_trusted());
    place.file("outside.sh", "evil");
    assert!(!is_trusted(), "a link leads out of the project, to another content");
    place.file("outside.sh", "outside.sh");
    assert!(is_trusted());
    link("../outside/x", "x");
    assert!(!is_trusted(), "a folder on the way is a link");
    fs::remove_file(path("x")).expect("it is a link");
    fs::create_dir(path("x")).expect("the folder cannot be made");
    assert!(is_trusted());
    fs::create_dir_all(path("bin/later")).expect("the folder cannot be made");
    assert!(is_trusted(), "a folder is no file");
    fs::remove_dir(path("bin/later")).expect("it is empty");
    named_pipe(path("bin/later"));
    assert!(!is_trusted(), "a pipe has appeared, and is not waited for");
    fs::remove_file(path("bin/later")).expect("the file cannot be removed");
    assert!(is_trusted());
    place.file("p/bin/later", "evil");
    assert!(!is_trusted(), "a file has appeared that was named");
}

#[test]
fn a_result_that_an_option_names_makes_no_other_project_of_it() {
    let place = Place::new();
    let config = "[[agents.list]]\nid = \"main\"\ncommand = [\"./run.sh\", \"--out\", \"out/a\", \"--log=out/b\"]\n";
    place.file("p/.offshoot/config.toml", config);
    place.file("p/run.sh", "run");
    place.run(&["trust", "p"]).expect_code(0);
    let is_trusted = || {
        let mut command = place.command(&["agents", "show", "main", "--json"]);
        command.current_dir(place.path().join("p"));
        place.outcome(command, &[]).expect_code(0).stdout().contains("run.sh")
    };
    assert!(is_trusted());
    place.file("p/out/a", "written");
    place.file("p/out/b", "written");
    assert!(is_trusted(), "they were not there when it was trusted");
    place.file("p/run.sh", "evil");
    assert!(!is_trusted());
}

/// Each command reads the files that are trusted, so one that cannot be used is named at once.
#[test]
fn a_file_that_is_no_configuration_is_named_as_it_is_trusted() {
    let place = Place::new();
    place.file(".offshoot/config.toml", "[agents.defaults.subagents]\nmaxDepht = 2\n");
    let trusted = place.run(&["trust"]).expect_code(0);
    let said = "the configuration is trusted now, and cannot be used";
    assert!(trusted.stderr.contains(said), "{}", trusted.stderr);
    assert!(trusted.stderr.contains("maxDepht"), "{}", trusted.stderr);
    place.file(".offshoot/config.toml", "[agents.defaults.subagents]\nmaxDepth = 2\n");
    let right = place.run(&["trust"]).expect_code(0);
    assert!(!right.stderr.contains(said), "{}", right.stderr);
}
