//! A plugin in which everything crosses that has a number in it.

use offshoot_plugin_sdk::model::{Cost, MicroUsd, SpawnRequest, TokenCount, Usage};
use offshoot_plugin_sdk::{
    Abilities, Error, Finished, FnRuntime, JsonText, Launch, MergeFn, MergeInput, MergeSetup,
    Plugin, Reason, RunContext, RunHost, WaitFor, export_plugin, json_of, value_of,
};

async fn run(launch: Launch, cx: RunContext) -> Finished {
    match &*launch.task {
        "wait" => std::future::pending().await,
        "numbers" => numbers(launch, cx.host).await,
        "panic" => panic!("as it was told"),
        "exit" => Finished::of(Reason::ExitCode { code: 7 }),
        _ => Finished::text(launch.task),
    }
}

/// Says what it reads of numbers that the host has written: in its launch, a refusal and an answer to its wait.
async fn numbers(launch: Launch, host: RunHost) -> Finished {
    let input = TokenCount::Known(1 << 60);
    host.used(Usage { input, ..Usage::default() }, Cost::known(MicroUsd::from_micros(100_001)));
    let grant = &launch.grant;
    let refused = host.spawn(SpawnRequest::default()).await;
    let mut waited = host.wait(WaitFor::default()).await.expect("the host of this test answers");
    let envelope = waited.ended.pop().expect("the host of this test has one");
    let reasons = [Reason::ExitCode { code: -7 }, Reason::Timeout { seconds: u64::MAX }];
    for reason in reasons {
        let json = serde_json::to_string(&reason).expect("plain data does not serialise");
        let read = serde_json::from_str::<Reason>(&json);
        assert!(matches!(&read, Ok(same) if *same == reason), "{json} is {read:?}");
    }
    Finished::text(format!(
        "{} {:?} {} {} {:?} {:?}",
        grant.run_timeout_seconds,
        grant.budget.usd,
        refused.is_err(),
        envelope.execution_time_ms,
        envelope.usage.total(),
        envelope.cost,
    ))
}

/// Adds numbers, and shows the tree of values that it got.
struct Sum(Vec<serde_json::Value>);

impl MergeFn for Sum {
    fn begin(setup: MergeSetup) -> Result<Self, Error> {
        let begin: Option<f64> = setup.params.parse()?;
        Ok(Self(begin.map(Into::into).into_iter().collect()))
    }

    fn push(&mut self, _index: u32, result: MergeInput) -> Result<Option<JsonText>, Error> {
        self.0.push(value_of(&result)?);
        Ok(None)
    }

    async fn finish(self) -> Result<JsonText, Error> {
        let sum: f64 = self.0.iter().filter_map(serde_json::Value::as_f64).sum();
        json_of(&(sum, self.0))
    }
}

export_plugin!(
    Plugin::new("as a stranger builds it")
        .runtime("stranger", "", Abilities { enforces: None, ..Abilities::of_a_command() }, |_| {
            Ok(FnRuntime::new("stranger", run))
        })
        .merge::<Sum>("sum", "")
);
