//! The lines that agents said, put together from the parts in which they were kept.

use std::collections::HashMap;

use offshoot_display::number;
use offshoot_model::{RunId, Stream, Timestamp};
use offshoot_store::{AttemptId, Said, SaidPart};

/// A line without an end is told in parts of this size.
const LONGEST: usize = 1024 * 1024;

/// Puts lines together, of any number of runs at once.
#[derive(Debug, Default)]
pub(crate) struct SaidLines {
    runs: HashMap<RunId, State>,
    /// The further attempts of runs.
    again: HashMap<RunId, Vec<Again>>,
}

/// A further attempt of a run.
#[derive(Clone, Copy, Debug)]
struct Again {
    /// The moment from which it is that.
    at: Timestamp,
    /// The last moment of which its supervisor before has told.
    left: Timestamp,
    number: u32,
    /// True if the attempt before it ended with its supervisor.
    is_after_loss: bool,
}

/// A line, or the place of one that is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaidLine {
    pub(crate) run: RunId,
    /// From 1.
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) text: Text,
}

/// The text of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// The words, without their line break.
    Said(Stream, Vec<u8>),
    /// The reason why something is missing here.
    Missing(String),
}

/// One run.
#[derive(Debug, Default)]
struct State {
    attempt: Option<AttemptId>,
    attempts: u32,
    ended: bool,
    at: Timestamp,
    /// Lines that have not ended, of both streams.
    open: [Vec<u8>; 2],
}

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl SaidLines {
    /// Takes in that a run was given another attempt, the first time after which and the time at which. Of one that says nothing, there
    /// are no lines by which it could be counted.
    pub(crate) fn another_attempt(
        &mut self,
        run: RunId,
        number: u32,
        (left, at): (Timestamp, Timestamp),
        is_after_loss: bool,
    ) {
        self.again.entry(run).or_default().push(Again { at, left, number, is_after_loss });
    }

    /// Tells of the attempts of a run before this one that ended with their supervisor: the end of each is missing, or all that it said.
    pub(crate) fn lost_before(&mut self, run: RunId, number: u32, tell: &mut impl FnMut(SaidLine)) {
        let Some(again) = self.again.get(&run) else { return };
        let state = self.runs.entry(run).or_default();
        let seen = state.attempts;
        let begun = |next: &&Again| next.number > seen && next.number <= number;
        for &Again { left, number, is_after_loss, .. } in again.iter().filter(begun) {
            let attempt = number - 1;
            if is_after_loss && attempt == seen {
                state.cut_off(run, left, tell);
                state.ended = true;
            } else if is_after_loss {
                let text = Text::Missing(CUT_OFF.to_owned());
                tell(SaidLine { run, attempt, at: left, text });
                (state.attempts, state.ended) = (attempt, true);
            }
        }
    }

    /// Takes the next part, and tells the lines that it completes.
    pub(crate) fn take(&mut self, said: Said, tell: &mut impl FnMut(SaidLine)) {
        let Said { run, attempt, what } = said;
        let is_next = self.runs.get(&run).is_none_or(|state| state.attempt != Some(attempt));
        let begun = || {
            let mut again = self.again.get(&run).into_iter().flatten().rev();
            again.find(|again| again.at <= attempt.began()).map(|again| again.number)
        };
        let begun = if is_next { begun() } else { None };
        if let Some(number) = begun {
            self.lost_before(run, number, tell);
        }
        let state = self.runs.entry(run).or_default();
        if is_next {
            state.cut_off(run, state.at, tell);
            state.attempt = Some(attempt);
            let number = begun.unwrap_or(state.attempts + 1);
            (state.attempts, state.ended) = (number, false);
            state.at = attempt.began();
        }
        match what {
            SaidPart::Bytes { at, stream, bytes } => {
                state.at = at;
                state.bytes(run, stream, &bytes, tell);
            }
            SaidPart::Gap(bytes) => {
                state.finish(run, tell);
                let size = number::bytes(bytes);
                let why = format!("{size} are missing here: more than is kept");
                tell(state.line(run, Text::Missing(why)));
            }
            SaidPart::End => {
                state.finish(run, tell);
                state.ended = true;
            }
        }
    }

    /// The lines of a run that have not ended.
    pub(crate) fn open(&self, run: RunId) -> Vec<SaidLine> {
        let Some(state) = self.runs.get(&run) else { return Vec::new() };
        let open = STREAMS.map(|stream| (stream, &state.open[stream as usize]));
        let lines = open.into_iter().filter(|(_, line)| !line.is_empty());
        lines.map(|(stream, line)| state.line(run, Text::Said(stream, line.clone()))).collect()
    }

    /// The same as [`cut_off`](Self::cut_off) of a run that has said something. One that stood in line has not.
    pub(crate) fn cut_off_if_said(&mut self, run: RunId, tell: &mut impl FnMut(SaidLine)) {
        if self.runs.get(&run).is_some_and(|state| state.attempt.is_some()) {
            // The time of its last line.
            self.cut_off(run, Timestamp::EPOCH, tell);
        }
    }

    /// Tells of a run that was lost with its supervisor that its end is missing, unless it is there. `left` is the last moment of which
    /// the supervisor has told.
    pub(crate) fn cut_off(&mut self, run: RunId, left: Timestamp, tell: &mut impl FnMut(SaidLine)) {
        let state = self.runs.entry(run).or_default();
        if state.attempt.is_none() {
            state.attempts += 1;
            state.at = left;
            tell(state.line(run, Text::Missing(CUT_OFF.to_owned())));
        }
        state.cut_off(run, left, tell);
        state.ended = true;
    }
}

/// The text for an attempt without an end.
const CUT_OFF: &str =
    "the supervisor was killed here: what was said in the two seconds before may be missing";

impl State {
    fn bytes(&mut self, run: RunId, stream: Stream, bytes: &[u8], tell: &mut impl FnMut(SaidLine)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let open = &mut self.open[stream as usize];
            open.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") || open.len() >= LONGEST {
                let line = std::mem::take(open);
                tell(self.line(run, Text::Said(stream, line)));
            }
        }
    }

    /// Tells the lines that have not ended.
    fn finish(&mut self, run: RunId, tell: &mut impl FnMut(SaidLine)) {
        for stream in STREAMS {
            let line = std::mem::take(&mut self.open[stream as usize]);
            if !line.is_empty() {
                tell(self.line(run, Text::Said(stream, line)));
            }
        }
    }

    fn cut_off(&mut self, run: RunId, left: Timestamp, tell: &mut impl FnMut(SaidLine)) {
        if self.attempt.is_some() && !self.ended {
            self.finish(run, tell);
            self.at = self.at.max(left);
            tell(self.line(run, Text::Missing(CUT_OFF.to_owned())));
        }
    }

    fn line(&self, run: RunId, text: Text) -> SaidLine {
        SaidLine { run, attempt: self.attempts, at: self.at, text }
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::RootId;
    use offshoot_store::{DataFolder, OutputBounds, OutputKeeper, OutputReader, StoreError};

    use super::*;
    use crate::work::engine::block_on;

    #[test]
    fn a_run_that_said_nothing_has_no_line_about_its_end() {
        let (spoke, stood_in_line) = (RunId::from_bytes([1; 16]), RunId::from_bytes([2; 16]));
        let folder = DataFolder::temporary().expect("the system has room for a folder");
        let (root, at) = (RootId::new(spoke), Timestamp::from_micros(7));
        let keeper = OutputKeeper::new(&folder, root, OutputBounds { run: 1 << 20, tree: 1 << 20 });
        let output = keeper.begin(spoke, at).expect("it keeps");
        output.said(at, Stream::Stdout, b"half a line");
        let settled = block_on(async {
            keeper.settle().await;
            Ok(())
        });
        assert!(settled.is_ok());
        let (mut lines, mut told) = (SaidLines::default(), Vec::new());
        let read = OutputReader::new(&folder, root).read::<StoreError>(
            |_| true,
            |said| {
                lines.take(said, &mut |line| told.push(line));
                Ok(())
            },
        );
        read.expect("the files can be read");
        for run in [stood_in_line, spoke] {
            lines.cut_off_if_said(run, &mut |line| told.push(line));
        }
        let line = |text| SaidLine { run: spoke, attempt: 1, at, text };
        let said = Text::Said(Stream::Stdout, b"half a line".to_vec());
        assert_eq!(told, [line(said), line(Text::Missing(CUT_OFF.to_owned()))]);
    }
}
