//! `docs/cli.md`: the help of the command and of everything below it.

use crate::Result;

const HEAD: &str = "\
# The command line

Made by `cargo xtask regenerate` from `offshoot --help`.
";

/// Asks for the help of the command and, as its list of commands names them, of all below it.
///
/// `run` takes a command's arguments and returns what it prints.
pub(crate) fn page(run: &dyn Fn(&[&str]) -> Result<String>) -> Result<String> {
    let mut page = HEAD.to_owned();
    add(&mut page, &[], run)?;
    Ok(page)
}

fn add(page: &mut String, path: &[&str], run: &dyn Fn(&[&str]) -> Result<String>) -> Result {
    let help = run(&[path, &["--help"]].concat())?;
    let title = ["offshoot"].iter().chain(path).copied().collect::<Vec<_>>().join(" ");
    // A line that ends in blanks would be cut by an editor and then differ.
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n")));
    for name in commands(&help).filter(|name| *name != "help") {
        add(page, &[path, &[name]].concat(), run)?;
    }
    Ok(())
}

/// The names below `Commands:`. Their descriptions may go on in further, deeper indented lines.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| line.is_empty() || line.starts_with("  "));
    list.filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_goes_down_to_the_last_command() {
        let run = |line: &[&str]| {
            Ok(match line {
                ["--help"] => {
                    "Usage: offshoot\n\nCommands:\n  map   Does\n        much  \n  key   Reads\n\n  help  Says\n\nOptions:\n  -q  Quiet\n"
                }
                ["map", "--help"] => "Usage: offshoot map\n",
                ["key", "--help"] => "Commands:\n  parse  Reads\n",
                ["key", "parse", "--help"] => "Usage: offshoot key parse\n",
                other => panic!("unexpected: {other:?}"),
            }
            .to_owned())
        };
        let page = page(&run).unwrap();
        let titles: Vec<_> = page.lines().filter(|line| line.starts_with("## ")).collect();
        let expected =
            ["## offshoot", "## offshoot map", "## offshoot key", "## offshoot key parse"];
        assert_eq!(titles, expected);
        assert!(
            page.ends_with("\n## offshoot key parse\n\n```text\nUsage: offshoot key parse\n```\n")
        );
        assert!(!page.contains(" \n"), "{page}");
    }

    #[test]
    fn a_command_that_fails_stops_the_page() {
        let run = |_: &[&str]| Err("broken".into());
        assert_eq!(page(&run).unwrap_err().to_string(), "broken");
    }
}
