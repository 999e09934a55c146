//! `offshoot mcp` below Codex and Gemini CLI, the real programs, started and set up as docs/mcp.md says, before a service that
//! answers by rules. All of them run in a network that has nothing but loopback.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_real_clients::{Clients, install};
use offshoot_test_support::alone_on_loopback;
use serde_json::{Value, json};

use crate::command::{Outcome, Place};
use crate::mcp;

/// The agent whose name the page gives to Codex.
const AGENT: &str = "#!/bin/sh\necho fig\n";

/// A server whose tools come without annotations, so that a client asks its user before each call.
const SILENT: &str = "#!/bin/sh\n'OFFSHOOT' \"$@\" | sed -u 's/,\"annotations\":{[^}]*}//g'\n";

/// The last text of the model.
const SERVED: &str = "it said fig\n";
const NOT_APPROVED: &str = "not approved\n";
const NOT_OFFERED: &str = "not offered\n";

/// A user with a client, in a place of their own.
struct User {
    place: Place,
    api: FakeModelApi,
    path: std::ffi::OsString,
}

impl User {
    /// A user of a client that puts this prefix before the names of the tools.
    fn new(clients: &Clients, prefix: &str) -> Self {
        let place = Place::new();
        program(&place, "my-agent", AGENT);
        let ours = Path::new(env!("CARGO_BIN_EXE_offshoot")).parent().expect("it is in a folder");
        let folders = [place.path().join("bin"), ours.to_owned(), clients.programs()];
        // The clients need node, which is where npm is.
        let path = std::env::var_os("PATH").expect("tests have a PATH");
        let folders = folders.into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).expect("no colon in a folder");
        let api = FakeModelApi::start(Script::new(rules(prefix))).expect("a free port");
        Self { place, api, path }
    }

    /// Runs a line of shell as this user.
    fn shell(&self, line: &str) -> Outcome {
        let mut command = self.place.command_of("sh", &["-c", line]);
        let home = self.place.path().join("home");
        command.env("PATH", &self.path).envs([
            ("CODEX_HOME", home.as_os_str()),
            ("MODEL_KEY", "none".as_ref()),
            ("GEMINI_API_KEY", "none".as_ref()),
            ("GOOGLE_GEMINI_BASE_URL", self.api.url().as_ref()),
        ]);
        self.place.outcome(command, &[])
    }

    /// Fails unless the client declared the tools as the server offers them, the answer of the child came back to the model, and
    /// the record has the child.
    #[track_caller]
    fn check_served(&self, declared: &BTreeMap<String, Value>) {
        assert_eq!(declared, &offered());
        let conversations = self.api.conversations();
        let steps: Vec<_> = conversations.iter().map(|asked| (asked.turn, asked.step)).collect();
        assert_eq!(steps, [(1, 1), (1, 2), (1, 3), (1, 4)]);
        let answered = |step: usize, what: &str| {
            let [answer] = &conversations[step].tool_results[..] else {
                panic!("one answer: {:?}", conversations[step])
            };
            assert!(answer.contains(what), "{answer}");
        };
        answered(1, r#""maySpawn":true"#);
        answered(2, r#""status":"accepted""#);
        answered(3, r#""data":"fig""#);
        let trees = self.place.run(&["tree", "--json"]).expect_code(0).json();
        let root = trees[0]["sessionKey"].as_str().expect("a key");
        assert!(root.starts_with("agent:main:mcp:"), "{root}");
        let children = trees[0]["children"].as_array().expect("a list");
        let ends: Vec<_> = children.iter().map(|child| &child["status"]).collect();
        assert_eq!(ends, ["completed"], "{trees}");
    }
}

/// The script of the model: it asks for its status, starts a child, waits for it, and repeats the child's answer.
fn rules(prefix: &str) -> impl IntoIterator<Item = Rule> {
    let tool = |name: &str| format!("{prefix}{name}");
    let calls = |name, input| Reply::call(tool(name), input);
    let at = |step, reply| Rule::when(Condition::Step(step), reply);
    let offers = Condition::Offers(tool("sessions_spawn"));
    [
        Rule::when(Condition::Not(Box::new(offers)), Reply::text(NOT_OFFERED.trim())),
        Rule::when(Condition::Result("requires approval".into()), Reply::text(NOT_APPROVED.trim())),
        at(1, calls("sessions_status", json!({}))),
        at(2, calls("sessions_spawn", json!({"task": "name a fruit"}))),
        at(3, calls("sessions_wait", json!({"runs": ["{{result:/runId}}"]}))),
        at(4, Reply::text("it said {{result:/ended/0/data}}")),
    ]
}

/// The schemas of the server's tools, by name.
fn offered() -> BTreeMap<String, Value> {
    let place = Place::new();
    let mut client = mcp::Client::start(&place, &["--", "true"]);
    let tools = client.tools();
    client.leave();
    schemas(&tools, "", "inputSchema")
}

/// The schemas of the tools with this prefix, by the rest of the name.
fn schemas(tools: &Value, prefix: &str, field: &str) -> BTreeMap<String, Value> {
    let tools = tools.as_array().expect("a list of tools").iter();
    let named = tools.filter_map(|tool| Some((tool["name"].as_str()?.strip_prefix(prefix)?, tool)));
    named.map(|(name, tool)| (name.to_owned(), tool[field].clone())).collect()
}

/// Writes a script that the search path finds.
fn program(place: &Place, name: &str, text: &str) {
    let file = place.file(&format!("bin/{name}"), text);
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("the mode cannot be set");
}

/// The page for users of clients.
pub(crate) fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    fs::read_to_string(page).expect("the test was built from there")
}

/// The part of the page between these two texts.
fn between<'p>(page: &'p str, before: &str, after: &str) -> &'p str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("the page has {before:?}"));
    rest.split_once(after).unwrap_or_else(|| panic!("the page has {after:?}")).0
}

/// The name and version of a client that is installed, as the page writes them.
fn pinned(name: &str, package: &str) -> String {
    let manifest = include_str!("../../../../tests/real-clients/package.json");
    let manifest: Value = serde_json::from_str(manifest).expect("JSON");
    format!("{name} {}", manifest["dependencies"][package].as_str().expect("an exact version"))
}

/// The setting of the page with which a client does not ask its user.
pub(crate) fn setting<'p>(page: &'p str, client: &str) -> &'p str {
    between(page, &format!("\n| {client} | `"), "`")
}

#[test]
fn codex_calls_the_tools_as_the_page_says() {
    let Some(clients) = install("codex_calls_the_tools_as_the_page_says") else { return };
    if !alone_on_loopback("mcp_clients::codex_calls_the_tools_as_the_page_says") {
        return;
    }
    let page = page();
    assert!(page.contains(&pinned("Codex", "@openai/codex")), "the page names what is tested");
    let add = between(&page, "\nCodex:\n\n```sh\n", "\n```");
    let approve = setting(&page, "Codex");
    let table = "[mcp_servers.offshoot]";
    assert!(page.contains(&format!("`{approve}` in `{table}`")), "{approve}");
    let check = |silent: bool, setting: &str, expected: &str| {
        let user = User::new(clients, "mcp__offshoot.");
        if silent {
            program(
                &user.place,
                "offshoot",
                &SILENT.replace("OFFSHOOT", env!("CARGO_BIN_EXE_offshoot")),
            );
        }
        let service = user.api.url();
        let config = user.place.file(
            "home/config.toml",
            format!(
                "model = \"some\"\nmodel_provider = \"here\"\ncheck_for_update_on_startup = false\n\
                 analytics.enabled = false\n[model_providers.here]\nname = \"here\"\nwire_api = \"responses\"\n\
                 base_url = \"{service}/v1\"\nenv_key = \"MODEL_KEY\"\n"
            ),
        );
        user.shell(add).expect_code(0);
        let text = fs::read_to_string(&config).expect("the file cannot be read");
        assert!(text.contains(table), "{text}");
        fs::write(&config, text.replace(table, &format!("{table}\n{setting}")))
            .expect("the file cannot be written");
        let outcome = user.shell("codex exec --skip-git-repo-check 'ask for a fruit'");
        let outcome = outcome.expect_code(0);
        assert_eq!(outcome.stdout(), expected, "{silent} {setting:?}: {}", outcome.text());
        if expected == SERVED {
            let request = user.api.requests().swap_remove(0).body;
            let tools = request["tools"].as_array().expect("a list of tools");
            let group = tools.iter().find(|tool| tool["name"] == "mcp__offshoot").expect("a group");
            for tool in group["tools"].as_array().expect("a list of tools") {
                assert_eq!((&tool["type"], &tool["strict"]), (&"function".into(), &false.into()));
            }
            user.check_served(&schemas(&group["tools"], "", "parameters"));
        }
    };
    check(false, "", SERVED);
    check(false, approve, SERVED);
    check(false, &approve.replace("approve\"", "prompt\""), NOT_APPROVED);
    check(true, "", NOT_APPROVED);
    check(true, approve, SERVED);
}

#[test]
fn gemini_calls_the_tools_as_the_page_says() {
    let Some(clients) = install("gemini_calls_the_tools_as_the_page_says") else { return };
    if !alone_on_loopback("mcp_clients::gemini_calls_the_tools_as_the_page_says") {
        return;
    }
    let page = page();
    let version = pinned("Gemini CLI", "@google/gemini-cli");
    assert!(page.contains(&version), "the page names what is tested");
    let entry = between(&page, "writes one as `.mcp.json`:\n\n```json\n", "\n```");
    let trust = setting(&page, "Gemini");
    let trust: Value = serde_json::from_str(&format!("{{{trust}}}")).expect("JSON");
    let headless = between(&page, "`gemini -p` ends at once; `", "`");
    let check = |trusted: bool, expected: &str| {
        let user = User::new(clients, "mcp_offshoot_");
        let mut settings: Value = serde_json::from_str(entry).expect("JSON");
        let server = &mut settings["mcpServers"]["offshoot"];
        let words = server["args"].as_array_mut().expect("words");
        words.extend(["--".into(), "my-agent".into()]);
        if trusted {
            let server = server.as_object_mut().expect("a table");
            server.extend(trust.as_object().expect("a table").clone());
        }
        settings["security"] = json!({"auth": {"selectedType": "gemini-api-key"}});
        settings["telemetry"] = json!({"enabled": false});
        settings["privacy"] = json!({"usageStatisticsEnabled": false});
        settings["general"] = json!({"enableAutoUpdate": false});
        user.place.file("home/.gemini/settings.json", settings.to_string());
        let outcome = user.shell(&format!("gemini {headless} -m some -p 'ask for a fruit'"));
        let outcome = outcome.expect_code(0);
        assert_eq!(outcome.stdout(), expected, "{trusted}: {}", outcome.text());
        if expected == SERVED {
            let request = user.api.requests().swap_remove(0).body;
            let declared = &request["tools"][0]["functionDeclarations"];
            let mut declared = schemas(declared, "mcp_offshoot_", "parametersJsonSchema");
            for schema in declared.values_mut() {
                // Gemini CLI adds it to every tool.
                let fields = schema["properties"].as_object_mut().expect("a table");
                fields.remove("wait_for_previous").expect("an argument of its own");
            }
            user.check_served(&declared);
        }
    };
    check(true, SERVED);
    check(false, NOT_OFFERED);
}
