//! The errors of a configuration: each with its place, the value that was found and those that are allowed.

use offshoot_config::{Format, Loader, Source, SourceKind};

fn source(kind: SourceKind, path: &str, text: &str) -> Source {
    Source::new(kind, path, text)
}

/// The messages for one user file.
fn messages(path: &str, text: &str) -> Vec<String> {
    match Loader::new().file(source(SourceKind::User, path, text)).load() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn each_error_has_its_place() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(messages(path, text), expected, "{text}");
    };
    // Unknown keys, with the nearest known one.
    check(
        "c.toml",
        "[agents.defaults.subagents]\nmaxDepht = 3\n",
        &["c.toml:2:1: agents.defaults.subagents.maxDepht: unknown key, nearest is `maxDepth`"],
    );
    check(
        "c.json5",
        "{\n  agents: { defaults: { subagents: { maxSpawnDepth: 2 } } },\n}",
        &[
            "c.json5:2:38: agents.defaults.subagents.maxSpawnDepth: unknown key, nearest is `maxDepth`",
        ],
    );
    check("c.toml", "colour = 1", &["c.toml:1:1: colour: unknown key"]);
    // Wrong types.
    check(
        "c.toml",
        "agents.defaults.subagents.maxDepth = \"three\"",
        &[
            "c.toml:1:38: agents.defaults.subagents.maxDepth: found \"three\", allowed is a whole number from 1 to 10",
        ],
    );
    check(
        "c.json5",
        "{agents: {defaults: {subagents: {allowRecursiveSpawn: 1}}}}",
        &[
            "c.json5:1:55: agents.defaults.subagents.allowRecursiveSpawn: found 1, allowed is true or false",
        ],
    );
    check("c.toml", "agents = 3", &["c.toml:1:10: agents: found 3, allowed is a table"]);
    check("c.json5", "{agents: null}", &["c.json5:1:10: agents: found null, allowed is a table"]);
    check("c.json5", "[]", &["c.json5:1:1: found a list, allowed is a table"]);
    check(
        "c.toml",
        "[agents]\nlist = {}",
        &["c.toml:2:8: agents.list: found a table, allowed is a list of agents"],
    );
    // Out of range.
    check(
        "c.toml",
        "[agents.defaults.subagents]\nmaxDepth = 11\nmaxConcurrent = 0\nmaxChildrenPerAgent = 1001\nrunTimeoutSeconds = -1\nannounceTimeoutMs = 0\n",
        &[
            "c.toml:2:12: agents.defaults.subagents.maxDepth: found 11, allowed is a whole number from 1 to 10",
            "c.toml:3:17: agents.defaults.subagents.maxConcurrent: found 0, allowed is a whole number of at least 1",
            "c.toml:4:23: agents.defaults.subagents.maxChildrenPerAgent: found 1001, allowed is a whole number from 1 to 1000",
            "c.toml:5:21: agents.defaults.subagents.runTimeoutSeconds: found -1, allowed is a whole number of at least 0",
            "c.toml:6:21: agents.defaults.subagents.announceTimeoutMs: found 0, allowed is a whole number of at least 1",
        ],
    );
    // No durations.
    check(
        "c.toml",
        "[agents.defaults.subagents]\nrunTimeoutSeconds = \"-1s\"\ngraceSeconds = \"soon\"\nmaxSpawns = \"90s\"\n",
        &[
            "c.toml:2:21: agents.defaults.subagents.runTimeoutSeconds: found \"-1s\", allowed is a whole number of seconds, or a text such as \"90s\" or \"1h30m\"",
            "c.toml:3:16: agents.defaults.subagents.graceSeconds: found \"soon\", allowed is a whole number of seconds, or a text such as \"90s\" or \"1h30m\"",
            "c.toml:4:13: agents.defaults.subagents.maxSpawns: found \"90s\", allowed is a whole number of at least 1",
        ],
    );
    check(
        "c.json5",
        "{agents: {defaults: {subagents: {maxDepth: 3.5, maxSpawns: 1e3, budget: {share: 1.5, usd: 0.0000001}}}}}",
        &[
            "c.json5:1:44: agents.defaults.subagents.maxDepth: found 3.5, allowed is a whole number from 1 to 10",
            "c.json5:1:60: agents.defaults.subagents.maxSpawns: found 1000.0, allowed is a whole number of at least 1",
            "c.json5:1:81: agents.defaults.subagents.budget.share: found 1.5, allowed is `pool`, or a number from 0 to 1 with at most six decimals",
            "c.json5:1:91: agents.defaults.subagents.budget.usd: found 1e-7, allowed is an amount in dollars up to 1000000000.00, with at most six decimals, such as 0.25",
        ],
    );
    check(
        "c.json5",
        "{agents: {defaults: {subagents: {budget: {usd: NaN, tokens: 99999999999999999999999999}}}}}",
        &[
            "c.json5:1:48: agents.defaults.subagents.budget.usd: found NaN, allowed is an amount in dollars up to 1000000000.00, with at most six decimals, such as 0.25",
            "c.json5:1:61: agents.defaults.subagents.budget.tokens: found 1e26, allowed is a whole number of at least 0",
        ],
    );
    check(
        "c.toml",
        "[agents.defaults.subagents]\nonParentEnd = \"kill\"\ntoolsByDepth = { 11 = {}, 2 = { alow = [] } }",
        &[
            "c.toml:2:15: agents.defaults.subagents.onParentEnd: found \"kill\", allowed is one of letFinish, cascade",
            "c.toml:3:18: agents.defaults.subagents.toolsByDepth.11: found \"11\", allowed is a depth from 0 to 10",
            "c.toml:3:33: agents.defaults.subagents.toolsByDepth.2.alow: unknown key, nearest is `allow`",
        ],
    );
    // Agents.
    check(
        "c.toml",
        "[[agents.list]]\nid = \"scout\"\n[[agents.list]]\nid = \"scout\"\n",
        &["c.toml:4:6: agents.list[1].id: agent `scout` is defined twice, first at c.toml:2:6"],
    );
    check(
        "c.json5",
        "{agents: {list: [{id: 'Scout'}, {id: ''}, {}, 'x', {id: 'a b'}]}}",
        &[
            "c.json5:1:23: agents.list[0].id: found \"Scout\", allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -",
            "c.json5:1:38: agents.list[1].id: found \"\", allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -",
            "c.json5:1:43: agents.list[2]: an agent needs its `id`",
            "c.json5:1:47: agents.list[3]: found \"x\", allowed is a table",
            "c.json5:1:57: agents.list[4].id: found \"a b\", allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -",
        ],
    );
    check(
        "c.json5",
        "{agents: {list: [{id: 'a', command: [], subagents: {allowAgents: ['*', 'B']}, model: {primry: 'x'}}]}}",
        &[
            "c.json5:1:37: agents.list[0].command: found a list, allowed is a list of a program and its arguments, such as [\"grep\", \"-c\", \"x\"]",
            "c.json5:1:72: agents.list[0].subagents.allowAgents[1]: found \"B\", allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -",
            "c.json5:1:87: agents.list[0].model.primry: unknown key, nearest is `primary`",
        ],
    );
    // Keys that stand twice.
    check(
        "c.json5",
        "{\n prices: {},\n prices: {},\n}",
        &["c.json5:3:2: prices: set twice, first at c.json5:2:2"],
    );
    // Names and the rest.
    check(
        "c.toml",
        "[runtimes.\"my runtime\"]\n[prices.m]\ndate = 2026-02-30\n",
        &["c.toml:3:8: invalid date, expected day between 01 and 28"],
    );
    check(
        "c.toml",
        "[runtimes.\"my runtime\"]\n[prices.m]\ndate = \"2026-02-30\"\n[runtimes.claude]\npark = 1\n",
        &[
            "c.toml:1:11: runtimes.my runtime: found \"my runtime\", allowed is a name of a-z, 0-9, _ and -, such as claude",
            "c.toml:3:8: prices.m.date: found \"2026-02-30\", allowed is a date such as 2026-01-31",
            "c.toml:5:8: runtimes.claude.park: found 1, allowed is one of auto, keep, resume",
        ],
    );
    // A mark of UTF-8 is no character of either notation, and characters are counted, not bytes.
    check("c.toml", "\u{feff}x = 1", &["c.toml:1:1: x: unknown key"]);
    check(
        "c.json5",
        "\u{feff}{'é': 1, x: 1}",
        &["c.json5:1:2: é: unknown key", "c.json5:1:10: x: unknown key"],
    );
    // Text that is neither.
    check("c.json5", "{agents: ", &["c.json5:1:10: the text ends in the middle: unfinished value"]);
}

#[test]
fn an_untyped_text_is_read_as_its_key_needs() {
    let check = |name: &str, value: &str, expected: &[&str]| {
        let errors = Loader::new()
            .environment([(name, value)])
            .load()
            .err()
            .map(|errors| errors.to_string())
            .unwrap_or_default();
        assert_eq!(errors.lines().collect::<Vec<_>>(), expected, "{name}={value}");
    };
    const SUBAGENTS: &str = "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__";
    for (key, value) in [
        ("MAXDEPTH", "4"),
        ("maxDepth", "4"),
        ("ALLOWRECURSIVESPAWN", "true"),
        ("BUDGET__USD", "2.50"),
        ("BUDGET", "{usd: 1, tokens: 5}"),
        ("ALLOWAGENTS", "scout, main"),
        ("ALLOWAGENTS", "['*']"),
        ("MODEL", "sonnet"),
        ("MODEL", "{primary: 'a', fallbacks: ['b']}"),
        ("TOOLS", "{allow: ['read']}"),
    ] {
        check(&format!("{SUBAGENTS}{key}"), value, &[]);
    }
    check("OFFSHOOT__RUNTIMES__CLAUDE__DEFAULTUSD", "1", &[]);
    check("OFFSHOOT__AGENTS__LIST", "[{id: 'scout'}]", &[]);
    // Not settings.
    check("OFFSHOOT_DATA_DIR", "/tmp", &[]);
    check("OFFSHOOT_CONFIG", "x", &[]);
    check("PATH", "/bin", &[]);
    check(
        "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAX_DEPTH",
        "4",
        &[
            "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAX_DEPTH: agents.defaults.subagents.MAX_DEPTH: unknown key, nearest is `maxDepth`",
        ],
    );
    check(
        "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXDEPTH",
        "deep",
        &[
            "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXDEPTH: agents.defaults.subagents.maxDepth: found \"deep\", allowed is a whole number from 1 to 10",
        ],
    );
    check("OFFSHOOT__", "4", &["environment OFFSHOOT__: unknown key"]);
    check(
        "OFFSHOOT__CEILING__MAXDEPTH",
        "4",
        &[
            "environment OFFSHOOT__CEILING__MAXDEPTH: ceiling: a ceiling may only stand in the system or user file",
        ],
    );
}

#[test]
fn all_layers_are_reported_together() {
    let errors = Loader::new()
        .flag("agents.defaults.subagents.maxDepth", 0, "--max-depth")
        .file(source(SourceKind::File, "b.toml", "x = 1"))
        .file(source(SourceKind::System, "a.toml", "y = [\n"))
        .load()
        .expect_err("three mistakes");
    let lines: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "a.toml:1:6: unclosed array, expected `]`",
            "b.toml:1:1: x: unknown key",
            "flag --max-depth: agents.defaults.subagents.maxDepth: found 0, allowed is a whole number from 1 to 10",
        ]
    );
}

#[test]
fn a_hint_lists_the_keys_that_could_stand_there() {
    let errors = Loader::new()
        .file(source(SourceKind::User, "c.toml", "agents.defaults.subagents.retries.tries = 1"))
        .load()
        .expect_err("no such key");
    assert_eq!(
        errors.problems()[0].hint().as_deref(),
        Some("known keys here: count, on, backoffSeconds, jitter")
    );
}

#[test]
fn above_a_ceiling_both_places_are_named() {
    let system = "[ceiling]\nmaxDepth = 4\nrunTimeoutSeconds = 600\nallowCycles = false\nallowAgents = [\"scout\"]\ntools = { deny = [\"exec\"] }\nbudget.usd = 10\ntoolsByDepth = { 2 = { allow = [\"read\"] } }\n";
    let user = "[agents.defaults.subagents]\nmaxDepth = 5\nrunTimeoutSeconds = 0\nallowCycles = true\nallowAgents = [\"*\"]\ntools = { allow = [\"read\", \"exec\"] }\nbudget.usd = 10.000001\ntoolsByDepth = { 2 = {} }\n[[agents.list]]\nid = \"a\"\nsubagents.maxDepth = 9\npreferredSubagents = [{ \"other\" = \"why\" }]\n";
    let errors = Loader::new()
        .file(source(SourceKind::System, "s.toml", system))
        .file(source(SourceKind::User, "u.toml", user))
        .flag("agents.defaults.subagents.maxDepth", 10, "--max-depth")
        .load()
        .expect_err("all too much");
    let lines: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "u.toml:2: agents.defaults.subagents.maxDepth: found 5, allowed is 4 by the ceiling of system file s.toml:2",
            "u.toml:3: agents.defaults.subagents.runTimeoutSeconds: found 0, allowed is 600 by the ceiling of system file s.toml:3",
            "u.toml:4: agents.defaults.subagents.allowCycles: found true, allowed is false by the ceiling of system file s.toml:4",
            "u.toml:5: agents.defaults.subagents.allowAgents: found [\"*\"], allowed is [\"scout\"] by the ceiling of system file s.toml:5",
            "u.toml:6: agents.defaults.subagents.tools: found {\"allow\":[\"read\",\"exec\"]}, allowed is {\"deny\":[\"exec\"]} by the ceiling of system file s.toml:6",
            "u.toml:7: agents.defaults.subagents.budget.usd: found 10.000001, allowed is 10.0 by the ceiling of system file s.toml:7",
            "u.toml:8: agents.defaults.subagents.toolsByDepth.2: found {}, allowed is {\"allow\":[\"read\"]} by the ceiling of system file s.toml:8",
            "u.toml:11: agents.list[a].subagents.maxDepth: found 9, allowed is 4 by the ceiling of system file s.toml:2",
            "u.toml:12: agents.list[a].preferredSubagents: found [{\"other\":\"why\"}], allowed is [\"scout\"] by the ceiling of system file s.toml:5",
            "flag --max-depth: agents.defaults.subagents.maxDepth: found 10, allowed is 4 by the ceiling of system file s.toml:2",
        ]
    );
    assert_eq!(
        errors.problems()[0].hint().as_deref(),
        Some("lower the value, or raise the ceiling in the system file s.toml:2")
    );
}

#[test]
fn a_ceiling_bounds_only_what_has_a_more_and_a_less() {
    assert_eq!(
        messages("c.toml", "[ceiling]\ncleanup = \"keep\"\nbudget.keep = 0.1\n"),
        [
            "c.toml:2: ceiling.cleanup: a ceiling cannot bound this key",
            "c.toml:3: ceiling.budget.keep: a ceiling cannot bound this key",
        ]
    );
}

#[test]
fn a_format_is_told_by_the_ending() {
    assert_eq!(Format::of("x/config.json5".as_ref()), Some(Format::Json5));
    assert_eq!(Format::of("x/config.toml".as_ref()), Some(Format::Toml));
    assert_eq!(Format::of("x/config".as_ref()), None);
}

#[test]
fn text_without_quotes_is_named_with_them() {
    for word in ["none", "infinite", "on-error", "three"] {
        let text = format!("[runtimes.openai]\ncost = {word} # free\n");
        let found = messages("c.toml", &text);
        let expected = format!("text stands in quotes: cost = \"{word}\"");
        assert!(found[0].ends_with(&expected) && found[0].starts_with("c.toml:2:"), "{found:?}");
    }
    assert!(!messages("c.toml", "[runtimes.openai]\ncost = nope nope\n").is_empty());
}

#[test]
fn a_key_that_stands_twice_is_named_with_both_places() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(messages(path, text), expected, "{text}");
    };
    let depth = "agents.defaults.subagents.maxDepth";
    check(
        "c.toml",
        "# one\n[agents.defaults.subagents]\nmaxDepth = 2\n\n\"maxDepth\" = 3\n",
        &[&format!("c.toml:5:1: {depth}: set twice, first in line 3")],
    );
    check(
        "c.toml",
        "[agents.defaults.subagents]\nmaxDepth = 2\n[notify]\n[agents.defaults.subagents]\n",
        &["c.toml:4:18: agents.defaults.subagents: set twice, first in line 1"],
    );
    check(
        "c.toml",
        "agents.list = [{ id = \"a\" }, { id = \"b\", id = \"c\" }]\n",
        &["c.toml:1:42: agents.list[1].id: set twice, first in line 1"],
    );
    check(
        "c.toml",
        "[[agents.list]]\nid = \"a\"\nmodel = \"m\"\nmodel = \"n\"\nid = \"b\"\n",
        &[
            "c.toml:4:1: agents.list[0].model: set twice, first in line 3",
            "c.toml:5:1: agents.list[0].id: set twice, first in line 2",
        ],
    );
    check(
        "c.json5",
        "{agents: {defaults: {subagents: {maxDepth: 2,\nmaxDepth: 3}}}}",
        &[&format!("c.json5:2:1: {depth}: set twice, first at c.json5:1:34")],
    );
}
