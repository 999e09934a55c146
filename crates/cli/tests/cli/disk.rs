//! Data folders that cannot be used.

use std::fs;

use crate::command::{Place, check};
use crate::tmpfs::Tmpfs;

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = Place::new();
    place.file("in", "x");
    let map = |folder: &str| place.run(&["map", "--data-dir", folder, "in", "--", "cat"]);
    check("disk_file", &map("in"));
    check("disk_below_a_file", &map("in/data"));
}

#[test]
fn a_folder_that_is_read_only_is_named() {
    let Some(disk) = Tmpfs::mount(1 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    disk.make_read_only();
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let outcome = place.run(&["map", "--data-dir", folder, "in", "--", "cat"]).expect_code(2);
    let message = outcome.stderr.replace(disk.path().to_str().expect("a plain name"), "DISK");
    insta::assert_snapshot!("disk_read_only", message);
}

#[test]
fn a_full_disk_is_an_honest_outcome_and_no_lasting_one() {
    let Some(disk) = Tmpfs::mount(8 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let map = || place.run(&["-q", "map", "--data-dir", folder, "in", "--", "cat"]);
    assert_eq!(map().expect_code(0).stdout(), "x\n");
    let ballast = disk.fill();
    let full = map();
    assert!(full.code != 0 && full.stdout.is_empty(), "{}", full.text());
    assert!(full.stderr.contains("hint: free space there"), "{}", full.stderr);
    fs::remove_file(ballast).expect("it is ours");
    assert_eq!(map().expect_code(0).stdout(), "x\n");
}

#[test]
fn an_answer_larger_than_the_disk_is_a_failure() {
    let Some(disk) = Tmpfs::mount(4 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let agent = ["--", "head", "-c", "8388608", "/dev/zero"];
    let outcome = place.run(&[&["-q", "map", "--data-dir", folder, "in"][..], &agent].concat());
    assert!(outcome.code == 1 && outcome.stdout.is_empty(), "{}", outcome.text());
    assert!(outcome.stderr.contains("hint: free space"), "{}", outcome.stderr);
}
