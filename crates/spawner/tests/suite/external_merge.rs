//! Merges that are not ours: pushed as pieces end, early answers, failures, and a merge that asks for an agent.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_merge::OnFailure;
use offshoot_model::{CancelledBy, Ending, JsonText, Payload, Reason, SpawnRequest};
use offshoot_runtime::{
    Finished, FnRuntime, Merge, MergeFault, MergeInput, MergeJob, MergeValue, RunHost, WaitFor,
};
use offshoot_spawner::{
    ExternalMerge, FanAnswer, FanOut, Gathering, Piece, RootSpec, Spawner, SpawnerError,
};

/// Notes what is pushed, in the order of places; does what its parameters say.
struct Notes;

struct NotesJob {
    params: String,
    host: RunHost,
    lines: Vec<(u32, String)>,
}

impl Merge for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    fn begin(&self, params: &JsonText, host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault> {
        match params.as_str() {
            "\"refuse\"" => Err(MergeFault::new("no such parameter")),
            params => Ok(Box::new(NotesJob { params: params.to_owned(), host, lines: Vec::new() })),
        }
    }
}

impl MergeJob for NotesJob {
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        let MergeInput { key, status, value } = result;
        let value = match value {
            MergeValue::Text(text) if text.len() > 100 => format!("{} bytes", text.len()),
            MergeValue::Text(text) => text.to_string(),
            MergeValue::Json(_) => "envelope".to_owned(),
            MergeValue::File { size, .. } => format!("a file of {size} bytes"),
        };
        if self.params == "\"fail\"" && value == "b" {
            return Err(MergeFault::new("it does not like b"));
        }
        self.lines.push((index, format!("{key} {status} {value}")));
        self.lines.sort();
        Ok((self.params == "\"early\"").then(|| JsonText::of(&value).expect("text")))
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        let lines: Vec<String> = self.lines.drain(..).map(|(_, line)| line).collect();
        let (text, host, asks) = (lines.join("; "), self.host.clone(), self.params == "\"ask\"");
        async move {
            if !asks {
                return Ok(JsonText::of(&text).expect("text"));
            }
            let request = SpawnRequest { task: "agent".into(), ..SpawnRequest::default() };
            let run =
                host.spawn(request).await.map_err(|refusal| MergeFault::new(refusal.message))?;
            let wait = WaitFor { runs: vec![run], ..WaitFor::default() };
            let answer =
                host.wait(wait).await.map_err(|refusal| MergeFault::new(refusal.message))?;
            let data = answer.ended[0].data.as_ref();
            Ok(JsonText::of(&(text, data)).expect("plain data does not serialise"))
        }
        .boxed()
    }
}

fn notes(params: &str) -> ExternalMerge {
    ExternalMerge { merge: Arc::new(Notes), params: JsonText::of(&params).expect("text") }
}

async fn merged(params: &str, order: FanOut) -> Result<FanAnswer, SpawnerError> {
    let runtime = FnRuntime::new("say", |launch, _cx| async move {
        match &*launch.task {
            "never" => std::future::pending().await,
            "fail" => Finished::of(Reason::ExitCode { code: 7 }),
            "large" => Finished::text("x".repeat(100_000)),
            task => Finished::text(task),
        }
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("pieces")).await.expect("a root");
    let order = FanOut { external: Some(notes(params)), ..order };
    let answer = session.fan_out(order).await?.answer().await?;
    session.conclude(&answer).await.expect("a whole record");
    Ok(answer)
}

fn pieces<const N: usize>(tasks: [&str; N]) -> FanOut {
    FanOut::new(tasks.map(|task| Piece { key: Some(task.into()), ..Piece::task(task) }))
}

fn text(answer: &FanAnswer) -> Option<Payload> {
    answer.answer.to_payload()
}

#[tokio::test]
async fn results_are_pushed_and_the_answer_is_the_merges_own() {
    let answer = merged("", pieces(["a", "large", "b"])).await.expect("an answer");
    let expected = "a completed a; large completed 100000 bytes; b completed b";
    assert_eq!(text(&answer), Some(Payload::text(expected)));
    assert_eq!(answer.verdict, Ok(()));
    assert_eq!(answer.strategy, "plugin:notes=\"\"");
}

#[tokio::test(start_paused = true)]
async fn an_early_answer_cancels_the_rest() {
    let answer = merged("early", pieces(["never", "b", "never"])).await.expect("an answer");
    assert_eq!(text(&answer), Some(Payload::text("b")));
    assert_eq!((answer.verdict, answer.cut_short), (Ok(()), Some(CancelledBy::EarlyAnswer)));
    assert_eq!(answer.failures.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_merge_that_fails_is_the_verdict_and_stops_the_rest() {
    let answer = merged("fail", pieces(["b", "never"])).await.expect("the pieces ran");
    let error = answer.verdict.expect_err("it does not like b");
    assert_eq!(error.to_string(), "it does not like b");
    assert_eq!(answer.cut_short, Some(CancelledBy::EarlyAnswer));
}

#[tokio::test]
async fn parameters_are_refused_before_anything_runs() {
    let error = merged("refuse", pieces(["never"])).await.expect_err("no such parameter");
    assert!(
        matches!(&error, SpawnerError::Merge(error) if error.to_string() == "no such parameter")
    );
}

#[tokio::test]
async fn failures_are_what_was_asked_of_them() {
    let tasks = || pieces(["a", "fail"]);
    let answer = merged("", tasks()).await.expect("the pieces ran");
    assert!(answer.verdict.is_err(), "one failed");
    let answer = merged("", tasks().on_failure(OnFailure::Skip)).await.expect("the pieces ran");
    assert_eq!(text(&answer), Some(Payload::text("a completed a")));
    let answer = merged("", tasks().on_failure(OnFailure::Include)).await.expect("the pieces ran");
    assert_eq!(text(&answer), Some(Payload::text("a completed a; fail failed envelope")));
}

#[tokio::test]
async fn a_merge_may_ask_for_an_agent() {
    let answer = merged("ask", pieces(["a"])).await.expect("an answer");
    let Some(Payload::Json(json)) = text(&answer) else { panic!("{:?}", text(&answer)) };
    assert_eq!(json.as_str(), r#"["a completed a",{"text":"agent"}]"#);
}

#[tokio::test]
async fn a_session_merges_as_the_root_does_and_asks_in_its_own_name() {
    let runtime = FnRuntime::new("say", |launch, _cx| async move { Finished::text(&*launch.task) });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("asks")).await.expect("a root");
    let (agents, root) = (session.agents(), session.root().run());
    let begin = async |params: &str| {
        Gathering::by_external(&notes(params), OnFailure::Fail, &agents, root).await
    };
    let merged = async |params: &str, values: [&str; 2]| {
        let mut gathering = begin(params).await.expect("it knows the parameter");
        for (place, value) in (0..).zip(values) {
            gathering.push(place, value.into(), Ok(Payload::text(value))).await;
        }
        let concluded = gathering.conclude(2).await.map_err(|error| error.to_string());
        (concluded, gathering.stands(), gathering.into_answer().to_payload())
    };
    let both = Some(Payload::text("a completed a; b completed b"));
    assert_eq!(merged("", ["a", "b"]).await, (Ok(()), false, both));
    assert_eq!(merged("early", ["a", "b"]).await, (Ok(()), true, Some(Payload::text("a"))));
    let (failed, ..) = merged("fail", ["b", "a"]).await;
    assert_eq!(failed, Err("it does not like b".to_owned()));
    assert_eq!(begin("refuse").await.expect_err("no such parameter").message, "no such parameter");

    merged("ask", ["a", "b"]).await.0.expect("it asks for an agent");
    let tree = agents.tree().expect("a whole record");
    let node = tree.get(root).expect("the root is on record");
    assert_eq!(tree.children(node).count(), 1, "it is a child of the run that merges");
    // One that outlives its tree gets no more agents, and keeps nothing alive.
    let mut left = begin("ask").await.expect("it knows the parameter");
    session.close(Ending::of(Reason::Completed { exit_code: None })).await.expect("a whole record");
    left.conclude(0).await.expect_err("no agent is left to ask");
}
