//! Children: one, several, or one for each piece of a value.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_door::{
    CallError, ChildAnswer, Delegate, Delegated, ProgressSink, Spawn, SpawnInput, SpawnMany,
    Spawned, SpawnedMany, Split,
};
use offshoot_merge::Strategy;
use offshoot_model::{
    ContextEntry, InputRange, OnNeedFailed, Refusal, RunId, SpawnRequest, ValueKind, VariableRef,
};
use offshoot_spawner::{Accepted, ChildRequest, Sibling};
use offshoot_split as split;
use offshoot_store::{DataFolder, NewValue, ValueReader};

use super::{TreeService, blocking, failed, invalid};

/// More children in one request are a mistake rather than a plan: a piece of a value each, and a value of its own.
const MOST_CHILDREN: usize = 1000;

/// A label has at most so many characters.
const LABEL: usize = 100;

impl TreeService {
    /// One child.
    pub(super) async fn spawn(&self, caller: RunId, spawn: Spawn) -> Result<Spawned, CallError> {
        is_single(&spawn)?;
        let child = self.child(caller, spawn).await?;
        let Accepted { run, key, lowered, changed } = self.agents.spawn(caller, child).await?;
        Ok(Spawned { run_id: run, session_key: key, lowered, changed })
    }

    /// One child, by the agent that fits its task.
    pub(super) async fn delegate(
        &self,
        caller: RunId,
        Delegate { spawn, choose_only }: Delegate,
    ) -> Result<Delegated, CallError> {
        is_single(&spawn)?;
        let child = self.child(caller, spawn).await?;
        Ok(self.agents.delegate(caller, child, choose_only).await?)
    }

    /// Several children in one step, which share what the caller has left. A refusal undoes none of the others.
    pub(super) async fn spawn_many(
        &self,
        caller: RunId,
        many: SpawnMany,
        progress: &ProgressSink,
    ) -> Result<SpawnedMany, CallError> {
        let SpawnMany { children, template, split, wait } = many;
        if wait.as_ref().is_some_and(|wait| !wait.runs.is_empty()) {
            return Err(invalid("wait.runs", "the runs are those that are asked for"));
        }
        let merges = wait.as_ref().is_some_and(|wait| wait.merge.is_some());
        let asked = match (template, split) {
            // None at all make an empty answer, where one is asked for.
            (None, None) if children.is_empty() && !merges => {
                return Err(invalid("children", "no child is asked for"));
            }
            (None, None) => self.each(caller, children).await?,
            (Some(template), Some(split)) if children.is_empty() => {
                self.pieces(caller, template, split).await?
            }
            (None, Some(_)) => return Err(invalid("template", "a split needs a template")),
            (Some(_), None) => return Err(invalid("split", "a template needs a split")),
            (Some(_), Some(_)) => {
                return Err(invalid("children", "either `children`, or `template` with `split`"));
            }
        };
        let strategy = wait.as_ref().and_then(|wait| wait.merge.as_ref()?.strategy.parse().ok());
        if let Some(Strategy::Quorum(needed)) = strategy
            && needed.get() as usize > asked.len()
            && !asked.is_empty()
        {
            let message = format!("quorum:{needed} of {} children cannot come", asked.len());
            return Err(invalid("wait.merge.strategy", message));
        }
        // Before anything runs: a merge that cannot be used costs nothing then.
        let order = match &wait {
            Some(wait) => self.order_of(caller, wait).await?,
            None => None,
        };
        let answers = self.agents.spawn_many(caller, asked).await?;
        let runs: Vec<RunId> = answers.iter().flatten().map(|accepted| accepted.run).collect();
        let children = answers.into_iter().map(answer).collect();
        let waited = match wait {
            Some(wait) => Some(self.wait_for(caller, runs, &wait, order, progress).await?),
            None => None,
        };
        Ok(SpawnedMany { children, waited })
    }

    /// Each child as it is asked on. One that cannot be asked on keeps its place.
    async fn each(&self, caller: RunId, children: Vec<Spawn>) -> Result<Vec<Sibling>, CallError> {
        if children.len() > MOST_CHILDREN {
            return Err(too_many("children"));
        }
        let mut asked = Vec::with_capacity(children.len());
        for mut spawn in children {
            let (id, needs) = (spawn.id.take(), std::mem::take(&mut spawn.needs));
            let on_need_failed = std::mem::take(&mut spawn.on_need_failed);
            let child = match self.child(caller, spawn).await {
                Ok(child) => Ok(child),
                Err(CallError::Refused(refusal)) => Err(*refusal),
                Err(error) => return Err(error),
            };
            asked.push(Sibling { child, id, needs, on_need_failed });
        }
        Ok(asked)
    }

    /// One child for each piece of a value, which it finds under the value's name.
    async fn pieces(
        &self,
        caller: RunId,
        template: Spawn,
        split: Split,
    ) -> Result<Vec<Sibling>, CallError> {
        is_single(&template)?;
        let Split { name, by } = split;
        let by: split::Split = by
            .parse()
            .map_err(|error: split::ParseSplitError| invalid("split.by", error.to_string()))?;
        let whole = self.value(caller, "split.name", &name).await?;
        let opened = self.agents.store().open(&whole).map_err(failed)?;
        let source = split::Source::Open(opened.into_file().into(), PathBuf::from(&name));
        let ranges = blocking(move || {
            let cuts = split::cut([source], by).map_err(|error| split_failed(&error))?;
            let ranges = cuts.take(MOST_CHILDREN + 1).map(|piece| piece.map(|piece| piece.range));
            ranges.collect::<Result<Vec<_>, _>>().map_err(|error| split_failed(&error))
        })
        .await?;
        if ranges.len() > MOST_CHILDREN {
            return Err(too_many("split.by"));
        }
        let child = self.child(caller, template.clone()).await?;
        let title = template.label.as_deref().unwrap_or(&name);
        let mut asked = Vec::with_capacity(ranges.len());
        for (number, range) in (1..).zip(ranges) {
            let value = self.piece(range, &whole).await?;
            let mut child = child.clone();
            child.request.label = Some(label(title, number).into());
            child.request.context.retain(|entry| *entry.name != *name);
            child.request.context.push(ContextEntry { name: name.as_str().into(), value });
            asked.push(child.into());
        }
        Ok(asked)
    }

    /// A piece as a value of its own. It passes through a file, never as a whole through memory.
    async fn piece(
        &self,
        range: InputRange,
        whole: &VariableRef,
    ) -> Result<VariableRef, CallError> {
        let kind = match whole.kind {
            ValueKind::Bytes => ValueKind::Bytes,
            // A part of a JSON value is text.
            ValueKind::Text | ValueKind::Json | ValueKind::Result => ValueKind::Text,
        };
        let folder = self.agents.folder().clone();
        let whole = self.agents.store().open(whole).map_err(failed)?;
        let copied = blocking(move || {
            copy(&folder, whole, &range)
                .map_err(|error| CallError::failed(format!("cannot cut: {error}")))
        })
        .await?;
        let value = NewValue::adopt(kind, copied);
        self.agents.store().put(value).await.map_err(failed)
    }

    /// Spawns a child, as the engine is asked for it.
    async fn child(&self, caller: RunId, spawn: Spawn) -> Result<ChildRequest, CallError> {
        let mut context = Vec::with_capacity(spawn.context.len());
        for grant in spawn.context {
            let from = grant.from.as_ref().unwrap_or(&grant.name);
            let value = self.value_for_child(caller, "context", from).await?;
            context.push(ContextEntry { name: grant.name.into(), value });
        }
        let input = match spawn.input {
            Some(input) => Some(self.input(caller, input).await?),
            None => None,
        };
        let folder = spawn.cwd;
        if let Some(folder) = &folder {
            check_folder(folder).await?;
        }
        let request = SpawnRequest {
            task: spawn.task.into(),
            agent: spawn.agent,
            label: spawn.label.map(Into::into),
            task_type: spawn.task_type,
            context,
            command: spawn.command.map(Into::into),
            model: spawn.model,
            thinking: spawn.thinking,
            run_timeout_seconds: spawn.run_timeout_seconds,
            tools: spawn.tools,
            budget: spawn.budget,
            weight: spawn.weight,
            no_queue: spawn.queue == Some(false),
            max_depth: spawn.max_depth,
            ok_exit: spawn.ok_exit.map(Into::into),
            output: spawn.output,
            schema: spawn.schema,
            isolation: spawn.isolation,
            cleanup: spawn.cleanup,
            chosen_by: Arc::default(),
            merges: None,
        };
        Ok(ChildRequest { request, folder, input })
    }

    /// The part of a value that a child reads, where the store has the value.
    async fn input(&self, caller: RunId, input: SpawnInput) -> Result<InputRange, CallError> {
        let SpawnInput { name, offset, length, header } = input;
        let value = self.value_for_child(caller, "input.name", &name).await?;
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > value.size) || header > value.size {
            let size = value.size;
            return Err(invalid("input", format!("the value `{name}` has {size} bytes only")));
        }
        let path = self.agents.store().path(&value).map_err(failed)?.into();
        Ok(InputRange { path, offset, length, header, hash: None })
    }
}

fn answer(answer: Result<Accepted, Refusal>) -> ChildAnswer {
    match answer {
        Ok(Accepted { run, key, lowered, changed }) => {
            let (run_id, session_key) = (Some(run), Some(key));
            ChildAnswer { run_id, session_key, lowered, changed, refusal: None }
        }
        Err(refusal) => {
            ChildAnswer { refusal: Some(Box::new((&refusal).into())), ..ChildAnswer::default() }
        }
    }
}

/// Refuses needs where there are no others that could be needed.
fn is_single(spawn: &Spawn) -> Result<(), CallError> {
    let field = match spawn {
        Spawn { id: Some(_), .. } => "id",
        Spawn { needs, .. } if !needs.is_empty() => "needs",
        Spawn { on_need_failed: OnNeedFailed::Run, .. } => "onNeedFailed",
        _ => return Ok(()),
    };
    Err(invalid(field, "only the `children` of one `spawn_many` can need each other"))
}

/// A name for people: that of the whole, and the piece's number.
fn label(title: &str, number: u32) -> String {
    let number = format!(":{number}");
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let title: String = title.chars().map(plain).take(LABEL - number.len()).collect();
    format!("{title}{number}")
}

fn copy(folder: &DataFolder, mut from: ValueReader, range: &InputRange) -> io::Result<PathBuf> {
    from.seek(SeekFrom::Start(range.offset))?;
    let (mut file, path) = folder.spool_file().map_err(io::Error::other)?;
    io::copy(&mut from.take(range.length), &mut file)?;
    Ok(path)
}

/// Makes sure that a child can work in a folder, before it takes one of the spawns of its parent.
async fn check_folder(folder: &Path) -> Result<(), CallError> {
    if !folder.is_absolute() {
        return Err(invalid("cwd", "the folder is not absolute"));
    }
    match tokio::fs::metadata(folder).await.is_ok_and(|found| found.is_dir()) {
        true => Ok(()),
        false => {
            let message = format!("there is no folder {} to work in", folder.display());
            Err(invalid("cwd", message))
        }
    }
}

fn too_many(field: &str) -> CallError {
    invalid(field, format!("more than {MOST_CHILDREN} children in one request"))
}

fn split_failed(error: &split::SplitError) -> CallError {
    invalid("split", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_its_number_whatever_the_name() {
        assert_eq!(label("log", 3), "log:3");
        assert_eq!(label("a\nb", 1), "a\u{fffd}b:1");
        let long = label(&"é".repeat(200), 1000);
        assert_eq!(long.chars().count(), LABEL);
        assert!(long.ends_with("é:1000"), "{long}");
    }
}
