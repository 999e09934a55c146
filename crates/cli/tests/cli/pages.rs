//! The pages that people read: every block of shell in them works to the letter, or this file says why it cannot be run here. A
//! block of text right below one is what it prints.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use offshoot_test_support::lacking;

use crate::command::{Outcome, Place};

/// The way in which a block is run.
enum Way {
    /// In a new folder, after these lines.
    After(&'static str),
    /// In this repository.
    Here,
    /// As an agent.
    Agent,
    /// Not at all, for this reason.
    Cannot(&'static str),
}

use Way::{After, Agent, Cannot, Here};

/// Every block, by its page and how it begins.
const BLOCKS: &[(&str, &str, Way)] = &[
    (
        "README.md",
        "cargo install",
        Cannot("it builds the program that runs here, into the user's home"),
    ),
    ("README.md", "seq 1000000 |", After("")),
    ("README.md", "offshoot run --allow-recursive-spawn", Here),
    ("README.md", "offshoot init", After("")),
    ("README.md", "# the same task for pieces", After(FILES)),
    (
        "README.md",
        "offshoot map --runtime openai",
        Cannot("it asks a chat endpoint; openai.rs runs one on loopback"),
    ),
    ("README.md", "offshoot tree  ", After(RAN)),
    ("README.md", "offshoot watch", Cannot("it needs a terminal; watch.rs gives it one")),
    ("README.md", "offshoot pause last", After(RUNS)),
    ("README.md", "offshoot resume last\n", After(STOPPED)),
    ("README.md", "offshoot resume last --failed", After(FAILED)),
    ("README.md", "offshoot map --merge sum crates", Here),
    ("README.md", "\"$OFFSHOOT\" spawn", Agent),
    ("README.md", "cargo xtask ci", Cannot("it runs this test, among all others")),
    ("docs/agents.md", "offshoot init", After("")),
    ("docs/agents.md", "mkdir -p .offshoot/agents", After("")),
    (
        "docs/chat-endpoints.md",
        "offshoot run --runtime openai",
        Cannot("it asks a chat endpoint; openai.rs runs one on loopback"),
    ),
    (
        "docs/claude.md",
        "offshoot run --runtime claude",
        Cannot("it asks a paid vendor; claude.rs runs a stand-in"),
    ),
    ("docs/delegation.md", "cd examples/delegation\nsh prepare.sh  ", After(EXAMPLE)),
    ("docs/delegation.md", "cd examples/delegation\nsh prepare.sh\n", After(EXAMPLE)),
    ("docs/delegation.md", "cd examples/delegation\noffshoot trust", After(EXAMPLE)),
    ("docs/delegation.md", "mkdir -p .offshoot/agents", After("")),
    ("docs/delegation.md", "offshoot run \"check the files\"", After("")),
    ("docs/delegation.md", "printf '[agents.defaults", After("")),
    ("docs/delegation.md", "seq 8 > pieces", After("")),
    ("docs/delegation.md", "offshoot run \"commit all of it\"", After("")),
    ("docs/delegation.md", "offshoot run \"north south\"", After("")),
    ("docs/delegation.md", "offshoot run \"red blue red\"", After("")),
    ("docs/delegation.md", "offshoot run \"a change\"", After("")),
    ("docs/delegation.md", "offshoot run \"name the tool\"", After("")),
    ("docs/delegation.md", "cat > halve.sh", After("")),
    ("docs/logging.md", "OFFSHOOT_LOG=info", After(FILES)),
    ("docs/limits.md", "offshoot doctor --prove", After("")),
    ("docs/limits.md", "offshoot run \"a task\"", After("")),
    ("docs/logs.md", "offshoot run", After("")),
    ("docs/logs.md", "offshoot logs last --follow", After(RAN)),
    ("docs/mcp.md", "claude mcp add", Cannot("it changes the settings of a vendor's program")),
    ("docs/mcp.md", "codex mcp add", Cannot("it changes the settings of a vendor's program")),
    ("docs/mcp.md", "claude -p", Cannot("it asks a paid vendor; claude.rs runs a stand-in")),
    ("docs/merges.md", "offshoot fanout --task", After("")),
    ("docs/merges.md", "offshoot fanout --merge structured", After("")),
    ("docs/merges.md", "offshoot fanout --merge vote", After("")),
    ("docs/merges.md", "offshoot fanout --merge summarize", After("")),
    ("docs/merges.md", "seq 1000 |", After("")),
    ("docs/merges.md", "offshoot fanout --merge first", After("")),
    ("docs/merges.md", "offshoot fanout --merge quorum:2", After("")),
    ("docs/merges.md", "seq 10 |", After("")),
    ("docs/merges.md", "seq 5 |", After("")),
    ("docs/merges.md", "offshoot fanout --merge \"summarize-with", After("")),
    ("docs/merges.md", "offshoot fanout --merge \"best-of", After("")),
    ("docs/merges.md", "printf", After("")),
    ("docs/isolation.md", "git init -q && echo", After("")),
    ("docs/isolation.md", "git init -q && printf", After("")),
    ("docs/needs.md", "printf '%s\\n' '{\"id\":\"north\"", After("")),
    ("docs/needs.md", "printf '%s\\n' '{\"id\":\"a\"", After("")),
    ("docs/needs.md", "printf '%s\\n' 'three blind mice'", After("")),
    (
        "docs/plugins.md",
        "offshoot plugin check",
        Cannot("it is about the crate that the section makes; plugin_new.rs makes one"),
    ),
    (
        "docs/meter.md",
        "cat >> offshoot.toml",
        Cannot("it asks a provider; metered.rs runs Gemini CLI through the meter"),
    ),
    (
        "docs/quota.md",
        "sh examples/quota-wall/run.sh",
        Cannot("it takes seconds; walls.rs runs it"),
    ),
    ("docs/refusals.md", "offshoot run --max-spawns 1", After("")),
    ("docs/results.md", "offshoot run \"publish\"", After("")),
    ("docs/results.md", "cat > commit.json", After("")),
    (
        "docs/security.md",
        "#!/bin/sh",
        Cannot("it is a file with the reader's own folders; sandbox.rs has one like it"),
    ),
];

/// The files and the agents that the examples name.
const FILES: &str = r#"
printf 'an ERROR\nnone\n' > big.log; cp big.log app.log; echo source > src.txt; echo 1 > big.csv
printf '#!/bin/sh\ncat > /dev/null; echo done\n' > agent; chmod +x agent; cp agent bin/my-agent
"#;

/// The shipped files of the example of delegation, in the folder that the page names.
const EXAMPLE: &str = concat!(
    "mkdir -p examples/delegation\n",
    "(cd '",
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/delegation' && tar c .claude scripts team.toml prepare.sh measure.sh) | tar x -C examples/delegation\n",
);

/// A map of which one piece has failed.
const RAN: &str = "printf '1\\n2\\n' > in; offshoot -q map --split lines:1 in -- grep 1 || true\n";

/// A tree that runs.
const RUNS: &str = r#"
mkfifo up; offshoot -q run --budget-usd 5 "a task" -- sh -c 'echo > up; exec sleep 600' &
cat up
"#;

/// A map that was cancelled.
const STOPPED: &str = r#"
mkfifo up; echo 1 > in
offshoot -q map in -- sh -c 'if [ -e once ]; then cat; else touch once; echo > up; exec sleep 600; fi' &
cat up; offshoot -q cancel last; wait $! || true
"#;

/// A map of which one piece has failed, and would not fail again.
const FAILED: &str = r#"
echo 1 > in
offshoot -q map in -- sh -c 'if [ -e once ]; then cat; else touch once; exit 1; fi' || true
"#;

/// A block of a page.
struct Block {
    page: String,
    text: String,
    /// The block of text right below it.
    prints: Option<String>,
}

/// The folder of this repository.
fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().expect("the test was built from there")
}

/// All blocks of shell of all pages.
fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks_of(page)).collect()
}

/// All pages that people read.
fn pages() -> Vec<String> {
    let docs = fs::read_dir(repository().join("docs")).expect("the folder is there");
    let docs = docs.map(|entry| entry.expect("it can be read").file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().expect("a plain name")));
    let mut pages: Vec<String> = docs.filter(|page| page.ends_with(".md")).collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

fn blocks_of(page: &str) -> Vec<Block> {
    blocks_in(page, &["sh\n", "bash\n", "shell\n", "console\n"])
}

/// The blocks of a page in these languages.
fn blocks_in(page: &str, languages: &[&str]) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(page)).expect("the page can be read");
    // What stands between two fences is a block, and then what stands between two blocks.
    let parts: Vec<&str> = text.split("```").collect();
    let shell = |at: usize| languages.iter().find_map(|fence| parts[at].strip_prefix(fence));
    let found = (1..parts.len()).step_by(2).filter_map(|at| Some((at, shell(at)?)));
    let block = |(at, text): (usize, &str)| {
        let follows = parts.get(at + 1).is_some_and(|between| between.trim().is_empty());
        let next = parts.get(at + 2).filter(|_| follows);
        let prints = next.and_then(|next| next.strip_prefix("text\n")).map(str::to_owned);
        Block { page: page.to_owned(), text: text.to_owned(), prints }
    };
    found.map(block).collect()
}

fn rows_of(block: &Block) -> Vec<&'static Way> {
    let is_meant = |(page, begin, _): &&(&str, &str, Way)| {
        *page == block.page && block.text.starts_with(begin)
    };
    BLOCKS.iter().filter(is_meant).map(|(_, _, way)| way).collect()
}

/// Runs lines of shell, with the command that is tested on the path.
fn shell(lines: &str, place: &Place, folder: &Path) -> Outcome {
    let bin = place.path().join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).expect("the folder cannot be made");
        symlink(env!("CARGO_BIN_EXE_offshoot"), bin.join("offshoot"))
            .expect("the link cannot be made");
    }
    let mut command = place.command_of("sh", &["-euc", lines]);
    command
        .current_dir(folder)
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
        .env("OFFSHOOT_DATA_DIR", place.path().join(".offshoot"));
    place.outcome(command, &[])
}

/// Runs all blocks of these pages that can be run.
fn run(wanted: impl Fn(&str) -> bool) {
    for block in blocks().into_iter().filter(|block| wanted(&block.page)) {
        let rows = rows_of(&block);
        let [way] = rows.as_slice() else {
            panic!("{} rows for a block of {}:\n{}", rows.len(), block.page, block.text)
        };
        let place = Place::new();
        let outcome = match way {
            Cannot(reason) => {
                assert!(!reason.is_empty(), "{}", block.text);
                continue;
            }
            After(before) => shell(&format!("{before}{}", block.text), &place, &place.path()),
            Here => shell(&block.text, &place, &repository()),
            Agent => {
                let agent = place.file("bin/my-agent", "#!/bin/sh\ncat\n");
                fs::set_permissions(agent, fs::Permissions::from_mode(0o755))
                    .expect("the mode cannot be set");
                symlink(env!("CARGO_BIN_EXE_offshoot"), place.path().join("bin/offshoot"))
                    .expect("the link cannot be made");
                let block = place.file("block.sh", &block.text);
                let line = format!("offshoot run x -- sh -eu {}", block.display());
                shell(&line, &place, &place.path())
            }
        };
        let outcome = outcome.expect_code(0);
        if let Some(prints) = &block.prints {
            assert_eq!(outcome.stdout(), prints, "{}:\n{}", block.page, block.text);
        }
    }
}

#[test]
fn every_row_is_about_a_block() {
    let blocks = blocks();
    for (page, begin, _) in BLOCKS {
        let is_there = |block: &Block| block.page == *page && block.text.starts_with(begin);
        assert!(blocks.iter().any(is_there), "no block of {page} begins with {begin:?}");
    }
}

#[test]
fn the_readme_works_to_the_letter() {
    run(|page| page == "README.md");
}

#[test]
fn the_readme_works_where_its_sources_cannot_be_read() {
    let test = "the_readme_works_where_its_sources_cannot_be_read";
    let installed = Place::new();
    let command = installed.path().join("offshoot");
    fs::copy(env!("CARGO_BIN_EXE_offshoot"), &command).expect("the command cannot be copied");
    let tried = hidden(&Place::new(), "true", &[&installed.path().join("home")]);
    if tried.code != 0 {
        return lacking(test, "users may make no namespaces of mounts here");
    }
    let built = Path::new(env!("CARGO_BIN_EXE_offshoot")).parent().expect("a file is in a folder");
    let sources = [repository(), built.to_owned()];
    let mut run = 0;
    for block in blocks_of("README.md") {
        let place = Place::new();
        let lines = match rows_of(&block)[..] {
            [After(before)] => format!("{before}{}", block.text),
            [Here] => {
                let census = "examples/census/census.sh";
                let script = fs::read(repository().join(census)).expect("the script is there");
                place.file(census, script);
                format!("{CLONE}{}", block.text)
            }
            [Agent] => {
                let agent = place.file("bin/my-agent", "#!/bin/sh\ncat\n");
                fs::set_permissions(agent, fs::Permissions::from_mode(0o755))
                    .expect("the mode cannot be set");
                place.file("block.sh", &block.text);
                "offshoot run x -- sh -eu block.sh".to_owned()
            }
            _ => continue,
        };
        let lines = format!(
            "PATH=\"{}:$PWD/bin:$PATH\"; OFFSHOOT_DATA_DIR=\"$PWD/.offshoot\"\n\
             export PATH OFFSHOOT_DATA_DIR; mkdir -p bin\n\
             [ ! -e '{}' ] || exit 98; [ ! -e '{}' ] || exit 97\n{lines}",
            installed.path().display(),
            repository().join("Cargo.toml").display(),
            env!("CARGO_BIN_EXE_offshoot"),
        );
        let [repository, built] = &sources;
        let outcome = hidden(&place, &lines, &[repository, built]).expect_code(0);
        if let Some(prints) = &block.prints {
            assert_eq!(outcome.stdout(), prints, "{}", block.text);
        }
        run += 1;
    }
    assert!(run >= 8, "only {run} blocks of the README were run");
}

/// A clone of a repository of a few files, with the script of the example.
const CLONE: &str = "
mkdir -p crates/a/src; printf '1\\n2\\n' > crates/a/src/lib.rs
git init -q; git add crates examples
";

/// Runs lines of shell in a namespace of mounts in which these folders are empty.
fn hidden(place: &Place, lines: &str, folders: &[&Path]) -> Outcome {
    let hide = "lines=$1; shift; for folder do [ ! -d \"$folder\" ] || mount -t tmpfs hidden \"$folder\" || exit 99; done
                exec sh -euc \"$lines\"";
    let folders: Vec<&str> =
        folders.iter().map(|folder| folder.to_str().expect("a plain name")).collect();
    let unshare = ["--user", "--map-root-user", "--mount", "sh", "-c", hide, "sh", lines];
    place.outcome(place.command_of("unshare", &[&unshare[..], &folders].concat()), &[])
}

#[test]
fn the_pages_work_to_the_letter() {
    run(|page| page != "README.md");
}

/// A block of settings is a configuration, or the manifest of a plugin, which begins with its name.
#[test]
fn the_settings_of_the_pages_are_right() {
    let mut seen = 0;
    for block in pages().iter().flat_map(|page| blocks_in(page, &["toml\n"])) {
        let place = Place::new();
        let Block { page, text, .. } = block;
        seen += 1;
        let Some(name) = text.strip_prefix("name = \"").and_then(|rest| rest.split('"').next())
        else {
            // Bounds of the computer stand in the file of the user.
            let is_of_user = text.starts_with("[host]") || text.starts_with("[ceiling]");
            let checked = match is_of_user {
                true => {
                    place.file("home/.config/offshoot/config.toml", &text);
                    place.run(&["config", "show"])
                }
                false => {
                    place.file("c.toml", &text);
                    place.run(&["config", "check", "c.toml"])
                }
            };
            assert_eq!(checked.code, 0, "{page}:\n{text}\n{}", checked.text());
            continue;
        };
        for program in ["shout.py", "agent.py"] {
            place.file(&format!("plugins/{name}/{program}"), "");
        }
        place.file(&format!("plugins/{name}/plugin.toml"), &text);
        let listed = place.run(&["plugin", "list", "--plugin-path", "plugins"]);
        let is_listed = listed.code == 0 && listed.stdout().contains(name);
        assert!(is_listed && listed.stderr.is_empty(), "{page}:\n{text}\n{}", listed.text());
    }
    assert!(seen > 10, "{seen} blocks");
}

#[test]
fn the_documents_of_the_pages_are_json() {
    let mut seen = 0;
    for Block { page, text, .. } in pages().iter().flat_map(|page| blocks_in(page, &["json\n"])) {
        for document in serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>() {
            assert!(document.is_ok(), "{page}:\n{text}\n{document:?}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} documents");
}

#[test]
fn flags_and_settings_that_pages_name_are_there() {
    let read = |page: &str| fs::read_to_string(repository().join(page)).expect("the page is there");
    let (commands, schema) = (read("docs/cli.md"), read("docs/config.schema.json"));
    for page in [
        "README.md",
        "agents.md",
        "delegation.md",
        "logging.md",
        "logs.md",
        "merges.md",
        "origins.md",
        "refusals.md",
    ] {
        let page = if page == "README.md" { page.to_owned() } else { format!("docs/{page}") };
        let text = read(&page);
        let ours = text.lines().filter(|line| !line.starts_with("cargo "));
        let words = ours.flat_map(|line| line.split(|c: char| c != '-' && !c.is_ascii_lowercase()));
        for flag in words
            .filter(|word| word.len() > 3 && word.starts_with("--"))
            .filter(|word| !word.starts_with("---"))
        {
            assert!(
                commands.contains(&format!("{flag} ")) || commands.contains(&format!("{flag}\n")),
                "{page}: {flag}"
            );
        }
    }
    let page = read("docs/refusals.md");
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let settings = row.split('|').nth(3).expect("a row has columns");
        for key in settings.split('`').skip(1).step_by(2).flat_map(|key| key.split('.')) {
            assert!(schema.contains(&format!("\"{key}\"")), "{key}");
        }
    }
}

#[test]
fn the_page_about_merges_has_every_merge() {
    let page = fs::read_to_string(repository().join("docs/merges.md")).expect("the page is there");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| [`")?.split('`').next());
    let names = [offshoot_merge::Strategy::NAMES, offshoot_merge::Asking::NAMES].concat();
    assert_eq!(rows.collect::<Vec<_>>(), names);
}

#[test]
fn the_example_is_the_census_of_this_repository() {
    let place = Place::new();
    let count = "git ls-files | wc -l; git ls-files -z | xargs -0 cat | wc -l";
    let counted = shell(count, &place, &repository()).expect_code(0);
    let counted: Vec<&str> = counted.stdout().split_whitespace().collect();
    assert_ne!(counted, ["0", "0"], "this is no clone of the repository");
    let block = blocks_of("README.md").into_iter().find(|block| block.text.contains("census.sh"));
    let text = block.expect("the README shows it").text;
    let outcome = shell(&text, &place, &repository()).expect_code(0);
    let (answer, tree) = outcome.stdout().split_once('\n').expect("an answer, and a tree");
    assert_eq!(answer, counted.join(" "));
    assert!(tree.starts_with("main ") && tree.contains("depth 3"), "{tree}");
    assert!(!tree.contains("depth 4") && !tree.contains("failed"), "{tree}");
}
