//! `offshoot audit`.

use offshoot_audit::{Account, Audit, Deliveries, Findings, Unit};
use offshoot_display::number::count;
use offshoot_model::{ContentHash, RootId, Rules};
use offshoot_store::StoreError;
use serde::Serialize;

use crate::arguments::AuditArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// What came of an audit, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Audited {
    /// Whether the chain holds, every event could be read and there is no breach.
    holds: bool,
    chain: Chain,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    findings: Findings,
}

/// Whether the record is what was written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chain {
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Audits the tree of a run.
pub(crate) fn run(arguments: &AuditArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let record = Record::open_for(cx, &arguments.run)?;
    let found = record.find(&arguments.run)?;
    let audited = audit(&record, found.root);
    let exit = if audited.holds { Exit::Done } else { Exit::AgentFailed };
    match cx.output.wants_json() {
        true => cx.output.json(&audited)?,
        false => print(&audited, found.root, cx)?,
    }
    Ok(exit)
}

fn audit(record: &Record, root: RootId) -> Audited {
    let (mut audit, mut unreadable) = (Audit::new(), Vec::new());
    let proof = record.sqlite().prove_each(root, |event| match event {
        Ok(event) => audit.apply(&event),
        // What does not fit is told with the chain.
        Err(StoreError::Tampered { .. }) => {}
        Err(error) => unreadable.push(told(&error)),
    });
    let chain = match proof {
        Ok(proof) => Chain { holds: true, link: Some(proof.link), error: None },
        Err(error) => Chain { holds: false, link: None, error: Some(told(&error)) },
    };
    let findings = audit.finish();
    let holds = chain.holds && unreadable.is_empty() && findings.breaches.is_empty();
    Audited { holds, chain, unreadable, findings }
}

/// An error with what led to it, in a line.
fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn print(audited: &Audited, root: RootId, cx: &Invocation) -> Result<(), Failure> {
    let Audited { chain, unreadable, findings, .. } = audited;
    let mut rows = vec![["tree".to_owned(), root.to_string()]];
    let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
    row("events", count(findings.events));
    match &chain.link {
        Some(link) => row("chain", format!("holds, last link {link}")),
        None => row("chain", "does not hold".to_owned()),
    }
    row("runs", count(findings.runs));
    let of = |most: Option<u32>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let rules = findings.rules;
    let spawns = of(rules.map(|rules: Rules| rules.max_spawns));
    row("spawns", format!("{}{spawns}, {} refused", findings.spawns, findings.refusals));
    row("depth", findings.deepest.to_string());
    let most = of(rules.map(|rules| rules.max_concurrent));
    row("at once", format!("{}{most}", findings.peak_concurrency));
    let endings = findings.endings.iter().map(|(status, runs)| format!("{runs} {status}"));
    let unfinished = Some(findings.unfinished).filter(|&runs| runs > 0);
    let endings = endings.chain(unfinished.map(|runs| format!("{runs} without an end")));
    row("endings", endings.collect::<Vec<_>>().join(", "));
    let Deliveries { results, repeated, to_nobody } = findings.deliveries;
    row("deliveries", format!("{results}, {repeated} repeated, {to_nobody} to nobody"));
    for account in &findings.budgets {
        row("budget", budget(account));
    }
    if findings.clock_set_back > 0 {
        row("clock", format!("set back {} times", findings.clock_set_back));
    }
    for what in &findings.not_recorded {
        row("not recorded", (*what).to_owned());
    }
    cx.output.table(&rows)?;
    for complaint in chain.error.iter().chain(unreadable) {
        cx.output.line(format_args!("breach: {complaint}"))?;
    }
    for breach in &findings.breaches {
        cx.output.line(format_args!("breach: {breach}"))?;
    }
    let many = findings.breaches.len() + unreadable.len() + usize::from(!chain.holds);
    cx.output.line(match many {
        0 => "no breach".to_owned(),
        1 => "1 breach".to_owned(),
        many => format!("{many} breaches"),
    })
}

/// `granted 1000 tokens = used 200 + overrun 0 + reserved 300 + free 500`
fn budget(account: &Account) -> String {
    let Account { unit, granted, used, overrun, reserved, free, deficit } = account;
    let unit = match unit {
        Unit::Tokens => "tokens",
        Unit::MicroUsd => "millionths of a dollar",
    };
    let more = match deficit {
        0 => String::new(),
        deficit => format!(" + deficit {deficit}"),
    };
    format!(
        "granted {granted}{more} {unit} = used {used} + overrun {overrun} + reserved {reserved} + free {free}"
    )
}
