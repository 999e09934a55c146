//! Runs in a table.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use offshoot_model::{Cost, Node, RunId, RunStatus, Subtrees, Timestamp, TokenCount, Tree, Usage};
use unicode_width::UnicodeWidthStr as _;

use crate::branch::{time, why};
use crate::held::held;
use crate::style::Style;
use crate::{neutral, number};

/// One run a line. A column that would be empty in each line is left out. Shown without a newline at its end; nothing at all
/// where there are no runs.
#[derive(Clone, Debug)]
pub struct List<'a> {
    rows: Vec<Row<'a>>,
    style: Style,
    silences: &'a HashMap<RunId, Duration>,
    /// True if tokens and cost are shown where they are zero, too.
    with_zeros: bool,
}

#[derive(Clone, Debug)]
struct Row<'a> {
    node: &'a Node,
    cells: [String; COLUMNS],
}

const COLUMNS: usize = HEADINGS.len();
const HEADINGS: [&str; 14] = [
    "", "RUN", "AGENT", "STATUS", "DEPTH", "AGE", "TIME", "SILENT", "TOKENS", "COST", "DONE",
    "FAILED", "LABEL", "REASON",
];
const STATUS: usize = 3;
/// Columns of numbers, which stand below each other by their ends.
const RIGHT: std::ops::RangeInclusive<usize> = 4..=11;
const LAST: usize = COLUMNS - 1;

impl<'a> List<'a> {
    /// No runs yet. `silences` has the time for which runs have been silent.
    pub fn new(style: Style, silences: &'a HashMap<RunId, Duration>) -> Self {
        Self { rows: Vec::new(), style, silences, with_zeros: false }
    }

    /// Shows tokens and cost where they are zero, too: for runs that are sorted by them.
    pub fn with_zeros(self) -> Self {
        Self { with_zeros: true, ..self }
    }

    /// Adds a run of a tree under this name, with what it and all below it have used. Times are told as of `now`.
    pub fn add(
        &mut self,
        tree: &Tree,
        subtrees: &Subtrees<'_>,
        node: &'a Node,
        id: &str,
        now: Timestamp,
    ) {
        let subtree = subtrees.of(node);
        let children = || tree.children(node).filter(|child| child.replaced_by.is_none());
        let all = children().count() as u64;
        let completed = children().filter(|child| child.status.is_success()).count() as u64;
        let failed = children().filter(|child| child.status.is_failure()).count() as u64;
        let done =
            (all > 0).then(|| format!("{} of {}", number::count(completed), number::count(all)));
        let told = |time: Option<_>| time.map(number::duration).unwrap_or_default();
        let label = node.label.as_deref().map(neutral::line).unwrap_or_default();
        let again = node.replaced_by.map(|_| "ran again".to_owned());
        let reasons = why(node).into_iter().chain(again).chain(held(tree, node));
        let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
        let cells = [
            format!("@{}", self.rows.len() + 1),
            id.to_owned(),
            node.agent.to_string(),
            node.status.to_string(),
            if node.depth > 0 { node.depth.to_string() } else { String::new() },
            number::duration(now.since(node.admitted_at)),
            time(node, now).unwrap_or_default(),
            told(self.silence(node, now)),
            tokens(&subtree.usage, self.with_zeros),
            cost(&subtree.cost, self.with_zeros),
            done.unwrap_or_default(),
            if failed > 0 { number::count(failed) } else { String::new() },
            label.into_owned(),
            reasons.join("; "),
        ];
        self.rows.push(Row { node, cells });
    }

    /// The time for which a run has been silent. The supervisor tells it a moment later than this one.
    fn silence(&self, node: &Node, now: Timestamp) -> Option<Duration> {
        let silence = self.silences.get(&node.run).filter(|_| is_at_work(node))?;
        Some((*silence).min(node.age(now).unwrap_or(*silence)))
    }
}

/// True of a run that holds a slot, by the record: the supervisor that tells of silences may be a moment ahead of it.
pub fn is_at_work(node: &Node) -> bool {
    matches!(node.status, RunStatus::Starting | RunStatus::Running)
}

/// Returns the number of tokens; nothing where it is zero or not known, unless zeros are wanted.
fn tokens(usage: &Usage, with_zeros: bool) -> String {
    match usage.total() {
        TokenCount::Known(0) if with_zeros => "0".to_owned(),
        TokenCount::Unknown if with_zeros => "unknown".to_owned(),
        TokenCount::Unknown | TokenCount::Known(0) => String::new(),
        TokenCount::Known(known) => number::count(known),
        TokenCount::AtLeast(bound) => format!("≥ {}", number::count(bound)),
        TokenCount::Estimated(most) => format!("~ {}", number::count(most)),
    }
}

/// Returns the cost; nothing where it is zero or not known, unless zeros are wanted.
fn cost(cost: &Cost, with_zeros: bool) -> String {
    let known = cost.dollars();
    if known.as_micros() == 0 && !with_zeros { String::new() } else { number::cost(cost) }
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let cells = |column: usize| self.rows.iter().map(move |row| row.cells[column].as_str());
        let shown: Vec<(usize, usize)> = (0..COLUMNS)
            .filter(|&column| cells(column).any(|cell| !cell.is_empty()))
            .map(|column| {
                let widest = cells(column).map(|cell| cell.width()).max().unwrap_or(0);
                (column, widest.max(HEADINGS[column].len()))
            })
            .collect();
        let line = |text: &dyn Fn(usize, usize) -> String| {
            let parts = shown.iter().map(|&(column, width)| text(column, width));
            parts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let filled = |column: usize, text: &str, width: usize| match column {
            LAST => text.to_owned(),
            _ if RIGHT.contains(&column) => format!("{text:>width$}"),
            // A label may hold characters that take two columns of the screen.
            _ => format!("{text}{}", " ".repeat(width.saturating_sub(text.width()))),
        };
        let headings = line(&|column, width| filled(column, HEADINGS[column], width));
        write!(f, "{}", self.style.faint(headings))?;
        for row in &self.rows {
            let text = line(&|column, width| match column {
                STATUS => format!("{:width$}", self.style.status(row.node.status)),
                _ => filled(column, &row.cells[column], width),
            });
            write!(f, "\n{text}")?;
        }
        Ok(())
    }
}
