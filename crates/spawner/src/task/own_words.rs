//! The account that a run which is no success gives of its error, at the end of its answer.

use std::sync::Arc;

use offshoot_model::{Payload, SaidError};

use crate::blocking::blocking;
use crate::excerpt::Excerpt;
use crate::tree_context::TreeContext;

/// As much of an excerpt is looked at; its end is a quarter of that.
const READ_BYTES: u64 = 4 * SaidError::TAIL_BYTES as u64;

/// Returns the account at the end of an answer that is kept. An answer that cannot be read has none.
pub(super) async fn of(tree: &Arc<TreeContext>, answer: &Payload) -> Option<Box<SaidError>> {
    let said = match answer.at_hand() {
        Ok(text) => SaidError::read(text),
        Err(_) => {
            let (tree, answer) = (Arc::clone(tree), answer.clone());
            let read = move || match Excerpt::of(&*tree.store, &answer, READ_BYTES).ok()? {
                Excerpt::Whole(whole) => SaidError::read(whole.at_hand().ok()?),
                Excerpt::Part { tail, .. } => SaidError::read(&tail),
            };
            blocking(read).await
        }
    };
    said.map(Box::new)
}
