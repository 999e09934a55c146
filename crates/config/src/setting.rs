//! The types of single settings: what is allowed, how it is read, how it looks in the schema.

mod agent_id;
mod allow_agents;
mod bounded;
mod choice;
mod command;
mod date;
mod factor;
mod file_path;
mod fraction;
mod free_form;
mod heads_target;
mod isolation;
mod model_choice;
mod number;
mod occasion;
mod preferred;
mod retry_on;
mod share;
mod text;
mod tool_list;
mod usd;

use serde::Serialize;
use serde_json::Value;

use crate::node::Node;
use crate::reader::Reader;

pub use allow_agents::AllowAgents;
pub use bounded::{MaxChildren, MaxDepth};
pub use choice::{MeterMode, OnCap, OnInterrupt, OnParentEnd, OnRepeat, OnWall, Park, PrimeCache};
pub use command::Command;
pub use date::Date;
pub use factor::Factor;
pub use file_path::FilePath;
pub use fraction::Fraction;
pub use free_form::FreeForm;
pub use heads_target::HeadsTarget;
pub use model_choice::{Fallback, ModelChoice, RuntimeFallback};
pub use occasion::Occasion;
pub use preferred::PreferredSubagents;
pub use share::Share;
pub use tool_list::ToolList;

pub(crate) use agent_id::is_agent_id;

/// A value that stands behind one key.
pub(crate) trait Setting: Clone + Serialize {
    /// The value, or `None` after having reported what is wrong.
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self>;
    /// Returns the schema of the values that an editor accepts: at least those of [`Setting::read`].
    fn schema() -> Value;
    /// Stands in the template where there is no built-in value.
    fn example() -> Value;
    /// Returns the words in it that may name files which act for the user: programs, their arguments, and files that are read. A
    /// project is trusted together with those of its files that these name.
    fn trusted_words(&self) -> Vec<&str>;

    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are plain data with text keys")
    }
}

/// A setting without parts: right or wrong as a whole. It names no file: a program is a [`Command`], a file a [`FilePath`].
pub(crate) trait Scalar: Clone + Serialize {
    /// Ends the sentence "allowed is".
    fn allowed() -> String;
    fn from_node(node: &Node) -> Option<Self>;
    fn schema() -> Value;
    fn example() -> Value;
}

impl<T: Scalar> Setting for T {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let value = T::from_node(node);
        if value.is_none() {
            cx.wrong(node, T::allowed());
        }
        value
    }

    fn schema() -> Value {
        T::schema()
    }

    fn example() -> Value {
        T::example()
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Reads every item of a list; `None` if one of them was wrong, after all were looked at.
fn read_items<T>(
    node: &Node,
    cx: &mut Reader<'_>,
    allowed: &str,
    mut read: impl FnMut(&Node, &mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let items = cx.or_wrong(node.list(), node, allowed)?;
    let read: Vec<Option<T>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| cx.at_index(index, |cx| read(item, cx)))
        .collect();
    read.into_iter().collect()
}
