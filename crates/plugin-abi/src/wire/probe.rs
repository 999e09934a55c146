//! The request of a check instead of work: a document in the place of a launch, of settings, of parameters, of a description.
//!
//! A host cannot make a plugin's code panic from outside, or tell ten thousand events. So the SDK, which is a part of each
//! library that is built with it, does so when it finds a probe where another document should be. What answers is that
//! library: its panic strategy, its panic hook, its allocator, its threads. A plugin without the SDK takes a probe for
//! what it is, a document that is wrong.

use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};

/// The request of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    /// A panic, right here.
    Panic,
    /// Of a merge that is begun: a panic when it is finished.
    LatePanic,
    /// Of a run: so many events, with their number from 0 as text.
    Events(u32),
    /// Of a run: an answer of so many bytes, each an `x`.
    Bytes(u32),
}

/// The document of a probe.
pub fn encode(probe: Probe) -> String {
    to_json(&Document { v: Version, must: Must, probe }, "probe")
        .expect("words and numbers are always JSON")
}

/// The probe of a document; none where it is another document. A look at it, where it is a large one.
pub fn decode(json: &str) -> Option<Probe> {
    let may_be = json.len() <= LONGEST && json.contains("\"probe\"");
    may_be.then(|| from_json::<Document>(json, "probe").ok())?.map(|document| document.probe)
}

/// No probe is as long, in bytes.
const LONGEST: usize = 100;

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    probe: Probe,
}
