//! The streams of a program.

use std::fs;
use std::io::ErrorKind;

use offshoot_process::{Capture, Exit, Keep, Kept, NeverStop, Stdin};
use offshoot_test_support::{Disk, Watched};
use tokio::io::AsyncWriteExt;

use super::leftovers::Supervisor;
use super::{FAR, agent, announced, end, processes, run, shell, text, within};

const MIB: usize = 1 << 20;

#[test]
fn a_flood_goes_to_the_file_and_not_to_memory() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("flood");
    let path = file.to_str().expect("a folder for tests has a plain name");
    let mut supervisor = Supervisor::start(&["--spool", path, "flood", "100000000"]);
    supervisor.number("child ");
    assert_eq!(supervisor.line(), "finished Code(0) stop=None stragglers=0 lost=0 held=false");
    let peak = supervisor.number("peak ");
    assert!(peak < 20_000, "{peak} KiB");
    supervisor.end();
    assert_eq!(fs::metadata(file).expect("the file cannot be examined").len(), 100_000_000);
}

#[tokio::test]
async fn the_whole_is_kept_wherever_it_is() {
    for (bytes, memory, in_file) in [
        (0, 0, false),
        (1, 0, true),
        (1000, 1000, false),
        (1001, 1000, true),
        (3 * MIB + 5, 100, true),
    ] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("output");
        let mut program = agent(&["flood", &bytes.to_string()]);
        program.stdout = Keep::Whole { memory, file: file.clone(), limit: None }.into();
        let output = run(program).await.stdout;
        let kept = match output.kept {
            Kept::Memory(bytes) => bytes,
            Kept::File(_) => fs::read(&file).expect("the file cannot be read"),
        };
        assert_eq!(kept.len(), bytes);
        assert_eq!(file.exists(), in_file, "{bytes} of {memory}");
        let expected = [&[b'x'; 63][..], b"\n"].concat();
        assert!(kept.chunks(64).all(|line| line == &expected[..line.len()]));
        assert!(!output.truncated && output.error.is_none());
    }
}

#[tokio::test]
async fn only_what_is_wanted_is_kept() {
    for (keep, expected) in [
        (Keep::First(4), "abcd"),
        (Keep::First(100), "abcdefgh\n"),
        (Keep::Last(4), "fgh\n"),
        (Keep::Last(0), ""),
        (Keep::Last(100), "abcdefgh\n"),
        (Keep::Whole { memory: 100, file: "/none".into(), limit: Some(3) }, "abc"),
    ] {
        let mut program = agent(&["print", "abcdefgh"]);
        program.stdout = keep.clone().into();
        let output = run(program).await.stdout;
        assert_eq!(text(&output), expected, "{keep:?}");
        assert_eq!(output.total, 9, "{keep:?}");
        assert_eq!(output.truncated, expected.len() < 9, "{keep:?}");
    }
}

#[tokio::test]
async fn the_end_of_a_flood_is_kept() {
    let mut program = agent(&["flood-stderr", "5000000", "complain", "the last word"]);
    program.stderr = Keep::Last(20).into();
    let output = run(program).await.stderr;
    assert_eq!(text(&output), "xxxxx\nthe last word\n");
    assert_eq!((output.total, output.truncated), (5_000_014, true));
}

#[tokio::test]
async fn a_limit_holds_in_the_file_too() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("output");
    let mut program = agent(&["flood", "3000000"]);
    program.stdout = Keep::Whole { memory: 10, file: file.clone(), limit: Some(1_000_000) }.into();
    let output = run(program).await.stdout;
    assert_eq!((output.total, output.truncated), (3_000_000, true));
    assert_eq!(fs::metadata(file).expect("the file cannot be examined").len(), 1_000_000);
}

#[tokio::test]
async fn a_full_disk_is_an_honest_outcome() {
    let Some(disk) = Disk::of(64 * 1024) else { return };
    let mut program = agent(&["flood", "3000000", "exit", "7"]);
    let file = disk.path().join("output");
    program.stdout = Keep::Whole { memory: 10, file: file.clone(), limit: None }.into();
    let finished = run(program).await;
    assert_eq!(finished.exit, Exit::Code(7));
    let output = finished.stdout;
    assert_eq!(output.error.expect("the disk is full").kind(), ErrorKind::StorageFull);
    assert_eq!((output.total, output.truncated, output.kept), (3_000_000, true, Kept::File(file)));
}

#[tokio::test]
async fn a_file_that_cannot_be_made_leaves_what_is_in_memory() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (missing, taken) = (folder.path().join("none/output"), folder.path().join("taken"));
    fs::write(&taken, "another's").expect("a file");
    for (file, kind) in [(missing, ErrorKind::NotFound), (taken.clone(), ErrorKind::AlreadyExists)]
    {
        let mut program = agent(&["print", "abcdefgh"]);
        program.stdout = Keep::Whole { memory: 4, file, limit: None }.into();
        let output = run(program).await.stdout;
        assert_eq!(text(&output), "abcdefgh\n");
        assert_eq!(output.error.expect("the file cannot be made").kind(), kind);
        assert!(output.truncated);
    }
    assert_eq!(fs::read_to_string(taken).expect("the file cannot be read"), "another's");
}

#[test]
fn a_file_without_a_reader_is_removed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("output");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let leader = runtime.block_on(async {
        let actions = ["flood", "3000000", "print", "done", "hang"];
        let (mut program, mut lines) = announced(agent(&actions));
        program.stdout.keep = Keep::Whole { memory: 4, file: file.clone(), limit: None };
        let child = processes().spawn(program).expect("the program cannot be started");
        let leader = Watched::new(child.identity().pid);
        tokio::select! {
            _ = child.wait(NeverStop) => panic!("it hangs"),
            () = async { while lines.recv().await.expect("it prints") != "done" {} } => {}
        }
        leader
    });
    // With the runtime ends the thread that may still have been writing.
    drop(runtime);
    assert!(!file.exists());
    assert!(leader.is_gone_within(FAR));
}

#[tokio::test]
async fn input_reaches_the_program_whole() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("input");
    let bytes: Vec<u8> = (0..3 * MIB + 17).map(|index| (index / 7 % 251) as u8).collect();
    fs::write(&path, &bytes).expect("a file");
    let range = |offset: usize, length: usize| Stdin::Range {
        path: path.clone(),
        offset: offset as u64,
        length: length as u64,
    };
    for (stdin, expected) in [
        (Stdin::Null, &bytes[..0]),
        (Stdin::Bytes([].into()), &bytes[..0]),
        (Stdin::Bytes(bytes[..1].into()), &bytes[..1]),
        (Stdin::Bytes(bytes[..64 * 1024].into()), &bytes[..64 * 1024]),
        (Stdin::Bytes(bytes[..64 * 1024 + 1].into()), &bytes[..64 * 1024 + 1]),
        (Stdin::Bytes(bytes[..].into()), &bytes[..]),
        (range(0, 0), &bytes[..0]),
        (range(5, 10), &bytes[5..15]),
        (range(1, 64 * 1024 + 1), &bytes[1..64 * 1024 + 2]),
        (range(100, 3 * MIB - 200), &bytes[100..3 * MIB - 100]),
        (Stdin::File(path.clone()), &bytes[..]),
    ] {
        let mut program = agent(&["echo"]);
        program.stdin = stdin.clone();
        program.stdout = Keep::First(4 * MIB).into();
        let finished = run(program).await;
        assert!(finished.stdout.kept == Kept::Memory(expected.to_vec()), "{}", expected.len());
        assert!(finished.input_error.is_none());
    }
}

#[tokio::test]
async fn a_file_that_became_shorter_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("input");
    fs::write(&path, vec![b'x'; 100_000]).expect("a file");
    let mut program = agent(&["count-lines"]);
    program.stdin = Stdin::Range { path: path.clone(), offset: 1, length: 100_000 };
    let error = run(program).await.input_error.expect("a byte is missing");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);

    let mut program = agent(&["count-lines"]);
    program.stdin = Stdin::Range { path, offset: 99_999, length: 2 };
    let error = processes().spawn(program).expect_err("a small piece is read at once");
    assert!(error.to_string().ends_with("/input cannot be read"), "{error}");
}

#[tokio::test]
async fn a_program_that_stops_reading_is_no_error() {
    let bytes = vec![b'x'; 10 * MIB];
    for actions in [&["close-stdin", "print", "done"][..], &["exit", "0"]] {
        let mut program = agent(actions);
        program.stdin = Stdin::Bytes(bytes[..].into());
        let finished = run(program).await;
        assert_eq!(finished.exit, Exit::Code(0));
        assert!(finished.input_error.is_none());
    }
}

#[tokio::test]
async fn a_pipe_stays_open_until_it_is_dropped() {
    let (mut program, mut lines) =
        announced(shell("while read -r line; do echo \"<$line>\"; done"));
    program.stdin = Stdin::Pipe;
    let mut child = processes().spawn(program).expect("the program cannot be started");
    let mut stdin = child.take_stdin().expect("it was asked for");
    assert!(child.take_stdin().is_none());
    let talk = async {
        for word in ["one", "two"] {
            stdin.write_all(format!("{word}\n").as_bytes()).await.expect("the reader is gone");
            assert_eq!(lines.recv().await, Some(format!("<{word}>")));
        }
        drop(stdin);
    };
    let (finished, ()) = within(async { tokio::join!(end(child), talk) }).await;
    assert_eq!((finished.exit, text(&finished.stdout)), (Exit::Code(0), "<one>\n<two>\n".into()));
}

#[tokio::test]
async fn a_pipe_that_was_not_taken_is_closed() {
    let mut program = agent(&["echo"]);
    program.stdin = Stdin::Pipe;
    assert_eq!(run(program).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn both_streams_flow_at_once() {
    let mut program = shell("head -c 3000000 /dev/zero >&2 & cat; wait");
    program.stdin = Stdin::Bytes(vec![b'y'; 3_000_000].into());
    program.stdout = Keep::Last(1).into();
    let finished = run(program).await;
    assert_eq!((finished.stdout.total, finished.stderr.total), (3_000_000, 3_000_000));
}

#[tokio::test]
async fn nothing_is_read_where_output_is_not_wanted() {
    let mut program = agent(&["flood", "3000000", "flood-stderr", "3000000"]);
    (program.stdout, program.stderr) = (Capture::nothing(), Capture::nothing());
    let finished = run(program).await;
    assert_eq!((finished.exit, finished.stdout.total), (Exit::Code(0), 0));
}
