//! The command line of a run that has not begun, for a dry run.

use std::path::PathBuf;

use offshoot_model::Reason;
use offshoot_runtime::{Launch, system_prompt};

use crate::ClaudeOptions;
use crate::argv::{Files, Parts, Session, argv};
use crate::tools::permits_server;

/// Returns the program and the arguments that a run is started with, with a word in capitals for each file and id that the start
/// itself makes. An error is the reason why it would not start.
pub fn preview(launch: &Launch, options: &ClaudeOptions) -> Result<Vec<String>, Reason> {
    let superuser = rustix::process::geteuid().is_root();
    let own_server = options.own_server.is_some();
    let permitted = |name: &String| permits_server(&launch.grant.tools, name);
    let has_servers = own_server || options.servers.keys().any(permitted);
    let prompt = system_prompt(launch, own_server && launch.may_spawn());
    let files = Files {
        system_prompt: prompt.map(|_| PathBuf::from("SYSTEM_PROMPT_FILE")),
        servers: has_servers.then(|| PathBuf::from("SERVERS_FILE")),
        settings: options.settings.as_ref().map(|_| PathBuf::from("SETTINGS_FILE")),
        piece: None,
    };
    let session = &Session::New;
    let args = argv(Parts { launch, options, files: &files, session, own_server, superuser })?;
    let run = launch.run.to_string();
    let text = |argument: std::ffi::OsString| argument.to_string_lossy().replace(&run, "RUN_ID");
    let program = options.wrap.iter().chain([&options.command]).cloned();
    Ok(program.chain(args.into_iter().map(text)).collect())
}
