//! Values on disk.

use std::os::unix::fs::PermissionsExt;

use offshoot_model::ValueKind;
use offshoot_store::{NewValue, Store};

use crate::sample::OnDisk;

#[tokio::test]
async fn a_value_is_read_only_under_its_hash() {
    let disk = OnDisk::new();
    let value = disk.store.put(NewValue::bytes(ValueKind::Text, *b"hello")).await.unwrap();
    let path = disk.store.path(&value).unwrap();
    let hash = value.hash.to_string();
    assert!(path.ends_with(format!("blobs/{}/{}", &hash[..2], &hash[2..])));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
}

#[tokio::test]
async fn a_copy_of_what_is_on_record_is_one_value_with_it_and_is_taken_in_again_where_it_was_lost()
{
    let disk = OnDisk::new();
    let copy = || disk.store.put_copy(ValueKind::Text, &(*b"said").into()).unwrap();
    let value = copy();
    let path = disk.store.path(&value).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
    // As a power failure may leave it: cut short, with other bytes, or not at all.
    for left in [Some(""), Some("soid"), None] {
        std::fs::remove_file(&path).unwrap();
        if let Some(left) = left {
            std::fs::write(&path, left).unwrap();
        }
        assert_eq!(copy(), value);
        assert_eq!(disk.store.read(&value).unwrap(), b"said", "{left:?}");
    }
    let put = disk.store.put(NewValue::bytes(ValueKind::Text, *b"said")).await.unwrap();
    assert_eq!(put, value);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_value_from_many_sides_at_once() {
    let disk = OnDisk::new();
    let home = tempfile::tempdir().unwrap();
    let puts: Vec<_> = (0..16)
        .map(|at| {
            let path = home.path().join(at.to_string());
            std::fs::write(&path, "the same").unwrap();
            let value = match at % 3 {
                0 => NewValue::bytes(ValueKind::Text, *b"the same"),
                1 => NewValue::file(ValueKind::Text, path),
                _ => NewValue::adopt(ValueKind::Text, path),
            };
            disk.store.put(value)
        })
        .collect();
    for result in futures_util::future::join_all(puts).await {
        assert_eq!(disk.store.read(&result.unwrap()).unwrap(), b"the same");
    }
    // One folder with one file; nothing half-written beside it.
    let blobs = std::fs::read_dir(disk.folder.path().join("blobs")).unwrap();
    assert_eq!(blobs.map(|entry| entry.unwrap().file_name().len()).collect::<Vec<_>>(), [2]);
}
