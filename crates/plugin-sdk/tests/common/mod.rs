//! The host's side of the interface, as small as it can be: what crosses is crossed, nothing is loaded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use offshoot_plugin_sdk::Launch;
use offshoot_plugin_sdk::abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_sdk::abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_sdk::abi::async_ffi::FutureExt as _;
use offshoot_plugin_sdk::abi::{self, AbiError, Answer, HostRef, Later, RunHostRef, wire};
use offshoot_plugin_sdk::model::Grant;

pub(crate) fn launch(task: &str) -> Launch {
    let grant = Arc::new(Grant { grace_seconds: 1, ..Grant::unbounded() });
    Launch { grant, ..Launch::bare(task) }
}

pub(crate) fn json(launch: Launch) -> RString {
    wire::launch::encode(launch).expect("UTF-8").into()
}

/// Knows one operation, and keeps what is logged.
#[derive(Clone, Default)]
pub(crate) struct Plain(pub(crate) Arc<Mutex<Vec<String>>>);

impl abi::Host for Plain {
    fn log(&self, level: u32, target: RStr<'_>, message: RStr<'_>, fields_json: RStr<'_>) {
        let line = format!("{level} {target}: {message}{fields_json}");
        self.0.lock().expect("one at a time").push(line);
    }

    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Answer {
        match op.as_str() {
            "echo" => RResult::ROk(args_json.into()),
            unknown => RResult::RErr(AbiError::unsupported(unknown)),
        }
    }
}

impl Plain {
    pub(crate) fn as_ref(&self) -> HostRef {
        abi::Host_TO::from_value(self.clone(), TD_Opaque)
    }
}

/// A host of a run that keeps all events, and answers them with what it is told to.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    pub(crate) events: Arc<Mutex<Vec<(u32, String)>>>,
    pub(crate) answer: Arc<AtomicU32>,
}

impl Recorder {
    pub(crate) fn as_ref(&self) -> RunHostRef {
        abi::RunHost_TO::from_value(self.clone(), TD_Opaque)
    }
}

impl abi::RunHost for Recorder {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        self.events.lock().expect("one at a time").push((kind, payload.into()));
        self.answer.load(Ordering::SeqCst)
    }

    fn spawn(&self, _spec_json: RStr<'_>) -> Later {
        async { RResult::RErr(AbiError::unsupported("spawn")) }.into_ffi()
    }

    fn call(&self, op: RStr<'_>, _args_json: RStr<'_>) -> Later {
        let error = AbiError::unsupported(op.as_str());
        async { RResult::RErr(error) }.into_ffi()
    }
}

/// Fails if a future hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("within the time")
}
