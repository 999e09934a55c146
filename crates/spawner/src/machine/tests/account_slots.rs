//! Runs of one account that share slots with runs of other trees.

use std::sync::Arc;
use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{Account, CancelledBy, EventKind, Reason, RunStatus};
use offshoot_runtime::{EXEC, RunEvent};

use super::super::run::RunIndex;
use super::super::{Input, Reach};
use super::limits::Limits;
use super::world::{OTHER, World};
use crate::host_slots::{HostGrant, SlotPool};

pub(super) fn pool(runtime: &str) -> SlotPool {
    SlotPool::Account(Arc::new(Account::of_runtime(runtime)))
}

fn tree(slots: u32, more: Limits) -> World {
    World::quiet(Limits { account_slots: slots, ..more })
}

impl World {
    /// A piece that another runtime runs, under its own account.
    pub(super) fn other_piece(&mut self) -> RunIndex {
        let facts = std::mem::replace(&mut self.facts, Arc::clone(&self.other_facts));
        let run = self.spawn_piece();
        self.facts = facts;
        run
    }

    fn told_of_accounts(&self) -> Vec<&'static str> {
        let is_it = |kind: &&EventKind| {
            let is_start = **kind == EventKind::Starting;
            is_start || kind.name().starts_with("account_")
        };
        self.record.iter().map(|event| &event.kind).filter(is_it).map(EventKind::name).collect()
    }

    /// Ends all that is left. Checks that no slot is left anywhere, and that the record proves what was done.
    fn end_all(&mut self) {
        while let Some(&run) = self.holding().first() {
            self.finish(run);
        }
        assert_eq!(self.machine.queued(), 0, "none is left in line");
        assert!(self.hosts.values().all(|host| host.bound() == 0), "all went back");
        assert_eq!(Audit::of(&self.ledger.events).breaches, []);
    }
}

#[test]
fn no_more_run_of_an_account_than_it_has_slots() {
    let mut world = tree(2, Limits::default());
    let pieces = [(); 4].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces[..2]);
    world.finish(pieces[0]);
    assert_eq!(world.holding(), pieces[1..3], "in the order in which they came");
    pieces[1..].iter().for_each(|piece| world.finish(*piece));
    let told = [
        "account_bound",
        "starting",
        "starting",
        "account_full",
        "starting",
        "starting",
        "account_free",
    ];
    assert_eq!(world.told_of_accounts(), told);
    world.end_all();
}

#[test]
fn runs_of_other_accounts_pass_those_that_wait() {
    let mut world = tree(1, Limits::default());
    let pieces = [(); 2].map(|()| world.spawn_piece());
    let other = world.other_piece();
    assert_eq!(world.holding(), [pieces[0], other]);
    assert_eq!(world.times("account_bound"), 2, "each account when its first run wants to start");
    world.finish(other);
    assert_eq!(world.holding(), [pieces[0]], "its slot is none of another account");
    world.end_all();
}

#[test]
fn programs_have_no_account() {
    let mut world = tree(1, Limits::default());
    let mut facts = (*world.facts).clone();
    facts.name = EXEC.into();
    facts.account = Arc::new(Account::of_runtime(EXEC));
    world.facts = Arc::new(facts);
    let pieces = [(); 3].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces);
    assert_eq!(world.told_of_accounts(), ["starting"; 3]);
}

#[test]
fn a_tree_that_counts_alone_tells_nothing_of_accounts() {
    let mut world = World::quiet(Limits::default());
    let pieces = [(); 3].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces);
    assert_eq!(world.told_of_accounts(), ["starting"; 3]);
}

#[test]
fn the_deeper_first_and_parents_take_turns() {
    let mut world = tree(3, Limits::default());
    let [a, b, c] = [(); 3].map(|()| world.spawn_piece());
    let late = world.spawn_piece();
    let [a1, a2] = [(); 2].map(|()| world.child_of(a));
    let [b1, b2] = [(); 2].map(|()| world.child_of(b));
    assert_eq!(world.holding(), [a, b, c], "all others stand in line");
    world.finish(c);
    assert_eq!(world.holding(), [a, b, a1], "deeper than the piece that came before it");
    world.finish(a1);
    assert_eq!(world.holding(), [a, b, b1], "the other parent has its turn");
    world.finish(b1);
    assert_eq!(world.holding(), [a, b, a2]);
    world.finish(a2);
    assert_eq!(world.holding(), [a, b, b2]);
    world.finish(b2);
    assert_eq!(world.holding(), [a, b, late]);
    world.end_all();
}

#[test]
fn a_parent_that_waits_lends_its_slot_of_the_account_and_goes_on_before_new_runs() {
    let mut world = tree(1, Limits::default());
    let (parent, child) = world.family();
    let more = world.child_of(parent);
    world.wait(parent);
    assert_eq!(world.holding(), [child]);
    let late = world.spawn_piece();
    world.finish(child);
    assert_eq!(world.holding(), [more]);
    let (other, _) = (world.other_piece(), ());
    assert_eq!(world.holding(), [more, other]);
    world.finish(more);
    assert_eq!(world.holding(), [parent, other], "before the piece, which came when it waited");
    world.finish(parent);
    assert_eq!(world.holding(), [late, other]);
    world.end_all();
}

#[test]
fn a_parent_that_may_go_on_waits_while_its_account_is_full() {
    let mut world = tree(1, Limits::default());
    let (parent, child) = world.family();
    world.wait(parent);
    world.others_change_in(pool("test"), 0, 1);
    world.finish(child);
    assert_eq!(world.holding(), [], "another tree is next, and the parent waits");
    world.others_change_in(pool("test"), 1, 1);
    let piece = world.spawn_piece();
    let other = world.other_piece();
    assert_eq!(world.holding(), [other], "it holds up no run of another account");
    assert_eq!(world.machine.queued(), 2);
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!(world.holding(), [parent, other], "it goes first");
    world.finish(parent);
    assert_eq!(world.holding(), [piece, other]);
    world.end_all();
}

#[test]
fn a_debt_is_told_to_the_account() {
    let mut world = tree(1, Limits::default());
    let (parent, child) = world.family();
    let wait = world.wait(parent);
    world.give_up(wait);
    assert_eq!(world.holding(), [parent, child], "a parent whose wait failed goes on at once");
    let more = world.spawn_piece();
    world.finish(child);
    assert_eq!(world.holding(), [parent], "the debt is paid first");
    world.finish(parent);
    assert_eq!(world.holding(), [more]);
    world.end_all();
}

#[test]
fn a_slot_that_is_due_to_another_tree_goes_back_before_the_next_run_starts() {
    let mut world = tree(2, Limits::default());
    let pieces = [(); 4].map(|()| world.spawn_piece());
    world.others_change_in(pool("test"), 0, 1);
    assert_eq!(world.holding(), pieces[..2], "nothing that runs is stopped for it");
    world.finish(pieces[0]);
    assert_eq!(world.holding(), [pieces[1]], "the other tree is next");
    world.others_change_in(pool("test"), 1, 1);
    world.finish(pieces[1]);
    assert_eq!(world.holding(), [pieces[2]], "this one is due to the tree");
    world.others_change_in(pool("test"), 0, 0);
    assert_eq!(world.holding(), pieces[2..]);
    world.end_all();
}

#[test]
fn the_next_run_keeps_its_slot_of_the_account_while_it_waits_for_the_host() {
    let limits = Limits { host_slots: 2, ..Limits::default() };
    let mut world = tree(2, limits);
    let pieces = [(); 4].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces[..2]);
    world.others_change(0, 2);
    pieces[..2].iter().for_each(|piece| world.finish(*piece));
    assert_eq!(world.holding(), [], "other trees are next at the host");
    world.others_change(2, 2);
    assert_eq!(world.hosts[&SlotPool::Host].bound(), 0, "none of the host is kept");
    assert_eq!(
        world.hosts[&pool("test")].bound(),
        2,
        "no other tree waits for those of the account"
    );
    world.others_change_in(pool("test"), 0, 2);
    assert_eq!(world.hosts[&pool("test")].bound(), 1, "one is kept for the next run");
    // The other tree would wait for the host as well.
    world.others_change_in(pool("test"), 1, 2);
    world.advance(120_000);
    assert_eq!(world.hosts[&pool("test")].bound(), 1);
    world.others_change(0, 1);
    assert_eq!(world.holding(), [pieces[2]], "the one of the host that is due to the tree");
    assert_eq!(world.hosts[&pool("test")].bound(), 1, "it is used once, and no other is kept");
    world.finish(pieces[2]);
    assert_eq!(world.holding(), [], "then it goes to the tree that is due for it");
    assert_eq!(world.hosts[&pool("test")].bound(), 0);
    world.others_change_in(pool("test"), 0, 0);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [pieces[3]]);
    world.end_all();
}

#[test]
fn a_run_that_waits_for_its_account_holds_no_slot_of_the_host() {
    let limits = Limits { host_slots: 2, ..Limits::default() };
    let mut world = tree(1, limits);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces[..1]);
    assert_eq!(world.hosts[&SlotPool::Host].bound(), 1, "the second one waits for its account");
    world.finish(pieces[0]);
    assert_eq!(world.holding(), pieces[1..]);
    world.end_all();
}

#[test]
fn slots_of_an_account_go_back_while_memory_is_short() {
    let limits = Limits { memory_percent: 30, ..Limits::default() };
    let mut world = tree(3, limits);
    world.available = Some(100);
    let first = world.spawn_piece();
    assert_eq!(world.holding(), [first]);
    world.available = Some(35);
    world.advance(60_000);
    let second = world.spawn_piece();
    assert_eq!(world.holding(), [first], "100 less 65 less 10 is less than 30");
    assert_eq!(world.hosts[&pool("test")].bound(), 1, "what cannot be used is not held");
    world.available = Some(90);
    world.advance(10_000);
    assert_eq!(world.holding(), [first, second]);
    world.end_all();
}

#[test]
fn an_account_is_full_all_the_time_while_it_is_looked_at_memory_before_each_start() {
    let mut world = tree(2, Limits { memory_percent: 30, ..Limits::default() });
    world.available = Some(100);
    let pieces = [(); 6].map(|()| world.spawn_piece());
    for piece in &pieces[..4] {
        // Long enough that what was seen of memory counts no more.
        world.advance(60_000);
        world.finish(*piece);
    }
    assert_eq!(world.holding(), pieces[4..]);
    assert_eq!((world.times("account_full"), world.times("account_free")), (1, 1));
    world.end_all();
}

#[test]
fn a_wall_is_met_in_the_line_of_an_account() {
    let limits = Limits { fails_at_walls: true, ..Limits::default() };
    let mut world = tree(1, limits);
    let pieces = [(); 3].map(|()| world.spawn_piece());
    let until = world.now.plus(Duration::from_secs(60));
    world.hear_of_wall(Account::of_runtime("test"), until);
    assert_eq!(world.holding(), pieces[..1], "what runs goes on");
    for piece in &pieces[1..] {
        assert_eq!(world.status(*piece), Some(RunStatus::Failed), "`onWall` is `fail`");
    }
    world.end_all();

    // So is one of which a quota is nearly used up.
    let limits = Limits { fails_at_walls: true, keeps_percent: 50, ..Limits::default() };
    let mut world = tree(1, limits);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    let until = world.now.plus(Duration::from_secs(60));
    let left = RunEvent::QuotaLeft { window: "five_hour".into(), left: 100_000, until };
    world.tells(pieces[0], left);
    assert_eq!(world.holding(), pieces[..1]);
    assert_eq!(world.status(pieces[1]), Some(RunStatus::Failed));
    world.end_all();

    let limits = Limits { falls_back: true, ..Limits::default() };
    let mut world = tree(1, limits);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    let until = world.now.plus(Duration::from_secs(60));
    world.hear_of_wall(Account::of_runtime("test"), until);
    assert_eq!(world.holding(), pieces, "the second one goes over to the account of another");
    world.end_all();

    let limits = Limits { max_park_seconds: 5, ..Limits::default() };
    let mut world = tree(1, limits);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    let until = world.now.plus(Duration::from_secs(60));
    world.meet_wall(pieces[0], until);
    assert_eq!(world.holding(), [], "no run of the account starts");
    world.advance(6_000);
    assert_eq!(world.status(pieces[1]), Some(RunStatus::TimedOut), "it has waited for too long");
}

#[test]
fn a_silent_parent_lends_where_its_account_is_full() {
    let mut world = tree(1, Limits::default());
    let (parent, child) = world.family();
    // One that works has nothing to do with the account.
    let other = world.other_piece();
    assert_eq!(world.holding(), [parent, other]);
    world.advance(30_000);
    assert_eq!(world.holding(), [child, other], "it polls, and its child waits for its slot");
    world.progress(parent);
    assert_eq!(world.holding(), [parent, child, other], "in debt");
    world.end_all();
}

#[test]
fn a_silent_parent_lends_its_slot_of_another_account_for_which_another_tree_may_wait() {
    let mut world = tree(1, Limits::default());
    let parent = world.spawn_piece();
    let facts = std::mem::replace(&mut world.facts, Arc::clone(&world.other_facts));
    let first = world.other_piece();
    world.others_change_in(pool(OTHER), 0, 1);
    world.finish(first);
    world.others_change_in(pool(OTHER), 1, 1);
    let child = world.child_of(parent);
    world.facts = facts;
    assert_eq!(world.holding(), [parent], "the account of its child is full of runs of others");
    world.advance(30_000);
    assert_eq!(world.holding(), [], "so that one that waits for its account, too, may go on");
    world.others_change_in(pool(OTHER), 0, 0);
    assert_eq!(world.holding(), [child]);
    world.end_all();
}

#[test]
fn what_waits_for_its_account_is_cancelled_and_paused_and_starts_under_the_next_supervisor() {
    let mut world = tree(1, Limits::default());
    let pieces = [(); 4].map(|()| world.spawn_piece());
    world.cancel(pieces[1], Reach::Subtree, CancelledBy::Operator);
    world.pause(true);
    world.finish(pieces[0]);
    assert_eq!(world.holding(), [], "nothing starts in a tree that is paused");
    assert_eq!(world.hosts[&pool("test")].bound(), 0, "and it holds no slot");
    world.pause(false);
    assert_eq!(world.holding(), [pieces[2]], "the one before it was cancelled");
    world.crash();
    assert_eq!(world.holding().len(), 1, "the account has given as much to the next one");
    world.end_all();
    assert_eq!(world.times("account_bound"), 2, "by each supervisor");
    assert_eq!(world.times("account_full"), world.times("account_free"));
    let [.., last] = world.told_of_accounts()[..] else { panic!("it was told") };
    assert_eq!(last, "account_free");
}

#[test]
fn where_an_account_cannot_be_counted_none_of_its_runs_starts() {
    let mut world = tree(1, Limits::default());
    world.claims = Some(Vec::new());
    let pieces = [(); 3].map(|()| world.spawn_piece());
    let other = world.other_piece();
    assert_eq!(world.holding(), []);
    let account = Arc::new(Account::of_runtime("test"));
    world.step(Input::CannotCount { account, message: "no folder".to_owned() });
    for piece in pieces {
        assert_eq!(world.status(piece), Some(RunStatus::Failed));
    }
    let failed = |kind: &EventKind| match kind {
        EventKind::Ended(ending) => match &ending.reason {
            Reason::RuntimeError { message, .. } => message == "no folder",
            _ => false,
        },
        _ => false,
    };
    assert_eq!(world.record.iter().filter(|event| failed(&event.kind)).count(), 3);
    assert_eq!(world.told_of_breakers(), [""; 0], "what never started says nothing of its agent");
    world.step(Input::PoolGives(pool(OTHER), HostGrant { more: 1, due: 1, claim: 1 }));
    assert_eq!(world.holding(), [other], "runs of other accounts start");
}
