//! A folder in which a tree runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use offshoot_test_support::offshoot;
use serde_json::Value;

/// A folder of its own, with a configuration and a home in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        fs::create_dir(folder.path().join("home")).expect("the folder is new");
        fs::write(folder.path().join("agents.toml"), config).expect("the file cannot be written");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command line of a server: `offshoot` with these words.
    pub(crate) fn server(&self, words: &[&str]) -> Vec<String> {
        let program = offshoot().to_str().expect("a target folder has a plain name");
        [program].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    /// Runs a client as the root of a tree, and hands over its report.
    pub(crate) fn tree(&self, flags: &[&str], client: &[String]) -> Value {
        let mut command =
            self.offshoot(&["-q", "run", "--config", "agents.toml", "--timeout", "60"]);
        command.args(flags).args(["root", "--"]).args(client);
        report(&mut command)
    }

    /// The command, in this folder, with nothing of the developer's environment but PATH.
    pub(crate) fn offshoot(&self, words: &[&str]) -> Command {
        let mut command = self.program(offshoot());
        command.args(words);
        command
    }

    /// A program, in the same circumstances.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts what it tests, where PATH finds node"
    )]
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("tests have a PATH"))
            .env("HOME", self.path().join("home"))
            .stdin(Stdio::null());
        command
    }
}

/// Runs to the end what prints a report.
#[track_caller]
pub(crate) fn report(command: &mut Command) -> Value {
    let Output { status, stdout, stderr } =
        command.output().expect("the program cannot be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{stdout}\n{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}"))
}

/// What came of a call that was answered: its structured content, of which the text must be the same.
#[track_caller]
pub(crate) fn answer(report: &Value, step: usize) -> &Value {
    let came = &report["answers"][step];
    assert_eq!(came["isError"], false, "{step}: {came}");
    same_as_text(came)
}

/// The same for one that is an error.
#[track_caller]
pub(crate) fn refusal(report: &Value, step: usize) -> &Value {
    let came = &report["answers"][step];
    assert_eq!(came["isError"], true, "{step}: {came}");
    same_as_text(came)
}

#[track_caller]
fn same_as_text(came: &Value) -> &Value {
    let texts = came["text"].as_array().expect("content");
    let [text] = &texts[..] else { panic!("one text: {came}") };
    let text: Value =
        serde_json::from_str(text.as_str().expect("the message is not text")).expect("JSON");
    let structured = &came["structured"];
    assert_eq!(as_in_javascript(text), as_in_javascript(structured.clone()));
    structured
}

/// There, all numbers are of one kind, and 0.0 is written as 0.
fn as_in_javascript(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().expect("a number").into(),
        Value::Array(values) => values.into_iter().map(as_in_javascript).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, as_in_javascript(value))).collect()
        }
        other => other,
    }
}
