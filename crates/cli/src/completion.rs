//! Completion of command lines: the words that only the record, the configuration and the plugins know.
//!
//! The script of a shell calls this program with a variable and the words of the line. So what is offered is what is there.

use std::env;
use std::io;

use clap::{Arg, Command, CommandFactory};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use offshoot_display::{beginnings, neutral};
use offshoot_merge::Strategy;

use crate::arguments::{Arguments, Global, LimitArguments};
use crate::door::may_be_below;
use crate::environment::Environment;
use crate::invocation::Invocation;
use crate::load;
use crate::record::Record;

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "OFFSHOOT_COMPLETE";

/// So many runs are offered, the newest.
const RUNS: usize = 100;

/// Answers a shell that asks for completions. False where none does.
pub(crate) fn answer() -> clap::error::Result<bool> {
    let folder = env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(env::args_os(), folder.as_deref())
}

/// Writes the script that a shell of this name runs.
pub(crate) fn script(shell: &str) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(|| io::Error::other("unknown shell"))?;
    completer.write_registration(VARIABLE, "offshoot", "offshoot", "offshoot", &mut script)?;
    Ok(script)
}

/// The command line, with sources of words for the values of this name, wherever they stand.
fn command() -> Command {
    with_words(Arguments::command())
}

fn with_words(command: Command) -> Command {
    command.mut_args(offered).mut_subcommands(with_words)
}

fn offered(arg: Arg) -> Arg {
    let names = arg.get_value_names().unwrap_or_default();
    match names.first().map(|name| name.as_str()) {
        Some("RUN" | "KEY") => arg.add(ArgValueCandidates::new(runs)),
        Some("ID") => arg.add(ArgValueCandidates::new(agents)),
        Some("STRATEGY") => arg.add(ArgValueCandidates::new(merges)),
        _ => arg,
    }
}

/// Puts together this use of the command. None of its flags is known: the line is not finished.
fn invocation() -> Option<Invocation> {
    let global = Global {
        config: None,
        data_dir: None,
        log_file: None,
        json: false,
        quiet: true,
        verbose: 0,
    };
    Some(Invocation::new(global, Environment::read().ok()?))
}

/// The newest trees, then the runs of the newest one. Inside an agent nothing is read: most of it is not for the agent.
fn runs() -> Vec<CompletionCandidate> {
    let found = || {
        let cx = invocation().filter(|cx| !may_be_below(cx))?;
        let record = Record::open(&cx).ok()??;
        let ids = beginnings(record.sqlite().runs().ok()?.into_iter());
        let roots: Vec<_> = record.summaries().ok()?.into_iter().rev().take(RUNS).collect();
        let tree = record.tree(roots.first()?.root).ok()?;
        let root = |summary: &offshoot_store::RootSummary| {
            let label = record.store().admitted(summary.root, summary.root.run());
            let label = label.ok().flatten().and_then(|admitted| admitted.label);
            let over = if summary.ended { "over" } else { "open" };
            let text =
                format!("{over} {}", label.as_deref().map(neutral::line).unwrap_or_default());
            (summary.root.run(), text)
        };
        let below = tree.nodes().filter(|node| node.parent.is_some()).map(|node| {
            let label = node.label.as_deref().map(neutral::line).unwrap_or_default();
            (node.run, format!("{} {label}", node.status))
        });
        let runs = roots.iter().map(root).chain(below).take(2 * RUNS);
        let candidate = |(run, text): (_, String)| {
            let id: String = ids.get(&run).cloned()?;
            Some(CompletionCandidate::new(id).help(Some(text.trim_end().to_owned().into())))
        };
        let last = CompletionCandidate::new("last").help(Some("the newest tree".into()));
        Some(std::iter::once(last).chain(runs.filter_map(candidate)).collect())
    };
    found().unwrap_or_default()
}

/// The agents of the configuration.
fn agents() -> Vec<CompletionCandidate> {
    let config = invocation().and_then(|cx| load::config(&cx, &LimitArguments::default()).ok());
    let ids = config.iter().flat_map(|config| config.agents().map(|agent| agent.id().to_string()));
    ids.map(CompletionCandidate::new).collect()
}

/// The merges that are built in.
fn merges() -> Vec<CompletionCandidate> {
    Strategy::NAMES.iter().map(CompletionCandidate::new).collect()
}
