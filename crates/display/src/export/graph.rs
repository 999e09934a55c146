//! The tree as a graph, in the languages of two programs that draw graphs.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use offshoot_model::{RunId, RunStatus};

use super::Row;
use crate::{name, number, status_words};

/// The fill and the line of a status.
const fn colours(status: RunStatus) -> (&'static str, &'static str) {
    match status {
        RunStatus::Completed => ("#d8f3dc", "#2d6a4f"),
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Lost => ("#ffd9d6", "#b42318"),
        RunStatus::Cancelled | RunStatus::ClientGone => ("#fff1c9", "#8a6100"),
        RunStatus::Starting | RunStatus::Running | RunStatus::Waiting => ("#d9ebff", "#1d5fa8"),
        RunStatus::Idle | RunStatus::Queued => ("#eceef1", "#5b6270"),
    }
}

/// Returns a flowchart.
pub(super) fn mermaid(rows: &[Row<'_>]) -> String {
    let mut out = String::from("flowchart LR\n");
    write(
        rows,
        &mut out,
        |at, lines, status| {
            let lines: Vec<String> = lines.iter().map(|line| entities(line)).collect();
            let class = status.map(|status| format!(":::{}", status.as_ref())).unwrap_or_default();
            format!("  n{at}[\"{}\"]{class}\n", lines.join("<br/>"))
        },
        |from, to| format!("  n{from} --> n{to}\n"),
        |from, to| format!("  n{from} -.-> n{to}\n"),
    );
    let statuses: BTreeSet<RunStatus> =
        rows.iter().filter_map(|row| Some(row.node()?.status)).collect();
    for status in statuses {
        let (fill, line) = colours(status);
        let name: &str = status.as_ref();
        out.push_str(&format!("  classDef {name} fill:{fill},stroke:{line},color:#111\n"));
    }
    out
}

/// Returns a directed graph.
pub(super) fn dot(rows: &[Row<'_>]) -> String {
    let mut out = String::from(
        "digraph offshoot {\n  rankdir=LR\n  node [shape=box style=\"rounded,filled\" fontname=\"sans-serif\" fillcolor=\"#eceef1\"]\n",
    );
    write(
        rows,
        &mut out,
        |at, lines, status| {
            let lines: Vec<String> = lines.iter().map(|line| backslashes(line)).collect();
            let colours = status
                .map(colours)
                .map(|(fill, line)| format!(" fillcolor=\"{fill}\" color=\"{line}\""));
            format!("  n{at} [label=\"{}\"{}]\n", lines.join("\\n"), colours.unwrap_or_default())
        },
        |from, to| format!("  n{from} -> n{to}\n"),
        |from, to| format!("  n{from} -> n{to} [style=dashed]\n"),
    );
    out.push_str("}\n");
    out
}

/// Writes the nodes, the lines between them, and those from what is needed to what needs it.
fn write(
    rows: &[Row<'_>],
    out: &mut String,
    node: impl Fn(usize, &[String], Option<RunStatus>) -> String,
    line: impl Fn(usize, usize) -> String,
    need: impl Fn(usize, usize) -> String,
) {
    for (at, row) in rows.iter().enumerate() {
        let (text, parent) = match row {
            Row::Run { node: run, held, silence, parent, .. } => {
                let time = run.execution_time().map(number::duration).unwrap_or_default();
                let state = format!("{} {time}", status_words(run.status));
                let mut lines = vec![short(name::of(run)), state.trim_end().to_owned()];
                lines.extend(silence.map(|time| format!("silent {}", number::duration(time))));
                lines.extend(held.iter().cloned());
                (node(at, &lines, Some(run.status)), *parent)
            }
            Row::More { text, parent, .. } => {
                (node(at, std::slice::from_ref(text), None), Some(*parent))
            }
        };
        out.push_str(&text);
        out.extend(parent.map(|parent| line(parent, at)));
    }
    let nodes = || (0..).zip(rows).filter_map(|(at, row)| Some((at, row.node()?)));
    let places: HashMap<RunId, usize> = nodes().map(|(at, node)| (node.run, at)).collect();
    for (at, node) in nodes() {
        let needed = node.needs.iter().filter_map(|need| places.get(&need.run?));
        out.extend(needed.map(|from| need(*from, at)));
    }
}

/// A name that fits a node. Mermaid takes no more than 50,000 characters in all.
fn short(mut name: String) -> String {
    const LONGEST: usize = 40;
    if let Some((at, _)) = name.char_indices().nth(LONGEST) {
        name.truncate(at);
        name.push('…');
    }
    name
}

/// Every sign that could mean something to Mermaid, which reads directives and HTML also within quotes, as its number.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_alphanumeric() || " .,:-…".contains(char) {
            out.push(char);
        } else {
            write!(out, "#{};", u32::from(char)).expect("writing to a string cannot fail");
        }
    }
    out
}

fn backslashes(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
