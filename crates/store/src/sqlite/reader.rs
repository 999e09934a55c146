//! Reading beside the writer, from this process or another one.

use std::sync::Mutex;

use rusqlite::Connection;

use super::file::DatabaseFile;
use super::queue::now;
use crate::StoreError;
use crate::error::Doing;

/// Connections kept for the next reader; more readers at once open their own, and close them again.
const IDLE: usize = 4;

/// Connections that only read, opened as they are needed.
#[derive(Debug)]
pub(super) struct Readers {
    file: DatabaseFile,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: DatabaseFile) -> Self {
        Self { file, idle: Mutex::default() }
    }

    /// Asks one question.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = || self.idle.lock().expect("nothing panics while it holds the list");
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.file.reader()?,
        };
        let began = now();
        let answer = question(&connection).doing("read", &self.file.path)?;
        tracing::trace!(us = began.elapsed().as_micros() as u64, "record read");
        let mut idle = idle();
        if idle.len() < IDLE {
            idle.push(connection);
        }
        Ok(answer)
    }
}
