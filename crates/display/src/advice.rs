//! Advice after an ending, with the tree that it is about.

use std::borrow::Cow;

use offshoot_model::RootId;

/// Returns advice with the id of its tree in place of the word RUN, so that the command in it can be pasted.
pub fn in_tree(advice: &str, root: RootId) -> Cow<'_, str> {
    const COMMAND: &str = "offshoot resume RUN";
    if !advice.contains(COMMAND) {
        return advice.into();
    }
    advice.replace(COMMAND, &format!("offshoot resume {root}")).into()
}
