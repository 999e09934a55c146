//! `runtimes.{name}`: settings of what runs agents.

use offshoot_model::{CostKnowledge, MicroUsd};

use crate::built_in;
use crate::named::Named;
use crate::origin::Valued;
use crate::section::section;
use crate::setting::{Command, FilePath, FreeForm, MeterMode, Park, is_agent_id};

section! {
    /// Settings of one runtime.
    pub struct RuntimeSettings, foreign &[] => {
        /// The program that it starts instead of its own.
        pub command: Option<Valued<Command>> = "command";
        /// Variables of the environment that it passes on besides the usual ones; `*` stands for any letters.
        pub env: Option<Valued<Vec<String>>> = "env";
        /// A command to run its command with: another user, a sandbox, a container.
        pub wrap: Option<Valued<Command>> = "wrap";
        /// Dollars that a tree may cost when it has no budget of its own. In a tree whose root costs nothing, or holds pieces that cost
        /// nothing, they bound all paid agents below it together.
        pub default_usd: Option<Valued<MicroUsd>> = "defaultUsd",
            built_in built_in::RUNTIME_DEFAULT_USD;
        /// The treatment of an agent that waits for its children.
        pub park: Option<Valued<Park>> = "park";
        /// The knowledge of its cost.
        pub cost: Option<Valued<CostKnowledge>> = "cost";
        /// The meter between its runs and their models: `auto` is on where a key is named here.
        pub meter: Option<Valued<MeterMode>> = "meter";
        /// The variable of the supervisor's environment that holds the provider's key. Runs get a ticket in its place.
        pub key_env: Option<Valued<String>> = "keyEnv";
        /// A file whose first line is the provider's key.
        pub key_file: Option<Valued<FilePath>> = "keyFile";
        /// A command that prints the provider's key, such as that of a keyring.
        pub key_command: Option<Valued<Command>> = "keyCommand";
        /// Passed to the runtime.
        pub options: Option<Valued<FreeForm>> = "options";
    }
}

impl Named for RuntimeSettings {
    const ALLOWED: &'static str = "a name of a-z, 0-9, _ and -, such as claude";
    const PATTERN: &'static str = "^[a-z0-9][a-z0-9_-]{0,63}$";
    const HEADER: &'static str = "[runtimes.claude]";

    fn is_name(name: &str) -> bool {
        is_agent_id(name)
    }
}
