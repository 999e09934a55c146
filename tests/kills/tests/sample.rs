//! A sample of what `cargo xtask soak` tries.

use offshoot_kills::{kill, undisturbed};

#[test]
fn a_tree_survives_its_supervisor_at_random_moments() {
    let within = undisturbed().expect("an undisturbed tree");
    for seed in 1000..1006 {
        kill(seed, within).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
