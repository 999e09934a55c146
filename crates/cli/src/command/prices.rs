//! `offshoot prices`.

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use indexmap::IndexMap;
use offshoot_config::{Config, Valued};
use serde::Serialize;
use serde_json::Value;
use toml::Table;

use crate::arguments::LimitArguments;
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::replaced_file;

/// Show the prices of models, or take them over from a file
///
/// Budgets in dollars and shown costs are relative to these prices. They stand in tables [prices.MODEL] of the
/// configuration.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  offshoot prices show
  offshoot prices show claude-sonnet-5-5
  offshoot prices update prices-2026-11.toml --dry-run")]
pub(crate) enum PricesCommand {
    /// List the models that have a price, one a line; of one model print every value, and where it stands
    #[command(after_help = "\
Examples:
  offshoot prices show
  offshoot prices show claude-sonnet-5-5
  Models whose prices have no date:
    offshoot prices show --json | jq -r 'to_entries[] | select(.value.date == null) | .key'")]
    Show {
        /// The model, as its table is called
        #[arg(value_name = "MODEL")]
        model: Option<String>,
    },
    /// Take the prices of a file over into prices.toml beside your own configuration
    #[command(after_help = "\
A file has a table for each model, in dollars for a million tokens:

  [prices.claude-sonnet-5-5]
  inputPerMillion = 3.0
  outputPerMillion = 15.0
  date = 2026-11-01

Example:
  offshoot prices update prices-2026-11.toml")]
    Update {
        /// A TOML file that holds tables [prices.MODEL] and nothing else
        ///
        /// The table of a model takes the place of the one that was taken over before, unless its date is earlier. Models that the
        /// file does not name keep their prices. What config.toml says of a model stands above both.
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Say what would change, and write nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// The first lines of the file that `update` writes.
const HEADER: &str = "\
# Prices of models, in dollars for a million tokens. `offshoot prices update FILE` writes this file.
# Your own prices belong into config.toml, which stands above it.
";

const SECTION: &str = "prices";

/// All values of all models, by the name of the model and the key.
type Prices = IndexMap<String, IndexMap<String, Valued<Value>>>;

/// The result of an update.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Updated {
    file: PathBuf,
    written: bool,
    models: IndexMap<String, Change>,
}

/// The change of one model.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Change {
    New,
    Changed {
        /// The keys that have another value, with the value of before and the new one.
        values: IndexMap<String, [Option<String>; 2]>,
    },
    Unchanged,
    /// The prices that are there are of a later day.
    Kept {
        /// The day of the prices that are there.
        date: String,
        /// The day of the prices in the file.
        of_file: String,
    },
}

/// Shows prices, or takes them over.
pub(crate) fn run(command: PricesCommand, cx: &Invocation) -> Result<(), Failure> {
    match command {
        PricesCommand::Show { model } => show(model.as_deref(), cx),
        PricesCommand::Update { file, dry_run } => update(&file, dry_run, cx),
    }
}

fn show(model: Option<&str>, cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    let mut prices = all(&config);
    if let Some(model) = model {
        let Some(of_model) = prices.swap_remove(model) else { return Err(unknown(model, &prices)) };
        return cx.output.result(&of_model, || cx.output.values("", &of_model));
    }
    if prices.is_empty() {
        cx.output.note(NoteCode::NoPrices, "no model has a price");
        cx.output.hint(
            NoteCode::NoPrices,
            "docs/meter.md shows a table; `offshoot prices update FILE` takes over a file of them",
        );
    }
    let row = |(model, values): (&String, &IndexMap<String, Valued<Value>>)| {
        let text = |key: &str| values.get(key).map(|it| plain(&it.value)).unwrap_or_default();
        let origin = values.values().next().map(|it| it.origin.to_string()).unwrap_or_default();
        [
            model.clone(),
            text("inputPerMillion"),
            text("outputPerMillion"),
            text("cacheReadPerMillion"),
            text("cacheWritePerMillion"),
            text("contextWindowTokens"),
            text("date"),
            origin,
        ]
    };
    cx.output.result(&prices, || {
        let headings = [
            "MODEL",
            "INPUT",
            "OUTPUT",
            "CACHE READ",
            "CACHE WRITE",
            "WINDOW",
            "DATE",
            "DEFINED IN",
        ];
        cx.output.listing(headings, prices.iter().map(row))
    })
}

/// Returns the values of the section, by model. A name may have points in it, and the key behind the last one has none.
fn all(config: &Config) -> Prices {
    let mut prices = Prices::new();
    for (path, value) in config.values() {
        let own = path.strip_prefix(SECTION).and_then(|rest| rest.strip_prefix('.'));
        if let Some((model, key)) = own.and_then(|rest| rest.rsplit_once('.')) {
            prices.entry(model.to_owned()).or_default().insert(key.to_owned(), value);
        }
    }
    prices
}

fn unknown(model: &str, prices: &Prices) -> Failure {
    let names: Vec<&str> = prices.keys().map(String::as_str).collect();
    let message = format_args!("no price is configured for the model `{model}`");
    let hint = match names.is_empty() {
        true => "no model has a price; docs/meter.md shows how one is written".to_owned(),
        false => format!("models with a price: {}", names.join(", ")),
    };
    Failure::input(FailureCode::NoPrice, message).hint(hint)
}

fn update(file: &Path, dry_run: bool, cx: &Invocation) -> Result<(), Failure> {
    let of_file = read(file, cx)?;
    let Some(path) = load::prices_file(cx) else {
        let message = "there is no folder for your configuration: HOME is not set";
        return Err(Failure::input(FailureCode::CannotWrite, message));
    };
    let mut kept = match path.is_file() {
        true => read(&path, cx)?,
        false => Table::new(),
    };
    let mut models = IndexMap::new();
    for (model, new) in of_file {
        let change = match kept.get(&model) {
            None => Change::New,
            Some(old) => change(old, &new),
        };
        if matches!(change, Change::New | Change::Changed { .. }) {
            kept.insert(model.clone(), new);
        }
        models.insert(model, change);
    }
    let is_new = |change: &Change| matches!(change, Change::New | Change::Changed { .. });
    let written = !dry_run && models.values().any(is_new);
    if written {
        write(&path, kept).map_err(Failure::writing(&path))?;
    }
    let updated = Updated { file: path, written, models };
    cx.output.result(&updated, || {
        updated.models.iter().try_for_each(|(model, change)| {
            cx.output.line(format_args!("{model}  {}", describe(change)))
        })
    })?;
    say_what_stands_above(&updated, cx)?;
    if dry_run {
        cx.output.note(NoteCode::PricesNotWritten, "nothing was written, because of --dry-run");
    }
    Ok(())
}

/// Returns the tables of a file, which holds prices alone. What a configuration refuses is refused here.
fn read(path: &Path, cx: &Invocation) -> Result<Table, Failure> {
    let text = load::user_file(cx, path)?;
    let path = path.display();
    let form = "`offshoot prices update --help` shows the form of such a file";
    let mut table: Table = text.parse().map_err(|_| {
        Failure::input(FailureCode::NotPrices, format_args!("{path} is not TOML")).hint(form)
    })?;
    let prices = table.remove(SECTION);
    if let Some(other) = table.keys().next() {
        let message = format_args!("{path} holds more than prices: `{other}`");
        return Err(Failure::input(FailureCode::NotPrices, message)
            .hint("only tables [prices.MODEL] are taken over; take the rest out"));
    }
    match prices {
        Some(toml::Value::Table(prices)) => Ok(prices),
        _ => {
            let message = format_args!("{path} holds no prices");
            Err(Failure::input(FailureCode::NotPrices, message).hint(form))
        }
    }
}

fn change(old: &toml::Value, new: &toml::Value) -> Change {
    // As TOML has it, or as text.
    let date = |prices: &toml::Value| {
        let date = prices.get("date")?;
        Some(date.as_str().map_or_else(|| date.to_string(), str::to_owned))
    };
    match (date(old), date(new)) {
        (Some(date), Some(of_file)) if of_file < date => return Change::Kept { date, of_file },
        _ => {}
    }
    let keys = |prices: &toml::Value| -> Vec<String> {
        prices.as_table().map(|it| it.keys().cloned().collect()).unwrap_or_default()
    };
    let mut values = IndexMap::new();
    for key in keys(old).into_iter().chain(keys(new)) {
        let both = [old, new].map(|prices| prices.get(&key).map(ToString::to_string));
        if both[0] != both[1] {
            values.insert(key, both);
        }
    }
    match values.is_empty() {
        true => Change::Unchanged,
        false => Change::Changed { values },
    }
}

fn describe(change: &Change) -> String {
    match change {
        Change::New => "new".to_owned(),
        Change::Unchanged => "unchanged".to_owned(),
        Change::Kept { date, of_file } => {
            format!("kept: its prices are of {date}, and those of the file of {of_file}")
        }
        Change::Changed { values } => {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            let one = |(key, [old, new]): (&String, &[Option<String>; 2])| {
                format!("{key} {} -> {}", text(old), text(new))
            };
            values.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

fn write(path: &Path, prices: Table) -> io::Result<()> {
    let all = Table::from_iter([(SECTION.to_owned(), toml::Value::Table(prices))]);
    let text = toml::to_string(&all).map_err(io::Error::other)?;
    replaced_file::replace(path, format!("{HEADER}\n{text}").as_bytes())
}

/// Names the models of which another file says something else: the update does not change what they cost.
fn say_what_stands_above(updated: &Updated, cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
    let file = updated.file.display().to_string();
    for (model, values) in all(&config) {
        let above = values.values().find(|value| !value.origin.to_string().contains(&file));
        if let Some(above) = above.filter(|_| updated.models.contains_key(&model)) {
            cx.output.warning(
                NoteCode::PriceStandsAbove,
                format_args!("the prices of `{model}` in {} stand above these", above.origin),
            );
        }
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
