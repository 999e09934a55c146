//! The command line itself: help, unknown words, streams.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use offshoot_host::runtimes::BuiltInRuntime;
use offshoot_merge::Strategy;

use crate::command::{Place, Table, check};

#[test]
fn help_is_a_result_and_bad_usage_is_not() {
    let mut table = Table::default();
    let place = Place::new();
    // The page of the command has all of it.
    let help = place.run(&["--help"]).expect_code(0);
    assert!(help.stdout().contains("Usage: offshoot"), "{}", help.stdout());
    assert_eq!(help.stderr, "");
    table.row(&place.run(&["mpa"]));
    table.row(&place.run(&["config", "show", "--jsno"]));
    table.row(&place.run(&["-q", "-v", "config", "show"]));
    let nothing = place.run(&[]).expect_code(2);
    assert_eq!(nothing.stdout(), "");
    // The last one is answered by the parser, the others before it is built.
    for words in [&["--version"][..], &["-V"], &["--json", "--version"]] {
        let version = place.run(words).expect_code(0);
        assert_eq!(version.stdout(), concat!("offshoot ", env!("CARGO_PKG_VERSION"), "\n"));
        assert_eq!(version.stderr, "");
    }
    table.check("usage_wrong");
}

#[test]
fn every_command_shows_an_example() {
    let place = Place::new();
    let help = place.run(&["--help"]);
    let (_, commands) = help.stdout().split_once("Commands:\n").expect("it lists the commands");
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().expect("a line names a command");
        if name == "help" {
            continue;
        }
        let help = place.run(&[name, "--help"]).expect_code(0);
        // Those with commands of their own leave the examples to them.
        let expected =
            if matches!(name, "key" | "config" | "plugin") { "Commands:" } else { "Example" };
        assert!(help.stdout().contains(expected), "{name}");
    }
}

#[test]
fn help_names_everything_that_is_built_in() {
    let help = Place::new().run(&["map", "--help"]).expect_code(0);
    let words = help.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    for names in [BuiltInRuntime::names().collect(), Strategy::NAMES.to_vec()] {
        assert!(words.contains(&names.join(", ")), "{names:?}: {words}");
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&["completions", shell]).expect_code(0);
        assert!(script.stdout().contains("offshoot"), "{shell}");
    }
    check("usage_unknown_shell", &place.run(&["completions", "tcsh"]));
}

#[test]
fn runs_agents_and_merges_are_completed() {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", "[[agents.list]]\nid = \"night-watch\"\n");
    place.run(&["-q", "map", "--label", "nightly", "in", "--", "true"]);
    place.file("in", "x");
    place.run(&["-q", "map", "--label", "nightly", "in", "--", "true"]).expect_code(0);
    let complete = |words: &[&str]| {
        let mut command = place.command(&[&["--", "offshoot"], words].concat());
        command.env("OFFSHOOT_COMPLETE", "fish");
        place.outcome(command, b"").expect_code(0).stdout().to_owned()
    };
    let runs = complete(&["show", ""]);
    assert!(runs.lines().any(|line| line == "last\tthe newest tree"), "{runs}");
    assert!(runs.lines().any(|line| line.ends_with("\tover nightly")), "{runs}");
    assert!(runs.lines().any(|line| line.ends_with("\tcompleted in")), "{runs}");
    let id = runs.lines().find(|line| line.ends_with("nightly")).expect("a run").split('\t').next();
    place.run(&["show", id.expect("the run has no id")]).expect_code(0);
    let flags = complete(&["list", "--tree", "la"]);
    assert!(flags.starts_with("last"), "{flags}");
    assert!(complete(&["run", "--agent", ""]).contains("night-watch"), "an agent");
    assert!(complete(&["map", "--merge", "struct"]).contains("structured"), "a merge");
    assert!(complete(&["run", "--agent", ""]).lines().any(|line| line == "main"));
    let asking = complete(&["fanout", "--merge", "summarize-with="]);
    assert_eq!(asking, "summarize-with=main\nsummarize-with=night-watch\n");
    assert_eq!(complete(&["merge", "--strategy", "summarize-with"]), "", "it needs a tree");
    let commands = complete(&[""]);
    assert!(commands.contains("stats") && !commands.contains("keeper"), "{commands}");
}

#[test]
fn plugins_and_what_they_have_are_completed() {
    let place = Place::new();
    let about = |name: &str, has: &str| {
        format!(
            "name = \"{name}\"\nversion = \"0.1.0\"\nabi = \"1.0\"\n{has}\n\
             [process]\ncommand = [\"./run\"]\n"
        )
    };
    place.file("elsewhere/upper/plugin.toml", about("upper", "runtimes = [\"upper\"]"));
    place.file(
        "home/.local/share/offshoot/plugins/longest/plugin.toml",
        about("longest", "merges = [\"longest\"]"),
    );
    let complete = |words: &[&str]| {
        let mut command = place.command(&[&["--", "offshoot"], words].concat());
        command.env("OFFSHOOT_COMPLETE", "fish");
        command.env("OFFSHOOT_PLUGIN_PATH", place.path().join("elsewhere"));
        let said = place.outcome(command, b"").expect_code(0).stdout().to_owned();
        let words = said.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned());
        words.filter(|word| !word.starts_with('-')).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["plugin", "inspect", ""]), ["upper", "longest"]);
    assert_eq!(complete(&["plugin", "trust", "u"]), ["upper"]);
    assert_eq!(complete(&["plugin", "remove", ""]), ["longest"], "it removes the user's own alone");
    for words in [["map", "--merge", "plugin"], ["merge", "--strategy", "plugin"]] {
        assert_eq!(complete(&words), ["plugin:longest"]);
    }
    assert_eq!(complete(&["run", "--runtime", ""]), ["claude", "exec", "openai", "upper"]);
    assert_eq!(complete(&["plugin", "new", "--runtime", ""]), [""; 0]);
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let place = Place::new();
    place.run(&["manual", "pages/man1"]).expect_code(0);
    for page in ["offshoot.1", "offshoot-map.1", "offshoot-key-parse.1"] {
        let text = std::fs::read_to_string(place.path().join("pages/man1").join(page));
        assert!(text.expect(page).contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("the system has pipes");
    drop(reader);
    let mut command = place.command(&["config", "schema"]);
    command.stdout(Stdio::from(writer));
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    let full: File = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let mut command = place.command(&["config", "schema"]);
    command.stdout(full);
    check("usage_full", &place.outcome(command, &[]));
}
