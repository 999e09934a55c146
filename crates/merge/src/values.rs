//! Large results, which a merge knows by reference only.

use std::io;

use offshoot_model::{Payload, VariableRef};

/// Opens what a reference names. The store is one; tests hand in a map.
pub trait Values {
    /// The bytes of the value itself, without the wrapper in which an agent sees it.
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>>;

    /// Puts a whole value behind the part of the answer that is written already, in another way than through the writer of the
    /// answer, which is flushed. False where that cannot be done, and nothing was put: then the value is opened and copied.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be read or not be put.
    fn put_whole(&self, _reference: &VariableRef) -> io::Result<bool> {
        Ok(false)
    }

    /// The result at this place in the request, as it was pushed. Asked only of a fold that does not hold all
    /// results, see [`Fold::hold_at_most`](crate::Fold::hold_at_most).
    fn result(&self, place: u32) -> io::Result<Payload> {
        let text = format!("result {place} was not held, and nothing says where it is");
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }
}

/// For merges whose results are all at hand.
#[derive(Clone, Copy, Debug)]
pub struct NothingStored;

impl Values for NothingStored {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        let text = format!("there is no store to open {} from", reference.hash);
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }
}

/// The values of one `write_to`.
pub(crate) struct Source<'a> {
    values: Option<&'a dyn Values>,
    skipped: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(values: &'a dyn Values) -> Self {
        Self { values: Some(values), skipped: 0 }
    }

    /// Opens nothing and only adds up recorded sizes: for measuring an answer.
    pub(crate) fn sizes_only() -> Self {
        Self { values: None, skipped: 0 }
    }

    /// Bytes that were not copied because nothing was opened.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// A result that was not held; none where only sizes are added up.
    pub(crate) fn result(&mut self, place: u32, size: u64) -> io::Result<Option<Payload>> {
        match self.values {
            Some(values) => values.result(place).map(Some),
            None => {
                self.skipped += size;
                Ok(None)
            }
        }
    }

    /// Copies a value that is a part of the answer as it is: nothing is escaped or laid out on its way to `out`.
    pub(crate) fn copy_whole(
        &mut self,
        from: &VariableRef,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        if let Some(values) = self.values {
            out.flush()?;
            if values.put_whole(from)? {
                return Ok(());
            }
        }
        self.copy(from, out)
    }

    /// Copies a value as it is read. A value that is shorter or longer than was recorded is an error: half an
    /// answer must not look like a whole one.
    pub(crate) fn copy(&mut self, from: &VariableRef, out: &mut dyn io::Write) -> io::Result<()> {
        let Some(values) = self.values else {
            self.skipped += from.size;
            return Ok(());
        };
        let mut reader = values.open(from)?;
        let mut copied = 0_u64;
        loop {
            let read = match reader.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    out.write_all(bytes)?;
                    bytes.len()
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            reader.consume(read);
            copied += read as u64;
        }
        if copied != from.size {
            let (hash, size) = (from.hash, from.size);
            let text = format!("value {hash} has {copied} bytes, {size} were recorded");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(())
    }
}
