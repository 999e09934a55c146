//! The end of a tree that has lost its supervisor, where the operator does not want it to go on.

use offshoot_config::Config;
use offshoot_host::Host;
use offshoot_model::RootId;

use super::engine::{self, data_folder};
use super::heads::Heads;
use super::plan::Plan;
use crate::arguments::LimitArguments;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::record::Record;

/// Takes over a tree and ends it: nothing of it is started, so that its runtimes and what its runs read need not be there. Processes that
/// it has left are ended, and what it has not spent of the day is free again.
pub(crate) fn cancel_abandoned(root: RootId, cx: &Invocation) -> Result<(), Failure> {
    let its = where_it_was_opened(root, cx)?;
    let (config, cx) = configuration(its.as_ref(), cx)?;
    let plugins = plugins::plugins(&[], &config, cx)?;
    engine::block_on(async {
        let heads = Heads::new(&config, plugins.processes()?, cx);
        let builder = Host::builder(config, cx.environment.of_host()).folder(data_folder(cx)?);
        let host = builder.plugins(plugins).reporter(cx.output.reporter()).start().await?;
        host.cancel_abandoned(root).await?;
        heads.keep(host.store(), root, cx).await;
        Ok(())
    })
}

/// Returns this command as it would be in the folder and with the configuration of the tree; none where a client opened it.
fn where_it_was_opened(root: RootId, cx: &Invocation) -> Result<Option<Invocation>, Failure> {
    let record = Record::open_for(cx, &root.to_string())?;
    let plan = record.store().admitted(root, root.run())?.and_then(|admitted| admitted.plan);
    let plan: Option<Plan> = plan.and_then(|plan| serde_json::from_str(plan.as_str()).ok());
    Ok(plan.map(|plan| cx.in_folder((*plan.opened_in).clone(), plan.config.as_deref())))
}

/// Returns the configuration of the tree, or the one that holds here where that of the tree is gone.
fn configuration<'a>(
    its: Option<&'a Invocation>,
    here: &'a Invocation,
) -> Result<(Config, &'a Invocation), Failure> {
    let load = |cx: &'a Invocation| Ok((load::config(cx, &LimitArguments::default())?, cx));
    match its.map(load) {
        Some(Ok(its)) => Ok(its),
        Some(Err(_)) | None => load(here),
    }
}
