//! The limits of a chain: for each key the strictest explicit value, and the agent whose value it is.

use offshoot_config::{
    AgentId, BreakerSettings, BudgetSettings, Fraction, OnParentEnd, QuotaSettings, RetrySettings,
    Share, SubagentSettings, built_in,
};
use offshoot_model::{BudgetGrant, GovernedBy, JsonText, RetryOn, Rules};

use super::Layer;

/// Every limit of a chain. It reads as the settings of one agent: what is unset is what is built in.
#[derive(Clone, Debug, Default, PartialEq, derive_more::Deref)]
pub struct Limits {
    #[deref]
    settings: SubagentSettings,
    /// The agents whose own values hold, by key. The others are those of the defaults.
    setters: Vec<(String, AgentId)>,
}

impl Limits {
    pub(super) fn narrowed_by(&self, layer: &Layer<'_>) -> Self {
        let mut limits = self.clone();
        let own = layer.definition.map(|definition| &definition.subagents);
        for key in limits.settings.narrow(layer.settings) {
            limits.setters.retain(|(known, _)| *known != key);
            if own.is_some_and(|own| own.sets(&key, layer.settings)) {
                limits.setters.push((key, layer.agent.clone()));
            }
        }
        limits
    }

    /// The setting behind a limit, by its key within `subagents`. `None` for a limit that is not set and that has no built-in
    /// value, and for keys that are no limits.
    pub fn governing(&self, key: &str) -> Option<Box<GovernedBy>> {
        let limit = SubagentSettings::limits().into_iter().find(|limit| limit == key)?;
        let value = self.settings.value(&limit)?;
        let setter = self.setters.iter().find(|(known, _)| *known == limit);
        Some(Box::new(GovernedBy {
            key: format!("subagents.{limit}"),
            agent: setter.map(|(_, agent)| agent.to_string()),
            value: JsonText::of(&value.value).expect("settings are plain numbers and words"),
            origin: value.origin.to_string(),
        }))
    }

    /// Returns these limits as the record keeps them.
    pub fn rules(&self) -> Rules {
        Rules {
            max_concurrent: self.max_concurrent(),
            max_concurrent_per_level: self.max_concurrent_per_level(),
            max_children: self.max_children_per_agent(),
            max_spawns: self.max_spawns(),
            max_spawns_per_minute: self.max_spawns_per_minute(),
            cascade: self.on_parent_end() == OnParentEnd::Cascade,
            max_depth: self.settings.max_depth.as_ref().map(|set| set.value.get().into()),
            max_returns: Some(match self.allow_cycles() {
                true => self.max_identical_delegations(),
                false => 0,
            }),
            // The most that any runtime may make of it.
            retries: Some(self.retries_count(true)),
            retry_on: Some(self.retry_on()).filter(|on| !on.is_none()),
            breaker_failures: Some(self.breaker.failures()).filter(|&failures| failures > 0),
            breaker_cooldown_seconds: Some(self.breaker.cooldown_seconds()),
            deadline_seconds: self.deadline_seconds(),
            deadline_spares_parked: (!self.quota.deadline_counts_parked()).then_some(true),
            run_timeout_seconds: Some(self.run_timeout_seconds()),
        }
    }

    /// Returns the budget of an agent and everything below it.
    pub fn budget(&self) -> BudgetGrant {
        BudgetGrant { tokens: self.budget.tokens(), usd: self.budget.usd() }
    }

    /// True if the pieces of a map or a fanout draw from one pool; false where each gets its part as it is admitted.
    pub fn pools_pieces(&self) -> bool {
        self.budget.share.as_ref().is_none_or(|set| set.value == Share::Pool)
    }

    /// Returns the part of what is left that a spawn reserves when it asks for no amount.
    pub fn spawn_part(&self) -> Fraction {
        match self.budget.share() {
            Share::Part(part) => part,
            Share::Pool => built_in::BUDGET_PART,
        }
    }

    /// Seconds for the whole tree, or for what is below an agent deeper in it, queueing included; `None` without a deadline.
    pub fn deadline_seconds(&self) -> Option<u64> {
        self.settings.deadline_seconds().filter(|&seconds| seconds > 0)
    }

    /// Seconds for which the tree waits for the reset of a quota; `None` without a limit.
    pub fn max_park_seconds(&self) -> Option<u64> {
        Some(self.quota.max_park_seconds()).filter(|&seconds| seconds > 0)
    }

    /// Returns the endings after which a run has another attempt, besides faults that another attempt can mend.
    pub fn retry_on(&self) -> RetryOn {
        self.retries.on.as_ref().map(|set| set.value).unwrap_or_default()
    }

    /// Attempts after the first. The built-in number is that of a run whose runtime goes on where it was: to begin anew
    /// would pay once more for what was done already, so nothing does that unless it is set.
    pub fn retries_count(&self, goes_on: bool) -> u32 {
        let set = self.retries.count.as_ref().map(|set| set.value);
        set.unwrap_or(if goes_on { built_in::RETRIES_COUNT } else { 0 })
    }
}

/// All settings, so that the compiler asks of a new one whether the record says it: a limit that the audit counts again is one of
/// the [`Rules`].
const _: fn(&SubagentSettings) = |settings| {
    let SubagentSettings {
        // Among the rules; of retries their number and endings alone.
        max_concurrent: _,
        max_concurrent_per_level: _,
        max_children_per_agent: _,
        max_spawns: _,
        max_spawns_per_minute: _,
        on_parent_end: _,
        max_depth: _,
        allow_cycles: _,
        max_identical_delegations: _,
        deadline_seconds: _,
        run_timeout_seconds: _,
        breaker: BreakerSettings { failures: _, cooldown_seconds: _ },
        retries: RetrySettings { count: _, on: _, backoff_seconds: _, jitter: _ },
        // Of the deadline alone. Runs that fail at a wall and trees that are stopped there say so in their ends.
        quota: QuotaSettings { deadline_counts_parked: _, keep: _, on_wall: _, max_park_seconds: _ },
        // In the grant of each run.
        allow_recursive_spawn: _,
        allow_agents: _,
        idle_timeout_seconds: _,
        grace_seconds: _,
        max_output_bytes: _,
        max_memory_bytes: _,
        max_open_files: _,
        max_cpu_seconds: _,
        tools: _,
        tools_by_depth: _,
        // A request that is held at the cap has its event.
        budget:
            BudgetSettings { tokens: _, usd: _, share: _, keep: _, allow_unknown_cost: _, on_cap: _ },
        // In the admission of each run.
        model: _,
        thinking: _,
        cleanup: _,
        archive_after_minutes: _,
        on_interrupt: _,
        // In the event of the run that repeats itself.
        on_repeat: _,
        // Of deliveries, which the audit counts without them.
        announce_timeout_ms: _,
        result_inline_bytes: _,
        // Of what an agent is advised to do, which nothing holds it to.
        learn_delegation: _,
        // Of the order among runs. What waits is on record.
        prime_cache: _,
    } = settings;
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use offshoot_config::{AgentId, Loader};
    use offshoot_model::{Reason, RetryOn, Rules};

    use crate::Terms;

    fn terms(settings: &[(&str, &str)]) -> Arc<Terms> {
        let loader = settings.iter().fold(Loader::new(), |loader, (key, value)| {
            loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
        });
        Terms::root(&loader.load().expect("settings of a test"), &AgentId::main())
    }

    fn check(was: &[(&str, &str)], is: &[(&str, &str)], expected: &[(&str, &str, &str, bool)]) {
        let found = terms(was).differences(&terms(is));
        let text = |value: &Option<serde_json::Value>| {
            value.as_ref().map_or_else(|| "unset".to_owned(), ToString::to_string)
        };
        let found: Vec<_> = found
            .iter()
            .map(|it| (&*it.key, text(&it.was), text(&it.is), it.was_stricter))
            .collect();
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

    #[test]
    fn the_record_keeps_the_limits_that_are_counted_again() {
        let built_in = Rules {
            max_concurrent: 8,
            max_concurrent_per_level: None,
            max_children: None,
            max_spawns: terms(&[]).max_spawns(),
            max_spawns_per_minute: None,
            cascade: false,
            max_depth: None,
            max_returns: Some(0),
            retries: Some(5),
            retry_on: None,
            breaker_failures: Some(3),
            breaker_cooldown_seconds: Some(60),
            deadline_seconds: None,
            deadline_spares_parked: None,
            run_timeout_seconds: Some(1800),
        };
        assert_eq!(terms(&[]).rules(), built_in);
        let set = [
            ("maxConcurrent", "5"),
            ("maxConcurrentPerLevel", "4"),
            ("maxChildrenPerAgent", "6"),
            ("maxSpawns", "30"),
            ("maxSpawnsPerMinute", "9"),
            ("onParentEnd", "cascade"),
            ("maxDepth", "2"),
            ("allowCycles", "true"),
            ("maxIdenticalDelegations", "7"),
            ("retries.count", "1"),
            ("retries.on", "timeout"),
            ("breaker.failures", "1"),
            ("breaker.cooldownSeconds", "90"),
            ("deadlineSeconds", "1"),
            ("quota.deadlineCountsParked", "false"),
            ("runTimeoutSeconds", "33"),
        ];
        let expected = Rules {
            max_concurrent: 5,
            max_concurrent_per_level: Some(4),
            max_children: Some(6),
            max_spawns: 30,
            max_spawns_per_minute: Some(9),
            cascade: true,
            max_depth: Some(2),
            max_returns: Some(7),
            retries: Some(1),
            retry_on: Some("timeout".parse().expect("an ending")),
            breaker_failures: Some(1),
            breaker_cooldown_seconds: Some(90),
            deadline_seconds: Some(1),
            deadline_spares_parked: Some(true),
            run_timeout_seconds: Some(33),
        };
        assert_eq!(terms(&set).rules(), expected);
        let off = [("breaker.failures", "0"), ("deadlineSeconds", "0")];
        assert_eq!(terms(&off).rules(), Rules { breaker_failures: None, ..built_in });
    }

    #[test]
    fn zero_seconds_are_no_limit() {
        let seconds = |key: &str, value: &str| {
            let terms = terms(&[(key, value)]);
            (terms.deadline_seconds(), terms.max_park_seconds())
        };
        for (value, expected) in [("0", None), ("1", Some(1)), ("600", Some(600))] {
            assert_eq!(seconds("deadlineSeconds", value), (expected, None));
            assert_eq!(seconds("quota.maxParkSeconds", value), (None, expected));
        }
    }

    #[test]
    fn a_run_that_would_begin_anew_is_not_repeated_unless_it_is_set() {
        let count = |settings: &[(&str, &str)]| {
            [true, false].map(|goes_on| terms(settings).retries_count(goes_on))
        };
        assert_eq!(count(&[]), [5, 0]);
        assert_eq!(count(&[("retries.count", "3")]), [3, 3]);
        assert_eq!(count(&[("retries.count", "0")]), [0, 0]);
        let on = |settings: &[(&str, &str)]| terms(settings).retry_on();
        assert_eq!(on(&[]), RetryOn::default());
        let set = on(&[("retries.on", "timeout")]);
        assert!(set.includes(&Reason::Timeout { seconds: 1 }) && !set.is_none());
    }
}
