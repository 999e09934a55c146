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
fn a_full_disk_is_an_honest_outcome() {
    let Some(disk) = Tmpfs::mount(4 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    // The answer alone is larger than the disk.
    let flood = ["map", "--data-dir", folder, "in", "--", "head", "-c", "8388608", "/dev/zero"];
    let outcome = place.run(&flood);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("no space left on device") || outcome.stderr.contains("full"),
        "{}",
        outcome.stderr
    );
    // With space again, the same folder serves on, and tells what happened.
    let spool = fs::read_dir(disk.path().join("data/spool")).expect("it was made");
    assert_eq!(spool.count(), 0, "nothing half-written is left");
    let outcome = place.run(&["map", "--data-dir", folder, "in", "--", "cat"]).expect_code(0);
    assert_eq!(outcome.stdout(), "x\n");
}

#[test]
fn a_disk_that_is_full_from_the_start_runs_nothing() {
    let Some(disk) = Tmpfs::mount(1 << 20) else { return };
    let place = Place::new();
    place.file("in", "x");
    disk.fill();
    let folder = disk.path().join("data");
    let folder = folder.to_str().expect("a plain name");
    let outcome = place.run(&["map", "--data-dir", folder, "in", "--", "cat"]);
    assert!(outcome.code != 0 && outcome.stdout.is_empty(), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: free space there"), "{}", outcome.stderr);
}
