use std::collections::HashSet;

use offshoot_model::RootId;

use super::*;
use crate::{DataFolder, StoreError};

const OUT: Stream = Stream::Stdout;

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 16])
}

struct Place {
    folder: DataFolder,
    root: RootId,
}

impl Place {
    fn new() -> Self {
        let folder = DataFolder::temporary().expect("the system has room for a folder");
        Self { folder, root: RootId::new(run(9)) }
    }

    fn keeper(&self, run: u64, tree: u64) -> OutputKeeper {
        OutputKeeper::new(&self.folder, self.root, OutputBounds { run, tree })
    }

    fn reader(&self) -> OutputReader {
        OutputReader::new(&self.folder, self.root)
    }
}

/// Reads what is new, as text: gaps and ends in brackets.
fn read(reader: &mut OutputReader) -> Vec<(RunId, String)> {
    let mut seen: Vec<(RunId, AttemptId, String)> = Vec::new();
    let told = reader.read::<StoreError>(
        |_| true,
        |said| {
            if seen.last().is_none_or(|last| (last.0, last.1) != (said.run, said.attempt)) {
                seen.push((said.run, said.attempt, String::new()));
            }
            let text = &mut seen.last_mut().expect("one was just added").2;
            match said.what {
                SaidPart::Bytes { bytes, .. } => {
                    text.push_str(&String::from_utf8(bytes).expect("text"))
                }
                SaidPart::Gap(bytes) => text.push_str(&format!("[{bytes}]")),
                SaidPart::End => text.push_str("[end]"),
            }
            Ok(())
        },
    );
    told.expect("the files can be read");
    seen.into_iter().map(|(run, _, text)| (run, text)).collect()
}

/// Waits until a file of the tree is written, which nothing here asks for.
fn wait_for_a_file(place: &Place) {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let folder = place.folder.path().join(OUTPUT).join(place.root.to_string());
    std::fs::create_dir_all(&folder).expect("a folder");
    let changes = inotify::init(CreateFlags::CLOEXEC).expect("a watch");
    inotify::add_watch(&changes, &folder, WatchFlags::CLOSE_WRITE).expect("a watch");
    let mut notice = [std::mem::MaybeUninit::uninit(); 4096];
    rustix::io::read(&changes, &mut notice).expect("a notice");
}

/// Two attempts go on without a word for long, and their supervisor is killed.
#[tokio::test]
async fn what_was_said_is_kept_while_nothing_more_is_said() {
    let place = Place::new();
    let keeper = place.keeper(1 << 20, 1 << 20);
    let quiet = keeper.begin(run(1), now()).expect("it keeps");
    quiet.said(now(), OUT, b"waiting for a lock\n");
    wait_for_a_file(&place);
    let mut reader = place.reader();
    assert_eq!(read(&mut reader), [(run(1), "waiting for a lock\n".to_owned())]);
    // Again, in the same slot, beside another one; one that ends at once has no file.
    let short = keeper.begin(run(2), now()).expect("it keeps");
    short.said(now(), OUT, b"done\n");
    short.end(now());
    quiet.said(now(), OUT, b"still waiting\n");
    wait_for_a_file(&place);
    let seen: HashSet<_> = read(&mut reader).into_iter().collect();
    assert!(seen.contains(&(run(1), "still waiting\n".to_owned())), "{seen:?}");
    quiet.end(now());
    keeper.settle().await;
    let files = std::fs::read_dir(place.folder.path().join(OUTPUT).join(place.root.to_string()));
    assert_eq!(files.expect("the folder").count(), 2, "one of its own, and one for the others");
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_000_000)
}

#[tokio::test]
async fn little_is_kept_in_one_file_of_all_and_told_once() {
    let place = Place::new();
    let keeper = place.keeper(1 << 20, 1 << 30);
    let mut reader = place.reader();
    assert_eq!(read(&mut reader), []);
    for number in 1..=3 {
        let output = keeper.begin(run(number), now()).expect("it is kept");
        output.said(now(), OUT, b"one\n");
        output.said(now(), Stream::Stderr, format!("two {number}\n").as_bytes());
        output.end(now());
        output.said(now(), OUT, b"too late");
    }
    let silent = keeper.begin(run(4), now()).expect("it is kept");
    silent.end(now());
    keeper.settle().await;
    let expected: Vec<_> = (1..=3).map(|n| (run(n), format!("one\ntwo {n}\n[end]"))).collect();
    assert_eq!(read(&mut reader), expected);
    assert_eq!(read(&mut reader), []);
    let folder = place.folder.path().join(OUTPUT).join(place.root.to_string());
    assert_eq!(std::fs::read_dir(folder).expect("the folder cannot be read").count(), 1);
    assert!(place.keeper(0, 1).begin(run(1), now()).is_none());
}

#[tokio::test]
async fn a_follower_hears_all_of_one_that_lives() {
    let place = Place::new();
    let keeper = place.keeper(16 << 20, 1 << 30);
    let output = keeper.begin(run(1), now()).expect("it is kept");
    let (mut reader, mut heard, mut expected) = (place.reader(), String::new(), String::new());
    for line in 0..5000 {
        let text = format!("line {line} {}\n", "x".repeat(line % 200));
        output.said(now(), OUT, text.as_bytes());
        expected.push_str(&text);
        if line % 37 == 0 {
            keeper.settle().await;
            heard.extend(read(&mut reader).into_iter().map(|(_, text)| text));
            assert_eq!(heard, expected);
        }
    }
    output.end(now());
    keeper.settle().await;
    heard.extend(read(&mut reader).into_iter().map(|(_, text)| text));
    assert_eq!(heard, expected.clone() + "[end]");
    assert_eq!(read(&mut place.reader()), [(run(1), expected + "[end]")]);
}

#[tokio::test]
async fn of_much_the_beginning_and_the_end_are_kept_and_the_gap_is_exact() {
    for (bound, lines) in [(4096, 3), (4096, 100), (4096, 5000), (1 << 20, 40_000), (1, 500)] {
        let place = Place::new();
        let keeper = place.keeper(bound, 1 << 30);
        let output = keeper.begin(run(1), now()).expect("it is kept");
        let mut expected = String::new();
        for line in 0..lines {
            let text = format!("line {line} of very many that are all alike\n");
            output.said(now(), OUT, text.as_bytes());
            expected.push_str(&text);
        }
        output.end(now());
        keeper.settle().await;
        let (_, text) = read(&mut place.reader()).remove(0);
        let text = text.strip_suffix("[end]").expect("it has ended");
        match text.split_once('[') {
            None => assert_eq!(text, expected),
            Some((head, rest)) => {
                let (gap, tail) = rest.split_once(']').expect("one gap");
                let gap: usize = gap.parse().expect("a number");
                assert_eq!(head.len() + gap + tail.len(), expected.len(), "{bound} {lines}");
                assert!(expected.starts_with(head) && expected.ends_with(tail));
                assert!(head.len() as u64 >= bound / 4 && tail.len() as u64 >= bound / 8);
                let kept = (head.len() + tail.len()) as u64;
                assert!(kept <= bound.max(2048), "{kept} of {bound}");
            }
        }
    }
}

#[tokio::test]
async fn a_tree_is_bounded_as_a_whole_and_across_supervisors() {
    let place = Place::new();
    let text = "x".repeat(1000);
    for number in 1..=4 {
        let keeper = place.keeper(1 << 20, 2500);
        let output = keeper.begin(run(number), now()).expect("it is kept");
        output.said(now(), OUT, text.as_bytes());
        output.end(now());
        keeper.settle().await;
    }
    let kept: Vec<_> = read(&mut place.reader()).into_iter().map(|(_, text)| text).collect();
    let (whole, cut) = (format!("{text}[end]"), "[1000][end]".to_owned());
    assert_eq!(kept, [whole.clone(), whole, cut.clone(), cut]);
}

#[tokio::test]
async fn what_a_killed_supervisor_did_not_write_is_missing_alone() {
    let place = Place::new();
    let keeper = place.keeper(1 << 20, 1 << 30);
    let output = keeper.begin(run(1), now()).expect("it is kept");
    output.said(now(), OUT, b"written\n");
    keeper.settle().await;
    output.said(now(), OUT, b"not written\n");
    assert_eq!(read(&mut place.reader()), [(run(1), "written\n".to_owned())]);
    // Half an entry, as a full disk leaves it, hides nothing of what another supervisor writes.
    let folder = place.folder.path().join(OUTPUT).join(place.root.to_string());
    std::fs::write(folder.join("small-00000001"), b"OFE1\x10").expect("the folder is ours");
    let next = place.keeper(1 << 20, 1 << 30);
    let output = next.begin(run(2), now()).expect("it is kept");
    output.said(now(), OUT, b"later\n");
    output.end(now());
    next.settle().await;
    let read = read(&mut place.reader());
    let runs: HashSet<RunId> = read.iter().map(|(run, _)| *run).collect();
    assert_eq!(runs, HashSet::from([run(1), run(2)]), "{read:?}");
}

#[test]
fn the_last_words_are_the_last_line_of_either_stream() {
    let place = Place::new();
    let keeper = place.keeper(1 << 20, 1 << 20);
    let last = |said: &[(u64, Stream, &str)]| {
        let output = keeper.begin(run(1), now()).expect("it keeps");
        for (ms, stream, text) in said {
            output.said(Timestamp::from_micros(ms * 1000), *stream, text.as_bytes());
        }
        output.last_words()
    };
    const ERROR: Stream = Stream::Stderr;
    assert_eq!(last(&[]), None);
    assert_eq!(last(&[(0, OUT, " \n\n")]), None);
    assert_eq!(last(&[(0, OUT, "a\nb\n\n")]).as_deref(), Some("b"));
    assert_eq!(last(&[(0, OUT, "a\nhalf of "), (9, OUT, "it")]).as_deref(), Some("half of it"));
    assert_eq!(last(&[(0, ERROR, "10 %\r20 %\r")]).as_deref(), Some("20 %"));
    assert_eq!(last(&[(0, ERROR, "e\n"), (2000, OUT, "o\n")]).as_deref(), Some("o"));
    assert_eq!(last(&[(0, OUT, "o\n"), (2000, ERROR, "e\n")]).as_deref(), Some("e"));
    let both = Some("o; on standard error: e");
    assert_eq!(last(&[(0, OUT, "o\n"), (1, ERROR, "e\n")]).as_deref(), both);
    assert_eq!(last(&[(0, ERROR, "e\n"), (1, OUT, "o\n")]).as_deref(), both);
    assert_eq!(last(&[(0, OUT, &"x".repeat(2000))]).map(|line| line.len()), Some(500));
}
