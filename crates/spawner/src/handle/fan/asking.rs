//! Asking for pieces: their tasks are kept in groups, and the first pieces run while the tasks of the last are kept.

use std::sync::Arc;

use futures_util::future::try_join_all;
use offshoot_model::Payload;
use offshoot_policy::Terms;
use offshoot_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::SpawnerError;
use crate::request::Ask;
use crate::tree_context::TreeContext;

/// The most pieces that are handed on at once, where no budget is to be divided.
const PIECES: usize = 1024;

/// The most tasks that are kept at once, where each is too long for the record and so a file: a file system flushes
/// together what is asked for together. More would take threads that others wait for.
const FILES: usize = 64;

/// The most pieces whose admission is not durable yet: each is held in memory until then, and a disk is slower than a request.
const ON_THEIR_WAY: usize = 4 * PIECES;

/// A task, and how many pieces of a group have it.
struct Task {
    text: Arc<str>,
    pieces: usize,
}

/// Hands on the pieces in their order, as their tasks are kept. Where a budget is to be divided, all at once: each gets
/// its part of what there is when they are asked for.
///
/// What is handed on brings its room, which is free again once the pieces are on record.
pub(super) async fn all(
    asks: Vec<Ask>,
    tree: &TreeContext,
    mut hand_on: impl FnMut(Vec<Ask>, Option<OwnedSemaphorePermit>) -> Result<(), SpawnerError>,
) -> Result<(), SpawnerError> {
    let terms = Terms::root(&tree.config, &tree.agent);
    let is_bounded = terms.budget.tokens.is_some() || terms.budget.usd.is_some();
    let is_weighted = || asks.iter().any(|ask| ask.request.weight.is_some());
    let divides = is_bounded && (!terms.pools_pieces() || is_weighted());
    // The pieces of a map have one task, which is kept once.
    let mut last: Option<(Arc<str>, Payload)> = None;
    let mut asks = asks.into_iter().peekable();
    let mut together = Vec::new();
    let permits = Arc::new(Semaphore::new(ON_THEIR_WAY));
    while asks.peek().is_some() {
        let mut group = Vec::with_capacity(asks.len().min(PIECES));
        let mut tasks: Vec<Task> = Vec::new();
        let mut files = 0;
        while group.len() < PIECES
            && files < FILES
            && let Some(ask) = asks.next()
        {
            match tasks.last_mut() {
                Some(task) if Arc::ptr_eq(&task.text, &ask.request.task) => task.pieces += 1,
                _ => {
                    files += usize::from(tree.is_kept_as_file(&ask.request.task));
                    tasks.push(Task { text: Arc::clone(&ask.request.task), pieces: 1 });
                }
            }
            group.push(ask);
        }
        let known = last.take();
        let keep = |task| keep(task, known.as_ref(), tree);
        let kept = try_join_all(tasks.iter().map(keep)).await?;
        let each = tasks.iter().zip(&kept);
        let payloads = each.flat_map(|(task, kept)| std::iter::repeat_n(kept, task.pieces));
        for (ask, payload) in group.iter_mut().zip(payloads) {
            ask.task = payload.clone();
        }
        last = tasks.pop().map(|task| task.text).zip(kept.into_iter().last());
        match divides {
            true => together.append(&mut group),
            false => {
                let permit = Arc::clone(&permits).acquire_many_owned(group.len() as u32).await;
                hand_on(group, Some(permit.expect("the semaphore of pieces was closed")))?;
            }
        }
    }
    match together.is_empty() {
        true => Ok(()),
        false => hand_on(together, None),
    }
}

/// A task as the record keeps it.
async fn keep(
    task: &Task,
    known: Option<&(Arc<str>, Payload)>,
    tree: &TreeContext,
) -> Result<Payload, StoreError> {
    match known {
        Some((text, kept)) if Arc::ptr_eq(text, &task.text) => Ok(kept.clone()),
        _ if task.pieces > 1 => tree.common_task(&task.text).await,
        _ => tree.task_for_record(&task.text).await,
    }
}
