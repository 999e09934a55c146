//! A sample of what `cargo xtask soak` tries.

use offshoot_kills::{Survived, kill, undisturbed};

#[test]
fn a_tree_survives_its_supervisor_at_random_moments() {
    let within = undisturbed().expect("an undisturbed tree");
    let survived = |seed| kill(seed, within).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let resumed = |survived: &Survived| matches!(survived, Survived::Resumed { .. });
    let times = (1000..1010).map(survived).filter(resumed).count();
    assert!(times > 0, "no moment fell into the life of a tree");
}
