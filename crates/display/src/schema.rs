//! The form of an event in JSON, for programs that read them.
//!
//! Promise: what is described here stays. New kinds of event and new fields may come; whoever reads passes over what it
//! does not know.

use serde_json::{Value, json};

/// The JSON Schema of one line of `offshoot events --json`.
pub fn event_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "offshoot event",
        "description": "One line of `offshoot events --json`. New kinds and fields may be added; pass over what you do not know.",
        "type": "object",
        "required": ["root", "seq", "at", "run", "kind"],
        "properties": {
            "root": { "$ref": "#/$defs/run", "description": "The tree, named by the run of its root." },
            "seq": { "type": "integer", "minimum": 0, "description": "Its place in the tree's record, from 1 and without gaps. Progress carries the number of the last event that was kept." },
            "at": { "type": "integer", "minimum": 0, "description": "Microseconds since 1970-01-01T00:00:00Z." },
            "run": { "$ref": "#/$defs/run", "description": "About which run." },
            "kind": { "description": "What happened: a word, or an object with one word as its key.", "anyOf": kinds() }
        },
        "$defs": definitions()
    })
}

/// Kinds without anything beside the word, then those with more.
fn kinds() -> Value {
    let words = ["starting", "waiting", "returned", "budget_notice", "stall_lent", "reopened"];
    let mut kinds = vec![json!({ "enum": words })];
    let tagged = [
        ("admitted", json!({ "$ref": "#/$defs/admitted" })),
        (
            "refused",
            object(
                &["refusal"],
                json!({ "refusal": { "$ref": "#/$defs/refusal" }, "times": count() }),
            ),
        ),
        ("started", object(&["process"], json!({ "process": nullable("process") }))),
        ("progress", object(&["text"], json!({ "text": { "type": "string" } }))),
        ("reported", object(&["text"], json!({ "text": { "type": "string" } }))),
        (
            "used",
            object(
                &["usage", "cost"],
                json!({ "usage": { "$ref": "#/$defs/usage" }, "cost": { "$ref": "#/$defs/cost" } }),
            ),
        ),
        (
            "busy_waiting",
            object(&["cpu_ms", "wait_ms"], json!({ "cpu_ms": count(), "wait_ms": count() })),
        ),
        ("stopping", object(&["reason"], json!({ "reason": { "$ref": "#/$defs/reason" } }))),
        (
            "overrun",
            object(&["tokens", "micro_usd"], json!({ "tokens": count(), "micro_usd": count() })),
        ),
        (
            "budget_raised",
            object(&["tokens", "micro_usd"], json!({ "tokens": count(), "micro_usd": count() })),
        ),
        (
            "resumed",
            object(
                &["attempt", "continues"],
                json!({
                    "attempt": count(),
                    "continues": { "type": "boolean" },
                    "after": { "$ref": "#/$defs/reason" },
                    "wait_ms": count()
                }),
            ),
        ),
        (
            "stray_ended",
            object(&["pid", "name"], json!({ "pid": count(), "name": { "type": "string" } })),
        ),
        (
            "keeper_failed",
            object(
                &["pid", "found"],
                json!({
                    "pid": count(),
                    "found": { "enum": ["ended", "stopped", "silent"] },
                    "error": { "type": "string" }
                }),
            ),
        ),
        ("ended", json!({ "$ref": "#/$defs/ending" })),
        (
            "merged",
            object(
                &["strategy", "merged", "failed", "output"],
                json!({
                    "strategy": { "type": "string" },
                    "merged": count(),
                    "failed": count(),
                    "output": { "$ref": "#/$defs/payload" }
                }),
            ),
        ),
        (
            "turn_ended",
            object(
                &[],
                json!({ "answer": { "$ref": "#/$defs/payload" }, "letters_taken": count() }),
            ),
        ),
        (
            "letter",
            object(
                &["text"],
                json!({ "from": { "$ref": "#/$defs/run" }, "text": { "$ref": "#/$defs/payload" } }),
            ),
        ),
        (
            "kept",
            object(
                &["name", "value"],
                json!({ "name": { "type": "string" }, "value": { "$ref": "#/$defs/stored" } }),
            ),
        ),
        (
            "delivered",
            object(
                &["delivery", "redelivered"],
                json!({ "delivery": delivery(), "redelivered": { "type": "boolean" } }),
            ),
        ),
        ("undelivered", object(&["delivery"], json!({ "delivery": delivery() }))),
        ("removal", object(&[], json!({ "error": { "type": "string" } }))),
    ];
    kinds.extend(tagged.map(|(word, what)| {
        json!({ "type": "object", "required": [word], "properties": { word: what } })
    }));
    Value::Array(kinds)
}

fn definitions() -> Value {
    json!({
        "run": { "type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" },
        "process": object(
            &["pid", "startTime"],
            json!({ "pid": count(), "startTime": count(), "boot": { "type": "string" } }),
        ),
        "usage": object(
            &["input", "output", "cacheRead", "cacheWrite"],
            json!({
                "input": tokens(), "output": tokens(), "cacheRead": tokens(), "cacheWrite": tokens(),
                "atLeast": {
                    "type": "array", "items": { "type": "string" },
                    "description": "The counts that are lower bounds: the run was cut off, or a part of the sum is unknown."
                }
            }),
        ),
        "cost": object(
            &["knownUsd", "estimatedUsd", "unknownRuns"],
            json!({
                "knownUsd": { "type": "number", "minimum": 0 },
                "estimatedUsd": { "type": "number", "minimum": 0 },
                "unknownRuns": count()
            }),
        ),
        "payload": {
            "description": "A value: text, JSON, or where it is stored.",
            "anyOf": [
                object(&["text"], json!({ "text": { "type": "string" } })),
                object(&["json"], json!({ "json": true })),
                object(&["stored"], json!({ "stored": { "$ref": "#/$defs/stored" } }))
            ]
        },
        "stored": object(
            &["hash", "size", "kind"],
            json!({
                "hash": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
                "size": count(),
                "kind": { "enum": ["text", "json", "result", "bytes"] }
            }),
        ),
        "rights": object(&["allow", "deny"], json!({
            "allow": { "type": ["array", "null"], "items": { "type": "string" } },
            "deny": { "type": "array", "items": { "type": "string" } }
        })),
        "grant": object(
            &["maxDepth", "maySpawn", "tools", "budget", "runTimeoutSeconds", "idleTimeoutSeconds", "graceSeconds"],
            json!({
                "maxDepth": count(),
                "maySpawn": { "type": "boolean" },
                "tools": { "$ref": "#/$defs/rights" },
                "budget": object(&["tokens", "usd"], json!({ "tokens": tokens(), "usd": { "type": ["number", "null"] } })),
                "runTimeoutSeconds": count(),
                "idleTimeoutSeconds": count(),
                "graceSeconds": count(),
                "maxOutputBytes": count()
            }),
        ),
        "rules": object(
            &["maxConcurrent", "maxSpawns", "cascade"],
            json!({
                "maxConcurrent": count(),
                "maxConcurrentPerLevel": count(),
                "maxChildren": count(),
                "maxSpawns": count(),
                "maxSpawnsPerMinute": count(),
                "cascade": { "type": "boolean" },
                "maxDepth": count(),
                "maxReturns": count(),
                "retries": count(),
                "breakerFailures": count(),
                "breakerCooldownSeconds": count(),
                "deadlineSeconds": count()
            }),
        ),
        "admitted": object(
            &["key", "parent", "agent", "depth", "origin", "task", "grant"],
            json!({
                "key": { "type": "string" },
                "parent": nullable("run"),
                "agent": { "type": "string" },
                "depth": count(),
                "origin": { "enum": ["root", "piece", "agent"] },
                "label": { "type": "string" },
                "runtime": { "type": "string" },
                "task": { "$ref": "#/$defs/payload" },
                "input": object(&["path", "offset", "length", "hash"], json!({
                    "path": { "type": "string" },
                    "offset": count(),
                    "length": count(),
                    "hash": { "type": ["string", "null"] }
                })),
                "grant": { "$ref": "#/$defs/grant" },
                "rules": { "$ref": "#/$defs/rules" },
                "cleanup": { "enum": ["keep", "delete"] },
                "archiveAfterMinutes": count(),
                "plan": { "description": "For a root: what it was opened with." }
            }),
        ),
        "refusal": object(
            &["status", "code", "message"],
            json!({
                "status": { "enum": ["forbidden", "error"] },
                "code": { "type": "string" },
                "field": { "type": "string" },
                "message": { "type": "string" },
                "hint": { "type": "string" },
                "governedBy": object(&["key", "value", "origin"], json!({
                    "key": { "type": "string" },
                    "agent": { "type": "string" },
                    "value": true,
                    "origin": { "type": "string" }
                }))
            }),
        ),
        "reason": {
            "description": "Why it ended, by evidence. `kind` decides what else is there.",
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": { "enum": [
                    "completed", "exit_code", "signal", "cannot_start", "runtime_error", "plugin_panic",
                    "turn_limit", "budget", "timeout", "idle", "output_limit", "deadline", "cancelled",
                    "pieces_failed",
                    "not_recorded", "no_room", "interrupted", "client_gone"
                ] }
            }
        },
        "ending": object(
            &["reason", "output"],
            json!({
                "reason": { "$ref": "#/$defs/reason" },
                "output": nullable("payload"),
                "diagnostics": { "type": "string" },
                "usage": { "$ref": "#/$defs/usage" },
                "cost": { "$ref": "#/$defs/cost" },
                "executionTimeMs": count()
            }),
        )
    })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

fn nullable(definition: &str) -> Value {
    json!({ "anyOf": [{ "$ref": format!("#/$defs/{definition}") }, { "type": "null" }] })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// Unknown is null, and not zero.
fn tokens() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}

fn delivery() -> Value {
    json!({ "type": "string", "pattern": "^announce:v1:" })
}
