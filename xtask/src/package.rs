//! Packages every published crate and builds each from its archive, in the order of the floors.

use crate::tidy::layer_table::LAYERS;
use crate::{Result, cargo};

/// Packages the crates. They are verified: unpacked elsewhere and built there, each with the archives of those below it.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let names: Vec<String> =
        LAYERS.iter().map(|layer| format!("offshoot-{}", layer.name)).collect();
    let mut line = vec!["package"];
    names.iter().for_each(|name| line.extend(["--package", name]));
    line.extend(arguments);
    cargo::run(&line, &[])
}
