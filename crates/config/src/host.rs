//! `host`: bounds of the computer, which hold for all trees of a user.

use std::num::NonZeroU32;

use offshoot_model::MicroUsd;
use serde_json::{Map, Value};

use crate::built_in;
use crate::field::{Field, Listing, Row};
use crate::node::Node;
use crate::origin::Valued;
use crate::problem::ProblemKind;
use crate::reader::Reader;
use crate::section::{Section, section};
use crate::setting::Fraction;
use crate::template::Template;

section! {
    /// Bounds of the computer, for all trees of a user; only in the system or user file.
    pub struct HostSettings, foreign &[] => {
        /// The part of the memory of the computer that stays available. While less than that is available, no run starts beside others that
        /// run. With 0 runs start however much is available.
        pub memory_keep: Option<Valued<Fraction>> = "memoryKeep",
            built_in built_in::HOST_MEMORY_KEEP;
        /// The most runs that hold a slot at once, over all trees of the user. Where as many do, a run that would start waits for the end
        /// of another one, and trees take turns. Not set, trees do not count what others run.
        pub max_concurrent: Option<Valued<NonZeroU32>> = "maxConcurrent";
        /// The most runs of one account that hold a slot at once, over all trees of the user. An account is a runtime with a credential;
        /// programs of `exec` have none, and count for none.
        pub max_concurrent_per_account: Option<Valued<NonZeroU32>> = "maxConcurrentPerAccount";
        /// Dollars that all trees of the user may cost on one day. The budget of a tree is reserved when it is opened; where the day has less left,
        /// it is not.
        pub usd_per_day: Option<Valued<MicroUsd>> = "usdPerDay";
        /// Tokens that all trees of the user may use on one day, reserved in the same way.
        pub tokens_per_day: Option<Valued<u64>> = "tokensPerDay";
    }
}

impl HostSettings {
    /// Returns the keys of the section.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        <Self as Section>::KEYS.iter().copied()
    }

    /// Returns the part of the memory that stays available.
    pub fn memory_keep(&self) -> Fraction {
        self.memory_keep.as_ref().map_or(built_in::HOST_MEMORY_KEEP, |keep| keep.value)
    }

    /// Returns the most runs that hold a slot at once over all trees of the user; none where there is no such bound.
    pub fn max_concurrent(&self) -> Option<NonZeroU32> {
        self.max_concurrent.as_ref().map(|most| most.value)
    }

    /// Returns the most runs of one account that hold a slot at once over all trees of the user; none where there is no such bound.
    pub fn max_concurrent_per_account(&self) -> Option<NonZeroU32> {
        self.max_concurrent_per_account.as_ref().map(|most| most.value)
    }
}

/// The section, which no layer above the user's file may have: a project does not decide about the computer of its user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Host(pub(crate) HostSettings);

impl Field for Host {
    type Value = ();

    fn read(&mut self, row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
        if !cx.is_of_the_user() {
            return cx.report(node.offset, ProblemKind::MisplacedHost);
        }
        self.0.read(row, node, cx);
    }

    fn overlay(&mut self, over: &Self) {
        self.0.overlay(&over.0);
    }

    fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
        self.0.list(row, path, out);
    }

    fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
        <HostSettings as Field>::schema(row, definitions)
    }

    fn template(row: &Row<()>, out: &mut Template) {
        // The file may be that of a project.
        out.example_header("[host]", row.doc);
        out.example(&format!("memoryKeep = {}", built_in::HOST_MEMORY_KEEP));
        out.example("maxConcurrent = 12");
        out.example("maxConcurrentPerAccount = 4");
        out.example("usdPerDay = 20");
        out.example("tokensPerDay = 5000000");
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        self.0.trusted_words(out);
    }
}
