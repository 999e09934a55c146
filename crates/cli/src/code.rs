//! The codes of what the command says. `docs/messages.md` is made of them: the documentation of a code says when it is said, and its
//! text stands where it is used, or behind `Text:` where the words are those of others.

mod failure_code;
mod note_code;

pub(crate) use failure_code::FailureCode;
pub(crate) use note_code::NoteCode;
