//! The same pictures for programs.

use std::io::{self, Write};

use offshoot_model::{Event, Tree, TreeNode};

/// All roots with everything below them.
pub fn roots(tree: &Tree) -> Vec<TreeNode> {
    tree.roots().map(|root| tree.view(root)).collect()
}

/// All roots as one indented array and a newline.
///
/// # Errors
/// Those of `out`.
pub fn write_roots(tree: &Tree, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &roots(tree))?;
    out.write_all(b"\n")
}

/// One event as a line of compact JSON, as the record keeps it.
///
/// # Errors
/// Those of `out`.
pub fn write_event(event: &Event, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.write_all(b"\n")
}
