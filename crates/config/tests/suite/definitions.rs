//! Agents from Markdown with front matter.

use offshoot_config::{
    AgentDefinition, AgentId, AllowAgents, Config, Loader, Origin, Source, SourceKind,
};
use proptest::prelude::*;

const CHEZMOI: &str = "\
---
name: chezmoi-workflow
description: Applies dotfiles: carefully
tools: Read, Grep, Glob
disallowedTools: [Bash]
model: sonnet
effort: high
maxTurns: 12
can_delegate: true
max_depth: 2
preferred_subagents:
  - git-coordinator: \"For commit formatting\"
  - security-scanner: For validation
color: blue
hooks:
  - one
---

You apply dotfiles.

Nothing else.
";

fn load(kind: SourceKind, text: &str) -> Result<Config, Vec<String>> {
    Loader::new()
        .file(Source::new(kind, "agents/a.md", text))
        .project_trusted(true)
        .load()
        .map_err(|errors| errors.to_string().lines().map(str::to_owned).collect())
}

fn agent<'a>(config: &'a Config, id: &str) -> &'a AgentDefinition {
    config.agent(&AgentId::parse(id).expect("the text is no id")).expect("the agent is not defined")
}

#[test]
fn every_key_of_front_matter_has_its_place_in_a_definition() {
    // YAML forbids a colon within plain words.
    let text = CHEZMOI.replace("dotfiles: carefully", "dotfiles carefully");
    let config = load(SourceKind::ProjectDefinition, &text).expect("a good definition");
    let id = AgentId::parse("chezmoi-workflow").expect("the text is no id");
    let agent = agent(&config, "chezmoi-workflow");
    let at = |line| Origin::File {
        kind: SourceKind::ProjectDefinition,
        path: "agents/a.md".into(),
        line,
    };
    assert_eq!(agent.origin(), &at(2));
    let description = agent.description.as_ref().expect("set");
    assert_eq!(
        (description.value.as_str(), &description.origin),
        ("Applies dotfiles carefully", &at(3))
    );
    let tools = &agent.tools.as_ref().expect("set").value;
    assert_eq!(tools.allow.as_deref(), Some(&["Read", "Grep", "Glob"].map(String::from)[..]));
    assert_eq!(tools.deny, ["Bash"]);
    assert_eq!(agent.thinking.as_ref().map(|set| set.value.as_str()), Some("high"));
    assert_eq!(agent.max_turns.as_ref().map(|set| set.value.get()), Some(12));
    let prompt = agent.system_prompt.as_ref().expect("the body");
    assert_eq!(prompt.value, "You apply dotfiles.\n\nNothing else.");
    let other = &agent.other.as_ref().expect("kept").value;
    assert_eq!(
        serde_json::to_string(&**other).expect("plain"),
        r#"{"color":"blue","hooks":["one"]}"#
    );
    let settings = config.settings(&id);
    assert_eq!(settings.max_depth.map(|set| set.value.get()), Some(2));
    assert!(settings.allow_recursive_spawn.is_some_and(|set| set.value));
    let allowed = ["chezmoi-workflow", "git-coordinator", "security-scanner"];
    let allowed = allowed.map(|id| AgentId::parse(id).expect("the text is no id")).to_vec();
    assert_eq!(settings.allow_agents.map(|set| set.value), Some(AllowAgents::List(allowed)));
}

#[test]
fn what_is_wrong_in_a_definition_has_its_place() {
    let check = |text: &str, expected: &[&str]| {
        let found = load(SourceKind::UserDefinition, text).err().unwrap_or_default();
        assert_eq!(found, expected, "{text}");
    };
    check("---\nname: a\n---\n", &[]);
    check("---\r\nname: a\r\nmodel: inherit\r\ntools:\r\n---\r\nbody", &[]);
    // By hand: words with colons.
    check(
        "---\nname: a\ndescription: Use it when: always. <example>Context: x</example>\n---\n",
        &[],
    );
    let no_front =
        "agents/a.md:1:1: a definition begins with front matter between two lines of `---`";
    check("", &[no_front]);
    check("# Agent\n", &[no_front]);
    check("---\nname: a\n", &[no_front]);
    check("---\ndescription: x\n---\n", &["agents/a.md:2:1: an agent needs its `name`"]);
    check("---\n- a\n---\n", &["agents/a.md:2:1: found a list, allowed is keys with values"]);
    check(
        "---\nname: A b\nmax_depth: 11\ncan_delegate: maybe\nmaxTurns: 0\n---\n",
        &[
            "agents/a.md:2:7: name: found \"A b\", allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -",
            "agents/a.md:3:12: max_depth: found 11, allowed is a whole number from 1 to 10",
            "agents/a.md:4:15: can_delegate: found \"maybe\", allowed is true or false",
            "agents/a.md:5:11: maxTurns: found 0, allowed is a whole number of at least 1",
        ],
    );
    check(
        "---\nname: a\ntools: 7\ndisallowedTools: [true]\ndescription: 1.5\n---\n",
        &[
            "agents/a.md:3:8: tools: found 7, allowed is a list of texts",
            "agents/a.md:4:19: disallowedTools[0]: found true, allowed is text that is not empty",
            "agents/a.md:5:14: description: found 1.5, allowed is text that is not empty",
        ],
    );
    check("---\nname: a\ntools: '7'\nmaxTurns: '3'\nmax_depth: 2\n---\n", &[]);
    check(
        "---\nname: a\nname: b\n---\n",
        &["agents/a.md:3:1: name: set twice, first at agents/a.md:2:1"],
    );
    let message = &load(SourceKind::UserDefinition, CHEZMOI).expect_err("a colon in words")[0];
    assert!(message.starts_with("agents/a.md:3:"), "{message}");
}

#[test]
fn a_definition_stands_below_the_file_of_the_same_owner_and_obeys_ceilings() {
    let loader = Loader::new()
        .file(Source::new(
            SourceKind::UserDefinition,
            "a.md",
            "---\nname: a\nmodel: x\neffort: low\n---\n",
        ))
        .file(Source::new(
            SourceKind::User,
            "c.toml",
            "[[agents.list]]\nid = \"a\"\nmodel = \"y\"\n",
        ))
        .file(Source::new(
            SourceKind::ProjectDefinition,
            "p.md",
            "---\nname: a\nmodel: z\nmax_depth: 5\n---\n",
        ));
    let model = |config: &Config| {
        agent(config, "a").model.clone().and_then(|set| set.value.primary).unwrap_or_default()
    };
    let untrusted = loader.clone().load().expect("good");
    assert_eq!(model(&untrusted), "y");
    assert_eq!(untrusted.ignored().len(), 1);
    let loader = loader.project_trusted(true);
    let trusted = loader.clone().load().expect("good");
    assert_eq!(model(&trusted), "z");
    assert_eq!(agent(&trusted, "a").thinking.as_ref().map(|set| set.value.as_str()), Some("low"));
    let errors = loader
        .file(Source::new(SourceKind::System, "s.toml", "ceiling.maxDepth = 4"))
        .load()
        .expect_err("too deep");
    assert_eq!(
        errors.to_string(),
        "p.md:4: agents.list[a].subagents.maxDepth: found 5, allowed is 4 by the ceiling of system file s.toml:1"
    );
}

proptest! {
    #[test]
    fn no_definition_panics(text in "(---\n)?[a-z:\\-\\[\\]{}|>&*!'\" \n#?,]{0,60}(\n---\n)?\\PC{0,10}") {
        if let Err(problems) = load(SourceKind::UserDefinition, &text) {
            prop_assert!(!problems.is_empty());
        }
    }
}
