//! Paths that are not UTF-8: of the data folder, the working folder, inputs and plugins.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::command::{Outcome, Place};
use crate::plugin::plugin;

/// A working folder and a data folder whose names are not UTF-8, and a file of two lines in the first.
struct Folders {
    place: Place,
    work: PathBuf,
    data: PathBuf,
}

fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

impl Folders {
    fn new() -> Self {
        let place = Place::new();
        let (work, data) =
            (place.path().join(name(b"work-\xff")), place.path().join(name(b"data-\xfe")));
        fs::create_dir(&work).expect("the folder is new");
        fs::write(work.join(name(b"in-\xfd")), "a\nb\n").expect("the folder is there");
        Self { place, work, data }
    }

    fn run(&self, arguments: &[&str], more: &[&OsStr]) -> Outcome {
        let mut command = self.place.command(arguments);
        command.args(more).current_dir(&self.work).env("OFFSHOOT_DATA_DIR", &self.data);
        self.place.outcome(command, &[]).expect_code(0)
    }

    /// The number by which the file system knows the working folder.
    fn inode(&self) -> String {
        fs::metadata(&self.work).expect("the folder is there").ino().to_string()
    }
}

/// A plugin whose runtime answers with the number of the working folder in its launch, and with what its first value holds.
const LOOKS: &str = r#"
import base64, json, os, sys

def path(text):
    return text if isinstance(text, str) else base64.b64decode(text["base64"])

def send(**line):
    print(json.dumps(line), flush=True)

for line in sys.stdin:
    line = json.loads(line)
    op, id = line.get("op"), line.get("id")
    if op == "describe":
        send(id=id, ok={"v": 1, "name": "looks", "version": "0.1.0",
                        "runtimes": [{"name": "looks", "abilities": {"cost": "none"}}]})
    elif op == "start":
        launch = line["launch"]
        send(op="event", of=id, kind=5, payload={"v": 1, "status": "started"})
        held = open(path(launch["context"][0]["path"])).read()
        listed = json.load(open(path(launch["contextManifest"])))["notes"]["path"]
        assert open(path(listed)).read() == held
        said = f'{os.stat(path(launch["workingFolder"])).st_ino} {held}'
        send(id=id, ok={"v": 1, "reason": {"kind": "completed", "exit_code": None}, "output": "text"}, body=said)
    else:
        send(id=id, ok={"v": 1})
"#;

#[test]
fn agents_of_every_kind_work_where_paths_are_not_utf8() {
    let folders = Folders::new();
    let inode = folders.inode();
    let notes = folders.place.file("notes", "kept");
    let notes = format!("notes={}", notes.display());
    let script = r#"stat -c %i .; "$OFFSHOOT" spawn --wait x -- stat -c %i .
        python3 -c 'import base64, json, os
path = json.load(open(os.environb[b"OFFSHOOT_CONTEXT"]))["notes"]["path"]
print(open(base64.b64decode(path["base64"])).read())'
        yes | head -c 300000 | "$OFFSHOOT" context put big
        "$OFFSHOOT" context get big | wc -c"#;
    let run = ["-q", "run", "--allow-recursive-spawn", "--context", &notes, "x"];
    let said = folders.run(&[&run[..], &["--", "sh", "-c", script]].concat(), &[]);
    assert_eq!(said.stdout(), format!("{inode}\n{inode}\nkept\n300000\n"));

    let package = "name = \"looks\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nruntimes = [\"looks\"]\n\
                   [process]\ncommand = [\"python3\", \"agent.py\"]\n";
    folders.place.file("plugins/looks/plugin.toml", package);
    folders.place.file("plugins/looks/agent.py", LOOKS);
    plugin(&folders.place, "plugins", "raw", "raw");
    let plugins = folders.work.join(name(b"plugins-\xfc"));
    fs::rename(folders.place.path().join("plugins"), &plugins).expect("the folder is there");
    let by = |runtime| {
        let words = ["-q", "run", "--runtime", runtime, "--context", &notes, "x", "--plugin-path"];
        folders.run(&words, &[plugins.as_os_str()]).stdout().to_owned()
    };
    assert_eq!(by("looks"), format!("{inode} kept\n"));
    // The task, and what a prompt says of its values.
    assert!(by("upper").starts_with("X\n"));
}

#[test]
fn a_project_whose_path_is_not_utf8_is_trusted_and_forgotten() {
    let folders = Folders::new();
    let file = folders.work.join(".offshoot/config.toml");
    fs::create_dir(folders.work.join(".offshoot")).expect("the folder is new");
    fs::write(&file, "[agents.defaults.subagents]\nmaxConcurrent = 3\n").expect("it is writable");
    let said = |arguments: &[&str]| folders.run(arguments, &[]).stdout().to_owned();

    let folder = folders.work.canonicalize().expect("the folder is there");
    let text = data_encoding::BASE64.encode(folder.as_os_str().as_bytes());
    let text = format!(r#""base64": "{text}""#);
    let trusted = said(&["--json", "trust"]);
    assert!(trusted.contains(&text), "{trusted}");
    let shown = said(&["config", "show"]);
    let row = shown.lines().find(|line| line.contains("subagents.maxConcurrent"));
    assert_eq!(row.and_then(|row| row.split_whitespace().nth(1)), Some("3"), "it takes effect");
    let listed = said(&["--json", "trust", "--list"]);
    assert!(listed.contains(&text) && listed.contains("trusted"), "{listed}");

    fs::write(&file, "[agents.defaults.subagents]\nmaxConcurrent = 4\n").expect("it is writable");
    assert!(said(&["--json", "trust", "--list"]).contains("changed"));
    said(&["trust", "--remove"]);
    assert_eq!(said(&["--json", "trust", "--list"]).trim(), "[]");
}

#[test]
fn a_file_whose_name_is_not_utf8_is_mapped_and_its_tree_read_back() {
    let folders = Folders::new();
    let input = name(b"in-\xfd");
    let count = |map: &[&OsStr]| {
        let map = [&[input, name(b"--")], map].concat();
        folders.run(&["-q", "map", "--split", "lines:1"], &map).stdout().to_owned()
    };
    assert_eq!(count(&[OsStr::new("cat")]), "a\n---\nb\n");
    let ids = folders.run(&["-q", "list"], &[]).stdout().to_owned();
    let row = ids.lines().nth(1).expect("the tree is listed");
    let id = row.split_whitespace().next().expect("a row has an id").to_owned();
    for look in [&["show", &id][..], &["tree", &id], &["--json", "events", &id], &["audit", &id]] {
        folders.run(look, &[]);
    }
    let events = folders.run(&["--json", "events", &id], &[]);
    let bytes = |path: &PathBuf| data_encoding::BASE64.encode(path.as_os_str().as_bytes());
    let path = folders.work.canonicalize().expect("the folder is there").join(input);
    let recorded = format!(r#"{{"base64":"{}"}}"#, bytes(&path));
    assert!(events.stdout().contains(&recorded), "{}", events.stdout());
    // The tree is known again by its paths.
    let again: [OsString; 2] = ["resume".into(), id.into()];
    let again: Vec<&OsStr> = again.iter().map(OsString::as_os_str).collect();
    assert_eq!(folders.run(&["-q"], &again).stdout(), "a\n---\nb\n");
}
