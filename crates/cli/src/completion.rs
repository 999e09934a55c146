//! Completion of command lines: the words that only the record, the configuration and the plugins know.
//!
//! The script of a shell calls this program with a variable and the words of the line. So what is offered is what is there.

use std::collections::BTreeSet;
use std::env;
use std::io;

use clap::{Arg, Command, CommandFactory};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use offshoot_display::{beginnings, neutral};
use offshoot_host::runtimes::BuiltInRuntime;
use offshoot_merge::{Asking, Strategy};
use offshoot_model::AgentId;
use offshoot_plugin_host::{Candidate, Package, PlaceOrigin};

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
    let name = command.get_name().to_owned();
    command.mut_args(|arg| offered(&name, arg)).mut_subcommands(with_words)
}

fn offered(command: &str, arg: Arg) -> Arg {
    let names = arg.get_value_names().unwrap_or_default();
    let words: fn() -> Vec<CompletionCandidate> =
        match (command, arg.get_id().as_str(), names.first().map(|name| name.as_str())) {
            (_, _, Some("RUN" | "KEY")) => runs,
            (_, _, Some("ID")) => agents,
            // Outside of a tree, where a shell completes, it takes no merge that needs one.
            ("merge", _, Some("STRATEGY")) => merges_of_results,
            (_, _, Some("STRATEGY")) => merges,
            (_, _, Some("PLUGIN")) => plugins,
            ("remove", "plugin", _) => own_plugins,
            // The name of a new plugin is none that is there.
            ("new", ..) => return arg,
            (_, "runtime", _) => runtimes,
            _ => return arg,
        };
    arg.add(ArgValueCandidates::new(words))
}

/// Puts together this use of the command. None of its flags is known: the line is not finished.
fn invocation() -> Option<Invocation> {
    let global = Global { quiet: true, ..Global::default() };
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

/// The agents of the configuration, and the one that is always there.
fn agents() -> Vec<CompletionCandidate> {
    agent_ids().into_iter().map(CompletionCandidate::new).collect()
}

fn agent_ids() -> BTreeSet<String> {
    let config = invocation().and_then(|cx| load::config(&cx, &LimitArguments::default()).ok());
    let ids = config.iter().flat_map(|config| config.agents().map(|agent| agent.id().to_string()));
    ids.chain([AgentId::main().to_string()]).collect()
}

/// The merges of a tree: those of results, those that ask an agent, each agent, or a command, and that of patches.
fn merges() -> Vec<CompletionCandidate> {
    let agents = agent_ids();
    let asking = Asking::NAMES.iter().flat_map(|written| match written.strip_suffix("AGENT") {
        Some(way) => agents.iter().map(|agent| format!("{way}{agent}")).collect(),
        None => vec![written.trim_end_matches("LINE").to_owned()],
    });
    let words = asking.chain(["patch".to_owned()]).map(CompletionCandidate::new);
    merges_of_results().into_iter().chain(words).collect()
}

/// The merges that are built in, and those of plugins.
fn merges_of_results() -> Vec<CompletionCandidate> {
    let found = packages();
    let of_plugins = found.iter().flat_map(|(_, package)| &package.merges);
    let of_plugins: BTreeSet<String> = of_plugins.map(|name| format!("plugin:{name}")).collect();
    let names = Strategy::NAMES.iter().map(|name| (*name).to_owned()).chain(of_plugins);
    names.map(CompletionCandidate::new).collect()
}

/// The runtimes that are built in, and those of plugins.
fn runtimes() -> Vec<CompletionCandidate> {
    let built_in = BuiltInRuntime::names().map(str::to_owned);
    let found = packages();
    let of_plugins = found.iter().flat_map(|(_, package)| &package.runtimes);
    let names: BTreeSet<String> = of_plugins.map(ToString::to_string).chain(built_in).collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The plugins that are found, with their folders, whether they can be used or not.
fn plugins() -> Vec<CompletionCandidate> {
    candidates().into_iter().map(|found| named(&found)).collect()
}

/// The plugins in the user's own folder.
fn own_plugins() -> Vec<CompletionCandidate> {
    let own = candidates().into_iter().filter(|found| found.origin == PlaceOrigin::User);
    own.map(|found| named(&found)).collect()
}

fn named(found: &Candidate) -> CompletionCandidate {
    let folder = found.folder.display().to_string();
    CompletionCandidate::new(&found.name).help(Some(neutral::line(&folder).into_owned().into()))
}

/// The packages that take effect, with their plugins. Nothing is loaded.
fn packages() -> Vec<(String, Package)> {
    let found = candidates().into_iter().filter(|found| found.shadowed_by.is_none());
    found.filter_map(|found| Some((found.name, found.package.ok()?))).collect()
}

fn candidates() -> Vec<Candidate> {
    let found = || {
        let cx = invocation()?;
        let config = load::config(&cx, &LimitArguments::default()).ok()?;
        crate::plugins::plugins(&[], &config, &cx).ok()?.search().all().ok()
    };
    found().unwrap_or_default()
}
