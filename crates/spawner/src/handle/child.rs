//! Children that are asked for.

use std::path::PathBuf;

use offshoot_model::{InputRange, Need, OnNeedFailed, Refusal, SpawnRequest};
use offshoot_policy::check_label;
use offshoot_policy::needs::{self, Named};

/// A child that is asked for.
#[derive(Clone, Debug, Default)]
pub struct ChildRequest {
    /// The request.
    pub request: SpawnRequest,
    /// The folder in which it works; that of its parent where absent.
    pub folder: Option<PathBuf>,
    /// The part of a file that it reads. No symbolic link is accepted on its path.
    pub input: Option<InputRange>,
}

/// One of several children that are asked for in one step, and may need the answers of others.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// The child; or why it cannot be asked for, which is its answer then.
    pub child: Result<ChildRequest, Refusal>,
    /// The name by which others of the request need it.
    pub id: Option<String>,
    /// The names of those that it needs. It starts when these have completed, and reads their answers by
    /// [`Need::variable`](offshoot_model::Need::variable).
    pub needs: Vec<String>,
    /// The fate of the child when one of those does not complete.
    pub on_need_failed: OnNeedFailed,
}

impl From<SpawnRequest> for ChildRequest {
    fn from(request: SpawnRequest) -> Self {
        Self { request, folder: None, input: None }
    }
}

impl From<ChildRequest> for Sibling {
    fn from(child: ChildRequest) -> Self {
        let on_need_failed = OnNeedFailed::default();
        Self { child: Ok(child), id: None, needs: Vec::new(), on_need_failed }
    }
}

/// Returns the places of the children that each child needs.
///
/// # Errors
///
/// Ids that are none, names that mean none or several, children that need each other in a cycle, and a value of the context under
/// the name of an answer.
pub(super) fn needed(children: &[Sibling]) -> Result<Vec<Vec<usize>>, Refusal> {
    let is_wrong = |it: &Sibling| it.id.as_ref().is_some_and(|id| check_label(id).is_err());
    if let Some(at) = children.iter().position(is_wrong) {
        let message = "an id has 1 to 100 characters, and no control characters";
        return Err(Refusal::invalid(format!("children[{at}].id"), message));
    }
    let named: Vec<Named<'_>> =
        children.iter().map(|it| Named { id: it.id.as_deref(), needs: &it.needs }).collect();
    let places = needs::places(&named).map_err(|error| {
        let at = format!("children[{}].needs", error.at());
        Refusal::invalid(at, error.to_string())
    })?;
    for (at, Sibling { child, needs, .. }) in children.iter().enumerate() {
        let Ok(child) = child else { continue };
        for id in needs {
            let variable = Need::variable(id);
            if child.request.context.iter().any(|entry| *entry.name == *variable) {
                let message = format!("`{variable}` is the name of the answer of `{id}`");
                return Err(Refusal::invalid(format!("children[{at}].context"), message));
            }
        }
    }
    Ok(places)
}

pub(super) fn place_of(place: usize) -> u32 {
    u32::try_from(place).expect("a request has fewer than 2^32 children")
}
