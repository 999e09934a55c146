//! What happened, in the order in which it happened.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_session_key::{AgentId, SessionKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Cleanup, ContentHash, ContextEntry, Cost, DeliveryId, Ending, Grant, JsonText, Payload,
    Refusal, RootId, Rules, RunId, SpawnRequest, Timestamp, Usage, VariableRef,
};

/// One entry of a tree's record. Screen, journal and parent read the same entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Whose tree.
    pub root: RootId,
    /// Position within the tree, from 1, without gaps among kept events. Progress carries the last kept number.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// About which run.
    pub run: RunId,
    /// What.
    pub kind: EventKind,
}

/// What can happen to a run. Closed: whoever reads it meets every case. Tagged from outside, because results inside
/// stay unparsed text, which a tag among the fields would forbid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A run exists, and waits for a slot. A root is admitted too.
    Admitted(Box<Admitted>),
    /// A run asked for a child and was told no.
    Refused {
        /// The answer it got.
        refusal: Box<Refusal>,
        /// The number of refusals, where several of the same code are one event: beyond a hundred refusals of one run, further
        /// ones are counted, and recorded with its next event. One where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u64>,
    },
    /// It holds a slot, and its runtime was asked to start it.
    Starting,
    /// Its runtime says that it runs.
    Started {
        /// The process, where there is one.
        process: Option<ProcessIdentity>,
    },
    /// How it goes. May be thinned, is not kept.
    Progress {
        /// A line for people.
        text: Arc<str>,
    },
    /// The run has said how it goes. Kept, unlike progress; of a run that says more than a record should hold, the rest is
    /// progress.
    Reported {
        /// A line for its parent and for people.
        text: Arc<str>,
    },
    /// What it has used so far: cumulative, replaces what was said before.
    Used {
        /// Tokens.
        usage: Usage,
        /// Money.
        cost: Cost,
    },
    /// It is blocked on children and lends its slot.
    Waiting,
    /// It has its slot back.
    Returned,
    /// Its processes worked while it waited, for more than a tenth of that time. This CPU time counts as if it had held a slot
    /// for so long.
    BusyWaiting {
        /// The CPU time that they used, in milliseconds.
        cpu_ms: u64,
        /// The time for which it waited, in milliseconds.
        wait_ms: u64,
    },
    /// It was asked to stop.
    Stopping {
        /// What its ending will say, unless it ends by itself first.
        reason: Box<crate::Reason>,
    },
    /// Four fifths of its budget are used.
    BudgetNotice,
    /// It used more than was reserved for it.
    Overrun {
        /// Tokens above the reservation.
        tokens: u64,
        /// Millionths of a dollar above the reservation.
        micro_usd: u64,
    },
    /// The operator has added to its budget, and to every budget above it, so that nobody has less for it.
    BudgetRaised {
        /// So many tokens.
        tokens: u64,
        /// So many millionths of a dollar.
        micro_usd: u64,
    },
    /// Its holders were silent while all waited for them; their slots are lent for its sake.
    StallLent,
    /// A new supervisor holds the tree: nothing of it runs at this moment, and slots begin anew. Recorded of the root.
    Reopened,
    /// It was interrupted with its supervisor, or by a fault of its runtime, and stands in line once more.
    Resumed {
        /// Which attempt begins: 2 for the first time.
        attempt: u32,
        /// Whether its runtime goes on where it was, rather than from the beginning.
        continues: bool,
        /// The fault, with which it would have ended had it no attempt left; none after an interruption.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Box<crate::Reason>>,
        /// The time for which it waits before that, in milliseconds; none after an interruption.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    /// Its process group is gone, and this is how it ended.
    Ended(Box<Ending>),
    /// The results of its children became one.
    Merged(Box<MergeSummary>),
    /// A turn of it is over and further ones follow: for its children's results, or for letters.
    TurnEnded {
        /// What it answered in this turn. What it answers in its last one stands in its ending.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Payload>,
        /// The number of letters that this attempt of it had taken by then. Absent from what earlier versions wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        letters_taken: Option<u32>,
    },
    /// Somebody wrote into its session.
    Letter {
        /// Who: a session above it; none for the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<RunId>,
        /// What.
        text: Payload,
    },
    /// It keeps a value under a name of its own. The name's earlier value is forgotten.
    Kept {
        /// The name.
        name: Arc<str>,
        /// The value.
        value: VariableRef,
    },
    /// Its result reached its parent.
    Delivered {
        /// Which delivery.
        delivery: DeliveryId,
        /// True if it was on its way before, and nothing shows that it arrived.
        redelivered: bool,
    },
    /// Its result was not received: its parent is over, or had stopped waiting when the answer came; then the parent's next
    /// wait or turn brings it again. It stays on record and is passed to no other run.
    Undelivered {
        /// Which delivery.
        delivery: DeliveryId,
    },
    /// A process outlived it and, maybe, other runs that had ended: it had left its session and erased its environment, so
    /// that nothing tells whose it was. It was ended with this run, the last that lived.
    StrayEnded {
        /// Its number.
        pid: u32,
        /// Its name, as it had chosen it.
        name: Arc<str>,
    },
    /// The keeper, the process that ends a tree's processes if its supervisor is killed, did not hold any more. Recorded of the
    /// root.
    KeeperFailed {
        /// Its number.
        pid: u32,
        /// The state in which it was found.
        found: KeeperFault,
        /// The reason why no other one could be started. None where another one has taken its place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// Its folder was to be removed. Told where it could not be, and where it could at last.
    Removal {
        /// Why it is still there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
}

/// The state of a keeper that was found not to hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperFault {
    /// The keeper had ended.
    Ended,
    /// The keeper was stopped, by a signal or a debugger.
    Stopped,
    /// The keeper gave no sign of life, although nothing had stopped it.
    Silent,
}

impl KeeperFault {
    /// Returns the state in words, as the rest of a sentence about the keeper.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ended => "had ended",
            Self::Stopped => "was stopped",
            Self::Silent => "gave no sign of life",
        }
    }
}

/// All that is known of a run when it is created, and all that a later start needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Admitted {
    /// Its address.
    pub key: SessionKey,
    /// Who asked; none for a root.
    pub parent: Option<RunId>,
    /// The running agent, which the key of a deep session does not name.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// Who wanted it.
    pub origin: Origin,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// Which runtime; none for a root that only holds pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Arc<str>>,
    /// The task: text while it is small, a reference otherwise.
    pub task: Payload,
    /// For a piece: what was cut out of which file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputRange>,
    /// For a piece: its place among all pieces that the root's owner asked for, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// What else was asked for; none where the root's plan says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particulars: Option<Box<Particulars>>,
    /// The terms.
    pub grant: Arc<Grant>,
    /// What its own spawns are held to, where that is not what its parent's are held to. A root always says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Arc<Rules>>,
    /// What becomes of it once its result was handed over.
    #[serde(default, skip_serializing_if = "Cleanup::is_keep")]
    pub cleanup: Cleanup,
    /// For a root: so many minutes after its last event it is shown only to whoever asks for everything. Never where
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_after_minutes: Option<u64>,
    /// For a root: the plan it was opened with, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<JsonText>,
}

/// What a request asked for beside its task, as far as a later start of the same run needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Particulars {
    /// The values it may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextEntry>,
    /// A command of the caller's choosing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Arc<[String]>>,
    /// Another model than the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Another folder to work in than that of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Arc<PathBuf>>,
    /// What was to become of it, as the request had it. What holds stands beside this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

impl Particulars {
    /// Those of a request; none where it asked for nothing but its task.
    pub fn of(request: &SpawnRequest, folder: Option<Arc<PathBuf>>) -> Option<Box<Self>> {
        let SpawnRequest { context, command, model, thinking, cleanup, .. } = request;
        let particulars = Self {
            context: context.clone(),
            command: command.clone(),
            model: model.clone(),
            thinking: thinking.clone(),
            folder,
            cleanup: *cleanup,
        };
        particulars.unless_empty()
    }

    /// Only what was chosen for it; none where nothing was.
    pub fn chosen(request: &SpawnRequest) -> Option<Box<Self>> {
        let (model, thinking) = (request.model.clone(), request.thinking.clone());
        Self { model, thinking, ..Self::default() }.unless_empty()
    }

    fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Who wanted a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The operator opened a tree.
    Root,
    /// A piece of the operator's own map or fanout: not counted as a spawn.
    Piece,
    /// An agent asked.
    Agent,
}

/// Part of a file that a piece reads. The file is not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRange {
    /// Absolute, and without symbolic links when it was cut: later it is not opened over one.
    pub path: Arc<PathBuf>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Of these bytes, taken while cutting.
    pub hash: Option<ContentHash>,
}

/// A process, named so that a reused number is not mistaken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(Uuid);

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

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeSummary {
    /// The strategy, as written on the command line.
    pub strategy: String,
    /// How many results went in.
    pub merged: u32,
    /// How many runs did not complete.
    pub failed: u32,
    /// The answer.
    pub output: Payload,
}

/// Whether an event must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// What happened: kept, in order, never thinned.
    Kept,
    /// How it goes: for whoever looks right now.
    Progress,
}

impl EventKind {
    /// Whether the event must be kept.
    pub const fn class(&self) -> EventClass {
        match self {
            Self::Progress { .. } => EventClass::Progress,
            _ => EventClass::Kept,
        }
    }
}

/// One list gives both, so that no kind is missing in either.
macro_rules! names {
    ($($kind:pat => $name:literal,)*) => {
        impl EventKind {
            /// The words for all kinds, in the order in which they are declared here.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The word for it, as in JSON.
            pub const fn name(&self) -> &'static str {
                match self {
                    $($kind => $name,)*
                }
            }
        }
    };
}

names! {
    Self::Admitted(_) => "admitted",
    Self::Refused { .. } => "refused",
    Self::Starting => "starting",
    Self::Started { .. } => "started",
    Self::Progress { .. } => "progress",
    Self::Reported { .. } => "reported",
    Self::Used { .. } => "used",
    Self::Waiting => "waiting",
    Self::Returned => "returned",
    Self::BusyWaiting { .. } => "busy_waiting",
    Self::Stopping { .. } => "stopping",
    Self::BudgetNotice => "budget_notice",
    Self::Overrun { .. } => "overrun",
    Self::BudgetRaised { .. } => "budget_raised",
    Self::StallLent => "stall_lent",
    Self::Ended(_) => "ended",
    Self::Merged(_) => "merged",
    Self::Reopened => "reopened",
    Self::Resumed { .. } => "resumed",
    Self::TurnEnded { .. } => "turn_ended",
    Self::Letter { .. } => "letter",
    Self::Kept { .. } => "kept",
    Self::Delivered { .. } => "delivered",
    Self::Undelivered { .. } => "undelivered",
    Self::StrayEnded { .. } => "stray_ended",
    Self::KeeperFailed { .. } => "keeper_failed",
    Self::Removal { .. } => "removal",
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
        let written = serde_json::to_string(&process.of_boot(this)).expect("it is JSON");
        let text = r#"{"pid":5,"startTime":6,"boot":"00000000-0000-0000-0000-000000000001"}"#;
        assert_eq!(written, text);
        let earlier: ProcessIdentity =
            serde_json::from_str(r#"{"pid":5,"startTime":6}"#).expect("it is read");
        assert_eq!(earlier, process);
    }
}
