//! How awkward agents end: one table, checked live, again on replay, and by the exit code of the command.
//!
//! | column | says |
//! |---|---|
//! | name | the row, and the label of its run |
//! | agent | what is started |
//! | settings | `agents.defaults.subagents.…`; rows with the same ones share a tree |
//! | ends | what happens to it from outside |
//! | status, code, prints | what its envelope and its record say |
//! | exit | what `offshoot run` ends with, where the row makes sense alone |

mod row;
mod rows;

pub use row::{Agent, Ends, Expected, Prints, Row};
pub use rows::rows;
