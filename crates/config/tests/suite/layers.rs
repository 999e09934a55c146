//! The precedence of layers, and the origins of values.

use offshoot_config::{
    AgentId, AllowAgents, Config, Format, Loader, Origin, Source, SourceKind, Valued,
    init_template, schema,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const MAX_CONCURRENT: &str = "agents.defaults.subagents.maxConcurrent";

fn id(text: &str) -> AgentId {
    AgentId::parse(text).expect("a valid id")
}

fn file(kind: SourceKind, text: &str) -> Source {
    Source::new(kind, format!("{kind:?}.toml"), text)
}

fn user(text: &str) -> Loader {
    Loader::new().file(file(SourceKind::User, text))
}

fn load(loader: Loader) -> Config {
    loader.load().unwrap_or_else(|errors| panic!("{errors}"))
}

fn resolved(config: &Config, agent: &str, key: &str) -> (Value, String) {
    let (_, valued) =
        config.resolve(&id(agent)).find(|(name, _)| name == key).expect("a known key");
    (valued.value, valued.origin.to_string())
}

#[test]
fn every_layer_beats_those_before_it() {
    let set = |number: u32| format!("{MAX_CONCURRENT} = {number}\n");
    let mut loader = Loader::new().project_trusted(true);
    let mut check = |next: Loader, expected: (u32, &str)| {
        loader = next.clone();
        let (value, origin) = resolved(&load(next), "main", "maxConcurrent");
        assert_eq!((value, origin.as_str()), (json!(expected.0), expected.1));
        loader.clone()
    };
    let loader = check(Loader::new().project_trusted(true), (8, "built-in"));
    let loader =
        check(loader.file(file(SourceKind::System, &set(10))), (10, "system file System.toml:1"));
    let loader =
        check(loader.file(file(SourceKind::User, &set(11))), (11, "user file User.toml:1"));
    let loader = check(
        loader.file(file(SourceKind::Project, &set(12))),
        (12, "project file Project.toml:1"),
    );
    let loader = check(loader.file(file(SourceKind::File, &set(13))), (13, "file File.toml:1"));
    let loader = check(
        loader.environment([("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXCONCURRENT", "14")]),
        (14, "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXCONCURRENT"),
    );
    let loader =
        check(loader.flag(MAX_CONCURRENT, 15, "--max-concurrent"), (15, "flag --max-concurrent"));
    check(loader.set(MAX_CONCURRENT, 16), (16, "program"));
}

#[test]
fn an_agent_has_its_own_values_and_else_those_of_the_defaults() {
    let config = load(user(
        "[agents.defaults.subagents]\nmaxDepth = 5\nmaxSpawns = 9\n[[agents.list]]\nid = \"scout\"\nsubagents.maxDepth = 2\n",
    ));
    let depth = |agent: &str| config.settings(&id(agent)).max_depth.map(|set| set.value.get());
    assert_eq!(depth("scout"), Some(2));
    assert_eq!(depth("main"), Some(5));
    assert_eq!(depth("nobody"), Some(5), "an undefined agent resolves as the defaults");
    assert_eq!(config.settings(&id("scout")).max_spawns.map(|set| set.value.get()), Some(9));
    assert!(config.is_defined(&id("scout")) && config.is_defined(&id("main")));
    assert!(!config.is_defined(&id("nobody")));
    let meant = |text| config.nearest_agent(&id(text)).map(AgentId::as_str);
    assert_eq!(
        [meant("scuot"), meant("mian"), meant("nobody")],
        [Some("scout"), Some("main"), None]
    );
    assert_eq!(config.settings(&id("main")).allow_recursive_spawn, None, "None: unset");
}

#[test]
fn a_flag_replaces_the_roots_own_value_and_no_other_agents() {
    let config = load(user("[[agents.list]]\nid = \"scout\"\nsubagents.maxDepth = 2\n").flag(
        "agents.defaults.subagents.maxDepth",
        7,
        "--max-depth",
    ));
    let scout = id("scout");
    assert_eq!(config.settings(&scout).max_depth.map(|set| set.value.get()), Some(2));
    assert_eq!(config.root_settings(&scout).max_depth.map(|set| set.value.get()), Some(7));
    assert_eq!(config.settings(&id("main")).max_depth.map(|set| set.value.get()), Some(7));
}

#[test]
fn agents_are_merged_by_id_over_files_of_both_formats() {
    let config = load(
        user("[[agents.list]]\nid = \"a\"\nmodel = \"m\"\nthinking = \"low\"\n[[agents.list]]\nid = \"b\"\n")
            .file(Source {
                kind: SourceKind::File,
                path: "f.json5".into(),
                text: "{agents: {list: [\n{id: 'b', description: 'x'},\n{id: 'a', thinking: 'high'},]}}".into(),
                format: Format::Json5,
            }),
    );
    let ids: Vec<&str> = config.agents().map(|agent| agent.id().as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let a = config.agent(&id("a")).expect("the agent is not defined");
    assert_eq!(a.model.as_ref().and_then(|set| set.value.primary.as_deref()), Some("m"));
    let thinking = a.thinking.clone().expect("set");
    assert_eq!(thinking.value, "high");
    let at = Origin::File { kind: SourceKind::File, path: "f.json5".into(), line: 3 };
    assert_eq!(thinking.origin, at);
}

#[test]
fn an_untrusted_project_is_named_and_ignored() {
    let loader = user("").file(file(SourceKind::Project, "this is not even TOML"));
    let config = load(loader.clone());
    let ignored: Vec<String> = config
        .ignored()
        .iter()
        .map(|ignored| format!("{}: {}", ignored.path.display(), ignored.reason))
        .collect();
    assert_eq!(ignored, ["Project.toml: the project is not trusted"]);
    assert!(loader.project_trusted(true).load().is_err(), "once trusted it is read");
}

#[test]
fn delegation_and_preferences_become_limits() {
    let config = load(user(
        "[[agents.list]]\nid = \"yes\"\ncanDelegate = true\npreferredSubagents = [{ git = \"commits\" }, { scan = \"checks\" }]\n[[agents.list]]\nid = \"both\"\ncanDelegate = true\nsubagents.allowRecursiveSpawn = false\nsubagents.allowAgents = [\"main\"]\npreferredSubagents = { git = \"commits\" }\n[[agents.list]]\nid = \"no\"\ncanDelegate = false\n",
    ));
    let yes = config.settings(&id("yes"));
    assert!(yes.allow_recursive_spawn.is_some_and(|set| set.value));
    assert_eq!(
        yes.allow_agents.map(|set| set.value),
        Some(AllowAgents::List(vec![id("yes"), id("git"), id("scan")])),
        "unset is the agent itself, and the preferred ones join it"
    );
    let both = config.settings(&id("both"));
    assert!(both.allow_recursive_spawn.is_some_and(|set| !set.value), "the limit itself is firmer");
    assert_eq!(
        both.allow_agents.map(|set| set.value),
        Some(AllowAgents::List(vec![id("main"), id("git")]))
    );
    assert_eq!(config.settings(&id("no")).allow_recursive_spawn, None);
    assert_eq!(
        config.agent(&id("no")).and_then(|agent| agent.can_delegate.as_ref()).map(|set| set.value),
        Some(false)
    );
}

#[test]
fn a_ceiling_below_the_built_in_value_holds_by_itself() {
    let system = "[ceiling]\nmaxConcurrent = 4\nmaxDepth = 9\nmaxChildrenPerAgent = 20\ndeadlineSeconds = 60\nallowAgents = [\"scout\"]\ntools = { deny = [\"exec\"] }\n";
    let config =
        load(Loader::new().file(file(SourceKind::System, system)).file(file(
            SourceKind::User,
            "[ceiling]\nmaxConcurrent = 3\nmaxChildrenPerAgent = 30\n",
        )));
    let check = |key: &str, value: Value, origin: &str| {
        assert_eq!(resolved(&config, "main", key), (value, origin.to_owned()), "{key}");
    };
    check("maxConcurrent", json!(3), "user file User.toml:2");
    check("maxChildrenPerAgent", json!(20), "system file System.toml:4");
    check("deadlineSeconds", json!(60), "system file System.toml:5");
    check("tools", json!({ "deny": ["exec"] }), "system file System.toml:7");
    check("maxDepth", json!(3), "built-in");
    // Unset is the agent itself, which is less than any list.
    check("allowAgents", json!(null), "built-in");
}

#[test]
fn foreign_keys_are_accepted_and_named() {
    let text = "{\n $schema: 'x', gateway: {port: 1}, channels: {},\n agents: {\n  defaults: {workspace: '~/w', heartbeat: {every: '1h'}, subagents: {maxConcurrent: 2, archiveAfterMinutes: 5, model: {primary: 'p', fallbacks: ['f']}, thinking: 'low'}},\n  list: [{id: 'main', default: true, name: 'Main', identity: {}, tools: {profile: 'coding', deny: ['cron']}, subagents: {allowAgents: ['*']}}],\n },\n}";
    let config = load(Loader::new().file(Source::new(SourceKind::User, "o.json5", text)));
    let foreign: Vec<String> =
        config.foreign().iter().map(|key| format!("{} {}", key.value, key.origin)).collect();
    assert_eq!(
        foreign,
        [
            "$schema user file o.json5:2",
            "gateway user file o.json5:2",
            "channels user file o.json5:2",
            "agents.defaults.workspace user file o.json5:4",
            "agents.defaults.heartbeat user file o.json5:4",
            "agents.list[0].default user file o.json5:5",
            "agents.list[0].name user file o.json5:5",
            "agents.list[0].identity user file o.json5:5",
            "agents.list[0].tools.profile user file o.json5:5",
        ]
    );
    assert_eq!(
        config.settings(&id("main")).allow_agents.map(|set| set.value),
        Some(AllowAgents::Any)
    );
}

#[test]
fn what_is_shown_has_every_value_once_with_its_origin() {
    let config = load(user(
        "[agents.defaults.subagents]\nmaxDepth = 2\n[runtimes.claude]\ndefaultUsd = 1.5\nwrap = [\"nice\"]\n[prices.m]\ninputPerMillion = 3\ndate = 2026-01-31\n[[agents.list]]\nid = \"scout\"\ncwd = \"/x\"\n",
    ));
    let shown: Vec<String> = config
        .values()
        .filter(|(_, valued)| valued.origin != Origin::BuiltIn)
        .map(|(key, Valued { value, origin })| format!("{key} = {value} ({origin})"))
        .collect();
    assert_eq!(
        shown,
        [
            "agents.defaults.subagents.maxDepth = 2 (user file User.toml:2)",
            "agents.list[scout].id = \"scout\" (user file User.toml:10)",
            "agents.list[scout].cwd = \"/x\" (user file User.toml:11)",
            "runtimes.claude.wrap = [\"nice\"] (user file User.toml:5)",
            "runtimes.claude.defaultUsd = 1.5 (user file User.toml:4)",
            "prices.m.inputPerMillion = 3.0 (user file User.toml:7)",
            "prices.m.date = \"2026-01-31\" (user file User.toml:8)",
        ]
    );
    let json = serde_json::to_value(Valued::new(3, Origin::BuiltIn))
        .expect("plain data does not serialise");
    assert_eq!(json, json!({ "value": 3, "origin": "built-in" }));
}

#[test]
fn the_digest_is_of_values_and_not_of_their_origins() {
    let toml = load(user("[agents.defaults.subagents]\nmaxDepth = 4\nmaxSpawns = 2\n"));
    let set = load(
        Loader::new()
            .set("agents.defaults.subagents.maxSpawns", 2)
            .set("agents.defaults.subagents.maxDepth", 4),
    );
    assert_eq!(toml.digest(), set.digest());
    assert_eq!(
        Config::default().digest(),
        load(user("agents.defaults.subagents.maxDepth = 3")).digest()
    );
    assert_ne!(Config::default().digest(), toml.digest());
}

/// The template with everything switched on.
pub(crate) fn template_in_force() -> String {
    let on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    init_template().lines().map(on).collect()
}

#[test]
fn the_template_changes_nothing_until_it_is_edited() {
    assert_eq!(load(user(&init_template())).digest(), Config::default().digest());
}

#[test]
fn the_template_shows_every_key_with_its_built_in_value() {
    let text = template_in_force().replace("[ceiling]\nmaxConcurrent = 8", "");
    let config = load(user(&text));
    let expected: Vec<_> = Config::default().resolve(&id("main")).collect();
    for ((key, built_in), (_, found)) in expected.into_iter().zip(config.resolve(&id("main"))) {
        if key == "toolsByDepth" {
            continue;
        }
        assert_ne!(found.origin, Origin::BuiltIn, "{key} is not in the template");
        if !built_in.value.is_null() {
            assert_eq!(found.value, built_in.value, "{key}");
        }
    }
    assert!(load(user(&template_in_force())).runtime("claude").is_some());
}

#[test]
fn the_schema_has_every_built_in_value_and_knows_the_template() {
    let schema = schema();
    for (key, built_in) in Config::default().resolve(&id("main")) {
        let mut properties = &schema["$defs"]["SubagentSettings"]["properties"];
        let (outer, last) =
            key.rsplit_once('.').map_or((None, key.as_str()), |(o, l)| (Some(o), l));
        if let Some(outer) = outer {
            let reference = properties[outer]["$ref"].as_str().expect("a section");
            properties =
                schema.pointer(&format!("{}/properties", &reference[1..])).expect("defined");
        }
        assert!(properties[last].is_object(), "{key}");
        if !built_in.value.is_null() && key != "toolsByDepth" {
            assert_eq!(properties[last]["default"], built_in.value, "{key}");
        }
    }
    let validator = jsonschema::draft202012::new(&schema).expect("a valid schema");
    let check = |text: &str, expected: bool| {
        let value: Value = toml::from_str(text).expect("valid TOML");
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert_eq!(errors.is_empty(), expected, "{text}: {errors:?}");
    };
    check(&template_in_force(), true);
    check("agents.defaults.subagents.maxDepth = 11", false);
    check("agents.defaults.subagents.maxDepht = 1", false);
    check("[[agents.list]]\nmodel = \"x\"", false);
    check("[[agents.list]]\nid = \"x\"\nmodel = { primary = 3 }", false);
    check("agents.defaults.heartbeat = 1", true);
}

proptest! {
    /// The last layer that sets a key has its origin, however many set it and in whatever order they are handed in.
    #[test]
    fn the_last_layer_that_sets_a_key_wins(
        layers in prop::collection::vec(prop::option::of(1_u32..1000), 6),
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        const KINDS: [SourceKind; 4] =
            [SourceKind::System, SourceKind::User, SourceKind::Project, SourceKind::File];
        let mut loader = Loader::new().project_trusted(true);
        for index in order {
            let text = layers[index].map_or(String::new(), |n| format!("\n{MAX_CONCURRENT} = {n}"));
            loader = loader.file(file(KINDS[index], &text));
        }
        if let Some(number) = layers[4] {
            let name = "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXCONCURRENT";
            loader = loader.environment([(name, number.to_string())]);
        }
        if let Some(number) = layers[5] {
            loader = loader.flag(MAX_CONCURRENT, number, "--max-concurrent");
        }
        let config = load(loader);
        let (value, origin) = resolved(&config, "main", "maxConcurrent");
        let last = layers.iter().rposition(Option::is_some);
        let expected = match last {
            None => "built-in",
            Some(0) => "system file System.toml:2",
            Some(1) => "user file User.toml:2",
            Some(2) => "project file Project.toml:2",
            Some(3) => "file File.toml:2",
            Some(4) => "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXCONCURRENT",
            Some(_) => "flag --max-concurrent",
        };
        prop_assert_eq!(origin, expected);
        let number = last.and_then(|index| layers[index]).unwrap_or(8);
        prop_assert_eq!(value, json!(number));
    }

    /// No text in either notation, and no variable, can do more than be refused.
    #[test]
    fn no_input_panics(text in "[\\[\\]{}:,.='\"\\\\/*#a-z0-9 \n-]{0,80}|\\PC{0,40}", name in "[A-Z_]{0,30}") {
        for format in [Format::Toml, Format::Json5] {
            let source = Source {
                kind: SourceKind::User, path: "x".into(), text: text.clone(), format,
            };
            if let Err(errors) = Loader::new().file(source).load() {
                prop_assert!(!errors.to_string().is_empty());
            }
        }
        let result = Loader::new().environment([(format!("OFFSHOOT__{name}"), text)]).load();
        if let Err(errors) = result {
            prop_assert!(!errors.problems().is_empty());
        }
    }
}

#[test]
fn times_are_numbers_of_seconds_or_texts_with_a_unit() {
    let key = "agents.defaults.subagents.runTimeoutSeconds";
    let check = |loader: Loader, expected: u64| {
        assert_eq!(resolved(&load(loader), "main", "runTimeoutSeconds").0, json!(expected));
    };
    for (text, expected) in [("90", 90), ("\"90s\"", 90), ("\"1h30m\"", 5400), ("\"0\"", 0)] {
        check(user(&format!("{key} = {text}\n")), expected);
    }
    check(Loader::new().flag(key, "2m", "--timeout"), 120);
    check(
        Loader::new()
            .environment([("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__RUNTIMEOUTSECONDS", "90s")]),
        90,
    );
    check(Loader::new().set(key, "1d"), 86_400);
    let text = "[notify]\nsilentSeconds = \"5m\"\n";
    let silent = load(user(text)).notify().silent_seconds.clone().map(|set| set.value.get());
    assert_eq!(silent, Some(300));
}
