//! An event in a line.

use std::fmt;
use std::time::Duration;

use offshoot_model::{
    Cost, Ending, Event, EventKind, KeeperFault, MicroUsd, Origin, Reason, RunStatus, TokenCount,
    Usage,
};

use crate::style::Style;
use crate::{name, neutral, number};

/// When, which run, what, and what there is to say about it. For streams that are no terminal, and for reading a record.
pub fn line(event: &Event) -> Line<'_> {
    Line { event, style: Style::Plain }
}

/// See [`line()`]. Shown without a newline.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    event: &'a Event,
    style: Style,
}

impl Line<'_> {
    /// In this style; plain unless asked.
    #[must_use]
    pub const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { at, run, kind, .. } = self.event;
        let beside = format!("{}  {run}", number::moment(*at));
        write!(f, "{}  ", self.style.faint(beside))?;
        match kind {
            EventKind::Ended(ending) => return self.ended(ending, f),
            EventKind::Refused { .. } | EventKind::Removal { error: Some(_) } => {
                write!(f, "{}", self.style.warning(kind.name()))?
            }
            _ => f.write_str(kind.name())?,
        }
        match detail(kind) {
            detail if detail.is_empty() => Ok(()),
            detail => write!(f, "  {detail}"),
        }
    }
}

impl Line<'_> {
    fn ended(&self, ending: &Ending, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = ending.status();
        write!(f, "{}", self.style.status(status))?;
        if ending.execution_time_ms > 0 {
            let time = Duration::from_millis(ending.execution_time_ms);
            write!(f, "  {}", number::duration(time))?;
        }
        if let Some(used) = used(&ending.usage, &ending.cost) {
            write!(f, "  {used}")?;
        }
        match why(ending) {
            Some(why) => write!(f, "  {why}"),
            None => Ok(()),
        }
    }
}

/// Why a run is no success, in one line, with what it said last.
pub(crate) fn why(ending: &Ending) -> Option<String> {
    if ending.status() == RunStatus::Completed {
        return None;
    }
    let reason = beside_status(&ending.reason);
    Some(match ending.diagnostics.as_deref().map(neutral::line) {
        Some(diagnostics) if !diagnostics.is_empty() => format!("{reason}: {diagnostics}"),
        _ => reason,
    })
}

/// The reason as it stands behind the status, which is not said twice: `cancelled  by its parent`.
pub(crate) fn beside_status(reason: &Reason) -> String {
    let text = reason.to_string();
    let status = reason.status().as_str().replace('_', " ");
    let rest = text.strip_prefix(&status).map(str::trim_start).filter(|rest| !rest.is_empty());
    neutral::line(rest.unwrap_or(&text)).into_owned()
}

/// Tokens and money, where there is anything to tell: a command of the operator's own uses neither.
pub fn used(usage: &Usage, cost: &Cost) -> Option<String> {
    match (*usage == Usage::default(), cost.is_none()) {
        (true, true) => None,
        (false, true) => Some(number::tokens(usage.total())),
        (true, false) => Some(number::cost(cost)),
        (false, false) => {
            Some(format!("{}  {}", number::tokens(usage.total()), number::cost(cost)))
        }
    }
}

fn detail(kind: &EventKind) -> String {
    match kind {
        EventKind::Admitted(admitted) => {
            let name = name::name(&admitted.agent, admitted.label.as_deref());
            let who = match (admitted.origin, admitted.parent) {
                (Origin::Root, _) | (_, None) => "opened by the operator".to_owned(),
                (Origin::Piece, Some(_)) => "a piece".to_owned(),
                (Origin::Agent, Some(parent)) => format!("asked for by {parent}"),
            };
            format!("{name} (depth {}), {who}", admitted.depth)
        }
        EventKind::Refused { refusal, times } => {
            let message = neutral::line(&refusal.message);
            format!("{}: {message}{}", refusal.code, number::times(*times))
        }
        EventKind::Started { process: Some(process) } => format!("process {}", process.pid),
        EventKind::Progress { text } | EventKind::Reported { text } => {
            neutral::line(text).into_owned()
        }
        EventKind::Used { usage, cost } => used(usage, cost).unwrap_or_default(),
        EventKind::BusyWaiting { cpu_ms, wait_ms } => number::busy(*cpu_ms, *wait_ms),
        EventKind::Stopping { reason } => neutral::line(&reason.to_string()).into_owned(),
        EventKind::BudgetNotice => "four fifths of its budget are used".to_owned(),
        EventKind::Overrun { tokens, micro_usd } => format!(
            "{} and {} more than reserved",
            number::tokens(TokenCount::Known(*tokens)),
            number::dollars(MicroUsd::from_micros(*micro_usd))
        ),
        EventKind::BudgetRaised { tokens, micro_usd } => format!(
            "{} and {} more, by the operator",
            number::tokens(TokenCount::Known(*tokens)),
            number::dollars(MicroUsd::from_micros(*micro_usd))
        ),
        EventKind::StrayEnded { pid, name } => {
            format!("process {pid} ({}), which had left its run, was ended", neutral::line(name))
        }
        EventKind::KeeperFailed { pid, found, error } => {
            keeper_failed(*pid, *found, error.as_deref())
        }
        EventKind::StallLent => "its holders waited for it in silence".to_owned(),
        EventKind::Merged(merged) => format!(
            "{}: {} results, {} failures",
            neutral::line(&merged.strategy),
            number::count(merged.merged.into()),
            number::count(merged.failed.into())
        ),
        EventKind::Reopened => "a new supervisor holds the tree".to_owned(),
        EventKind::Resumed { attempt, continues, after, wait_ms } => {
            let how = if *continues { "goes on" } else { "begins again" };
            let wait = wait_ms
                .map(|wait| format!(" in {}", number::duration(Duration::from_millis(wait))));
            let after = after
                .as_ref()
                .map(|fault| format!(", after: {}", neutral::line(&fault.to_string())));
            let (wait, after) = (wait.unwrap_or_default(), after.unwrap_or_default());
            format!("{how}{wait}, attempt {attempt}{after}")
        }
        EventKind::TurnEnded { .. } => "further ones follow".to_owned(),
        EventKind::Kept { name, value } => {
            format!("{}, {}", neutral::line(name), number::bytes(value.size))
        }
        EventKind::Letter { from: Some(from), .. } => format!("from {from}"),
        EventKind::Letter { from: None, .. } => "from the operator".to_owned(),
        EventKind::Undelivered { .. } => "its parent is over".to_owned(),
        EventKind::Removal { error: Some(error) } => {
            format!("its folder could not be removed: {}", neutral::line(error))
        }
        EventKind::Removal { error: None } => "its folder is gone at last".to_owned(),
        EventKind::Delivered { redelivered: true, .. } => "to its parent, again".to_owned(),
        EventKind::Delivered { redelivered: false, .. } => "to its parent".to_owned(),
        EventKind::Started { process: None }
        | EventKind::Starting
        | EventKind::Waiting
        | EventKind::Returned
        | EventKind::Ended(_) => String::new(),
    }
}

/// What became of a keeper.
pub(crate) fn keeper_failed(pid: u32, found: KeeperFault, error: Option<&str>) -> String {
    let found = found.words();
    match error {
        None => format!("the keeper, process {pid}, {found}; another one has taken its place"),
        Some(error) => {
            format!(
                "the keeper, process {pid}, {found}, and there is no other: {}",
                neutral::line(error)
            )
        }
    }
}
