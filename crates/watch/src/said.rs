//! The words of the run that is looked at.

use std::collections::VecDeque;

use offshoot_display::neutral;
use offshoot_model::{RunId, Stream, Timestamp};

/// A line that a run said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The moment at which it was said.
    pub at: Timestamp,
    /// The stream; none for a remark on something that is missing.
    pub stream: Option<Stream>,
    /// The line, as it was said.
    pub text: String,
}

/// The words that have come since a run was heard the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// True if this is all from the beginning on, and not only what is new.
    pub from_beginning: bool,
    /// Lines that have ended.
    pub lines: Vec<Words>,
    /// Lines that have not ended: a program may wait behind its question.
    pub open: Vec<Words>,
}

/// The last lines of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    run: Option<RunId>,
    lines: VecDeque<Words>,
    /// Lines that have not ended.
    open: Vec<Words>,
    /// True once all was told that there was at the beginning.
    is_read: bool,
}

/// Lines that are kept; `offshoot logs` has the rest.
const MOST: usize = 5000;

impl Said {
    /// Takes in what a run said. Of another one, and of the same from its beginning on, all is forgotten before.
    pub(crate) fn take(&mut self, run: RunId, news: News) {
        if self.run != Some(run) || news.from_beginning {
            *self = Self { run: Some(run), ..Self::default() };
        }
        self.is_read = true;
        self.lines.extend(news.lines.into_iter().map(harmless));
        self.lines.drain(..self.lines.len().saturating_sub(MOST));
        self.open = news.open.into_iter().map(harmless).collect();
    }

    /// The lines of a run until a moment; none while they were not read.
    pub(crate) fn of(
        &self,
        run: RunId,
        until: Timestamp,
    ) -> Option<impl DoubleEndedIterator<Item = &Words>> {
        let is_here = self.run == Some(run) && self.is_read;
        is_here.then(|| self.lines.iter().chain(&self.open).filter(move |line| line.at <= until))
    }
}

fn harmless(line: Words) -> Words {
    let text = neutral::block(&line.text).replace('\t', "    ").replace('\n', " ");
    Words { text, ..line }
}
