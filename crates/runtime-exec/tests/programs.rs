//! Real programs through the contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{InputRange, Reason, RootId, RunId, ValueKind};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Finished, Input, Launch, Output, OutputFormat, RunContext, RunEvent, RunHost, Runtime, Stop,
    StopHandle, check_contract,
};
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
use offshoot_test_support::{Listener, run};
use tempfile::TempDir;
use uuid::Uuid;

struct Place {
    folder: TempDir,
    exec: ExecRuntime,
}

impl Place {
    fn new() -> Self {
        Self::with(ExecOptions {
            environment: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("SECRET".into(), "do not tell".into()),
            ],
            ..ExecOptions::default()
        })
    }

    fn with(options: ExecOptions) -> Self {
        let processes = Processes::start(Options::default()).expect("processes");
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::create_dir(folder.path().join("spool")).expect("a spool folder");
        Self { folder, exec: ExecRuntime::new(processes, options) }
    }

    fn launch(&self, command: &[&str]) -> Launch {
        let run = RunId::from_uuid(Uuid::now_v7());
        Launch {
            run,
            root: RootId::new(run),
            command: Some(command.iter().map(ToString::to_string).collect()),
            working_folder: Arc::new(self.folder.path().to_owned()),
            run_folder: self.folder.path().join("runs").join(run.to_string()),
            spool_folder: Arc::new(self.folder.path().join("spool")),
            ..Launch::bare("the task")
        }
    }

    fn shell(&self, script: &str) -> Launch {
        self.launch(&["sh", "-c", script])
    }

    async fn run(&self, launch: Launch) -> Finished {
        run(&self.exec, launch).await.0
    }

    async fn says(&self, launch: Launch) -> String {
        let finished = self.run(launch).await;
        match (finished.reason, finished.output) {
            (Reason::Completed { .. }, Output::Text(text)) => text.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    let place = Place::new();
    let hang = || place.shell("trap '' TERM; while :; do sleep 60; done");
    let broken = check_contract(&place.exec, || place.shell("echo done"), hang).await;
    assert_eq!(broken, []);
}

#[tokio::test]
async fn the_prompt_arrives_byte_for_byte() {
    let place = Place::new();
    assert_eq!(place.says(place.launch(&["cat"])).await, "the task");
}

#[tokio::test]
async fn a_piece_arrives_and_the_task_is_told_beside_it() {
    let place = Place::new();
    let path = place.folder.path().join("input");
    std::fs::write(&path, "0123456789").expect("a file");
    let mut launch =
        place.shell("cat; printf ' %s %s' \"$OFFSHOOT_TASK\" \"$(cat $OFFSHOOT_TASK_FILE)\"");
    launch.input = Input::Piece(InputRange {
        path: Arc::new(path),
        offset: 3,
        length: 4,
        header: 0,
        hash: None,
    });
    assert_eq!(place.says(launch).await, "3456 the task the task");
}

#[tokio::test]
async fn a_program_knows_who_it_is_and_no_secret() {
    let place = Place::new();
    let launch =
        place.shell("echo $OFFSHOOT_SESSION_KEY $OFFSHOOT_DEPTH $OFFSHOOT_RUN_ID ${SECRET-none}");
    let expected = format!("agent:main:subagent:test 1 {} none", launch.run);
    assert_eq!(place.says(launch).await, expected);
}

#[tokio::test]
async fn a_program_never_has_the_ticket_of_an_agent_that_its_supervisor_runs_in() {
    let of_the_agent = ["TICKET", "SOCKET", "RUN_ID", "SESSION_KEY", "DEPTH", "TASK", "CONTEXT"]
        .map(|name| (format!("OFFSHOOT_{name}").into(), "outer".into()));
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    for more in ["*", "OFFSHOOT_*", "OFFSHOOT_TICKET"] {
        let place = Place::with(ExecOptions {
            environment: [&of_the_agent[..], std::slice::from_ref(&path)].concat(),
            more: vec![more.into()],
            ..ExecOptions::default()
        });
        let launch = place.shell("env | grep outer; env | grep -c ^OFFSHOOT_RUN_ID=");
        assert_eq!(place.says(launch).await, "1", "{more}");
    }
}

#[tokio::test]
async fn a_large_task_is_a_file() {
    let place = Place::new();
    let mut launch = place.shell("echo ${OFFSHOOT_TASK-unset} $(wc -c < $OFFSHOOT_TASK_FILE)");
    launch.task = "x".repeat(200_000).into();
    assert_eq!(place.says(launch).await, "unset 200000");
}

#[tokio::test]
async fn endings_come_from_evidence() {
    let place = Place::new();
    let reason = async |script| place.run(place.shell(script)).await.reason;
    assert_eq!(reason("exit 7").await, Reason::ExitCode { code: 7 });
    assert_eq!(reason("kill -SEGV $$").await, Reason::Signal { signal: 11 });
    assert_eq!(reason("echo 'I have failed'").await, Reason::Completed { exit_code: Some(0) });
    let finished = place.run(place.shell("echo half; echo 'disk on fire' >&2; exit 1")).await;
    assert_eq!(
        finished.output,
        Output::Text("half".into()),
        "what was printed, whatever the ending"
    );
    assert_eq!(finished.diagnostics.as_deref(), Some("disk on fire"));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let place = Place::new();
    let message = async |launch| match place.run(launch).await.reason {
        Reason::CannotStart { message } => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        message(place.launch(&["no-such-program"])).await,
        "program no-such-program not found"
    );
    assert_eq!(message(place.launch(&["/"])).await, "/ is a directory");
    assert_eq!(message(place.launch(&[])).await, "no command was given");
    let mut nowhere = place.launch(&["cat"]);
    nowhere.working_folder = Arc::new(PathBuf::from("/nonexistent"));
    assert!(message(nowhere).await.contains("/nonexistent"), "the folder is named");
}

#[tokio::test]
async fn a_large_output_is_a_file_of_its_kind() {
    let place = Place::new();
    let check = async |script: &str, format, length: u64, kind| {
        let mut launch = place.shell(script);
        launch.output = format;
        let Output::File { path, kind: found } = place.run(launch).await.output else {
            panic!("an output of this size is a file");
        };
        assert_eq!((found, length_of(&path)), (kind, length), "{script}");
        std::fs::remove_file(path).expect("it was given away");
    };
    let (text, json) = (OutputFormat::Text, OutputFormat::Json);
    check("yes | head -c 1000000", text, 999_999, ValueKind::Text).await;
    check("echo [; yes '1,' | head -c 300000; echo 1]", json, 300_004, ValueKind::Result).await;
    check("yes '{' | head -c 300001", json, 300_001, ValueKind::Text).await;
    check("head -c 300000 /dev/zero | tr '\\0' '\\377'", text, 300_000, ValueKind::Bytes).await;
}

#[tokio::test]
async fn a_command_can_be_wrapped() {
    let wrap = ["env", "WRAPPED=yes"].map(ToOwned::to_owned).to_vec();
    let place = Place::with(ExecOptions {
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        wrap,
        ..ExecOptions::default()
    });
    assert_eq!(place.says(place.launch(&["sh", "-c", "echo $WRAPPED $0", "arg"])).await, "yes arg");
}

#[tokio::test]
async fn one_that_is_stopped_is_no_success_whatever_it_says() {
    let place = Place::new();
    let (handle, stop) = StopHandle::new();
    let host = RunHost::new(Listener::at(move |event| {
        if let RunEvent::Started(_) = event {
            handle.stop(Stop::Soft { grace: Duration::from_secs(10) });
        }
    }));
    let launch = place.shell("trap 'exit 0' TERM; while :; do sleep 60 & wait; done");
    let finished = place.exec.start(launch, RunContext::new(host, stop)).await;
    assert_eq!(finished.reason.code(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn what_a_program_prints_shows_that_it_lives() {
    for (script, expected) in [
        ("cat $GO >&2", "at work"),
        ("cat $GO", "8 bytes of output"),
        ("printf '%s' \"$(cat $GO)\" >&2", "at work"),
    ] {
        let place = Place::new();
        let go = place.folder.path().join("go");
        fifo(&go);
        let (tx, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let (_handle, stop) = StopHandle::new();
        let cx = RunContext::new(passes_on(tx), stop);
        let run = place.exec.start(place.shell(&format!("GO={}; {script}", go.display())), cx);
        let write = async {
            assert!(matches!(heard.recv().await, Some(RunEvent::Started(_))));
            tokio::time::advance(Duration::from_secs(2)).await;
            let written = tokio::task::spawn_blocking(|| std::fs::write(go, "at work\n")).await;
            written.expect("the task panicked").expect("the program reads");
        };
        let (finished, ()) = tokio::join!(run, write);
        assert_eq!(finished.reason, Reason::Completed { exit_code: Some(0) });
        assert_eq!(heard.recv().await, Some(RunEvent::Progress(expected.into())), "{script}");
        assert_eq!(heard.recv().await, None, "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_soon_done_gives_no_sign() {
    let place = Place::new();
    let (tx, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(passes_on(tx), stop);
    place.exec.start(place.shell("echo out; echo err >&2"), cx).await;
    assert!(matches!(heard.recv().await, Some(RunEvent::Started(_))));
    assert_eq!(heard.recv().await, None);
}

/// Passes on what it hears. A test asks for a few events and no more.
fn passes_on(to: tokio::sync::mpsc::UnboundedSender<RunEvent>) -> RunHost {
    RunHost::new(Listener::at(move |event| {
        to.send(event.clone()).expect("the test listens to the end");
    }))
}

fn fifo(path: &Path) {
    #[expect(clippy::disallowed_methods, reason = "a tool of the test, no agent")]
    let made = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .expect("the program cannot be started");
    assert!(made.success());
}

fn length_of(path: &Path) -> u64 {
    path.metadata().expect("the file is there").len()
}
