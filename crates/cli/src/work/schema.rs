//! The file of `--schema`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use offshoot_model::{JsonText, json_error};
use offshoot_schema::{SCHEMA_BYTES, check_schema};

use crate::arguments::WorkArguments;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Returns the schema of a command line, or of the record that it comes from.
pub(crate) fn of(work: &WorkArguments, cx: &Invocation) -> Result<Option<JsonText>, Failure> {
    match &work.schema {
        Some(file) => read(file, cx).map(Some),
        None => Ok(work.recorded_schema.clone()),
    }
}

/// Reads a schema, which can be used.
///
/// # Errors
/// Names the file, and the part of the schema that is wrong.
pub(crate) fn read(file: &Path, cx: &Invocation) -> Result<JsonText, Failure> {
    let mut text = String::new();
    // One byte more than is possible, so that a larger file is seen to be too large.
    let opened = File::open(cx.absolute(file));
    let read = opened.and_then(|it| it.take(SCHEMA_BYTES as u64 + 1).read_to_string(&mut text));
    read.map_err(|error| Failure::file(FailureCode::CannotRead, "read", file, &error))?;
    let wrong = |why: String| {
        Failure::input(FailureCode::BadSchema, format_args!("{}: {why}", file.display()))
            .hint("docs/results.md shows which parts of JSON Schema are understood; the smallest is {\"type\":\"object\"}")
    };
    if text.len() > SCHEMA_BYTES {
        return Err(wrong(format!("a schema has {SCHEMA_BYTES} bytes at most")));
    }
    let schema = JsonText::parse(text.trim().to_owned());
    let schema = schema.map_err(|error| wrong(format!("no JSON: {}", json_error("", &error))))?;
    check_schema(&schema).map_err(|error| wrong(format!("the schema cannot be used: {error}")))?;
    Ok(schema)
}
