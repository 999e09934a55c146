//! `plugins`: where plugins are looked for, and their settings.

use crate::origin::Valued;
use crate::section::section;
use crate::setting::FreeForm;

section! {
    /// The folders of plugins, and their settings.
    pub struct PluginSettings, foreign &[] => {
        /// Folders of plugins, looked into before the usual ones.
        pub path: Option<Valued<Vec<String>>> = "path";
        /// Passed to the plugins, by their names.
        pub options: Option<Valued<FreeForm>> = "options";
        /// Passed to the merges of plugins, by their names.
        pub merges: Option<Valued<FreeForm>> = "merges";
    }
}
