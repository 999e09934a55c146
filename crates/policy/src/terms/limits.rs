//! The limits of a chain, one row each: key, where it stands in the settings, which value is the stricter, what holds
//! where nobody has said anything.

use std::num::{NonZeroU32, NonZeroU64};

use offshoot_config::{
    Cleanup, Fraction, MaxChildren, MaxDepth, OnInterrupt, OnParentEnd, built_in,
};
use offshoot_model::{BudgetGrant, GovernedBy, JsonText, MicroUsd, Rules};
use serde::Serialize;

use super::Layer;
use super::strictness::{fewer, fewer_but_zero_is_none, first, more, no, word};
use crate::term::{Term, governed_by, strictest};

/// Declares the limits: a struct of explicit values, their fold over a chain and the setting behind each.
macro_rules! limits {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $type:ty = $key:literal at $($path:ident).+, stricter $stricter:expr, built_in $built_in:expr;
    )*) => {
        /// Every limit of a chain: the strictest explicit value, or `None` where the built-in one holds.
        ///
        /// The functions of the same names, with the built-in values filled in, are what decisions read.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Limits {
            $( $(#[doc = $doc])* pub $name: Option<Term<$type>>, )*
        }

        impl Limits {
            pub(super) fn narrowed_by(&self, layer: &Layer<'_>) -> Self {
                Self {
                    $( $name: strictest(
                        self.$name.as_ref(),
                        layer.pick(|settings| &settings.$($path).+),
                        $stricter,
                    ), )*
                }
            }

            /// The keys of the limits, within `subagents`.
            pub const KEYS: &[&str] = &[$($key),*];

            /// What differs from other limits, with the stricter of the two. What nobody has set is what is built in.
            pub fn differences(&self, now: &Self) -> Vec<Difference> {
                let found = [$(
                    difference($key, self.$name.as_ref(), now.$name.as_ref(), $built_in, $stricter),
                )*];
                found.into_iter().flatten().collect()
            }

            /// The setting behind a limit, by its key within `subagents`. `None` for a limit that nobody has set and
            /// that has no built-in value, and for keys that are no limits.
            pub fn governing(&self, key: &str) -> Option<Box<GovernedBy>> {
                match key {
                    $( $key => {
                        let built_in: Option<$type> = $built_in;
                        governed_by(concat!("subagents.", $key), self.$name.as_ref(), built_in.as_ref())
                    } )*
                    _ => None,
                }
            }
        }
    };
}

limits! {
    /// Whether a sub-agent may spawn.
    allow_recursive_spawn: bool = "allowRecursiveSpawn" at allow_recursive_spawn,
        stricter no, built_in Some(built_in::ALLOW_RECURSIVE_SPAWN);
    /// Levels below the root.
    max_depth: MaxDepth = "maxDepth" at max_depth,
        stricter fewer, built_in Some(built_in::MAX_DEPTH);
    /// Running agents of the tree, or of what is below an agent deeper in it.
    max_concurrent: NonZeroU32 = "maxConcurrent" at max_concurrent,
        stricter fewer, built_in Some(built_in::MAX_CONCURRENT);
    /// Running agents at each depth, of the tree or of what is below an agent deeper in it.
    max_concurrent_per_level: NonZeroU32 = "maxConcurrentPerLevel" at max_concurrent_per_level,
        stricter fewer, built_in None;
    /// Live children of one session.
    max_children_per_agent: MaxChildren = "maxChildrenPerAgent" at max_children_per_agent,
        stricter fewer, built_in None;
    /// Agents' spawns over the life of the tree.
    max_spawns: NonZeroU32 = "maxSpawns" at max_spawns,
        stricter fewer, built_in Some(built_in::MAX_SPAWNS);
    /// Agents' spawns within a minute.
    max_spawns_per_minute: NonZeroU32 = "maxSpawnsPerMinute" at max_spawns_per_minute,
        stricter fewer, built_in None;
    /// Whether a chain may return to an agent.
    allow_cycles: bool = "allowCycles" at allow_cycles,
        stricter no, built_in Some(built_in::ALLOW_CYCLES);
    /// How often the same delegation may stand in a chain.
    max_identical_delegations: NonZeroU32 = "maxIdenticalDelegations" at max_identical_delegations,
        stricter fewer, built_in Some(built_in::MAX_IDENTICAL_DELEGATIONS);
    /// Seconds of starting and running; 0 is none.
    run_timeout_seconds: u64 = "runTimeoutSeconds" at run_timeout_seconds,
        stricter fewer_but_zero_is_none, built_in Some(built_in::RUN_TIMEOUT_SECONDS);
    /// Seconds of silence; 0 is none.
    idle_timeout_seconds: u64 = "idleTimeoutSeconds" at idle_timeout_seconds,
        stricter fewer_but_zero_is_none, built_in Some(built_in::IDLE_TIMEOUT_SECONDS);
    /// Seconds between the request to stop and the kill.
    grace_seconds: u64 = "graceSeconds" at grace_seconds,
        stricter fewer, built_in Some(built_in::GRACE_SECONDS);
    /// Bytes of an answer; 0 is no limit.
    max_output_bytes: u64 = "maxOutputBytes" at max_output_bytes,
        stricter fewer_but_zero_is_none, built_in Some(built_in::MAX_OUTPUT_BYTES);
    /// Milliseconds for one delivery attempt.
    announce_timeout_ms: NonZeroU64 = "announceTimeoutMs" at announce_timeout_ms,
        stricter fewer, built_in Some(built_in::ANNOUNCE_TIMEOUT_MS);
    /// Bytes of a result that a parent gets whole.
    result_inline_bytes: u64 = "resultInlineBytes" at result_inline_bytes,
        stricter fewer, built_in Some(built_in::RESULT_INLINE_BYTES);
    /// What becomes of a session after delivery. Keeping is the stricter: nothing is lost that anybody wants to keep.
    cleanup: Cleanup = "cleanup" at cleanup,
        stricter word(Cleanup::Keep), built_in Some(built_in::CLEANUP);
    /// What a parent's end means for its children. Ending them is the stricter.
    on_parent_end: OnParentEnd = "onParentEnd" at on_parent_end,
        stricter word(OnParentEnd::Cascade), built_in Some(built_in::ON_PARENT_END);
    /// What becomes of a run whose supervisor died. Not doing a thing twice is the stricter.
    on_interrupt: OnInterrupt = "onInterrupt" at on_interrupt,
        stricter word(OnInterrupt::Lost), built_in Some(built_in::ON_INTERRUPT);
    /// Tokens of an agent and everything below it.
    budget_tokens: u64 = "budget.tokens" at budget.tokens,
        stricter fewer, built_in None;
    /// Dollars of an agent and everything below it.
    budget_usd: MicroUsd = "budget.usd" at budget.usd,
        stricter fewer, built_in None;
    /// The share of what is left that a spawn reserves.
    budget_share: Fraction = "budget.share" at budget.share,
        stricter fewer, built_in Some(built_in::BUDGET_SHARE);
    /// The share that many children at once leave to their parent.
    budget_keep: Fraction = "budget.keep" at budget.keep,
        stricter more, built_in Some(built_in::BUDGET_KEEP);
    /// Whether a runtime of unknown cost may run under a budget in dollars.
    allow_unknown_cost: bool = "budget.allowUnknownCost" at budget.allow_unknown_cost,
        stricter no, built_in Some(built_in::BUDGET_ALLOW_UNKNOWN_COST);
    /// Seconds for the whole tree, or for what is below an agent deeper in it; 0 is none.
    deadline_seconds: u64 = "deadlineSeconds" at deadline_seconds,
        stricter fewer_but_zero_is_none, built_in None;
    /// Runtime faults in a row that open the breaker; 0 is off.
    breaker_failures: u32 = "breaker.failures" at breaker.failures,
        stricter fewer_but_zero_is_none, built_in Some(built_in::BREAKER_FAILURES);
    /// Seconds until an open breaker lets one through.
    breaker_cooldown_seconds: u64 = "breaker.cooldownSeconds" at breaker.cooldown_seconds,
        stricter more, built_in Some(built_in::BREAKER_COOLDOWN_SECONDS);
    /// Attempts after the first.
    retries_count: u32 = "retries.count" at retries.count,
        stricter fewer, built_in Some(built_in::RETRIES_COUNT);
    /// Seconds before the first repetition.
    retries_backoff_seconds: u64 = "retries.backoffSeconds" at retries.backoff_seconds,
        stricter more, built_in Some(built_in::RETRIES_BACKOFF_SECONDS);
    /// How far a wait is moved at random.
    retries_jitter: Fraction = "retries.jitter" at retries.jitter,
        stricter first, built_in Some(built_in::RETRIES_JITTER);
}

/// A limit that was one thing and is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its key within `subagents`.
    pub key: &'static str,
    /// What it was; none where nothing bounded it.
    pub was: Option<JsonText>,
    /// What it is.
    pub is: Option<JsonText>,
    /// Whether what it was is the stricter.
    pub was_stricter: bool,
}

fn difference<T: Clone + PartialEq + Serialize>(
    key: &'static str,
    was: Option<&Term<T>>,
    is: Option<&Term<T>>,
    built_in: Option<T>,
    stricter: impl Fn(&T, &T) -> bool,
) -> Option<Difference> {
    let value = |term: Option<&Term<T>>| term.map(|term| term.value.clone()).or(built_in.clone());
    let (was, is) = (value(was), value(is));
    if was == is {
        return None;
    }
    let was_stricter = match (&was, &is) {
        (Some(was), Some(is)) => stricter(was, is),
        (was, _) => was.is_some(),
    };
    let text = |value: Option<T>| {
        value.map(|value| JsonText::of(&value).expect("limits are plain numbers and words"))
    };
    Some(Difference { key, was: text(was), is: text(is), was_stricter })
}

/// What is set, else what is built in.
fn or<T: Copy>(term: &Option<Term<T>>, built_in: T) -> T {
    term.as_ref().map_or(built_in, |term| term.value)
}

fn value<T: Copy>(term: &Option<Term<T>>) -> Option<T> {
    term.as_ref().map(|term| term.value)
}

impl Limits {
    /// Whether a sub-agent may spawn.
    pub fn allow_recursive_spawn(&self) -> bool {
        or(&self.allow_recursive_spawn, built_in::ALLOW_RECURSIVE_SPAWN)
    }

    /// Levels below the root, which is depth 0.
    pub fn max_depth(&self) -> u32 {
        or(&self.max_depth, built_in::MAX_DEPTH).get().into()
    }

    /// Running agents at all depths: of the tree, or of what is below an agent deeper in it.
    pub fn max_concurrent(&self) -> u32 {
        or(&self.max_concurrent, built_in::MAX_CONCURRENT).get()
    }

    /// Running agents at each depth, of the tree or of what is below an agent deeper in it.
    pub fn max_concurrent_per_level(&self) -> Option<u32> {
        value(&self.max_concurrent_per_level).map(NonZeroU32::get)
    }

    /// Live children of one session, queued ones included.
    pub fn max_children_per_agent(&self) -> Option<u32> {
        value(&self.max_children_per_agent).map(|children| children.get().into())
    }

    /// Agents' spawns over the life of the tree.
    pub fn max_spawns(&self) -> u32 {
        or(&self.max_spawns, built_in::MAX_SPAWNS).get()
    }

    /// Agents' spawns within a minute.
    pub fn max_spawns_per_minute(&self) -> Option<u32> {
        value(&self.max_spawns_per_minute).map(NonZeroU32::get)
    }

    /// What is counted of these, as the record keeps it.
    pub fn rules(&self) -> Rules {
        Rules {
            max_concurrent: self.max_concurrent(),
            max_concurrent_per_level: self.max_concurrent_per_level(),
            max_children: self.max_children_per_agent(),
            max_spawns: self.max_spawns(),
            max_spawns_per_minute: self.max_spawns_per_minute(),
            cascade: self.on_parent_end() == OnParentEnd::Cascade,
            max_depth: value(&self.max_depth).map(|depth| depth.get().into()),
            max_returns: Some(match self.allow_cycles() {
                true => self.max_identical_delegations(),
                false => 0,
            }),
            // The most that any runtime may make of it.
            retries: Some(self.retries_count(true)),
            breaker_failures: Some(self.breaker_failures()).filter(|&failures| failures > 0),
            breaker_cooldown_seconds: Some(self.breaker_cooldown_seconds()),
            deadline_seconds: self.deadline_seconds().filter(|&seconds| seconds > 0),
            run_timeout_seconds: Some(self.run_timeout_seconds()),
        }
    }

    /// Whether a chain may return to an agent with another in between.
    pub fn allow_cycles(&self) -> bool {
        or(&self.allow_cycles, built_in::ALLOW_CYCLES)
    }

    /// How often the same delegation may stand in a chain, and a chain may return to an agent where that is allowed.
    pub fn max_identical_delegations(&self) -> u32 {
        or(&self.max_identical_delegations, built_in::MAX_IDENTICAL_DELEGATIONS).get()
    }

    /// Seconds of starting and running; 0 is none.
    pub fn run_timeout_seconds(&self) -> u64 {
        or(&self.run_timeout_seconds, built_in::RUN_TIMEOUT_SECONDS)
    }

    /// Seconds without any sign of life while running; 0 is none.
    pub fn idle_timeout_seconds(&self) -> u64 {
        or(&self.idle_timeout_seconds, built_in::IDLE_TIMEOUT_SECONDS)
    }

    /// Seconds between the request to stop and the kill.
    pub fn grace_seconds(&self) -> u64 {
        or(&self.grace_seconds, built_in::GRACE_SECONDS)
    }

    /// Bytes that a run may answer with; 0 is no limit.
    pub fn max_output_bytes(&self) -> u64 {
        or(&self.max_output_bytes, built_in::MAX_OUTPUT_BYTES)
    }

    /// Milliseconds for one delivery attempt.
    pub fn announce_timeout_ms(&self) -> u64 {
        or(&self.announce_timeout_ms, built_in::ANNOUNCE_TIMEOUT_MS).get()
    }

    /// Bytes of a result that a parent gets whole.
    pub fn result_inline_bytes(&self) -> u64 {
        or(&self.result_inline_bytes, built_in::RESULT_INLINE_BYTES)
    }

    /// What becomes of a session after delivery.
    pub fn cleanup(&self) -> Cleanup {
        or(&self.cleanup, built_in::CLEANUP)
    }

    /// What a parent's end means for its children.
    pub fn on_parent_end(&self) -> OnParentEnd {
        or(&self.on_parent_end, built_in::ON_PARENT_END)
    }

    /// What an agent and everything below it may use up.
    pub fn budget(&self) -> BudgetGrant {
        BudgetGrant { tokens: value(&self.budget_tokens), usd: value(&self.budget_usd) }
    }

    /// The share of what is left that a spawn reserves when it asks for no amount.
    pub fn budget_share(&self) -> Fraction {
        or(&self.budget_share, built_in::BUDGET_SHARE)
    }

    /// The share that many children at once leave to their parent.
    pub fn budget_keep(&self) -> Fraction {
        or(&self.budget_keep, built_in::BUDGET_KEEP)
    }

    /// Whether a runtime of unknown cost may run under a budget in dollars.
    pub fn allow_unknown_cost(&self) -> bool {
        or(&self.allow_unknown_cost, built_in::BUDGET_ALLOW_UNKNOWN_COST)
    }

    /// Seconds for the whole tree, or for what is below an agent deeper in it, queueing included; `None` without a deadline.
    pub fn deadline_seconds(&self) -> Option<u64> {
        value(&self.deadline_seconds).filter(|&seconds| seconds > 0)
    }

    /// Runtime faults in a row that open the breaker; 0 is off.
    pub fn breaker_failures(&self) -> u32 {
        or(&self.breaker_failures, built_in::BREAKER_FAILURES)
    }

    /// Seconds until an open breaker lets one through.
    pub fn breaker_cooldown_seconds(&self) -> u64 {
        or(&self.breaker_cooldown_seconds, built_in::BREAKER_COOLDOWN_SECONDS)
    }

    /// Attempts after the first. The built-in number is that of a run whose runtime goes on where it was: to begin anew
    /// would pay once more for what was done already, so nothing does that unless it is set.
    pub fn retries_count(&self, goes_on: bool) -> u32 {
        or(&self.retries_count, if goes_on { built_in::RETRIES_COUNT } else { 0 })
    }

    /// Seconds before the first repetition; each further one waits twice as long.
    pub fn retries_backoff_seconds(&self) -> u64 {
        or(&self.retries_backoff_seconds, built_in::RETRIES_BACKOFF_SECONDS)
    }

    /// How far a wait is moved at random, as a share of it.
    pub fn retries_jitter(&self) -> Fraction {
        or(&self.retries_jitter, built_in::RETRIES_JITTER)
    }
}

#[cfg(test)]
mod tests {
    use offshoot_config::{AgentId, Loader};

    use crate::Terms;

    fn check(was: &[(&str, &str)], is: &[(&str, &str)], expected: &[(&str, &str, &str, bool)]) {
        let terms = |settings: &[(&str, &str)]| {
            let loader = settings.iter().fold(Loader::new(), |loader, (key, value)| {
                loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
            });
            Terms::root(&loader.load().expect("settings of a test"), &AgentId::main())
        };
        let found = terms(was).differences(&terms(is));
        let text = |value: &Option<offshoot_model::JsonText>| {
            value.as_ref().map_or("unset", |value| value.as_str()).to_owned()
        };
        let found: Vec<_> =
            found.iter().map(|it| (it.key, text(&it.was), text(&it.is), it.was_stricter)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(key, was, is, stricter)| (*key, (*was).to_owned(), (*is).to_owned(), *stricter))
            .collect();
        assert_eq!(found, expected, "{was:?} {is:?}");
    }

    #[test]
    fn what_differs_is_found_with_the_stricter_of_both() {
        check(&[], &[], &[]);
        check(&[("maxDepth", "3")], &[], &[]);
        check(&[("maxDepth", "2")], &[], &[("maxDepth", "2", "3", true)]);
        check(&[], &[("maxDepth", "2")], &[("maxDepth", "3", "2", false)]);
        let (cascade, finish) = ("\"cascade\"", "\"letFinish\"");
        let key = "onParentEnd";
        check(&[(key, "cascade")], &[], &[(key, cascade, finish, true)]);
        check(&[], &[(key, "cascade")], &[(key, finish, cascade, false)]);
        check(
            &[("allowRecursiveSpawn", "true"), ("cleanup", "delete"), ("runTimeoutSeconds", "0")],
            &[],
            &[
                ("allowRecursiveSpawn", "true", "false", false),
                ("runTimeoutSeconds", "0", "1800", false),
                ("cleanup", "\"delete\"", "\"keep\"", false),
            ],
        );
        let key = "maxChildrenPerAgent";
        check(&[(key, "4")], &[], &[(key, "4", "unset", true)]);
        check(&[], &[(key, "4")], &[(key, "unset", "4", false)]);
        check(&[("retries.jitter", "0.5")], &[], &[("retries.jitter", "0.5", "0.2", false)]);
    }
}
