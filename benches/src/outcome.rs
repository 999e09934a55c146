//! The numbers that were measured, beside their targets.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::Result;
use crate::comparison::{Samples, percentile};
use crate::rows::Row;

/// One row, measured.
pub(crate) struct Outcome {
    unit: Unit,
    samples: Vec<Samples>,
    goals: Vec<Goal>,
    notes: Vec<String>,
}

/// The unit of the numbers of a row. Less is better in each.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Seconds for one of these.
    Seconds(&'static str),
    /// Bytes for one of these.
    Bytes(&'static str),
}

/// The goal of a side, or its value beside a peer where no goal is set.
enum Goal {
    Times { side: String, limit: Option<f64>, peer: String },
    AtMost { side: String, limit: f64 },
}

/// All rows, for people and programs.
#[derive(Serialize)]
pub(crate) struct Report {
    machine: Machine,
    quick: bool,
    rows: Vec<RowReport>,
}

#[derive(Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
}

#[derive(Serialize)]
struct RowReport {
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    per: &'static str,
    sides: Vec<SideReport>,
    goals: Vec<GoalReport>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct SideReport {
    name: String,
    median: f64,
    least: f64,
    most: f64,
    rounds: Vec<f64>,
}

#[derive(Serialize)]
struct GoalReport {
    side: String,
    /// Absent for a goal that stands for itself.
    peer: Option<String>,
    /// Absent where there is no target.
    limit: Option<f64>,
    /// The median over the rounds; a ratio where there is a peer.
    measured: f64,
    least: f64,
    most: f64,
    /// Absent where there is no target.
    met: Option<bool>,
}

impl Outcome {
    pub(crate) fn new(unit: Unit, samples: Vec<Samples>) -> Self {
        Self { unit, samples, goals: Vec::new(), notes: Vec::new() }
    }

    /// `side` should take at most `limit` times what `peer` takes. Without the peer there is nothing to say.
    pub(crate) fn times(mut self, side: &str, limit: f64, peer: &str) -> Self {
        let (side, peer) = (side.to_owned(), peer.to_owned());
        self.goals.push(Goal::Times { side, limit: Some(limit), peer });
        self
    }

    /// The time of `side` in terms of `peer`, without a target.
    pub(crate) fn beside(mut self, side: &str, peer: &str) -> Self {
        let (side, peer) = (side.to_owned(), peer.to_owned());
        self.goals.push(Goal::Times { side, limit: None, peer });
        self
    }

    /// `side` should take at most so much.
    pub(crate) fn at_most(mut self, side: &str, limit: f64) -> Self {
        self.goals.push(Goal::AtMost { side: side.to_owned(), limit });
        self
    }

    /// Something to know about the numbers.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn notes(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The row as people read it.
    pub(crate) fn text(&self, row: &Row) -> String {
        let (_, per) = self.unit.words();
        let mut text = format!("{}: {}; for each {per}\n", row.name, row.what);
        let show = |value: f64| self.unit.show(value);
        for side in self.samples.iter().map(SideReport::of) {
            let (median, least, most) = (show(side.median), show(side.least), show(side.most));
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {:<54}{median:>10}   {least} to {most}", side.name);
        }
        for goal in self.goal_reports() {
            let _ = writeln!(text, "  {}", goal.text(self.unit));
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        text
    }

    fn samples(&self, name: &str) -> Option<&Samples> {
        self.samples.iter().find(|samples| samples.name == name)
    }

    fn goal_reports(&self) -> Vec<GoalReport> {
        let report = |goal: &Goal| match goal {
            Goal::Times { side, limit, peer } => {
                let pairs = self.samples(side)?.values.iter().zip(&self.samples(peer)?.values);
                let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
                Some(GoalReport::of(side, Some(peer), *limit, &ratios))
            }
            Goal::AtMost { side, limit } => {
                Some(GoalReport::of(side, None, Some(*limit), &self.samples(side)?.values))
            }
        };
        self.goals.iter().filter_map(report).collect()
    }
}

impl Unit {
    /// The unit that is counted, and its subject.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Seconds(per) => ("seconds", per),
            Self::Bytes(per) => ("bytes", per),
        }
    }

    fn show(self, value: f64) -> String {
        let scale: &[(f64, &str)] = match self {
            Self::Seconds(_) => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Self::Bytes(_) => &[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
        };
        let fits = |(size, _): &&(f64, &str)| value.abs() >= *size;
        let (size, name) =
            scale.iter().find(fits).or(scale.last()).copied().expect("no scale is empty");
        let digits = value / size;
        match digits.abs() {
            ..10.0 => format!("{digits:.2} {name}"),
            10.0..100.0 => format!("{digits:.1} {name}"),
            _ => format!("{digits:.0} {name}"),
        }
    }
}

impl SideReport {
    fn of(samples: &Samples) -> Self {
        Self {
            name: samples.name.clone(),
            median: samples.median(),
            least: percentile(&samples.values, 0),
            most: percentile(&samples.values, 100),
            rounds: samples.values.clone(),
        }
    }
}

impl GoalReport {
    fn of(side: &str, peer: Option<&str>, limit: Option<f64>, values: &[f64]) -> Self {
        let measured = percentile(values, 50);
        Self {
            side: side.to_owned(),
            peer: peer.map(str::to_owned),
            limit,
            measured,
            least: percentile(values, 0),
            most: percentile(values, 100),
            met: limit.map(|limit| measured <= limit),
        }
    }

    fn text(&self, unit: Unit) -> String {
        let Self { side, peer, limit, measured, least, most, met } = self;
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "ratio",
        };
        let ratio = || format!("{measured:.2} ({least:.2} to {most:.2})");
        match (peer, limit) {
            (Some(peer), Some(limit)) => {
                format!("{verdict}: {side} ≤ {limit} × {peer}: {}", ratio())
            }
            (Some(peer), None) => format!("{verdict}: {side} to {peer}: {}", ratio()),
            (None, limit) => {
                let limit = limit.map(|limit| format!(" ≤ {}", unit.show(limit)));
                format!("{verdict}: {side}{}: {}", limit.unwrap_or_default(), unit.show(*measured))
            }
        }
    }
}

impl Report {
    pub(crate) fn of_this_machine(quick: bool) -> Self {
        let first = |path: &str, name: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned())
                .unwrap_or_default()
        };
        let machine = Machine {
            processor: first("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: first("/proc/sys/kernel/osrelease", ""),
        };
        Self { machine, quick, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: &Row, outcome: Outcome) {
        let (unit, per) = outcome.unit.words();
        self.rows.push(RowReport {
            name: row.name,
            what: row.what,
            unit,
            per,
            sides: outcome.samples.iter().map(SideReport::of).collect(),
            goals: outcome.goal_reports(),
            notes: outcome.notes,
        });
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }

    pub(crate) fn summary(&self) -> String {
        let verdicts: Vec<(&str, bool)> = self
            .rows
            .iter()
            .flat_map(|row| row.goals.iter().map(move |goal| (row.name, goal.met)))
            .filter_map(|(name, met)| met.map(|met| (name, met)))
            .collect();
        let missed: Vec<&str> =
            verdicts.iter().filter(|(_, met)| !met).map(|(name, _)| *name).collect();
        let count = verdicts.len();
        let quick = if self.quick { " (a quick run: nothing to rely on)" } else { "" };
        match missed.as_slice() {
            [] => format!("all of {count} targets met{quick}"),
            _ => {
                format!("{} of {count} targets missed{quick}: {}", missed.len(), missed.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row =
        Row { name: "row", what: "a thing", measure: |_| unreachable!("not measured") };

    fn samples(name: &str, values: &[f64]) -> Samples {
        Samples { name: name.to_owned(), values: values.to_vec() }
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        // The machine slowed down between the rounds: the ratio did not change.
        let outcome = Outcome::new(
            Unit::Seconds("run"),
            vec![samples("ours", &[1.0, 30.0, 5.0]), samples("peer", &[2.0, 20.0, 5.0])],
        );
        let outcome = outcome.times("ours", 1.25, "peer").at_most("ours", 4.0);
        let outcome = outcome.beside("peer", "ours").times("ours", 1.0, "not installed");
        let outcome = outcome.note("peer b is missing");
        let text = outcome.text(&ROW);
        let expected = "row: a thing; for each run\n  \
            ours                                                      5.00 s   1.00 s to 30.0 s\n  \
            peer                                                      5.00 s   2.00 s to 20.0 s\n  \
            met: ours ≤ 1.25 × peer: 1.00 (0.50 to 1.50)\n  \
            MISSED: ours ≤ 4.00 s: 5.00 s\n  \
            ratio: peer to ours: 1.00 (0.67 to 2.00)\n  \
            note: peer b is missing\n";
        assert_eq!(text, expected);
        let mut report = Report::of_this_machine(false);
        report.add(&ROW, outcome);
        assert_eq!(report.summary(), "1 of 2 targets missed: row");
    }

    #[test]
    fn units() {
        let check = |unit: Unit, value: f64, expected: &str| assert_eq!(unit.show(value), expected);
        check(Unit::Seconds("run"), 12.34, "12.3 s");
        check(Unit::Seconds("run"), 0.000_123_4, "123 µs");
        check(Unit::Seconds("run"), 1e-10, "0.10 ns");
        check(Unit::Bytes("run"), 512.0, "512 B");
        check(Unit::Bytes("run"), 1536.0, "1.50 KiB");
        check(Unit::Bytes("run"), 3.0 * 1048576.0, "3.00 MiB");
    }
}
