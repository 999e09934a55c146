//! Runs that wait for memory.

use offshoot_model::MemoryShortage;

use super::*;

#[test]
fn runs_wait_for_memory_only_while_another_one_holds_a_slot_and_it_is_short() {
    let waits = |starts: bool, available: u64, stalled: Option<u32>| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.child(2, 1, 0, "b", 1);
            script.at(0, 1, EventKind::Waiting);
            if starts {
                script.starts(1, 1);
            }
            let shortage = MemoryShortage { available, reserved: 10, kept: 20, stalled };
            script.at(0, 2, EventKind::MemoryShort(shortage));
            script.at(0, 3, EventKind::MemoryEnough);
        }
    };
    tell("short", said(), waits(true, 29, None), &[]);
    tell("programs stand still", said(), waits(true, 99, Some(2_001)), &[]);
    tell("enough", said(), waits(true, 30, None), &[Rule::Memory]);
    tell("no run holds a slot", said(), waits(false, 29, None), &[Rule::Memory]);
}
