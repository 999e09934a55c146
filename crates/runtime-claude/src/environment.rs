//! The environment of the program: what it inherits, and what it is told. Pure.

use std::ffi::OsStr;

use offshoot_runtime::{
    Credential, Launch, USUAL_VARIABLES, Variable, identity_variables, is_named, pass_variables,
};

use crate::{ClaudeOptions, Compaction};

/// Names that it inherits besides the usual ones; a `*` at either end stands for anything.
const ALLOWED: &[&str] = &[
    "NODE_EXTRA_CA_CERTS",
    "ANTHROPIC_*",
    "DISABLE_*",
    "API_TIMEOUT_MS",
    "MAX_THINKING_TOKENS",
    // By name: a session of the program gives what it starts variables of its own, which are the way into that session.
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING",
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_DISABLE_THINKING",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_ENABLE_TELEMETRY",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_PROXY_RESOLVES_HOSTS",
    "CLAUDE_CODE_SHELL",
    "CLAUDE_CODE_SHELL_PREFIX",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_TMPDIR",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// Variables that it inherits in addition where it reaches its models through a cloud, by the variable that says so. They hold
/// keys to more than models, so they are passed on only there.
const CLOUDS: &[(&str, &[&str])] = &[
    (
        "CLAUDE_CODE_USE_BEDROCK",
        &[
            "AWS_ACCESS_KEY_ID",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_CONFIG_FILE",
            "AWS_CONTAINER_CREDENTIALS_*",
            "AWS_DEFAULT_REGION",
            "AWS_PROFILE",
            "AWS_REGION",
            "AWS_ROLE_ARN",
            "AWS_ROLE_SESSION_NAME",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ],
    ),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &[
            "CLOUD_ML_REGION",
            "CLOUDSDK_CONFIG",
            "GCLOUD_PROJECT",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "VERTEX_REGION_*",
        ],
    ),
    ("CLAUDE_CODE_USE_FOUNDRY", &["AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"]),
];

/// The variables that every run gets, whatever its launch.
const ALWAYS: &[(&str, &str)] = &[
    // A program that replaces itself while a tree of it runs is another program for the later ones.
    ("DISABLE_AUTOUPDATER", "1"),
    // It would read each file that a task names behind an `@`, whatever the run's rights are.
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    // Work in the background would begin a turn of its own when it ends, and no limit would count that turn.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
    ("CLAUDE_CODE_DISABLE_WORKFLOWS", "1"),
];

/// The variables of a run with our own tools. A call of ours may wait for children, and how long a run may take is decided by its
/// grant, not by the program.
const WITH_OWN_SERVER: &[(&str, &str)] = &[
    // In milliseconds: a day.
    ("MCP_TOOL_TIMEOUT", "86400000"),
    // As long as a call says nothing. Zero: for ever.
    ("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "0"),
    // A call that goes on behind the model's back would bring its answer as a turn of its own.
    ("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "0"),
    ("CLAUDE_CODE_DISABLE_MCP_TASK_BACKGROUND", "1"),
    // On a busy machine our server is not up within the program's five seconds.
    ("MCP_CONNECT_TIMEOUT_MS", "60000"),
    ("MCP_TIMEOUT", "60000"),
];

/// Parts of the names of variables whose values are secret.
const SECRET: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH", "CREDENTIAL"];

/// Values that are not to be recorded: of names that say so, and of those that the operator has added.
pub(crate) fn secrets(inherited: &[Variable]) -> Vec<String> {
    let clouds = || CLOUDS.iter().flat_map(|(_, names)| *names);
    let patterns = || USUAL_VARIABLES.iter().chain(ALLOWED).chain(clouds()).copied();
    let usual = |name: &OsStr| is_named(name, patterns());
    let says_so = |name: &OsStr| {
        let name = name.to_string_lossy().to_uppercase();
        SECRET.iter().any(|word| name.contains(word))
    };
    let secret = inherited.iter().filter(|(name, _)| says_so(name) || !usual(name));
    secret.filter_map(|(_, value)| value.to_str().map(str::to_owned)).collect()
}

/// The variables that say who asks which service; without any of them the program has a login of its own, which its folder tells.
const ACCOUNT: &[&str] = &[
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
];

/// Returns what tells its account; none where it has the usual login of the user.
pub(crate) fn credential(inherited: &[Variable]) -> Option<Credential> {
    let value = |name: &&str| {
        let found = inherited.iter().rfind(|(known, value)| *known == **name && !value.is_empty());
        found.map(|(_, value)| value.as_encoded_bytes())
    };
    let values: Vec<Option<&[u8]>> = ACCOUNT.iter().map(value).collect();
    let is_set = values.iter().any(Option::is_some);
    is_set.then(|| Credential::of(values.into_iter().map(Option::unwrap_or_default)))
}

/// Returns the part of our own environment that it inherits.
pub(crate) fn inherited(all: &[Variable], more: &[String]) -> Vec<Variable> {
    let switched_on = |switch: &str| {
        all.iter().any(|(name, value)| *name == *switch && !value.is_empty() && *value != *"0")
    };
    let clouds =
        CLOUDS.iter().filter(|(switch, _)| switched_on(switch)).flat_map(|(_, names)| *names);
    let usual = USUAL_VARIABLES.iter().chain(ALLOWED).chain(clouds).copied();
    let patterns: Vec<&str> = usual.chain(more.iter().map(String::as_str)).collect();
    let permitted = |(name, _): &&Variable| {
        let by_name = is_around(name);
        is_named(name, patterns.iter().copied().filter(|name| !(by_name && name.starts_with('*'))))
    };
    all.iter().filter(permitted).cloned().collect()
}

/// True for a variable of the session or run that is around it. One of these is not meant by a pattern that begins with a star:
/// it may be the way into that session.
fn is_around(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    ["CLAUDECODE", "CLAUDE_", "OFFSHOOT_"].iter().any(|start| name.starts_with(start.as_bytes()))
}

/// Returns the variables that inform it of itself. They grant nothing.
pub(crate) fn own(launch: &Launch, options: &ClaudeOptions, own_server: bool) -> Vec<Variable> {
    let mut variables = identity_variables(launch);
    let more = if own_server { WITH_OWN_SERVER } else { &[] };
    variables.extend(ALWAYS.iter().chain(more).map(|(name, value)| (name.into(), value.into())));
    variables.extend(options.compaction(&launch.agent).and_then(compaction));
    if let Some(meter) = &launch.meter {
        // Otherwise the settings of a project could lead it elsewhere.
        variables.push(("CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST".into(), "1".into()));
        let most = meter.output_tokens.map(|most| most.to_string().into());
        variables.extend(most.map(|most| ("CLAUDE_CODE_MAX_OUTPUT_TOKENS".into(), most)));
    }
    if let Some(pass) = &launch.pass
        && launch.grant.tools.permits("exec")
    {
        // What it starts may come with it. Where it may start nothing, only the server of our own tools gets it.
        variables.extend(pass_variables(pass).map(|(name, value)| (name.into(), value)));
    }
    variables
}

/// Returns the variable that says when it sums up its conversation; none leaves it to the program.
fn compaction(compaction: &Compaction) -> Option<Variable> {
    let Compaction { mode, at_tokens } = compaction;
    if mode.as_deref() == Some("off") {
        return Some(("DISABLE_AUTO_COMPACT".into(), "1".into()));
    }
    at_tokens.map(|tokens| ("CLAUDE_CODE_AUTO_COMPACT_WINDOW".into(), tokens.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_conversation_is_summed_up() {
        let check = |settings: &str, expected: Option<(&str, &str)>| {
            let settings: Compaction = serde_json::from_str(settings).expect("settings");
            let expected = expected.map(|(name, value)| (name.into(), value.into()));
            assert_eq!(compaction(&settings), expected, "{settings:?}");
        };
        check(r#"{"mode": "safeguard", "reserveTokensFloor": 9}"#, None);
        check(r#"{"mode": "off", "atTokens": 9}"#, Some(("DISABLE_AUTO_COMPACT", "1")));
        let window = Some(("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "150000"));
        check(r#"{"atTokens": 150000}"#, window);
    }

    #[test]
    fn only_permitted_names_are_inherited() {
        let all: Vec<Variable> = [
            "PATH",
            "HOME",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_TELEMETRY",
            "https_proxy",
            "CLAUDECODE",
            "AWS_SECRET_ACCESS_KEY",
            "OFFSHOOT_TICKET",
            "MY_TOOL_KEY",
        ]
        .map(|name| (name.into(), "x".into()))
        .into();
        let kept = |more: &[&str]| -> Vec<String> {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            let names = inherited(&all, &more).into_iter().map(|(name, _)| name.into_string());
            names.map(|name| name.expect("the names above are UTF-8")).collect()
        };
        let usual = [
            "PATH",
            "HOME",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_TELEMETRY",
            "https_proxy",
        ];
        assert_eq!(kept(&[]), usual);
        assert_eq!(kept(&["MY_TOOL_*"]), [&usual[..], &["MY_TOOL_KEY"]].concat());
        assert_eq!(kept(&["*TOOL*"]), [&usual[..], &["MY_TOOL_KEY"]].concat());
        // What is around it is passed on by name alone.
        for all in ["*", "**"] {
            let more = ["AWS_SECRET_ACCESS_KEY", "MY_TOOL_KEY"];
            assert_eq!(kept(&[all]), [&usual[..], &more].concat());
        }
        assert_eq!(kept(&["*TICKET", "*CODE*"]), usual);
        let by_name = kept(&["CLAUDE*", "OFFSHOOT_*", "OFFSHOOT_TICKET"]);
        assert_eq!(by_name, [&usual[..], &["CLAUDECODE"]].concat(), "no ticket but its own");
    }

    #[test]
    fn a_session_around_it_is_no_business_of_its() {
        for name in [
            "CLAUDECODE",
            "CLAUDE_CODE_CHILD_NOTES_DIR",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_OF_THE_FUTURE",
        ] {
            assert_eq!(inherited(&[(name.into(), "x".into())], &[]), [], "{name}");
        }
    }

    #[test]
    fn another_key_login_or_service_is_another_account() {
        let of = |variables: &[(&str, &str)]| {
            let variable = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
            credential(&variables.iter().map(variable).collect::<Vec<Variable>>())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("PATH", "/bin"), ("ANTHROPIC_API_KEY", "")]), None);
        let key = of(&[("ANTHROPIC_API_KEY", "a")]);
        assert!(key.is_some());
        assert_eq!(key, of(&[("ANTHROPIC_API_KEY", "a"), ("PATH", "/bin")]));
        for other in [
            &[("ANTHROPIC_API_KEY", "b")][..],
            &[("ANTHROPIC_AUTH_TOKEN", "a")],
            &[("ANTHROPIC_API_KEY", "a"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")],
            &[("CLAUDE_CONFIG_DIR", "a")],
        ] {
            assert_ne!(key, of(other), "{other:?}");
        }
    }

    #[test]
    fn keys_to_a_cloud_are_for_models_of_that_cloud() {
        let check = |switch: &str, value: &str, name: &str, expected: bool| {
            let all = [(switch.into(), value.into()), (name.into(), "x".into())];
            let found = inherited(&all, &[]).iter().any(|(found, _)| *found == *name);
            assert_eq!(found, expected, "{switch}={value} {name}");
        };
        check("CLAUDE_CODE_USE_BEDROCK", "1", "AWS_SECRET_ACCESS_KEY", true);
        check("CLAUDE_CODE_USE_BEDROCK", "0", "AWS_SECRET_ACCESS_KEY", false);
        check("CLAUDE_CODE_USE_BEDROCK", "", "AWS_REGION", false);
        check("CLAUDE_CODE_USE_VERTEX", "1", "AWS_REGION", false);
        check("CLAUDE_CODE_USE_VERTEX", "true", "GOOGLE_APPLICATION_CREDENTIALS", true);
        check("CLAUDE_CODE_USE_VERTEX", "1", "VERTEX_REGION_CLAUDE_4_5_HAIKU", true);
        check("CLAUDE_CODE_USE_FOUNDRY", "1", "AZURE_CLIENT_SECRET", true);
        check("HOME", "/", "AZURE_CLIENT_SECRET", false);
    }
}
