//! Are there too many already?

use offshoot_model::{Refusal, RefusalCode};

use super::Question;

pub(super) fn check(question: &Question<'_>) -> Result<(), Refusal> {
    let (caller, load) = (question.caller, question.load);
    let terms = caller.terms;
    if let Some(most) = terms.max_children_per_agent()
        && caller.live_children >= most
    {
        let message = format!("the limit of live children of one session is reached ({most})");
        let hint = "wait for a child to end, or cancel one";
        return question.refuse(RefusalCode::ChildrenLimit, message, hint, "maxChildrenPerAgent");
    }
    let most = terms.max_spawns();
    if load.books.spawns >= most {
        let message = format!("the limit of spawns in one tree is reached ({most})");
        let hint = "do the work in this session; ended children do not make room";
        return question.refuse(RefusalCode::SpawnLimit, message, hint, "maxSpawns");
    }
    if let Some(most) = terms.max_spawns_per_minute() {
        let window = &load.books.window;
        if window.count(load.now) >= most {
            let message = format!("the limit of spawns in one minute is reached ({most})");
            let free_at = window.free_at(most, load.now);
            let hint = format!("ask again at {free_at}");
            return question.refuse(RefusalCode::SpawnRate, message, hint, "maxSpawnsPerMinute");
        }
    }
    Ok(())
}
