//! The runs that the last listing in a terminal printed, so that later commands there can say `@1`.

use std::io::{self, Write};
use std::time::Duration;

use offshoot_model::Timestamp;

use super::DataFolder;
use crate::below::There;

const LISTINGS: &str = "listings";

/// A listing of a terminal that is gone is kept for so long.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

impl DataFolder {
    /// Writes what was listed in this terminal, in place of what was listed there before. Listings of the week before
    /// `now` are kept, older ones are removed.
    ///
    /// # Errors
    /// The write failed, or a link stands where the folder or the file should be.
    pub fn keep_listing(&self, terminal: u32, now: Timestamp, text: &str) -> io::Result<()> {
        let folder = self.below.make_folder(LISTINGS)?;
        folder
            .write_whole(&folder, &terminal.to_string(), |file| file.write_all(text.as_bytes()))?;
        let is_old = |about: &There| about.modified().is_some_and(|at| now.since(at) > KEPT);
        for (name, _) in folder.entries()?.iter().filter(|(_, about)| is_old(about)) {
            // The next listing tries again.
            let _ = name.to_str().map(|name| folder.remove(name));
        }
        Ok(())
    }

    /// Reads what was listed last in this terminal.
    ///
    /// # Errors
    /// Nothing was listed there (`NotFound`), it cannot be read, or it stands behind a link.
    pub fn listing(&self, terminal: u32) -> io::Result<String> {
        self.below.folder(LISTINGS)?.read_text(terminal.to_string())
    }
}
