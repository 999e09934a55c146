//! `offshoot list`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use offshoot_config::nearest;
use offshoot_display::json::{Document, Format};
use offshoot_display::{List, Style, beginnings};
use offshoot_door::{List as AskedList, WireTreeNode};
use offshoot_model::{
    AgentId, Cost, Node, RootId, RunId, RunStatus, SessionKey, Subtrees, Timestamp, Tree, Usage,
};
use offshoot_spawner::{Clock, SystemClock};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::FormatArgument;
use crate::arguments::value::{duration, whole};
use crate::arguments::words::{STATUS, one_of};
use crate::code::NoteCode;
use crate::door::{LISTED, inside, listed, silences};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::held_run::HeldRun;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;
use crate::{listing, wording};

/// List runs, one a line
///
/// Without --tree and --all these are the roots of trees, the oldest first. In other commands `@1`, `@2` … name the runs that
/// the last listing in this terminal printed, and `last` the newest tree.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot list
  What runs in the newest tree, the most silent first:
    offshoot list --tree last --status running --sort silent
  What failed today, with the reason:
    offshoot list --all --status failed,timed_out --since 24h
  offshoot list --json")]
pub(crate) struct ListArguments {
    /// Every run, not the roots alone, deleted ones too, those that ran again, and trees that are archived; with --tree those of that tree
    #[arg(long)]
    pub(crate) all: bool,

    /// A run and every run below it: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(long, value_name = "RUN")]
    pub(crate) tree: Option<String>,

    /// Only runs with one of these statuses
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = one_of(STATUS))]
    pub(crate) status: Vec<RunStatus>,

    /// Only runs of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// Only runs that were admitted within this time, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// At most N runs: the first ones with --sort, else the newest
    #[arg(long, value_name = "N", value_parser = whole(0_usize.., "20"))]
    pub(crate) limit: Option<usize>,

    /// The order, the largest first [default: as they were admitted]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<SortColumn>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// The column by which runs are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortColumn {
    /// The time since the admission
    Age,
    /// The cost of it and everything below it
    #[value(alias = "dollars", alias = "usd")]
    Cost,
    /// The tokens that it and everything below it have used
    Tokens,
    /// The time from its start to its end, or to now
    #[value(alias = "duration", alias = "runtime")]
    Time,
    /// The time since its last event, while it runs
    #[value(alias = "idle", alias = "silence")]
    Silent,
}

/// One run, in a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    run_id: RunId,
    session_key: SessionKey,
    agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    status: RunStatus,
    /// The reason why it did not complete; in version 1 of the form in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Value>,
    /// The same in words, where these are not the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(flatten)]
    holds: HeldRun,
    depth: u32,
    parent: Option<RunId>,
    /// Directly below, without pieces that ran again.
    children: usize,
    /// The number of them that are over.
    children_ended: usize,
    /// The number of them that completed.
    children_completed: usize,
    /// The number of them that are that failed or took too long.
    children_failed: usize,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    admitted_at: Timestamp,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    started_at: Option<Timestamp>,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    ended_at: Option<Timestamp>,
    /// The time since its last sign of life, where it runs and its supervisor answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_ms: Option<u64>,
    execution_time_ms: Option<u64>,
    subtree_usage: Usage,
    cost: Cost,
}

/// Lists runs, the oldest first.
pub(crate) fn run(arguments: &ListArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let asked = AskedList { all: arguments.all, limit: None };
    if let Some(listed) = inside(cx, async |supervisor| Ok(supervisor.call(asked).await?))? {
        print_inside(&listed.runs, cx)?;
        return Ok(Exit::Done);
    }
    let (mut tree, mut exit, mut top) = (Tree::new(), Exit::Done, None);
    let record = match &arguments.tree {
        Some(text) => {
            let (record, found) = Record::open_to_look(cx, text)?;
            record.read(found.root, &mut tree)?;
            top = Some(found.run);
            Some(record)
        }
        None => Record::open(cx)?,
    };
    if let (Some(record), None) = (&record, top) {
        exit = record.read_all(arguments.all, &mut tree, cx)?;
    }
    let subtrees = tree.subtrees();
    let now = SystemClock.now();
    let open: Vec<RootId> = tree.open().map(|root| root.root).collect();
    let silences = block_on(silences(&open, cx))?;
    let nodes = chosen(arguments, top, &tree, &subtrees, now, &silences);
    if cx.output.wants_json() {
        let format = cx.output.format();
        let listed =
            |node: &&Node| list(&tree, &subtrees, node, silences.get(&node.run).copied(), format);
        let listed: Vec<Listed> = nodes.iter().map(listed).collect();
        cx.output.document(&listed, Document::Trees)?;
    } else if nodes.is_empty() {
        let any = tree.nodes().next().is_some();
        match arguments.agent.as_deref().and_then(|agent| agent_meant(agent, &tree)) {
            Some(near) => cx.output.note(
                NoteCode::NothingToShow,
                format_args!("no run matches: the nearest agent is `{near}`: --agent {near}"),
            ),
            None if any && arguments.tree.is_none() && !arguments.all => cx.output.note(
                NoteCode::NothingToShow,
                "no run matches among the roots of the trees; --tree RUN lists the runs of one tree, --all those of all",
            ),
            None if any => cx.output.note(NoteCode::NothingToShow, "no run matches"),
            None => cx.output.note(NoteCode::NothingToShow, wording::nothing_yet(cx)),
        }
    } else if let Some(record) = &record {
        let ids = beginnings(record.sqlite().runs()?.into_iter());
        let list = List::new(Style::Colour, &silences);
        let mut list = match arguments.sort {
            Some(SortColumn::Cost | SortColumn::Tokens) => list.with_zeros(),
            _ => list,
        };
        for node in &nodes {
            let id = ids.get(&node.run).map_or_else(|| node.run.to_string(), String::clone);
            list.add(&tree, &subtrees, node, &id, now);
        }
        listing::keep(record, nodes.iter().map(|node| node.run));
        cx.output.painted(|out| writeln!(out, "{list}"))?;
        let roots = nodes.iter().filter_map(|node| tree.get(node.root.run()));
        wording::point_to_lost_trees(record, roots, cx)?;
    }
    Ok(exit)
}

/// Returns the agent that was probably meant, where no run has this one.
fn agent_meant(agent: &str, tree: &Tree) -> Option<String> {
    let known: BTreeSet<&str> = tree.nodes().map(|node| node.agent.as_str()).collect();
    let known: Vec<&str> = known.into_iter().collect();
    match known.contains(&agent) {
        true => None,
        false => nearest(agent, &known).map(str::to_owned),
    }
}

/// The runs that are asked for, in the order that is asked for.
fn chosen<'a>(
    arguments: &ListArguments,
    top: Option<RunId>,
    tree: &'a Tree,
    subtrees: &Subtrees<'_>,
    now: Timestamp,
    silences: &HashMap<RunId, Duration>,
) -> Vec<&'a Node> {
    let ListArguments { all, tree: _, status, agent, since, limit, sort, .. } = arguments;
    let is_below = |node: &Node| {
        let mut at = Some(node);
        std::iter::from_fn(|| {
            let here = at?;
            at = here.parent.and_then(|parent| tree.get(parent));
            Some(here.run)
        })
        .any(|run| Some(run) == top)
    };
    let mut nodes: Vec<&Node> = tree
        .nodes()
        .filter(|node| if top.is_some() { is_below(node) } else { *all || node.parent.is_none() })
        .filter(|node| *all || node.replaced_by.is_none())
        .filter(|node| status.is_empty() || status.contains(&node.status))
        .filter(|node| agent.as_ref().is_none_or(|agent| node.agent.as_str() == agent))
        .filter(|node| since.is_none_or(|since| now.since(node.admitted_at) <= since))
        .collect();
    match sort {
        None => {}
        Some(SortColumn::Age) => nodes.sort_by_key(|node| node.admitted_at),
        Some(SortColumn::Cost) => {
            nodes.sort_by_key(|node| Reverse(subtrees.of(node).cost.dollars()));
        }
        Some(SortColumn::Tokens) => {
            nodes.sort_by_key(|node| Reverse(subtrees.of(node).usage.total().charged()));
        }
        Some(SortColumn::Time) => nodes.sort_by_key(|node| Reverse(node.age(now))),
        Some(SortColumn::Silent) => {
            nodes.sort_by_key(|node| Reverse(silences.get(&node.run).copied()));
        }
    }
    let most = limit.unwrap_or(usize::MAX);
    match sort {
        Some(_) => nodes.truncate(most),
        None => drop(nodes.drain(..nodes.len().saturating_sub(most))),
    }
    nodes
}

fn list(
    tree: &Tree,
    subtrees: &Subtrees<'_>,
    node: &Node,
    silence: Option<Duration>,
    format: Format,
) -> Listed {
    let reason = node.reason.as_ref().filter(|_| !node.status.is_success());
    let subtree = subtrees.of(node);
    let children = || tree.children(node).filter(|child| child.replaced_by.is_none());
    Listed {
        run_id: node.run,
        session_key: node.key.clone(),
        agent: node.agent.clone(),
        label: node.label.clone(),
        status: node.status,
        reason: reason.map(|reason| match format {
            Format::V1 => reason.to_string().into(),
            Format::V2 => serde_json::to_value(reason).expect("a reason is plain data"),
        }),
        why: reason.filter(|_| format == Format::V2).map(ToString::to_string),
        holds: HeldRun::of(tree, node),
        depth: node.depth,
        parent: node.parent,
        children: children().count(),
        children_ended: children().filter(|child| child.status.is_terminal()).count(),
        children_completed: children().filter(|child| child.status.is_success()).count(),
        children_failed: children().filter(|child| child.status.is_failure()).count(),
        admitted_at: node.admitted_at,
        started_at: node.started_at,
        ended_at: node.ended_at,
        silent_ms: silence.map(|silence| silence.as_millis() as u64),
        execution_time_ms: node.execution_time().map(|time| time.as_millis() as u64),
        subtree_usage: subtree.usage,
        cost: subtree.cost,
    }
}

/// Prints the session that asks and all that is below it, as the door tells.
fn print_inside(runs: &[WireTreeNode], cx: &Invocation) -> Result<(), Failure> {
    if !cx.output.wants_json() {
        return cx.output.listing(LISTED, runs.iter().map(listed));
    }
    let with_count = |node: &WireTreeNode| {
        let children = runs.iter().filter(|run| run.parent == Some(node.run_id)).count();
        let mut value = serde_json::to_value(node).expect("a node is plain data");
        value["children"] = children.into();
        value
    };
    cx.output.json(&runs.iter().map(with_count).collect::<Vec<_>>())
}
