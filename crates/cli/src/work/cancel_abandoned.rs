//! The end of a tree that has lost its supervisor, where the operator does not want it to go on.

use offshoot_host::Host;
use offshoot_model::RootId;

use super::engine::{self, data_folder};
use super::heads::Heads;
use crate::arguments::LimitArguments;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;

/// Takes over a tree and ends it: nothing of it is started, so that neither its runtimes nor what it was opened with have to be there.
/// Processes that it has left are ended, and what it has not spent of the day is free again.
pub(crate) fn cancel_abandoned(root: RootId, cx: &Invocation) -> Result<(), Failure> {
    let config = load::config(cx, &LimitArguments::default())?;
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
