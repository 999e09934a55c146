//! A runtime of a program and its runs, as objects of the interface.

use std::sync::Arc;
use std::time::Duration;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::wire::line::{Request, op};
use offshoot_plugin_abi::{
    AbiError, Later, Outcome, OutcomeLater, Run, Run_TO, RunHostRef, RunRef, Runtime, Runtime_TO,
    RuntimeRef,
};
use serde_json::value::RawValue;
use tokio::sync::{SetOnce, oneshot};
use tokio::time::timeout;

use super::link::Link;
use super::{Inner, json};
use crate::package::Per;

/// The time that a process may take to end after its run.
pub(super) const EXIT: Duration = Duration::from_secs(2);
/// The time that a run may still take to end, once it was dropped, in a process that has others.
const LINGER: Duration = Duration::from_secs(1);

/// A runtime of a program.
pub(super) fn runtime(plugin: Arc<Inner>, name: &str, config: Box<RawValue>) -> RuntimeRef {
    let object = RuntimeObject { plugin, name: name.to_owned(), config };
    Runtime_TO::from_value(object, TD_Opaque)
}

struct RuntimeObject {
    plugin: Arc<Inner>,
    name: String,
    config: Box<RawValue>,
}

/// The end of a run, once it is known.
type Known = Arc<SetOnce<Result<Outcome, AbiError>>>;

impl Runtime for RuntimeObject {
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef {
        let outcome = Known::default();
        let begun = self.begin(spec_json.as_str(), host, &outcome);
        let run = match begun {
            Ok((link, id)) => Some((link, id)),
            Err(error) => {
                let _ = outcome.set(Err(error));
                None
            }
        };
        Run_TO::from_value(RunObject { run, outcome }, TD_Opaque)
    }
}

impl RuntimeObject {
    fn begin(
        &self,
        spec: &str,
        host: RunHostRef,
        outcome: &Known,
    ) -> Result<(Arc<Link>, u64), AbiError> {
        let launch = json(spec, "launch")?;
        let link = self.plugin.link_for_one()?;
        let refused = Arc::clone(outcome);
        let made = Box::new(move |answer: Result<_, AbiError>| {
            if let Err(error) = answer {
                let _ = refused.set(Err(error));
            }
        });
        let of = link.object(op::RUNTIME, &self.name, &self.config, made);
        let request = Request { launch: Some(&launch), ..Request::new(op::START) }.of(of);
        let (known, held) = (Arc::clone(outcome), Arc::clone(&link));
        let ended = Box::new(move |answer: Result<super::link::Reply, AbiError>| {
            let answer = answer.and_then(|reply| reply.outcome.expect("it was a start"));
            if held.plugin().per == Per::Plugin {
                let _ = known.set(answer);
                return;
            }
            // The run is over when its process is gone.
            held.when_gone(move || drop(known.set(answer)));
            let home = held.plugin().home.clone();
            home.spawn(async move { held.retire(EXIT).await });
        });
        let id = link.ask_run(&request, host, ended);
        Ok((link, id))
    }
}

struct RunObject {
    /// The process and the number of the run in it. None where it could not be started.
    run: Option<(Arc<Link>, u64)>,
    outcome: Known,
}

impl Run for RunObject {
    fn outcome(&self) -> OutcomeLater {
        let outcome = Arc::clone(&self.outcome);
        async move { outcome.wait().await.clone().into() }.into_ffi()
    }

    fn cancel(&self, grace_ms: u64) {
        let Some((link, id)) = &self.run else { return };
        if grace_ms == 0 {
            return self.end();
        }
        link.tell(&Request { grace_ms: Some(grace_ms), ..Request::new(op::CANCEL) }.of(*id));
        let (link, id, outcome) = (Arc::clone(link), *id, Arc::clone(&self.outcome));
        let grace = Duration::from_millis(grace_ms);
        let home = link.plugin().home.clone();
        home.spawn(async move {
            // The second half is for what the process has started, which hears signals and no lines.
            let alone = link.plugin().per == Per::Run;
            let patience = if alone { grace / 2 } else { grace };
            if timeout(patience, outcome.wait()).await.is_ok() {
                return;
            }
            match alone {
                true => link.stop(grace - patience, by_force()),
                false => end_in(link, id, outcome).await,
            }
        });
    }

    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Later {
        let (tx, rx) = oneshot::channel();
        let run = self.run.as_ref().filter(|_| !self.outcome.initialized());
        match (run, json(args_json.as_str(), "arguments")) {
            (Some((link, id)), Ok(args)) => {
                let request = Request {
                    name: Some(name.as_str()),
                    args: Some(&args),
                    ..Request::new(op::CALL)
                };
                // A caller that gave the answer up is not told.
                link.ask(&request.of(*id), Box::new(|answer| drop(tx.send(answer))));
            }
            (_, Err(error)) => drop(tx.send(Err(error))),
            // A run that is over has none.
            (None, _) => drop(tx.send(Err(AbiError::unsupported(name.as_str())))),
        }
        async move {
            let gone = || Err(AbiError::new(AbiError::CANCELLED, "this run is over"));
            let answer = rx.await.unwrap_or_else(|_| gone());
            RResult::from(answer.map(|reply| RString::from(reply.ok)))
        }
        .into_ffi()
    }
}

impl RunObject {
    /// Ends the run at once.
    fn end(&self) {
        let Some((link, id)) = &self.run else { return };
        if self.outcome.initialized() {
            return;
        }
        if link.plugin().per == Per::Run {
            return link.fail(by_force());
        }
        let home = link.plugin().home.clone();
        home.spawn(end_in(Arc::clone(link), *id, Arc::clone(&self.outcome)));
    }
}

/// Ends a run in a process that may have others: where it does not end when it is told to, nothing but the end of the process
/// can end it.
async fn end_in(link: Arc<Link>, id: u64, outcome: Known) {
    link.tell(&Request::new(op::DROP).of(id));
    if timeout(LINGER, outcome.wait()).await.is_err() {
        let message = format!(
            "the process of the plugin `{}` was ended, because a run in it did not end when it was stopped",
            link.plugin().name
        );
        // First, so that no new run comes into this process. The tasks of a plugin have one thread: the run has no outcome yet.
        link.fail(AbiError::new(AbiError::FAILED, message));
        let _ = outcome.set(Err(by_force()));
    }
}

fn by_force() -> AbiError {
    AbiError::new(AbiError::CANCELLED, "it was ended by force")
}

impl Drop for RunObject {
    fn drop(&mut self) {
        if let Some((link, id)) = &self.run {
            link.forget(*id);
        }
        self.end();
    }
}
