//! A sample of what `cargo xtask soak` tries.

use offshoot_kills::{Kept, Survived, kill, kill_isolated, undisturbed, undisturbed_isolated};

#[test]
fn a_tree_survives_its_supervisor_at_random_moments() {
    let within = undisturbed().expect("an undisturbed tree");
    let survived = |seed| kill(seed, within).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let resumed = |survived: &Survived| matches!(survived, Survived::Resumed { .. });
    let times = (1000..1010).map(survived).filter(resumed).count();
    assert!(times > 0, "no moment fell into the life of a tree");
}

#[test]
fn what_isolated_runs_wrote_survives_their_kills() {
    let within = undisturbed_isolated().expect("an undisturbed tree");
    let kept =
        |seed| kill_isolated(seed, within).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut all: Vec<Kept> = (1000..1012).map(kept).collect();
    assert!(all.iter().any(|kept| kept.kills > 0), "no moment fell into the life of a tree");
    // About one tree in twelve has a run that is cut off, so more are tried until there is one.
    let mut more = 1012..1080;
    while all.iter().all(|kept| kept.cut_off == 0) {
        let seed = more.next().expect("no run was cut off at its work");
        all.push(kept(seed));
    }
}
