//! Tables of pools: what a piece draws as it starts and as it goes on, what it returns, and what it leaves behind.

use offshoot_model::{Cost, Ending, Payload, TokenCount, Usage};

use super::*;

const TOKENS: Unit = Unit::Tokens;
const ANY: BudgetGrant = BudgetGrant { tokens: None, usd: None };

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 16])
}

fn tokens(amount: u64) -> BudgetGrant {
    BudgetGrant { tokens: Some(amount), usd: None }
}

fn used(tokens: u64) -> Usage {
    Usage { input: TokenCount::Known(tokens), ..Usage::default() }
}

/// A parent with so many tokens, and so many pieces that draw from them.
fn pool(whole: u64, pieces: u8) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, tokens(whole));
    for piece in (1..=pieces).map(run) {
        ledger.open(piece, Some(run(0)), tokens(0));
        ledger.pool(piece, Pooled { tokens: true, usd: false });
    }
    ledger
}

/// Starts a piece with what it draws; none where it does not start.
fn start(ledger: &mut Ledger, piece: u8, most: BudgetGrant) -> Option<u64> {
    let Draw::Take(part) = ledger.draw(run(piece), most) else { return None };
    ledger.take(run(piece), part);
    part.tokens
}

fn end(ledger: &mut Ledger, piece: u8, tokens: u64) {
    let ending = Ending { usage: used(tokens), ..Ending::completed(Payload::text("done")) };
    ledger.settle(run(piece), &ending);
}

/// The whole life of a piece.
fn work(ledger: &mut Ledger, piece: u8, tokens: u64) {
    assert!(start(ledger, piece, ANY).is_some(), "{piece} does not start");
    end(ledger, piece, tokens);
}

fn charge(ledger: &mut Ledger, piece: u8, tokens: u64) {
    ledger.charge(run(piece), &used(tokens), &Cost::NONE);
}

fn left(ledger: &Ledger, of: u8) -> Option<u64> {
    ledger.left(run(of)).tokens
}

fn granted(ledger: &Ledger, piece: u8) -> Option<u64> {
    ledger.balance(run(piece), TOKENS).and_then(|balance| balance.granted)
}

fn never(whole: u64, used: u64, asked: u64) -> Draw {
    Draw::Never(Shortage { unit: TOKENS, granted: whole, used, asked })
}

#[test]
fn the_first_piece_draws_a_guess_and_at_most_half() {
    for (whole, expected) in [(1_000_000, 100_000), (100, 50), (3, 2), (1, 1)] {
        assert_eq!(pool(whole, 1).draw(run(1), ANY), Draw::Take(tokens(expected)), "{whole}");
    }
    assert_eq!(pool(0, 1).draw(run(1), ANY), never(0, 0, 1));
    assert_eq!(pool(100, 1).draw(run(1), tokens(20)), Draw::Take(tokens(20)), "it asks for less");
    // The parent itself has used the most.
    let mut ledger = pool(100, 1);
    charge(&mut ledger, 0, 90);
    assert_eq!(ledger.draw(run(1), ANY), Draw::Take(tokens(10)));
}

#[test]
fn before_the_first_end_pieces_draw_no_more_than_half_together() {
    let mut ledger = pool(1_000_000, 6);
    let parts: Vec<_> = (1..=6).filter_map(|piece| start(&mut ledger, piece, ANY)).collect();
    assert_eq!(parts, [100_000; 5]);
    assert_eq!(ledger.draw(run(6), ANY), Draw::Wait);
    // What the parent has used is not there either.
    for (used, starts) in [(800_000, true), (850_000, false)] {
        let mut ledger = pool(1_000_000, 2);
        charge(&mut ledger, 0, used);
        assert_eq!(start(&mut ledger, 1, ANY), Some(100_000));
        assert_eq!(start(&mut ledger, 2, ANY).is_some(), starts, "{used}");
    }
}

/// A dry run says how many pieces work before the first end: as many as the pool lets.
#[test]
fn as_many_pieces_begin_as_are_said_to() {
    for (whole, expected) in
        [(1_000_000, 5), (400_000, 2), (399_999, 1), (100_000, 1), (1, 1), (10_000_000, 50)]
    {
        assert_eq!(first_pieces(tokens(whole), None), expected, "{whole}");
        let mut ledger = pool(whole, 60);
        let begun = (1..=60).filter_map(|piece| start(&mut ledger, piece, ANY)).count();
        assert_eq!(begun as u64, expected, "{whole}");
    }
    let usd = BudgetGrant { tokens: Some(10_000_000), usd: Some(MicroUsd::from_micros(2_000_000)) };
    assert_eq!(first_pieces(usd, None), 4, "a dollar is four times what a piece plausibly costs");
    assert_eq!(first_pieces(usd, Some(MicroUsd::from_micros(500_000))), 2, "as its price says");
    assert_eq!(first_pieces(usd, Some(MicroUsd::from_micros(0))), 50, "dollars bound nothing");
}

#[test]
fn after_an_end_pieces_draw_the_median_of_what_was_used() {
    let mut ledger = pool(1_000, 6);
    assert_eq!(ledger.piece_size(run(0), TOKENS), None);
    for (piece, tokens, median) in [(1, 20, 20), (2, 30, 30), (3, 10, 20), (4, 5, 20)] {
        work(&mut ledger, piece, tokens);
        assert_eq!(ledger.piece_size(run(0), TOKENS), Some(median), "{piece}");
    }
    assert_eq!(ledger.draw(run(5), ANY), Draw::Take(tokens(20)));
    assert_eq!(ledger.piece_size(run(0), Unit::Usd), None);
    assert_eq!(ledger.piece_size(run(9), TOKENS), None);
}

/// One cheap piece does not let all others start at once, each of which may cost a hundred times as much.
#[test]
fn pieces_that_work_at_once_are_twice_as_many_as_have_ended() {
    let begun = |ledger: &mut Ledger, from: u8| {
        (from..=250).take_while(|&piece| start(ledger, piece, ANY).is_some()).count()
    };
    // The pieces that are working, by the number that have ended.
    for (ended, expected) in [(1, 2), (2, 4), (3, 6), (10, 20), (62, 124), (63, 187), (64, 186)] {
        let mut ledger = pool(100_000, 250);
        (1..=ended).for_each(|piece| work(&mut ledger, piece, 1));
        assert_eq!(begun(&mut ledger, ended + 1), expected, "{ended}");
        let is_last = usize::from(ended) + expected == 250;
        assert!(is_last || ledger.draw(run(250), ANY) == Draw::Wait, "{ended}");
    }
    // Ends that have used nothing are ends, too.
    let mut ledger = pool(100_000, 250);
    work(&mut ledger, 1, 1);
    (2..=9).for_each(|piece| work(&mut ledger, piece, 0));
    assert_eq!(begun(&mut ledger, 10), 18);
    // Pieces with a smaller budget of their own.
    let own = |ledger: &mut Ledger, from: u8| {
        let starts = |&piece: &u8| start(ledger, piece, tokens(10_000)).is_some();
        (from..=250).take_while(starts).count()
    };
    let mut ledger = pool(1_000_000, 250);
    assert_eq!(own(&mut ledger, 1), 50);
    end(&mut ledger, 1, 10);
    assert_eq!(own(&mut ledger, 51), 1, "no fewer than before the first end");
    // As many as might start before the first end may work after it.
    let mut ledger = pool(1_000_000, 250);
    assert_eq!(begun(&mut ledger, 1), 5);
    end(&mut ledger, 1, 1);
    assert_eq!(begun(&mut ledger, 6), 1);
    end(&mut ledger, 2, 1);
    assert_eq!(begun(&mut ledger, 7), 1);
    end(&mut ledger, 3, 1);
    assert_eq!(begun(&mut ledger, 8), 2, "six, and no longer five");
    // The number is that of the unit in which fewer may work.
    let dollars = |tokens, micros| BudgetGrant {
        tokens: Some(tokens),
        usd: Some(MicroUsd::from_micros(micros)),
    };
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, dollars(10_000_000, 100));
    for piece in (1..=250).map(run) {
        ledger.open(piece, Some(run(0)), dollars(0, 0));
        ledger.pool(piece, Pooled { tokens: true, usd: true });
    }
    assert_eq!(begun(&mut ledger, 1), 1);
    let cost = Cost::known(MicroUsd::from_micros(1));
    let ending = Ending { usage: used(1), cost, ..Ending::completed(Payload::text("done")) };
    ledger.settle(run(1), &ending);
    assert_eq!(begun(&mut ledger, 2), 2);
}

/// A lost piece says nothing of what the others use, and lets no more of them start.
#[test]
fn a_piece_that_was_lost_is_none_that_has_ended() {
    let mut ledger = pool(100_000, 250);
    work(&mut ledger, 1, 1);
    for piece in 2..=9 {
        assert_eq!(start(&mut ledger, piece, ANY), Some(1));
        ledger.charge_more(run(piece), &used(1), &Cost::NONE, true);
        end(&mut ledger, piece, 0);
    }
    let begun = (10..=250).take_while(|&piece| start(&mut ledger, piece, ANY).is_some());
    assert_eq!(begun.count(), 2, "twice as many as the one");
}

#[test]
fn a_piece_for_which_too_little_is_left_waits_for_those_that_run() {
    let mut ledger = pool(100, 4);
    work(&mut ledger, 1, 40);
    assert_eq!(start(&mut ledger, 2, ANY), Some(40));
    assert_eq!(ledger.draw(run(3), ANY), Draw::Wait, "20 are left");
    end(&mut ledger, 2, 40);
    assert_eq!(ledger.draw(run(3), ANY), never(100, 80, 40), "nothing comes back");
    // All that is left is enough.
    let mut ledger = pool(100, 3);
    work(&mut ledger, 1, 50);
    assert_eq!(start(&mut ledger, 2, ANY), Some(50));
    assert_eq!(ledger.draw(run(3), ANY), Draw::Wait);
}

#[test]
fn a_piece_that_has_some_of_its_part_draws_nothing() {
    let mut ledger = pool(1_000, 1);
    assert_eq!(start(&mut ledger, 1, tokens(50)), Some(50));
    assert_eq!(ledger.draw(run(1), ANY), Draw::Nothing);
    charge(&mut ledger, 1, 49);
    assert_eq!(ledger.draw(run(1), ANY), Draw::Nothing);
    charge(&mut ledger, 1, 50);
    assert_eq!(ledger.draw(run(1), tokens(200)), Draw::Take(tokens(150)), "it has used all of it");
    // What has a grant of its own draws nothing, and neither does a root.
    ledger.open(run(7), Some(run(0)), tokens(10));
    charge(&mut ledger, 7, 10);
    assert_eq!([0, 7].map(|it| ledger.draw(run(it), ANY)), [Draw::Nothing, Draw::Nothing]);
}

#[test]
fn what_an_attempt_used_above_its_part_comes_on_top_of_the_next_part() {
    let mut ledger = pool(1_000, 1);
    start(&mut ledger, 1, tokens(50));
    charge(&mut ledger, 1, 70);
    // It may have 200 in all, and has had 70.
    assert_eq!(ledger.draw(run(1), tokens(200)), Draw::Take(tokens(150)));
    ledger.take(run(1), tokens(150));
    assert_eq!((granted(&ledger, 1), left(&ledger, 1)), (Some(200), Some(130)));
    assert_eq!(left(&ledger, 0), Some(800));
}

#[test]
fn both_units_are_drawn_together() {
    let both = |tokens, micros| BudgetGrant {
        tokens: Some(tokens),
        usd: Some(MicroUsd::from_micros(micros)),
    };
    let mut ledger = Ledger::default();
    ledger.open(run(0), None, both(1_000_000, 4_000_000));
    ledger.open(run(1), Some(run(0)), both(0, 0));
    ledger.pool(run(1), Pooled { tokens: true, usd: true });
    assert_eq!(ledger.draw(run(1), ANY), Draw::Take(both(100_000, 250_000)));
    ledger.take(run(1), both(100_000, 250_000));
    let cost = Cost::known(MicroUsd::from_micros(3_000));
    let ending = Ending { usage: used(20), cost, ..Ending::completed(Payload::text("done")) };
    ledger.settle(run(1), &ending);
    let sizes = Unit::ALL.map(|unit| ledger.piece_size(run(0), unit));
    assert_eq!(sizes, [Some(20), Some(3_000)]);
}

#[test]
fn only_what_is_bounded_is_drawn_from_a_pool() {
    let mut ledger = pool(100, 1);
    let is_pooled = |ledger: &Ledger, run: RunId| Unit::ALL.map(|unit| ledger.is_pooled(run, unit));
    ledger.pool(run(1), Pooled { tokens: true, usd: true });
    assert_eq!(is_pooled(&ledger, run(1)), [true, false], "dollars have no bound");
    ledger.pool(run(1), Pooled { tokens: false, usd: true });
    assert_eq!(is_pooled(&ledger, run(1)), [false, false]);
    assert_eq!(is_pooled(&ledger, run(9)), [false, false], "it has no budget");
}

#[test]
fn ends_that_say_nothing_about_others_are_not_remembered() {
    let guess = BudgetGrant { tokens: Some(40), usd: None };
    let micros = MicroUsd::from_micros;
    let estimated = Usage { input: TokenCount::Estimated(40), ..Usage::default() };
    /// The uses of its requests, each with whether that is a guess, and the size of a piece that is remembered.
    type Row<'a> = (&'a [(Usage, Cost, bool)], Option<u64>);
    let rows: &[Row<'_>] = &[
        (&[(used(40), Cost::metered(micros(5)), false)], Some(40)),
        (&[(used(40), Cost::unknown(), false)], Some(40)),
        // The bound of a request is known to be one.
        (&[(used(40), Cost::estimated(micros(5)), false)], Some(40)),
        // An attempt was lost, and charged at all that it might have cost.
        (&[(used(40), Cost::estimated(micros(5)), true)], None),
        (&[(estimated, Cost::NONE, true)], None),
        (&[(estimated, Cost::NONE, true), (used(40), Cost::NONE, false)], None),
        (&[], None),
    ];
    for (requests, expected) in rows {
        let mut ledger = pool(1_000, 2);
        assert_eq!(start(&mut ledger, 1, guess), Some(40));
        for (usage, cost, is_guess) in *requests {
            ledger.charge_more(run(1), usage, cost, *is_guess);
        }
        end(&mut ledger, 1, 0);
        assert_eq!(ledger.piece_size(run(0), TOKENS), *expected, "{requests:?}");
    }
}

/// A piece with a part of 50 that has used 20, and holds 10 for a child and 5 for a request.
fn at_work() -> Ledger {
    let mut ledger = pool(100, 2);
    start(&mut ledger, 1, ANY);
    charge(&mut ledger, 1, 20);
    ledger.open(run(8), Some(run(1)), tokens(10));
    ledger.hold(run(1), tokens(5));
    ledger
}

#[test]
fn what_is_taken_is_what_is_used_and_what_is_held() {
    let mut ledger = at_work();
    assert_eq!([1, 8, 9].map(|it| ledger.taken(run(it), TOKENS)), [35, 0, 0]);
    assert_eq!((left(&ledger, 0), left(&ledger, 1)), (Some(50), Some(15)));
    ledger.release(run(1), tokens(2));
    assert_eq!((ledger.taken(run(1), TOKENS), left(&ledger, 1)), (33, Some(17)));
    ledger.release(run(1), tokens(100));
    assert_eq!((ledger.taken(run(1), TOKENS), left(&ledger, 1)), (30, Some(20)));
    // Where nothing bounds a run, nothing is held.
    ledger.hold(run(1), Unit::Usd.amount(7));
    assert_eq!(ledger.taken(run(1), Unit::Usd), 0);
}

#[test]
fn a_piece_that_stands_in_line_again_keeps_what_it_has_used_and_what_is_below_it() {
    let mut ledger = at_work();
    ledger.release(run(1), tokens(5));
    ledger.return_to_pool(run(1));
    assert_eq!((granted(&ledger, 1), left(&ledger, 0)), (Some(30), Some(70)));
    // It holds no part any more: another one that finds too little has none to wait for.
    charge(&mut ledger, 0, 70);
    assert_eq!(ledger.draw(run(2), ANY), never(100, 90, 1));
    // What has a grant of its own keeps it.
    let mut ledger = pool(100, 0);
    ledger.open(run(1), Some(run(0)), tokens(40));
    ledger.return_to_pool(run(1));
    ledger.return_unused(run(1));
    assert_eq!(left(&ledger, 0), Some(60));
}

#[test]
fn after_a_request_a_piece_keeps_what_it_holds_and_one_more() {
    let mut ledger = at_work();
    ledger.return_unused(run(1));
    assert_eq!((granted(&ledger, 1), left(&ledger, 0)), (Some(36), Some(64)));
    ledger.return_unused(run(1));
    assert_eq!((granted(&ledger, 1), left(&ledger, 1)), (Some(36), Some(1)), "once");
    // It still holds a part, which the next one waits for.
    charge(&mut ledger, 0, 64);
    assert_eq!(ledger.draw(run(2), ANY), Draw::Wait);
}

#[test]
fn a_piece_takes_more_up_to_what_it_is_to_use() {
    let mut ledger = pool(1_000, 3);
    start(&mut ledger, 1, tokens(100));
    let more = |ledger: &Ledger, target, beyond| ledger.more(run(1), TOKENS, target, beyond).tokens;
    assert_eq!(more(&ledger, 150, false), Some(50));
    assert_eq!(more(&ledger, 100, false), None);
    assert_eq!(more(&ledger, 20, false), None);
    assert_eq!(more(&ledger, 150, true), Some(900), "a guess beyond it, as far as there is any");
    assert_eq!(more(&ledger, 5_000, false), Some(900));
    start(&mut ledger, 2, tokens(100));
    end(&mut ledger, 2, 30);
    assert_eq!(more(&ledger, 150, true), Some(80), "what one of them has used beyond it");
    // What has used more than its part has got that from its parent already.
    charge(&mut ledger, 1, 120);
    assert_eq!(left(&ledger, 0), Some(850));
    assert_eq!(more(&ledger, 5_000, false), Some(870));
    assert_eq!(ledger.more(run(0), TOKENS, 5_000, true), ANY);
    ledger.pool(run(1), Pooled::default());
    assert_eq!(more(&ledger, 5_000, true), None, "it draws from no pool");
}

#[test]
fn what_no_account_could_pay_is_not_taken_from_the_pool() {
    let mut ledger = pool(100, 1);
    start(&mut ledger, 1, ANY);
    charge(&mut ledger, 1, 130);
    let balance = ledger.balance(run(0), TOKENS).expect("the root's");
    assert_eq!((balance.free, balance.deficit), (Some(0), 30));
    assert_eq!(ledger.more(run(1), TOKENS, 1_000, true), tokens(50));
}

#[test]
fn one_request_can_have_what_others_hold_once_they_are_over() {
    let mut ledger = pool(1_000, 2);
    let capped = |ledger: &Ledger, it: u8, cap| ledger.once_others_are_over(run(it), TOKENS, cap);
    let most = |ledger: &Ledger, it: u8| capped(ledger, it, None);
    start(&mut ledger, 1, tokens(100));
    start(&mut ledger, 2, tokens(200));
    ledger.hold(run(1), tokens(30));
    charge(&mut ledger, 1, 10);
    charge(&mut ledger, 2, 50);
    // Its own 90, the 700 that are left, and the 150 of the other one.
    assert_eq!(most(&ledger, 1), 940);
    // It has used 10 of what it may use in all.
    assert_eq!([300, 950, 960].map(|cap| capped(&ledger, 1, Some(cap))), [290, 940, 940]);
    ledger.open(run(5), Some(run(1)), tokens(40));
    assert_eq!(capped(&ledger, 1, Some(300)), 250, "and 40 are promised below it");
    ledger.open(run(7), Some(run(0)), tokens(100));
    ledger.hold(run(7), tokens(30));
    assert_eq!([7, 9].map(|it| most(&ledger, it)), [100, 0], "without a pool its own");
}

#[test]
fn a_piece_reaches_as_far_as_the_pool() {
    let mut ledger = pool(1_000, 1);
    start(&mut ledger, 1, tokens(100));
    ledger.open(run(7), Some(run(0)), tokens(200));
    let reach = |it: u8, most| ledger.reach(run(it), most);
    assert_eq!(reach(1, ANY), tokens(800));
    assert_eq!(reach(1, tokens(500)), tokens(500));
    assert_eq!(reach(1, tokens(5_000)), tokens(800));
    assert_eq!(reach(7, ANY), tokens(200), "it has a grant of its own");
    assert_eq!((reach(0, ANY), reach(9, ANY)), (tokens(1_000), ANY));
}
