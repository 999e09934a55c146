//! The choice of models along a line of runs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{AgentId, Payload, ProcessIdentity, RootId, RunId, SpawnRequest};
use offshoot_runtime::{Finished, FnRuntime, Pass, WaitFor};
use offshoot_spawner::{RootSpec, Spawner, TicketIssuer};
use tokio::sync::mpsc;

/// Lets every run in by its name.
struct Door;

impl TicketIssuer for Door {
    fn issue(&self, _root: RootId, run: RunId) -> Option<Pass> {
        Some(Pass { socket: Arc::new("/door".into()), ticket: run.to_string().into() })
    }

    fn started(&self, _run: RunId, _process: Option<ProcessIdentity>) {}

    fn ended(&self, _run: RunId) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

const AGENTS: &str = r#"
[agents.defaults.subagents]
allowAgents = ["*"]
allowRecursiveSpawn = true
[[agents.list]]
id = "main"
model = "large"
thinking = "high"
[[agents.list]]
id = "scout"
model = { primary = "small", fallbacks = ["smaller"] }
subagents = { model = "tiny" }
[[agents.list]]
id = "plain"
"#;

#[tokio::test(start_paused = true)]
async fn the_request_then_the_agent_then_its_parents_word_then_its_parents_own() {
    let (told, mut started) = mpsc::unbounded_channel();
    let runtime = FnRuntime::new("minds", move |launch, _cx| {
        told.send(launch.run).ok();
        async move {
            if launch.task.starts_with("hold") {
                std::future::pending::<()>().await;
            }
            let [model, thinking] =
                [&launch.model, &launch.thinking].map(|word| word.as_deref().unwrap_or("none"));
            Finished::text(format!("{model}, {thinking}"))
        }
    });
    let config =
        Loader::new().file(Source::new(SourceKind::User, "a.toml", AGENTS)).load().expect("agents");
    let spawner = Spawner::builder().config(config).ticket_issuer(Arc::new(Door)).runtime(runtime);
    let spawner = spawner.build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let agents = session.agents();
    let ask = |task: &str, agent: &str, model: Option<&str>| SpawnRequest {
        task: task.into(),
        agent: Some(AgentId::parse(agent).expect("the text is no id")),
        model: model.map(str::to_owned),
        ..SpawnRequest::default()
    };
    session.spawn(ask("hold main", "main", None)).await.expect("a piece");
    let main = started.recv().await.expect("nothing was started");
    agents.spawn(main, ask("hold scout", "scout", None)).await.expect("a child");
    let scout = started.recv().await.expect("nothing was started");
    agents.spawn(main, ask("hold chosen", "plain", Some("chosen"))).await.expect("a child");
    let chosen = started.recv().await.expect("nothing was started");
    for (parent, agent, model, expected) in [
        (main, "main", None, "large, high"),
        (main, "main", Some("asked"), "asked, high"),
        (main, "scout", None, "small, high"),
        (main, "plain", None, "large, high"),
        (scout, "plain", None, "tiny, high"),
        (chosen, "plain", None, "chosen, high"),
    ] {
        let child = agents.spawn(parent, ask("tell", agent, model)).await.expect("a child");
        let wait = WaitFor { runs: vec![child.run], ..WaitFor::default() };
        let answer = agents.wait(parent, wait).await.expect("an answer");
        assert_eq!(answer.ended[0].data, Some(Payload::text(expected)), "{agent} {model:?}");
    }
}
