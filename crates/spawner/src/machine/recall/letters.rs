//! The letters to one run, as its record tells of them.

use offshoot_model::Payload;

/// The letters to one run.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) all: Vec<Payload>,
    /// The number of letters that earlier attempts had taken.
    pub(super) before: usize,
    /// The number of letters that were taken.
    taken: usize,
}

impl Letters {
    /// A turn is over in which the attempt had taken so many; earlier versions did not record how many.
    pub(super) fn turn_ended(&mut self, taken: Option<u32>) {
        let all = self.all.len();
        self.taken = taken.map_or(all, |taken| all.min(self.before + taken as usize));
    }

    /// Another attempt follows. Where it begins anew, it has read nothing.
    pub(super) fn another_attempt(&mut self, continues: bool) {
        self.taken = if continues { self.taken } else { 0 };
        self.before = self.taken;
    }
}
