//! Small trees that are told step by step, for what the scenario has none of: times, circles, breakers and attempts.

use std::sync::Arc;

use offshoot_audit::{Audit, Rule};
use offshoot_model::{
    Account, Admitted, DeliveryId, Ending, Event, EventKind, Grant, Need, OnNeedFailed, Origin,
    Reason, RootId, Rules, RunId, Timestamp,
};

use crate::{admitted, cast, record};

mod memory;
mod walls;

/// A tree that is told step by step: a root, and runs below it by their numbers.
struct Script {
    events: Vec<Event>,
}

impl Script {
    /// A root of the agent `main` that runs, and whose spawns are held to these rules.
    fn of(rules: Rules) -> Self {
        let mut script = Self { events: Vec::new() };
        let rules = Rules { max_concurrent: 8, max_spawns: 100, ..rules };
        let root = Admitted { rules: Some(Arc::new(rules)), ..Self::admission(0, None, "main", 0) };
        script.at(0, 0, EventKind::Admitted(Box::new(root)));
        script.starts(0, 0);
        script
    }

    fn run(number: u8) -> RunId {
        RunId::from_bytes([number + 1; 16])
    }

    fn admission(number: u8, parent: Option<u8>, agent: &str, depth: u32) -> Admitted {
        let (root, _, child, _) = cast();
        let like = if parent.is_some() { child } else { root };
        let like = admitted(&mut record(), like).clone();
        let agents = ["main", "b", "c"].map(|agent| agent.parse().expect("a name")).to_vec();
        let key = match depth {
            0 => "agent:main:main".to_owned(),
            _ => format!("agent:main:subagent:1{}", ":sub:1".repeat(depth as usize - 1)),
        };
        Admitted {
            key: key.parse().expect("a key"),
            parent: parent.map(Self::run),
            agent: agent.parse().expect("a name"),
            depth,
            origin: if parent.is_some() { Origin::Agent } else { Origin::Root },
            label: Some(number.to_string().into()),
            runtime: Some("exec".into()),
            grant: Arc::new(Grant {
                max_depth: 3,
                agents,
                tools: like.grant.tools.clone(),
                ..Grant::unbounded()
            }),
            rules: None,
            plan: None,
            place: None,
            instead: None,
            needs: Vec::new(),
            input: None,
            ..like
        }
    }

    fn moment(second: u64) -> Timestamp {
        Timestamp::from_micros((1_000_000 + second) * 1_000_000)
    }

    fn at(&mut self, number: u8, second: u64, kind: EventKind) {
        let (root, run) = (RootId::new(Self::run(0)), Self::run(number));
        let at = Self::moment(second);
        self.events.push(Event { root, seq: self.events.len() as u64 + 1, at, run, kind });
    }

    fn child(&mut self, number: u8, second: u64, parent: u8, agent: &str, depth: u32) {
        let admitted = Self::admission(number, Some(parent), agent, depth);
        self.at(number, second, EventKind::Admitted(Box::new(admitted)));
    }

    fn starts(&mut self, number: u8, second: u64) {
        self.at(number, second, EventKind::Starting);
        self.at(number, second, EventKind::Started { process: None });
    }

    fn ends(&mut self, number: u8, second: u64, reason: Reason) {
        self.at(number, second, EventKind::Ended(Box::new(Ending::of(reason))));
    }

    fn deliver(&mut self, number: u8, second: u64) {
        let key = admitted(&mut self.events, Self::run(number)).key.clone();
        let delivery = DeliveryId::new(&key, Self::run(number));
        self.at(number, second, EventKind::Delivered { delivery, redelivered: false });
    }

    fn again(&mut self, number: u8, second: u64, attempt: u32, retryable: bool) {
        let after = Some(Box::new(fault(retryable)));
        self.at(
            number,
            second,
            EventKind::Resumed { attempt, continues: false, after, wait_ms: None, changes: None },
        );
    }

    /// A quota of the runtime of all runs is used up until this second.
    fn parked(&mut self, second: u64, until: u64) {
        let (account, until) = (Account::of_runtime("exec"), Self::moment(until));
        self.at(0, second, EventKind::Parked { account, window: None, until, left: None });
    }

    fn unparked(&mut self, second: u64) {
        self.at(0, second, EventKind::Unparked { account: Account::of_runtime("exec") });
    }

    /// A run stands in line again because of that.
    fn waits(&mut self, number: u8, second: u64, attempt: u32) {
        let quota = Reason::Quota { window: None, until: Some(Self::moment(second)) };
        let (continues, after) = (false, Some(Box::new(quota)));
        let kind = EventKind::Resumed { attempt, continues, after, wait_ms: None, changes: None };
        self.at(number, second, kind);
    }

    /// Holds what is below this run to other rules than those of the root.
    fn rules(&mut self, number: u8, change: impl FnOnce(&mut Rules)) {
        let rules = &admitted(&mut self.events, Self::run(0)).rules;
        let mut rules = rules.as_deref().copied().expect("the root has said them");
        change(&mut rules);
        admitted(&mut self.events, Self::run(number)).rules = Some(Arc::new(rules));
    }

    fn grant(&mut self, number: u8) -> &mut Grant {
        Arc::make_mut(&mut admitted(&mut self.events, Self::run(number)).grant)
    }
}

fn fault(retryable: bool) -> Reason {
    Reason::RuntimeError { message: "overloaded".to_owned(), retryable }
}

/// Of a record that says all that runs are held to.
fn said() -> Rules {
    Rules { max_returns: Some(9), ..Rules::default() }
}

const DONE: Reason = Reason::Completed { exit_code: Some(0) };

#[track_caller]
fn tell(what: &str, rules: Rules, tell: impl FnOnce(&mut Script), expected: &[Rule]) {
    let mut script = Script::of(rules);
    tell(&mut script);
    let breaches = Audit::of(&script.events).breaches;
    let rules: Vec<Rule> = breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, expected, "{what}: {breaches:#?}");
}

#[test]
fn time_is_counted_again() {
    // One child with so many seconds that lends its slot for as long as it likes.
    let lives = |seconds: u64, ends: u64| {
        move |script: &mut Script| {
            script.child(1, 0, 0, "b", 1);
            script.grant(1).run_timeout_seconds = seconds;
            script.starts(1, 10);
            script.at(1, 20, EventKind::Waiting);
            script.at(1, 2_000, EventKind::Returned);
            script.ends(1, 2_000 + ends, DONE);
        }
    };
    tell("within its time", said(), lives(100, 80), &[]);
    tell("without a limit", said(), lives(0, 9_000), &[]);
    tell("after its time", said(), lives(100, 500), &[Rule::Time]);
    tell("by an older version", Rules::default(), lives(100, 500), &[]);
    let stopped = |reason: Reason, second: u64| {
        move |script: &mut Script| {
            script.child(1, 0, 0, "b", 1);
            script.grant(1).run_timeout_seconds = 100;
            script.grant(1).idle_timeout_seconds = 50;
            script.starts(1, 10);
            script.at(1, second, EventKind::Stopping { reason: Box::new(reason.clone()) });
            script.ends(1, second + 1, reason);
        }
    };
    let timeout = |seconds| Reason::Timeout { seconds };
    let idle = |seconds| Reason::Idle { seconds };
    for (what, reason, second, expected) in [
        ("its time was over", timeout(100), 110, &[][..]),
        ("its time was not over", timeout(100), 60, &[Rule::Time]),
        ("it had more time", timeout(40), 60, &[Rule::Time]),
        ("it was silent", idle(50), 60, &[]),
        ("it cannot have been silent for so long", idle(50), 40, &[Rule::Time]),
        ("it may be silent for longer", idle(20), 60, &[Rule::Time]),
    ] {
        tell(what, said(), stopped(reason, second), expected);
    }
}

#[test]
fn what_a_run_does_while_it_waits_counts_against_its_time() {
    let works = |cpu_ms: u64, wait_ms: u64, stopped: bool| {
        move |script: &mut Script| {
            script.child(1, 0, 0, "b", 1);
            script.grant(1).run_timeout_seconds = 100;
            script.starts(1, 10);
            script.at(1, 20, EventKind::Waiting);
            script.at(1, 40, EventKind::Returned);
            script.at(1, 40, EventKind::BusyWaiting { cpu_ms, wait_ms });
            if stopped {
                let reason = Box::new(Reason::Timeout { seconds: 100 });
                script.at(1, 40, EventKind::Stopping { reason });
            } else {
                script.at(1, 41, EventKind::Reported { text: "on".into() });
            }
            script.ends(1, 41, if stopped { Reason::Timeout { seconds: 100 } } else { DONE });
        }
    };
    tell("it has time left", said(), works(60_000, 20_000, false), &[]);
    tell("its time is over", said(), works(90_000, 20_000, true), &[]);
    tell("it goes on all the same", said(), works(90_000, 20_000, false), &[Rule::Time]);
    tell("by an older version", Rules::default(), works(90_000, 20_000, false), &[]);
    tell("its time is not over", said(), works(60_000, 20_000, true), &[Rule::Time]);
    tell("it was at rest", said(), works(2_000, 20_000, false), &[Rule::Time]);
    let before = |script: &mut Script| {
        script.child(1, 0, 0, "b", 1);
        script.at(1, 1, EventKind::BusyWaiting { cpu_ms: 900, wait_ms: 1_000 });
    };
    tell("nothing of it ran", said(), before, &[Rule::States]);
    let mut script = Script::of(said());
    works(60_000, 20_000, false)(&mut script);
    let busy = Audit::of(&script.events).busy_waiting;
    assert_eq!(
        busy.iter().map(|busy| (busy.times, busy.cpu_ms, busy.wait_ms)).collect::<Vec<_>>(),
        [(1, 60_000, 20_000)]
    );
}

#[test]
fn nothing_begins_after_the_deadline() {
    let rules = Rules { deadline_seconds: Some(100), ..Rules::default() };
    let later = |second: u64, reopened: Option<u64>| {
        move |script: &mut Script| {
            if let Some(second) = reopened {
                script.at(0, second, EventKind::Reopened);
                let continues = true;
                script.at(
                    0,
                    second,
                    EventKind::Resumed {
                        attempt: 2,
                        continues,
                        after: None,
                        wait_ms: None,
                        changes: None,
                    },
                );
                script.starts(0, second);
            }
            script.child(1, second, 0, "b", 1);
            script.starts(1, second);
        }
    };
    tell("before it", rules, later(90, None), &[]);
    tell("after it", rules, later(900, None), &[Rule::Time, Rule::Time]);
    tell("time without a supervisor", rules, later(900, Some(890)), &[]);
    tell("none is set", Rules::default(), later(900, None), &[]);
}

#[test]
fn caps_of_an_agent_count_what_is_strictly_below_it() {
    // The first of three below `b`, in a line, lends its slot or does not; another agent runs elsewhere.
    let below = |change: fn(&mut Rules), lends: bool| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.rules(1, change);
            script.starts(1, 1);
            script.child(5, 1, 0, "c", 1);
            script.starts(5, 1);
            for number in [2, 3] {
                script.child(number, 1, 1, "c", 2);
            }
            script.starts(2, 1);
            script.child(4, 1, 2, "c", 3);
            if lends {
                script.at(2, 1, EventKind::Waiting);
            }
            script.starts(3, 1);
            script.starts(4, 1);
        }
    };
    let at_once: fn(&mut Rules) = |rules| rules.max_concurrent = 2;
    tell("two of two", said(), below(at_once, true), &[]);
    tell("three of two", said(), below(at_once, false), &[Rule::Concurrency]);
    let of_older = |rules: &mut Rules| {
        (rules.max_concurrent, rules.max_returns) = (2, None);
    };
    tell("by an older version", said(), below(of_older, false), &[]);
    let per_level: fn(&mut Rules) = |rules| rules.max_concurrent_per_level = Some(1);
    tell("one of one on a level", said(), below(per_level, true), &[]);
    tell("two of one on a level", said(), below(per_level, false), &[Rule::Concurrency]);
    let same: fn(&mut Rules) = |rules| rules.max_children = Some(7);
    tell("no cap of its own", said(), below(same, false), &[]);
    let comes_back = |script: &mut Script| {
        below(at_once, true)(script);
        // It goes on in debt, and nothing starts until that is paid.
        script.at(2, 2, EventKind::Returned);
        script.child(6, 2, 1, "c", 2);
        script.ends(3, 2, DONE);
        script.deliver(3, 2);
        script.starts(6, 2);
    };
    tell("after a return in debt", said(), comes_back, &[Rule::Concurrency]);
    let anew = |script: &mut Script| {
        below(at_once, false)(script);
        script.at(0, 3, EventKind::Reopened);
        for number in [2, 3] {
            script.at(
                number,
                3,
                EventKind::Resumed {
                    attempt: 2,
                    continues: true,
                    after: None,
                    wait_ms: None,
                    changes: None,
                },
            );
            script.starts(number, 3);
        }
    };
    tell("a new supervisor counts from zero", said(), anew, &[Rule::Concurrency]);
}

#[test]
fn nothing_begins_below_an_agent_after_its_deadline() {
    let later = |second: u64, first: u64| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.rules(1, |rules| rules.deadline_seconds = Some(100));
            script.starts(1, 1);
            script.child(2, first, 1, "c", 2);
            script.starts(2, first);
            script.child(3, second, 2, "c", 3);
            script.starts(3, second);
            script.child(4, second, 0, "c", 1);
            script.starts(4, second);
        }
    };
    tell("before it", said(), later(990, 900), &[]);
    tell("after it", said(), later(990, 800), &[Rule::Time, Rule::Time]);
}

#[test]
fn no_child_has_more_time_than_its_parent_may_give() {
    // What `b` was given, and its child.
    let given = |parent: u64, child: u64| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.grant(1).run_timeout_seconds = parent;
            script.starts(1, 1);
            script.child(2, 1, 1, "c", 2);
            script.grant(2).run_timeout_seconds = child;
        }
    };
    let rules = Rules { run_timeout_seconds: Some(50), ..said() };
    tell("what the rules say", rules, given(50, 50), &[]);
    tell("less", rules, given(40, 40), &[]);
    tell("more than its parent was given", rules, given(40, 50), &[Rule::Time]);
    tell("more than the rules say", rules, given(50, 60), &[Rule::Time]);
    tell("no limit", rules, given(50, 0), &[Rule::Time]);
    tell("not said", said(), given(40, 50), &[]);
    let endless = Rules { run_timeout_seconds: Some(0), ..said() };
    tell("none of any", endless, given(0, 0), &[]);
    tell("none below one that was given some", endless, given(40, 0), &[Rule::Time]);
    let raised = |script: &mut Script| {
        given(50, 60)(script);
        script.rules(1, |rules| rules.run_timeout_seconds = Some(60));
    };
    tell("its own value replaces what is built in", rules, raised, &[]);
}

#[test]
fn times_by_a_clock_that_was_set_back_are_not_judged() {
    let rules = Rules { deadline_seconds: Some(100), ..said() };
    let child = |late: u64, after: u64| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.grant(1).run_timeout_seconds = 100;
            script.starts(1, 1);
            script.at(1, late, EventKind::Waiting);
            script.at(1, after, EventKind::Returned);
            let reason = Box::new(Reason::Timeout { seconds: 100 });
            script.at(1, after, EventKind::Stopping { reason });
            script.child(2, after, 0, "b", 1);
        }
    };
    tell("forward", rules, child(300, 300), &[Rule::Time, Rule::Time]);
    tell("back", rules, child(51, 50), &[]);
    tell("forward all the same", rules, child(51, 51), &[Rule::Time]);
}

#[test]
fn agents_and_depths_are_those_that_were_granted() {
    let agent = |name: &'static str| {
        move |script: &mut Script| {
            script.grant(0).agents.retain(|agent| agent.as_str() != "c");
            script.child(1, 1, 0, name, 1);
        }
    };
    tell("its own", said(), agent("main"), &[]);
    tell("one that it may name", said(), agent("b"), &[]);
    tell("one that it may not name", said(), agent("c"), &[Rule::Agents]);
    let deeper = |script: &mut Script| {
        script.child(1, 1, 0, "b", 1);
        script.grant(1).max_depth = 5;
    };
    tell("by its own settings", said(), deeper, &[]);
    let rules = Rules { max_depth: Some(3), ..said() };
    tell("against those above it", rules, deeper, &[Rule::Depth]);
}

#[test]
fn what_needs_another_starts_once_that_is_over() {
    fn needs(script: &mut Script, on_need_failed: OnNeedFailed) {
        script.child(1, 0, 0, "main", 1);
        script.child(2, 0, 0, "main", 1);
        let second = admitted(&mut script.events, Script::run(2));
        second.needs = vec![Need { name: "one".into(), run: Some(Script::run(1)) }];
        second.on_need_failed = on_need_failed;
    }
    let starts = |order: &'static [&'static str], end: Reason, on: OnNeedFailed| {
        move |script: &mut Script| {
            needs(script, on);
            script.starts(1, 1);
            for what in order {
                match *what {
                    "one ends" => script.ends(1, 2, end.clone()),
                    "two starts" => script.starts(2, 2),
                    _ => unreachable!("{what}"),
                }
            }
        }
    };
    let failed = || Reason::ExitCode { code: 7 };
    let (skip, run) = (OnNeedFailed::Skip, OnNeedFailed::Run);
    let (behind, before) = (&["one ends", "two starts"], &["two starts", "one ends"]);
    tell("behind it", said(), starts(behind, DONE, skip), &[]);
    tell("before it", said(), starts(before, DONE, skip), &[Rule::Needs]);
    tell("before it, to run without", said(), starts(before, failed(), run), &[Rule::Needs]);
    tell("behind a failure", said(), starts(behind, failed(), skip), &[Rule::Needs]);
    tell("behind a failure, to run without", said(), starts(behind, failed(), run), &[]);
    let skipped = |name: &'static str, end: Reason, on: OnNeedFailed| {
        move |script: &mut Script| {
            needs(script, on);
            script.starts(1, 1);
            script.ends(1, 2, end);
            script.ends(2, 2, Reason::NeedFailed { need: name.to_owned() });
        }
    };
    tell("skipped", said(), skipped("one", failed(), skip), &[]);
    tell("skipped for another", said(), skipped("two", failed(), skip), &[Rule::Needs]);
    tell("skipped for a success", said(), skipped("one", DONE, skip), &[Rule::Needs]);
    tell("was to run without", said(), skipped("one", failed(), run), &[Rule::Needs]);
}

#[test]
fn chains_that_go_round_in_circles_are_found() {
    let chain = |script: &mut Script| {
        for (number, agent) in (1..).zip(["main", "b", "main"]) {
            script.child(number, 1, number - 1, agent, number.into());
            script.starts(number, 1);
        }
    };
    let most = |returns| Rules { max_returns: Some(returns), ..Rules::default() };
    tell("not said", Rules::default(), chain, &[]);
    tell("as often as it may", most(1), chain, &[]);
    tell("none may", most(0), chain, &[Rule::Cycles]);
}

#[test]
fn what_fails_again_and_again_is_left_alone() {
    let rules =
        Rules { breaker_failures: Some(2), breaker_cooldown_seconds: Some(60), ..Rules::default() };
    // Two that fail, and a third of the same agent.
    let third = |agent: &'static str, between: Reason, admitted: u64, starts: u64| {
        move |script: &mut Script| {
            for (number, reason) in [(1, fault(false)), (2, between)] {
                script.child(number, 1, 0, "b", 1);
                script.starts(number, 1);
                script.ends(number, 2, reason);
                script.at(
                    number,
                    2,
                    EventKind::Delivered {
                        delivery: DeliveryId::new(
                            &"agent:main:subagent:1".parse().expect("a key"),
                            Script::run(number),
                        ),
                        redelivered: false,
                    },
                );
            }
            script.child(3, admitted, 0, agent, 1);
            script.starts(3, starts);
        }
    };
    tell("another", rules, third("c", fault(false), 3, 3), &[]);
    tell("one that had worked", rules, third("b", DONE, 3, 3), &[]);
    tell("after the wait", rules, third("b", fault(false), 62, 62), &[]);
    tell("not said", Rules::default(), third("b", fault(false), 3, 3), &[]);
    let both = [Rule::Breaker, Rule::Breaker];
    tell("at once", rules, third("b", fault(false), 3, 3), &both);
    tell("admitted too early", rules, third("b", fault(false), 3, 62), &both[..1]);
}

#[test]
fn attempts_are_counted_again() {
    let rules = Rules { retries: Some(2), ..Rules::default() };
    let attempts = |attempts: &'static [u32], retryable: bool, acts: bool| {
        move |script: &mut Script| {
            script.child(1, 1, 0, "b", 1);
            script.starts(1, 1);
            if acts {
                script.at(1, 1, EventKind::TurnEnded { answer: None, letters_taken: None });
            }
            for attempt in attempts {
                script.again(1, 2, *attempt, retryable);
                script.starts(1, 3);
            }
        }
    };
    tell("as often as it may", rules, attempts(&[2, 3], true, false), &[]);
    tell("not said", Rules::default(), attempts(&[2, 3, 4], true, false), &[]);
    tell("too often", rules, attempts(&[2, 3, 4], true, false), &[Rule::Retries]);
    tell("one is missing", rules, attempts(&[3], true, false), &[Rule::Retries]);
    tell("what nothing can mend", rules, attempts(&[2], false, false), &[Rule::Retries]);
    tell("what it has done", rules, attempts(&[2], true, true), &[Rule::Retries]);
}
