//! A supervisor of one agent, in a process of its own: for what concerns the whole process, and to be killed.
//!
//! `supervise [FLAG…] ARGUMENT…` starts `fake-agent ARGUMENT…` and prints
//!
//! ```text
//! keeper 123               with --keeper
//! child 124
//! …                        what the agent prints, as it comes
//! finished Code(0) stop=None stragglers=0 lost=0 held=false
//! peak 5432                with --spool: the most memory it ever had, in KiB
//! ```
//!
//! | flag | does |
//! |---|---|
//! | `--subreaper` | adopts orphans |
//! | `--keeper` | has a keeper |
//! | `--terminal` | has a controlling terminal |
//! | `--files N` | may open so many |
//! | `--heartbeat MS` | asks its keeper that often for a sign of life, and prints what is noticed |
//! | `--room N` | makes room for so many agents, and prints for how many there is |
//! | `--many N` | starts so many agents at once, and prints how many ended well |
//! | `--again` | after the agent's first output, kills its own keeper and starts a second agent beside the first |
//! | `--mark MARK` | as if it had been started by that supervisor; else the one it was started by |
//! | `--spool FILE` | the agent's output goes there, and is not printed |

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use offshoot_process::{
    Capture, Child, Finished, Keep, KeeperCommand, MARK_VARIABLE, NeverStop, Notice, Options,
    Processes, Program, make_room,
};
use tokio::sync::Notify;

use crate::act::bad;

#[derive(Default)]
struct Flags {
    options: Options,
    again: bool,
    spool: Option<PathBuf>,
    many: Option<usize>,
    room: Option<u32>,
    /// Both sides, kept open.
    terminal: Option<[OwnedFd; 2]>,
}

/// Prints what is noticed, as it comes.
fn say_notices() -> tokio::sync::mpsc::UnboundedSender<Notice> {
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Some(notice) = rx.blocking_recv() {
            say(&match notice {
                Notice::Stray(stray) => format!("stray {}\n", stray.pid),
                Notice::KeeperFailed { pid, found, error: None } => {
                    format!("replaced {pid} {found:?}\n")
                }
                other => format!("{other:?}\n"),
            })
            .expect("the test reads");
        }
    });
    tx
}

fn limit_open_files(current: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(current), ..getrlimit(Resource::Nofile) };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Opens a session with a new terminal that controls it.
fn open_terminal() -> io::Result<[OwnedFd; 2]> {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    rustix::process::setsid()?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(ptsname(&ours, Vec::new())?, flags, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&theirs)?;
    Ok([ours, theirs])
}

pub(crate) fn run(args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let mut args = args.peekable();
    let mut flags = Flags::default();
    flags.options.inherited_mark =
        std::env::var_os(MARK_VARIABLE).and_then(|mark| mark.into_string().ok());
    while let Some(flag) = args.next_if(|arg| arg.to_str().is_some_and(|arg| arg.starts_with("--")))
    {
        match flag.to_str() {
            Some("--subreaper") => flags.options.subreaper = true,
            Some("--terminal") => flags.terminal = Some(open_terminal()?),
            Some("--heartbeat") => {
                let every = std::time::Duration::from_millis(crate::act::number(args.next())?);
                flags.options.keeper_heartbeat = every;
                flags.options.notices = Some(say_notices());
            }
            Some("--room") => flags.room = Some(crate::act::number(args.next())?),
            Some("--files") => limit_open_files(crate::act::number(args.next())?)?,
            Some("--many") => flags.many = Some(crate::act::number(args.next())?),
            Some("--keeper") => {
                let (program, args) = (std::env::current_exe()?, vec!["keeper".into()]);
                flags.options.keeper = Some(KeeperCommand { program, args, log: None });
            }
            Some("--again") => flags.again = true,
            Some("--mark") => {
                let mark = args.next().and_then(|mark| mark.into_string().ok());
                flags.options.inherited_mark = Some(mark.ok_or_else(|| bad("which mark?"))?);
            }
            Some("--spool") => {
                flags.spool = Some(args.next().ok_or_else(|| bad("which file?"))?.into());
            }
            _ => return Err(bad("no such flag of supervise")),
        }
    }
    let args: Vec<OsString> = args.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise(flags, args))?;
    Ok(ExitCode::SUCCESS)
}

async fn supervise(flags: Flags, args: Vec<OsString>) -> io::Result<()> {
    let kept = flags.options.keeper.is_some();
    let processes = Processes::start(flags.options).map_err(io::Error::other)?;
    if let Some(wanted) = flags.room {
        say(&format!("room {}\n", make_room(wanted)))?;
    }
    if let Some(many) = flags.many {
        return start_many(&processes, &args, many).await;
    }
    let mut keeper = if kept { Some(say_keeper(&[])?) } else { None };
    let printed = Arc::new(Notify::new());
    let mut child = start(&processes, &args, flags.spool.clone(), &printed)?;
    if flags.again {
        let first = child.identity().pid;
        let (finished, ()) = tokio::join!(child.wait(NeverStop), async {
            printed.notified().await;
            let again = async {
                end_keeper(keeper.take().ok_or_else(|| bad("which keeper?"))?)?;
                let second = start(&processes, &args, None, &printed)?;
                say_keeper(&[first, second.identity().pid])?;
                io::Result::Ok(second)
            };
            match again.await {
                Ok(second) => drop(second.wait(NeverStop).await),
                Err(error) => say(&format!("{error}\n")).expect("the test reads"),
            }
        });
        return say_finished(&finished);
    }
    let _ = child.take_stdin();
    say_finished(&child.wait(NeverStop).await)?;
    if flags.spool.is_some() {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        say(&format!("peak {}\n", peak.unwrap_or_default().trim().trim_end_matches(" kB")))?;
    }
    Ok(())
}

/// Starts so many at once, as far as the system lets them.
async fn start_many(processes: &Processes, args: &[OsString], many: usize) -> io::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..many {
        let (processes, program) = (processes.clone(), program(args, Keep::First(1000).into())?);
        tasks.spawn(async move {
            let child = processes.spawn_when_possible(program).await.map_err(io::Error::other)?;
            let finished = child.wait(NeverStop).await;
            io::Result::Ok(finished.exit == offshoot_process::Exit::Code(0))
        });
    }
    let mut done = 0;
    while let Some(finished) = tasks.join_next().await {
        match finished.map_err(io::Error::other)? {
            Ok(well) => done += usize::from(well),
            Err(error) => say(&format!("{error}\n"))?,
        }
    }
    say(&format!("{done} of {many}\n"))
}

fn start(
    processes: &Processes,
    args: &[OsString],
    spool: Option<PathBuf>,
    printed: &Arc<Notify>,
) -> io::Result<Child> {
    let printed = Arc::clone(printed);
    let stdout = match spool {
        Some(file) => Keep::Whole { memory: 16 * 1024, file, limit: None }.into(),
        None => Capture {
            keep: Keep::First(1000),
            tap: Some(Box::new(move |block| {
                say(&String::from_utf8_lossy(block)).expect("the test reads what it prints");
                printed.notify_one();
            })),
        },
    };
    let child = processes.spawn(program(args, stdout)?).map_err(io::Error::other)?;
    say(&format!("child {}\n", child.identity().pid))?;
    Ok(child)
}

fn program(args: &[OsString], stdout: Capture) -> io::Result<Program> {
    Ok(Program {
        args: args.to_vec(),
        stdout,
        ..Program::new(std::env::current_exe()?, std::env::current_dir()?)
    })
}

/// Prints and answers the only child that is no agent.
fn say_keeper(agents: &[u32]) -> io::Result<u32> {
    let own = std::process::id();
    // A thread may have started the keeper.
    let threads = std::fs::read_dir(format!("/proc/{own}/task"))?.flatten();
    let children = threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .collect::<String>();
    let mut children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    let keeper = children.find(|pid| !agents.contains(pid));
    let keeper = keeper.ok_or_else(|| bad("there is no keeper"))?;
    say(&format!("keeper {keeper}\n"))?;
    Ok(keeper)
}

/// Kills its own keeper and waits until it has closed its pipe. Its own parent reaps it.
fn end_keeper(keeper: u32) -> io::Result<()> {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    let raw = i32::try_from(keeper).ok().filter(|raw| *raw > 1).and_then(Pid::from_raw);
    let keeper = raw.ok_or_else(|| bad("no number of a process"))?;
    kill_process(keeper, Signal::KILL)?;
    // It may have been reaped already.
    let _ = waitid(WaitId::Pid(keeper), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    Ok(())
}

fn say_finished(finished: &Finished) -> io::Result<()> {
    let Finished { exit, stop, stragglers, strays, lost, stdout, .. } = finished;
    let held = stdout.held_open;
    let strays: String = strays.iter().map(|stray| format!(" stray={}", stray.name)).collect();
    say(&format!(
        "finished {exit:?} stop={stop:?} stragglers={stragglers} lost={lost} held={held}{strays}\n"
    ))
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
