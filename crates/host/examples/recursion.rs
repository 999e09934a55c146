//! A tree of shell agents that spawn agents: with limits, a record, MCP and a plugin that merges.
//!
//! `cargo run --example recursion -- PLUGINS`, where `offshoot` is in `PATH` and `merge-jq` is a plugin in that folder.

use std::{env, error::Error, io::stdout};

use offshoot_config::Loader;
use offshoot_host::{Environment, Host};
use offshoot_spawner::{FanOut, Piece, RootSpec, RunSpec};
use offshoot_store::DataFolder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limit = |name: &str| format!("agents.defaults.subagents.{name}");
    let limits = Loader::new().set(limit("allowRecursiveSpawn"), true).set(limit("maxDepth"), 3);
    let config = limits.set(limit("maxConcurrent"), 2).load()?;
    let host = Host::builder(config, Environment::of_process()?).folder(DataFolder::open("data")?);
    let host = host.plugin_folders(env::args().nth(1)).start().await?;
    let run_spec = RunSpec::command(env::current_dir()?, ["sh", "-c", include_str!("agent.sh")]);
    let tree = host.open(RootSpec { run_spec, ..RootSpec::new("count the leaves") }).await?;
    let order = host.merge(
        FanOut::new(["2", "1"].map(Piece::task)),
        "plugin:merge-jq=map(.value | tonumber) | add",
    )?;
    let answer = tree.fan_out(order).await?.answer().await?;
    host.values(&answer).write(&answer.answer, &mut stdout())?;
    tree.conclude(&answer).await?;
    Ok(())
}
