//! The host, as a plugin sees it outside any run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr};
use offshoot_plugin_abi::wire::{self, NOTHING, op};
use offshoot_plugin_abi::{AbiError, Answer, Host, Host_TO, HostRef};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Error;

/// The way to the host. Cheap to clone.
#[derive(Clone)]
pub struct PluginHost(Arc<HostRef>);

/// The level of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is broken.
    Error = 1,
    /// Something is not as it should be.
    Warn = 2,
    /// Something that happens rarely.
    Info = 3,
    /// Details for an author that looks for a mistake.
    Debug = 4,
    /// Details that are rarely wanted.
    Trace = 5,
}

impl PluginHost {
    pub(crate) fn new(host: HostRef) -> Self {
        Self(Arc::new(host))
    }

    /// A host that knows no operation and keeps no log.
    pub(crate) fn of_a_test() -> Self {
        Self::new(Host_TO::from_value(NoHost, TD_Opaque))
    }

    /// A line for the host's log. `target` names the part of the plugin that speaks.
    pub fn log(&self, level: Level, target: &str, message: &str) {
        self.0.log(level as u32, target.into(), message.into(), "".into());
    }

    /// The same with fields: a struct or a map, whose values the host shows as `name=value`. Fields that are neither stand as the
    /// field `value`, and the reason why they cannot be written as the field `unwritable`.
    pub fn log_with(&self, level: Level, target: &str, message: &str, fields: &impl Serialize) {
        let fields = match serde_json::to_value(fields) {
            Ok(fields @ Value::Object(_)) => fields,
            Ok(value) => json!({"value": value}),
            Err(error) => json!({"unwritable": error.to_string()}),
        };
        self.0.log(level as u32, target.into(), message.into(), fields.to_string().as_str().into());
    }

    /// An operation by its name, with its arguments and its answer as JSON. Blocks while it lasts.
    ///
    /// # Errors
    /// [`Error::unsupported`] where the host does not know it, else what the host says.
    pub fn call(&self, op: &str, args_json: &str) -> Result<String, Error> {
        let answer = self.0.call(op.into(), args_json.into());
        answer.into_result().map(String::from).map_err(Error::from)
    }
}

impl PluginHost {
    /// The path of the command `offshoot`, for programs that call it. None where the host is another program.
    ///
    /// # Errors
    /// [`Error::unsupported`] where the host is older.
    pub fn offshoot(&self) -> Result<Option<PathBuf>, Error> {
        Ok(wire::offshoot::decode(&self.call(op::OFFSHOOT, NOTHING)?)?)
    }
}

struct NoHost;

impl Host for NoHost {
    fn log(&self, _level: u32, _target: RStr<'_>, _message: RStr<'_>, _fields_json: RStr<'_>) {}

    fn call(&self, name: RStr<'_>, _args_json: RStr<'_>) -> Answer {
        RResult::RErr(AbiError::unsupported(name.as_str()))
    }
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginHost")
    }
}
