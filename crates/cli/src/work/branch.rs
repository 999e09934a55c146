//! The branch that the patches of pieces become.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_display::neutral;
use offshoot_host::{Branching, HostError, PATCH};
use offshoot_isolation::Joined;
use offshoot_merge::MergeError;
use offshoot_model::{JsonText, Payload, error_chain};
use offshoot_spawner::{Clock, FanAnswer, Piece, SystemClock};

use super::engine::Engine;
use crate::code::NoteCode;
use crate::invocation::Invocation;

/// A branch that is to be made once all pieces are over.
pub(super) struct Order {
    keys: Vec<Arc<str>>,
    folder: PathBuf,
    check: Option<(String, u64)>,
}

impl Order {
    /// Of these pieces, in the repository of this folder.
    pub(super) fn of(
        pieces: &[Piece],
        folder: &Arc<PathBuf>,
        check: Option<(String, u64)>,
    ) -> Self {
        let key = |(number, piece): (usize, &Piece)| {
            let named = piece.key.clone().or_else(|| piece.request.label.clone());
            named.unwrap_or_else(|| number.to_string().into())
        };
        let keys = (1..).zip(pieces).map(key).collect();
        Self { keys, folder: folder.to_path_buf(), check }
    }

    /// Makes it, and puts what came of it in place of the answers.
    pub(super) async fn make(self, engine: &Engine, answer: &mut FanAnswer, cx: &Invocation) {
        let root = answer.root;
        let runs = self.keys.into_iter().zip(answer.runs.iter().copied());
        // A piece that was not admitted has no run.
        let runs: Vec<_> = runs.filter(|(_, run)| *run != root.run()).collect();
        let (folder, check, id) = (self.folder, self.check, SystemClock.mint());
        let order = Branching { root, folder, runs, check, id };
        match engine.host.folders().join(order).await {
            Ok(joined) => {
                tell(&joined, cx);
                answer.verdict = verdict(&joined);
                PATCH.clone_into(&mut answer.strategy);
                let json = JsonText::of(&joined).expect("it is plain data");
                answer.answer.replace(Payload::Json(json));
            }
            Err(error) => {
                let message = match &error {
                    HostError::Isolation(error) => error_chain(error),
                    error => error_chain(error),
                };
                answer.verdict = Err(MergeError::Elsewhere { message });
            }
        }
    }
}

/// Names the branch and what is not on it.
fn tell(joined: &Joined, cx: &Invocation) {
    let line = |text: String| neutral::line(&text).into_owned();
    for conflict in &joined.conflicts {
        let file = |(file, whose): (&String, &Vec<String>)| match whose.is_empty() {
            true => file.clone(),
            false => format!("{file} ({})", whose.join(", ")),
        };
        let files: Vec<String> = conflict.files.iter().map(file).collect();
        let text = format!(
            "{} is not on the branch: {}: {}",
            conflict.key,
            conflict.why,
            files.join(", ")
        );
        cx.output
            .warning(NoteCode::NotOnBranch, line(text.trim_end_matches([' ', ':']).to_owned()));
    }
    for left in &joined.left_out {
        let text = format!("{} is not on the branch: with it the check {}", left.key, left.why);
        cx.output.warning(NoteCode::NotOnBranch, line(text));
    }
    if let Some(branch) = &joined.branch {
        let applied = joined.applied.len();
        let patches = if applied == 1 { "patch" } else { "patches" };
        cx.output
            .note(NoteCode::BranchMade, format_args!("{applied} {patches} on the branch {branch}"));
    }
}

/// The branch is the answer where there is one and its check passes. Where no run has changed anything, nothing is missing.
fn verdict(joined: &Joined) -> Result<(), MergeError> {
    let failed = |message: String| Err(MergeError::Elsewhere { message });
    if let Some(check) = joined.check.as_ref().filter(|check| !check.passes) {
        return failed(format!("the check `{}` {}", check.command, check.why));
    }
    let (conflicts, left_out) = (joined.conflicts.len(), joined.left_out.len());
    match joined.branch {
        None if conflicts + left_out > 0 => failed(format!(
            "no patch is left: {conflicts} do not fit, and with {left_out} the check fails"
        )),
        _ => Ok(()),
    }
}
