//! A whole plugin against the bare interface: a runtime that says its task in upper case, or hangs until it is cancelled,
//! and a merge that is the longest text.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};

use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{ROption, RResult, RStr, RString};
use async_ffi::FutureExt;
use offshoot_model::{CancelledBy, JsonText, Reason};
use offshoot_plugin_abi::wire::manifest::{self, Manifest, MergeEntry, Panic, RuntimeEntry};
use offshoot_plugin_abi::wire::{event, finished, launch};
use offshoot_plugin_abi::{
    AbiError, Answer, HostRef, Later, Merge, Merge_TO, MergeJob, MergeJob_TO, MergeJobRef,
    MergeRef, Outcome, OutcomeLater, Plugin, PluginRef, Run, Run_TO, RunHostRef, RunRef, Runtime,
    Runtime_TO, RuntimeRef, VERSION,
};
use offshoot_runtime::{Abilities, Finished, RunEvent};

/// The functions of the plugin.
pub(crate) fn plugin() -> PluginRef {
    Plugin { describe, init, runtime, merge, shutdown }.leak_into_prefix()
}

extern "C" fn describe() -> RString {
    manifest::encode(Manifest {
        name: crate::NAME.into(),
        version: "0.1.0".into(),
        abi: VERSION.into(),
        panic: if crate::NAME == "panic-aborts" { Panic::Abort } else { Panic::Unwind },
        // What a terminal would obey.
        description: match crate::NAME {
            "alien-allocator" => "picks\u{1b}[2J and\n  merge chooses".into(),
            _ => "a plugin without the SDK".into(),
        },
        license: "MIT".into(),
        config_schema: (crate::NAME == "raw").then(|| {
            let schema = r#"{"type":"object","properties":{"level":{"type":"integer"}}}"#;
            JsonText::parse(schema.to_owned()).expect("JSON")
        }),
        runtimes: vec![RuntimeEntry {
            config_schema: None,
            name: "upper".into(),
            description: "says its task in upper case".into(),
            abilities: Abilities::of_a_command(),
        }],
        merges: vec![MergeEntry {
            name: "longest".into(),
            description: String::new(),
            config_schema: None,
        }],
    })
    .into()
}

extern "C" fn init(host: HostRef, config: RStr<'_>) -> Answer {
    if config.contains("hang") {
        host.log(3, "init".into(), "it hangs".into(), "".into());
        loop {
            std::thread::park();
        }
    }
    match config.contains("refuse") {
        true => RResult::RErr(AbiError::new(AbiError::INVALID, "it does not like its settings")),
        false => RResult::ROk("{\"v\":1}".into()),
    }
}

extern "C" fn runtime(name: RStr<'_>, _: RStr<'_>) -> RResult<RuntimeRef, AbiError> {
    match name.as_str() {
        "upper" => RResult::ROk(Runtime_TO::from_value(Upper, TD_Opaque)),
        other => RResult::RErr(AbiError::unsupported(other)),
    }
}

extern "C" fn merge(name: RStr<'_>, config: RStr<'_>) -> RResult<MergeRef, AbiError> {
    match name.as_str() {
        _ if config.contains("refuse") => {
            RResult::RErr(AbiError::new(AbiError::INVALID, "it does not like its settings"))
        }
        "longest" => RResult::ROk(Merge_TO::from_value(Longest, TD_Opaque)),
        other => RResult::RErr(AbiError::unsupported(other)),
    }
}

/// The runs that are under way.
static LIVE: Mutex<Vec<Weak<Stage>>> = Mutex::new(Vec::new());

extern "C" fn shutdown(_: u64) -> Later {
    let live = std::mem::take(&mut *LIVE.lock().expect("no holder of the lock panics"));
    live.iter().filter_map(Weak::upgrade).for_each(|stage| stage.cancel());
    async { RResult::ROk("{\"v\":1}".into()) }.into_ffi()
}

/// One of each kind that the SDK has no words for, one that cannot be read, and one that is not known.
const KINDS: &[(u32, &str)] = &[
    (2, r#"{"v":1,"name":"grep","input":{"pattern":"x"}}"#),
    (3, r#"{"v":1,"name":"grep","isError":true}"#),
    (4, r#"{"v":1,"tokens":"many"}"#),
    (6, r#"{"v":1,"text":"nothing found"}"#),
    (7, r#"{"v":1,"source":"acme","event":{"type":"delta","n":1}}"#),
    (8, "of the future"),
];

struct Upper;

impl Runtime for Upper {
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef {
        let (kind, payload) = event::encode(&RunEvent::Started(None));
        host.event(kind, payload.as_ref().into());
        let remark = RunEvent::Progress("here we go".into());
        let (kind, payload) = event::encode(&remark);
        host.event(kind, payload.as_ref().into());
        if spec_json.contains("\"task\":\"flood\"") {
            for number in 0..10_000 {
                let told = RunEvent::Progress(number.to_string().into());
                let (kind, payload) = event::encode(&told);
                host.event(kind, payload.as_ref().into());
            }
        }
        if spec_json.contains("\"task\":\"kinds\"") {
            for (kind, payload) in KINDS {
                host.event(*kind, (*payload).into());
            }
        }
        let answer = launch::decode(&spec_json).map(|launch| match &launch.command {
            Some(command) if &*launch.task == "say the command" => {
                said(command, &launch.working_folder)
            }
            _ => launch.task.to_uppercase(),
        });
        let stage = Arc::new(Stage::default());
        let mut live = LIVE.lock().expect("no holder of the lock panics");
        live.retain(|stage| stage.strong_count() > 0);
        live.push(Arc::downgrade(&stage));
        drop(live);
        Run_TO::from_value(UpperRun { answer, stage }, TD_Opaque)
    }
}

/// Says a command. It hangs until a test has put `go` into the folder, and says so to the test, which reads `fifo` there.
fn said(command: &[String], folder: &Path) -> String {
    if folder.join("go").exists() {
        return command.join(" ").to_uppercase();
    }
    std::fs::write(folder.join("fifo"), "up\n").expect("the test reads it");
    "HANG".to_owned()
}

struct UpperRun {
    answer: Result<String, AbiError>,
    stage: Arc<Stage>,
}

#[derive(Default)]
struct Stage {
    cancelled: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Stage {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        let wakers =
            std::mem::take(&mut *self.wakers.lock().expect("no holder of the lock panics"));
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Run for UpperRun {
    fn outcome(&self) -> OutcomeLater {
        let (answer, stage) = (self.answer.clone(), Arc::clone(&self.stage));
        async move {
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => return RResult::RErr(error),
            };
            let finished = match answer.as_str() {
                "HANG" => {
                    std::future::poll_fn(|cx| {
                        let mut wakers = stage.wakers.lock().expect("no holder of the lock panics");
                        match stage.cancelled.load(Ordering::SeqCst) {
                            true => Poll::Ready(()),
                            false => {
                                wakers.push(cx.waker().clone());
                                Poll::Pending
                            }
                        }
                    })
                    .await;
                    Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
                }
                "LIE" => {
                    let head_json = "{}".into();
                    return RResult::ROk(Outcome { head_json, body: Default::default() });
                }
                _ => Finished::text(answer),
            };
            RResult::from(finished::encode(&finished))
        }
        .into_ffi()
    }

    fn cancel(&self, _: u64) {
        self.stage.cancel();
    }

    fn call(&self, op: RStr<'_>, _: RStr<'_>) -> Later {
        let error = AbiError::unsupported(&op);
        async { RResult::RErr(error) }.into_ffi()
    }
}

struct Longest;

impl Merge for Longest {
    fn begin(&self, params_json: RStr<'_>, _: RunHostRef) -> RResult<MergeJobRef, AbiError> {
        if params_json.contains("refuse") {
            return RResult::RErr(AbiError::new(AbiError::INVALID, "no such parameter"));
        }
        let early = params_json.contains("early");
        RResult::ROk(MergeJob_TO::from_value(
            LongestJob { early, best: (u32::MAX, "\"\"".into()) },
            TD_Opaque,
        ))
    }
}

struct LongestJob {
    early: bool,
    /// With its place, so that of two equally long ones the first wins.
    best: (u32, String),
}

impl MergeJob for LongestJob {
    fn push(
        &mut self,
        index: u32,
        _: RStr<'_>,
        result_json: RStr<'_>,
    ) -> RResult<ROption<RString>, AbiError> {
        let (place, best) = &self.best;
        if (result_json.len(), *place) > (best.len(), index) {
            self.best = (index, result_json.into());
        }
        let answer = self.early.then(|| RString::from(self.best.1.as_str()));
        RResult::ROk(answer.into())
    }

    fn finish(&mut self) -> Later {
        let best = RString::from(self.best.1.as_str());
        async { RResult::ROk(best) }.into_ffi()
    }
}
