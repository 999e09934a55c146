//! The form that the answer of a run must have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_config::AgentDefinition;
use offshoot_model::{JsonText, Payload, Reason};
use offshoot_schema::{ANSWER_BYTES, Fit, SchemaError, check_answer};

use crate::blocking::blocking;
use crate::tree_context::TreeContext;

/// Further turns that a run gets to mend its answer, where its agent does not say how many.
const REPAIRS: u64 = 1;

/// The form that is asked for, and the turns that are left to mend an answer.
#[derive(Debug)]
pub(crate) struct Form {
    schema: JsonText,
    repairs: AtomicU64,
}

impl Form {
    /// The form of the answer of a run of this agent.
    pub(crate) fn new(schema: JsonText, agent: Option<&AgentDefinition>) -> Self {
        let repairs = agent.and_then(|agent| agent.schema_repairs.as_ref());
        let repairs = repairs.map_or(REPAIRS, |repairs| repairs.value);
        Self { schema, repairs: AtomicU64::new(repairs) }
    }

    /// Returns the prompt of a further turn for an answer that has not this form; none where it has, or where no turn is left.
    pub(super) async fn repair(&self, answer: Option<&Arc<str>>) -> Option<String> {
        if self.repairs.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let answer = answer.cloned().unwrap_or_default();
        let wrong = compared(self.schema.clone(), answer).await.err()?;
        let place = match wrong.path.as_str() {
            "" => String::new(),
            path => format!(" At {path}:"),
        };
        Some(format!(
            "Your answer does not match the JSON Schema that was asked for.{place} {}\nAnswer again, with JSON that matches this \
             schema and nothing else:\n{}",
            wrong.message,
            self.schema.as_str()
        ))
    }

    /// A further turn begins.
    pub(super) fn used_repair(&self) {
        let less = |left: u64| Some(left.saturating_sub(1));
        let _ = self.repairs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Compares an answer with its schema. Returns the answer as the JSON that it is, where it was text.
///
/// # Errors
/// The reason of the end of a run whose answer has another form.
pub(super) async fn of(
    tree: &Arc<TreeContext>,
    schema: JsonText,
    answer: Option<&Payload>,
) -> Result<Option<Payload>, Reason> {
    let mismatch = |SchemaError { path, message }| Reason::SchemaMismatch { path, message };
    let (text, is_text) = match answer {
        None => (Arc::default(), true),
        Some(Payload::Text(text)) => (Arc::clone(text), true),
        Some(Payload::Json(json)) => (json.as_str().into(), false),
        Some(stored @ Payload::Stored(value)) => {
            let message = || {
                let size = stored.size();
                format!(
                    "the answer has {size} bytes, and at most {ANSWER_BYTES} are compared with a schema"
                )
            };
            if stored.size() > ANSWER_BYTES as u64 {
                return Err(mismatch(SchemaError { path: String::new(), message: message() }));
            }
            let (tree, value) = (Arc::clone(tree), *value);
            let read = move || tree.store.read(&value);
            let read = blocking(read).await;
            let bytes = read.map_err(|error| Reason::NotRecorded { message: error.to_string() })?;
            (String::from_utf8_lossy(&bytes).into(), false)
        }
    };
    match compared(schema, text).await.map_err(mismatch)? {
        Fit::Json(json) if is_text => Ok(Payload::json(json).ok()),
        Fit::Json(_) | Fit::Text => Ok(None),
    }
}

async fn compared(schema: JsonText, answer: Arc<str>) -> Result<Fit, SchemaError> {
    let compare = move || check_answer(&schema, &answer);
    blocking(compare).await
}
