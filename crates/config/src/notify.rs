//! `notify`: the command that is told what happens in trees.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::built_in;
use crate::origin::Valued;
use crate::section::section;
use crate::setting::{Command, Occasion};

section! {
    /// The command that is told what happens in trees.
    pub struct NotifySettings, foreign &[] => {
        /// A program and its arguments, which reads what happened from its standard input, a line of JSON each. At most one runs at a
        /// time for a tree; what happens meanwhile is told to the next one. The supervisor starts it, so that `offshoot` commands in
        /// it are refused: it is told, and does not ask.
        pub command: Option<Valued<Command>> = "command";
        /// The occasions: the end of a tree, a run that failed, one that waits for its next attempt, a tree that is paused or an agent that is left alone for a while, one
        /// that is silent, one that has used four fifths of its budget. All of these where it is not set.
        pub on: Option<Valued<Vec<Occasion>>> = "on";
        /// Seconds without a sign of life after which a run is silent.
        pub silent_seconds: Option<Valued<NonZeroU64>> = "silentSeconds",
            built_in built_in::NOTIFY_SILENT_SECONDS;
    }
}

impl NotifySettings {
    /// True if the command is told of this.
    pub fn is_told(&self, occasion: Occasion) -> bool {
        self.on.as_ref().is_none_or(|on| on.value.contains(&occasion))
    }

    /// Returns the time after which a run is silent.
    pub fn silence(&self) -> Duration {
        let set = self.silent_seconds.as_ref();
        let seconds = set.map_or(built_in::NOTIFY_SILENT_SECONDS, |seconds| seconds.value);
        Duration::from_secs(seconds.get())
    }
}
