//! One line of a `--tasks` file: a task as a JSON object.

use std::fmt::Display;
use std::io::BufRead;
use std::num::NonZeroU32;
use std::path::Path;

use offshoot_config::nearest;
use offshoot_model::{
    AgentId, BudgetRequest, Isolation, JsonText, MicroUsd, Need, OnNeedFailed, Rights, TaskType,
    json_error,
};
use offshoot_policy::needs::{self, Named};
use offshoot_policy::{check_given_label, check_label};
use offshoot_schema::check_schema;
use serde_json::{Map, Value};

use super::task::Task;
use crate::arguments::{ContextArgument, seconds};
use crate::code::FailureCode;
use crate::failure::Failure;

/// The keys of a line.
const KEYS: &[&str] = &[
    "task",
    "label",
    "id",
    "needs",
    "onNeedFailed",
    "agent",
    "type",
    "context",
    "model",
    "thinking",
    "budget",
    "weight",
    "tools",
    "timeout",
    "runtime",
    "cwd",
    "schema",
    "isolation",
];
/// The keys of its budget.
const BUDGET: &[&str] = &["usd", "tokens"];
/// The keys of its tools, where they are not a list.
const TOOLS: &[&str] = &["allow", "deny"];
/// The greatest weight.
const MOST_WEIGHT: u32 = 1_000_000;

/// An object of a line, and the field of the line that it is.
struct Fields {
    within: Option<&'static str>,
    fields: Map<String, Value>,
}

/// Reads all lines of a file that are not blank.
///
/// # Errors
///
/// Names the file, the line and the field that is wrong.
pub(crate) fn read(file: &Path, input: impl BufRead) -> Result<Vec<Task>, Failure> {
    let (mut tasks, mut numbers) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(input.split(b'\n')) {
        let line =
            line.map_err(|error| Failure::file(FailureCode::CannotRead, "read", file, &error))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let keys = KEYS.join(", ");
        let at = |text: &dyn Display, is_of_keys: bool| {
            let text = format_args!("{}, line {number}{text}", file.display());
            let hint = format!(
                "each line is JSON, such as {{\"task\": \"sum up\"}}, with these keys: {keys}"
            );
            Failure::input(FailureCode::BadTaskLine, text).maybe_hint(is_of_keys.then_some(hint))
        };
        let value = serde_json::from_slice(&line).map_err(|error| {
            let text = json_error("", &error);
            at(&format_args!(", column {}: {text}", error.column()), true)
        })?;
        // A wrong value says itself what is allowed.
        let is_of_keys = |wrong: &str| !wrong.starts_with('`');
        tasks
            .push(task(value).map_err(|wrong| at(&format_args!(": {wrong}"), is_of_keys(&wrong)))?);
        numbers.push(number);
    }
    let named: Vec<Named<'_>> = tasks.iter().map(Task::named).collect();
    needs::places(&named).map_err(|error| {
        let (file, number) = (file.display(), numbers[error.at()]);
        Failure::input(FailureCode::BadNeeds, format_args!("{file}, line {number}: {error}"))
            .hint("`needs` has the ids of other lines of this file, and no line needs itself by way of others")
    })?;
    Ok(tasks)
}

/// Reads the task of a line, or says what is wrong with it.
fn task(line: Value) -> Result<Task, String> {
    let mut fields = match line {
        Value::Object(fields) => Fields::of(None, fields, KEYS)?,
        other => return Err(format!("a line must be an object, and this is {}", kind(&other))),
    };
    let Some(task) = fields.text("task")? else {
        return Err("the key `task` is missing".to_owned());
    };
    if task.is_empty() {
        return Err("the task is empty".to_owned());
    }
    let label = fields.text("label")?;
    if let Some(label) = &label {
        check_given_label(label).map_err(|refusal| refusal.message)?;
    }
    let id = fields.text("id")?;
    if id.as_ref().is_some_and(|id| check_label(id).is_err()) {
        return Err("`id` must have 1 to 100 characters, and no control characters".to_owned());
    }
    let agent = fields.text("agent")?.map(|id| AgentId::parse(&id).map_err(|e| e.to_string()));
    let task = Task {
        task,
        label: label.or_else(|| id.clone()),
        id,
        needs: fields.texts("needs")?.unwrap_or_default(),
        on_need_failed: fields.on_need_failed()?,
        agent: agent.transpose()?,
        task_type: fields.task_type()?,
        timeout: fields.timeout()?,
        model: fields.text("model")?,
        thinking: fields.text("thinking")?,
        budget: fields.budget()?,
        weight: fields.weight()?,
        tools: fields.tools()?,
        runtime: fields.text("runtime")?.map(Into::into),
        cwd: fields.text("cwd")?.map(Into::into),
        program: None,
        schema: fields.schema()?,
        isolation: fields.isolation()?,
        context: Vec::new(),
        files: fields.files()?,
    };
    for id in &task.needs {
        let variable = Need::variable(id);
        if task.files.iter().any(|file| file.name == variable) {
            return Err(format!("`context.{variable}` is the name of the answer of `{id}`"));
        }
    }
    for (key, text) in [("model", &task.model), ("thinking", &task.thinking)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(format!("`{key}` is empty"));
        }
    }
    Ok(task)
}

impl Fields {
    /// The fields of an object that has these keys alone.
    fn of(
        within: Option<&'static str>,
        fields: Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, String> {
        let named = |key: &str| within.map_or(key.to_owned(), |within| format!("{within}.{key}"));
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            let meant = nearest(key, known).map(|key| format!("; the nearest is `{}`", named(key)));
            return Err(format!("unknown key `{}`{}", named(key), meant.unwrap_or_default()));
        }
        Ok(Self { within, fields })
    }

    /// Takes a field, where it is there and not null.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.remove(key).filter(|value| !value.is_null())
    }

    /// The message for a value that is none of this key.
    fn wrong(&self, key: &str, expected: &str, found: &Value) -> String {
        let within = self.within.map(|within| format!("{within}.")).unwrap_or_default();
        let found = match found {
            Value::Number(_) | Value::Bool(_) => found.to_string(),
            Value::Array(items) if expected.contains("array") => {
                let odd = items.iter().find(|item| !item.is_string());
                format!("an array with {}", odd.map_or("nothing in it", kind))
            }
            other => kind(other).to_owned(),
        };
        format!("`{within}{key}` must be {expected}, and is {found}")
    }

    /// Reads a field, where it is there and not null.
    fn read<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.wrong(key, expected, &value))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, String> {
        let text = |item: &Value| item.as_str().map(str::to_owned);
        self.read(key, "an array of strings", |value| value.as_array()?.iter().map(text).collect())
    }

    fn on_need_failed(&mut self) -> Result<OnNeedFailed, String> {
        let key = "onNeedFailed";
        let Some(text) = self.text(key)? else { return Ok(OnNeedFailed::default()) };
        text.parse().map_err(|_| format!("`{key}` must be `skip` or `run`, and is `{text}`"))
    }

    fn timeout(&mut self) -> Result<Option<u64>, String> {
        let expected = "a number of seconds, or a string such as \"90s\"";
        let Some(value) = self.take("timeout") else { return Ok(None) };
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(self.wrong("timeout", expected, &value)),
        };
        let read = seconds(&text);
        read.map(Some).map_err(|_| format!("`timeout` must be {expected}, and is {value}"))
    }

    fn budget(&mut self) -> Result<Option<BudgetRequest>, String> {
        let expected = "an object with `usd`, `tokens` or both";
        let mut fields = match self.take("budget") {
            None => return Ok(None),
            Some(Value::Object(fields)) => Self::of(Some("budget"), fields, BUDGET)?,
            Some(other) => return Err(self.wrong("budget", expected, &other)),
        };
        let dollars = |value: &Value| value.as_f64().and_then(MicroUsd::from_f64);
        let usd = fields.read("usd", "a number of dollars", dollars)?;
        let tokens = fields.read("tokens", "a whole number", Value::as_u64)?;
        Ok(Some(BudgetRequest { tokens, usd }))
    }

    fn weight(&mut self) -> Result<Option<NonZeroU32>, String> {
        let expected = format!("a whole number from 1 to {MOST_WEIGHT}");
        self.read("weight", &expected, |value| {
            let weight = u32::try_from(value.as_u64()?).ok()?;
            NonZeroU32::new(weight).filter(|weight| weight.get() <= MOST_WEIGHT)
        })
    }

    fn tools(&mut self) -> Result<Option<Rights>, String> {
        let expected = "an array of strings, or an object with `allow` and `deny`";
        let (allow, deny) = match self.fields.get("tools") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(_)) => (self.texts("tools")?, None),
            Some(Value::Object(fields)) => {
                let mut fields = Self::of(Some("tools"), fields.clone(), TOOLS)?;
                (fields.texts("allow")?, fields.texts("deny")?)
            }
            Some(other) => return Err(self.wrong("tools", expected, other)),
        };
        let deny = deny.into_iter().flatten().collect();
        Ok(Some(Rights { allow: allow.map(|allow| allow.into_iter().collect()), deny }))
    }

    fn task_type(&mut self) -> Result<Option<TaskType>, String> {
        let Some(text) = self.text("type")? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| format!("`type` is `{text}`, and {error}"))
    }

    fn isolation(&mut self) -> Result<Option<Isolation>, String> {
        let Some(text) = self.text("isolation")? else { return Ok(None) };
        let parsed = text.parse();
        parsed.map(Some).map_err(|_| {
            format!("`isolation` must be one of {}, and is `{text}`", Isolation::FORMS)
        })
    }

    fn schema(&mut self) -> Result<Option<JsonText>, String> {
        let json = |value: &Value| JsonText::of(value).expect("it was JSON");
        let schema = self.read("schema", "an object", |it| it.is_object().then(|| json(it)))?;
        if let Some(schema) = &schema {
            check_schema(schema).map_err(|error| format!("`schema` cannot be used: {error}"))?;
        }
        Ok(schema)
    }

    fn files(&mut self) -> Result<Vec<ContextArgument>, String> {
        let expected = "an object of names and files";
        let files = match self.take("context") {
            None => return Ok(Vec::new()),
            Some(Value::Object(files)) => files,
            Some(other) => return Err(self.wrong("context", expected, &other)),
        };
        let file = |(name, path): (String, Value)| match path {
            _ if name.is_empty() => Err("a name in `context` is empty".to_owned()),
            Value::String(path) => Ok(ContextArgument { name, path: path.into() }),
            other => {
                Err(format!("`context.{name}` must be the path of a file, and is {}", kind(&other)))
            }
        };
        files.into_iter().map(file).collect()
    }
}

/// Returns the type of a value in words of JSON.
const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
