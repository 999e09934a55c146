//! Prompts that several runs send first, and that their service keeps in a cache as soon as it has read one of them.
//!
//! ```text
//!   cold ──one run starts──▶ primed by it: the others wait ──an answer──▶ warm ──five minutes without an answer──▶ cold
//!                              ├──it ends without an answer──▶ cold: the next one primes
//!                              └──30 s without an answer─────▶ warm: the others wait no longer
//! ```
//!
//! A service writes a long prompt to its cache at a price above that of reading it there: where ten runs begin at once with the same
//! prompt, all ten pay for it in full. So one of them goes first.
//!
//! ```
//! use offshoot_model::{AgentId, RunId, Timestamp};
//! use offshoot_policy::prefix::{Prefix, Prefixes};
//!
//! let first = RunId::from_bytes([1; 16]);
//! let prefix = Prefix {
//!     runtime: "claude".into(),
//!     agent: AgentId::main(),
//!     model: None,
//!     tools: None,
//!     parent: None,
//!     context: Vec::new(),
//! };
//! let now = Timestamp::from_micros(0);
//! let mut prefixes = Prefixes::default();
//! let id = prefixes.add(prefix, 9_000).expect("it is long enough");
//! prefixes.starts(id, first, now);
//! assert_eq!(prefixes.waits_until(id, now), Some(now.plus(Prefixes::PATIENCE)));
//! prefixes.answered(id, now);
//! assert_eq!(prefixes.waits_until(id, now), None);
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::Config;
use offshoot_model::{AgentId, ContentHash, ContextEntry, RunId, Timestamp, ValueKind};

/// The text that a run sends first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The runtime, with its own instructions and tools.
    pub runtime: Arc<str>,
    /// The agent, with its own instructions.
    pub agent: AgentId,
    /// The model that the run asks for; none where that of its agent answers. Each model has a cache of its own.
    pub model: Option<Arc<str>>,
    /// The tools that the run is left, where it was asked for with fewer of them: they stand at the head of its prompt.
    pub tools: Option<Arc<str>>,
    /// The run that has asked for it, which is named in front of the values; none where there are no values.
    pub parent: Option<RunId>,
    /// The values that stand in front of the task, in their order.
    pub context: Vec<(Arc<str>, ContentHash)>,
}

/// The bytes of a text that are about one token, for an estimate.
const BYTES_A_TOKEN: u64 = 4;

/// Returns the values that stand in front of the task of a run of this agent, and an estimate of all that does, in tokens. Of the
/// runtime it wants its own instructions and tools, in tokens, and the most bytes of values that it puts there.
pub fn in_front<'a>(
    config: &Config,
    agent: &AgentId,
    (own_tokens, inline_bytes): (u64, u64),
    context: impl IntoIterator<Item = &'a ContextEntry>,
) -> (Vec<(Arc<str>, ContentHash)>, u64) {
    let (mut room, mut in_front) = (inline_bytes, Vec::new());
    for ContextEntry { name, value } in context {
        // A value that does not fit, or is no text, is read by the agent itself, later.
        if value.size <= room && value.kind != ValueKind::Bytes {
            room -= value.size;
            in_front.push((Arc::clone(name), value.hash));
        }
    }
    let instructions = config.agent(agent).and_then(|agent| agent.system_prompt.as_ref());
    let instructions = instructions.map_or(0, |prompt| prompt.value.len() as u64);
    let bytes = inline_bytes - room + instructions;
    (in_front, own_tokens + bytes / BYTES_A_TOKEN)
}

/// The place of a prefix among those of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixId(u32);

/// The prefixes of one tree.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    places: HashMap<Prefix, PrefixId>,
    states: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// An estimate.
    tokens: u64,
    /// The moment until which runs start without waiting.
    warm_until: Option<Timestamp>,
    primer: Option<Primer>,
}

/// The run that goes first.
#[derive(Clone, Copy, Debug)]
struct Primer {
    run: RunId,
    /// The moment until which others wait for it.
    until: Timestamp,
    /// True if another run waits for it, which is on record.
    is_awaited: bool,
}

/// The run that goes first, at the moment when the first other one waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priming {
    /// The run.
    pub run: RunId,
    /// An estimate of the length of what it shares with the others.
    pub tokens: u64,
}

impl Prefixes {
    /// The shortest prefix for which runs wait, in tokens: the longest of the lengths below which a service caches nothing.
    pub const LEAST_TOKENS: u64 = 4096;

    /// The time for which a service keeps what it has read, since it was read last.
    pub const KEPT: Duration = Duration::from_secs(5 * 60);

    /// The longest wait for a first answer.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// Takes in a prefix of so many tokens; nothing where it is too short to be waited for.
    ///
    /// # Panics
    ///
    /// A tree of four billion prefixes does not fit in memory.
    pub fn add(&mut self, prefix: Prefix, tokens: u64) -> Option<PrefixId> {
        if tokens < Self::LEAST_TOKENS {
            return None;
        }
        let next = PrefixId(u32::try_from(self.states.len()).expect("fewer than runs"));
        let id = *self.places.entry(prefix).or_insert(next);
        if id == next {
            self.states.push(State { tokens, warm_until: None, primer: None });
        }
        Some(id)
    }

    /// Returns the moment until which further runs with this prefix wait; none where they may start now.
    pub fn waits_until(&self, prefix: PrefixId, now: Timestamp) -> Option<Timestamp> {
        self.state(prefix).primer.map(|primer| primer.until).filter(|until| *until > now)
    }

    /// Returns true if the service is known to have the prefix in its cache, or further runs do not wait for it.
    pub fn is_warm(&self, prefix: PrefixId, now: Timestamp) -> bool {
        self.state(prefix).warm_until.is_some_and(|until| until > now)
    }

    /// Takes in that a run waits for the one that goes first. Returns that one where it is the first that waits.
    pub fn awaited(&mut self, prefix: PrefixId) -> Option<Priming> {
        let state = self.state_mut(prefix);
        let tokens = state.tokens;
        let primer = state.primer.as_mut().filter(|primer| !primer.is_awaited)?;
        primer.is_awaited = true;
        Some(Priming { run: primer.run, tokens })
    }

    /// Takes in that a run starts. Returns the moment until which others wait for it, where it goes first.
    pub fn starts(&mut self, prefix: PrefixId, run: RunId, now: Timestamp) -> Option<Timestamp> {
        let is_warm = self.is_warm(prefix, now);
        let state = self.state_mut(prefix);
        if is_warm || state.primer.is_some() {
            return None;
        }
        let until = now.plus(Self::PATIENCE);
        state.primer = Some(Primer { run, until, is_awaited: false });
        Some(until)
    }

    /// Takes in that the service answers a run with this prefix. Returns the run that others have waited for until now.
    pub fn answered(&mut self, prefix: PrefixId, now: Timestamp) -> Option<RunId> {
        let state = self.state_mut(prefix);
        state.warm_until = Some(now.plus(Self::KEPT));
        let primer = state.primer.take()?;
        Some(primer.run).filter(|_| primer.is_awaited)
    }

    /// Takes in that an attempt of a run is over. Returns the run where others have waited for it until now.
    pub fn over(&mut self, prefix: PrefixId, run: RunId) -> Option<RunId> {
        let state = self.state_mut(prefix);
        let primer = state.primer.take_if(|primer| primer.run == run)?;
        Some(run).filter(|_| primer.is_awaited)
    }

    /// Takes in the time. Returns the runs for which others have waited for too long.
    pub fn run_out(&mut self, now: Timestamp) -> Vec<RunId> {
        let is_late = |state: &State| state.primer.is_some_and(|primer| primer.until <= now);
        let late = self.states.iter().enumerate().filter(|(_, state)| is_late(state));
        let late: Vec<PrefixId> = late.map(|(place, _)| PrefixId(place as u32)).collect();
        late.into_iter().filter_map(|prefix| self.answered(prefix, now)).collect()
    }

    /// Takes in that another supervisor holds the tree: nothing works, and what services keep is not known.
    pub fn interrupt(&mut self) {
        for state in &mut self.states {
            (state.warm_until, state.primer) = (None, None);
        }
    }

    fn state(&self, prefix: PrefixId) -> &State {
        &self.states[prefix.0 as usize]
    }

    fn state_mut(&mut self, prefix: PrefixId) -> &mut State {
        &mut self.states[prefix.0 as usize]
    }
}

#[cfg(test)]
mod tests;
