//! `config init`: a file in which every key stands with its meaning and its built-in value, switched off.

use serde_json::Value;

use crate::document::Document;
use crate::section::Section;

/// A TOML file with all keys and their built-in values. Everything is commented out: a line that begins with `#` and no
/// space takes effect when the `#` is removed. A key without a built-in value shows an example.
pub fn init_template() -> String {
    let mut out = Template { text: HEAD.into(), prefix: String::new(), nested: true };
    Document::template_keys(&mut out);
    out.text
}

const HEAD: &str = "\
# Configuration of offshoot. Remove the `#` from a line to make it count.
# What is not set keeps the built-in value that is shown; where it says \"unset\", the line is an example.
";

/// The template as it grows.
pub(crate) struct Template {
    text: String,
    /// The prefix of the next keys, below the last header.
    prefix: String,
    /// True if sections within sections are written out. Not in examples, which would repeat all limits.
    nested: bool,
}

impl Template {
    /// A key with its built-in value, or with an example.
    pub(crate) fn setting(&mut self, key: &str, doc: &str, value: &Value, is_built_in: bool) {
        let unset = if is_built_in { "" } else { " (unset)" };
        let value = &match example(key) {
            Some(number) if !is_built_in && value.is_u64() => number.into(),
            _ => value.clone(),
        };
        self.line(&format!(
            "\n# {doc}{unset}\n#{}{} = {}",
            self.prefix,
            key_text(key),
            toml(value)
        ));
    }

    /// A section within a section.
    pub(crate) fn table(&mut self, key: &str, doc: &str, keys: impl FnOnce(&mut Self)) {
        // Below these, a table has a header of its own; deeper ones are dotted keys, which need no order.
        let header = match key {
            "agents" => Some(String::new()),
            "defaults" => Some("\n[agents.defaults]\n".to_owned()),
            "subagents" => Some("\n[agents.defaults.subagents]\n".to_owned()),
            "plugins" | "audit" | "logs" | "notify" => Some(format!("\n[{key}]\n")),
            _ => None,
        };
        if !self.nested {
            return self.line(&format!("\n# {doc}\n#{key} = {{}}"));
        }
        if let Some(header) = header {
            self.text.push_str(&header);
            return keys(self);
        }
        let inner = format!("{}{key}.", self.prefix);
        let outer = std::mem::replace(&mut self.prefix, inner);
        keys(self);
        self.prefix = outer;
    }

    /// A table that exists only once its header is switched on.
    pub(crate) fn example_table(&mut self, header: &str, keys: impl FnOnce(&mut Self)) {
        self.line(&format!("\n#{header}"));
        self.nested = false;
        keys(self);
        self.nested = true;
    }

    pub(crate) fn example_header(&mut self, header: &str, doc: &str) {
        self.line(&format!("\n# {doc}\n#{header}"));
    }

    pub(crate) fn example(&mut self, setting: &str) {
        self.line(&format!("#{setting}"));
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Returns an example for a number of this key, which says by its name what it counts.
fn example(key: &str) -> Option<u64> {
    match key {
        _ if key.ends_with("Bytes") => Some(4 << 30),
        _ if key.ends_with("okens") || key.ends_with("okensPerDay") => Some(1_000_000),
        "maxOpenFiles" => Some(4096),
        _ => None,
    }
}

/// A value on one line. JSON's notation of texts, numbers and switches is TOML's too.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "{}".into(),
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{} = {}", key_text(key), toml(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_bare = !key.is_empty() && key.chars().all(bare);
    if is_bare { key.to_owned() } else { Value::from(key).to_string() }
}
