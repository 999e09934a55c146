//! Messages of the command: what is wrong is named where it stands, in words of the file it stands in, and in JSON where JSON is
//! wanted.

use serde_json::Value;

use crate::command::Place;

#[test]
fn a_configuration_that_is_not_there_is_an_error_of_every_command() {
    let place = Place::new();
    place.file("lines", "{\"key\":\"a\",\"value\":1}\n");
    for words in [
        &["run", "x", "--", "true"][..],
        &["list"],
        &["tree"],
        &["events"],
        &["stats"],
        &["key", "parse", "agent:main:main"],
        &["agents", "list"],
        &["merge", "--strategy", "sum", "lines"],
        &["completions", "bash"],
        &["doctor"],
        &["config", "show"],
    ] {
        let refused = place.run(&[&["--config", "nofile"], words].concat()).expect_code(2);
        let expected = "error: cannot read the configuration nofile: no such file or directory";
        assert!(refused.stderr.starts_with(expected), "{words:?}: {}", refused.stderr);
        assert_eq!(refused.stdout(), "", "{words:?}");
    }
}

#[test]
fn json_that_is_wrong_is_named_with_its_file_and_field() {
    let place = Place::new();
    let fanout = ["fanout", "--tasks", "tasks", "--", "cat"];
    let merge = ["merge", "--strategy", "sum", "lines"];
    for (words, file, line, expected) in [
        (
            &fanout[..],
            "tasks",
            r#"{"task": 3}"#,
            "tasks, line 1: `task` must be a string, and is 3",
        ),
        (&fanout, "tasks", "3", "tasks, line 1: a line must be an object"),
        (
            &merge,
            "lines",
            r#"{"key": 3}"#,
            "lines, line 1: `key`: found integer `3`, expected a string",
        ),
        (&merge, "lines", r#"{"key": "a"}"#, "lines, line 1: the key `value` is missing"),
        (&merge, "lines", r#""a""#, "lines, line 1: found string \"a\", expected an object"),
        (&merge, "lines", r#"["k", 5]"#, "lines, line 1: found an array, expected an object"),
        (
            &merge,
            "lines",
            r#"{"key": "a""#,
            "lines, line 1: it ends in the middle of an object, at column 11",
        ),
        (
            &fanout,
            "tasks",
            r#"{"task": "x""#,
            "tasks, line 1, column 12: it ends in the middle of an object",
        ),
    ] {
        place.file(file, line);
        let refused = place.run(words).expect_code(2);
        assert!(refused.stderr.contains(expected), "{line}: {}", refused.stderr);
        assert!(!refused.stderr.contains("struct"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("EOF"), "{}", refused.stderr);
    }
}

#[test]
fn yaml_is_called_yaml() {
    let place = Place::new();
    let yaml = "# limits\nagents:\n  defaults:\n    subagents:\n      maxDepth: 3\n";
    for name in ["c.yaml", "c.toml", "c.json", "c"] {
        place.file(name, yaml);
        for words in [&["config", "check", name][..], &["--config", name, "run", "x", "--", "true"]]
        {
            let refused = place.run(words).expect_code(2);
            assert_eq!(refused.stderr.matches("error: ").count(), 1, "{}", refused.stderr);
            assert!(
                refused.stderr.contains(": this is YAML, and configuration is TOML"),
                "{}",
                refused.stderr
            );
        }
    }
    place.file("c.toml", "agents = 3 4\n");
    let wrong = place.run(&["config", "check", "c.toml"]).expect_code(2);
    assert!(!wrong.stderr.contains("YAML"), "{}", wrong.stderr);
}

#[test]
fn errors_are_json_where_json_is_wanted() {
    let place = Place::new();
    place.run(&["run", "--label", "once", "x", "--", "true"]).expect_code(0);
    place.file("c.toml", "a = 1\nb = 2\n");
    for (words, code, expected) in [
        (&["show", "nolabel"][..], "bad_input", "there is no run `nolabel`"),
        (&["--config", "nofile", "list"], "bad_input", "cannot read the configuration nofile"),
        (&["map", "nofile", "--", "cat"], "bad_input", "no such file: nofile"),
        (&["run", "--agent", "nix", "x", "--", "true"], "bad_input", "there is no agent `nix`"),
        (&["wait", "x"], "bad_input", "there is no supervisor to ask"),
        (&["resume"], "bad_input", "nothing to resume"),
        (&["list", "--bogus"], "bad_input", "unexpected argument '--bogus' found"),
        (&["bogus"], "bad_input", "unrecognized subcommand 'bogus'"),
        (&["ps"], "bad_input", "unrecognized subcommand 'ps'"),
        (&["run"], "bad_input", "required arguments were not provided"),
    ] {
        let failed = place.run(&[&["--json"], words].concat());
        let told: Value = failed.json();
        let message = told["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{words:?}: {told}");
        assert_eq!((&told["status"], &told["code"]), (&"error".into(), &code.into()), "{told}");
        assert_eq!(told["exitCode"], failed.code, "{told}");
        assert!(failed.stderr.contains("error: "), "{words:?}: {}", failed.stderr);
    }
    // Each message of the command has a code of its own.
    for (words, expected) in [
        (&["show", "nolabel"][..], "no_such_run"),
        (&["run", "", "--", "true"], "task_empty"),
        (&["--config", "nofile", "list"], "cannot_read_configuration"),
        (&["bogus"], "usage"),
    ] {
        let told = place.run(&[&["--json"], words].concat()).expect_code(2).json();
        assert_eq!(told["messageCode"], expected, "{words:?}: {told}");
        assert_eq!(told["code"], "bad_input", "{told}");
    }
    let shown = place.run(&["--verbose", "show", "nolabel"]).expect_code(2).stderr;
    assert!(shown.starts_with("error: there is no run `nolabel` [no_such_run]\n"), "{shown}");
    let noted = place.run(&["--verbose", "list", "--tree", "once", "--status", "lost"]);
    assert_eq!(noted.expect_code(0).stderr, "no run matches [nothing_to_show]\n");
    let both = place
        .run(&["--json", "--config", "c.toml", "run", "x", "--", "true"])
        .expect_code(2)
        .json();
    assert_eq!(both["errors"].as_array().map(Vec::len), Some(2), "{both}");
    let hint = place.run(&["ps", "--json"]).expect_code(2).json();
    assert_eq!(hint["hint"], "`offshoot list` lists runs");
    // What a run prints is one value, whatever came of it.
    let failed = place.run(&["--json", "run", "x", "--", "false"]).expect_code(1).json();
    assert_eq!(failed["error"]["code"], "exit_code");
}

#[test]
fn a_label_that_is_not_there_is_bad_input() {
    let place = Place::new();
    place.run(&["run", "--label", "once", "x", "--", "true"]).expect_code(0);
    for command in
        ["show", "tree", "events", "logs", "audit", "history", "stats", "resume", "cancel"]
    {
        let refused = place.run(&[command, "twice"]).expect_code(2);
        assert!(
            refused.stderr.contains("there is no run `twice`"),
            "{command}: {}",
            refused.stderr
        );
    }
}

#[test]
fn a_model_that_may_not_spawn_is_told_who_can_allow_it() {
    let place = Place::new();
    let child = r#""$OFFSHOOT" --json spawn y -- cat || true"#;
    let script = format!("\"$OFFSHOOT\" spawn --wait x -- sh -c '{child}'");
    let outcome = place.run(&["-q", "run", "root", "--", "sh", "-c", &script]).expect_code(0);
    let refusal = outcome.json();
    assert_eq!(refusal["code"], "recursion_disabled");
    let hint = refusal["hint"].as_str().expect("a hint");
    assert!(hint.contains("only the operator can allow it, by --allow-recursive-spawn"), "{hint}");
    assert!(!hint.contains("offshoot "), "no line that a model could run: {hint}");
    // The line of the operator works as it stands.
    let line = hint.split_once("before the tree begins: ").expect("a line for the shell").1;
    let exec = format!("{line}; exec \"$@\"");
    let run = [env!("CARGO_BIN_EXE_offshoot"), "-q", "run", "root", "--", "sh", "-c", &script];
    let shell = place.command_of("sh", &[&["-c", &exec, "sh"][..], &run].concat());
    let allowed = place.outcome(shell, b"").expect_code(0);
    assert!(!allowed.stdout().contains("recursion_disabled"), "{}", allowed.stdout());
}

#[test]
fn a_run_shows_which_of_its_rights_are_not_its_parents() {
    let place = Place::new();
    let spawn = r#""$OFFSHOOT" spawn --wait --label same x -- cat
        "$OFFSHOOT" spawn --wait --label short --timeout 7 x -- cat"#;
    place
        .run(&["-q", "run", "--allow-recursive-spawn", "root", "--", "sh", "-c", spawn])
        .expect_code(0);
    let granted = |label: &str| {
        let shown = place.run(&["show", label]).expect_code(0).stdout().to_owned();
        let row = shown.lines().find_map(|line| line.strip_prefix("granted"));
        row.expect("each run was granted something").trim().to_owned()
    };
    assert_eq!(granted("same"), "as its parent");
    assert_eq!(granted("short"), "as its parent, but time limit: 30 min → 7.0 s");
}
