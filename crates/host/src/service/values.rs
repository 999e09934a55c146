//! Values that sessions keep, are given, and hand on.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::BASE64;
use offshoot_door::{CallError, CallerKind, ContextInfo, ContextPut, Value, Variable, Variables};
use offshoot_model::{
    Need, Payload, Refusal, RefusalCode, RunId, Timestamp, ValueKind, VariableRef, json_error,
};
use offshoot_spawner::KeptValue;
use offshoot_store::{DataFolder, NAME_LIMIT, NewValue, file_name};
use serde::de::IgnoredAny;

use super::given_file::GivenFile;
use super::searches::Gone;
use super::{TreeService, blocking, failed, invalid};

/// Before the id of the run.
const RESULT: &str = "sub-result-";

impl TreeService {
    /// Keeps a value under a name of the session's own.
    pub(super) async fn put(
        &self,
        caller: RunId,
        put: ContextPut,
        file: Option<OwnedFd>,
    ) -> Result<Variable, CallError> {
        let ContextPut { name, value, kind } = put;
        check_name(&name)?;
        let asking = self.agents.session(caller).await?;
        if matches!(value, Value::File(_))
            && !["read", "exec"].map(|right| asking.grant.tools.permits(right)).contains(&true)
        {
            let message = "to hand in a file takes the right `read`";
            return Err(Refusal::new(RefusalCode::ToolsNotGrantable, message)
                .with_hint("hand in the value itself")
                .into());
        }
        let folder = self.agents.folder().clone();
        let new = self
            .searches
            .read(CallerKind::Run(caller), move |gone| new_value(&folder, value, kind, file, gone));
        let new = new.await?;
        let value = self.agents.store().put(new).await.map_err(failed)?;
        self.keep(caller, name, value).await
    }

    /// Gives a value that is stored a name, which is on record then, and the session a file of that name.
    pub(super) async fn keep(
        &self,
        caller: RunId,
        name: String,
        value: VariableRef,
    ) -> Result<Variable, CallError> {
        let KeptValue { value, at } = self.agents.keep(caller, &name, value).await?;
        self.link(caller, &name, value).await?;
        self.describe(caller, name, value, Some(at)).await
    }

    /// Describes a value; or all values that the session has put or was given.
    pub(super) async fn info(
        &self,
        caller: RunId,
        info: ContextInfo,
    ) -> Result<Variables, CallError> {
        let mut variables = Vec::new();
        if let Some(name) = info.name {
            let value = self.value(caller, "name", &name).await?;
            let at = self.agents.kept(caller, &name).map(|kept| kept.at);
            variables.push(self.describe(caller, name, value, at).await?);
            return Ok(Variables { variables });
        }
        let mut all = self.agents.all_kept(caller);
        for entry in self.agents.context(caller).iter() {
            let given = KeptValue { value: entry.value, at: Timestamp::EPOCH };
            all.entry(Arc::clone(&entry.name)).or_insert(given);
        }
        for (name, KeptValue { value, at }) in all {
            let at = (at != Timestamp::EPOCH).then_some(at);
            variables.push(self.describe(caller, name.to_string(), value, at).await?);
        }
        Ok(Variables { variables })
    }

    /// A value by the name that the session has for it: one that it has put, one that it was given, or the result of a
    /// run below it.
    pub(super) async fn value(
        &self,
        caller: RunId,
        field: &str,
        name: &str,
    ) -> Result<VariableRef, CallError> {
        if let Some(kept) = self.agents.kept(caller, name) {
            return Ok(kept.value);
        }
        if let Some(given) = self.agents.context(caller).iter().find(|given| *given.name == *name) {
            return Ok(given.value);
        }
        let run = name.strip_prefix(RESULT).and_then(|run| RunId::from_str(run).ok());
        match run {
            Some(run) => self.result(caller, run).await?,
            None => None,
        }
        .ok_or_else(|| invalid(field, format!("there is no variable `{name}`")))
    }

    /// The same, for a child, whose record names the value alone: what was only a copy of the record is made durable.
    pub(super) async fn value_for_child(
        &self,
        caller: RunId,
        field: &str,
        name: &str,
    ) -> Result<VariableRef, CallError> {
        let value = self.value(caller, field, name).await?;
        if !Need::is_variable(name) || value.size > Need::COPIED_BYTES {
            return Ok(value);
        }
        let store = Arc::clone(self.agents.store());
        let bytes = blocking(move || store.read(&value).map_err(failed)).await?;
        self.agents.store().put(NewValue::bytes(value.kind, bytes)).await.map_err(failed)
    }

    /// Returns the answer of a run below a session, as a value.
    async fn result(&self, caller: RunId, run: RunId) -> Result<Option<VariableRef>, CallError> {
        let agents = self.agents.clone();
        let output = blocking(move || {
            if !agents.is_below(run, caller).map_err(failed)? {
                return Ok(None);
            }
            let ending = agents.store().ending(agents.root(), run).map_err(failed)?;
            Ok(ending.and_then(|ending| ending.output))
        })
        .await?;
        match output {
            Some(output) => self.stored(&output).await.map(Some),
            None => Ok(None),
        }
    }

    /// A payload as a value of the store.
    pub(super) async fn stored(&self, payload: &Payload) -> Result<VariableRef, CallError> {
        let new = match payload {
            Payload::Stored(value) => return Ok(*value),
            Payload::Text(text) => NewValue::bytes(ValueKind::Text, text.as_bytes()),
            Payload::Json(json) => NewValue::bytes(ValueKind::Result, json.as_str().as_bytes()),
        };
        self.agents.store().put(new).await.map_err(failed)
    }

    /// Describes a value, and where this session can read it.
    pub(super) async fn describe(
        &self,
        caller: RunId,
        name: String,
        value: VariableRef,
        at: Option<Timestamp>,
    ) -> Result<Variable, CallError> {
        let file = file_name(&name, value.kind).map_err(failed)?;
        let file = self.agents.folder().run_folder(caller).join("context").join(file);
        let path = if file.exists() { file } else { self.link(caller, &name, value).await? };
        Ok(Variable {
            name,
            kind: value.kind.into(),
            size: value.size,
            hash: value.hash,
            path: Some(path),
            created_at: at.map(|at| at.to_string()),
        })
    }

    /// The value as a file among those of this session.
    async fn link(
        &self,
        caller: RunId,
        name: &str,
        value: VariableRef,
    ) -> Result<PathBuf, CallError> {
        let (agents, name) = (self.agents.clone(), name.to_owned());
        blocking(move || {
            let linked = agents.folder().context_link(&**agents.store(), caller, &name, &value);
            linked.map_err(failed)
        })
        .await
    }
}

/// The name of a run's result, for the sessions above it.
pub(super) fn result_name(run: RunId) -> String {
    format!("{RESULT}{run}")
}

fn check_name(name: &str) -> Result<(), CallError> {
    if name.is_empty() {
        return Err(invalid("name", "a value needs a name"));
    }
    match name.chars().count() {
        ..=NAME_LIMIT => Ok(()),
        many => {
            Err(invalid("name", format!("a name has at most {NAME_LIMIT} characters, not {many}")))
        }
    }
}

/// A value as it was handed in. May copy a file.
fn new_value(
    folder: &DataFolder,
    value: Value,
    kind: Option<ValueKind>,
    file: Option<OwnedFd>,
    gone: &Gone,
) -> Result<NewValue, CallError> {
    if kind == Some(ValueKind::Result) {
        // Results are those of runs.
        return Err(invalid("kind", "a value is `text`, `json` or `bytes`"));
    }
    match value {
        Value::Text(text) => of_bytes(text.into_bytes(), kind.or(Some(ValueKind::Text))),
        Value::Json(json) => {
            Ok(NewValue::bytes(kind.unwrap_or(ValueKind::Json), json.as_str().as_bytes()))
        }
        Value::Base64(text) => {
            let bytes = BASE64
                .decode(text.as_bytes())
                .map_err(|error| invalid("value", format!("this is not base64: {error}")))?;
            of_bytes(bytes, kind)
        }
        Value::File(title) => GivenFile::new(title, file)?.copy(folder, kind, gone),
        Value::Path(_) => {
            let message = "the supervisor opens no file by its path";
            Err(Refusal::invalid("value", message)
                .with_hint("open the file, and send its descriptor with the line: `{\"file\": …}`")
                .into())
        }
    }
}

fn of_bytes(bytes: Vec<u8>, kind: Option<ValueKind>) -> Result<NewValue, CallError> {
    let text = std::str::from_utf8(&bytes);
    let kind = match (kind, &text) {
        (Some(ValueKind::Text | ValueKind::Json), Err(_)) => {
            return Err(invalid("value", "the bytes are not UTF-8"));
        }
        (Some(ValueKind::Json), Ok(text)) => {
            let parsed = serde_json::from_str::<IgnoredAny>(text);
            parsed.map_err(|error| {
                invalid("value", format!("this is not JSON: {}", json_error(text, &error)))
            })?;
            ValueKind::Json
        }
        (Some(kind), _) => kind,
        (None, Ok(_)) => ValueKind::Text,
        (None, Err(_)) => ValueKind::Bytes,
    };
    Ok(NewValue::bytes(kind, bytes))
}
