//! Runs in a table.

use std::fmt;

use offshoot_model::Node;

use crate::style::Style;
use crate::{neutral, number};

/// One run a line: id, agent, status, depth, time, label. Shown without a newline at its end; nothing at all where
/// there are no runs.
#[derive(Clone, Debug)]
pub struct List<'a> {
    nodes: Vec<&'a Node>,
    style: Style,
}

const HEADINGS: [&str; 6] = ["RUN", "AGENT", "STATUS", "DEPTH", "TIME", "LABEL"];

impl<'a> List<'a> {
    /// A list of these runs, in this order.
    pub fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        Self { nodes: nodes.into_iter().collect(), style: Style::Plain }
    }

    /// In this style; plain unless asked.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes.is_empty() {
            return Ok(());
        }
        // All columns but the last are ASCII of known kinds, so that characters are as good as cells.
        let run = self.nodes[0].run.to_string().len();
        let agent = self.widest(HEADINGS[1], |node| node.agent.as_str().len());
        let status = self.widest(HEADINGS[2], |node| node.status.as_ref().len());
        let time = self.widest(HEADINGS[4], |node| time(node).len());
        let [a, b, c, d, e, g] = HEADINGS;
        let headings = format!("{a:run$}  {b:agent$}  {c:status$}  {d}  {e:>time$}  {g}");
        write!(f, "{}", self.style.faint(headings))?;
        for node in &self.nodes {
            let depth = HEADINGS[3].len();
            write!(f, "\n{}  {:agent$}  ", node.run, node.agent.as_str())?;
            write!(f, "{:status$}  {:>depth$}", self.style.status(node.status), node.depth)?;
            let label = node.label.as_deref().map(neutral::line).unwrap_or_default();
            let rest = format!("  {:>time$}  {label}", self::time(node));
            f.write_str(rest.trim_end())?;
        }
        Ok(())
    }
}

impl List<'_> {
    fn widest(&self, heading: &str, width: impl Fn(&Node) -> usize) -> usize {
        self.nodes.iter().map(|node| width(node)).max().unwrap_or(0).max(heading.len())
    }
}

fn time(node: &Node) -> String {
    node.execution_time().map(number::duration).unwrap_or_default()
}
