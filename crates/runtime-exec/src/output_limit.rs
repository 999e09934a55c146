//! The limit of what a program may print as its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use offshoot_process::Tap;
use tokio::sync::Notify;

/// The limit of one run, and the word that it is exceeded. The copies are one limit.
#[derive(Clone, Debug)]
pub(crate) struct OutputLimit {
    /// The number of bytes that may be kept. None where nothing bounds it.
    pub(crate) bytes: Option<u64>,
    exceeded: Arc<Exceeded>,
}

#[derive(Debug, Default)]
struct Exceeded {
    is: AtomicBool,
    word: Notify,
}

impl OutputLimit {
    /// Makes a limit of so many bytes; 0 is no limit.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes: (bytes > 0).then_some(bytes), exceeded: Arc::default() }
    }

    /// The limit that was exceeded, if it was.
    pub(crate) fn broken(&self) -> Option<u64> {
        self.bytes.filter(|_| self.exceeded.is.load(Ordering::Acquire))
    }

    /// Counts what passes on its way to another tap.
    pub(crate) fn watch(&self, mut tap: Tap) -> Tap {
        let Some(limit) = self.bytes else { return tap };
        let exceeded = Arc::clone(&self.exceeded);
        let mut left = limit;
        Box::new(move |block| {
            match left.checked_sub(block.len() as u64) {
                Some(rest) => left = rest,
                None => {
                    left = 0;
                    if !exceeded.is.swap(true, Ordering::AcqRel) {
                        // Kept for a wait that begins later.
                        exceeded.word.notify_one();
                    }
                }
            }
            tap(block);
        })
    }

    /// Ends when more has passed than may; told once. Safe to drop and to call again.
    pub(crate) async fn exceeded(&self) {
        self.exceeded.word.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_what_is_beyond_the_limit_is_told_and_once() {
        let check = |bytes, blocks: &[usize], broken: Option<u64>| {
            let limit = OutputLimit::new(bytes);
            let mut tap = limit.watch(Box::new(|_| {}));
            for block in blocks {
                tap(&vec![0; *block]);
            }
            assert_eq!(limit.broken(), broken, "{bytes} {blocks:?}");
            let told = [(), ()].map(|()| limit.exceeded().now_or_never().is_some());
            assert_eq!(told, [broken.is_some(), false], "{bytes} {blocks:?}");
        };
        check(10, &[4, 6], None);
        check(10, &[4, 7], Some(10));
        check(10, &[11, 1, 1], Some(10));
        check(0, &[100], None);
    }
}
