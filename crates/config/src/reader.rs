//! Reads one source: knows where it stands, collects what is wrong and what is not ours.

use std::collections::HashMap;

use crate::field::join;
use crate::foreign::nearest;
use crate::node::{Key, Node};
use crate::origin::{Origin, Valued};
use crate::problem::{Place, Problem, ProblemKind};
use crate::source::{Source, SourceKind};

/// The reading of one source. Nothing stops it: a value that is wrong is reported and left out.
pub(crate) struct Reader<'a> {
    voice: Voice<'a>,
    /// The key that is read, dotted.
    path: String,
    problems: Vec<Problem>,
    foreign: Vec<Valued<String>>,
}

/// The source of the text that is read.
pub(crate) enum Voice<'a> {
    File {
        source: &'a Source,
        lines: Vec<usize>,
    },
    /// The offset of a node is the number of its origin.
    Layer(Vec<Origin>),
}

impl<'a> Reader<'a> {
    pub(crate) fn of_file(source: &'a Source) -> Self {
        let ends = source.text.match_indices('\n').map(|(at, _)| at + 1);
        Self::new(Voice::File { source, lines: std::iter::once(0).chain(ends).collect() })
    }

    pub(crate) fn of(origin: Origin) -> Self {
        Self::of_layer(vec![origin])
    }

    /// `origins` has one for each offset of a node.
    pub(crate) fn of_layer(origins: Vec<Origin>) -> Self {
        Self::new(Voice::Layer(origins))
    }

    fn new(voice: Voice<'a>) -> Self {
        Self { voice, path: String::new(), problems: Vec::new(), foreign: Vec::new() }
    }

    /// Returns the problems, from the top, and the keys that belong to another system.
    pub(crate) fn finish(mut self) -> (Vec<Problem>, Vec<Valued<String>>) {
        self.problems.sort_by_key(|problem| (problem.place.line(), problem.place.column));
        (self.problems, self.foreign)
    }

    /// True if the source is the file of the system or of the user: it may set bounds for those above it.
    pub(crate) fn is_of_the_user(&self) -> bool {
        matches!(
            &self.voice,
            Voice::File { source, .. } if matches!(source.kind, SourceKind::System | SourceKind::User)
        )
    }

    /// Reads what stands below a key or at an index.
    pub(crate) fn at_key<R>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        self.at(join(&self.path, key), read)
    }

    pub(crate) fn at_index<R>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> R) -> R {
        self.at(format!("{}[{index}]", self.path), read)
    }

    fn at<R>(&mut self, path: String, read: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.path, path);
        let result = read(self);
        self.path = outer;
        result
    }

    pub(crate) fn valued<T>(&self, value: T, node: &Node) -> Valued<T> {
        Valued::new(value, self.place(node.offset).origin)
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        match &self.voice {
            Voice::Layer(origins) => Place { origin: origins[offset].clone(), column: None },
            Voice::File { source, lines } => {
                let line = lines.partition_point(|start| *start <= offset);
                let start = lines[line - 1];
                let before = source.text.get(start..offset).unwrap_or_default();
                // Editors do not count the byte order mark as a column.
                let before = before.trim_start_matches('\u{feff}');
                let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let (kind, path, line) = (source.kind, source.path.clone(), count(line));
                let origin = Origin::File { kind, path, line };
                Place { origin, column: Some(count(before.chars().count() + 1)) }
            }
        }
    }

    pub(crate) fn report(&mut self, offset: usize, kind: ProblemKind) {
        let problem = Problem { place: self.place(offset), key: self.path.clone(), kind };
        self.problems.push(problem);
    }

    pub(crate) fn report_all(&mut self, problems: Vec<Problem>) {
        self.problems.extend(problems);
    }

    pub(crate) fn wrong(&mut self, node: &Node, allowed: impl Into<String>) {
        self.report(
            node.offset,
            ProblemKind::WrongValue { found: node.found(), allowed: allowed.into() },
        );
    }

    /// Returns a value that was read. Where there is none, says what is allowed.
    pub(crate) fn or_wrong<T>(
        &mut self,
        read: Option<T>,
        node: &Node,
        allowed: impl Into<String>,
    ) -> Option<T> {
        if read.is_none() {
            self.wrong(node, allowed);
        }
        read
    }

    /// Reads a table of these keys, and reports all others but those of another system. `read` returns false after having reported
    /// what is wrong; so does this.
    pub(crate) fn keys(
        &mut self,
        entries: &[(Key, Node)],
        known: &'static [&'static str],
        foreign: &[&str],
        mut read: impl FnMut(&'static str, &Node, &mut Self) -> bool,
    ) -> bool {
        self.no_duplicates(entries);
        let mut right = true;
        for (key, value) in entries {
            if let Some(known) = known.iter().find(|known| key.is(known)) {
                right &= self.at_key(known, |cx| read(known, value, cx));
            } else if foreign.contains(&key.name.as_str()) {
                let origin = self.place(key.offset).origin;
                self.foreign.push(Valued::new(join(&self.path, &key.name), origin));
            } else {
                let nearest = nearest(&key.name, known).map(str::to_owned);
                let known = known.iter().map(|&known| known.to_owned()).collect();
                let kind = ProblemKind::UnknownKey { nearest, known };
                self.at_key(&key.name, |cx| cx.report(key.offset, kind));
                right = false;
            }
        }
        right
    }

    /// Reports the keys of a table that stand twice. TOML has none: its parser refuses them.
    pub(crate) fn no_duplicates(&mut self, entries: &[(Key, Node)]) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (key, _) in entries {
            if let Some(first) = seen.get(key.name.as_str()) {
                let first = self.place(*first);
                let kind = ProblemKind::DuplicateKey { first };
                self.at_key(&key.name, |cx| cx.report(key.offset, kind));
            } else {
                seen.insert(&key.name, key.offset);
            }
        }
    }
}

impl Place {
    fn line(&self) -> u32 {
        match self.origin {
            Origin::File { line, .. } => line,
            _ => 0,
        }
    }
}
