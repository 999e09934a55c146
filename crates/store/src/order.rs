//! The order that every record keeps.

use offshoot_model::RootId;

use crate::StoreError;

/// Checks that each event follows the last one of its tree: that of the record, which `last` tells, or one before it in the same
/// call.
pub(crate) fn check_order(
    events: impl IntoIterator<Item = (RootId, u64)>,
    last: impl Fn(RootId) -> u64,
) -> Result<(), StoreError> {
    // A call is about one tree or a few, so a list is faster than a map.
    let mut ends: Vec<(RootId, u64)> = Vec::new();
    for (root, seq) in events {
        let at = match ends.iter().rposition(|(known, _)| *known == root) {
            Some(at) => at,
            None => {
                ends.push((root, last(root)));
                ends.len() - 1
            }
        };
        let end = &mut ends[at].1;
        if seq != *end + 1 {
            return Err(StoreError::Broken { root, last: *end, seq });
        }
        *end = seq;
    }
    Ok(())
}
