//! Real processes that do awkward things. Each test looks that nothing is left.

mod abandoned;
mod cgroup;
mod ends;
mod guest;
mod keeper;
mod leftovers;
mod limits;
mod many;
mod starts;
mod stops;
mod streams;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_process::{Child, Finished, Keep, NeverStop, Options, Processes, Program};
use offshoot_test_support::{Watched, fake_agent, named_pipe};

/// Far longer than anything takes. It ends a test that would hang; none is as long as this unless it fails.
const FAR: Duration = Duration::from_secs(60);

/// Children held by this test alone: no keeper, and orphans go where they always go.
fn processes() -> Processes {
    Processes::start(Options::default()).expect("processes cannot be held")
}

/// The fake agent, with what it prints kept in memory.
fn agent(actions: &[&str]) -> Program {
    program(fake_agent(), actions)
}

/// A shell, for what only a shell can do.
fn shell(script: &str) -> Program {
    program(Path::new("/bin/sh"), &["-c", script])
}

fn program(path: &Path, args: &[&str]) -> Program {
    Program {
        args: args.iter().map(OsString::from).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdout: Keep::First(1 << 20).into(),
        stderr: Keep::Last(4096).into(),
        ..Program::new(path, "/")
    }
}

/// Starts it and waits for its end, and looks that its leader is gone.
async fn run(program: Program) -> Finished {
    end(processes().spawn(program).expect("the program cannot be started")).await
}

/// Waits for its end, and looks that its leader is gone.
async fn end(child: Child) -> Finished {
    let leader = Watched::new(child.identity().pid);
    let finished = within(child.wait(NeverStop)).await;
    assert!(leader.is_gone());
    finished
}

/// Fails the test if something never ends, rather than holding it.
async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(FAR, wait).await.expect("no wait hangs")
}

/// Prints the numbers of its open descriptors, that of the listing among them.
const LIST_DESCRIPTORS: &str = "ls /proc/self/fd | tr '\\n' ' '";

/// Returns the descriptors that any child of this test prints: the parent of the test may have handed down more than three.
fn inherited() -> String {
    #[expect(clippy::disallowed_methods, reason = "the comparison")]
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", LIST_DESCRIPTORS])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the program cannot be started");
    String::from_utf8(output.stdout).expect("it prints numbers")
}

/// Returns the kept output as text.
fn text(output: &offshoot_process::Output) -> String {
    match &output.kept {
        offshoot_process::Kept::Memory(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        offshoot_process::Kept::File(path) => panic!("it went to {}", path.display()),
    }
}

/// A program whose output announces the moment from which it is as it should be: sends each line.
fn announced(mut program: Program) -> (Program, tokio::sync::mpsc::UnboundedReceiver<String>) {
    // A test asks for a few lines and no more.
    let (tx, rx) = tokio::sync::mpsc::unbounded_channel();
    let mut lines = offshoot_process::Lines::new(1000);
    program.stdout.tap = Some(Box::new(move |block| {
        lines.feed(block, |line| {
            // A test that has seen enough listens no more.
            let _ = tx.send(String::from_utf8_lossy(line).into_owned());
        });
    }));
    (program, rx)
}

/// A fifo in a folder of its own.
fn fifo() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("fifo");
    named_pipe(&path);
    (folder, path)
}
