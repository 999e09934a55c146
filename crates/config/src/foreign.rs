//! Keys of another system whose configuration files load here unchanged, and the guess at what a wrong key meant.
//!
//! They are accepted without effect and listed by `config show`. A key of theirs that names a *limit* under another
//! name is not in these lists: a limit that is silently not held is worse than an error.

pub(crate) const TOP: &[&str] = &[
    "$schema",
    "accessGroups",
    "acp",
    "approvals",
    "audio",
    "auth",
    "bindings",
    "broadcast",
    "browser",
    "canvasHost",
    "channels",
    "cli",
    "commands",
    "cron",
    "diagnostics",
    "discovery",
    "env",
    "gateway",
    "hooks",
    "logging",
    "mcp",
    "media",
    "memory",
    "messages",
    "meta",
    "models",
    "nodeHost",
    "plugins",
    "proxy",
    "secrets",
    "session",
    "skills",
    "talk",
    "tools",
    "tts",
    "ui",
    "update",
    "web",
    "wizard",
];

pub(crate) const AGENT_DEFAULTS: &[&str] = &[
    "additionalSystemPrompt",
    "blockStreamingBreak",
    "blockStreamingChunk",
    "blockStreamingCoalesce",
    "blockStreamingDefault",
    "bootstrapMaxChars",
    "bootstrapPromptTruncationWarning",
    "bootstrapTotalMaxChars",
    "cliBackends",
    "contextInjection",
    "contextLimits",
    "contextTokens",
    "elevatedDefault",
    "embeddedPi",
    "envelopeElapsed",
    "envelopeTimestamp",
    "envelopeTimezone",
    "heartbeat",
    "humanDelay",
    "imageGenerationModel",
    "imageMaxDimensionPx",
    "imageModel",
    "maxConcurrent",
    "mediaMaxMb",
    "memorySearch",
    "model",
    "models",
    "params",
    "pdfMaxBytesMb",
    "pdfMaxPages",
    "pdfModel",
    "reasoningDefault",
    "repoRoot",
    "sandbox",
    "skills",
    "skipBootstrap",
    "thinkingDefault",
    "timeFormat",
    "timeoutSeconds",
    "typingIntervalSeconds",
    "typingMode",
    "userTimezone",
    "verboseDefault",
    "workspace",
];

pub(crate) const AGENT: &[&str] = &[
    "agentDir",
    "bootstrapMaxChars",
    "bootstrapTotalMaxChars",
    "contextInjection",
    "contextLimits",
    "contextTokens",
    "default",
    "fastModeDefault",
    "groupChat",
    "heartbeat",
    "humanDelay",
    "identity",
    "memorySearch",
    "models",
    "name",
    "params",
    "reasoningDefault",
    "sandbox",
    "skills",
    "skillsLimits",
    "statusUpdates",
    "thinkingDefault",
    "tts",
    "typingIntervalSeconds",
    "typingMode",
    "verboseDefault",
    "workspace",
];

pub(crate) const SUBAGENTS: &[&str] = &["delegationMode", "requireAgentId"];

pub(crate) const TOOLS: &[&str] = &[
    "alsoAllow",
    "byProvider",
    "elevated",
    "exec",
    "fs",
    "loopDetection",
    "message",
    "profile",
    "sandbox",
    "toolsBySender",
];

/// Other names for the same thing, too unlike ours for a measure of likeness.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("maxSpawnDepth", "maxDepth"),
    ("timeout", "runTimeoutSeconds"),
    ("concurrency", "maxConcurrent"),
];

/// Letters from which on the beginning of a name says which one is meant.
const SHORTEST_BEGINNING: usize = 3;

/// The known key, or name, that was probably meant: one with a slip, or one whose beginning was written.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |key: &str| key.replace(['_', '-'], "").to_ascii_lowercase();
    let name = plain(name);
    if let Some((_, meant)) = OTHER_NAMES.iter().find(|(other, _)| plain(other) == name)
        && let Some(found) = known.iter().find(|key| *key == meant)
    {
        return Some(found);
    }
    let begun = begun(&name, known.iter().map(|key| (plain(key), *key)));
    // A slip in another name is less likely than the beginning of one alone.
    if let Some((key, 1)) = begun {
        return Some(key);
    }
    let (distance, key) = known
        .iter()
        .map(|key| (strsim::damerau_levenshtein(&name, &plain(key)), *key))
        .min_by_key(|(distance, _)| *distance)?;
    // A third of the letters wrong is a slip; more is another word, as is one letter in place of another.
    let letters = name.chars().count();
    if distance <= (letters / 3).max(1) && distance < letters {
        return Some(key);
    }
    begun.map(|(key, _)| key)
}

/// The name that begins so, with the number of names that do. Of several the one with which all others begin, as `summarize` does
/// of `summarize-with`.
fn begun<'a>(
    name: &str,
    known: impl Iterator<Item = (String, &'a str)>,
) -> Option<(&'a str, usize)> {
    if name.chars().count() < SHORTEST_BEGINNING {
        return None;
    }
    let like: Vec<_> = known.filter(|(plain, _)| plain.starts_with(name)).collect();
    let (shortest, key) = like.iter().min_by_key(|(plain, _)| plain.len())?;
    like.iter().all(|(plain, _)| plain.starts_with(shortest)).then_some((*key, like.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["maxDepth", "maxSpawns", "model", "budget"];
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(nearest(name, &known), expected, "{name}");
        };
        check("maxDepht", Some("maxDepth"));
        check("max_depth", Some("maxDepth"));
        check("MAXDEPTH", Some("maxDepth"));
        check("maxSpawnDepth", Some("maxDepth"));
        check("modle", Some("model"));
        check("colour", None);
        check("", None);
        check("3", None);
        check("timeout", None);
        // The beginning of one name, and of several.
        check("bud", Some("budget"));
        check("maxSp", Some("maxSpawns"));
        check("max", None);
        check("mo", None);
        let merges = ["concatenate", "summarize", "sum", "summarize-with"];
        for (name, expected) in [
            ("concat", Some("concatenate")),
            ("summa", Some("summarize")),
            ("summarize-w", Some("summarize-with")),
        ] {
            assert_eq!(nearest(name, &merges), expected, "{name}");
        }
    }
}
