//! `offshoot plugin check`.

use clap::Args;
use offshoot_display::json::Document;
use offshoot_host::Plugins;
use offshoot_plugin_host::{Checked, Extent, Finding, Suite, Verdict};

use super::{Meant, OnePluginArguments, standard_input};
use crate::arguments::FormatArgument;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::harmless;

/// `offshoot plugin check`.
#[derive(Debug, Args)]
pub(crate) struct CheckPluginArguments {
    #[command(flatten)]
    pub(crate) one: OnePluginArguments,

    /// A task that the runtime completes by itself
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub(crate) task: String,

    /// A task that the runtime does not end before it is stopped; without one, stopping is not checked
    #[arg(long, value_name = "TEXT")]
    pub(crate) hanging_task: Option<String>,

    /// A task with which the runtime asks for a child, waits for it and completes; without one, children are not checked
    #[arg(long, value_name = "TEXT")]
    pub(crate) asking_task: Option<String>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// Runs a plugin through the contract, in a process of its own.
pub(super) fn run(arguments: &CheckPluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let plugins = super::plugins(&arguments.one.path, cx)?;
    let checked = Meant::of(&arguments.one.plugin, &plugins, cx)?.check(&plugins)?;
    let suite = order(arguments, &checked, &plugins)?;
    let trier = plugins.trier("plugin-suite")?;
    let findings = offshoot_host::aside(offshoot_plugin_host::check(&trier, &checked, suite))??;
    match cx.output.wants_json() {
        true => cx.output.document(&findings, Document::Findings)?,
        false => print(&findings, cx)?,
    }
    let broken = findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Broken(_)));
    match broken.count() {
        0 => Ok(()),
        broken => Err(Failure::new(FailureCode::RulesBroken,
            Exit::NoRuntime,
            format_args!("{} breaks {broken} of {} rules", checked.path().display(), findings.len()),
        )
        .hint(match is_rust(&checked) {
            true => "the rules are those of docs/plugins.md; `cargo test` with check_contract finds most of them sooner",
            false => "the rules are those of docs/plugins.md",
        })),
    }
}

/// True if the plugin is a library, or a program beside a manifest of cargo.
fn is_rust(checked: &Checked) -> bool {
    !checked.is_program() || checked.path().with_file_name("Cargo.toml").is_file()
}

/// Is the process that checks.
pub(crate) fn suite(cx: &Invocation) -> Result<(), Failure> {
    let order = standard_input()?;
    let print = |line: &str| {
        // A reader that closes the output has seen enough.
        let _ = cx.output.stream(|out| out.write_all(line.as_bytes()));
    };
    let suite = offshoot_plugin_host::suite(&order, cx.environment.variables.clone(), print);
    offshoot_host::threads()?
        .block_on(suite)
        .map_err(|error| Failure::told(Exit::BadInput, &error))?;
    Ok(())
}

/// Checks what the plugin says that it offers, with the settings of the configuration.
fn order(
    arguments: &CheckPluginArguments,
    checked: &Checked,
    plugins: &Plugins,
) -> Result<Suite, Failure> {
    let manifest = plugins.describe(checked, &Extent::default())?.manifest;
    let runtimes = manifest.runtimes.into_iter();
    let merges = manifest.merges.into_iter();
    Ok(Suite {
        config: plugins.settings(checked),
        runtimes: runtimes
            .map(|it| (it.name.clone(), plugins.runtime_settings(&it.name)))
            .collect(),
        merges: merges.map(|it| (it.name.clone(), plugins.merge_settings(&it.name))).collect(),
        task: arguments.task.clone(),
        hanging_task: arguments.hanging_task.clone(),
        asking_task: arguments.asking_task.clone(),
    })
}

fn print(findings: &[Finding], cx: &Invocation) -> Result<(), Failure> {
    cx.output.stream(|out| {
        let mut subject = "";
        for finding in findings {
            if finding.subject != subject {
                subject = &finding.subject;
                writeln!(out, "{}", harmless(subject))?;
            }
            let rule = &finding.rule;
            match &finding.verdict {
                Verdict::Kept => writeln!(out, "  kept     {rule}")?,
                Verdict::Broken(found) => {
                    writeln!(out, "  BROKEN   {rule}: {}", harmless(found))?;
                }
                Verdict::Skipped(why) => writeln!(out, "  skipped  {rule}: {why}")?,
            }
        }
        Ok(())
    })
}
