//! Runs that wait for memory.

use offshoot_model::{Account, MemoryShortage};

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

#[test]
fn no_child_may_take_more_of_the_computer_than_its_parent() {
    type Set = fn(&mut Grant, u64);
    let limits: [Set; 3] = [
        |grant, most| grant.max_memory_bytes = most,
        |grant, most| grant.max_open_files = most,
        |grant, most| grant.max_cpu_seconds = most,
    ];
    for set in limits {
        let chain = |parent: u64, child: u64| {
            move |script: &mut Script| {
                set(script.grant(0), parent);
                script.child(1, 1, 0, "b", 1);
                set(script.grant(1), child);
                script.starts(1, 1);
            }
        };
        tell("nothing bounds them", said(), chain(0, 0), &[]);
        tell("the child is bounded", said(), chain(0, 9), &[]);
        tell("both are, equally", said(), chain(9, 9), &[]);
        tell("it may less", said(), chain(9, 8), &[]);
        tell("it may more", said(), chain(9, 10), &[Rule::Rights]);
        tell("nothing bounds it", said(), chain(9, 0), &[Rule::Rights]);
    }
}

#[test]
fn no_run_starts_beyond_the_slots_of_its_account() {
    let starts = |bound: Option<u32>, lends: bool| {
        move |script: &mut Script| {
            let account = Account::of_runtime("exec");
            if let Some(max_concurrent) = bound {
                let account = account.clone();
                script.at(0, 0, EventKind::AccountBound { account, max_concurrent });
            }
            script.child(1, 1, 0, "b", 1);
            script.child(2, 1, 0, "b", 1);
            script.at(0, 1, EventKind::Waiting);
            script.starts(1, 1);
            script.at(0, 2, EventKind::AccountFull { account: account.clone() });
            if lends {
                script.at(1, 3, EventKind::Waiting);
            }
            script.starts(2, 4);
            script.at(0, 5, EventKind::AccountFree { account });
        }
    };
    tell("two may", said(), starts(Some(2), false), &[]);
    tell("the first one lends its slot", said(), starts(Some(1), true), &[]);
    tell("one may", said(), starts(Some(1), false), &[Rule::Concurrency]);
    tell("nothing bounds them", said(), starts(None, false), &[Rule::Concurrency]);
}
