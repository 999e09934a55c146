//! `offshoot config`.

use std::fs;

use offshoot_test_support::named_pipe;
use serde_json::{Value, json};

use crate::command::{Place, Table, check};

#[test]
fn a_runtime_whose_name_is_nearly_right_is_told() {
    let place = Place::new();
    place.file("c.toml", "[runtimes.opnai]\nmeter = \"on\"\n[runtimes.mine]\nmeter = \"on\"\n");
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0).text();
    let said = "runtimes.opnai: no runtime `opnai` is built in, the nearest is `openai`";
    assert!(checked.contains(said) && checked.contains("no error, and 1 warning"), "{checked}");
    // Wherever it stands; a name that has settings is told once.
    let agents = "[runtimes.opnai]\nmeter = \"on\"\n\
                  [[agents.list]]\nid = \"a\"\nruntime = \"openia\"\n\
                  [[agents.list]]\nid = \"b\"\nruntime = \"opnai\"\n\
                  [agents.list.model]\nfallbacks = [{ runtime = \"cluade\" }]\n\
                  [[agents.list]]\nid = \"main\"\n\
                  [agents.defaults.subagents.model]\nfallbacks = [{ runtime = \"exce\" }]\n";
    place.file("agents.toml", agents);
    let checked = place.run(&["config", "check", "agents.toml"]).expect_code(0).text();
    for said in [
        "runtimes.opnai: no runtime `opnai` is built in, the nearest is `openai`",
        "runtime of the agent a: no runtime `openia` is built in, the nearest is `openai`",
        "model.fallbacks of the agent b: no runtime `cluade` is built in, the nearest is `claude`",
        "subagents.model.fallbacks: no runtime `exce` is built in, the nearest is `exec`",
        "no error, and 4 warnings",
    ] {
        assert_eq!(checked.matches(said).count(), 1, "{said}: {checked}");
    }
}

/// A program cannot go on with the task of a model.
#[test]
fn a_fallback_that_runs_no_model_is_refused() {
    let place = Place::new();
    let fallbacks = "fallbacks = [\"small\", { runtime = \"exec\" }]\n";
    let of_agent = format!("[[agents.list]]\nid = \"b\"\n[agents.list.model]\n{fallbacks}");
    let of_those_below =
        format!("[[agents.list]]\nid = \"b\"\n[agents.list.subagents.model]\n{fallbacks}");
    let of_all = format!("[agents.defaults.subagents.model]\n{fallbacks}");
    for (text, at) in [
        (of_agent, "model.fallbacks of the agent b"),
        (of_those_below, "subagents.model.fallbacks of the agent b"),
        (of_all, "subagents.model.fallbacks"),
    ] {
        place.file("c.toml", text);
        let said = format!("{at}: the runtime `exec` runs no model");
        let checked = place.run(&["config", "check", "c.toml"]).expect_code(2).text();
        assert!(checked.contains(&said), "{checked}");
        assert!(checked.contains("hint: name a runtime of models"), "{checked}");
    }
}

/// Keys of another system are accepted, so that its file can be used as it is. Where one is called as a limit is, that is said.
#[test]
fn a_limit_in_the_place_of_another_system_is_told() {
    let place = Place::new();
    let text = "[agents.defaults]\nmaxConcurrent = 2\ntimeoutSeconds = 9\n[agents.defaults.model]\nprimary = \"x\"\n";
    place.file("c.toml", text);
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0).text();
    for (key, line) in [("maxConcurrent", 2), ("model", 4)] {
        let said = format!(
            "agents.defaults.{key} (file c.toml:{line}) has no effect, as a key of another system; what holds here is agents.defaults.subagents.{key}"
        );
        assert!(checked.contains(&said), "{said}: {checked}");
    }
    assert!(checked.contains("no error, and 2 warnings"), "{checked}");
}

#[test]
fn an_address_that_cannot_be_asked_is_refused_by_the_check() {
    let place = Place::new();
    for (address, why) in [
        ("api.example/v1", "set baseUrl to something like"),
        ("http://api.example/v1", "use https"),
    ] {
        place.file("c.toml", format!("[runtimes.openai.options]\nbaseUrl = \"{address}\"\n"));
        let refused = place.run(&["config", "check", "c.toml"]).expect_code(2).text();
        let place = format!("runtimes.openai.options.baseUrl: `{address}`");
        assert!(refused.contains(&place) && refused.contains(why), "{refused}");
    }
}

#[test]
fn every_value_knows_its_origin() {
    let place = Place::new();
    place.file(
        "home/.config/offshoot/config.toml",
        "[agents.defaults.subagents]\nmaxDepth = 4\nmaxSpawns = 9\n",
    );
    place.file(
        "more.json5",
        "{ agents: { defaults: { subagents: { maxSpawns: 7, graceSeconds: 1 } } } }",
    );
    let mut command =
        place.command(&["config", "resolve", "--config", "more.json5", "--timeout", "9", "--json"]);
    command.env("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__GRACESECONDS", "2");
    let resolved = place.outcome(command, &[]).expect_code(0).json();
    let user = place.path().join("home/.config/offshoot/config.toml");
    for (key, value, origin) in [
        ("maxConcurrent", 8, "built-in".to_owned()),
        ("maxDepth", 4, format!("user file {}:2", user.display())),
        ("maxSpawns", 7, "file more.json5:1".to_owned()),
        (
            "graceSeconds",
            2,
            "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__GRACESECONDS".to_owned(),
        ),
        ("runTimeoutSeconds", 9, "flag --timeout".to_owned()),
    ] {
        assert_eq!(resolved[key]["value"], value, "{key}");
        assert_eq!(resolved[key]["origin"], origin, "{key}");
    }
}

#[test]
fn without_files_the_built_in_values_hold() {
    let place = Place::new();
    check("config_show", &place.run(&["config", "show"]));
    check("config_resolve", &place.run(&["config", "resolve"]));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let mut table = Table::default();
    let place = Place::new();
    let cases = [
        ("unknown_key", "toml", "[agents.defaults.subagents]\nmaxDeph = 2\n"),
        ("wrong_type", "toml", "[agents.defaults.subagents]\nmaxDepth = \"two\"\n"),
        ("out_of_range", "json5", "{ agents: { defaults: { subagents: {\n  maxDepth: 11,\n} } } }"),
        ("duplicate_agent", "json5", "{ agents: { list: [\n  { id: 'a' },\n  { id: 'a' },\n] } }"),
        ("syntax", "toml", "[agents\n"),
        ("two_at_once", "toml", "[agents.defaults.subagents]\nmaxDepth = 0\nmaxSpawn = 1\n"),
        ("misplaced_ceiling", "toml", "[ceiling]\nmaxDepth = 1\n"),
        ("misplaced_host", "toml", "[host]\nmemoryKeep = 0.5\n"),
    ];
    for (name, format, text) in cases {
        let file = format!("{name}.{format}");
        place.file(&file, text);
        table.row(&place.run(&["config", "check", &file]));
        // The same stops every other command that uses the file.
        place.run(&["config", "show", "--config", &file]).expect_code(2);
    }
    table.row(&place.run(&["config", "resolve", "--max-depth", "11"]));
    table.row(&place.run(&["config", "resolve", "--budget-usd", "much"]));
    let outcome = place.run_with(
        "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXDEPTH",
        "11",
        &["config", "show"],
    );
    table.row(&outcome);
    table.check("config_wrong");
}

#[test]
fn problems_are_told_to_programs_too() {
    let place = Place::new();
    place.file("bad.toml", "[agents.defaults.subagents]\nmaxDeph = 2\n");
    place.file("good.toml", "");
    let bad = place.run(&["config", "check", "bad.toml", "--json"]).expect_code(2).json();
    let message = bad["problems"][0]["message"].as_str().expect("a message");
    assert!(message.contains("nearest is `maxDepth`"), "{message}");
    place.file("options.toml", "[runtimes.openai.options]\nbaseurl = \"http://127.0.0.1:1/v1\"\n");
    place.file("claude.toml", "[runtimes.claude.options]\nmaxTurn = 3\n");
    for (file, key) in [("options.toml", "baseurl"), ("claude.toml", "maxTurn")] {
        let said = place.run(&["config", "check", file]).expect_code(2);
        assert!(said.stderr.contains(&format!("unknown field `{key}`")), "{}", said.text());
    }
    let good = place.run(&["config", "check", "good.toml", "--json"]).expect_code(0).json();
    assert_eq!(good["problems"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let mut table = Table::default();
    let place = Place::new();
    place.file("latin1.toml", b"# caf\xe9\n");
    table.row(&place.run(&["config", "check", "nowhere.toml"]));
    table.row(&place.run(&["config", "show", "--config", "home"]));
    table.row(&place.run(&["config", "check", "latin1.toml"]));
    table.check("config_unreadable");
}

#[test]
fn a_named_pipe_is_read_once() {
    let place = Place::new();
    let pipe = place.path().join("pipe");
    named_pipe(&pipe);
    let setting = "[agents.defaults.subagents]\nmaxSpawns = 7\n";
    let resolve = ["config", "resolve", "--json", "--config", "pipe"];
    let resolved = std::thread::scope(|scope| {
        // Ends as soon as the pipe is opened to be read.
        scope.spawn(|| fs::write(&pipe, setting));
        place.run(&resolve)
    });
    let resolved = resolved.expect_code(0).json();
    assert_eq!(resolved["maxSpawns"]["value"], 7, "{resolved}");
}

#[test]
fn a_file_in_order_is_told_so() {
    let place = Place::new();
    place.file("good.json5", "{ agents: { list: [{ id: 'scout', subagents: { maxDepth: 2 } }] } }");
    check("config_check_good", &place.run(&["config", "check", "good.json5"]));
    let quiet = place.run(&["-q", "config", "check", "good.json5"]).expect_code(0);
    assert_eq!((quiet.stdout(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn two_files_in_one_folder_are_one_too_many() {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", "");
    place.file("home/.config/offshoot/config.json5", "{}");
    check("config_two_files", &place.run(&["config", "show"]));
}

#[test]
fn an_agents_own_value_comes_before_the_defaults() {
    let place = Place::new();
    place.file(
        "c.toml",
        "[agents.defaults.subagents]\nmaxDepth = 4\n[[agents.list]]\nid = \"scout\"\nsubagents.maxDepth = 2\n",
    );
    let depth = |agent| {
        let outcome =
            place.run(&["config", "resolve", "--agent", agent, "--config", "c.toml", "--json"]);
        outcome.expect_code(0).json()["maxDepth"]["value"].clone()
    };
    assert_eq!(depth("scout"), 2);
    assert_eq!(depth("main"), 4);
}

#[test]
fn the_template_is_a_file_in_order() {
    let place = Place::new();
    check("config_init", &place.run(&["config", "init"]));
    let path = ".offshoot/config.toml";
    place.run(&["config", "check", path]).expect_code(0);
    let text = fs::read_to_string(place.path().join(path)).expect("the file cannot be read");
    assert!(text.contains("maxConcurrent = 8"), "{text}");
    check("config_init_again", &place.run(&["config", "init"]));
}

#[test]
fn the_schema_is_json() {
    let schema = Place::new().run(&["config", "schema"]).expect_code(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn keys_of_another_system_are_accepted_and_named() {
    let place = Place::new();
    place.file("c.json5", "{ gateway: { port: 1 }, agents: { defaults: { workspace: '/w' } } }");
    let shown =
        place.run(&["config", "show", "--config", "c.json5", "--json"]).expect_code(0).json();
    assert!(shown["foreign"].as_object().is_some_and(|keys| !keys.is_empty()), "{shown}");
}

/// A setting has an effect with one runtime and none with another, whichever agent has it.
#[test]
fn what_a_setting_cannot_do_for_a_runtime_is_said() {
    let place = Place::new();
    let all = "model = \"m\"\nthinking = \"high\"\nsystemPrompt = \"s\"\nmaxTurns = 3\nschemaRepairs = 2\n\
               compaction = { atTokens = 100000 }\nsubagents.retries.on = [\"exit:75\"]\n";
    let pruning = "contextPruning = { mode = \"on\" }\n";
    let of_programs =
        ["model", "thinking", "systemPrompt", "maxTurns", "schemaRepairs", "compaction"];
    let with_pruning = [&of_programs[..], &["contextPruning"]].concat();
    // What says the runtime, whether old results are left out, the settings without effect, and that which is refused.
    let rows: [(&str, &str, &[&str], bool); 9] = [
        ("runtime = \"openai\"", pruning, &["retries.on = exit:75"], false),
        ("runtime = \"claude\"", "", &["retries.on = exit:75"], false),
        ("runtime = \"claude\"", pruning, &["retries.on = exit:75"], true),
        ("", pruning, &["retries.on = exit:75"], true),
        ("", "contextPruning = { mode = \"off\" }\n", &["retries.on = exit:75"], false),
        ("runtime = \"exec\"", "", &of_programs, false),
        ("runtime = \"exec\"", pruning, &with_pruning, false),
        ("command = [\"true\"]", pruning, &with_pruning, false),
        ("runtime = \"a-plugin\"", pruning, &[], false),
    ];
    for (runtime, pruning, without, is_refused) in rows {
        let row = format!("{runtime} {pruning}");
        place.file("c.toml", format!("[[agents.list]]\nid = \"a\"\n{runtime}\n{all}{pruning}"));
        let code = if is_refused { 2 } else { 0 };
        let said = place.run(&["config", "check", "c.toml"]).expect_code(code);
        let json = place.run(&["config", "check", "c.toml", "--json"]).expect_code(code).json();
        let named = |list: &str| -> Vec<String> {
            let items = json[list].as_array().expect("a list").iter();
            let text = |item: &Value| item.as_str().or(item["message"].as_str()).map(str::to_owned);
            items.map(|item| text(item).expect("a text")).collect()
        };
        let keys = |list: &str| -> Vec<String> {
            let key = |text: &String| text.split(": agent `a` runs on `").next().map(str::to_owned);
            named(list).iter().filter_map(key).collect()
        };
        assert_eq!(keys("withoutEffect"), without, "{row}");
        let refused: &[&str] = if is_refused { &["contextPruning"] } else { &[] };
        assert_eq!(keys("problems"), refused, "{row}");
        for text in named("withoutEffect").iter().chain(&named("problems")) {
            assert!(said.stderr.contains(text.as_str()), "{row}: {text}: {}", said.stderr);
        }
    }
    place.file("c.toml", format!("[agents.defaults]\n{pruning}"));
    let said = place.run(&["config", "check", "c.toml"]).expect_code(0).stderr;
    let expected = "contextPruning: agent `main` runs on `claude` where no command and no runtime is given, which has no";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_child_that_no_agent_is_is_named_with_the_nearest() {
    let place = Place::new();
    let team = |preferred: &str| {
        format!(
            "[[agents.list]]\nid = \"lead\"\npreferredSubagents = [{{ {preferred} = \"For reviews\" }}]\n\
             [[agents.list]]\nid = \"reviewer\"\n"
        )
    };
    place.file("c.toml", team("reviewr"));
    let said = "warning: preferredSubagents of the agent `lead` names `reviewr`, which is not defined (file c.toml:3); the nearest is `reviewer`";
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0);
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    let json = place.run(&["--json", "config", "check", "c.toml"]).expect_code(0).json();
    assert_eq!(json["undefinedChildren"].as_array().map(Vec::len), Some(1), "{json}");
    let run = ["--config", "c.toml", "run", "x", "--", "true"];
    let begun = place.run(&run).expect_code(0);
    assert!(begun.stderr.contains(said), "{}", begun.stderr);
    // What resembles no other name may be defined elsewhere: only the check says so.
    place.file("c.toml", team("elsewhere"));
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0);
    assert!(checked.stderr.contains("names `elsewhere`, which is not defined"));
    assert!(!place.run(&run).expect_code(0).stderr.contains("elsewhere"));
    // Another file defines it.
    let home = "[[agents.list]]\nid = \"elsewhere\"\n";
    place.file("home/.config/offshoot/config.toml", home);
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0);
    assert!(!checked.stderr.contains("elsewhere"), "{}", checked.stderr);
}

/// Through the meter such an agent would start, and each of its requests would be refused.
#[test]
fn a_model_without_a_price_is_named_by_the_check() {
    let place = Place::new();
    let agent = |id: &str, model: &str| {
        format!(
            "[[agents.list]]\nid = \"{id}\"\nruntime = \"openai\"\nmodel = {{ primary = \"{model}\", fallbacks = [\"small-20260131\"] }}\n"
        )
    };
    let price = "[prices.small]\ninputPerMillion = 1\noutputPerMillion = 2\n";
    let agents = format!("{}{}{price}", agent("a", "large"), agent("b", "small"));
    let check = |more: &str| {
        place.file("c.toml", format!("{more}{agents}"));
        place.run(&["--json", "config", "check", "c.toml"]).expect_code(0).json()
    };
    for (mode, effect) in [("on", "the meter refuses each request"), ("off", "its cost is unknown")]
    {
        let said = check(&format!("[runtimes.openai]\nmeter = \"{mode}\"\n"));
        let expected = json!([{
            "place": "the agent `a`", "model": "large", "isMetered": mode == "on",
        }]);
        assert_eq!(said["modelsWithoutPrice"], expected);
        let warned = place.run(&["config", "check", "c.toml"]).expect_code(0).stderr;
        assert!(warned.contains("the model `large` of the agent `a` has no price"), "{warned}");
        assert!(warned.contains(effect) && warned.contains("1 warning"), "{mode}: {warned}");
    }
    assert_eq!(check("[runtimes.openai]\ncost = \"none\"\n")["modelsWithoutPrice"], json!([]));
}
