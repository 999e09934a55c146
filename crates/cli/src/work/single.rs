//! A root that is an agent itself: opened or taken over, followed, reported.

use offshoot_host::Abandoned;
use offshoot_model::{Envelope, RootId};
use offshoot_spawner::{RootSpec, SpawnerError};

use super::engine::{Engine, broken, halted};
use super::interrupt::Interrupts;
use super::progress;
use super::report;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Runs it and prints what comes of it. `abandoned` is one to go on with.
pub(crate) async fn run(
    engine: &Engine,
    spec: RootSpec,
    abandoned: Option<Abandoned>,
    mut interrupts: Interrupts,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let tree = match abandoned {
        Some(tree) => tree.resume(spec).await,
        None => engine.host.run(spec).await,
    };
    let mut tree = tree?;
    let (root, stopper) = (tree.root(), tree.stopper());
    cx.output.name_tree(root);
    let telling = engine.notify(&tree, cx);
    let follow = progress::follow(&tree, 1, engine.since, cx.output);
    let work = async {
        // One that is taken over may have answered before, and only what is below it goes on.
        let envelope = match recorded(engine, root)? {
            Some(envelope) => envelope,
            None => match tree.answer().await {
                Ok(envelope) => envelope,
                // The run may be lost: that is known once the whole tree is over.
                Err(SpawnerError::Over) => {
                    tree.ended().await.map_err(|error| halted(&error, root))?;
                    recorded(engine, root)?.ok_or_else(|| broken(&SpawnerError::Over))?
                }
                Err(error) => return Err(halted(&error, root)),
            },
        };
        let printed = report::early(engine, &envelope, tree.counts().await.live, cx)?;
        tree.ended().await.map_err(|error| halted(&error, root))?;
        Ok::<_, Failure>((envelope, printed))
    };
    let both = async { tokio::join!(work, follow).0 };
    let (envelope, printed) = interrupts.beside(both, &stopper, cx.output).await?;
    tree.stop().await;
    let exit = report::run(engine, root, &envelope, printed, interrupts.interrupted(), cx);
    interrupts.beside(engine.finish(root, telling, cx), &stopper, cx.output).await;
    exit
}

/// Returns the recorded result of a root.
pub(crate) fn recorded(engine: &Engine, root: RootId) -> Result<Option<Envelope>, Failure> {
    let run = root.run();
    let ending = engine.store.ending(root, run)?;
    let admitted = engine.store.admitted(root, run)?;
    Ok(ending.zip(admitted).map(|(ending, admitted)| {
        Envelope::of(&ending, admitted.key, run, admitted.agent, admitted.depth)
    }))
}
