//! Kinds of events, and what they are answered with.

/// A piece of text as it comes: bare, no JSON.
pub const TEXT: u32 = 1;
/// A tool is called: `{ "v", "name", "input"? }`.
pub const TOOL_START: u32 = 2;
/// A tool has answered: `{ "v", "name", "isError"? }`.
pub const TOOL_END: u32 = 3;
/// The usage so far, cumulative: `{ "v", "usage", "cost" }`.
pub const USAGE: u32 = 4;
/// The status of the run: `{ "v", "status": "started", "process"? }`, once, before any other event; `"answers"` as its model begins to
/// answer; `{ "v", "status": "backsOff", "why", "waitMs", "isPressure"? }` where its service has refused or broken off a call, and is asked again after that wait;
/// `{ "v", "status": "modelChanged", "model" }` where another model answers from here on. A host passes over other words.
pub const STATUS: u32 = 5;
/// A remark for people: `{ "v", "text" }`.
pub const NOTE: u32 = 6;
/// A vendor's own event as it came: `{ "v", "source", "event" }`.
pub const RAW: u32 = 7;

/// Nothing stands against going on.
pub const GO_ON: u32 = 0;
/// The run has been asked to stop. A reminder: the request itself comes by `cancel`.
pub const PLEASE_STOP: u32 = 1;
