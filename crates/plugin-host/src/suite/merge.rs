//! The rules for a merge of a plugin.

use std::sync::Arc;

use offshoot_model::{JsonText, RunStatus};
use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::merge::{self, Meta};
use offshoot_runtime::{Merge, MergeFault, MergeInput, MergeJob, MergeValue};

use super::listener::Listener;
use super::probing::{self, Probing};
use super::runtime::not_a_panic;
use super::{Book, soon};
use crate::plugin::Plugin;

/// Results of one merge.
const MANY: u32 = 10_000;
/// A result of this size, in bytes.
const LARGE: usize = 100 << 20;

pub(super) async fn check(
    plugin: &Arc<Plugin>,
    name: &str,
    config: &JsonText,
    probing: Probing,
    book: &mut Book<'_>,
) {
    let subject = format!("merge {name}");
    let mut made = None;
    book.rule(&subject, "it is given with its settings", async {
        made = Some(plugin.merge(name, config).map_err(|error| error.to_string())?);
        Ok(())
    })
    .await;
    let Some(merge) = made else { return };
    book.rule(&subject, "an unknown name is refused without a panic", async {
        match plugin.functions.merge("no such merge", "{}") {
            RResult::ROk(_) => Err("it gave a merge of another name".to_owned()),
            RResult::RErr(error) => not_a_panic(&error),
        }
    })
    .await;
    probing::of_merge(plugin, name, &subject, probing, book).await;
    let null = JsonText::parse("null".to_owned()).expect("it is JSON");
    if let Err(fault) = merge.begin(&null, Listener::default().host()) {
        book.rule(&subject, "missing parameters are refused without a panic", async {
            calm(&fault)
        })
        .await;
        book.skip(&subject, "it merges", "it does not begin without parameters");
        return;
    }
    let begin =
        || merge.begin(&null, Listener::default().host()).map_err(|fault| fault.to_string());
    book.rule(&subject, "parameters that it does not know do not make it panic", async {
        let strange =
            JsonText::parse("{\"no such parameter\":[1]}".to_owned()).expect("it is JSON");
        merge
            .begin(&strange, Listener::default().host())
            .map_or_else(|fault| calm(&fault), |_| Ok(()))
    })
    .await;
    book.rule(&subject, "nothing at all is merged, or refused without a panic", async {
        let answer = soon("the answer", begin()?.finish()).await?;
        answer.map_or_else(|fault| calm(&fault), |_| Ok(()))
    })
    .await;
    book.rule(&subject, "the answer does not depend on who was faster", async {
        let one = merged(begin()?, &[0, 1, 2, 3]).await?;
        let other = merged(begin()?, &[3, 1, 0, 2]).await?;
        if one == other { Ok(()) } else { Err(format!("{one:?} and {other:?}")) }
    })
    .await;
    book.rule(&subject, "a result that is no JSON is an error, and no panic", async {
        let job = plugin.functions.merge(name, "{}");
        let RResult::ROk(raw) = job else {
            return Err("it was given before, and not again".to_owned());
        };
        let host = Listener::default().crossing();
        let RResult::ROk(mut job) = raw.begin("null".into(), host) else {
            return Err("it began before, and does not again".to_owned());
        };
        let meta = Meta { key: "k".into(), status: RunStatus::Completed, file: None };
        let meta = merge::encode(meta).expect("it is plain data");
        for (meta, result) in [(meta.as_str(), "{"), ("{", "null"), ("", "")] {
            if let RResult::RErr(error) = job.push(0, meta.into(), result.into()) {
                not_a_panic(&error)?;
            }
        }
        Ok(())
    })
    .await;
    book.rule(&subject, &format!("{MANY} results are taken"), async {
        let mut job = begin()?;
        for index in 0..MANY {
            if push(&mut *job, index, index.to_string())?.is_some() {
                return Ok(());
            }
        }
        soon("the answer", job.finish()).await?.map_or_else(|fault| calm(&fault), |_| Ok(()))
    })
    .await;
    book.rule(&subject, "a result of 100 MB is taken", async {
        let mut job = begin()?;
        if push(&mut *job, 0, "1".repeat(LARGE))?.is_some() {
            return Ok(());
        }
        soon("the answer", job.finish()).await?.map_or_else(|fault| calm(&fault), |_| Ok(()))
    })
    .await;
    book.rule(&subject, "a merge can be abandoned", async {
        let mut job = begin()?;
        let _ = push(&mut *job, 0, "1".to_owned())?;
        drop(job);
        Ok(())
    })
    .await;
}

/// The answer to four results that come in this order; an error is as good as an answer, if it is always the same.
async fn merged(
    mut job: Box<dyn MergeJob>,
    order: &[u32],
) -> Result<Result<JsonText, String>, String> {
    for &index in order {
        // An early answer depends on time, because that is what it is for.
        match job.push(index, input((index * 10).to_string())) {
            Ok(Some(_)) => return Ok(Err("an early answer".to_owned())),
            Ok(None) => {}
            Err(fault) => {
                calm(&fault)?;
                return Ok(Err("refused".to_owned()));
            }
        }
    }
    Ok(soon("the answer", job.finish()).await?.map_err(|fault| fault.message))
}

fn push(job: &mut dyn MergeJob, index: u32, text: String) -> Result<Option<JsonText>, String> {
    match job.push(index, input(text)) {
        Ok(answer) => Ok(answer),
        Err(fault) => calm(&fault).map(|()| None),
    }
}

fn input(text: String) -> MergeInput {
    MergeInput {
        key: "k".into(),
        status: RunStatus::Completed,
        value: MergeValue::Text(text.into()),
    }
}

fn calm(fault: &MergeFault) -> Result<(), String> {
    if fault.panicked { Err(fault.to_string()) } else { Ok(()) }
}
