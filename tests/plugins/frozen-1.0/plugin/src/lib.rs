//! A plugin that knows the interface and its JSON, and nothing of offshoot: no SDK, no async runtime.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use offshoot_plugin_abi::abi_stable::library::{
    __call_root_module_loader, CheckTypeLayout, LibHeader, RootModuleResult,
};
use offshoot_plugin_abi::abi_stable::prefix_type::PrefixTypeTrait;
use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{ROption, RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::{
    AbiError, Answer, HostRef, Later, Merge, Merge_TO, MergeJob, MergeJob_TO, MergeJobRef,
    MergeRef, Outcome, OutcomeLater, Plugin, PluginRef, Run, Run_TO, RunHostRef, RunRef, Runtime,
    Runtime_TO, RuntimeRef,
};
use serde_json::{Value, json};

extern "C" fn describe() -> RString {
    let upper = json!({
        "name": "upper", "description": "louder",
        "abilities": { "cost": "none", "turns": false, "resumes": false, "enforces": [] },
    });
    let manifest = json!({
        "v": 1, "name": "frozen", "version": "1.0.0", "abi": "1.0.0", "panic": "unwind",
        "runtimes": [upper], "merges": [{ "name": "join", "description": "" }],
    });
    manifest.to_string().into()
}

extern "C" fn init(host: HostRef, _config: RStr<'_>) -> Answer {
    host.log(3, "frozen".into(), "begun".into(), "".into());
    RResult::ROk("{\"v\":1}".into())
}

extern "C" fn runtime(name: RStr<'_>, _config: RStr<'_>) -> RResult<RuntimeRef, AbiError> {
    match name.as_str() {
        "upper" => RResult::ROk(Runtime_TO::from_value(Upper, TD_Opaque)),
        unknown => RResult::RErr(AbiError::unsupported(unknown)),
    }
}

extern "C" fn merge(name: RStr<'_>, _config: RStr<'_>) -> RResult<MergeRef, AbiError> {
    match name.as_str() {
        "join" => RResult::ROk(Merge_TO::from_value(Join, TD_Opaque)),
        unknown => RResult::RErr(AbiError::unsupported(unknown)),
    }
}

extern "C" fn shutdown(_milliseconds: u64) -> Later {
    async { RResult::ROk("{\"v\":1}".into()) }.into_ffi()
}

fn functions() -> PluginRef {
    Plugin { describe, init, runtime, merge, shutdown }.leak_into_prefix()
}

extern "C" fn module() -> RootModuleResult {
    __call_root_module_loader(functions)
}

// SAFETY: the name is the loader's, and the module is of this type.
#[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
static HEADER: LibHeader =
    unsafe { LibHeader::from_constructor::<PluginRef>(module, CheckTypeLayout::Yes) };

struct Upper;

#[derive(Default)]
struct State {
    ended: Option<Outcome>,
    waiting: Vec<Waker>,
}

struct UpperRun(Arc<Mutex<State>>);

impl Runtime for Upper {
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef {
        let spec: Value = serde_json::from_str(spec_json.as_str()).expect("a launch");
        let task = spec["task"].as_str().expect("it has a task").to_owned();
        host.event(5, r#"{"v":1,"status":"started"}"#.into());
        host.event(1, "going".into());
        let run = UpperRun(Arc::default());
        if task != "wait" {
            run.end(
                json!({ "kind": "completed", "exit_code": null }),
                "text",
                &task.to_uppercase(),
            );
        }
        Run_TO::from_value(run, TD_Opaque)
    }
}

impl UpperRun {
    fn end(&self, reason: Value, output: &str, body: &str) {
        let mut state = self.0.lock().expect("nobody panics");
        if state.ended.is_none() {
            let none = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 });
            let head = json!({ "v": 1, "reason": reason, "output": output, "usage": none });
            let (head_json, body) = (head.to_string().into(), body.as_bytes().into());
            state.ended = Some(Outcome { head_json, body });
        }
        state.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Run for UpperRun {
    fn outcome(&self) -> OutcomeLater {
        let state = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = state.lock().expect("nobody panics");
            match &state.ended {
                Some(ended) => Poll::Ready(RResult::ROk(ended.clone())),
                None => {
                    state.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .into_ffi()
    }

    fn cancel(&self, _grace_ms: u64) {
        self.end(json!({ "kind": "cancelled", "by": "operator" }), "none", "");
    }

    fn call(&self, op: RStr<'_>, _args_json: RStr<'_>) -> Later {
        let error = AbiError::unsupported(op.as_str());
        async { RResult::RErr(error) }.into_ffi()
    }
}

struct Join;

struct JoinJob(Vec<(u32, Value)>);

impl Merge for Join {
    fn begin(&self, _params: RStr<'_>, _host: RunHostRef) -> RResult<MergeJobRef, AbiError> {
        RResult::ROk(MergeJob_TO::from_value(JoinJob(Vec::new()), TD_Opaque))
    }
}

impl MergeJob for JoinJob {
    fn push(
        &mut self,
        index: u32,
        _meta_json: RStr<'_>,
        result_json: RStr<'_>,
    ) -> RResult<ROption<RString>, AbiError> {
        self.0.push((index, serde_json::from_str(result_json.as_str()).expect("JSON")));
        self.0.sort_by_key(|(index, _)| *index);
        RResult::ROk(ROption::RNone)
    }

    fn finish(&mut self) -> Later {
        let all: Vec<Value> = self.0.drain(..).map(|(_, value)| value).collect();
        let answer = RString::from(Value::from(all).to_string());
        async { RResult::ROk(answer) }.into_ffi()
    }
}
