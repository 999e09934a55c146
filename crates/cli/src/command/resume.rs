//! `offshoot resume`.

use clap::Args;
use offshoot_model::RootId;

use crate::arguments::{FormatArgument, ResumeChoice};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::resume;

/// Go on with a tree that was stopped, or whose supervisor was killed
///
/// A run that has an answer is not run again. A map or a fanout that was stopped, by Ctrl-C, `cancel`, a deadline or a budget,
/// goes on with the pieces that were cancelled or never started, and merges their answers with those it has. With --failed, the
/// pieces that failed run again instead, and with --failed --cancelled both. Each of these is a new run in the place of the one
/// before; what was used stays used.
///
/// A tree whose supervisor was killed goes on as it was: pieces that were interrupted have another attempt; another run goes on
/// where its runtime can do that, is run again where `onInterrupt` says so, and is lost otherwise. Only once it is over can what
/// failed run again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot resume
  offshoot resume 0198c7
  offshoot resume 0198c7 --failed --dry-run
  offshoot resume 0198c7 --failed
  offshoot resume 0198c7 --failed --cancelled --only notes.txt:3
  offshoot resume 0198c7 --failed --idle-timeout 30m
  offshoot resume 0198c7 --deadline 2h --budget-usd 5")]
pub(crate) struct ResumeArguments {
    /// The tree, by any run of it: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N` [default: the only one that lost its
    /// supervisor]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    #[command(flatten)]
    pub(crate) choice: ResumeChoice,

    /// Print which pieces would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// Goes on with a tree.
pub(crate) fn run(arguments: &ResumeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let root = match &arguments.run {
        Some(text) => {
            let found = Record::open_tree(cx, text)?.1;
            let is_piece = found.run != found.root.run();
            if is_piece && arguments.choice.only.is_none() {
                cx.output.hint(
                    NoteCode::WholeTreeGoesOn,
                    "all of the tree goes on; `--only LABEL` runs one piece alone",
                );
            }
            found.root
        }
        None => only_abandoned(&arguments.choice, cx)?,
    };
    resume::resume(root, &arguments.choice, arguments.dry_run, cx)
}

/// The one tree that lost its supervisor.
fn only_abandoned(choice: &ResumeChoice, cx: &Invocation) -> Result<RootId, Failure> {
    let record = Record::open(cx)?.ok_or_else(|| {
        let folder = cx.data_folder();
        Failure::input(
            FailureCode::NothingAbandoned,
            format_args!("there is nothing to resume: nothing is recorded in {}", folder.display()),
        )
        .hint("--data-dir names another data folder")
    })?;
    match record.abandoned()?.as_slice() {
        [] => Err(Failure::input(FailureCode::NothingAbandoned, "no tree has lost its supervisor: there is nothing to resume")
            .hint(format_args!(
                "`offshoot resume last{}` goes on with the newest tree; `offshoot list` shows the others",
                choice.typed()
            ))),
        [root] => Ok(*root),
        many => {
            let named: Vec<String> = many.iter().map(|root| root.run().to_string()).collect();
            Err(Failure::input(FailureCode::SeveralAbandoned, format_args!("{} trees have lost their supervisor", many.len()))
                .hint(format_args!("name one of them: {}", named.join(", "))))
        }
    }
}
