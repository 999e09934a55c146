//! `offshoot export`.

use clap::{Args, ValueEnum};

use super::value::whole;

/// Print a run with everything below it as one file to hand on
///
/// The page shows the answer, the failures with their causes, the tree with its times, the costs and the ends of logs. It needs
/// nothing beside it and holds no script. Of a large tree the runs with something to tell have a row, and the others are counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot export last > run.html
  offshoot export 0198c7 --format mermaid
  offshoot export last --format dot | dot -Tsvg > run.svg")]
pub(crate) struct ExportArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// The form; with --json it is json
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    pub(crate) format: ExportFormat,

    /// A row or node for at most N runs below RUN [default: 1000; mermaid 200]
    #[arg(long, value_name = "N", value_parser = whole(0_usize, "1000"))]
    pub(crate) limit: Option<usize>,
}

/// The form of what is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A page for a browser
    Html,
    /// The content of the page for a program, and every run
    Json,
    /// The tree as a flowchart, as pages in Markdown may have it
    Mermaid,
    /// The tree as a graph for Graphviz
    Dot,
}
