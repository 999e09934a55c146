//! The arguments of one run. Pure.
//!
//! The prompt is not among them: it goes to standard input, which stays open for further turns. Neither is a secret: what
//! the attached server is told lies in a file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use offshoot_model::{JsonText, MicroUsd, Reason};
use offshoot_runtime::Launch;

use crate::ClaudeOptions;
use crate::tools::Tools;

/// The files that a run has written for its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Instructions behind those of the program.
    pub system_prompt: Option<PathBuf>,
    /// The servers of tools, with our own where it gets one.
    pub servers: Option<PathBuf>,
    /// Settings on top of the user's.
    pub settings: Option<PathBuf>,
    /// The piece of the input, where that is too large for the prompt.
    pub piece: Option<PathBuf>,
}

/// The session of a run: a new one or an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// A new one, under the id of the run.
    New,
    /// One that has ended goes on, by its id.
    Resume(String),
}

/// Everything that the arguments depend on.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The run.
    pub launch: &'a Launch,
    /// The options of all runs.
    pub options: &'a ClaudeOptions,
    /// The files that were written for the run.
    pub files: &'a Files,
    /// The session of the run.
    pub session: &'a Session,
    /// True if our own tools are attached.
    pub own_server: bool,
    /// True if it will run as the system's superuser.
    pub superuser: bool,
}

/// The arguments, without the program; an error is the reason why it must not start.
pub fn argv(parts: Parts<'_>) -> Result<Vec<OsString>, Reason> {
    let Parts { launch, options, files, session, own_server, superuser } = parts;
    let mut argv = Argv(Vec::new());
    argv.flag("--print");
    argv.pair("--input-format", "stream-json");
    argv.pair("--output-format", "stream-json");
    // Without it print mode takes no stream of messages.
    argv.flag("--verbose");
    // Usage is told call by call, not only at the end of a turn.
    argv.flag("--include-partial-messages");
    if options.bare {
        argv.flag("--bare");
    }
    match session {
        Session::New => argv.pair("--session-id", launch.run.to_string()),
        Session::Resume(id) => argv.pair("--resume", id),
    }
    if let Some(model) = &launch.model {
        argv.pair("--model", &**model);
    }
    let fallbacks = options.fallback_models(&launch.agent);
    if !fallbacks.is_empty() {
        argv.pair("--fallback-model", fallbacks.join(","));
    }
    if let Some(thinking) = &launch.thinking {
        argv.pair("--effort", effort(thinking));
    }
    if let Some(mode) = &options.permission_mode {
        if superuser && mode == "bypassPermissions" {
            let message =
                "claude does not bypass permissions for the superuser; grant tools by name";
            return Err(Reason::CannotStart { message: message.to_owned() });
        }
        argv.pair("--permission-mode", mode);
    }
    let tools = Tools::of(&launch.grant.tools, own_server);
    if let Some(built_in) = &tools.built_in {
        // Empty means none, which is not the same as not to say.
        argv.pair("--tools", list(built_in));
    }
    if !tools.allowed.is_empty() {
        argv.pair("--allowedTools", list(&tools.allowed));
    }
    argv.pair("--disallowedTools", list(&tools.denied));
    if let Some(servers) = &files.servers {
        argv.pair("--mcp-config", servers);
    }
    argv.flag("--strict-mcp-config");
    if let Some(system_prompt) = &files.system_prompt {
        argv.pair("--append-system-prompt-file", system_prompt);
    }
    if let Some(settings) = &files.settings {
        argv.pair("--settings", settings);
    }
    for folder in folders(launch, files) {
        argv.pair("--add-dir", folder);
    }
    if let Some(turns) = options.max_turns(&launch.agent) {
        argv.pair("--max-turns", turns.to_string());
    }
    match launch.grant.budget.usd {
        Some(usd) if usd == MicroUsd::default() => {
            return Err(Reason::Budget { unit: "usd".to_owned(), request: None });
        }
        Some(usd) => argv.pair("--max-budget-usd", usd.to_string()),
        None => {}
    }
    let schema = launch.schema.as_ref().map(JsonText::as_str);
    if let Some(schema) = schema.or(options.json_schema.as_deref()) {
        argv.pair("--json-schema", schema);
    }
    Ok(argv.0)
}

struct Argv(Vec<OsString>);

impl Argv {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    /// As one argument where the value could be taken for a flag or a list could go on; the program takes both forms.
    fn pair(&mut self, flag: &str, value: impl Into<OsString>) {
        let mut argument = OsString::from(flag);
        argument.push("=");
        argument.push(value.into());
        self.0.push(argument);
    }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// Folders outside the one it works in from which it must read: those of its context and its piece.
fn folders(launch: &Launch, files: &Files) -> BTreeSet<PathBuf> {
    let context = launch.context.iter().map(|file| &file.path).chain(&launch.context_manifest);
    let all = context.chain(&files.piece);
    all.filter_map(|file| Some(file.parent()?.to_owned())).collect()
}

/// The program knows no level below `low`.
fn effort(thinking: &str) -> &str {
    match thinking {
        "off" | "none" | "minimal" => "low",
        other => other,
    }
}

#[cfg(test)]
mod tests;
