//! A host that knows the interface and its JSON, and nothing of offshoot: `frozen-host LIBRARY RUNTIME`.
//!
//! It runs the task `hello`, then the task `wait`, which it cancels, and prints what it is told.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use offshoot_plugin_abi::abi_stable::StableAbi;
use offshoot_plugin_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use offshoot_plugin_abi::abi_stable::library::lib_header_from_path;
use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::{
    AbiError, Answer, Host, Host_TO, Later, PluginRef, RunHost, RunHost_TO, RuntimeRef,
};

/// As a host of 1.0 writes it.
const LAUNCH: &str = r#"{"v":1,"run":"01890000-0000-7000-8000-000000000001",
"root":"01890000-0000-7000-8000-000000000001","key":"agent:main:run:1","agent":"main","depth":0,"task":"TASK",
"context":[],"contextManifest":null,"input":"prompt","command":null,"okExit":[],"output":"text",
"workingFolder":"/","runFolder":"/nowhere","spoolFolder":"/nowhere","model":null,"thinking":null,
"systemPrompt":null,"pass":null,"grant":{"maxDepth":3,"maySpawn":true,"tools":{"allow":null,"deny":[]},
"budget":{"tokens":null,"usd":null},"runTimeoutSeconds":0,"idleTimeoutSeconds":0,"graceSeconds":5}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, library, name] = &arguments[..] else { panic!("two arguments") };
    let plugin = load(Path::new(library));
    println!("manifest {}", plugin.describe()());
    let host = Host_TO::from_value(Plain, TD_Opaque);
    plugin.init()(host, "{}".into()).into_result().expect("it begins");
    let runtime = plugin.runtime()(name.as_str().into(), "{}".into());
    let runtime = runtime.into_result().expect("it has one");
    run(&runtime, "hello");
    run(&runtime, "wait");
    let over = block_on(plugin.shutdown()(1000)).into_result().expect("it ends");
    println!("shutdown {over}");
}

fn load(path: &Path) -> PluginRef {
    let header = lib_header_from_path(path).expect("it is a plugin");
    let theirs = header.layout().expect("it shows its layout");
    let ours = PluginRef::LAYOUT;
    assert!(
        check_layout_compatibility(ours, theirs).is_ok()
            || check_layout_compatibility(theirs, ours).is_ok(),
        "another layout"
    );
    // SAFETY: the layouts have just been compared.
    unsafe { header.unchecked_layout::<PluginRef>() }.expect("it gives its functions")
}

fn run(runtime: &RuntimeRef, task: &str) {
    let host = RunHost_TO::from_value(Plain, TD_Opaque);
    let run = runtime.start(LAUNCH.replace("TASK", task).as_str().into(), host);
    if task == "wait" {
        run.cancel(0);
    }
    let outcome = block_on(run.outcome()).into_result().expect("it ended");
    println!("{task}: {} {}", outcome.head_json, String::from_utf8_lossy(&outcome.body));
    let error = block_on(run.call("dance".into(), "{}".into())).into_result();
    println!("unknown: {}", error.expect_err("nobody knows it").code);
}

struct Plain;

impl Host for Plain {
    fn log(&self, level: u32, target: RStr<'_>, message: RStr<'_>, _fields: RStr<'_>) {
        println!("log {level} {target}: {message}");
    }

    fn call(&self, op: RStr<'_>, _args: RStr<'_>) -> Answer {
        RResult::RErr(AbiError::unsupported(op.as_str()))
    }
}

impl RunHost for Plain {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        println!("event {kind} {payload}");
        0
    }

    fn spawn(&self, _spec: RStr<'_>) -> Later {
        async { RResult::RErr(AbiError::unsupported("spawn")) }.into_ffi()
    }

    fn call(&self, op: RStr<'_>, _args: RStr<'_>) -> Later {
        let error = AbiError::unsupported(op.as_str());
        async { RResult::RErr(error) }.into_ffi()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
