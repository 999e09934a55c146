//! `offshoot watch`.

use clap::Args;

/// Show trees live on the whole terminal: what runs, what is silent, what it says
///
/// Lists the runs with their status, time, silence, tokens and cost, and shows of the selected one its output, what it was asked and
/// granted, and its events. From here a run is cancelled, a tree paused, a budget raised, a letter written. A tree that is over is
/// shown too, and `r` replays it. To leave (`q`) ends nothing.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct WatchArguments {
    /// A run with what is below it [default: all trees of this user that run, of any data folder]; a run id, its unique beginning, a
    /// session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// The keys and examples.
fn after_help() -> String {
    let mut text = "Keys:\n".to_owned();
    let keys = offshoot_watch::KEYS;
    let width = keys.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    for (key, what) in keys {
        text.push_str(&format!("  {key:width$}  {what}\n"));
    }
    text.push_str(
        "
Of the output, lines on standard error begin with `!`. Colours are off with NO_COLOR.

Examples:
  offshoot watch
  offshoot watch last
  offshoot watch 0198c7a2-41f3",
    );
    text
}
