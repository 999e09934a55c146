//! The contract holds for closures, and it notices when it is broken.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{AgentId, Grant, Reason, RootId, RunId, SessionKey};
use offshoot_runtime::{
    Abilities, Finished, FnRuntime, Input, Launch, OutputFormat, RunContext, Runtime, Stop,
    StopHandle, check_contract,
};
use uuid::Uuid;

fn launch(task: &str) -> Launch {
    let run = RunId::from_uuid(Uuid::nil());
    Launch {
        continues: false,
        run,
        root: RootId::new(run),
        key: SessionKey::parse("agent:main:subagent:x").expect("a key"),
        agent: AgentId::main(),
        depth: 1,
        task: task.into(),
        context: Vec::new(),
        context_manifest: None,
        input: Input::Prompt,
        command: None,
        ok_exit: Arc::from([]),
        output: OutputFormat::Text,
        working_folder: Arc::new(PathBuf::from("/")),
        run_folder: PathBuf::from("/nonexistent"),
        spool_folder: Arc::new(PathBuf::from("/nonexistent")),
        model: None,
        thinking: None,
        system_prompt: None,
        grant: Arc::new(Grant::unbounded()),
        pass: None,
    }
}

#[tokio::test(start_paused = true)]
async fn every_runtime_passes_the_contract() {
    let closure = FnRuntime::new("closure", |launch, _cx| async move {
        if &*launch.task == "hang" {
            std::future::pending::<()>().await;
        }
        Finished::text("done")
    });
    let broken = check_contract(&closure, || launch("answer"), || launch("hang")).await;
    assert_eq!(broken, []);
}

/// Says nothing when it starts, and claims success when it is stopped.
struct Liar;

impl Runtime for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn abilities(&self) -> Abilities {
        Abilities::of_a_command()
    }

    fn start(&self, _launch: Launch, _cx: RunContext) -> BoxFuture<'static, Finished> {
        Box::pin(async { Finished::of(Reason::Completed { exit_code: None }) })
    }
}

#[tokio::test]
async fn a_liar_is_found_out() {
    let broken = check_contract(&Liar, || launch("answer"), || launch("hang")).await;
    let rules: Vec<&str> = broken.iter().map(|violation| violation.rule).collect();
    assert_eq!(
        rules,
        [
            "started is told exactly once",
            "started comes first",
            "a soft stop ends a run that hangs",
            "a firm stop ends a run that hangs",
        ]
    );
}

#[tokio::test]
async fn a_softer_request_does_not_soften_a_firm_one() {
    let (handle, mut signal) = StopHandle::new();
    let soft = |seconds| Stop::Soft { grace: std::time::Duration::from_secs(seconds) };
    handle.stop(soft(5));
    assert_eq!(signal.heard().await, soft(5));
    handle.stop(soft(2));
    assert_eq!(signal.heard().await, soft(2), "a shorter grace is firmer");
    handle.stop(Stop::Firm);
    assert_eq!(signal.heard().await, Stop::Firm);
    handle.stop(soft(9));
    assert_eq!(signal.requested(), Some(Stop::Firm));
}
