//! The reasons why a tree or a run is held back, in words.

use offshoot_model::{
    BackOff, FullAccount, Node, OpenBreaker, Pace, Parked, Priming, RunStatus, ShortPool,
    Timestamp, Tree, TreeHolds, Wall,
};

use crate::{neutral, number};

/// A reason why a tree is held back, or one of its runs.
#[derive(Clone, Copy, Debug)]
pub enum Hold<'a> {
    /// The operator paused the tree at this time.
    Paused(Timestamp),
    /// The run waits for another attempt.
    Parked(&'a Parked),
    /// No run of an agent starts for a while.
    Breaker(&'a OpenBreaker),
    /// No run of an account starts before a reset.
    Wall(&'a Wall),
    /// A bounded number of runs of an account works at once.
    Pace(&'a Pace),
    /// Runs wait for the first answer of one that sends the same prompt.
    Priming(&'a Priming),
    /// A piece waits for the end of another, because of the budget that they share.
    Pool(&'a ShortPool),
    /// Runs in line wait for memory since this time.
    Memory(Timestamp),
    /// Runs in line wait for a slot of the host since this time.
    Host(Timestamp),
    /// Runs of an account in line wait for a slot of it.
    Account(&'a FullAccount),
    /// A request of the run to a model waits for room in the budget since this time.
    Cap(Timestamp),
    /// The run waits before its next call to a service that has refused or broken off the last one.
    BacksOff(&'a BackOff),
}

impl<'a> Hold<'a> {
    /// Returns what holds the tree back, beside its root, and what holds a run back that stands in line.
    pub fn of(tree: &'a Tree, node: &'a Node) -> Vec<Self> {
        let is_queued = node.status == RunStatus::Queued;
        let paused =
            tree.holds(node.root).paused_since.filter(|_| is_queued || node.parent.is_none());
        paused.map(Self::Paused).into_iter().chain(Self::beside_root(tree, node)).collect()
    }

    /// Returns the same of a run whose root is shown with it, and says there that the tree is paused.
    pub fn beside_root(tree: &'a Tree, node: &'a Node) -> Vec<Self> {
        let of_tree = tree.holds(node.root);
        let mut holds: Vec<Self> = match node.parent {
            None => {
                Self::of_tree(of_tree).filter(|hold| !matches!(hold, Self::Paused(_))).collect()
            }
            Some(parent) if node.status == RunStatus::Queued => {
                let pools = of_tree.short_pools.iter().filter(|pool| pool.run == parent);
                let memory = of_tree.memory_short_since.map(Self::Memory);
                let host = of_tree.host_full_since.map(Self::Host);
                let of_host = memory.into_iter().chain(host);
                let breaker = tree.held_back_by(node).map(Self::Breaker);
                pools.map(Self::Pool).chain(of_host).chain(breaker).collect()
            }
            Some(_) => Vec::new(),
        };
        // Nothing is held back where no supervisor could let it go on.
        if !node.is_without_supervisor() && !node.status.is_terminal() {
            holds.extend(node.at_cap.map(Self::Cap));
            holds.extend(node.parked.as_ref().map(Self::Parked));
            holds.extend(node.backs_off.as_ref().map(Self::BacksOff));
        }
        holds
    }

    /// Returns each of the reasons that hold a whole tree back.
    pub fn of_tree(holds: &'a TreeHolds) -> impl Iterator<Item = Self> {
        let paused = holds.paused_since.map(Self::Paused).into_iter();
        let walls = holds.walls.iter().map(Self::Wall);
        let paces = holds.paces.iter().map(Self::Pace);
        let primings = holds.primings.iter().map(Self::Priming);
        let pools = holds.short_pools.iter().map(Self::Pool);
        let memory = holds.memory_short_since.map(Self::Memory);
        let host = holds.host_full_since.map(Self::Host);
        let accounts = holds.full_accounts.iter().map(Self::Account);
        let breakers = holds.open_breakers.iter().map(Self::Breaker);
        let of_accounts = paused.chain(walls).chain(paces).chain(primings);
        of_accounts.chain(pools).chain(memory).chain(host).chain(accounts).chain(breakers)
    }

    /// Returns the time since which it holds.
    pub const fn since(self) -> Timestamp {
        match self {
            Self::Paused(since) => since,
            Self::Parked(parked) => parked.since,
            Self::Breaker(open) => open.since,
            Self::Wall(wall) => wall.since,
            Self::Pace(pace) => pace.since,
            Self::Priming(priming) => priming.since,
            Self::Account(full) => full.since,
            Self::Pool(pool) => pool.since,
            Self::BacksOff(back_off) => back_off.since,
            Self::Memory(since) | Self::Host(since) | Self::Cap(since) => since,
        }
    }

    /// The word for the state of what is held back so.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Paused(_) => "paused",
            Self::Parked(_) | Self::Wall(_) => "parked",
            _ => "held",
        }
    }

    /// The whole text, with moments.
    pub fn text(self) -> String {
        let since = number::moment(self.since());
        match self {
            Self::Paused(_) => format!("paused by the operator since {since}"),
            Self::Parked(it) => parked(it.since, it.until, it.attempt, &it.after.to_string()),
            Self::Breaker(open) => format!(
                "held back by the breaker of the agent `{}` since {since}: {}, one run is tried from {} on",
                open.agent,
                number::faults(open.faults),
                number::moment(open.until)
            ),
            Self::Wall(wall) => format!(
                "parked until {} ({}), since {since}",
                number::moment(wall.until),
                neutral::line(&wall.quota())
            ),
            Self::Pace(pace) => {
                format!("held to {}, since {since}", number::pace(&pace.account, Some(pace.most)))
            }
            Self::Priming(Priming { run, tokens, .. }) => format!(
                "held until {run} is answered (primeCache: the same prompt of about {} tokens), since {since}",
                number::count(*tokens)
            ),
            Self::Pool(_) => format!("held until another piece ends (budget.share), since {since}"),
            Self::Memory(_) => {
                format!("held until more memory is available (host.memoryKeep), since {since}")
            }
            Self::Host(_) => {
                format!("held until another run ends (host.maxConcurrent), since {since}")
            }
            Self::Account(full) => format!(
                "held until another run of {} ends (host.maxConcurrentPerAccount), since {since}",
                full.account
            ),
            Self::Cap(since) => cap(since),
            Self::BacksOff(it) => back_off(it),
        }
    }

    /// The text in few words, as of this moment: `paused for 3.0 s`.
    pub fn brief(self, now: Timestamp) -> String {
        format!("{} {}", self.word(), self.beside(now))
    }

    /// The same without the word, to stand beside it: since when, and until when.
    pub fn beside(self, now: Timestamp) -> String {
        let so_long = number::duration(now.since(self.since()));
        let when = |until: Timestamp, due: &str, before: &str| match now >= until {
            true => due.to_owned(),
            false => format!("{before} {}", number::duration(until.since(now))),
        };
        match self {
            Self::Paused(_) => format!("for {so_long}"),
            Self::Memory(_) => format!("for {so_long} until memory is free"),
            Self::Host(_) => format!("for {so_long} until another run ends"),
            Self::Account(full) => {
                format!("for {so_long} until another run of {} ends", full.account)
            }
            Self::Cap(_) => format!("for {so_long} until its budget has room"),
            Self::BacksOff(it) => {
                let when = when(it.until, "asked again now", "asked again in");
                format!("for {so_long} by its service, {when}, after: {}", neutral::line(&it.why))
            }
            Self::Parked(it) => {
                let (attempt, after) = (it.attempt, it.after.to_string());
                let when = when(it.until, "is due", "in");
                let after = neutral::line(&after);
                format!("for {so_long}, attempt {attempt} {when}, after: {after}")
            }
            // Its time may be over long before the end of the run that is tried.
            Self::Breaker(open) => {
                let when = when(open.until, "one run is tried now", "next try in");
                format!("for {so_long} by the breaker of {}, {when}", open.agent)
            }
            Self::Pace(pace) => {
                format!("for {so_long}: at most {} runs of {} at once", pace.most, pace.account)
            }
            Self::Priming(priming) => format!("for {so_long} until {} is answered", priming.run),
            Self::Pool(_) => format!("for {so_long} until another piece ends"),
            Self::Wall(wall) => {
                let when = when(wall.until, "one run is tried now", "reset in");
                format!("for {so_long} ({}), {when}", neutral::line(&wall.quota()))
            }
        }
    }
}

/// Returns why nothing more of a tree starts, beside its root, and why a run in line does not; one text for each reason.
pub fn held(tree: &Tree, node: &Node) -> Vec<String> {
    Hold::of(tree, node).into_iter().map(Hold::text).collect()
}

/// Says that a run waits for another attempt, after the reason of the one before.
pub fn parked(since: Timestamp, until: Timestamp, attempt: u32, after: &str) -> String {
    format!(
        "parked since {}, attempt {attempt} from {} on, after: {}",
        number::moment(since),
        number::moment(until),
        neutral::line(after)
    )
}

/// Says that a request of a run waits for room in the budget.
pub fn cap(since: Timestamp) -> String {
    let since = number::moment(since);
    format!(
        "held since {since}: a request to a model waits for room in the budget (`offshoot budget RUN --add`)"
    )
}

/// Says that a run waits before it asks its service again.
pub fn back_off(it: &BackOff) -> String {
    format!(
        "held by its service since {}, asked again at {}, after: {}",
        number::moment(it.since),
        number::moment(it.until),
        neutral::line(&it.why)
    )
}

#[cfg(test)]
mod tests {
    use offshoot_model::{EventKind, Reason};
    use offshoot_test_support::Timed;

    use super::*;

    #[test]
    fn without_a_supervisor_nothing_is_held_back() {
        let (mut timed, root) = Timed::tree(2, None);
        let (a, b) = (timed.child(0, root, "a"), timed.child(0, root, "b"));
        timed.start(0, a);
        timed.start(0, b);
        let model = "m".into();
        timed.say(
            1,
            a,
            EventKind::RequestHeld {
                request: 1,
                model,
                tokens: 9,
                micro_usd: None,
                for_others: false,
            },
        );
        timed.again(1, b, Some(Reason::ExitCode { code: 75 }), Some(1_000));
        let mut tree = Tree::of(&timed.events);
        let told = |tree: &Tree| -> Vec<String> {
            tree.nodes().flat_map(|node| held(tree, node)).collect()
        };
        let [cap, parked] = &told(&tree)[..] else { panic!("{:?}", told(&tree)) };
        assert!(
            cap.contains("room in the budget") && parked.contains("attempt 2"),
            "{cap}; {parked}"
        );
        tree.lose(timed.events[0].root);
        assert_eq!(told(&tree), [""; 0]);
    }

    #[test]
    fn a_run_is_held_by_its_service_until_that_answers() {
        let (mut timed, root) = Timed::tree(2, None);
        let a = timed.child(0, root, "a");
        timed.start(0, a);
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let back_off = |seconds: u64| {
            let why = "529 overloaded; retry 1 of 5".into();
            EventKind::BacksOff { why, until: at(seconds) }
        };
        timed.say(1_000, a, back_off(3));
        timed.say(5_000, a, back_off(9));
        let tree = Tree::of(&timed.events);
        let node = tree.get(a).expect("it was admitted");
        let [hold] = Hold::of(&tree, node)[..] else { panic!("one reason") };
        assert_eq!(hold.since(), at(1), "since the first call that failed");
        let brief = [6, 9].map(|seconds| hold.brief(at(seconds)));
        assert_eq!(
            brief,
            [
                "held for 5.0 s by its service, asked again in 3.0 s, after: 529 overloaded; retry 1 of 5",
                "held for 8.0 s by its service, asked again now, after: 529 overloaded; retry 1 of 5",
            ]
        );
        timed.say(10_000, a, EventKind::Answered);
        let tree = Tree::of(&timed.events);
        assert!(tree.nodes().all(|node| held(&tree, node).is_empty()));
    }

    #[test]
    fn below_a_root_that_is_over_nothing_is_held_back_without_a_supervisor() {
        let (mut timed, root) = Timed::tree(2, None);
        let child = timed.child(0, root, "a");
        timed.start(0, child);
        timed.again(1, child, Some(Reason::ExitCode { code: 75 }), Some(1_000));
        timed.complete(2, root);
        let mut tree = Tree::of(&timed.events);
        let told = |tree: &Tree| tree.nodes().flat_map(|node| held(tree, node)).count();
        assert_eq!(told(&tree), 1);
        tree.lose(timed.events[0].root);
        assert_eq!(told(&tree), 0);
    }
}
