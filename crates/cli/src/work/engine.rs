//! The host of this command, with what the command does besides.

use std::sync::Arc;
use std::time::Duration;

use offshoot_config::Config;
use offshoot_host::Host;
use offshoot_model::{RefusalCode, RootId, Timestamp};
use offshoot_plugin_host::shutdown_all;
use offshoot_spawner::{Clock, SpawnerError, SystemClock};
use offshoot_store::{DataFolder, Store, StoreError};

use super::heads::Heads;
use super::notify::{Notify, Telling};
use super::preflight::Prepared;
use crate::code::NoteCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::telling;

/// The time in which plugins have to end the rest of their work. Their runs are over by then.
const PLUGIN_GRACE: Duration = Duration::from_secs(2);

/// All that a tree needs.
pub(crate) struct Engine {
    /// Opens trees.
    pub(crate) host: Host,
    /// Keeps what happens.
    pub(crate) store: Arc<dyn Store>,
    /// The target of the last link of each tree.
    heads: Heads,
    /// The moment at which it was put together: what was recorded before is of an earlier life of a tree.
    pub(crate) since: Timestamp,
    /// The command that is told what happens, where there is one.
    notify: Option<Notify>,
}

impl Engine {
    /// Puts it together, for this work.
    pub(crate) async fn start(
        config: Config,
        prepared: &Prepared,
        cx: &Invocation,
    ) -> Result<Self, Failure> {
        let folder = data_folder(cx)?;
        if folder.is_exposed() {
            cx.output.warning(NoteCode::RecordReadable, format_args!(
                "other users can read what is recorded in {}, and its mode cannot be changed: keep it elsewhere with --data-dir",
                folder.path().display()
            ));
        }
        let heads = Heads::new(&config, prepared.plugins.processes()?, cx);
        let since = SystemClock.now();
        let notify = Notify::new(&config, prepared.plugins.processes()?, since, cx);
        let builder = Host::builder(config, cx.environment.of_host()).folder(folder);
        let builder = builder.plugins(prepared.plugins.clone()).reporter(cx.output.reporter());
        let host = builder.ready_for(prepared.run_spec.clone()).start().await?;
        if let Some(isolation) = &prepared.isolation {
            host.folders().check(isolation, &prepared.run_spec.working_folder).await?;
        }
        let store: Arc<dyn Store> = host.store().clone();
        Ok(Self { host, store, heads, since, notify })
    }

    /// Tells the operator's command what happens in a tree from now on.
    pub(crate) fn notify(&self, tree: &offshoot_host::Tree, cx: &Invocation) -> Telling {
        let notify = self.notify.as_ref();
        notify.map(|notify| notify.follow(tree, cx.output)).unwrap_or_default()
    }

    /// Tells the rest of what is told of a tree that is over, and keeps its last link where the user wants it.
    pub(crate) async fn finish(&self, root: RootId, telling: Telling, cx: &Invocation) {
        telling.finish().await;
        self.heads.keep(self.host.store(), root, cx).await;
    }
}

/// Opens the data folder, or makes it.
pub(crate) fn data_folder(cx: &Invocation) -> Result<DataFolder, Failure> {
    let folder = DataFolder::open(cx.data_folder())?;
    Ok(telling(folder, cx))
}

/// Runs the one future of this process to its end, and ends its plugins.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let threads = offshoot_host::threads()?;
    let result = threads.block_on(async {
        let result = work.await;
        // Without this, what plugins have started would stay behind. One that does not end in time is left to the keeper.
        shutdown_all(PLUGIN_GRACE).await;
        result
    });
    // A plugin's merge that never returns holds one of our threads for ever: that thread is not waited for.
    threads.shutdown_timeout(PLUGIN_GRACE);
    result
}

/// A tree that could not be held.
pub(crate) fn broken(error: &SpawnerError) -> Failure {
    let failure = match error {
        SpawnerError::Refused(refusal) => {
            let exit = match refusal.code {
                RefusalCode::InvalidRequest => Exit::BadInput,
                _ => Exit::Refused,
            };
            let failure = Failure::told(exit, &refusal.message).maybe_hint(refusal.hint.as_ref());
            Failure { json: serde_json::to_value(refusal).ok(), ..failure }
        }
        SpawnerError::Record(_) | SpawnerError::Answer(_) => Failure::of(Exit::AgentFailed, error),
        // The store did not fail.
        SpawnerError::Store(held @ StoreError::Held { .. }) => Failure::of(Exit::BadInput, held),
        _ => Failure::of(Exit::BadInput, error),
    };
    failure.maybe_hint(error.hint())
}

/// The failure of a tree that was open. Where its record ends before the tree does, with how to go on.
pub(crate) fn halted(error: &SpawnerError, root: RootId) -> Failure {
    let failure = broken(error);
    match error {
        SpawnerError::Record(cause) if cause.is_damaged() => failure,
        SpawnerError::Store(cause) if cause.is_damaged() => failure,
        SpawnerError::Record(_) | SpawnerError::Store(_) | SpawnerError::Answer(_) => {
            let failure = Failure { exit: Exit::AgentFailed, ..failure };
            let first = error.hint().map(|hint| format!("{hint}; then ")).unwrap_or_default();
            failure.hint(format_args!("{first}`offshoot resume {root}` goes on with this tree"))
        }
        _ => failure,
    }
}
