//! The prompt: the task, then one block for each value the agent may read.

use std::path::Path;

use offshoot_model::ValueKind;

use crate::ContextFile;

/// More values than this are listed in a manifest instead of a block each.
pub const MANIFEST_ABOVE: usize = 20;

/// The text an agent is given on standard input: the task byte for byte, and what it needs to find its context.
///
/// `manifest` is the path of a JSON file name → path, size, type; it is named where there are more than
/// [`MANIFEST_ABOVE`] values.
///
/// ```
/// assert_eq!(offshoot_runtime::prompt("count words", &[], None), "count words");
/// ```
pub fn prompt(task: &str, context: &[ContextFile], manifest: Option<&Path>) -> String {
    let mut text = task.to_owned();
    match manifest {
        Some(manifest) if context.len() > MANIFEST_ABOVE => {
            let (manifest, count) = (manifest.display(), context.len());
            text += &format!(
                "\n\nContext manifest: Read {manifest}\n{count} variables: name, path, size and type of each."
            );
        }
        _ => text.extend(context.iter().map(block)),
    }
    text
}

fn block(file: &ContextFile) -> String {
    let (name, size, kind) = (&file.name, file.value.size, file.value.kind);
    let last = match kind {
        ValueKind::Json | ValueKind::Result => "The JSON file has a \"value\" field with the data.",
        ValueKind::Text | ValueKind::Bytes => "The file is the data itself.",
    };
    let path = file.path.display();
    format!("\n\nContext variable \"{name}\" ({size} bytes, type: {kind}):\nRead {path}\n{last}")
}

#[cfg(test)]
mod tests {
    use offshoot_model::{ContentHash, VariableRef};

    use super::*;

    fn file(name: &str, size: u64, kind: ValueKind) -> ContextFile {
        ContextFile {
            name: name.into(),
            path: format!("/data/{name}").into(),
            value: VariableRef { hash: ContentHash::of(name.as_bytes()), size, kind },
        }
    }

    #[test]
    fn one_block_for_each_value() {
        let context = [file("data", 5000, ValueKind::Json), file("log", 7, ValueKind::Text)];
        assert_eq!(
            prompt("Analyse.\n", &context, None),
            "Analyse.\n\n\nContext variable \"data\" (5000 bytes, type: json):\nRead /data/data\n\
             The JSON file has a \"value\" field with the data.\n\n\
             Context variable \"log\" (7 bytes, type: text):\nRead /data/log\n\
             The file is the data itself."
        );
    }

    #[test]
    fn many_values_become_a_manifest() {
        let context: Vec<_> = (0..21).map(|n| file(&n.to_string(), n, ValueKind::Text)).collect();
        let text = prompt("t", &context, Some(Path::new("/data/context.json")));
        assert_eq!(
            text,
            "t\n\nContext manifest: Read /data/context.json\n21 variables: name, path, size and type of each."
        );
        assert!(prompt("t", &context[..20], Some(Path::new("/m"))).contains("variable \"19\""));
    }
}
