//! `offshoot resume`.

use offshoot_model::RootId;

use crate::arguments::ResumeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::resume;

/// Goes on with a tree.
pub(crate) fn run(arguments: &ResumeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let root = match &arguments.run {
        Some(text) => Record::open_for(cx, text)?.find(text)?.root,
        None => only_abandoned(cx)?,
    };
    resume::resume(root, cx)
}

/// The one tree that lost its supervisor.
fn only_abandoned(cx: &Invocation) -> Result<RootId, Failure> {
    let abandoned = Record::open(cx)?.map(|record| record.abandoned()).transpose()?;
    match abandoned.unwrap_or_default().as_slice() {
        [] => Err(Failure::input("no tree has lost its supervisor: there is nothing to resume")
            .hint("`offshoot list --all` shows what has run")),
        [root] => Ok(*root),
        many => {
            let named: Vec<String> = many.iter().map(|root| root.run().to_string()).collect();
            Err(Failure::input(format_args!("{} trees have lost their supervisor", many.len()))
                .hint(format_args!("name one of them: {}", named.join(", "))))
        }
    }
}
