//! Are there too many already?

use offshoot_model::{Refusal, RefusalCode};

use super::Question;

pub(super) fn check(question: &Question<'_>) -> Result<(), Refusal> {
    let (caller, load) = (question.caller, question.load);
    let terms = caller.terms;
    if let Some(most) = terms.max_children_per_agent()
        && caller.live_children >= most
    {
        let live = caller.live_children;
        let message = format!("this session has {live} live children, and {most} are allowed");
        let refusal = Refusal::new(RefusalCode::ChildrenLimit, message)
            .with_hint("wait for a child to end, or cancel one");
        return Err(question.governed_by(refusal, "maxChildrenPerAgent"));
    }
    let (spawns, most) = (load.books.spawns, terms.max_spawns());
    if spawns >= most {
        let message =
            format!("the agents of this tree have spawned {spawns} times, and {most} are allowed");
        let refusal = Refusal::new(RefusalCode::SpawnLimit, message)
            .with_hint("do the work in this session; ended children do not make room");
        return Err(question.governed_by(refusal, "maxSpawns"));
    }
    if let Some(most) = terms.max_spawns_per_minute() {
        let window = &load.books.window;
        let spawns = window.count(load.now);
        if spawns >= most {
            let message = format!(
                "the agents of this tree have spawned {spawns} times within a minute, and {most} \
                 are allowed"
            );
            let free_at = window.free_at(most, load.now);
            let refusal = Refusal::new(RefusalCode::SpawnRate, message)
                .with_hint(format!("ask again at {free_at}"));
            return Err(question.governed_by(refusal, "maxSpawnsPerMinute"));
        }
    }
    Ok(())
}
