//! The floors as data: which of our crates a crate may use, and what it may touch.
//!
//! `ARCHITECTURE.md` draws the same for people. A new row or arrow is the largest kind of change
//! there is here: it wants a reason that stands in the picture too.

/// The rights of a crate.
pub(crate) struct Layer {
    /// The folder below `crates/`.
    pub(crate) name: &'static str,
    /// Crates of ours that it may use.
    pub(crate) uses: &'static [&'static str],
    pub(crate) asynchronous: Async,
    pub(crate) files: Files,
}

/// The part of async that a crate may know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Async {
    /// None: it can be called from anywhere, and a test of it is a function call.
    No,
    /// Channels and timers that it hands on; it starts no task and owns no reactor.
    Words,
    /// The crate has tasks of its own.
    Yes,
}

/// The right of a crate to touch files, sockets and processes itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Files {
    No,
    /// Only in these modules of it.
    In(&'static [&'static str]),
    Yes,
}

const fn layer(
    name: &'static str,
    uses: &'static [&'static str],
    asynchronous: Async,
    files: Files,
) -> Layer {
    Layer { name, uses, asynchronous, files }
}

/// From the lowest floor to the highest.
pub(crate) const LAYERS: &[Layer] = &[
    layer("session-key", &[], Async::No, Files::No),
    layer("model", &["session-key"], Async::No, Files::No),
    layer("config", &["session-key", "model"], Async::No, Files::No),
    layer("policy", &["session-key", "model", "config"], Async::No, Files::No),
    layer("delegation", &["model"], Async::No, Files::No),
    layer("merge", &["model"], Async::No, Files::No),
    layer("schema", &["model"], Async::No, Files::No),
    layer("tokens", &[], Async::No, Files::No),
    layer("audit", &["model"], Async::No, Files::No),
    layer("runtime", &["model"], Async::Words, Files::No),
    layer("plugin-abi", &["model", "runtime"], Async::Words, Files::No),
    layer("process", &[], Async::Yes, Files::Yes),
    layer(
        "plugin-sdk",
        &["model", "runtime", "plugin-abi", "process"],
        Async::Yes,
        // A value that is too large to be handed over is read where it lies, and an answer that is too large for a line is written there.
        Files::In(&["merge", "serve"]),
    ),
    layer("store", &["session-key", "model"], Async::Yes, Files::Yes),
    layer("isolation", &["model", "process"], Async::Yes, Files::Yes),
    layer("runtime-exec", &["model", "runtime", "process"], Async::Yes, Files::Yes),
    layer("runtime-claude", &["model", "runtime", "process"], Async::Yes, Files::Yes),
    layer("plugin-host", &["model", "runtime", "plugin-abi", "process"], Async::Yes, Files::Yes),
    layer("runtime-openai", &["model", "runtime"], Async::Yes, Files::Yes),
    // Its prices are those of the configuration; a key may be printed by a program, and a connection is that of a process.
    layer("meter", &["model", "config", "process"], Async::Yes, Files::Yes),
    // A map's input is cut where it lies instead of being copied first.
    layer("split", &["model", "store"], Async::No, Files::Yes),
    layer(
        "spawner",
        &[
            "session-key",
            "model",
            "config",
            "policy",
            "merge",
            "delegation",
            "schema",
            "runtime",
            "store",
            "split",
            "tokens",
        ],
        Async::Yes,
        // `std` has no clock that goes on while the computer sleeps.
        Files::In(&["clock"]),
    ),
    layer(
        "proof",
        &["model", "config", "audit", "runtime", "store", "spawner"],
        Async::Yes,
        Files::No,
    ),
    layer("door", &["model", "process"], Async::Yes, Files::Yes),
    layer("display", &["model", "delegation"], Async::No, Files::No),
    layer("watch", &["model", "display"], Async::No, Files::No),
    layer("mcp", &["session-key", "model", "merge", "runtime", "door"], Async::Yes, Files::No),
    layer(
        "host",
        &[
            "model",
            "config",
            "audit",
            "policy",
            "merge",
            "runtime",
            "process",
            "store",
            "isolation",
            "split",
            "runtime-exec",
            "runtime-claude",
            "runtime-openai",
            "plugin-host",
            "meter",
            "spawner",
            "door",
            "mcp",
        ],
        Async::Yes,
        Files::Yes,
    ),
    layer(
        "cli",
        &[
            "session-key",
            "model",
            "config",
            "policy",
            "merge",
            "schema",
            "delegation",
            "audit",
            "runtime",
            "process",
            "store",
            "isolation",
            "split",
            "tokens",
            "plugin-host",
            "spawner",
            "proof",
            "display",
            "watch",
            "door",
            "mcp",
            "runtime-claude",
            "host",
        ],
        Async::Yes,
        Files::Yes,
    ),
];
