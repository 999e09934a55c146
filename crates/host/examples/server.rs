//! Trees behind an HTTP address: each line of a request is the task of one agent, and the answer is the sum of theirs.
//!
//! `cargo run --example server -- 127.0.0.1:8080`, then `curl --data-binary @tasks http://127.0.0.1:8080/sum`

use std::io::{Write, stdout};
use std::{env, error::Error, sync::Arc};

use axum::{Router, extract::State, http::StatusCode, routing::post};
use offshoot_config::Loader;
use offshoot_host::{Environment, Host};
use offshoot_spawner::{FanOut, Piece, RootSpec, RunSpec};
use tokio::net::TcpListener;

/// One tree for one request. A client that goes away cancels it.
async fn sum(host: &Host, tasks: &str) -> Result<String, Box<dyn Error>> {
    let run_spec = RunSpec::command(env::current_dir()?, ["sh", "-c", include_str!("agent.sh")]);
    let tree = host.open(RootSpec { run_spec, ..RootSpec::new("a request") }).await?;
    let order = FanOut::new(tasks.lines().map(Piece::task)).merge("sum".parse()?);
    let answer = tree.fan_out(order).await?.answer().await?;
    let ending = tree.conclude(&answer).await?;
    answer.verdict?;
    Ok(format!("{:?} {:?}\n", ending.reason, answer.answer.to_payload()))
}

async fn handle(
    State(host): State<Arc<Host>>,
    tasks: String,
) -> Result<String, (StatusCode, String)> {
    sum(&host, &tasks).await.map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error}\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let recursive =
        Loader::new().set("agents.defaults.subagents.allowRecursiveSpawn", true).load()?;
    let host = Arc::new(Host::builder(recursive, Environment::of_process()?).start().await?);
    let listener = TcpListener::bind(env::args().nth(1).ok_or("name an address")?).await?;
    writeln!(stdout(), "http://{}/sum", listener.local_addr()?)?;
    Ok(axum::serve(listener, Router::new().route("/sum", post(handle)).with_state(host)).await?)
}
