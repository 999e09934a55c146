//! `offshoot config`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use indexmap::IndexMap;
use offshoot_config::{Config, Valued, init_template, schema};
use offshoot_host::runtimes::{
    Ineffective, UnpricedModel, check_options, misspelt, unpriced, without_effect,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::init::write_new;
use crate::arguments::LimitArguments;
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::load;
use crate::project::{CONFIG_FILES, PROJECT_FOLDER};

/// Look into the configuration
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every value that is set, and where
    Show,
    /// Print the limits that hold for an agent, and where each comes from
    #[command(after_help = "\
Examples:
  offshoot config resolve
  offshoot config resolve --agent reviewer --json")]
    Resolve {
        /// The agent
        #[arg(long, value_name = "ID", default_value = "main")]
        agent: String,

        #[command(flatten)]
        limits: Box<LimitArguments>,
    },
    /// Say what is wrong with a file, or that nothing is
    #[command(after_help = "\
Examples:
  offshoot config check
  offshoot config check .offshoot/config.toml")]
    Check {
        /// The file, TOML or JSON5 [default: the whole configuration that holds in this folder]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of configuration files
    Schema,
    /// Write a configuration file (TOML) with every key and its meaning, all commented out
    #[command(after_help = "\
Examples:
  offshoot config init
  offshoot config init ~/.config/offshoot/config.toml")]
    Init {
        /// The file; it must not exist [default: .offshoot/config.toml]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// Everything that is set, as JSON.
#[derive(Serialize)]
struct Shown {
    values: IndexMap<String, Valued<Value>>,
    /// Keys of another system, accepted without effect.
    foreign: IndexMap<String, String>,
    /// Files that are there and take no effect, and why.
    ignored: IndexMap<PathBuf, String>,
}

/// Answers about the configuration.
pub(crate) fn run(command: ConfigCommand, cx: &Invocation) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show => show(cx),
        ConfigCommand::Resolve { agent, limits } => resolve(&agent, &limits, cx),
        ConfigCommand::Check { file } => check(file.as_deref(), cx),
        ConfigCommand::Schema => cx.output.json(&schema()),
        ConfigCommand::Init { file } => init(file, cx),
    }
}

fn show(cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    let foreign = config.foreign().iter().map(|key| (key.value.clone(), key.origin.to_string()));
    let ignored = config.ignored().iter().map(|file| (file.path.clone(), file.reason.clone()));
    let shown = Shown {
        values: config.values().collect(),
        foreign: foreign.collect(),
        ignored: ignored.collect(),
    };
    cx.output.result(&shown, || {
        cx.output.values("", &shown.values)?;
        shown.foreign.iter().try_for_each(|(key, origin)| {
            cx.output.line(format_args!("{key}  (accepted without effect, {origin})"))
        })
    })
}

fn resolve(agent: &str, limits: &LimitArguments, cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, limits)?;
    let agent = load::agent(&config, agent)?;
    let values = config.resolve(&agent).chain(config.host_values()).collect();
    cx.output.result(&values, || cx.output.values("", &values))
}

/// `config check`: reads a file, or the whole configuration that holds here, and says what is wrong with it.
fn check(file: Option<&Path>, cx: &Invocation) -> Result<(), Failure> {
    let problem =
        |complaint: &Complaint| json!({ "message": complaint.message, "hint": complaint.hint });
    let read = match file {
        Some(file) => load::file(cx, file),
        None => load::config(cx, &LimitArguments::default()),
    };
    let read = read.and_then(|config| {
        check_options(&config)
            .map_err(|error| Failure { exit: Exit::BadInput, ..Failure::from(error) })?;
        Ok(config)
    });
    let config = match read {
        Ok(config) => config,
        Err(failure) => {
            let problems: Vec<Value> = failure.complaints.iter().map(problem).collect();
            return Err(Failure { json: Some(json!({ "problems": problems })), ..failure });
        }
    };
    let (refused, without_effect): (Vec<_>, Vec<_>) =
        without_effect(&config).into_iter().partition(|setting| setting.is_refused);
    let without_effect: Vec<String> =
        without_effect.iter().map(ToString::to_string).chain(foreign_settings(&config)).collect();
    if !refused.is_empty() {
        without_effect
            .iter()
            .for_each(|what| cx.output.warning(NoteCode::SettingWithoutEffect, what));
        let failure = |setting: &Ineffective| {
            Failure::input(FailureCode::SettingImpossible, setting).maybe_hint(setting.hint())
        };
        let complaints: Vec<_> =
            refused.iter().flat_map(|setting| failure(setting).complaints).collect();
        let problems: Vec<Value> = complaints.iter().map(problem).collect();
        let json = json!({ "problems": problems, "withoutEffect": without_effect });
        return Err(Failure { exit: Exit::BadInput, complaints, json: Some(json) });
    }
    // A file names agents that other files define.
    let is_whole = config.undefined_children().next().is_none();
    let whole = match is_whole {
        true => None,
        false => load::config(cx, &LimitArguments::default()).ok(),
    };
    let undefined: Vec<String> = load::undefined_children(&config, whole.as_ref())
        .into_iter()
        .map(|undefined| undefined.text)
        .collect();
    let misspelt: Vec<String> = misspelt(&config).iter().map(ToString::to_string).collect();
    let unpriced = unpriced(&config);
    if cx.output.wants_json() {
        cx.output.json(&json!({
            "problems": [], "withoutEffect": without_effect, "undefinedChildren": undefined,
            "misspeltRuntimes": misspelt, "modelsWithoutPrice": unpriced,
        }))?;
    }
    undefined.iter().for_each(|what| cx.output.warning(NoteCode::ChildNotDefined, what));
    without_effect.iter().for_each(|what| cx.output.warning(NoteCode::SettingWithoutEffect, what));
    misspelt.iter().for_each(|what| cx.output.warning(NoteCode::SettingWithoutEffect, what));
    for UnpricedModel { place, model, is_metered } in &unpriced {
        let effect = match is_metered {
            true => "the meter refuses each request to it",
            false => "its cost is unknown, and a tree with a budget in dollars refuses its agents",
        };
        cx.output.warning(NoteCode::ModelWithoutPrice, format_args!(
            "the model `{model}` of {place} has no price: {effect}; set inputPerMillion and outputPerMillion in [prices.\"{model}\"], or runtimes.openai.cost = \"none\" where it costs nothing"
        ));
    }
    let notify = config.notify();
    let lone = notify.command.is_none() && (notify.on.is_some() || notify.silent_seconds.is_some());
    if lone {
        let text = "notify has no effect without notify.command";
        cx.output.warning(NoteCode::SettingWithoutEffect, text);
    }
    let warnings = undefined.len() + without_effect.len() + misspelt.len();
    let warnings = warnings + unpriced.len() + usize::from(lone);
    let file = file.map_or("the configuration".into(), Path::to_string_lossy);
    cx.output.note(
        NoteCode::ConfigurationFine,
        match warnings {
            0 => format!("{file}: nothing is wrong"),
            1 => format!("{file}: no error, and 1 warning"),
            many => format!("{file}: no error, and {many} warnings"),
        },
    );
    Ok(())
}

/// Returns a text for each key of another system that stands where a setting of all agents was probably meant.
fn foreign_settings(config: &Config) -> impl Iterator<Item = String> {
    let known: Vec<String> = config.resolve(config.default_agent()).map(|(key, _)| key).collect();
    config.foreign().iter().filter_map(move |foreign| {
        let (key, origin) = (&foreign.value, &foreign.origin);
        let meant = key.strip_prefix("agents.defaults.")?;
        known.iter().any(|known| known == meant).then(|| {
            format!("{key} ({origin}) has no effect, as a key of another system; what holds here is agents.defaults.subagents.{meant}")
        })
    })
}

/// `config init`: writes a file to begin with.
fn init(named: Option<PathBuf>, cx: &Invocation) -> Result<(), Failure> {
    let is_default = named.is_none();
    let path = named.unwrap_or_else(|| Path::new(PROJECT_FOLDER).join(CONFIG_FILES[0]));
    if !write_new(&path, &init_template(), cx)? {
        return Err(Failure::input(
            FailureCode::FileIsThere,
            format_args!("{} is there already", path.display()),
        )
        .hint("name another file, or remove this one"));
    }
    cx.output.line(path.display())?;
    if is_default {
        cx.output.hint(NoteCode::TrustNeeded, "it takes effect after `offshoot trust`");
    }
    Ok(())
}
