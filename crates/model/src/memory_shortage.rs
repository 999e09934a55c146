//! Memory of the computer that is too little for a further run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number;

/// The numbers by which a further run would leave too little memory, in bytes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryShortage {
    /// The memory that new programs can take.
    pub available: u64,
    /// The part of it that the live runs and the run that waits are expected to take.
    pub reserved: u64,
    /// The memory that is to stay available.
    pub kept: u64,
    /// The part of the last ten seconds in which some program stood still for want of memory, in hundredths of a percent; none where
    /// that is not too much.
    pub stalled: Option<u32>,
}

impl MemoryShortage {
    /// Returns true if its numbers say that memory is short.
    pub const fn is_short(&self) -> bool {
        self.stalled.is_some() || self.available.saturating_sub(self.reserved) < self.kept
    }
}

impl fmt::Display for MemoryShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stalled) = self.stalled {
            let (whole, tenths) = (stalled / 100, stalled % 100 / 10);
            return write!(
                f,
                "programs stood still for want of memory for {whole}.{tenths}% of the last ten seconds"
            );
        }
        let Self { available, reserved, kept, .. } = self;
        let [available, reserved, kept] = [available, reserved, kept].map(|it| number::bytes(*it));
        write!(f, "{available} available, {reserved} of it reserved for runs, {kept} kept")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_said_by_its_numbers() {
        let check = |[available, reserved, kept]: [u64; 3], stalled, short, text: &str| {
            let shortage = MemoryShortage { available, reserved, kept, stalled };
            assert_eq!((shortage.is_short(), &*shortage.to_string()), (short, text));
        };
        const MIB: u64 = 1 << 20;
        let text = "2.0 GiB available, 600.0 MiB of it reserved for runs, 1.5 GiB kept";
        check([2048 * MIB, 600 * MIB, 1536 * MIB], None, true, text);
        check([20, 8, 12], None, false, "20 B available, 8 B of it reserved for runs, 12 B kept");
        check([20, 30, 0], None, false, "20 B available, 30 B of it reserved for runs, 0 B kept");
        let text = "programs stood still for want of memory for 25.1% of the last ten seconds";
        check([20, 8, 12], Some(2_512), true, text);
    }
}
