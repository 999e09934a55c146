//! A process that outlives the agent.
//!
//! | flag | the process |
//! |---|---|
//! | `--setsid` | opens a session of its own |
//! | `--own-group` | leads a group of its own in the agent's session |
//! | `--supervisors-group` | enters the group of the agent's parent, where it is allowed to |
//! | `--no-env`, `--other-env` | has no environment; has one without a mark |
//! | `--orphan` | loses its parent: it is started by a process that ends at once |
//! | `--hold-stdout` | keeps the agent's output open |

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::act::bad;

/// How far it goes to escape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    setsid: bool,
    own_group: bool,
    supervisors_group: bool,
    other_env: bool,
    hold_stdout: bool,
    orphan: bool,
    no_env: bool,
}

impl How {
    pub(crate) fn flag(&mut self, flag: &OsStr) -> io::Result<()> {
        match flag.to_str() {
            Some("--setsid") => self.setsid = true,
            Some("--own-group") => self.own_group = true,
            Some("--supervisors-group") => self.supervisors_group = true,
            Some("--other-env") => self.other_env = true,
            Some("--hold-stdout") => self.hold_stdout = true,
            Some("--orphan") => self.orphan = true,
            Some("--no-env") => self.no_env = true,
            _ => return Err(bad("no such flag of a grandchild")),
        }
        Ok(())
    }
}

/// Starts it and waits until it has got where it was to go. It is not waited for.
pub(crate) fn start(how: How) -> io::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "an agent under test, not a part of the product")]
    let mut command = Command::new(std::env::current_exe()?);
    if how.orphan {
        return by_another(command, how);
    }
    if how.setsid {
        command.arg("setsid");
    }
    if how.own_group {
        command.process_group(0);
    }
    if how.supervisors_group {
        let supervisor = rustix::process::getppid().ok_or_else(|| bad("there is no parent"))?;
        command.args(["enter-group-of", &supervisor.as_raw_nonzero().to_string()]);
    }
    if how.no_env || how.other_env {
        command.env_clear();
    }
    if how.other_env {
        command.env("TITLE", "a daemon that has written over its environment");
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

/// Lets another process start it, which ends then.
fn by_another(mut command: Command, how: How) -> io::Result<u32> {
    let How { setsid, own_group, supervisors_group, other_env, hold_stdout, orphan: _, no_env } =
        how;
    command.arg("fork-grandchild");
    for (is_set, flag) in [
        (setsid, "--setsid"),
        (own_group, "--own-group"),
        (supervisors_group, "--supervisors-group"),
        (other_env, "--other-env"),
        (hold_stdout, "--hold-stdout"),
        (no_env, "--no-env"),
    ] {
        command.args(is_set.then_some(flag));
    }
    let printed = command.args(["exit", "0"]).stdin(Stdio::null()).output()?.stdout;
    let number = String::from_utf8_lossy(&printed);
    number.trim().parse().map_err(|_| io::Error::other("the grandchild did not come up"))
}
