//! `offshoot resume`.

use offshoot_model::RootId;

use crate::arguments::{ResumeArguments, ResumeChoice};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::resume;

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
