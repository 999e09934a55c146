//! Everything one layer says, and everything all of them say together.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::agent::{AgentDefinition, AgentList};
use crate::audit::AuditSettings;
use crate::field::{Field, Listing, Row};
use crate::host::Host;
use crate::logs::LogSettings;
use crate::node::Node;
use crate::notify::NotifySettings;
use crate::origin::Valued;
use crate::plugins::PluginSettings;
use crate::price::Price;
use crate::problem::{Problem, ProblemKind};
use crate::reader::Reader;
use crate::runtime::RuntimeSettings;
use crate::section::{Section, section};
use crate::setting::FreeForm;
use crate::subagents::SubagentSettings;
use crate::template::Template;

section! {
    /// The whole of a configuration.
    pub(crate) struct Document, foreign crate::foreign::TOP => {
        /// Agents and their limits.
        pub(crate) agents: Agents = "agents";
        /// Settings of what runs agents, by name.
        pub(crate) runtimes: IndexMap<String, RuntimeSettings> = "runtimes";
        /// The folders of plugins, and their settings.
        pub(crate) plugins: PluginSettings = "plugins";
        /// The data of each tree that is kept elsewhere than in its record.
        pub(crate) audit: AuditSettings = "audit";
        /// The bounds of what is kept of the output of agents, for `offshoot logs`.
        pub(crate) logs: LogSettings = "logs";
        /// The command that is told what happens in trees.
        pub(crate) notify: NotifySettings = "notify";
        /// Bounds of the computer, for all trees of a user; only in the system or user file.
        pub(crate) host: Host = "host";
        /// Dollars per million tokens, by model.
        pub(crate) prices: IndexMap<String, Price> = "prices";
        /// Bounds for the subagents' keys of every layer from this one on; only in the system or user file.
        pub(crate) ceiling: Ceiling = "ceiling";
    }
}

section! {
    /// Agents and their limits.
    pub(crate) struct Agents, foreign &[] => {
        /// The values for every agent that has none of its own.
        pub(crate) defaults: AgentDefaults = "defaults";
        /// The agents, merged over the layers by id.
        pub(crate) list: AgentList = "list";
    }
}

section! {
    /// The values for every agent that has none of its own.
    pub(crate) struct AgentDefaults, foreign crate::foreign::AGENT_DEFAULTS => {
        /// Passed to the runtime of every agent that has none of its own.
        pub(crate) compaction: Option<Valued<FreeForm>> = "compaction";
        /// Passed to the runtime of every agent that has none of its own.
        pub(crate) context_pruning: Option<Valued<FreeForm>> = "contextPruning";
        /// The limits of a tree.
        pub(crate) subagents: SubagentSettings = "subagents";
    }
}

/// Bounds: the keys of the limits, of which those have a meaning that have a more and a less.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ceiling(pub(crate) SubagentSettings);

impl Document {
    /// Returns a document with this definition alone.
    pub(crate) fn of_agent(agent: Option<AgentDefinition>) -> Self {
        let mut document = Self::default();
        document.agents.list.0.extend(agent.map(|agent| (agent.id().clone(), agent)));
        document
    }

    /// Returns the values above a ceiling of this layer or of one below it.
    pub(crate) fn above(&self, ceiling: &Ceiling) -> Vec<Problem> {
        let mut out = Vec::new();
        let path = "agents.defaults.subagents";
        self.agents.defaults.subagents.check(&ceiling.0, &Row::WHOLE, path, &mut out);
        self.agents.list.check_all(&ceiling.0, &mut out);
        out
    }
}

impl Field for Ceiling {
    type Value = ();

    fn read(&mut self, row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
        if !cx.is_of_the_user() {
            return cx.report(node.offset, ProblemKind::MisplacedCeiling);
        }
        self.0.read_table(node, cx);
        let mut problems = Vec::new();
        self.0.check_boundable(row, "", &mut problems);
        cx.report_all(problems);
    }

    fn overlay(&mut self, over: &Self) {
        self.0.overlay(&over.0);
    }

    fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
        self.0.list(row, path, out);
    }

    fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
        <SubagentSettings as Field>::schema(row, definitions)
    }

    fn template(row: &Row<()>, out: &mut Template) {
        out.example_header("[ceiling]", row.doc);
        out.example("maxConcurrent = 8");
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        self.0.trusted_words(out);
    }
}
