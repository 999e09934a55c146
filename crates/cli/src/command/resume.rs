//! `offshoot resume`.

use crate::arguments::ResumeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::resume;

/// Goes on with a tree.
pub(crate) fn run(arguments: &ResumeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    super::nested::refuse("resume", &crate::arguments::WorkArguments::default(), cx)?;
    let root = match &arguments.run {
        Some(text) => Record::open_for(cx, text)?.find(text)?.root,
        None => match Record::open(cx)?.map(|record| record.newest_abandoned()).transpose()? {
            Some(Some(root)) => root,
            Some(None) | None => {
                cx.output.note("no tree has lost its supervisor: there is nothing to resume");
                return Ok(Exit::Done);
            }
        },
    };
    resume::resume(root, cx)
}
