//! A process, as the record names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A process, named so that a reused number is not mistaken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// Process id, which is also the id of its group.
    pub pid: u32,
    /// Start time in clock ticks since boot, from field 22 of `/proc/{pid}/stat`.
    pub start_time: u64,
    /// Since which boot. None in records of earlier versions, and where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
}

/// The random number by which the kernel names the time from one start of the machine to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BootId(#[schemars(with = "String")] Uuid);

impl BootId {
    /// From `/proc/sys/kernel/random/boot_id`, as a number.
    pub const fn from_u128(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }
}

impl ProcessIdentity {
    /// A process of no particular boot.
    pub const fn new(pid: u32, start_time: u64) -> Self {
        Self { pid, start_time, boot: None }
    }

    /// Returns the same process, with the boot in which it was started.
    pub const fn of_boot(self, boot: Option<BootId>) -> Self {
        Self { boot, ..self }
    }

    /// True if it may be a process of this boot. One of another boot is gone, and its number is another process's.
    pub fn may_be_of(&self, boot: Option<BootId>) -> bool {
        self.boot.is_none() || self.boot == boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_boot_is_not_taken_for_one_of_this() {
        let process = ProcessIdentity::new(5, 6);
        let [this, other] = [1, 2].map(|number| Some(BootId::from_u128(number)));
        let rows = [
            (process.of_boot(this), this, true),
            (process.of_boot(other), this, false),
            (process.of_boot(this), None, false),
            // As earlier versions wrote it.
            (process, this, true),
            (process, None, true),
        ];
        for (process, boot, expected) in rows {
            assert_eq!(process.may_be_of(boot), expected, "{process:?} {boot:?}");
        }
        let written =
            serde_json::to_string(&process.of_boot(this)).expect("plain data does not serialise");
        let text = r#"{"pid":5,"startTime":6,"boot":"00000000-0000-0000-0000-000000000001"}"#;
        assert_eq!(written, text);
        let earlier: ProcessIdentity =
            serde_json::from_str(r#"{"pid":5,"startTime":6}"#).expect("the text is not JSON");
        assert_eq!(earlier, process);
    }
}
