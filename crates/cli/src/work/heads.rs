//! The last link of each tree, kept where the operator wants it: a copy of a record that was written anew afterwards no longer
//! continues it.

use std::fs::OpenOptions;
use std::io::Write;

use offshoot_model::RootId;
use offshoot_store::{ChainHead, SqliteStore};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::failed;

/// Appends the last link of a tree to the file that the user has named for that, if any.
pub(crate) fn keep(store: &SqliteStore, root: RootId, cx: &Invocation) -> Result<(), Failure> {
    let Some(path) = &cx.environment.audit_heads else { return Ok(()) };
    let heads = store.chain_heads(Some(root)).map_err(|error| failed(&error))?;
    for ChainHead { root, events, link } in heads {
        // In one write, so that lines of several commands do not mix.
        let line = format!("{root} {events} {link}\n");
        let file = OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| {
            Failure::file("append to", path, &error)
                .hint("OFFSHOOT_AUDIT_HEADS names a file for the last link of each tree")
        })?;
    }
    Ok(())
}
