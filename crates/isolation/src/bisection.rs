//! The search for the patch with which a check begins to fail.

/// A search among patches in their order: with the first so many of them the check passes, with more it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bisection {
    passes: usize,
    fails: usize,
}

impl Bisection {
    /// Begins with a number of patches that passes, and a larger one that fails.
    pub(crate) fn between(passes: usize, fails: usize) -> Self {
        assert!(passes < fails, "nothing fails that did not pass before");
        Self { passes, fails }
    }

    /// Returns the number of patches that is tried next; none once the patch is found.
    pub(crate) fn next(self) -> Option<usize> {
        (self.fails - self.passes > 1).then(|| self.passes + (self.fails - self.passes) / 2)
    }

    /// The check was tried with so many patches.
    pub(crate) fn tried(&mut self, patches: usize, passes: bool) {
        match passes {
            true => self.passes = patches,
            false => self.fails = patches,
        }
    }

    /// Returns the number of patches before the one that was found.
    pub(crate) fn found(self) -> usize {
        self.passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fails_is_found_in_as_many_steps_as_the_number_has_digits() {
        for patches in 1..=40_usize {
            for culprit in 0..patches {
                let mut search = Bisection::between(0, patches);
                let mut steps = 0;
                while let Some(tried) = search.next() {
                    search.tried(tried, tried <= culprit);
                    steps += 1;
                }
                assert_eq!(search.found(), culprit);
                assert!(steps <= 6, "{patches}: {steps}");
            }
        }
    }
}
