//! `offshoot audit`.

pub(crate) mod signature;

use std::path::{Path, PathBuf};

use clap::Args;
use offshoot_audit::{
    Account, AccountPeak, Audit, Busy, Deliveries, Findings, HostAudit, HostFindings, HostTree,
    Unit,
};
use offshoot_display::number::{busy, count};
use offshoot_model::{ContentHash, Event, RootId, Rules, error_chain};
use offshoot_store::ChainHead;
use serde::Serialize;
use serde_json::json;

use crate::arguments::value::value;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::wording;

/// The form of the last link of a record.
const LINK: &str =
    "64 hexadecimal digits, which `offshoot audit RUN --head` printed last in its line";
const LINK_EXAMPLE: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// Prove the record of a tree, and count again what it was held to
///
/// The hash chain is recomputed first. Then slots, depths, spawns and their rates, agents, cycles, rights, budgets, times, breakers,
/// attempts, endings and deliveries are counted again from the events alone, by code that shares nothing with what ran the tree. Exits 1
/// on any breach.
///
/// The chain proves that a record is consistent, not that it is the one that was written: who can write the database can compute it
/// again. The last link stands for the whole record. Keep it elsewhere (--head, or `audit.heads` in the configuration: a file, or a
/// program that reads it), and --since tells whether the record still continues it; or sign it (--sign, or `audit.sign`), and --verify
/// tells whether it is still the one that was signed. Keys are those of ssh, of the kind ed25519.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot audit
  offshoot audit 0198c7
  offshoot audit --all
  offshoot audit 0198c7 --json | jq .breaches
  offshoot audit --head >> /mnt/elsewhere/heads
  offshoot audit 0198c7 --since 5f0c…
  offshoot audit 0198c7 --sign ~/.ssh/id_ed25519 > 0198c7.sig
  offshoot audit 0198c7 --verify 0198c7.sig --key ~/.ssh/id_ed25519.pub

Environment:
  OFFSHOOT_AUDIT_HEADS  a file to which each tree's last link is appended when the command that ran the tree ends,
                        instead of audit.heads")]
pub(crate) struct AuditArguments {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N` [default: last; with --head:
    /// all trees]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Audit all trees, and count over all of them the slots that they share (`host.maxConcurrent`, `host.maxConcurrentPerAccount`)
    #[arg(long, conflicts_with_all = ["run", "head", "since", "sign", "verify"])]
    pub(crate) all: bool,

    /// Print the last link of each tree, or of that of RUN, and nothing else: tree, number of events, link
    #[arg(long, conflicts_with_all = ["since", "sign", "verify"])]
    pub(crate) head: bool,

    /// Make sure that the record continues the one that had this link
    #[arg(long, value_name = "LINK", value_parser = value::<ContentHash>(LINK, LINK_EXAMPLE))]
    pub(crate) since: Option<ContentHash>,

    /// Print a signature of the last link of a tree that is over, by this private key of ssh (ed25519, without a passphrase)
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    pub(crate) sign: Option<PathBuf>,

    /// Make sure that this is a signature of the tree's last link, or a list of links with one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) verify: Option<PathBuf>,

    /// The public key for --verify
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) key: Option<PathBuf>,
}

/// The result of an audit, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Audited {
    /// True if the chain holds, every event could be read and no rule was broken.
    holds: bool,
    chain: Chain,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    findings: Findings,
}

/// The proof of a record's chain.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chain {
    holds: bool,
    link: Option<ContentHash>,
    error: Option<String>,
    /// The event whose link was kept, where one was asked for that is there.
    since: Option<u64>,
    /// The fingerprint of the key that has signed the last link, where that was asked for.
    signed_by: Option<String>,
}

/// Audits the tree of a run.
pub(crate) fn run(arguments: &AuditArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if arguments.all {
        return all(cx);
    }
    let run = match &arguments.run {
        None if arguments.head => return heads(Record::open(cx)?.as_ref(), None, cx),
        run => run.as_deref().unwrap_or("last"),
    };
    let (record, found) = Record::open_with(cx, run)?;
    if arguments.head {
        return heads(Some(&record), Some(found.root), cx);
    }
    let mut audited = audit(&record, found.root, |_| {});
    if audited.chain.holds {
        let head = head(&record, found.root)?;
        if let Some(key) = &arguments.sign {
            return sign(&audited, &head, key, cx);
        }
        if let (Some(file), Some(key)) = (&arguments.verify, &arguments.key) {
            audited.chain.signed_by = Some(signature::verify(found.root, &head, file, key)?);
        }
        if let Some(link) = arguments.since {
            let place = record.sqlite().place_of_link(found.root, link);
            continues(&mut audited, place?);
        }
    }
    cx.output.result(&audited, || print(&audited, found.root, cx))?;
    Ok(if audited.holds { Exit::Done } else { Exit::AgentFailed })
}

/// The result of an audit of all trees, as JSON.
#[derive(Default, Serialize)]
struct AllAudited {
    /// True if each tree holds, and all of them together do.
    holds: bool,
    /// The number of trees.
    trees: u64,
    /// The trees that do not hold.
    broken: Vec<RootId>,
    /// The slots that the trees held at once.
    host: HostFindings,
}

/// Audits all trees, each by itself and all of them together.
fn all(cx: &Invocation) -> Result<Exit, Failure> {
    let (mut audited, mut host) = (AllAudited::default(), HostAudit::default());
    if let Some(record) = Record::open(cx)? {
        for summary in record.summaries()? {
            let mut slots = HostTree::default();
            let of_tree = audit(&record, summary.root, |event| slots.apply(event));
            host.add(summary.root, slots);
            audited.trees += 1;
            if !of_tree.holds {
                audited.broken.push(summary.root);
            }
        }
    }
    audited.host = host.finish();
    audited.holds = audited.broken.is_empty() && audited.host.breaches.is_empty();
    let AllAudited { holds, trees, broken, host } = &audited;
    cx.output.result(&audited, || {
        let peak = match host.peak {
            None => "not bounded (host.maxConcurrent)".to_owned(),
            Some(peak) => format!("{peak} at most, where host.maxConcurrent bounded them"),
        };
        let mut rows =
            vec![["trees".to_owned(), count(*trees)], ["at once over all".to_owned(), peak]];
        rows.extend(host.accounts.iter().map(account_row));
        cx.output.table(&rows)?;
        let broken =
            broken.iter().map(|root| format!("tree {root}: `offshoot audit {root}` says what"));
        print_breaches(broken.chain(host.breaches.iter().map(ToString::to_string)), cx)
    })?;
    Ok(if *holds { Exit::Done } else { Exit::AgentFailed })
}

/// Returns the name and the text of a line about the slots of an account.
fn account_row(peak: &AccountPeak) -> [String; 2] {
    let AccountPeak { account, peak, max_concurrent } = peak;
    let name = format!("{account} at once");
    [name, format!("{peak} of {max_concurrent} (host.maxConcurrentPerAccount)")]
}

/// Prints last links, to be kept elsewhere.
fn heads(record: Option<&Record>, only: Option<RootId>, cx: &Invocation) -> Result<Exit, Failure> {
    let heads = record.map(|record| record.sqlite().chain_heads(only)).transpose();
    let heads = heads?.unwrap_or_default();
    let json = |ChainHead { root, events, link }: &ChainHead| json!({ "tree": root, "events": events, "link": link });
    cx.output.result(&heads.iter().map(json).collect::<Vec<_>>(), || {
        heads.iter().try_for_each(|ChainHead { root, events, link }| {
            cx.output.line(format_args!("{root} {events} {link}"))
        })
    })?;
    Ok(Exit::Done)
}

/// Reads the last link of a tree that is to be audited.
fn head(record: &Record, root: RootId) -> Result<ChainHead, Failure> {
    let heads = record.sqlite().chain_heads(Some(root))?;
    let missing = || {
        Failure::input(FailureCode::NoTreeRecord, format_args!("tree {root} has no record"))
            .hint("`offshoot list --all` shows what is recorded")
    };
    heads.first().copied().ok_or_else(missing)
}

/// Signs the last link of a tree that is over and holds to its limits.
fn sign(audited: &Audited, head: &ChainHead, key: &Path, cx: &Invocation) -> Result<Exit, Failure> {
    let ChainHead { root, .. } = head;
    if !audited.holds {
        return Err(Failure::new(
            FailureCode::TreeHasBreaches,
            Exit::AgentFailed,
            format_args!("tree {root} has breaches"),
        )
        .hint(format_args!("`offshoot audit {root}` names them")));
    }
    if audited.findings.unfinished > 0 {
        return Err(Failure::input(
            FailureCode::TreeNotOver,
            format_args!("tree {root} is not over"),
        )
        .hint("its record goes on, and a signature would be of a part of it"));
    }
    cx.output.bytes(signature::SigningKey::read(key)?.sign(*root, head)?.as_bytes())?;
    Ok(Exit::Done)
}

/// Notes whether a link that was kept is one of this record.
fn continues(audited: &mut Audited, place: Option<u64>) {
    audited.chain.since = place;
    if place.is_none() {
        audited.holds = false;
        let error = "no event of it has the link that was kept: the link is of another tree, or the record was written anew since then";
        audited.chain.error = Some(error.to_owned());
    }
}

/// Audits one tree. Each of its events is shown to `see`, too.
fn audit(record: &Record, root: RootId, mut see: impl FnMut(&Event)) -> Audited {
    let (mut audit, mut unreadable) = (Audit::new(), Vec::new());
    let proof = record.sqlite().prove_each(root, |event| match event {
        Ok(event) => {
            audit.apply(&event);
            see(&event);
        }
        Err(error) => unreadable.push(error_chain(&error)),
    });
    let chain = match proof {
        Ok(proof) => Chain { holds: true, link: Some(proof.link), ..Chain::default() },
        Err(error) => Chain { error: Some(error_chain(&error)), ..Chain::default() },
    };
    let findings = audit.finish();
    let holds = chain.holds && unreadable.is_empty() && findings.breaches.is_empty();
    Audited { holds, chain, unreadable, findings }
}

fn print(audited: &Audited, root: RootId, cx: &Invocation) -> Result<(), Failure> {
    let Audited { chain, unreadable, findings, .. } = audited;
    let mut rows = vec![["tree".to_owned(), root.to_string()]];
    let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
    row("events", count(findings.events));
    match &chain.link {
        Some(link) if chain.holds => row("chain", format!("holds, last link {link}")),
        _ => row("chain", "does not hold".to_owned()),
    }
    if let Some(event) = chain.since {
        row("since", format!("the link that was kept is that of event {event}"));
    }
    if let Some(key) = &chain.signed_by {
        row("signed", format!("by {key}"));
    }
    row("runs", count(findings.runs));
    let of = |most: Option<u32>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let rules = findings.rules;
    let spawns = of(rules.map(|rules: Rules| rules.max_spawns));
    row("spawns", format!("{}{spawns}, {} refused", findings.spawns, findings.refusals));
    row("depth", findings.deepest.to_string());
    let most = of(rules.map(|rules| rules.max_concurrent));
    row("at once", format!("{}{most}", findings.peak_concurrency));
    for peak in &findings.accounts {
        let [name, text] = account_row(peak);
        row(&name, text);
    }
    let endings = findings.endings.iter().map(|(status, runs)| format!("{runs} {status}"));
    let unfinished = Some(findings.unfinished).filter(|&runs| runs > 0);
    let endings = endings.chain(unfinished.map(|runs| format!("{runs} without an end")));
    row("endings", endings.collect::<Vec<_>>().join(", "));
    let Deliveries { results, repeated, undelivered } = findings.deliveries;
    row("deliveries", format!("{results}, {repeated} repeated, {undelivered} not delivered"));
    for Busy { run, cpu_ms, wait_ms, .. } in &findings.busy_waiting {
        row("busy waiting", format!("{run} {}", busy(*cpu_ms, *wait_ms)));
    }
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
    let complaints = chain.error.iter().chain(unreadable).cloned();
    print_breaches(complaints.chain(findings.breaches.iter().map(ToString::to_string)), cx)
}

/// Prints each breach, and how many there are.
fn print_breaches(breaches: impl Iterator<Item = String>, cx: &Invocation) -> Result<(), Failure> {
    let mut many = 0;
    for breach in breaches {
        cx.output.line(format_args!("breach: {breach}"))?;
        many += 1;
    }
    cx.output.line(match many {
        0 => "no breach".to_owned(),
        1 => "1 breach".to_owned(),
        many => format!("{many} breaches"),
    })
}

/// `granted 1000 tokens = used 200 + overrun 0 + reserved 300 + free 500`, or the same in dollars to the millionth, and the meaning of an
/// overrun inside the budget.
fn budget(account: &Account) -> String {
    let Account { unit, granted, used, overrun, reserved, free, deficit } = *account;
    let show = |amount: u128| match unit {
        Unit::Tokens => amount.to_string(),
        Unit::MicroUsd => wording::amount(unit, amount),
    };
    let of = match unit {
        Unit::Tokens => " tokens",
        Unit::MicroUsd => "",
    };
    let more = match deficit {
        0 => String::new(),
        deficit => format!(" + deficit {}", show(deficit)),
    };
    let meaning = match (overrun, deficit) {
        (1.., 0) => {
            " (overrun: used by runs below it beyond their own shares, and inside this budget)"
        }
        _ => "",
    };
    let [granted, used, overrun, reserved, free] =
        [granted.into(), used, overrun, reserved, free].map(show);
    format!(
        "granted {granted}{more}{of} = used {used} + overrun {overrun} + reserved {reserved} + free {free}{meaning}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shown_in_its_unit_and_adds_up() {
        let of = |unit, deficit| Account {
            unit,
            granted: 1_000_000,
            used: 41_601,
            overrun: 0,
            reserved: 8_399,
            free: 950_000,
            deficit,
        };
        assert_eq!(
            budget(&of(Unit::MicroUsd, 0)),
            "granted $1.00 = used $0.041601 + overrun $0.00 + reserved $0.008399 + free $0.95"
        );
        assert_eq!(
            budget(&of(Unit::Tokens, 5)),
            "granted 1000000 + deficit 5 tokens = used 41601 + overrun 0 + reserved 8399 + free 950000"
        );
    }
}
