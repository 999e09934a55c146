//! A supervisor of one agent, in a process of its own: for what concerns the whole process, and to be killed.
//!
//! `supervise [--subreaper] [--keeper] [--keeper-pid] [--mark MARK] ARGUMENT…` starts `fake-agent ARGUMENT…` and prints
//!
//! ```text
//! keeper 123               with --keeper-pid
//! child 124
//! …                        what the agent prints, as it comes
//! finished Code(0) stop=None stragglers=0 lost=0 held=false
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use offshoot_process::{
    Capture, Keep, KeeperCommand, NeverStop, Options, Processes, Program, Stdin,
};

use crate::act::bad;

pub(crate) fn run(args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let own = std::env::current_exe()?;
    let mut args = args.peekable();
    let (mut options, mut keeper_pid) = (Options::default(), false);
    while let Some(flag) = args.next_if(|arg| arg.to_str().is_some_and(|arg| arg.starts_with("--")))
    {
        match flag.to_str() {
            Some("--subreaper") => options.subreaper = true,
            Some("--keeper") => {
                let (program, args) = (own.clone(), vec!["keeper".into()]);
                options.keeper = Some(KeeperCommand { program, args });
            }
            Some("--keeper-pid") => keeper_pid = true,
            Some("--mark") => {
                let mark = args.next().and_then(|mark| mark.into_string().ok());
                options.inherited_mark = Some(mark.ok_or_else(|| bad("which mark?"))?);
            }
            _ => {
                return Err(bad("supervise takes --subreaper, --keeper, --keeper-pid, --mark MARK"));
            }
        }
    }
    let program = Program {
        path: own,
        args: args.collect(),
        env: vec![],
        cwd: std::env::current_dir()?,
        stdin: Stdin::Null,
        stdout: Capture {
            keep: Keep::First(1000),
            tap: Some(Box::new(|block| {
                say(block).expect("the test reads what the supervisor prints");
            })),
        },
        stderr: Capture::nothing(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let processes = Processes::start(options).map_err(io::Error::other)?;
        if keeper_pid {
            let pid = std::process::id();
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
            say(format!("keeper {}\n", children.trim()).as_bytes())?;
        }
        let child = processes.spawn(program).map_err(io::Error::other)?;
        say(format!("child {}\n", child.identity().pid).as_bytes())?;
        let finished = child.wait(NeverStop).await;
        let offshoot_process::Finished { exit, stop, stragglers, lost, stdout, .. } = finished;
        let held = stdout.held_open;
        say(format!(
            "finished {exit:?} stop={stop:?} stragglers={stragglers} lost={lost} held={held}\n"
        )
        .as_bytes())?;
        Ok(ExitCode::SUCCESS)
    })
}

fn say(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line)?;
    stdout.flush()
}
