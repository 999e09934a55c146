//! Who holds a slot, counted again.

use offshoot_model::Rules;

/// Slots in use, in the whole tree and at each depth.
#[derive(Default)]
pub(crate) struct Slots {
    held: u32,
    level: Vec<u32>,
    pub(crate) peak: u32,
    pub(crate) peak_per_level: Vec<u32>,
}

impl Slots {
    /// Whether somebody may start at this depth; in words why not.
    pub(crate) fn check_start(&self, depth: u32, rules: &Rules) -> Result<(), String> {
        let here = self.level.get(depth as usize).copied().unwrap_or(0);
        if self.held >= rules.max_concurrent {
            return Err(format!(
                "started while {} held a slot, and {} may",
                self.held, rules.max_concurrent
            ));
        }
        match rules.max_concurrent_per_level {
            Some(most) if here >= most => {
                Err(format!("started while {here} at depth {depth} held a slot, and {most} may"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn take(&mut self, depth: u32) {
        let at = depth as usize;
        if self.level.len() <= at {
            self.level.resize(at + 1, 0);
            self.peak_per_level.resize(at + 1, 0);
        }
        self.level[at] += 1;
        self.held += 1;
        self.peak = self.peak.max(self.held);
        self.peak_per_level[at] = self.peak_per_level[at].max(self.level[at]);
    }

    /// Nobody holds any.
    pub(crate) fn clear(&mut self) {
        self.held = 0;
        self.level.fill(0);
    }

    pub(crate) fn give_back(&mut self, depth: u32) {
        self.level[depth as usize] -= 1;
        self.held -= 1;
    }
}
