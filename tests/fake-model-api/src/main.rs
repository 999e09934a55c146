//! The service as a program: `fake-model-api SCRIPT.json [PORT]` prints its address and serves until standard input ends.

use std::io::{self, Read};
use std::process::ExitCode;

use offshoot_fake_model_api::{FakeModelApi, Script};

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = || io::Error::other("usage: fake-model-api SCRIPT.json [PORT]");
    let script = std::fs::read_to_string(args.next().ok_or_else(usage)?)?;
    let script: Script = serde_json::from_str(&script).map_err(io::Error::other)?;
    let port = args.next().map(|port| port.parse()).transpose().map_err(|_| usage())?;
    let api = FakeModelApi::start_on(port.unwrap_or(0), script)?;
    tell(&api.url());
    // The process that started this one holds the other end; when that process ends, this one does.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program of its own: its address is its answer")]
fn tell(url: &str) {
    println!("{url}");
}

#[expect(clippy::print_stderr, reason = "a program of its own, with a terminal of its own")]
fn complain(error: &io::Error) {
    eprintln!("fake-model-api: {error}");
}
