//! Starts that fail.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use offshoot_process::{StartError, Stdin};

use super::{agent, processes, program};

/// The whole chain of a failed start, without the test's folder.
#[track_caller]
fn refusal(program: offshoot_process::Program, folder: &Path) -> (String, StartError) {
    let processes = processes();
    let error = processes.spawn(program).expect_err("it must not start");
    assert!(processes.live().is_empty());
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        chain += &format!(": {cause}");
        source = cause.source();
    }
    (chain.replace(&folder.display().to_string(), ""), error)
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = |name: &str, text: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        path
    };
    file("plain", "text", 0o644);
    file("script", "echo no interpreter", 0o755);
    file("orphan", "#!/no/such/interpreter\n", 0o755);
    for (name, expected) in [
        ("none", "program /none not found"),
        ("none/of", "program /none/of not found"),
        ("plain/of", "program /plain/of not found"),
        ("plain", "/plain is not executable"),
        ("script", "/script is of no executable format"),
        ("orphan", "/orphan is of no executable format"),
        ("", "/ is a directory"),
    ] {
        let (message, error) = refusal(program(&folder.path().join(name), &[]), folder.path());
        assert_eq!(message, expected);
        assert!(error.hint().is_some() && !error.is_retryable(), "{message}");
    }
    let (message, _) = refusal(program(Path::new("sh"), &[]), folder.path());
    assert_eq!(message, "program path sh is not absolute");
}

#[tokio::test]
async fn a_program_that_is_open_for_writing_for_a_moment_starts() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let open = |number: u32| {
        let path = folder.path().join(number.to_string());
        fs::copy("/bin/true", &path).expect("a program");
        let held = OpenOptions::new().append(true).open(&path).expect("a program may be changed");
        (path, held)
    };
    for number in 0..20 {
        let (path, held) = open(number);
        let (start, started) = mpsc::channel();
        let closer = thread::spawn(move || {
            started.recv().expect("it starts");
            drop(held);
        });
        let processes = processes();
        start.send(()).expect("the other thread waits");
        processes.spawn(program(&path, &[])).expect("the file is closed soon");
        closer.join().expect("it closes the file");
    }
    let (path, _held) = open(20);
    let (message, error) = refusal(program(&path, &[]), folder.path());
    assert!(message.contains("Text file busy"), "{message}");
    assert!(error.is_retryable(), "{message}");
}

#[tokio::test]
async fn a_folder_or_input_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("none");
    let missing = "No such file or directory (os error 2)";

    let mut in_folder = agent(&["silent"]);
    in_folder.cwd = path.clone();
    let (message, _) = refusal(in_folder, folder.path());
    assert_eq!(message, format!("folder /none cannot be entered: {missing}"));

    for stdin in [Stdin::File(path.clone()), Stdin::Range { path, offset: 0, length: 1 << 20 }] {
        let mut reading = agent(&["silent"]);
        reading.stdin = stdin;
        let (message, _) = refusal(reading, folder.path());
        assert_eq!(message, format!("input /none cannot be read: {missing}"));
    }
}

#[tokio::test]
async fn what_is_too_long_is_counted() {
    let mut program = agent(&["silent"]);
    program.env = vec![("LONG".into(), "x".repeat(200_000).into())];
    let (message, error) = refusal(program, Path::new("/no/folder"));
    assert!(message.ends_with("are too long: 200013 bytes"), "{message}");
    assert!(error.hint().expect("there is a way out").contains("128 KiB"));
}
