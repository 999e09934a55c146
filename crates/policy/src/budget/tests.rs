use super::*;
use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{CancelledBy, Payload, Pooled, Reason, TokenCount};
use proptest::prelude::*;

fn run(number: usize) -> RunId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
    RunId::from_bytes(bytes)
}

fn grant(tokens: u64) -> BudgetGrant {
    BudgetGrant { tokens: Some(tokens), usd: None }
}

fn used(tokens: u64) -> Usage {
    Usage { input: TokenCount::Known(tokens), ..Usage::default() }
}

fn completed(tokens: u64) -> Ending {
    Ending { usage: used(tokens), ..Ending::completed(Payload::text("done")) }
}

/// A root with a grant, and children with theirs.
fn family(root: u64, children: &[u64]) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, grant(root));
    for (index, &child) in children.iter().enumerate() {
        ledger.open(run(index + 1), Some(run(0)), grant(child));
    }
    ledger
}

/// `used overrun reserved free deficit` in tokens.
#[track_caller]
fn check(ledger: &Ledger, account: usize, expected: [u128; 5]) {
    let balance = ledger.balance(run(account), Unit::Tokens).expect("an account");
    let free = balance.free.expect("no budget bounds it");
    let found = [balance.used, balance.overrun, balance.reserved, free, balance.deficit];
    assert_eq!(found, expected, "used overrun reserved free deficit of {account}");
}

#[test]
fn what_is_reserved_moves_to_used_as_it_is_reported() {
    let mut ledger = family(1000, &[300, 200]);
    check(&ledger, 0, [0, 0, 500, 500, 0]);
    ledger.charge(run(1), &used(100), &Cost::NONE);
    check(&ledger, 0, [100, 0, 400, 500, 0]);
    check(&ledger, 1, [100, 0, 0, 200, 0]);
    ledger.charge(run(1), &used(250), &Cost::NONE);
    check(&ledger, 0, [250, 0, 250, 500, 0]);
    ledger.charge(run(0), &used(500), &Cost::NONE);
    check(&ledger, 0, [750, 0, 250, 0, 0]);
    ledger.settle(run(1), &completed(260));
    check(&ledger, 0, [760, 0, 200, 40, 0]);
    assert_eq!(ledger.balance(run(1), Unit::Tokens), None, "it is over");
}

#[test]
fn what_is_spent_is_never_unspent() {
    let mut ledger = family(1000, &[300]);
    ledger.charge(run(1), &used(200), &Cost::NONE);
    ledger.charge(run(1), &used(50), &Cost::NONE);
    check(&ledger, 1, [200, 0, 0, 100, 0]);
}

/// The first piece draws what a short task costs with its model, where the price is known.
#[test]
fn a_piece_draws_what_its_model_plausibly_costs() {
    let text = "[prices.small]\ninputPerMillion = 1\noutputPerMillion = 5\n[runtimes.openai.options]\nmodel = \"small\"\n";
    let source = Source::new(SourceKind::User, "/c.toml", text);
    let config = Loader::new().file(source).load().expect("a configuration");
    let plausible =
        |runtime, model| plausible_usd(&config, runtime, model).map(MicroUsd::as_micros);
    // 95,000 tokens are read and 5,000 written.
    assert_eq!(plausible(Some("openai"), None), Some(120_000));
    assert_eq!(plausible(None, Some("small")), Some(120_000));
    assert_eq!(plausible(Some("openai"), Some("large")), None);
    assert_eq!(plausible(Some("claude"), None), None);
    let usd = |micros| BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(micros)) };
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, usd(50_000_000));
    ledger.open(run(1), Some(run(0)), usd(0));
    ledger.pool(run(1), Pooled { tokens: false, usd: true });
    assert_eq!(ledger.draw(run(1), usd(50_000_000)), Draw::Take(usd(250_000)));
    ledger.expect(run(1), MicroUsd::from_micros(120_000));
    assert_eq!(ledger.draw(run(1), usd(50_000_000)), Draw::Take(usd(120_000)));
    let small = MicroUsd::from_micros(120_000);
    assert_eq!(first_part(usd(50_000_000), Some(small)), usd(120_000));
    assert_eq!(first_part(usd(100_000), Some(small)), usd(50_000));
}

#[test]
fn a_second_attempt_has_what_the_first_left() {
    let mut ledger = family(1000, &[300]);
    ledger.charge(run(1), &used(200), &Cost::NONE);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        ledger.clone().open(run(1), Some(run(0)), grant(300));
    }));
    assert!(again.is_err(), "a run is granted once");
    assert_eq!(ledger.left(run(1)).tokens, Some(100));
}

#[test]
fn an_overrun_is_booked_above_and_never_hidden() {
    let mut ledger = family(1000, &[300, 600]);
    ledger.charge(run(1), &used(350), &Cost::NONE);
    check(&ledger, 0, [300, 50, 600, 50, 0]);
    assert_eq!(ledger.overrun(run(1), &completed(380)), (80, MicroUsd::default()));
    ledger.settle(run(1), &completed(380));
    assert_eq!(ledger.overrun(run(1), &completed(380)), (0, MicroUsd::default()), "once");
    check(&ledger, 0, [300, 80, 600, 20, 0]);
    ledger.charge(run(2), &used(650), &Cost::NONE);
    check(&ledger, 0, [900, 130, 0, 0, 30]);
    // The excess stays where it was booked, whatever returns later.
    ledger.settle(run(2), &completed(650));
    check(&ledger, 0, [900, 130, 0, 0, 30]);
}

#[test]
fn a_deficit_is_covered_by_what_returns() {
    let mut ledger = family(100, &[60, 40]);
    ledger.charge(run(1), &used(65), &Cost::NONE);
    check(&ledger, 0, [60, 5, 40, 0, 5]);
    ledger.settle(run(2), &completed(10));
    check(&ledger, 0, [70, 5, 0, 25, 0]);
}

#[test]
fn a_notice_is_given_once_at_four_fifths_and_once_at_the_limit() {
    let mut ledger = family(1000, &[100]);
    let mut check = |total: u64, expected: &[(usize, Mark)]| {
        let notices = ledger.charge(run(1), &used(total), &Cost::NONE);
        let found: Vec<_> = notices.iter().map(|notice| (notice.run, notice.mark)).collect();
        let expected: Vec<_> = expected.iter().map(|&(who, mark)| (run(who), mark)).collect();
        assert_eq!(found, expected, "at {total}");
    };
    check(79, &[]);
    check(80, &[(1, Mark::Near)]);
    check(99, &[]);
    check(100, &[(1, Mark::Limit)]);
    check(120, &[]);
    check(800, &[(0, Mark::Near)]);
    check(1000, &[(0, Mark::Limit)]);
    let mut ledger = family(1000, &[100]);
    let notices = ledger.charge(run(1), &used(5000), &Cost::NONE);
    assert_eq!(notices.len(), 2, "one for each account, the higher mark alone: {notices:?}");
}

#[test]
fn what_is_added_comes_from_outside_and_lets_marks_be_told_again() {
    let mut ledger = family(1000, &[400]);
    let marks = |ledger: &mut Ledger, tokens| -> Vec<Mark> {
        let notices = ledger.charge(run(1), &used(tokens), &Cost::NONE);
        notices.into_iter().map(|notice| notice.mark).collect()
    };
    assert_eq!(marks(&mut ledger, 320), [Mark::Near]);
    ledger.raise(run(1), grant(600));
    assert_eq!(ledger.left(run(1)).tokens, Some(680));
    assert_eq!(ledger.left(run(0)).tokens, Some(600), "no other run has less for it");
    assert_eq!(ledger.balance(run(0), Unit::Tokens).and_then(|it| it.granted), Some(1600));
    assert_eq!(marks(&mut ledger, 799), [], "four fifths of 1000 are 800");
    assert_eq!(marks(&mut ledger, 800), [Mark::Near]);
    assert_eq!(marks(&mut ledger, 1000), [Mark::Limit]);
    assert!(!ledger.is_bounded(run(1), Unit::Usd) && ledger.is_bounded(run(1), Unit::Tokens));
}

#[test]
fn an_amount_in_one_unit_is_nothing_in_the_other() {
    assert_eq!(Unit::Tokens.amount(5), grant(5));
    assert_eq!(Unit::Tokens.amount(1), grant(1));
    let usd = BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(5)) };
    assert_eq!(Unit::Usd.amount(5), usd);
    assert_eq!(Unit::ALL.map(|unit| unit.amount(0)), [BudgetGrant::default(); 2]);
}

#[test]
fn what_requests_have_used_is_added_up() {
    let mut ledger = family(1000, &[100]);
    ledger.charge(run(1), &used(10), &Cost::NONE);
    let mut more = |tokens| -> Vec<_> {
        let notices = ledger.charge_more(run(1), &used(tokens), &Cost::NONE, false);
        notices.into_iter().map(|notice| (notice.run, notice.mark)).collect()
    };
    assert_eq!(more(69), []);
    assert_eq!(more(1), [(run(1), Mark::Near)]);
    assert_eq!(more(30), [(run(1), Mark::Limit)]);
    check(&ledger, 0, [100, 10, 0, 890, 0]);
    // A child below keeps the account open, and nothing more is charged to what is over.
    ledger.open(run(2), Some(run(0)), grant(100));
    ledger.open(run(3), Some(run(2)), grant(50));
    ledger.settle(run(2), &completed(10));
    assert_eq!(ledger.charge_more(run(2), &used(500), &Cost::NONE, false), []);
    assert_eq!(ledger.balance(run(2), Unit::Tokens).map(|balance| balance.used), Some(10));
}

#[test]
fn a_budget_is_used_up_with_its_last_unit() {
    let mut ledger = family(1000, &[100]);
    for (tokens, expected) in [(0, false), (99, false), (100, true), (101, true)] {
        ledger.charge(run(1), &used(tokens), &Cost::NONE);
        assert_eq!(ledger.is_used_up(run(1), Unit::Tokens), expected, "{tokens}");
    }
    assert!(!ledger.is_used_up(run(0), Unit::Tokens));
    assert!(!ledger.is_used_up(run(1), Unit::Usd), "nothing bounds it");
    assert!(!ledger.is_used_up(run(9), Unit::Tokens), "it has no budget");
}

#[test]
fn an_end_tells_of_the_budgets_above_that_it_used_up() {
    let mut ledger = family(100, &[100]);
    let notice = |number, mark| Notice { run: run(number), unit: Unit::Tokens, mark };
    assert_eq!(ledger.settle(run(1), &completed(100)), [notice(0, Mark::Limit)]);
    let mut ledger = family(100, &[50]);
    assert_eq!(ledger.settle(run(1), &completed(50)), [], "its own is of no interest any more");
}

#[test]
fn a_root_that_goes_on_is_charged_again() {
    let mut ledger = family(1000, &[]);
    ledger.settle(run(0), &completed(100));
    assert_eq!(ledger.charge(run(0), &used(900), &Cost::NONE), []);
    check(&ledger, 0, [100, 0, 0, 900, 0]);
    ledger.reopen(run(0));
    ledger.charge(run(0), &used(300), &Cost::NONE);
    check(&ledger, 0, [300, 0, 0, 700, 0]);
}

#[test]
fn a_balance_adds_up_or_it_does_not() {
    let check = |granted: Option<u64>, taken: [u128; 3], free, deficit, expected: bool| {
        let [used, overrun, reserved] = taken;
        let balance = Balance { granted, used, overrun, reserved, free, deficit };
        assert_eq!(balance.adds_up(), expected, "{balance:?}");
    };
    check(Some(100), [50, 20, 10], Some(20), 0, true);
    check(Some(100), [50, 20, 10], Some(21), 0, false);
    check(Some(100), [90, 20, 10], Some(0), 20, true);
    check(Some(100), [90, 20, 10], Some(0), 0, false);
    check(Some(100), [90, 20, 10], Some(5), 25, false);
    check(None, [50, 20, 10], None, 0, true);
    check(None, [50, 20, 10], None, 1, false);
    check(None, [0, 0, 0], Some(0), 0, false);
    check(Some(100), [50, 20, 30], None, 0, false);
}

#[test]
fn a_budget_of_zero_stops_the_first_use() {
    let mut ledger = family(0, &[0]);
    assert_eq!(ledger.left(run(0)).tokens, Some(0));
    assert_eq!(ledger.charge(run(1), &used(0), &Cost::NONE), []);
    let notices = ledger.charge(run(1), &used(1), &Cost::NONE);
    assert_eq!(notices.iter().map(|notice| notice.mark).collect::<Vec<_>>(), [Mark::Limit; 2]);
    check(&ledger, 0, [0, 1, 0, 0, 1]);
}

#[test]
fn an_unknown_use_is_not_free() {
    let settle = |reported: Option<u64>, ending: Ending| {
        let mut ledger = family(1000, &[300]);
        if let Some(tokens) = reported {
            ledger.charge(run(1), &used(tokens), &Cost::NONE);
        }
        ledger.settle(run(1), &ending);
        let balance = ledger.balance(run(0), Unit::Tokens).expect("the root's");
        balance.used
    };
    let unknown = Ending { usage: Usage::UNKNOWN, ..Ending::completed(Payload::text("")) };
    let interrupted = |usage| Ending { usage, ..Ending::of(Reason::Interrupted) };
    let cancelled = Ending::of(Reason::Cancelled { by: CancelledBy::Parent });
    assert_eq!(settle(None, completed(0)), 0);
    assert_eq!(settle(None, cancelled), 0, "it was queued, and says that it used nothing");
    assert_eq!(settle(None, unknown.clone()), 300);
    assert_eq!(settle(Some(20), unknown), 300);
    assert_eq!(settle(None, interrupted(Usage::UNKNOWN)), 300);
    assert_eq!(settle(Some(20), interrupted(used(20).cut_off())), 300);
    assert_eq!(settle(None, interrupted(Usage::default())), 0, "it had not started");
    assert_eq!(settle(None, interrupted(used(7))), 7);
}

#[test]
fn a_child_that_outlives_its_parent_keeps_its_own_and_no_more() {
    let mut ledger = family(1000, &[500]);
    ledger.open(run(2), Some(run(1)), grant(200));
    ledger.settle(run(1), &completed(50));
    check(&ledger, 0, [50, 0, 200, 750, 0]);
    ledger.charge(run(2), &used(150), &Cost::NONE);
    check(&ledger, 0, [200, 0, 50, 750, 0]);
    ledger.settle(run(2), &completed(150));
    check(&ledger, 0, [200, 0, 0, 800, 0]);
    assert_eq!(ledger.accounts.len(), 1, "what is over is forgotten");
}

#[test]
fn what_is_added_below_a_run_that_is_over_reaches_all_above_it() {
    let mut ledger = family(1000, &[500]);
    ledger.open(run(2), Some(run(1)), grant(300));
    ledger.open(run(3), Some(run(2)), grant(0));
    ledger.charge(run(3), &used(350), &Cost::NONE);
    ledger.settle(run(2), &completed(0));
    check(&ledger, 0, [350, 0, 150, 500, 0]);
    // 50 of it pay for what the run that is over had spent too much. The rest is held by its parent.
    ledger.raise(run(3), grant(100));
    check(&ledger, 1, [350, 0, 0, 250, 0]);
    check(&ledger, 0, [350, 0, 250, 500, 0]);
}

/// An attempt before has used a part, and a child holds another.
#[test]
fn within_reach_is_what_is_neither_used_nor_held() {
    let mut ledger = family(1000, &[500]);
    let most = BudgetGrant::default();
    assert_eq!(ledger.within_reach(run(1), most), grant(500));
    ledger.charge(run(1), &used(120), &Cost::NONE);
    ledger.open(run(2), Some(run(1)), grant(80));
    assert_eq!(ledger.reach(run(1), most), grant(500));
    assert_eq!(ledger.within_reach(run(1), most), grant(300));
    assert_eq!(ledger.within_reach(run(1), grant(250)), grant(50), "its own terms count too");
    ledger.charge(run(1), &used(900), &Cost::NONE);
    assert_eq!(ledger.within_reach(run(1), most), grant(0));
    assert_eq!(ledger.within_reach(run(9), most), BudgetGrant::default());
}

#[test]
fn no_budget_is_no_account() {
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, BudgetGrant::default());
    assert_eq!(ledger.left(run(0)), BudgetGrant::default());
    assert_eq!(ledger.charge(run(0), &used(u64::MAX), &Cost::NONE), []);
    ledger.open(run(1), Some(run(0)), grant(10));
    assert_eq!(ledger.left(run(1)).tokens, Some(10));
    ledger.settle(run(1), &completed(3));
    ledger.settle(run(0), &completed(3));
    assert!(ledger.accounts.is_empty());
}

#[test]
#[should_panic(expected = "its parent cannot pay")]
fn an_unchecked_grant_is_a_defect() {
    family(100, &[60, 60]);
}

/// The same accounts without any cleverness: nothing is forgotten, everything is summed anew.
#[derive(Default)]
struct Naive(Vec<NaiveAccount>);

struct NaiveAccount {
    parent: Option<usize>,
    granted: u128,
    own: u128,
    known: bool,
    ended: bool,
}

impl Naive {
    fn children(&self, of: usize) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(move |&child| self.0[child].parent == Some(of))
    }

    fn spent(&self, account: usize) -> u128 {
        self.0[account].own + self.children(account).map(|child| self.spent(child)).sum::<u128>()
    }

    fn within(&self, account: usize) -> u128 {
        self.spent(account).min(self.0[account].granted)
    }

    fn held(&self, account: usize) -> u128 {
        let rest = self.0[account].granted - self.within(account);
        if self.0[account].ended { rest.min(self.reserved(account)) } else { rest }
    }

    fn reserved(&self, account: usize) -> u128 {
        self.children(account).map(|child| self.held(child)).sum()
    }

    fn balance(&self, account: usize) -> [u128; 4] {
        let used = self.0[account].own
            + self.children(account).map(|child| self.within(child)).sum::<u128>();
        let overrun = self.spent(account) - used;
        let reserved = self.reserved(account);
        let free = self.0[account].granted.saturating_sub(used + overrun + reserved);
        [used, overrun, reserved, free]
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Open { parent: usize, thousandths: u64 },
    Charge { account: usize, tokens: u64 },
    Complete { account: usize, tokens: u64 },
    SayNothing { account: usize },
    Interrupt { account: usize },
    Raise { account: usize, tokens: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let (account, tokens) = (any::<usize>(), 0..400_u64);
    prop_oneof![
        4 => (account, 0..=1000_u64)
            .prop_map(|(parent, thousandths)| Operation::Open { parent, thousandths }),
        4 => (account, tokens.clone())
            .prop_map(|(account, tokens)| Operation::Charge { account, tokens }),
        2 => (account, tokens.clone())
            .prop_map(|(account, tokens)| Operation::Complete { account, tokens }),
        1 => (account, tokens)
            .prop_map(|(account, tokens)| Operation::Raise { account, tokens }),
        1 => account.prop_map(|account| Operation::SayNothing { account }),
        1 => account.prop_map(|account| Operation::Interrupt { account }),
    ]
}

/// One operation on both. A run that is over has no more.
fn perform(ledger: &mut Ledger, naive: &mut Naive, operation: &Operation) {
    let count = naive.0.len();
    let report = |naive: &mut Naive, account: usize, tokens: u64| {
        let account = &mut naive.0[account];
        (account.own, account.known) = (account.own.max(tokens.into()), true);
    };
    let end = |naive: &mut Naive, account: usize, known: bool| {
        if !known {
            naive.0[account].own += naive.balance(account)[3];
        }
        naive.0[account].ended = true;
    };
    let live = |account: &usize| Some(account % count).filter(|&account| !naive.0[account].ended);
    match operation {
        Operation::Open { parent, thousandths } => {
            let Some(parent) = live(parent) else { return };
            let left = ledger.left(run(parent)).tokens.expect("no budget bounds it");
            let amount = left * thousandths / 1000;
            ledger.open(run(count), Some(run(parent)), grant(amount));
            let granted = amount.into();
            let parent = Some(parent);
            naive.0.push(NaiveAccount { parent, granted, own: 0, known: false, ended: false });
        }
        Operation::Charge { account, tokens } => {
            let Some(account) = live(account) else { return };
            ledger.charge(run(account), &used(*tokens), &Cost::NONE);
            report(naive, account, *tokens);
        }
        Operation::Complete { account, tokens } => {
            let Some(account) = live(account) else { return };
            ledger.settle(run(account), &completed(*tokens));
            report(naive, account, *tokens);
            end(naive, account, true);
        }
        Operation::SayNothing { account } => {
            let Some(account) = live(account) else { return };
            let ending = Ending { usage: Usage::UNKNOWN, ..completed(0) };
            ledger.settle(run(account), &ending);
            end(naive, account, false);
        }
        Operation::Interrupt { account } => {
            let Some(account) = live(account) else { return };
            let ending = Ending { usage: Usage::UNKNOWN, ..Ending::of(Reason::Interrupted) };
            ledger.settle(run(account), &ending);
            end(naive, account, false);
        }
        Operation::Raise { account, tokens } => {
            let Some(account) = live(account) else { return };
            ledger.raise(run(account), grant(*tokens));
            let mut at = Some(account);
            while let Some(account) = at {
                naive.0[account].granted += u128::from(*tokens);
                at = naive.0[account].parent;
            }
        }
    }
}

proptest! {
    #[test]
    fn every_account_adds_up_at_every_event(
        total in 0..2000_u64,
        operations in prop::collection::vec(operation(), 0..60),
    ) {
        let mut ledger = family(total, &[]);
        let mut naive = Naive::default();
        let (granted, own) = (total.into(), 0);
        naive.0.push(NaiveAccount { parent: None, granted, own, known: false, ended: false });
        for operation in &operations {
            perform(&mut ledger, &mut naive, operation);
            for account in 0..naive.0.len() {
                // Asserts that it adds up.
                let Some(balance) = ledger.balance(run(account), Unit::Tokens) else {
                    prop_assert!(naive.0[account].ended && naive.reserved(account) == 0);
                    continue;
                };
                let free = balance.free.expect("no budget bounds it");
                let found = [balance.used, balance.overrun, balance.reserved, free];
                prop_assert_eq!(found, naive.balance(account), "{} after {:?}", account, operation);
            }
            if let Some(root) = ledger.balance(run(0), Unit::Tokens) {
                let all: u128 = naive.0.iter().map(|account| account.own).sum();
                prop_assert_eq!(root.used + root.overrun, all, "nothing is hidden from the root");
            }
        }
        for account in (0..naive.0.len()).rev() {
            perform(&mut ledger, &mut naive, &Operation::Complete { account, tokens: 0 });
        }
        prop_assert_eq!(ledger.accounts.len(), 1, "the tree may go on");
        let root = ledger.balance(run(0), Unit::Tokens).expect("the root's");
        prop_assert_eq!(root.reserved, 0, "nothing stays reserved");
        let free = ledger.left(run(0)).tokens;
        ledger.reopen(run(0));
        prop_assert_eq!(ledger.left(run(0)).tokens, free, "what was used stays used");
    }
}
