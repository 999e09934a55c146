//! Proof of limits: a tree of built-in agents asks for more than a configuration allows, limit by limit.
//!
//! ```text
//!  Loader ─▶ settings that hold ─▶ for each limit: a tree of closures that asks for one more ─▶ asked, got, answer
//!                                                       └── its record ─▶ audit
//! ```
//!
//! Nothing is started and nothing is paid: a closure stands in place of each runtime. Each probe has a tree of its own under the whole
//! configuration, so that limits hold together as they do in use.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let probes = runtime.block_on(offshoot_proof::prove(&offshoot_config::Loader::new()))?;
//! assert!(probes.iter().all(|probe| probe.verdict.is_fine()), "{probes:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod error;
mod limit;
mod probe;
mod probes;
mod trial;

pub use error::ProofError;
pub use limit::{AtLimit, LIMITS, Limit, Proof, Try};
pub use probe::{Probe, Verdict};

use offshoot_config::Loader;

use crate::error::NoProbe;
use crate::trial::Trial;

/// Tries every limit that can be tried without a program. The probes run one after the other, in the order of [`LIMITS`]; all together
/// they take a few seconds, because some wait for a time limit of one second.
///
/// # Errors
///
/// Fails if the configuration cannot be read, or a tree cannot be opened or recorded.
pub async fn prove(loader: &Loader) -> Result<Vec<Probe>, ProofError> {
    let trial = Trial::new(loader)?;
    let mut probes = Vec::new();
    for limit in LIMITS {
        if let Proof::Probe(Try(probe)) = limit.proof {
            probes.push(match probe(&trial, limit.key).await {
                Ok(probe) => probe,
                Err(NoProbe::Untried(verdict)) => trial.untried(limit.key, verdict),
                Err(NoProbe::Failed(error)) => return Err(error),
            });
        }
    }
    Ok(probes)
}
