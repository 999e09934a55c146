//! The built-in values, and the reason of each.

use std::num::{NonZeroU32, NonZeroU64};

use offshoot_model::{Cleanup, MicroUsd};

use crate::{
    Fraction, MaxDepth, OnCap, OnInterrupt, OnParentEnd, OnRepeat, OnWall, PrimeCache, Share,
};

/// Recursion is asked for, never found by accident.
pub const ALLOW_RECURSIVE_SPAWN: bool = false;
/// Three levels are a plan, its parts and their helpers; deeper trees are rarely meant.
pub const MAX_DEPTH: MaxDepth = MaxDepth::new(3).expect("3 is between 1 and 10");
/// The number of processes, mostly waiting for a network, that a laptop carries.
pub const MAX_CONCURRENT: NonZeroU32 = NonZeroU32::new(8).expect("8 is not zero");
/// Enough for an honest decomposition, small enough that a runaway is noticed by its bill and not by its ruin.
pub const MAX_SPAWNS: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
/// A chain that returns to an agent is nearly always two agents handing the same task to each other.
pub const ALLOW_CYCLES: bool = false;
/// An agent that does otherwise than the last time, with the same task, is asked for and not found by accident.
pub const LEARN_DELEGATION: bool = false;
/// Twice can be a retry; the same words a fourth time are a loop.
pub const MAX_IDENTICAL_DELEGATIONS: NonZeroU32 = NonZeroU32::new(3).expect("3 is not zero");
/// Half an hour: the longest single task that people leave alone.
pub const RUN_TIMEOUT_SECONDS: u64 = 1_800;
/// Ten minutes without any sign of life: longer than a slow model call, shorter than patience.
pub const IDLE_TIMEOUT_SECONDS: u64 = 600;
/// The time that a program needs to save its state.
pub const GRACE_SECONDS: u64 = 5;
/// A gibibyte: more than any answer that is read, and little enough that one run in a loop does not fill the disk.
pub const MAX_OUTPUT_BYTES: u64 = 1 << 30;
/// More than is read of what one agent printed, and little enough that sixty-four of them fill no gibibyte.
pub const KEEP_OUTPUT_BYTES: u64 = 16 << 20;
/// A gibibyte: as much as one answer may have.
pub const KEEP_OUTPUT_BYTES_PER_TREE: u64 = 1 << 30;
/// Five minutes: half of the time after which a silent run is ended.
pub const NOTIFY_SILENT_SECONDS: NonZeroU64 = NonZeroU64::new(300).expect("300 is not zero");
/// An hour in view after the end.
pub const ARCHIVE_AFTER_MINUTES: u64 = 60;
/// Two minutes for one attempt to hand over a result: a parent between two turns answers well within it.
pub const ANNOUNCE_TIMEOUT_MS: NonZeroU64 = NonZeroU64::new(120_000).expect("120000 is not zero");
/// About four thousand tokens of result; what is larger reaches a parent as a reference.
pub const RESULT_INLINE_BYTES: u64 = 16_384;
/// A record is kept until a user prunes it.
pub const CLEANUP: Cleanup = Cleanup::Keep;
/// Work under way is worth more than tidiness.
pub const ON_PARENT_END: OnParentEnd = OnParentEnd::LetFinish;
/// Running an agent twice may do a thing twice.
pub const ON_INTERRUPT: OnInterrupt = OnInterrupt::Lost;
/// The pieces of a map or a fanout are made to be run again.
pub const ON_INTERRUPT_OF_PIECES: OnInterrupt = OnInterrupt::Rerun;
/// An agent may poll: a repeated tool is named, and the operator decides.
pub const ON_REPEAT: OnRepeat = OnRepeat::Warn;
/// A prompt costs a tenth where it is read from a cache; the wait for it is that for a first answer.
pub const PRIME_CACHE: PrimeCache = PrimeCache::Auto;
/// A spawn without an amount of its own reserves half of what is left.
pub const BUDGET_PART: Fraction = Fraction::from_millionths(500_000).expect("a half is at most 1");
/// The same as a setting. Pieces of a map or a fanout draw from a pool where it is not set.
pub const BUDGET_SHARE: Share = Share::Part(BUDGET_PART);
/// The share that many children at once leave to their parent: a fifth, to read their results with.
pub const BUDGET_KEEP: Fraction = Fraction::from_millionths(200_000).expect("a fifth is at most 1");
/// A budget in dollars that counts nothing is no budget.
pub const BUDGET_ALLOW_UNKNOWN_COST: bool = false;
/// An operator who is not there gives nothing: the program hears at once that it has to end.
pub const BUDGET_ON_CAP: OnCap = OnCap::Stop;
/// Two faults can be chance.
pub const BREAKER_FAILURES: u32 = 3;
/// The time in which an overloaded provider usually recovers.
pub const BREAKER_COOLDOWN_SECONDS: u64 = 60;
/// Half a minute together, which most overloads do not outlast. It holds for runtimes that go on where a run was; to begin
/// anew costs the same money once more, and is asked for.
pub const RETRIES_COUNT: u32 = 5;
/// The first pause; later ones double it.
pub const RETRIES_BACKOFF_SECONDS: u64 = 1;
/// A fifth up or down keeps runs that failed together from returning together.
pub const RETRIES_JITTER: Fraction =
    Fraction::from_millionths(200_000).expect("a fifth is at most 1");
/// A run that waits loses no work, and costs nothing while it waits.
pub const QUOTA_ON_WALL: OnWall = OnWall::Park;
/// All of a quota may be used: what the user keeps for work of his own, only he knows.
pub const QUOTA_KEEP: Fraction = Fraction::from_millionths(0).expect("nothing is at most 1");
/// The longest window of a subscription is a week: how long is too long, only its user knows.
pub const QUOTA_MAX_PARK_SECONDS: u64 = 0;
/// A deadline says when an answer is wanted, whatever the reason of a delay.
pub const QUOTA_DEADLINE_COUNTS_PARKED: bool = true;
/// A tenth of the memory: what a system needs to stay usable, and little enough that one run may have nearly all.
pub const HOST_MEMORY_KEEP: Fraction =
    Fraction::from_millionths(100_000).expect("a tenth is at most 1");
/// The cap of a paid runtime when no budget in dollars is set.
pub const RUNTIME_DEFAULT_USD: MicroUsd = MicroUsd::from_micros(5_000_000);
/// The agent that runs where none is named.
pub const DEFAULT_AGENT: &str = "main";
