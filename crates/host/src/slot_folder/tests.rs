//! Tests of the slots that trees share.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Account, RunId};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

struct TestTree {
    claims: Box<dyn HostClaims>,
    grants: UnboundedReceiver<HostGrant>,
}

impl TestTree {
    fn open(folder: &SlotFolder, number: u8, max: u32) -> Self {
        Self::of_pool(folder, number, &SlotPool::Host, max)
    }

    fn of_pool(folder: &SlotFolder, number: u8, pool: &SlotPool, max: u32) -> Self {
        let (sender, grants) = unbounded_channel();
        let root = RootId::new(RunId::from_bytes([number; 16]));
        let on_grant = Box::new(move |grant| sender.send(grant).expect("the test listens"));
        let claims = folder.open(root, pool, max, on_grant).expect("the folder can be used");
        Self { claims, grants }
    }

    fn claim(&self, back: u32, wants: u32) {
        self.claims.claim(HostClaim { number: 1, back, debt: 0, wants });
    }

    async fn hears(&mut self, more: u32, due: u32) {
        let heard = tokio::time::timeout(Duration::from_secs(20), self.grants.recv()).await;
        let grant = heard.expect("a grant comes").expect("the folder is open");
        assert_eq!((grant.more, grant.due), (more, due), "{grant:?}");
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

/// Trees that want no more than the one slot: neither claims anything else while its run holds it.
#[tokio::test]
async fn one_slot_goes_to_and_fro() {
    let (_home, folder) = folder();
    let mut trees = [1, 2].map(|number| TestTree::open(&folder, number, 1));
    trees[0].claim(0, 1);
    trees[0].hears(1, 1).await;
    trees[1].claim(0, 1);
    trees[1].hears(0, 1).await;
    trees[0].hears(0, 0).await;
    for turn in 0..4 {
        let [from, to] = [turn % 2, (turn + 1) % 2];
        // Its run has ended, and the next one waits.
        trees[from].claim(1, 1);
        trees[to].hears(1, 1).await;
        trees[from].hears(0, 0).await;
        trees[from].hears(0, 1).await;
        trees[to].hears(0, 0).await;
    }
}

#[tokio::test]
async fn each_account_has_slots_of_its_own() {
    let (home, folder) = folder();
    let of = |credential: &str| {
        let account = Account::of_credential("claude", &[1; 32], credential.as_bytes());
        SlotPool::Account(Arc::new(account))
    };
    let mut one = TestTree::of_pool(&folder, 1, &of("a"), 1);
    let mut other = TestTree::of_pool(&folder, 2, &of("b"), 1);
    let mut second = TestTree::of_pool(&folder, 3, &of("a"), 1);
    one.claim(0, 1);
    one.hears(1, 1).await;
    other.claim(0, 1);
    other.hears(1, 1).await;
    second.claim(0, 1);
    second.hears(0, 1).await;
    drop(one);
    second.hears(1, 1).await;
    let taken = SlotsTaken::of_accounts(Some(home.path())).expect("they can be read");
    let taken = taken.iter().map(|(_, taken)| (taken.max, taken.slots, taken.waiting));
    assert_eq!(taken.collect::<Vec<_>>(), [(1, 1, 0); 2]);
}

#[tokio::test]
async fn a_debt_counts_as_taken() {
    let (_home, folder) = folder();
    let mut one = TestTree::open(&folder, 1, 2);
    let mut two = TestTree::open(&folder, 2, 2);
    one.claim(0, 1);
    one.hears(1, 1).await;
    // Answered, and so written down, before the other one claims.
    one.claims.claim(HostClaim { number: 2, back: 0, debt: 1, wants: 2 });
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
    let root = RootId::new(RunId::from_bytes([1; 16]));
    let on_grant = Box::new(|_| unreachable!("nothing is given"));
    let refused = SlotFolder::of_user(None).open(root, &SlotPool::Host, 1, on_grant).err();
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

#[test]
fn the_folder_of_an_account_has_a_name_that_reveals_no_credential() {
    let account = Account::of_credential("a/b", &[1; 32], b"sk-secret");
    let name = account_name(&account);
    assert!(name.starts_with("a_b-") && !name.contains("secret"), "{name}");
    assert_ne!(name, account_name(&Account::of_credential("a/b", &[1; 32], b"sk-other")));
    assert_ne!(name, account_name(&Account::of_runtime("a/b")));
}

#[tokio::test]
async fn the_slots_of_an_account_are_counted_once_a_full_disk_has_room() {
    let Some(disk) = offshoot_test_support::Disk::of(64 << 10) else { return };
    let folder = SlotFolder::of_user(Some(disk.path()));
    let pool = SlotPool::Account(Arc::new(Account::of_runtime("claude")));
    let ballast = disk.fill();
    let host =
        folder.open(RootId::new(RunId::from_bytes([1; 16])), &SlotPool::Host, 1, Box::new(drop));
    assert!(host.is_err(), "no tree is opened that is not counted");
    let frees = thread::spawn(move || {
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing tells that the first try has failed"
        )]
        thread::sleep(Duration::from_millis(100));
        fs::remove_file(ballast).expect("it is there");
        disk
    });
    let mut tree = TestTree::of_pool(&folder, 1, &pool, 2);
    tree.claim(0, 1);
    tree.hears(1, 1).await;
    drop(frees.join().expect("the disk has room"));
}

#[test]
fn two_accounts_of_one_runtime_have_names_of_their_own() {
    let (home, folder) = folder();
    let of = |runtime: &str, credential: &[u8]| {
        SlotPool::Account(Arc::new(Account::of_credential(runtime, &[1; 32], credential)))
    };
    let pools = [of("claude", b"one"), of("claude", b"other"), of("openai", b"key")];
    let _trees = pools.map(|pool| TestTree::of_pool(&folder, 1, &pool, 3));
    let taken = SlotsTaken::of_accounts(Some(home.path())).expect("the folder can be read");
    let names: Vec<String> = taken.into_iter().map(|(name, _)| name).collect();
    let [one, other, third] = &names[..] else { panic!("{names:?}") };
    assert_eq!(third, "openai", "there is one");
    assert!(one.starts_with("claude (") && other.starts_with("claude ("), "{names:?}");
    assert_ne!(one, other);
}
