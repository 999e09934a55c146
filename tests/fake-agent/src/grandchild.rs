//! A process that outlives the agent.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::act::bad;

/// How far it goes to escape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    setsid: bool,
    hold_stdout: bool,
    no_env: bool,
}

impl How {
    pub(crate) fn flag(&mut self, flag: &OsStr) -> io::Result<()> {
        match flag.to_str() {
            Some("--setsid") => self.setsid = true,
            Some("--hold-stdout") => self.hold_stdout = true,
            Some("--no-env") => self.no_env = true,
            _ => return Err(bad("a grandchild takes --setsid, --hold-stdout, --no-env")),
        }
        Ok(())
    }
}

/// Starts it and waits until it has got where it was to go. It is not waited for.
pub(crate) fn start(how: How) -> io::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "an agent under test, not a part of the product")]
    let mut command = Command::new(std::env::current_exe()?);
    if how.setsid {
        command.arg("setsid");
    }
    if how.no_env {
        command.env_clear();
    }
    command.args(["complain", "ready", "hang"]).stdin(Stdio::null()).stderr(Stdio::piped());
    if !how.hold_stdout {
        command.stdout(Stdio::null());
    }
    let mut child = command.spawn()?;
    let stderr = child.stderr.take().expect("it was piped");
    let mut ready = String::new();
    BufReader::new(stderr).read_line(&mut ready)?;
    match ready.as_str() {
        "ready\n" => Ok(child.id()),
        _ => Err(io::Error::other("the grandchild did not come up")),
    }
}
