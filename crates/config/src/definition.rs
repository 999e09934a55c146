//! Agents from Markdown: front matter in YAML says what the agent is, the body is its system prompt.
//!
//! ```text
//! ---
//! name: scout
//! description: finds where a thing is defined
//! tools: Read, Grep
//! can_delegate: true
//! preferred_subagents:
//!   - librarian: "for what stands in the books"
//! ---
//! You look around and report. You change nothing.
//! ```

use std::num::NonZeroU32;

use offshoot_session_key::AgentId;

use crate::agent::AgentDefinition;
use crate::node::{self, Node, NodeValue, SyntaxError};
use crate::origin::Valued;
use crate::problem::ProblemKind;
use crate::reader::Reader;
use crate::section::{Section, section};
use crate::setting::{FreeForm, MaxDepth, ModelChoice, PreferredSubagents, Setting, ToolList};
use crate::subagents::SubagentSettings;

section! {
    /// The keys that mean something to us.
    struct FrontMatter, foreign &[] => {
        /// The id.
        name: Option<Valued<AgentId>> = "name";
        /// The purpose of the agent.
        description: Option<Valued<String>> = "description";
        /// The tools that it may use, and no others.
        tools: Option<Valued<Vec<String>>> = "tools";
        /// The tools that it may not use.
        disallowed_tools: Option<Valued<Vec<String>>> = "disallowedTools";
        /// The model; `inherit` is the same as none.
        model: Option<Valued<ModelChoice>> = "model";
        /// The effort of its thinking.
        effort: Option<Valued<String>> = "effort";
        /// The most turns that it may take.
        max_turns: Option<Valued<NonZeroU32>> = "maxTurns";
        /// The form that its answers must have, as a JSON Schema.
        schema: Option<Valued<FreeForm>> = "schema";
        /// Further turns to mend an answer.
        schema_repairs: Option<Valued<u64>> = "schemaRepairs";
        /// True if it may spawn.
        can_delegate: Option<Valued<bool>> = "can_delegate";
        /// The depth that a tree below it may reach.
        max_depth: Option<Valued<MaxDepth>> = "max_depth";
        /// To whom it likes to hand work.
        preferred_subagents: Option<Valued<PreferredSubagents>> = "preferred_subagents";
    }
}

/// Reads one definition. What is wrong is reported; without a name there is no agent.
pub(crate) fn read(text: &str, cx: &mut Reader<'_>) -> Option<AgentDefinition> {
    let Some((front, front_at, body, body_at)) = split(text) else {
        let message = "a definition begins with front matter between two lines of `---`".into();
        cx.report(0, ProblemKind::Syntax { message });
        return None;
    };
    let parsed = node::parse_front_matter(front, front_at);
    let syntax =
        |SyntaxError { message, offset }| cx.report(offset, ProblemKind::Syntax { message });
    let node = parsed.map_err(syntax).ok()?;
    let NodeValue::Table(mut entries) = node.value else {
        cx.wrong(&node, "keys with values");
        return None;
    };
    // A key without a value says nothing.
    entries.retain(|(_, value)| value.value != NodeValue::Null);
    let (known, other): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(key, _)| FrontMatter::KEYS.contains(&key.name.as_str()));
    cx.no_duplicates(&other);
    let named = known.iter().any(|(key, _)| key.is("name"));
    let mut front = FrontMatter::default();
    front.read_table(&Node::new(NodeValue::Table(known), front_at), cx);
    if !named {
        cx.report(front_at, ProblemKind::MissingId { key: "name" });
    }
    let mut agent = front.into_agent()?;
    if !body.trim().is_empty() {
        let prompt = Node::new(NodeValue::Raw(body.trim().to_owned()), body_at);
        agent.system_prompt = Some(cx.valued(body.trim().to_owned(), &prompt));
    }
    if !other.is_empty() {
        let other = Node::new(NodeValue::Table(other), front_at);
        agent.other = FreeForm::read(&other, cx).map(|kept| cx.valued(kept, &other));
    }
    Some(agent)
}

impl FrontMatter {
    fn into_agent(self) -> Option<AgentDefinition> {
        // All keys of both are named, so that a new key of an agent is decided on here.
        let Self {
            name,
            description,
            tools: allowed,
            disallowed_tools,
            model,
            effort,
            max_turns,
            schema,
            schema_repairs,
            can_delegate,
            max_depth,
            preferred_subagents,
        } = self;
        let mut agent = AgentDefinition {
            id: Some(name?),
            description,
            model: model.filter(|model| model.value.primary.as_deref() != Some("inherit")),
            thinking: effort,
            tools: tools(allowed, disallowed_tools),
            can_delegate,
            preferred_subagents,
            max_turns,
            schema,
            schema_repairs,
            subagents: SubagentSettings { max_depth, ..SubagentSettings::default() },
            // The body, and the keys that mean nothing to us: both are added by the reader.
            system_prompt: None,
            other: None,
            // Said in the configuration alone.
            runtime: None,
            command: None,
            cwd: None,
            isolation: None,
            compaction: None,
            context_pruning: None,
        };
        agent.delegation_means_recursion();
        Some(agent)
    }
}

fn tools(
    allow: Option<Valued<Vec<String>>>,
    deny: Option<Valued<Vec<String>>>,
) -> Option<Valued<ToolList>> {
    let origin = allow.as_ref().or(deny.as_ref())?.origin.clone();
    let tools = ToolList {
        allow: allow.map(|names| names.value),
        deny: deny.map(|names| names.value).unwrap_or_default(),
    };
    Some(Valued::new(tools, origin))
}

/// Front matter and body, each with its place.
fn split(text: &str) -> Option<(&str, usize, &str, usize)> {
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut front_at = None;
    for line in text[at..].split_inclusive('\n') {
        let next = at + line.len();
        match (line.trim_end() == "---", front_at) {
            (true, None) => front_at = Some(next),
            (true, Some(start)) => return Some((&text[start..at], start, &text[next..], next)),
            (false, None) => return None,
            (false, Some(_)) => {}
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Source, SourceKind};

    #[test]
    fn the_page_about_definitions_has_every_key() {
        let page = include_str!("../../../docs/agents.md");
        let (_, table) = page.split_once("## Keys of the front matter").expect("a section");
        let rows = table.lines().take_while(|line| !line.starts_with("## "));
        let keys = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        assert_eq!(keys.collect::<Vec<_>>(), FrontMatter::KEYS);
    }

    #[test]
    fn the_example_of_the_page_is_a_definition() {
        let page = include_str!("../../../docs/agents.md");
        let (_, example) = page.split_once("```text\n").expect("an example");
        let (example, _) = example.split_once("```").expect("it ends");
        let source = Source::new(SourceKind::File, "scout.md", example);
        let mut reader = Reader::of_file(&source);
        let agent = read(example, &mut reader).expect("a definition");
        let (problems, _) = reader.finish();
        assert_eq!((problems, agent.other), (Vec::new(), None));
    }
}
