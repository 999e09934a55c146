//! The last words of a program, kept to explain its failure.

use offshoot_model::cause;

/// The number of lines that are kept.
const LINES: usize = 10;

/// Returns the last lines of standard error, and before them the line that says the cause where it stands above a long stack
/// trace; nothing where there is nothing but space.
pub fn diagnostics(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let above = cause(&text).filter(|cause| !last.iter().any(|line| line.trim() == *cause));
    let kept: Vec<&str> =
        above.into_iter().flat_map(|cause| [cause, "…"]).chain(last.iter().copied()).collect();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_explain() {
        let check = |stderr: &[u8], expected: Option<&str>| {
            assert_eq!(diagnostics(stderr).as_deref(), expected);
        };
        check(b"", None);
        check(b" \n\n", None);
        check(b"warning\nerror: no\n", Some("warning\nerror: no"));
        check(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", Some("3\n4\n5\n6\n7\n8\n9\n10\n11\n12"));
        check(b"bad \xff byte", Some("bad \u{fffd} byte"));
        let frames = " at f\n".repeat(12);
        let kept = diagnostics(format!("Error: boom\n{frames}").as_bytes()).expect("text");
        assert!(kept.starts_with("Error: boom\n…\n at f\n"), "{kept}");
        assert_eq!(cause(&kept), Some("Error: boom"), "it is found in what was kept");
    }
}
