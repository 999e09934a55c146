//! The actions, one after the other.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getpgid, getpid, kill_process, setpgid};

use crate::{grandchild, knock};

/// Does what the arguments say. The last one may end the process before this comes back.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let mut args = args.peekable();
    while let Some(action) = args.next() {
        let action = action.to_str().ok_or_else(|| bad("an action is text"))?;
        match action {
            "exit" => return Ok(number::<u8>(args.next())?.into()),
            "signal" => {
                let signal = Signal::from_named_raw(number(args.next())?);
                let signal = signal.ok_or_else(|| bad("no such signal"))?;
                // Rust's own handler of SIGSEGV takes the first one, and sets itself aside.
                kill_process(getpid(), signal)?;
                kill_process(getpid(), signal)?;
                hang();
            }
            "hang" => hang(),
            "block-on" => {
                let fifo = args.next().ok_or_else(|| bad("block-on which fifo?"))?;
                File::open(fifo)?.read_to_end(&mut Vec::new())?;
            }
            "silent" => {}
            "burn" => burn(number(args.next())?)?,
            "print" => line(io::stdout(), text(args.next())?.as_bytes())?,
            "complain" => line(io::stderr(), text(args.next())?.as_bytes())?,
            "pid" => line(io::stdout(), std::process::id().to_string().as_bytes())?,
            "flood" => flood(io::stdout().lock(), number(args.next())?)?,
            "flood-stderr" => flood(io::stderr().lock(), number(args.next())?)?,
            "echo" => {
                io::copy(&mut io::stdin().lock(), &mut io::stdout().lock())?;
                io::stdout().flush()?;
            }
            "upper" => {
                let mut text = Vec::new();
                io::stdin().lock().read_to_end(&mut text)?;
                text.make_ascii_uppercase();
                io::stdout().write_all(&text)?;
                io::stdout().flush()?;
            }
            "count-lines" => {
                let mut lines = 0u64;
                let mut line_bytes = Vec::new();
                let mut stdin = io::stdin().lock();
                while stdin.read_until(b'\n', &mut line_bytes)? > 0 {
                    lines += 1;
                    line_bytes.clear();
                }
                line(io::stdout(), lines.to_string().as_bytes())?;
            }
            "close-stdin" => rustix::stdio::dup2_stdin(File::open("/dev/null")?)?,
            "env" => {
                let name = args.next().ok_or_else(|| bad("env of which name?"))?;
                let value = std::env::var_os(name).unwrap_or_default();
                line(io::stdout(), value.as_bytes())?;
            }
            "all-env" => {
                let mut all: Vec<_> = std::env::vars_os().collect();
                all.sort();
                for (name, value) in all {
                    line(io::stdout(), &[name.as_bytes(), b"=", value.as_bytes()].concat())?;
                }
            }
            "folder" => line(io::stdout(), std::env::current_dir()?.as_os_str().as_bytes())?,
            "lie-json" => line(io::stdout(), br#"{"answer": 42, "why": "#)?,
            "ask" | "ask-and-go" | "say" | "flood-door" | "crowd" => {
                if let Some(answer) = knock::knock(action, &mut args)? {
                    line(io::stdout(), answer.as_bytes())?;
                }
            }
            "ignore-term" => return Err(ignore_term(args)),
            "setsid" => drop(rustix::process::setsid()?),
            "enter-group-of" => {
                let process = Pid::from_raw(number(args.next())?);
                // Another session is closed to it.
                let _ = setpgid(None, Some(getpgid(process)?));
            }
            "terminal" => {
                let found = File::open("/dev/tty").is_ok();
                line(io::stdout(), if found { b"a terminal" } else { b"no terminal" })?;
            }
            "fork-grandchild" => {
                let mut how = grandchild::How::default();
                while let Some(flag) = args.next_if(|arg| arg.as_bytes().starts_with(b"--")) {
                    how.flag(&flag)?;
                }
                let pid = grandchild::start(how)?;
                line(io::stdout(), pid.to_string().as_bytes())?;
            }
            other => return Err(bad(&format!("no action {other}"))),
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// A shell sets the signal aside, which lasts over the start of another program: the rest is done by a new one in the same process.
fn ignore_term(rest: impl Iterator<Item = OsString>) -> io::Error {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return error,
    };
    #[expect(clippy::disallowed_methods, reason = "an agent under test, not a part of the product")]
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' TERM; exec \"$@\"", "sh"]).arg(own).args(rest).exec()
}

/// Works until this process has used so many milliseconds of CPU time.
fn burn(milliseconds: u64) -> io::Result<()> {
    let used = || {
        let line = std::fs::read_to_string("/proc/self/stat")?;
        let numbers = line.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        // Fields 14 and 15, in hundredths of a second; what follows the name begins with field 3.
        Ok::<u64, io::Error>(
            numbers.skip(14 - 3).take(2).filter_map(|n| n.parse::<u64>().ok()).sum(),
        )
    };
    let end = used()? + milliseconds / 10;
    while used()? < end {
        std::hint::black_box((0..100_000u64).fold(0, |sum, n| sum ^ n));
    }
    Ok(())
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn flood(mut out: impl Write, bytes: u64) -> io::Result<()> {
    let line = [&[b'x'; 63][..], b"\n"].concat();
    let block = line.repeat(1024);
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64);
        out.write_all(&block[..usize::try_from(length).expect("a block is small")])?;
        left -= length;
    }
    out.flush()
}

/// One write, so that lines of several writers do not mix.
fn line(mut out: impl Write, text: &[u8]) -> io::Result<()> {
    out.write_all(&[text, b"\n"].concat())?;
    out.flush()
}

fn text(arg: Option<OsString>) -> io::Result<OsString> {
    arg.ok_or_else(|| bad("a text is missing"))
}

pub(crate) fn number<N: std::str::FromStr>(arg: Option<OsString>) -> io::Result<N> {
    arg.and_then(|arg| arg.to_str()?.parse().ok()).ok_or_else(|| bad("a number is missing"))
}
