//! Round trips: any recorded event is read back as it was.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{
    Account, AgentId, BootId, BudgetGrant, CancelledBy, Chosen, ContentHash, Cost, DeliveryId,
    Ending, Event, EventKind, Grant, InputRange, JsonText, KeeperFault, MemoryShortage,
    MergeSummary, MicroUsd, Origin, Payload, PiecesAgain, ProcessIdentity, Reason, Refusal,
    RefusalCode, Rights, RootId, RootReopened, RunId, SaidError, SessionKey, Timestamp, TokenCount,
    ToolUse, Usage, ValueKind, VariableRef,
};
use offshoot_store::{MemoryStore, Store};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use crate::sample::{OnDisk, admission, new_run};

fn run_id() -> impl Strategy<Value = RunId> {
    any::<[u8; 16]>().prop_map(RunId::from_bytes)
}

fn keeper_fault() -> impl Strategy<Value = KeeperFault> {
    use KeeperFault::{Ended, Silent, Stopped};
    prop_oneof![Just(Ended), Just(Stopped), Just(Silent)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), Just("\0\u{7f}\"\\\r\n\u{2028}🦀".to_owned())]
}

fn shared() -> impl Strategy<Value = Arc<str>> {
    text().prop_map(Arc::from)
}

fn reference() -> impl Strategy<Value = VariableRef> {
    let kind = prop_oneof![
        Just(ValueKind::Text),
        Just(ValueKind::Json),
        Just(ValueKind::Result),
        Just(ValueKind::Bytes)
    ];
    (any::<[u8; 32]>(), any::<u64>(), kind).prop_map(|(hash, size, kind)| VariableRef {
        hash: ContentHash::from_bytes(hash),
        size,
        kind,
    })
}

fn json() -> impl Strategy<Value = JsonText> {
    // Text that has to come back byte for byte: spaces, long numbers, repeated keys.
    let fixed =
        ["{ \"a\" :1,\"a\":2 }", "1e400", "123456789012345678901234567890.10", "[ ]", "null"];
    prop_oneof![
        proptest::sample::select(fixed.to_vec()).prop_map(|text| JsonText::parse(text.to_owned())),
        text().prop_map(|text| JsonText::of(&text)),
    ]
    .prop_map(|json| json.expect("the text is not JSON"))
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        shared().prop_map(Payload::Text),
        json().prop_map(Payload::Json),
        reference().prop_map(Payload::Stored)
    ]
}

fn tokens() -> impl Strategy<Value = TokenCount> {
    prop_oneof![
        Just(TokenCount::Unknown),
        any::<u64>().prop_map(TokenCount::Known),
        (1..=u64::MAX).prop_map(TokenCount::AtLeast),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (tokens(), tokens(), tokens(), tokens()).prop_map(|(input, output, cache_read, cache_write)| {
        Usage { input, output, cache_read, cache_write }
    })
}

/// Sums of money: they travel as JSON numbers in dollars.
fn usd() -> impl Strategy<Value = MicroUsd> {
    any::<u64>().prop_map(MicroUsd::from_micros)
}

fn cost() -> impl Strategy<Value = Cost> {
    (usd(), usd(), usd(), any::<u32>()).prop_map(
        |(metered_usd, known_usd, estimated_usd, unknown_runs)| Cost {
            metered_usd,
            known_usd,
            estimated_usd,
            unknown_runs,
        },
    )
}

fn reason() -> impl Strategy<Value = Reason> {
    prop_oneof![
        option::of(any::<i32>()).prop_map(|exit_code| Reason::Completed { exit_code }),
        any::<i32>().prop_map(|code| Reason::ExitCode { code }),
        any::<i32>().prop_map(|signal| Reason::Signal { signal }),
        (text(), any::<bool>())
            .prop_map(|(message, retryable)| Reason::RuntimeError { message, retryable }),
        any::<u64>().prop_map(|seconds| Reason::Timeout { seconds }),
        Just(Reason::Cancelled { by: CancelledBy::MaxFail }),
        Just(Reason::Interrupted),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    let said = (option::of(text()), option::of(text()), option::of(any::<bool>()));
    let said = said.prop_map(|(error, recovery_suggestion, parent_can_retry)| {
        Box::new(SaidError { error, recovery_suggestion, parent_can_retry })
    });
    let words = (option::of(text()), option::of(said));
    (reason(), option::of(payload()), words, usage(), cost()).prop_map(
        |(reason, output, (diagnostics, said), usage, cost)| Ending {
            reason,
            output,
            diagnostics,
            said,
            usage,
            cost,
            ..Ending::of(Reason::Interrupted)
        },
    )
}

fn admitted() -> impl Strategy<Value = EventKind> {
    let input = option::of((any::<u64>(), any::<u64>(), option::of(any::<[u8; 32]>()), text()));
    let rights = (option::of(btree_set(text(), 0..3)), btree_set(text(), 0..3));
    (option::of(run_id()), payload(), input, rights, option::of(usd()), any::<bool>()).prop_map(
        |(parent, task, input, (allow, deny), usd, plan)| {
            let mut admitted = admission("agent:scanner:subagent:a:sub:b");
            admitted.origin = Origin::Agent;
            admitted.parent = parent;
            admitted.task = task;
            // A plan is an object; `null` would come back as no plan.
            admitted.plan =
                plan.then(|| JsonText::parse(r#"{ "split":"lines:9" }"#.to_owned()).unwrap());
            admitted.input = input.map(|(offset, length, hash, path)| InputRange {
                path: Arc::new(PathBuf::from(path)),
                offset,
                length,
                header: 0,
                hash: hash.map(ContentHash::from_bytes),
            });
            admitted.grant = Arc::new(Grant {
                tools: Rights { allow, deny }.into(),
                budget: BudgetGrant { tokens: Some(u64::MAX), usd },
                ..Grant::unbounded()
            });
            EventKind::Admitted(Box::new(admitted))
        },
    )
}

fn account() -> impl Strategy<Value = Account> {
    option::of(text()).prop_map(|credential| Account {
        credential: credential.map(Into::into),
        ..Account::of_runtime("claude")
    })
}

fn other_kind() -> impl Strategy<Value = EventKind> {
    let key = SessionKey::parse("agent:main:main").expect("the key is malformed");
    prop_oneof![
        (text(), option::of(any::<u64>())).prop_map(|(message, times)| EventKind::Refused {
            refusal: Box::new(Refusal::new(RefusalCode::DepthLimit, message).with_hint("less")),
            times,
        }),
        Just(EventKind::Starting),
        option::of((any::<u32>(), any::<u64>())).prop_map(|process| EventKind::Started {
            process: process.map(|(pid, start_time)| {
                let boot = BootId::from_u128(u128::from(start_time));
                ProcessIdentity::new(pid, start_time).of_boot((pid % 2 == 0).then_some(boot))
            }),
        }),
        (text(), option::of(text())).prop_map(|(name, input)| {
            let used = input.map_or_else(|| ToolUse::named(&name), |it| ToolUse::new(&name, &it));
            EventKind::ToolUsed(Box::new(used))
        }),
        (usage(), cost()).prop_map(|(usage, cost)| EventKind::Used { usage, cost }),
        Just(EventKind::Waiting),
        Just(EventKind::Returned),
        (any::<u64>(), any::<u64>())
            .prop_map(|(cpu_ms, wait_ms)| EventKind::BusyWaiting { cpu_ms, wait_ms }),
        reason().prop_map(|reason| EventKind::Stopping { reason: Box::new(reason) }),
        Just(EventKind::BudgetNotice),
        (any::<u64>(), any::<u64>())
            .prop_map(|(tokens, micro_usd)| EventKind::Overrun { tokens, micro_usd }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(tokens, micro_usd)| EventKind::BudgetRaised { tokens, micro_usd }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(tokens, micro_usd)| EventKind::BudgetDrawn { tokens, micro_usd }),
        Just(EventKind::StallLent),
        Just(EventKind::Alive),
        Just(EventKind::Paused),
        Just(EventKind::Unpaused),
        (any::<[u64; 3]>(), option::of(any::<u32>())).prop_map(|(bytes, stalled)| {
            let [available, reserved, kept] = bytes;
            EventKind::MemoryShort(MemoryShortage { available, reserved, kept, stalled })
        }),
        Just(EventKind::MemoryEnough),
        any::<u32>().prop_map(|max_concurrent| EventKind::HostBound { max_concurrent }),
        any::<[u8; 16]>().prop_map(|run| EventKind::PoolShort { run: RunId::from_bytes(run) }),
        any::<[u8; 16]>().prop_map(|run| EventKind::PoolEnough { run: RunId::from_bytes(run) }),
        Just(EventKind::HostFull),
        Just(EventKind::HostFree),
        (account(), any::<u32>()).prop_map(|(account, max_concurrent)| {
            EventKind::AccountBound { account, max_concurrent }
        }),
        account().prop_map(|account| EventKind::AccountFull { account }),
        account().prop_map(|account| EventKind::AccountFree { account }),
        (any::<u32>(), any::<u64>()).prop_map(|(faults, wait_ms)| {
            let agent = AgentId::main();
            EventKind::BreakerOpened { agent, faults, wait_ms }
        }),
        Just(EventKind::BreakerClosed { agent: AgentId::main() }),
        (account(), option::of(text()), any::<u32>(), option::of(any::<u32>())).prop_map(
            |(account, window, until, left)| {
                let until = Timestamp::from_micros(until.into());
                EventKind::Parked { account, window: window.map(Into::into), until, left }
            }
        ),
        Just(EventKind::Unparked { account: Account::of_runtime("claude") }),
        option::of(any::<u32>())
            .prop_map(|most| EventKind::Paced { account: Account::of_runtime("claude"), most }),
        (any::<[u8; 16]>(), any::<u32>()).prop_map(|(run, tokens)| EventKind::Priming {
            run: RunId::from_bytes(run),
            tokens: tokens.into(),
        }),
        any::<[u8; 16]>().prop_map(|run| EventKind::Primed { run: RunId::from_bytes(run) }),
        (any::<bool>(), option::of(text()), [(); 3].map(|()| option::of(any::<u64>()))).prop_map(
            |(failed, only, [deadline_seconds, run_timeout_seconds, idle_timeout_seconds])| {
                let only = only.map(Into::into);
                let again = PiecesAgain { failed, cancelled: !failed, only };
                EventKind::RootReopened(Box::new(RootReopened {
                    again,
                    deadline_seconds,
                    run_timeout_seconds,
                    idle_timeout_seconds,
                }))
            }
        ),
        (any::<u32>(), text(), option::of(text())).prop_map(|(number, runtime, model)| {
            let model = model.map(Into::into);
            EventKind::FellBack { number, runtime: runtime.into(), model }
        }),
        (text(), any::<u32>())
            .prop_map(|(tool, times)| EventKind::Repeats { tool: tool.into(), times }),
        (text(), any::<u32>()).prop_map(|(why, until)| {
            let until = Timestamp::from_micros(until.into());
            EventKind::BacksOff { why: why.into(), until }
        }),
        Just(EventKind::Answered),
        text().prop_map(|model| EventKind::ModelChanged { model: model.into() }),
        (any::<u32>(), text())
            .prop_map(|(pid, name)| EventKind::StrayEnded { pid, name: name.into() }),
        any::<u32>().prop_map(|number| {
            let task_type = "docs/api:v1".parse().expect("a type");
            EventKind::ObservationOpened { number, task_type }
        }),
        (any::<u32>(), any::<bool>())
            .prop_map(|(number, success)| EventKind::ObservationClosed { number, success }),
        (any::<u32>(), keeper_fault(), option::of(text())).prop_map(|(pid, found, error)| {
            EventKind::KeeperFailed { pid, found, error: error.map(Into::into) }
        }),
        ending().prop_map(|ending| EventKind::Ended(Box::new(ending))),
        (text(), any::<u32>(), any::<u32>(), payload(), option::of((text(), text()))).prop_map(
            |(strategy, merged, failed, output, chosen)| {
                let chosen = chosen.map(|(winner, reason)| Chosen { winner, reason });
                let summary = MergeSummary { strategy, merged, failed, output, chosen };
                EventKind::Merged(Box::new(summary))
            }
        ),
        (run_id(), any::<bool>()).prop_map(move |(run, redelivered)| EventKind::Delivered {
            delivery: DeliveryId::new(&key, run),
            redelivered,
        }),
    ]
}

fn happenings() -> impl Strategy<Value = Vec<(u64, EventKind)>> {
    vec((any::<u64>(), prop_oneof![1 => admitted(), 3 => other_kind()]), 1..12)
}

/// A new tree in which this happens, each to a run of its own. New each time, because a failing case is tried again.
fn record(happenings: Vec<(u64, EventKind)>) -> Vec<Event> {
    let root = RootId::new(new_run());
    let event = |(seq, (at, kind))| Event {
        root,
        seq,
        at: Timestamp::from_micros(at),
        run: if seq == 1 { root.run() } else { new_run() },
        kind,
    };
    (1..).zip(happenings).map(event).collect()
}

#[test]
fn append_then_read_is_the_identity() {
    let disk = OnDisk::new();
    let memory = MemoryStore::new();
    proptest!(|(happenings in happenings())| {
        let events = record(happenings);
        let root = events[0].root;
        for store in [&disk.store as &dyn Store, &memory] {
            store.append(&events).wait().unwrap();
            let read: Vec<Event> = store.events(root, 0).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(&read, &events);
        }
        prop_assert_eq!(disk.store.verify_record(root).unwrap(), events.len() as u64);
        prop_assert_eq!(disk.store.roots().unwrap().pop(), memory.roots().unwrap().pop());
        for event in &events {
            prop_assert_eq!(
                disk.store.ending(event.root, event.run).unwrap(), memory.ending(event.root, event.run).unwrap());
        }
    });
}
