//! Answers of many megabytes in files: the kernel copies their values, and the copies are verified.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::process::Output;

use offshoot_test_support::Disk;

use crate::command::Place;

/// Each line of the input is a size and a letter; the agent answers with so many of that letter.
const INPUT: &str = "9000000 a\n7 b\n300000 c\n";
const AGENT: &str = "read size letter; head -c $size /dev/zero | tr '\\0' $letter";

/// The answer of `map`, with the newline behind it.
fn answer() -> Vec<u8> {
    let pieces =
        [("a", 9_000_000), ("b", 7), ("c", 300_000)].map(|(letter, size)| letter.repeat(size));
    format!("{}\n", pieces.join("\n---\n")).into_bytes()
}

/// Runs `map` over the input, with this file as its standard output.
fn map(place: &Place, agent: &str, more: &[&str], out: File) -> Output {
    let words = ["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c", agent];
    let words: Vec<&str> = words[..2].iter().chain(more).chain(&words[2..]).copied().collect();
    let mut command = place.command(&words);
    command.stdout(out).output().expect("the program was built for this test")
}

#[test]
fn a_large_answer_is_whole_wherever_it_begins_in_a_file() {
    let place = Place::new();
    place.file("in", INPUT);
    let expected = answer();
    let whole = |said: &Output| said.status.success() && said.stderr.is_empty();
    let piped = place.run(&["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c", AGENT]);
    assert!(piped.expect_code(0).stdout().as_bytes() == expected, "a pipe");

    let path = place.path().join("out");
    let said = map(&place, AGENT, &[], File::create(&path).expect("a file"));
    assert!(
        whole(&said) && fs::read(&path).expect("the file cannot be read") == expected,
        "{said:?}"
    );

    // Behind what was there before, as by `>>`.
    fs::write(&path, "before\n").expect("the file cannot be written");
    let append = OpenOptions::new().append(true).open(&path).expect("a file");
    let said = map(&place, AGENT, &[], append);
    let found = fs::read(&path).expect("the file cannot be read");
    assert!(whole(&said) && found == [b"before\n", &*expected].concat(), "{said:?}");

    // In the middle of a file that is longer, and empty but for its ends.
    let (at, length) = (5 << 20, 20 << 20);
    let mut middle = File::create(&path).expect("a file");
    middle.set_len(length).expect("a hole takes no room");
    middle.seek(SeekFrom::Start(at)).expect("a file");
    let said = map(&place, AGENT, &[], middle);
    let mut around = vec![0; length as usize];
    around[at as usize..][..expected.len()].copy_from_slice(&expected);
    assert!(
        whole(&said) && fs::read(&path).expect("the file cannot be read") == around,
        "{said:?}"
    );
}

#[test]
fn a_large_answer_for_which_a_disk_has_no_room_is_an_error_and_is_kept() {
    let Some(disk) = Disk::of(4 << 20) else { return };
    let place = Place::new();
    place.file("in", INPUT);
    let path = disk.path().join("out");
    let said = map(&place, AGENT, &[], File::create(&path).expect("a file"));
    let error = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot write the result") && error.contains("no space"), "{error}");
    let root = place.run(&["list", "--json"]).json()[0]["runId"].clone();
    let show = ["show", root.as_str().expect("the run has no id"), "--answer"];
    assert!(place.run(&show).expect_code(0).stdout().as_bytes() == answer());
}

#[test]
fn of_a_large_answer_with_a_damaged_part_nothing_wrong_stays_in_a_file() {
    // The last piece begins when the others have ended, and changes the largest of their results.
    let agent = r#"read size letter
        if [ $letter = c ]; then
          for value in .offshoot/blobs/*/*; do
            if [ $(wc -c < $value) = 9000000 ]; then
              cp $value value
              printf X | dd of=value bs=1 seek=5000000 conv=notrunc status=none
              mv -f value $value
            fi
          done
        fi
        head -c $size /dev/zero | tr '\0' $letter"#;
    for begins in ["", "before\n"] {
        let place = Place::new();
        place.file("in", INPUT);
        let path = place.file("out", begins);
        let append = OpenOptions::new().append(!begins.is_empty()).write(true).open(&path);
        let one = ["--max-concurrent", "1"];
        let said = map(&place, agent, &one, append.expect("a file"));
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{error}");
        assert!(error.contains("has been changed"), "{error}");
        let found = fs::read(&path).expect("the file cannot be read");
        let wanted = [begins.as_bytes(), &answer()].concat();
        assert!(wanted.starts_with(&found) && found.len() <= 5_000_000 + begins.len());
    }
}
