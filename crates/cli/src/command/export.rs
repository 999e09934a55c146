//! `offshoot export`.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Read;
use std::time::Duration;

use clap::{Args, ValueEnum};
use offshoot_display::json::Document;
use offshoot_display::{Excerpt, Export, SaidEnd, Stats, StatsPage};
use offshoot_door::Output as AskedOutput;
use offshoot_model::{
    Payload, RootId, RunId, RunStatus, Stream, Timestamp, Tree, TreeNode, ValueKind,
};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{FoundRun, OutputReader};
use serde::Serialize;
use serde_json::{Value, json};

use super::events::Within;
use crate::arguments::value::whole;
use crate::code::FailureCode;
use crate::door::{reach, silences};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{self, Record};
use crate::said::{SaidLine, SaidLines, Text};
use crate::work::engine::block_on;

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
    #[arg(long, value_name = "N", value_parser = whole(0_usize.., "1000"))]
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

/// The rows of a page: a screen can still be scrolled through, and a browser is fast. Mermaid draws no more than 500 lines.
const ROWS: usize = 1000;
const MERMAID_NODES: usize = 200;
/// The runs whose last lines are told, the number of these lines, and the bytes of one.
const SPEAKERS: usize = 40;
const LINES: usize = 20;
const LINE: usize = 500;
/// The bytes of an answer and of a task.
const ANSWER: usize = 64 * 1024;
const TASK: usize = 4 * 1024;

/// All of it for a program.
#[derive(Serialize)]
struct Exported<'a> {
    tree: TreeNode,
    /// The time since the last sign of life of each run that holds a slot, in milliseconds.
    #[serde(rename = "silentMs", skip_serializing_if = "BTreeMap::is_empty")]
    silent_ms: BTreeMap<RunId, u64>,
    stats: &'a StatsPage,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    /// Of a line without a stream the text is the reason why something is missing.
    logs: Vec<Value>,
}

/// Prints a run with everything below it.
pub(crate) fn run(arguments: &ExportArguments, cx: &Invocation) -> Result<(), Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let format = if cx.output.wants_json() { ExportFormat::Json } else { arguments.format };
    let (mut tree, mut stats) = (Tree::new(), Stats::default());
    let mut within = Within::new(found.run, found.root.run());
    // Before anything is read: a supervisor that ends meanwhile has written it all.
    let lost = record.is_abandoned(found.root)?;
    if !lost {
        settle(found.run, cx)?;
    }
    for event in record.store().events(found.root, 0) {
        let event = event?;
        tree.apply(&event);
        if within.takes(&event) {
            stats.apply(&event);
        }
    }
    if lost {
        tree.lose(found.root);
        stats.lose(found.root);
    }
    let stats = stats.page(SystemClock.now());
    let missing = || record::no_record(found.run);
    let top = tree.get(found.run).ok_or_else(missing)?;
    let open: Vec<RootId> = tree.open().map(|root| root.root).collect();
    let silences = block_on(silences(&open, cx))?;
    let usual = if format == ExportFormat::Mermaid { MERMAID_NODES } else { ROWS };
    let mut export = Export {
        tree: &tree,
        top,
        stats: &stats,
        task: None,
        answer: None,
        said: Vec::new(),
        silences: &silences,
        now: SystemClock.now(),
        limit: arguments.limit.unwrap_or(usual),
    };
    if let ExportFormat::Html | ExportFormat::Json = format {
        let admitted = record.store().admitted(found.root, found.run)?.ok_or_else(missing)?;
        let ending = record.ending(found.root, found.run)?;
        let answer = ending.and_then(|ending| ending.output);
        export.task = Some(excerpt(&record, &admitted.task, TASK)?);
        export.answer = answer.map(|answer| excerpt(&record, &answer, ANSWER)).transpose()?;
        let speakers = Export::speakers(&tree, top, &stats, SPEAKERS);
        export.said = ends(&record, &found, &tree, speakers)?;
    }
    match format {
        ExportFormat::Html => cx.output.bytes(export.html().as_bytes()),
        ExportFormat::Mermaid => cx.output.bytes(export.mermaid().as_bytes()),
        ExportFormat::Dot => cx.output.bytes(export.dot().as_bytes()),
        ExportFormat::Json => cx.output.document(&exported(&export), Document::Report),
    }
}

/// Has the supervisor write what was said up to now. Where it cannot be asked, the end of what runs is missing.
fn settle(run: RunId, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        let Ok((client, _)) = reach(&run.to_string(), cx).await else { return Ok(()) };
        if let Err(error) = client.call(AskedOutput::default()).await {
            tracing::debug!(%error, "the supervisor has written nothing");
        }
        Ok(())
    })
}

/// Reads the ends of the task or the answer for the page.
fn excerpt(record: &Record, payload: &Payload, most: usize) -> Result<Excerpt, Failure> {
    let (bytes, size) = match payload {
        Payload::Text(text) => (text.as_bytes().to_vec(), text.len() as u64),
        Payload::Json(json) => (json.as_str().as_bytes().to_vec(), json.as_str().len() as u64),
        Payload::Stored(reference) if reference.kind == ValueKind::Bytes => {
            let text = "[bytes that are not text]".to_owned();
            return Ok(Excerpt { text, left_out: reference.size });
        }
        Payload::Stored(reference) => {
            let mut bytes = Vec::new();
            let value = record.store().open(reference)?;
            value.take(most as u64).read_to_end(&mut bytes).map_err(|error| {
                Failure::input(
                    FailureCode::ValueUnreadable,
                    format_args!("value {} cannot be read", reference.hash),
                )
                .caused_by(Some(&error))
                .hint("`offshoot audit RUN` says what else of its tree is not as it was")
            })?;
            (bytes, reference.size)
        }
    };
    let bytes = whole_characters(&bytes, most);
    let text = String::from_utf8_lossy(bytes).into_owned();
    Ok(Excerpt { text, left_out: size - bytes.len() as u64 })
}

/// The first bytes, without a character that is cut.
fn whole_characters(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() < most {
        return bytes;
    }
    let begins = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let last = (most.saturating_sub(4)..most).rev().find(begins).unwrap_or(most);
    match std::str::from_utf8(&bytes[last..most]) {
        Ok(_) => &bytes[..most],
        Err(_) => &bytes[..last],
    }
}

/// Returns the last lines of what these runs said.
fn ends(
    record: &Record,
    found: &FoundRun,
    tree: &Tree,
    speakers: Vec<RunId>,
) -> Result<Vec<SaidEnd>, Failure> {
    let wanted: HashSet<RunId> = speakers.iter().copied().collect();
    let mut ends: HashMap<RunId, (u64, VecDeque<SaidLine>)> = HashMap::new();
    let mut take = |line: SaidLine| {
        let (left_out, lines) = ends.entry(line.run).or_default();
        lines.push_back(line);
        if lines.len() > LINES {
            lines.pop_front();
            *left_out += 1;
        }
    };
    let mut lines = SaidLines::default();
    OutputReader::new(record.folder(), found.root).read::<Failure>(
        |run| wanted.contains(&run),
        |said| {
            lines.take(said, &mut take);
            Ok(())
        },
    )?;
    for run in &speakers {
        lines.open(*run).into_iter().for_each(&mut take);
        if tree.get(*run).is_some_and(|node| node.status == RunStatus::Lost) {
            // No times are shown here.
            lines.cut_off(*run, Timestamp::EPOCH, &mut take);
        }
    }
    let end = |run| {
        let (left_out, lines) = ends.remove(&run)?;
        Some(SaidEnd { run, lines: lines.into_iter().map(shortened).collect(), left_out })
    };
    Ok(speakers.into_iter().filter_map(end).collect())
}

fn shortened(line: SaidLine) -> (Option<Stream>, String) {
    match line.text {
        Text::Said(stream, bytes) => {
            let cut = whole_characters(&bytes, LINE);
            let more = if cut.len() < bytes.len() { "…" } else { "" };
            (Some(stream), format!("{}{more}", String::from_utf8_lossy(cut)))
        }
        Text::Missing(why) => (None, format!("[{why}]")),
    }
}

fn exported<'a>(export: &'a Export<'_>) -> Exported<'a> {
    let excerpt =
        |Excerpt { text, left_out }: &Excerpt| json!({ "text": text, "leftOutBytes": left_out });
    let line =
        |(stream, text): &(Option<Stream>, String)| json!({ "stream": stream, "text": text });
    let end = |SaidEnd { run, lines, left_out }: &SaidEnd| {
        let lines: Vec<Value> = lines.iter().map(line).collect();
        json!({ "runId": run, "lines": lines, "leftOutLines": left_out })
    };
    let silent = |(run, silence): (&RunId, &Duration)| (*run, silence.as_millis() as u64);
    Exported {
        tree: export.tree.view(export.top),
        silent_ms: export.silences.iter().map(silent).collect(),
        stats: export.stats,
        task: export.task.as_ref().map(excerpt),
        answer: export.answer.as_ref().map(excerpt),
        logs: export.said.iter().map(end).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_whole_or_not_there() {
        let check = |bytes: &[u8], most: usize, expected: &[u8]| {
            assert_eq!(whole_characters(bytes, most), expected, "{bytes:?} {most}");
        };
        check(b"abc", 4, b"abc");
        check(b"abcd", 3, b"abc");
        check("aé".as_bytes(), 3, "aé".as_bytes());
        check("aéb".as_bytes(), 2, b"a");
        check("a日b".as_bytes(), 3, b"a");
        check("🦀🦀".as_bytes(), 7, "🦀".as_bytes());
        check(b"a\xff\xff\xff\xff\xff", 4, b"a\xff\xff");
    }
}
