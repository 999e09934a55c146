//! Inputs of a map that an agent replaces while the tree runs. Each run reads what was cut, or nothing.

use std::fs;
use std::os::unix::fs::symlink;

use crate::command::{Outcome, Place};

/// Runs a map over the two lines of `input`. The piece with the first line replaces the input; the other comes after it.
fn map(place: &Place, input: &str, replace: &str) -> Outcome {
    let outside = tempfile::tempdir().expect("no temporary folder can be made");
    fs::write(outside.path().join("in"), "1\n7\n").expect("the file cannot be written");
    let script = format!("read line; echo got $line; [ $line != 1 ] || {{ {replace}; }}");
    let map = ["map", "--split", "lines:1", "--max-concurrent", "1", input];
    let outside = outside.path().display().to_string();
    place.run(&[&map[..], &["--", "sh", "-ec", &script, "sh", &outside]].concat())
}

#[test]
fn what_replaces_an_input_is_not_read_for_an_agent() {
    let is_link = "became a symbolic link after the input was cut";
    let is_written = "/in was written to while its pieces ran: bytes 2 to 4 are not what was cut";
    let link = |at: &str| format!("/in is not read: PLACE/{at} {is_link}");
    // Of a map of which a piece cannot be read, and of one whose pieces have read several versions.
    let (unread, mixed) = (2, 1);
    let mut wrong = Vec::new();
    for (code, input, replace, why) in [
        (unread, "in", "rm in; ln -s $1/in in", link("in")),
        (unread, "above/in", "mv above aside; ln -s $1 above", link("above")),
        (unread, "a/b/in", "mv a aside; mkdir a; ln -s $1 a/b", link("a/b")),
        (unread, "in", "rm in; mkdir in", "/in is not a regular file".into()),
        (unread, "in", "rm in", "no such file: PLACE/in".into()),
        // The size and the time of its last writing are the same.
        (mixed, "in", r"printf '1\n3\n' > new; touch -r in new; mv new in", is_written.into()),
        (mixed, "in", r"cp -p in was; printf '1\n3\n' > in; touch -r was in", is_written.into()),
        // Opening a pipe waits for its writer.
        (unread, "in", "rm in; mkfifo in", "/in is not a regular file".into()),
    ] {
        let place = Place::new();
        place.file(input, "1\n2\n");
        let outcome = map(&place, input, replace);
        let why = why.replace("PLACE", &place.path().display().to_string());
        let said = format!("{}{}", outcome.stdout(), outcome.stderr);
        if outcome.code != code || said.contains("got 7") || !said.contains(&why) {
            wrong.push(format!("{replace}: {why}\ncode {}\n{said}", outcome.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A context is read more than once: for its kind, and to keep it.
#[test]
fn a_context_is_a_regular_file() {
    let place = Place::new();
    place.run(&["run", "x", "--", "mkfifo", "pipe"]).expect_code(0);
    // Nothing waits for a writer of the pipe.
    for file in ["/dev/stdin", "pipe", "/dev/zero"] {
        let context = format!("c={file}");
        let refused =
            place.feed(&["run", "--context", &context, "x", "--", "true"], "hi").expect_code(2);
        assert!(refused.stderr.contains("it is not a regular file"), "{}", refused.stderr);
    }
}

#[test]
fn a_link_that_the_user_has_named_is_followed_once() {
    let place = Place::new();
    place.file("folder/real", "1\n2\n");
    symlink("folder/real", place.path().join("link")).expect("the link cannot be made");
    let outcome = map(&place, "link", "rm link; ln -s $1/in link").expect_code(0);
    assert_eq!(outcome.stdout(), "got 1\n---\ngot 2\n");
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert!(
        runs.as_array()
            .expect("the answer has no list of runs")
            .iter()
            .any(|run| run["label"] == "link:2"),
        "{runs}"
    );
}

#[test]
fn pieces_whose_file_is_gone_fail_at_once_and_not_by_a_fault_of_their_agent() {
    let place = Place::new();
    place.file("lines", "1\n2\n3\n4\n5\n6\n");
    // A breaker that counted them would hold the last ones back for an hour.
    place.file(
        "slow.toml",
        "[agents.defaults.subagents.breaker]\nfailures = 2\ncooldownSeconds = 3600\n",
    );
    let map = ["map", "--config", "slow.toml", "--max-concurrent", "1", "--split", "lines:1"];
    let script = ["lines", "--", "sh", "-c", "rm -f lines; cat"];
    let outcome = place.run(&[&map[..], &script].concat()).expect_code(2);
    let failed = outcome.stderr.matches("cannot read its input: no such file: ").count();
    assert_eq!(failed, 5, "{}", outcome.text());
}

/// By every way to the program: by PATH, and from the folder itself.
#[test]
fn pieces_whose_working_folder_is_gone_fail_at_once_and_not_by_a_fault_of_their_agent() {
    for program in ["sh", "./sh"] {
        let place = Place::new();
        place.file("lines", "1\n2\n3\n4\n5\n6\n");
        let work = place.file("work/in it", "");
        let work = work.parent().expect("it is in a folder");
        symlink("/bin/sh", work.join("sh")).expect("the folder is new");
        // A breaker that counted them would hold the last ones back for an hour.
        let config = format!(
            "[agents.defaults.subagents.breaker]\nfailures = 2\ncooldownSeconds = 3600\n\
             [[agents.list]]\nid = \"w\"\ncwd = {work:?}\n"
        );
        place.file("gone.toml", config);
        let map = ["map", "--config", "gone.toml", "--agent", "w", "--max-concurrent", "1"];
        let script = ["--split", "lines:1", "lines", "--", program, "-c", "rm -r \"$PWD\"; cat"];
        let outcome = place.run(&[&map[..], &script].concat()).expect_code(2);
        let said = "cannot read its input: the folder that it works in is gone: ";
        assert_eq!(outcome.stderr.matches(said).count(), 5, "{program}: {}", outcome.text());
    }
}
