//! `agents.list[n]`: what an agent is.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use offshoot_model::Isolation;
use offshoot_session_key::AgentId;
use serde_json::{Map, Value, json};

use crate::field::{Field, Listing, Row, above, join};
use crate::node::Node;
use crate::origin::{Origin, Valued};
use crate::problem::{Place, Problem, ProblemKind};
use crate::reader::Reader;
use crate::section::{Section, section, section_schema};
use crate::setting::{AllowAgents, Command, FreeForm, ModelChoice, PreferredSubagents, ToolList};
use crate::subagents::SubagentSettings;
use crate::template::Template;

section! {
    /// One agent, merged over all layers by its id.
    pub struct AgentDefinition, foreign crate::foreign::AGENT => {
        /// The name by which it is spawned.
        pub(crate) id: Option<Valued<AgentId>> = "id";
        /// The purpose of the agent, for those that choose among agents.
        pub description: Option<Valued<String>> = "description", such_as "finds where a thing is defined";
        /// The runtime that runs it.
        pub runtime: Option<Valued<String>> = "runtime", such_as "exec";
        /// The program and its arguments, for runtimes that start one.
        pub command: Option<Valued<Command>> = "command";
        /// The model that it uses itself.
        pub model: Option<Valued<ModelChoice>> = "model";
        /// The effort of its thinking, in the words of its runtime.
        pub thinking: Option<Valued<String>> = "thinking", such_as "high";
        /// Stands before every task.
        pub system_prompt: Option<Valued<String>> = "systemPrompt", such_as "You look around and report.";
        /// The tools that it may use.
        pub tools: Option<Valued<ToolList>> = "tools";
        /// The folder it works in.
        pub cwd: Option<Valued<String>> = "cwd", such_as "crates/config";
        /// The folder in which it works: the one of the request (none), a git worktree of its own (worktree, or worktree:COMMIT), or
        /// a copy. What it changes in a folder of its own comes back as a patch.
        pub isolation: Option<Valued<Isolation>> = "isolation";
        /// True switches recursion on for the agent, so that it may spawn; false forbids every spawn.
        pub can_delegate: Option<Valued<bool>> = "canDelegate";
        /// To whom it likes to hand work, and for what. These join the agents it may spawn.
        pub preferred_subagents: Option<Valued<PreferredSubagents>> = "preferredSubagents";
        /// The most rounds of tools in one turn, for runtimes that count them.
        pub max_turns: Option<Valued<NonZeroU32>> = "maxTurns";
        /// The form that its answers must have, as a JSON Schema.
        pub schema: Option<Valued<FreeForm>> = "schema";
        /// Further turns that it gets to mend an answer that has not that form.
        pub schema_repairs: Option<Valued<u64>> = "schemaRepairs";
        /// Passed to the runtime.
        pub compaction: Option<Valued<FreeForm>> = "compaction";
        /// Passed to the runtime.
        pub context_pruning: Option<Valued<FreeForm>> = "contextPruning";
        /// The other fields of a definition in Markdown; kept and shown, without effect.
        pub other: Option<Valued<FreeForm>> = "other";
        /// The limits of the agent itself; the defaults hold where it has none.
        pub subagents: SubagentSettings = "subagents";
    }
}

/// The agents of one layer or of all, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AgentList(pub(crate) IndexMap<AgentId, AgentDefinition>);

impl AgentDefinition {
    /// The name by which it is spawned.
    pub fn id(&self) -> &AgentId {
        &self.valued_id().value
    }

    /// Returns the origin of the definition: the last layer that sets something of it.
    pub fn origin(&self) -> &Origin {
        &self.valued_id().origin
    }

    /// Returns the model that it uses itself, but for its stand-ins.
    pub fn primary_model(&self) -> Option<&str> {
        self.model.as_ref()?.value.primary.as_deref()
    }

    fn valued_id(&self) -> &Valued<AgentId> {
        self.id.as_ref().expect("a definition without an id is reported and not kept")
    }

    /// An explicit yes to delegation is a yes to recursion, unless the same layer says otherwise.
    pub(crate) fn delegation_means_recursion(&mut self) {
        if let Some(Valued { value: true, origin }) = &self.can_delegate
            && self.subagents.allow_recursive_spawn.is_none()
        {
            self.subagents.allow_recursive_spawn = Some(Valued::new(true, origin.clone()));
        }
    }

    /// The preferred agents join those that may be spawned, so the ceiling of these holds for them too.
    fn check_preferred(&self, ceiling: &SubagentSettings, path: &str, out: &mut Vec<Problem>) {
        let (Some(preferred), Some(ceiling)) = (&self.preferred_subagents, &ceiling.allow_agents)
        else {
            return;
        };
        let ids: Vec<AgentId> = preferred.value.agents().cloned().collect();
        if !AllowAgents::List(ids).is_within(&ceiling.value) {
            out.push(above(preferred, ceiling, join(path, "preferredSubagents")));
        }
    }
}

impl AgentList {
    pub(crate) fn check_all(&self, ceiling: &SubagentSettings, out: &mut Vec<Problem>) {
        for (id, agent) in &self.0 {
            let path = format!("agents.list[{id}]");
            agent.subagents.check(ceiling, &Row::WHOLE, &join(&path, "subagents"), out);
            agent.check_preferred(ceiling, &path, out);
        }
    }
}

impl Field for AgentList {
    type Value = ();

    fn read(&mut self, _row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
        let Some(items) = node.list() else {
            return cx.wrong(node, "a list of agents");
        };
        let mut places: IndexMap<AgentId, Place> = IndexMap::new();
        for (index, item) in items.iter().enumerate() {
            cx.at_index(index, |cx| {
                let mut agent = AgentDefinition::default();
                agent.read_table(item, cx);
                agent.delegation_means_recursion();
                let Some(entries) = item.table() else { return };
                let Some((_, id_node)) = entries.iter().find(|(key, _)| key.is("id")) else {
                    return cx.report(item.offset, ProblemKind::MissingId { key: "id" });
                };
                // An id that is wrong has been reported by now.
                let Some(Valued { value: id, .. }) = agent.id.clone() else { return };
                if let Some(first) = places.get(&id) {
                    let kind =
                        ProblemKind::DuplicateAgent { id: id.to_string(), first: first.clone() };
                    return cx.at_key("id", |cx| cx.report(id_node.offset, kind));
                }
                places.insert(id.clone(), cx.place(id_node.offset));
                self.0.insert(id, agent);
            });
        }
    }

    fn overlay(&mut self, over: &Self) {
        for (id, agent) in &over.0 {
            self.0.entry(id.clone()).or_default().overlay(agent);
        }
    }

    fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
        for (id, agent) in &self.0 {
            agent.list(&Row::WHOLE, &format!("{}[{id}]", row.path(path)), out);
        }
    }

    fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
        let items = section_schema::<AgentDefinition>(definitions);
        let items = json!({ "allOf": [items], "required": ["id"] });
        json!({ "type": "array", "description": row.doc, "items": items })
    }

    fn template(_row: &Row<()>, out: &mut Template) {
        out.example_table("[[agents.list]]", AgentDefinition::template_keys);
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        self.0.values().for_each(|agent| agent.trusted_words(out));
    }
}
