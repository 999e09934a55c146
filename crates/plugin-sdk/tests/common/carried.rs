//! A runtime behind the interface as one in front of it.

use offshoot_plugin_sdk::abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_sdk::abi::abi_stable::std_types::{RResult, RStr};
use offshoot_plugin_sdk::abi::async_ffi::FutureExt as _;
use offshoot_plugin_sdk::abi::wire::{self, op};
use offshoot_plugin_sdk::abi::{self, AbiError, Later, RuntimeRef};
use offshoot_plugin_sdk::{
    Abilities, BoxFuture, Finished, FutureExt, Launch, RunContext, RunEvent, RunHost, Runtime, Stop,
};

use crate::common::json;

/// The answer of `runtime`, with what the manifest says of it.
pub(crate) struct Carried {
    pub(crate) object: RuntimeRef,
    pub(crate) abilities: Abilities,
}

impl Runtime for Carried {
    fn name(&self) -> &str {
        "carried"
    }

    fn abilities(&self) -> Abilities {
        self.abilities.clone()
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let RunContext { host, mut stop, mut turns, .. } = cx;
        let side = abi::RunHost_TO::from_value(HostSide(host), TD_Opaque);
        let run = self.object.start(json(launch).as_rstr(), side);
        async move {
            let mut outcome = run.outcome();
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut outcome => {
                        let outcome = outcome.into_result().expect("no panic and no force");
                        return wire::finished::decode(outcome).expect("what was encoded");
                    }
                    stop = stop.heard() => run.cancel(match stop {
                        Stop::Firm => 0,
                        Stop::Soft { grace } => u64::try_from(grace.as_millis()).expect("short"),
                    }),
                    letter = turns.letter() => {
                        let letter = wire::turn::encode_letter(letter);
                        let taken = run.call(op::LETTER.into(), letter.as_str().into()).await;
                        taken.into_result().expect("it takes letters");
                    }
                }
            }
        }
        .boxed()
    }
}

struct HostSide(RunHost);

impl abi::RunHost for HostSide {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        match wire::event::decode(kind, payload.as_str()).expect("what was encoded") {
            Some(RunEvent::Started(process)) => self.0.started(process),
            Some(RunEvent::Progress(text)) => self.0.progress(text),
            Some(RunEvent::ToolUsed(used)) => self.0.tool_used(used),
            Some(RunEvent::Used { usage, cost }) => self.0.used(usage, cost),
            Some(RunEvent::Answers) => self.0.answers(),
            Some(RunEvent::BacksOff { why, wait, is_pressure }) => {
                self.0.backs_off(why, wait, is_pressure);
            }
            Some(RunEvent::ModelChanged(model)) => self.0.model_changed(model),
            Some(RunEvent::StrayEnded { pid, name }) => self.0.stray_ended(pid, name),
            Some(RunEvent::QuotaLeft { window, left, until }) => {
                self.0.quota_left(window, left, until);
            }
            None => {}
        }
        abi::event::GO_ON
    }

    fn spawn(&self, spec_json: RStr<'_>) -> Later {
        let request = wire::spawn::decode(spec_json.as_str()).expect("what was encoded");
        let host = self.0.clone();
        async move { RResult::ROk(wire::spawn::encode_answer(host.spawn(request).await).into()) }
            .into_ffi()
    }

    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Later {
        let host = self.0.clone();
        match op.as_str() {
            op::WAIT => {
                let wait = wire::wait::decode(args_json.as_str()).expect("what was encoded");
                async move {
                    match host.wait(wait).await {
                        Ok(answer) => {
                            let answer = wire::wait::encode_answer(answer).expect("plain data");
                            RResult::ROk(answer.into())
                        }
                        Err(refusal) => RResult::RErr(wire::refused::encode(refusal)),
                    }
                }
                .into_ffi()
            }
            op::DELEGATE => {
                let order = wire::delegate::decode(args_json.as_str());
                let (request, choose_only) = order.expect("what was encoded");
                async move {
                    match host.delegate(request, choose_only).await {
                        Ok(answer) => RResult::ROk(wire::delegate::encode_answer(answer).into()),
                        Err(refusal) => RResult::RErr(wire::refused::encode(refusal)),
                    }
                }
                .into_ffi()
            }
            op::OBSERVED => {
                let told = wire::delegate::decode_observed(args_json.as_str());
                let (observation, success) = told.expect("what was encoded");
                async move {
                    match host.observed(observation, success).await {
                        Ok(()) => RResult::ROk(wire::NOTHING.into()),
                        Err(refusal) => RResult::RErr(wire::refused::encode(refusal)),
                    }
                }
                .into_ffi()
            }
            op::TURN_ENDED => {
                let ended = wire::turn::decode(args_json.as_str()).expect("what was encoded");
                async move {
                    let ruling = host.turn_ended(ended.answer, ended.letters_taken).await;
                    RResult::ROk(wire::turn::encode_answer(ruling).into())
                }
                .into_ffi()
            }
            unknown => {
                let error = AbiError::unsupported(unknown);
                async { RResult::RErr(error) }.into_ffi()
            }
        }
    }
}
