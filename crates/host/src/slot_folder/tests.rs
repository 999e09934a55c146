//! Tests of the slots that trees share.

use std::time::Duration;

use offshoot_model::RunId;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

struct TestTree {
    claims: Box<dyn HostClaims>,
    grants: UnboundedReceiver<HostGrant>,
}

impl TestTree {
    fn open(folder: &SlotFolder, number: u8, max: u32) -> Self {
        let (sender, grants) = unbounded_channel();
        let root = RootId::new(RunId::from_bytes([number; 16]));
        let claims = folder.open(root, max, sender).expect("the folder can be used");
        Self { claims, grants }
    }

    fn claim(&self, back: u32, wants: u32) {
        self.claims.claim(HostClaim { back, debt: 0, wants });
    }

    async fn hears(&mut self, more: u32, due: u32) {
        assert_eq!(self.grants.recv().await, Some(HostGrant { more, due }));
    }
}

fn folder() -> (tempfile::TempDir, SlotFolder) {
    let home = tempfile::tempdir().expect("a folder");
    let folder = SlotFolder::of_user(Some(home.path()));
    (home, folder)
}

#[tokio::test]
async fn two_trees_share_what_one_had() {
    let (_home, folder) = folder();
    let mut one = TestTree::open(&folder, 1, 4);
    let mut two = TestTree::open(&folder, 2, 4);
    one.claim(0, 9);
    one.hears(4, 4).await;
    two.claim(0, 9);
    two.hears(0, 2).await;
    one.hears(0, 2).await;
    one.claim(1, 9);
    two.hears(1, 2).await;
    one.hears(0, 2).await;
    one.claim(1, 9);
    two.hears(1, 2).await;
    one.hears(0, 2).await;
    // The end of a tree leaves all to the other.
    drop(two);
    one.hears(2, 4).await;
}

#[tokio::test]
async fn a_debt_counts_as_taken() {
    let (_home, folder) = folder();
    let mut one = TestTree::open(&folder, 1, 2);
    let mut two = TestTree::open(&folder, 2, 2);
    one.claim(0, 1);
    one.hears(1, 1).await;
    // Answered, and so written down, before the other one claims.
    one.claims.claim(HostClaim { back: 0, debt: 1, wants: 2 });
    one.hears(0, 2).await;
    two.claim(0, 1);
    two.hears(0, 1).await;
    one.claim(0, 1);
    two.hears(1, 1).await;
}

#[tokio::test]
async fn what_a_supervisor_that_was_killed_has_left_counts_for_nothing() {
    let (home, folder) = folder();
    let mut one = TestTree::open(&folder, 1, 2);
    let left = home.path().join(FOLDER).join("left.claim");
    let live = Written { max: 2, holds: 2, debt: 0, wants: 2, turn: 1 };
    // As of a process that ends: its file is closed, and nothing else is done.
    let file = File::create(&left).expect("a file");
    file.lock().expect("a lock");
    live.write(&file).expect("it can be written");
    one.claim(0, 2);
    one.hears(0, 1).await;
    drop(file);
    one.hears(2, 2).await;
    assert!(!left.exists(), "it is removed");
}

#[tokio::test]
async fn a_claim_is_answered_once_a_fault_is_over() {
    let (home, folder) = folder();
    let mut one = TestTree::open(&folder, 1, 2);
    // A claim that cannot be read, and of which no other process hears when it goes.
    let circle = home.path().join(FOLDER).join("circle.claim");
    std::os::unix::fs::symlink(&circle, &circle).expect("a link");
    one.claim(0, 2);
    let early = tokio::time::timeout(Duration::from_millis(100), one.grants.recv()).await;
    assert_eq!(early.ok(), None, "what others hold is not known");
    fs::remove_file(&circle).expect("it is there");
    one.hears(2, 2).await;
}

#[test]
fn without_a_folder_no_tree_is_opened() {
    let (sender, _grants) = unbounded_channel();
    let root = RootId::new(RunId::from_bytes([1; 16]));
    let refused = SlotFolder::of_user(None).open(root, 1, sender).err();
    assert!(refused.is_some_and(|error| error.to_string().contains("home folder")));
}

#[tokio::test]
async fn a_slot_that_is_given_back_goes_to_the_tree_that_has_waited_for_it() {
    let (_home, folder) = folder();
    let mut trees = [1, 2, 3].map(|number| TestTree::open(&folder, number, 2));
    for tree in &mut trees[..2] {
        tree.claim(0, 1);
        tree.hears(1, 1).await;
    }
    let [one, _, third] = &mut trees;
    third.claim(0, 1);
    third.hears(0, 1).await;
    // It wants it again at once, and does not take it before the one that waits.
    one.claim(1, 1);
    third.hears(1, 1).await;
}
