//! Every split, in files with seams at every place, beside a plain way to cut a text in memory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use offshoot_model::{ContentHash, InputRange};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::{Cut, HeldPiece, InputFile, Piece, Split, SplitError, cut, cut_again, verify};

/// Writes the contents to files of a new folder.
fn files(contents: &[&[u8]]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let path = folder.path().canonicalize().expect("it was made just now");
    let write = |(index, content): (usize, &&[u8])| {
        let path = path.join(format!("file-{index}"));
        fs::write(&path, content).expect("a file in it");
        path
    };
    let paths = contents.iter().enumerate().map(write).collect();
    (folder, paths)
}

/// The bytes of each piece. What holds for every split is asserted on the way.
fn pieces(contents: &[&[u8]], split: Split) -> Result<Vec<Vec<u8>>, SplitError> {
    let (_folder, paths) = files(contents);
    let pieces = cut(&paths, split)?.collect::<Result<Vec<Piece>, _>>()?;
    let mut labels = HashSet::new();
    let mut bytes = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let file = fs::read(&*piece.range.path).expect("it was cut just now");
        let start = piece.range.offset as usize;
        let content = &file[start..start + piece.range.length as usize];
        assert!(!content.is_empty() || split == Split::Files, "{split}: empty piece");
        assert_eq!(piece.range.hash, Some(ContentHash::of(content)), "{split}: {piece:?}");
        assert_eq!(piece.number as usize, index + 1);
        assert!(labels.insert(piece.label.clone()), "{split}: {} twice", piece.label);
        assert!(verify(&piece.range).expect("the value cannot be read"));
        bytes.push(content.to_vec());
    }
    for (path, content) in paths.iter().zip(contents) {
        let of_file = pieces.iter().filter(|piece| *piece.range.path == *path);
        let mut next = 0;
        for piece in of_file {
            assert_eq!(piece.range.offset, next, "{split}: a gap");
            next += piece.range.length;
        }
        let blank = content.iter().all(u8::is_ascii_whitespace);
        let has_units = !(blank && matches!(split, Split::Paragraphs(_) | Split::JsonLines(_)));
        assert_eq!(next, if has_units { content.len() as u64 } else { 0 }, "{split}: not all");
    }
    Ok(bytes)
}

#[track_caller]
fn check(content: &str, split: &str, expected: &[&str]) {
    let split = split.parse().expect(split);
    let pieces = pieces(&[content.as_bytes()], split).expect("the input cannot be cut");
    let pieces: Vec<_> = pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
    assert_eq!(pieces, expected, "{split} of {content:?}");
}

#[test]
fn each_form() {
    check("", "files", &[""]);
    check("a\nb", "files", &["a\nb"]);

    check("", "lines:2", &[]);
    check("a\nb\nc\n", "lines:2", &["a\nb\n", "c\n"]);
    check("a\nb\nc", "lines:1", &["a\n", "b\n", "c"]);
    check("a\r\nb\r\n", "lines:1", &["a\r\n", "b\r\n"]);
    check("\n\n\n", "lines:2", &["\n\n", "\n"]);
    check("a\rb", "lines:1", &["a\rb"]);

    check("", "bytes:3", &[]);
    check("abcdefg", "bytes:3", &["abc", "def", "g"]);
    check("aäbcd", "bytes:2", &["a", "ä", "bc", "d"]);
    check("a€€b", "bytes:1", &["a", "€", "€", "b"]);
    check("𝄞𝄞", "bytes:7", &["𝄞", "𝄞"]);

    check("a\nbb\nccc\n", "bytes:5@lines", &["a\nbb\n", "ccc\n"]);
    check("a\nbbbbbbbb\nc", "bytes:4@lines", &["a\n", "bbbbbbbb\n", "c"]);
    check("abcd\nabc\n", "bytes:5@lines", &["abcd\n", "abc\n"]);
    check("abcd\nabc\n", "bytes:4@lines", &["abcd\n", "abc\n"]);
    check("abcdefgh", "bytes:4@lines", &["abcdefgh"]);

    check("a\nb\n\nc\n", "paragraphs:1", &["a\nb\n\n", "c\n"]);
    check("\n\na\n \t\r\n\n  b\n\nc", "paragraphs:1", &["\n\na\n \t\r\n\n", "  b\n\n", "c"]);
    check("a\n\nb\n\nc\n\n", "paragraphs:2", &["a\n\nb\n\n", "c\n\n"]);
    check("\n \n", "paragraphs:1", &[]);

    check("1\n{\"a\":[]}\n\n\"x\"", "jsonl:1", &["1\n", "{\"a\":[]}\n\n", "\"x\""]);
    check("\n1\r\n2\r\n3\r\n", "jsonl:2", &["\n1\r\n2\r\n", "3\r\n"]);
    check("\n\n", "jsonl:1", &[]);

    check("", "chunks:3", &[]);
    check("abcdef", "chunks:3", &["ab", "cd", "ef"]);
    check("abc", "chunks:5", &["a", "b", "c"]);
    check("aa\nbb\ncc\ndd\n", "chunks:2", &["aa\nbb\n", "cc\ndd\n"]);
    check("a\nbbbbbbbb\nc\n", "chunks:2", &["a\n", "bbbbbbbb\nc\n"]);
    check("a\nbbbbbbbbbbbb", "chunks:3", &["a\n", "bbbbbbbbbbbb"]);
    check("a\nbbbbbbbbbbbb", "chunks:3@bytes", &["a\n", "bbbbbbb", "bbbbb"]);
    check("bbbbbbbbbbbb\na\n", "chunks:4", &["bbbbbbbbbbbb\n", "a\n"]);
    check("bbbbbbbbbbbb\na\n", "chunks:4@bytes", &["bbb", "bbbb", "bbbb", "b\na\n"]);
    check("bbbbbbbbbbbb\n", "chunks:2", &["bbbbbbbbbbbb\n"]);
    check("ääää", "chunks:3", &["ä", "ä", "ää"]);
}

#[test]
fn bytes_that_are_no_text() {
    let invalid = b"\xff\xfe\x80\x80\x80\x80\xc3";
    let cut = |split: &str| {
        let split: Split = split.parse().expect(split);
        pieces(&[invalid], split)
            .expect("the input cannot be cut")
            .iter()
            .map(Vec::len)
            .collect::<Vec<_>>()
    };
    assert_eq!(cut("bytes:3"), [3, 3, 1], "continuation bytes of no character");
    assert_eq!(cut("chunks:2"), [3, 4]);
    for whole in ["files", "lines:1", "bytes:2@lines", "paragraphs:1"] {
        assert_eq!(cut(whole), [7], "{whole}");
    }
    // The start of a character, cut short by the next one.
    let cut_short = pieces(&[b"ab\xe2\x82cd"], "bytes:3".parse().expect("a split"));
    assert_eq!(cut_short.expect("the input cannot be cut"), [b"ab\xe2".as_slice(), b"\x82cd"]);
}

#[test]
fn several_files_share_chunks_and_keep_their_order() {
    let (_folder, paths) = files(&[b"aaaaaa", b"", b"bb", b"cccc"]);
    let cuts = cut(&paths, "chunks:6".parse::<Split>().expect("a split"))
        .expect("the input cannot be cut");
    assert_eq!(cuts.files().len(), 4);
    let labels: Vec<String> = cuts.map(|piece| piece.expect("a piece").label.to_string()).collect();
    let expected = ["file-0:1", "file-0:2", "file-0:3", "file-2:1", "file-3:1", "file-3:2"];
    assert_eq!(labels, expected);

    let more_files_than_chunks = pieces(&[b"a", b"b", b"c"], "chunks:2".parse().expect("a split"));
    assert_eq!(more_files_than_chunks.expect("they can be cut").len(), 3);

    let whole = cut(&paths, Split::Files).expect("the input cannot be cut");
    let labels: Vec<String> =
        whole.map(|piece| piece.expect("a piece").label.to_string()).collect();
    assert_eq!(labels, ["file-0", "file-1", "file-2", "file-3"]);
}

#[test]
fn a_line_that_is_no_json_is_named() {
    let long = format!("[\"{}\", \"ä\"]\n", "x".repeat(100));
    let cases: [(&[u8], u64, usize, &str); 8] = [
        (b"1\n\n{\"a\":}\n", 3, 6, "a value must stand here"),
        (b"1 2\n", 1, 3, "something follows the value"),
        (b"{}\n{", 2, 1, "it ends in the middle of an object"),
        (b"\"\xff\"\n", 1, 2, "not UTF-8"),
        (&[long.as_bytes(), b"[1,,]"].concat(), 2, 4, "a value must stand here"),
        (&[b"[\"".as_slice(), &[b'x'; 100], b"\xff\"]"].concat(), 1, 103, "not UTF-8"),
        (&[b"[".as_slice(), &[b' '; 100], b"1 2]"].concat(), 1, 104, "a `,` or a `]` is missing"),
        (&[b"\"".as_slice(), &[b'x'; 40], b"\xe2\x82\xac\xe2\x82\""].concat(), 1, 45, "not UTF-8"),
    ];
    for (content, line, column, problem) in cases {
        let error = pieces(&[content], "jsonl:5".parse().expect("a split")).expect_err("no JSON");
        let SplitError::NotJson { path, line: at, column: in_line, problem: found } = &error else {
            panic!("{error:?}");
        };
        let shown = String::from_utf8_lossy(content);
        assert_eq!((*at, *in_line, found.as_str()), (line, column, problem), "{shown}");
        assert!(error.to_string().starts_with(&format!("{}:{line}:", path.display())), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn pieces_before_a_bad_record_are_given_and_none_after() {
    let (_folder, paths) = files(&[b"1\n2\nx\n4\n", b"5\n"]);
    let mut cuts =
        cut(&paths, "jsonl:1".parse::<Split>().expect("a split")).expect("the input cannot be cut");
    assert!(matches!(cuts.next(), Some(Ok(_))));
    assert!(matches!(cuts.next(), Some(Ok(_))));
    assert!(matches!(cuts.next(), Some(Err(SplitError::NotJson { line: 3, .. }))));
    assert!(cuts.next().is_none());
}

#[test]
fn inputs_that_are_no_files() {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let open = |path: &Path| cut(&[path.to_owned()], Split::Files).expect_err("no file");

    let missing = open(&folder.path().join("missing"));
    assert!(matches!(missing, SplitError::NotFound { .. }), "{missing:?}");
    assert!(missing.to_string().starts_with("no such file: "), "{missing}");

    let directory = open(folder.path());
    assert!(matches!(directory, SplitError::Directory { .. }), "{directory:?}");

    let device = open(Path::new("/dev/null"));
    assert!(matches!(device, SplitError::NotRegular { .. }), "{device:?}");

    let file = folder.path().join("file");
    fs::write(&file, "x").expect("a file");
    let below = open(&file.join("below"));
    assert!(matches!(below, SplitError::NotFound { .. }), "{below:?}");

    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let socket = open(&socket);
    assert!(matches!(socket, SplitError::NotRegular { .. }), "{socket:?}");
}

#[test]
fn one_bad_input_among_good_ones_is_told_before_any_piece() {
    let (folder, mut paths) = files(&[b"a"]);
    paths.push(folder.path().join("missing"));
    assert!(matches!(cut(&paths, Split::Files), Err(SplitError::NotFound { .. })));
}

#[test]
fn a_system_error_keeps_its_kind() {
    let of = |kind: std::io::ErrorKind| SplitError::from_io(Path::new("x"), kind.into());
    assert!(matches!(of(std::io::ErrorKind::PermissionDenied), SplitError::Permission { .. }));
    assert!(matches!(of(std::io::ErrorKind::IsADirectory), SplitError::Directory { .. }));
    assert!(matches!(of(std::io::ErrorKind::Interrupted), SplitError::Read { .. }));
}

#[test]
fn a_file_that_changes_on_the_way_is_told() {
    let (_folder, paths) = files(&[b"a\nb\nc\n"]);
    let lines: Split = "lines:1".parse().expect("a split");

    let mut grows = cut(&paths, lines).expect("the input cannot be cut");
    assert!(matches!(grows.next(), Some(Ok(_))));
    fs::write(&paths[0], "a\nb\nc\nd\n").expect("the file cannot be written");
    let last = grows.last().expect("a verdict");
    assert!(matches!(last, Err(SplitError::Changed { .. })), "{last:?}");

    let shrinks = cut(&paths, lines).expect("the input cannot be cut");
    fs::write(&paths[0], "").expect("the file cannot be written");
    let last = shrinks.last().expect("a verdict");
    assert!(matches!(last, Err(SplitError::Changed { .. })), "{last:?}");

    fs::write(&paths[0], "a\n").expect("the file cannot be written");
    let mut vanishes = cut(&paths, lines).expect("the input cannot be cut");
    assert!(matches!(vanishes.next(), Some(Ok(_))));
    fs::remove_file(&paths[0]).expect("the file cannot be removed");
    assert!(matches!(vanishes.next(), Some(Err(SplitError::Changed { .. }))));
}

#[test]
fn a_later_change_is_found() {
    let (_folder, paths) = files(&[b"aa\nbb\n"]);
    let mut cuts =
        cut(&paths, "lines:1".parse::<Split>().expect("a split")).expect("the input cannot be cut");
    let file = cuts.files()[0].clone();
    let [first, second] = [(); 2].map(|()| cuts.next().expect("two lines").expect("two pieces"));
    assert!(file.is_unchanged().expect("the file cannot be examined"));

    fs::write(&paths[0], "aa\nbc\nd").expect("the file cannot be written");
    assert!(!file.is_unchanged().expect("the file cannot be examined"));
    assert!(verify(&first.range).expect("the value cannot be read"), "its own bytes are the same");
    assert!(!verify(&second.range).expect("the piece cannot be read"));

    fs::write(&paths[0], "aa\n").expect("the file cannot be written");
    assert!(!verify(&second.range).expect("the piece cannot be read"), "shorter");
    fs::remove_file(&paths[0]).expect("the file cannot be removed");
    assert!(!verify(&first.range).expect("the piece cannot be read"), "gone");
    assert!(!file.is_unchanged().expect("the file cannot be examined"));
}

#[test]
fn a_piece_is_of_the_file_that_was_opened_whatever_takes_its_name() {
    let (folder, paths) = files(&[b"one\ntwo\n", b"ONE\nTWO\n"]);
    let cuts = cut(&paths[..1], "lines:1".parse::<Split>().expect("a split"))
        .expect("the input cannot be cut");
    let ranges: Vec<_> = cuts.map(|piece| piece.expect("a piece").range).collect();
    let held =
        HeldPiece::open(ranges[1].clone(), folder.path()).expect("the piece cannot be opened");
    let read = || {
        let InputRange { path, offset, length, .. } = held.range();
        let bytes = fs::read(&*path).expect("it is held open");
        bytes[offset as usize..][..length as usize].to_vec()
    };
    fs::remove_file(&paths[0]).expect("the file cannot be removed");
    symlink(&paths[1], &paths[0]).expect("the link cannot be made");
    assert_eq!(read(), b"two\n");
    let error = HeldPiece::open(ranges[1].clone(), folder.path()).expect_err("a link");
    assert!(matches!(error, SplitError::Link { .. }), "{error:?}");
    assert!(verify(&ranges[1]).is_err(), "it is not read either");
    drop(folder);
    assert_eq!(read(), b"two\n", "it is gone, and still open");
}

/// The bytes that the worker of each piece reads, with a header of so many lines.
fn with_header(contents: &[&[u8]], split: &str, header_lines: u64) -> Vec<Vec<u8>> {
    let (folder, paths) = files(contents);
    let split = split.parse().expect(split);
    let read = |piece: Result<Piece, SplitError>| {
        let range = piece.expect("the input can be cut").range;
        assert!(verify(&range).expect("the piece can be read"), "{range:?}");
        let held = HeldPiece::open(range.clone(), folder.path()).expect("the piece can be opened");
        let InputRange { path, offset, length, header, hash } = held.range();
        let bytes = fs::read(&*path).expect("it is held open")[offset as usize..].to_vec();
        let bytes = bytes[..length as usize].to_vec();
        assert_eq!((header, hash), (0, Some(ContentHash::of(&bytes))));
        assert_eq!(range.size(), length);
        bytes
    };
    let again: Vec<_> = cut(&paths, Split::Files).expect("the input").files().to_vec();
    let cut_of = Cut { split, header_lines };
    let pieces: Vec<_> = cut(&paths, cut_of).expect("the input").map(read).collect();
    let second: Vec<_> = cut_again(&again, cut_of).expect("the input").map(read).collect();
    assert_eq!(pieces, second, "cut again it is the same");
    pieces
}

#[test]
fn a_header_is_repeated_in_every_piece() {
    #[track_caller]
    fn check(contents: &[&str], split: &str, lines: u64, expected: &[&str]) {
        let contents: Vec<_> = contents.iter().map(|content| content.as_bytes()).collect();
        let pieces = with_header(&contents, split, lines);
        let pieces: Vec<_> = pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
        assert_eq!(pieces, expected, "{split}, {lines} of {contents:?}");
    }
    let table = "n,m\n1,a\n2,b\n3,c\n";
    check(&[table], "lines:2", 1, &["n,m\n1,a\n2,b\n", "n,m\n3,c\n"]);
    check(&[table], "lines:1", 2, &["n,m\n1,a\n2,b\n", "n,m\n1,a\n3,c\n"]);
    check(&[table], "chunks:3", 1, &["n,m\n1,a\n", "n,m\n2,b\n", "n,m\n3,c\n"]);
    check(&[table], "bytes:8@lines", 1, &["n,m\n1,a\n2,b\n", "n,m\n3,c\n"]);
    check(&[table], "files", 1, &[table]);
    check(&[table, "x\n9\n"], "lines:3", 1, &[table, "x\n9\n"]);
    // Nothing but a header is no piece.
    for bare in ["n,m\n", "n,m", ""] {
        check(&[bare], "chunks:2", 1, &[]);
        check(&[bare], "lines:1", 1, &[]);
    }
    check(&["{}\n{\"a\":1}\n\n[]\n"], "jsonl:1", 1, &["{}\n{\"a\":1}\n\n", "{}\n[]\n"]);
    // A header that is longer than a block.
    let long = "name,".repeat(20) + "\n";
    check(&[&(long.clone() + "1\n2\n")], "lines:1", 1, &[&(long.clone() + "1\n"), &(long + "2\n")]);
}

#[test]
fn a_header_that_was_changed_changes_its_pieces() {
    let (folder, paths) = files(&[b"n\n1\n2\n"]);
    let cut_of = Cut { split: "lines:1".parse().expect("a split"), header_lines: 1 };
    let pieces = cut(&paths, cut_of).expect("the input").map(|piece| piece.expect("a piece").range);
    let ranges: Vec<_> = pieces.collect();
    fs::write(&paths[0], "m\n1\n2\n").expect("the file can be written");
    assert!(!verify(&ranges[1]).expect("the piece can be read"));
    fs::write(&paths[0], "n").expect("the file can be written");
    let error = HeldPiece::open(ranges[0].clone(), folder.path()).expect_err("too short");
    assert!(matches!(error, SplitError::Shorter { .. }), "{error:?}");
}

#[test]
fn a_piece_that_cannot_be_put_together_says_where() {
    let (folder, paths) = files(&[b"n\n1\n2\n"]);
    let cut_of = Cut { split: "lines:1".parse().expect("a split"), header_lines: 1 };
    let mut pieces = cut(&paths, cut_of).expect("the input can be cut");
    let range = pieces.nth(1).expect("a piece").expect("a piece").range;
    let gone = folder.path().join("gone");
    let error = HeldPiece::open(range, &gone).expect_err("there is no such folder");
    assert!(matches!(&error, SplitError::Spool { folder, .. } if *folder == gone), "{error:?}");
}

#[test]
fn a_file_that_has_become_shorter_is_named() {
    let (folder, paths) = files(&[b"one\ntwo\n"]);
    let mut cuts = cut(&paths, Split::Files).expect("the input cannot be cut");
    let range = cuts.next().expect("a piece").expect("a piece").range;
    fs::write(&paths[0], "one\n").expect("the file cannot be written");
    let error = HeldPiece::open(range, folder.path()).expect_err("too short");
    assert!(matches!(error, SplitError::Shorter { .. }), "{error:?}");
}

#[test]
fn links_are_followed_when_a_file_is_looked_at_first() {
    let (folder, paths) = files(&[b"one\n", b"two\n"]);
    let link = folder.path().join("link");
    symlink(&paths[0], &link).expect("the link cannot be made");
    let mut cuts = cut([&link], Split::Files).expect("the input cannot be cut");
    let piece = cuts.next().expect("a piece").expect("a piece");
    assert_eq!((&*piece.label, &*piece.range.path), ("link", &paths[0]));
    let looked_at = cuts.files()[0].clone();
    assert_eq!(*looked_at.path, link);

    fs::remove_file(&link).expect("the file cannot be removed");
    symlink(&paths[1], &link).expect("the link cannot be made");
    let again = cut_again(std::slice::from_ref(&looked_at), Split::Files)
        .expect("the input cannot be cut again");
    assert_eq!(again.files()[0].resolved(), looked_at.resolved());
    // In the record of an earlier version the path that was asked for is all there is.
    let mut record = serde_json::to_value(looked_at).expect("plain data does not serialise");
    record.as_object_mut().expect("an object").remove("resolved").expect("it is recorded");
    let earlier: InputFile = serde_json::from_value(record).expect("the JSON has another form");
    let again = cut_again(&[earlier], Split::Files).expect("the input cannot be cut again");
    assert_eq!(**again.files()[0].resolved(), paths[1]);
}

/// Text with short and long lines, blank ones and characters of every length.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zäß€𝄞 ]{0,12}",
        1 => "[a-z€]{30,90}",
        3 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("\n \t\n".to_owned()),
    ];
    proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

fn parse(form: &str, n: u64) -> Split {
    form.replace('N', &n.to_string()).parse().expect(form)
}

fn utf8(pieces: &[Vec<u8>]) -> Vec<&str> {
    pieces.iter().map(|piece| str::from_utf8(piece).expect("no character is broken")).collect()
}

fn lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_cut_by_every_split(
        first in proptest::collection::vec(any::<u8>(), 0..200),
        second in text(),
        n in 1u64..40,
    ) {
        for form in ["files", "lines:N", "chunks:N", "chunks:N@bytes", "bytes:N", "bytes:N@lines", "paragraphs:N"] {
            pieces(&[&first, second.as_bytes()], parse(form, n)).expect("the input cannot be cut");
        }
    }

    #[test]
    fn lines_and_paragraphs_are_as_many_as_asked(text in text(), n in 1u64..6) {
        let of_lines = pieces(&[text.as_bytes()], parse("lines:N", n)).expect("the input cannot be cut");
        let expected = lines(&text).div_ceil(n as usize);
        prop_assert_eq!(of_lines.len(), expected);
        for piece in of_lines.iter().rev().skip(1) {
            prop_assert_eq!(memchr::memchr_iter(b'\n', piece).count() as u64, n);
        }

        let paragraphs = |text: &str| {
            let blank = |line: &str| line.trim_ascii().is_empty();
            let lines: Vec<bool> = text.split_inclusive('\n').map(blank).collect();
            (0..lines.len()).filter(|at| !lines[*at] && (*at == 0 || lines[at - 1])).count()
        };
        let of_paragraphs =
            pieces(&[text.as_bytes()], parse("paragraphs:N", n)).expect("the input cannot be cut");
        let counts: Vec<usize> = utf8(&of_paragraphs).into_iter().map(paragraphs).collect();
        prop_assert_eq!(counts.iter().sum::<usize>(), paragraphs(&text));
        prop_assert!(counts.iter().rev().skip(1).all(|count| *count as u64 == n), "{:?}", counts);
    }

    #[test]
    fn bytes_never_break_a_character_nor_waste_room(text in text(), n in 1u64..40) {
        let pieces = pieces(&[text.as_bytes()], parse("bytes:N", n)).expect("the input cannot be cut");
        let pieces = utf8(&pieces);
        for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
            let size = piece.len() as u64;
            prop_assert!(size <= n || piece.chars().count() == 1);
            if let Some(first) = next.and_then(|next| next.chars().next()) {
                prop_assert!(size + first.len_utf8() as u64 > n, "room was left");
            }
        }
    }

    #[test]
    fn whole_lines_never_break_a_line_nor_waste_room(text in text(), n in 1u64..80) {
        let pieces = pieces(&[text.as_bytes()], parse("bytes:N@lines", n)).expect("the input cannot be cut");
        let pieces = utf8(&pieces);
        for (piece, next) in pieces.iter().zip(pieces.iter().skip(1).map(Some).chain([None])) {
            let size = piece.len() as u64;
            prop_assert!(size <= n || lines(piece) == 1);
            if let Some(line) = next.and_then(|next| next.split_inclusive('\n').next()) {
                prop_assert!(piece.ends_with('\n'));
                prop_assert!(size + line.len() as u64 > n, "room was left");
            }
        }
    }

    #[test]
    fn chunks_are_as_many_as_asked(text in "[a-z\n]{0,200}", n in 1u64..40) {
        let pieces = pieces(&[text.as_bytes()], parse("chunks:N@bytes", n)).expect("the input cannot be cut");
        prop_assert_eq!(pieces.len(), text.len().min(n as usize));
    }

    #[test]
    fn chunks_break_no_line_where_there_are_several(text in "[a-z\n]{0,200}", n in 1u64..40) {
        let pieces = pieces(&[text.as_bytes()], parse("chunks:N", n)).expect("the input cannot be cut");
        prop_assert!(pieces.len() as u64 <= n);
        if text.contains('\n') {
            let (_, before) = pieces.split_last().expect("it is not empty");
            prop_assert!(before.iter().all(|piece| piece.ends_with(b"\n")), "{pieces:?}");
        } else {
            prop_assert_eq!(pieces.len(), text.len().min(n as usize));
        }
    }

    #[test]
    fn chunks_never_break_a_character(text in text(), n in 1u64..40) {
        let pieces = pieces(&[text.as_bytes()], parse("chunks:N", n)).expect("the input cannot be cut");
        prop_assert!(utf8(&pieces).len() as u64 <= n);
    }

    #[test]
    fn records_stay_whole(
        records in proptest::collection::vec((text(), "[\n\r ]{0,3}"), 0..20),
        end_of_last in any::<bool>(),
        n in 1u64..6,
    ) {
        let mut content = String::new();
        for (text, blank) in &records {
            content.push_str(&serde_json::to_string(text).expect("a string is JSON"));
            content.push('\n');
            content.push_str(blank);
            content.push('\n');
        }
        if end_of_last {
            content.push_str("[1]");
        }
        let pieces = pieces(&[content.as_bytes()], parse("jsonl:N", n)).expect("the input cannot be cut");
        let counts: Vec<usize> = utf8(&pieces)
            .into_iter()
            .map(|piece| {
                let records = piece.split('\n').filter(|line| !line.trim_ascii().is_empty());
                records.filter(|r| serde_json::from_str::<serde_json::Value>(r).is_ok()).count()
            })
            .collect();
        prop_assert_eq!(counts.iter().sum::<usize>(), records.len() + usize::from(end_of_last));
        prop_assert!(counts.iter().rev().skip(1).all(|count| *count as u64 == n), "{:?}", counts);
    }
}
