//! The protocol of plugins that are programs as a page, made of conversations that are kept as files.

/// The conversations, in the order of the page. A line begins with `>` where the host writes it and with `<` where the plugin does;
/// other lines are the text between them.
pub(crate) const CONVERSATIONS: &[&str] = &[
    include_str!("../wire/lines/1-plugin.txt"),
    include_str!("../wire/lines/2-run.txt"),
    include_str!("../wire/lines/3-stop.txt"),
    include_str!("../wire/lines/4-merge.txt"),
    include_str!("../wire/lines/5-end.txt"),
];

const HEAD: &str = "\
# The protocol of plugins that are programs

Made by `cargo xtask regenerate` from the conversations in `crates/plugin-abi/tests/wire/lines`; a test writes and reads each line of them
with the code of both sides. How such a plugin is written, and what becomes of its process, stands in [plugins.md](plugins.md#a-plugin-in-any-language);
the documents within the lines, in [the same place](plugins.md#what-crosses-as-json).

The host writes one JSON object a line to the standard input of the program (`>`), and reads one a line from its standard output (`<`).
A line with `op` is a request, and one with an `id` wants an answer: a line with the same `id`, and `ok` or `error`. Each side numbers its own requests,
from 1 on. What a request makes (a runtime, a run, a merge) is known by the number of that request, which later requests name as `of`.
Members that are not known are passed over.

Lines end with a newline and with nothing else: within text there may be U+2028 and U+2029, at which some libraries split too.
A line is UTF-8 and no longer than 64 MiB; a larger answer is a file in the `spoolFolder` of the launch.
";

/// The page.
pub(crate) fn text() -> String {
    let mut page = String::from(HEAD);
    let mut is_code = false;
    for line in CONVERSATIONS.iter().flat_map(|conversation| conversation.lines()) {
        let code = line.starts_with(['<', '>']);
        if code != is_code {
            page.push_str(if code { "\n```text\n" } else { "```\n\n" });
            is_code = code;
        }
        match line.strip_prefix("# ") {
            Some(title) => page.push_str(&format!("## {title}\n\n")),
            None => page.push_str(&format!("{line}\n")),
        }
    }
    page.push_str(if is_code { "```\n" } else { "" });
    page
}
