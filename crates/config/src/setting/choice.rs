//! Settings that are one word of a few.

use std::fmt;

use offshoot_model::{Cleanup, CostKnowledge};
use serde::Serialize;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// Makes an enum of words. Words are part of the file format: they are written out, never derived from names.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $word)] $variant, )*
        }

        impl $name {
            /// The word in a configuration.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        words! { $name { $( $variant = $word, )* } }
    };
}

/// Makes a setting of an enum of words.
macro_rules! words {
    ($name:ident { $( $variant:ident = $word:literal, )* }) => {
        impl Scalar for $name {
            fn allowed() -> String {
                format!("one of {}", [$($word),*].join(", "))
            }

            fn from_node(node: &Node) -> Option<Self> {
                match &*node.text()? {
                    $( $word => Some(Self::$variant), )*
                    _ => None,
                }
            }

            fn schema() -> Value {
                json!({ "enum": [$($word),*] })
            }

            fn example() -> Value {
                json!([$($word),*][0])
            }
        }
    };
}

choice! {
    /// The effect of a parent's end on its children.
    OnParentEnd {
        /// Nothing: they go on.
        LetFinish = "letFinish",
        /// The children are cancelled.
        Cascade = "cascade",
    }
}

choice! {
    /// The meter between the runs of a runtime and their models.
    MeterMode {
        /// On where the configuration names a key for the runtime.
        Auto = "auto",
        /// Each request of a run to its model is reserved before it leaves, and charged when it is over.
        On = "on",
        /// Runs ask their models directly, and what they report is believed.
        Off = "off",
    }
}

choice! {
    /// The treatment of a run whose supervisor died.
    OnInterrupt {
        /// The run is started again.
        Rerun = "rerun",
        /// The run is ended as lost.
        Lost = "lost",
    }
}

choice! {
    /// The treatment of a request to a model that is more than its run has left.
    OnCap {
        /// The request waits for a while for the operator to give more.
        Pause = "pause",
        /// The request is refused, which ends most programs.
        Stop = "stop",
    }
}

choice! {
    /// The treatment of a run that uses one tool with the same input again and again.
    OnRepeat {
        /// The record says it, and the run goes on.
        Warn = "warn",
        /// The record says it, and the run is stopped.
        Stop = "stop",
    }
}

choice! {
    /// The order in which runs begin that send the same long prompt first.
    PrimeCache {
        /// One of them begins, and the others when the service has begun to answer it: they read the prompt from its cache.
        Auto = "auto",
        /// All of them begin at once.
        Off = "off",
    }
}

choice! {
    /// The treatment of a run that is refused because a quota of its account is used up.
    OnWall {
        // The strictest is the last.
        /// The run goes over to another runtime of `model.fallbacks`, and waits in line where none is left.
        Fallback = "fallback",
        /// The run waits in line until the reset.
        Park = "park",
        /// The run fails.
        Fail = "fail",
    }
}

choice! {
    /// The treatment of an agent that waits for its children and needs nothing meanwhile.
    Park {
        /// By how many wait, and how long.
        Auto = "auto",
        /// The agent is kept alive.
        Keep = "keep",
        /// The agent is ended, and resumed when its children are done.
        Resume = "resume",
    }
}

words! { Cleanup { Keep = "keep", Delete = "delete", } }

words! {
    CostKnowledge { None = "none", Reported = "reported", Bounded = "bounded", Unknown = "unknown", }
}

pub(super) use {choice, words};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_json_is_the_word_in_the_file() {
        for end in [OnParentEnd::LetFinish, OnParentEnd::Cascade] {
            assert_eq!(serde_json::to_value(end).expect("a word"), json!(end.as_str()));
        }
        assert_eq!(Park::allowed(), "one of auto, keep, resume");
    }
}
