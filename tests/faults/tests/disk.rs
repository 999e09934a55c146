//! A disk on which so much is left and no more, for every page of it.

mod power;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use offshoot_faults::{Points, append_all, check_record};
use offshoot_store::{DataFolder, SqliteStore};
use offshoot_test_support::Disk;

const PAGE: u64 = 4096;

/// Pages that the record of the scenario takes at its largest, with its log and its index.
const PAGES: u64 = 48;

/// Fills the disk and then leaves so many pages.
fn leave(pages: u64, ballast: &Path) {
    let mut file = File::create(ballast).expect("a name still fits");
    let page = vec![1; PAGE as usize];
    let written = (0_u64..).take_while(|_| file.write_all(&page).is_ok()).count() as u64;
    let full = file.metadata().expect("the file cannot be examined").len().min(written * PAGE);
    file.set_len(full.saturating_sub(pages * PAGE)).expect("a file can be cut");
}

#[test]
fn a_disk_that_is_full_loses_nothing_that_was_told() {
    let mut points = Points::of("a disk with n pages left");
    let mut noticed = 0;
    for pages in (0..PAGES).filter(|pages| Points::wants(*pages, PAGES, 16)) {
        let Some(disk) = Disk::of(2 << 20) else { return };
        points.try_one(|| {
            let folder = DataFolder::open(disk.path().join("data"))
                .expect("the data folder cannot be opened");
            let store = SqliteStore::open(&folder).expect("the record cannot be opened");
            let ballast = disk.path().join("ballast");
            leave(pages, &ballast);
            let (told, error) = append_all(&store);
            if let Some(error) = error {
                noticed += 1;
                let text = error.to_string();
                assert!(error.is_full() || text.contains("cannot follow"), "{pages}: {error:?}");
            }
            std::fs::remove_file(ballast).expect("the file cannot be removed");
            // The same store goes on, and a new one reads the same.
            check_record(&store, &told);
            drop(store);
            check_record(&SqliteStore::open(&folder).expect("the record cannot be opened"), &told);
        });
    }
    points.report();
    assert!(noticed > 0, "it was never full");
}
