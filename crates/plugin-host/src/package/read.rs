//! The strict reader: an unknown key is a slip, and a slip is an error with a place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{PackageProblem, PackageProblems};
use super::program::is_within;
use super::{AbiVersion, LibraryFile, Package, Per, PluginName, ProcessEntry};

const KEYS: [&str; 10] = [
    "name",
    "version",
    "abi",
    "description",
    "license",
    "runtimes",
    "merges",
    "files",
    "process",
    "config",
];
const FILE_KEYS: [&str; 2] = ["path", "digest"];
const PROCESS_KEYS: [&str; 4] = ["command", "files", "per", "digest"];

pub(super) fn read(text: &str, path: &Path) -> Result<Package, PackageProblems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, path, problems: Vec::new() };
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        reader.report(offset, "", error.message());
    }
    if errors.is_empty()
        && let Some(package) = reader.package(table.get_ref())
        && reader.problems.is_empty()
    {
        return Ok(package);
    }
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    Err(PackageProblems(problems))
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    problems: Vec<PackageProblem>,
}

type Node<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    fn package(&mut self, table: &DeTable<'_>) -> Option<Package> {
        self.check_keys(table, &KEYS, "");
        let name = self.required(table, "name").and_then(|node| self.name("name", node));
        let version = self.required(table, "version").and_then(|node| self.text("version", node));
        let abi = self.required(table, "abi").and_then(|node| self.abi(node));
        let description = get(table, "description").and_then(|node| self.text("description", node));
        let license = get(table, "license").and_then(|node| self.text("license", node));
        let runtimes = self.names(table, "runtimes");
        let merges = self.names(table, "merges");
        let process = get(table, "process").and_then(|node| self.process(node));
        let files = match (get(table, "process"), get(table, "files")) {
            (Some(_), Some(node)) => {
                let message = "a plugin is a library or a program: there is `process` too";
                self.report(node.span().start, "files", message);
                BTreeMap::new()
            }
            (Some(_), None) => BTreeMap::new(),
            (None, _) => self.files(table),
        };
        let config = get(table, "config").and_then(|node| match node.get_ref() {
            DeValue::Table(config) => Some(json(config)),
            _ => self.wrong(node, "config", "a table"),
        });
        if runtimes.is_empty() && merges.is_empty() && self.problems.is_empty() {
            self.report(0, "", "the plugin offers neither a runtime nor a merge");
        }
        Some(Package {
            name: name?,
            version: version?,
            abi: abi?,
            description,
            license,
            runtimes,
            merges,
            files,
            process,
            config,
        })
    }

    fn process(&mut self, node: &Node<'_>) -> Option<ProcessEntry> {
        let DeValue::Table(table) = node.get_ref() else {
            return self.wrong(node, "process", "a table with a command");
        };
        self.check_keys(table, &PROCESS_KEYS, "process");
        let command = match get(table, "command") {
            Some(node) => self.list("process.command", node, Self::text),
            None => {
                self.report(node.span().start, "process", "there is no `command`");
                Vec::new()
            }
        };
        let files = get(table, "files");
        let files = files.map(|node| self.list("process.files", node, Self::relative));
        let per = match get(table, "per") {
            None => Some(Per::default()),
            Some(node) => match node.get_ref() {
                DeValue::String(word) if *word == Per::Run.word() => Some(Per::Run),
                DeValue::String(word) if *word == Per::Plugin.word() => Some(Per::Plugin),
                _ => self.wrong(node, "process.per", "\"run\" or \"plugin\""),
            },
        };
        let digest = self.digest(table, "process.digest");
        Some(ProcessEntry { command, files: files.unwrap_or_default(), per: per?, digest })
    }

    fn list<T>(
        &mut self,
        key: &str,
        node: &Node<'_>,
        item: impl Fn(&mut Self, &str, &Node<'_>) -> Option<T>,
    ) -> Vec<T> {
        match node.get_ref() {
            DeValue::Array(items) if !items.is_empty() || key.ends_with(".files") => {
                items.iter().filter_map(|node| item(self, key, node)).collect()
            }
            _ => {
                self.wrong::<()>(node, key, "a list of texts");
                Vec::new()
            }
        }
    }

    fn digest(&mut self, table: &DeTable<'_>, key: &str) -> Option<ContentHash> {
        let node = get(table, "digest")?;
        match self.text(key, node)?.parse() {
            Ok(digest) => Some(digest),
            Err(_) => self.wrong(node, key, "a BLAKE3 hash of 64 hexadecimal digits"),
        }
    }

    fn files(&mut self, table: &DeTable<'_>) -> BTreeMap<String, LibraryFile> {
        let Some(node) = self.required(table, "files") else { return BTreeMap::new() };
        let DeValue::Table(targets) = node.get_ref() else {
            self.wrong::<()>(node, "files", "a table by target");
            return BTreeMap::new();
        };
        let mut files = BTreeMap::new();
        for (target, node) in targets {
            let key = format!("files.{}", target.get_ref());
            let DeValue::Table(file) = node.get_ref() else {
                self.wrong::<()>(node, &key, "a table with a path");
                continue;
            };
            self.check_keys(file, &FILE_KEYS, &key);
            let digest = self.digest(file, &format!("{key}.digest"));
            match get(file, "path") {
                Some(node) => {
                    if let Some(path) = self.relative(&format!("{key}.path"), node) {
                        files.insert(target.get_ref().to_string(), LibraryFile { path, digest });
                    }
                }
                None => self.report(target.span().start, &key, "there is no `path`"),
            }
        }
        files
    }

    fn relative(&mut self, key: &str, node: &Node<'_>) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(key, node)?);
        if is_within(&path) {
            return Some(path);
        }
        self.wrong(node, key, "a path within the folder of the plugin")
    }

    fn abi(&mut self, node: &Node<'_>) -> Option<AbiVersion> {
        let text = self.text("abi", node)?;
        let version = AbiVersion::parse(&text);
        if version.is_none() {
            self.wrong::<()>(node, "abi", "a version such as \"1.0\"");
        }
        version
    }

    fn names(&mut self, table: &DeTable<'_>, key: &str) -> Vec<PluginName> {
        let Some(node) = get(table, key) else { return Vec::new() };
        let DeValue::Array(items) = node.get_ref() else {
            self.wrong::<()>(node, key, "a list of names");
            return Vec::new();
        };
        let mut names: Vec<PluginName> = Vec::new();
        for item in items {
            let Some(name) = self.name(key, item) else { continue };
            if names.contains(&name) {
                self.report(item.span().start, key, &format!("`{name}` stands there twice"));
            } else {
                names.push(name);
            }
        }
        names
    }

    fn name(&mut self, key: &str, node: &Node<'_>) -> Option<PluginName> {
        let text = self.text(key, node)?;
        let name = PluginName::parse(&text);
        name.map_or_else(|_| self.wrong(node, key, PluginName::ALLOWED), Some)
    }

    fn text(&mut self, key: &str, node: &Node<'_>) -> Option<String> {
        match node.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.to_string()),
            _ => self.wrong(node, key, "a text that is not empty"),
        }
    }

    fn required<'t, 'a>(&mut self, table: &'t DeTable<'a>, key: &str) -> Option<&'t Node<'a>> {
        let node = get(table, key);
        if node.is_none() {
            self.report(0, "", &format!("there is no `{key}`"));
        }
        node
    }

    fn check_keys(&mut self, table: &DeTable<'_>, known: &[&str], path: &str) {
        for (key, _) in table {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let nearest = known
                .iter()
                .map(|known| (strsim::damerau_levenshtein(known, name), known))
                .min()
                .filter(|&(distance, _)| distance <= 2)
                .map(|(_, known)| format!(", nearest is `{known}`"));
            let dot = if path.is_empty() { "" } else { "." };
            let message = match nearest {
                Some(nearest) => format!("unknown key{nearest}"),
                None => format!("unknown key; known are {}", known.join(", ")),
            };
            self.report(key.span().start, &format!("{path}{dot}{name}"), &message);
        }
    }

    fn wrong<T>(&mut self, node: &Node<'_>, key: &str, allowed: &str) -> Option<T> {
        let found = self.text.get(node.span()).unwrap_or_default();
        let first = found.lines().next().unwrap_or_default();
        let shown: String = first.chars().take(40).collect();
        self.report(node.span().start, key, &format!("found {shown}, allowed is {allowed}"));
        None
    }

    fn report(&mut self, offset: usize, key: &str, message: &str) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let last = before.rsplit('\n').next().unwrap_or_default();
        self.problems.push(PackageProblem {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
            key: key.to_owned(),
            message: message.to_owned(),
        });
    }
}

fn get<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t Node<'a>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, node)| node)
}

fn json(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, node)| (key.get_ref().to_string(), value(node)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn value(node: &Node<'_>) -> Value {
    match node.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(value).collect()),
        DeValue::Table(table) => json(table),
    }
}
