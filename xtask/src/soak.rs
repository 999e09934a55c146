//! Kills and faults without end, and the table of what was tried.
//!
//! ```text
//!  kills ──┐
//!  faults ─┴─▶ a file of counts ──▶ one table, printed, or written into docs/durability.md between two marks
//! ```

use std::fs;
use std::path::Path;

use crate::{Result, cargo, workspace};

/// The page that has the table.
const PAGE: &str = "docs/durability.md";
/// Between these two lines it stands there.
const BEGIN: &str = "<!-- counts: written by `cargo xtask soak --write` -->";
const END: &str = "<!-- end of counts -->";

/// The variables in which tests and kills find the name of the file of counts, and how many faults of each kind are wanted.
const COUNTS: &str = "OFFSHOOT_FAULT_COUNTS";
const WANTED: &str = "OFFSHOOT_FAULTS";
/// The number of commands of git that are killed.
const POINTS: &str = "OFFSHOOT_TEST_KILLS";
/// The number of trees of the simulation.
const TREES: &str = "OFFSHOOT_TEST_TREES";

/// The arguments of a soak.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    /// Moments at which a supervisor, an agent or a command of git is killed, of each.
    kills: String,
    /// Points of each kind of fault: `all`, or a number.
    faults: String,
    write: bool,
}

/// The number of trials of one kind, and of those that survived.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    what: String,
    tried: u64,
    survived: u64,
}

/// Runs all of it in release, whatever fails on the way, and then says what came of it.
pub(crate) fn run(arguments: &[&str]) -> Result {
    let wish = Wish::parse(arguments)?;
    let file = workspace::root().join("target/soak-counts");
    // It may not be there: what is built may go elsewhere.
    fs::create_dir_all(file.parent().ok_or("a file lies in a folder")?)?;
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let path = file.to_str().ok_or("the workspace has a plain name")?;
    let variables = [(COUNTS, path), (WANTED, &wish.faults)];
    let kills = ["run", "--release", "--package", "offshoot-kills", "--", &wish.kills];
    let kills = cargo::run(&kills, &variables);
    // In debug it would try the same, slower: the library tests are of no interest here.
    let faults = ["test", "--release", "--no-fail-fast", "--package", "offshoot-faults"];
    let faults = [&faults[..], &["--tests", "--", "--nocapture"]].concat();
    let faults = cargo::run(&faults, &variables);
    let folders = ["test", "--release", "--package", "offshoot-isolation", "--test", "suite"];
    let folders = [&folders[..], &["--", "kills"]].concat();
    let folders = cargo::run(&folders, &[(COUNTS, path), (POINTS, &wish.kills)]);
    let states = ["test", "--release", "--package", "offshoot-spawner", "--lib", "every_state"];
    let states = [&states[..], &["--", "--nocapture"]].concat();
    let states = cargo::run(&states, &variables);
    let trees = ["test", "--release", "--package", "offshoot-spawner", "--lib", "thousand_trees"];
    let trees = cargo::run(&trees, &[(COUNTS, path), (TREES, "10000")]);
    let counts = read(&fs::read_to_string(&file).unwrap_or_default())?;
    let table = table(&counts);
    println!("{table}");
    kills?;
    faults?;
    folders?;
    states?;
    trees?;
    let lost: u64 = counts.iter().map(|count| count.tried - count.survived).sum();
    if counts.is_empty() || lost > 0 {
        return Err(format!("{lost} points of {} kinds were lost", counts.len()).into());
    }
    if wish.write {
        write(&workspace::root().join(PAGE), &table)?;
    }
    Ok(())
}

impl Wish {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut wish = Self { kills: "500".to_owned(), faults: "all".to_owned(), write: false };
        let number = |text: &str| {
            let number: u64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
            Ok::<_, Box<dyn std::error::Error>>(number.to_string())
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--write" => wish.write = true,
                "--faults" => {
                    wish.faults = number(arguments.next().ok_or("--faults needs a number")?)?;
                }
                points => wish.kills = number(points)?,
            }
        }
        Ok(wish)
    }
}

fn read(lines: &str) -> Result<Vec<Count>> {
    let count = |line: &str| {
        let mut parts = line.split('\t');
        let mut next = || parts.next().ok_or_else(|| format!("no line of counts: {line}"));
        let (what, tried, survived) = (next()?.to_owned(), next()?.parse()?, next()?.parse()?);
        Ok(Count { what, tried, survived })
    };
    let mut counts = lines.lines().map(count).collect::<Result<Vec<_>>>()?;
    // Tests beside each other end in any order; what belongs together begins with the same words.
    counts.sort_by(|a, b| a.what.cmp(&b.what));
    Ok(counts)
}

fn table(counts: &[Count]) -> String {
    let row =
        |what: &str, tried: u64, survived: u64| format!("| {what} | {tried} | {survived} |\n");
    let rows: String =
        counts.iter().map(|count| row(&count.what, count.tried, count.survived)).collect();
    let sum = |of: fn(&Count) -> u64| counts.iter().map(of).sum();
    let all = row("all of them", sum(|count| count.tried), sum(|count| count.survived));
    format!("| fault | points tried | survived |\n|---|---|---|\n{rows}{all}")
}

fn write(page: &Path, table: &str) -> Result {
    let text = fs::read_to_string(page)?;
    let whole = between(&text, table).ok_or_else(|| format!("{PAGE} has no place for counts"))?;
    Ok(fs::write(page, whole)?)
}

fn between(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_one_table() {
        let counts = read("b\t3\t3\na\t2\t1\n").expect("two lines");
        let expected = "| fault | points tried | survived |\n|---|---|---|\n\
                        | a | 2 | 1 |\n| b | 3 | 3 |\n| all of them | 5 | 4 |\n";
        assert_eq!(table(&counts), expected);
        assert!(read("b\t3\n").is_err());
    }

    #[test]
    fn the_table_is_replaced_and_nothing_else() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nz\n");
        let once = between(&page, "new\n").expect("two marks");
        assert_eq!(once, format!("a\n{BEGIN}\n\nnew\n\n{END}\nz\n"));
        assert_eq!(between(&once, "new\n"), Some(once));
        assert_eq!(between("a\n", "new\n"), None);
    }

    #[test]
    fn wishes_are_read() {
        let wish = |kills: &str, faults: &str, write| Wish {
            kills: kills.to_owned(),
            faults: faults.to_owned(),
            write,
        };
        let parse = |words: &[&str]| Wish::parse(words).map_err(|error| error.to_string());
        assert_eq!(parse(&[]), Ok(wish("500", "all", false)));
        assert_eq!(parse(&["5", "--faults", "3", "--write"]), Ok(wish("5", "3", true)));
        assert!(parse(&["many"]).is_err() && parse(&["--faults"]).is_err());
    }
}
