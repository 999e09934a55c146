//! Names of values, which a later supervisor must know.

use offshoot_model::{ContentHash, ValueKind, VariableRef};

use super::super::Input;
use super::limits::Limits;
use super::world::World;

fn value(text: &str) -> VariableRef {
    let (hash, size) = (ContentHash::of(text.as_bytes()), text.len() as u64);
    VariableRef { hash, size, kind: ValueKind::Text }
}

#[test]
fn what_a_session_keeps_is_known_after_a_crash_until_it_is_over() {
    let mut world = World::quiet(Limits::default());
    let (one, other) = (world.spawn_piece(), world.spawn_piece());
    for (run, name, text) in [
        (one, "plan", "first"),
        (one, "log", "lines"),
        (one, "plan", "second"),
        (other, "plan", "x"),
    ] {
        world.step(Input::Keep { run, name: name.into(), value: value(text) });
    }
    world.finish(other);
    world.crash();
    let kept = &world.kept_values[&world.id(one)];
    let kept: Vec<_> = kept.iter().map(|(name, kept)| (&**name, kept.value)).collect();
    assert_eq!(kept, [("log", value("lines")), ("plan", value("second"))]);
    assert!(!world.kept_values.contains_key(&world.id(other)), "its values are not asked for");
}
