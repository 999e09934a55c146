//! One stream of what a run says, on its way to its host.

use offshoot_model::Stream;

use crate::{Redactor, RunHost, Secrets};

/// Hands the blocks of one stream to the host of a run, without secrets. Dropped, it hands over what it held back.
#[derive(Debug)]
pub struct SaidStream {
    host: RunHost,
    stream: Stream,
    redactor: Redactor,
}

impl SaidStream {
    /// A stream of this run that has not begun.
    pub fn new(host: RunHost, stream: Stream, secrets: Secrets) -> Self {
        Self { host, stream, redactor: Redactor::new(secrets) }
    }

    /// Takes the next block, wherever it is cut.
    pub fn feed(&mut self, block: &[u8]) {
        let certain = self.redactor.feed(block);
        if !certain.is_empty() {
            self.host.said(self.stream, certain);
        }
    }
}

impl Drop for SaidStream {
    fn drop(&mut self) {
        let rest = self.redactor.finish();
        if !rest.is_empty() {
            self.host.said(self.stream, rest);
        }
    }
}
