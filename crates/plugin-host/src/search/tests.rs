use std::os::unix::fs::PermissionsExt;

use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("no temporary folder can be made"))
    }

    fn place(&self, name: &str, origin: PlaceOrigin) -> Place {
        Place { folder: self.0.path().join(name), origin }
    }

    /// A plugin whose library is this file.
    fn plugin(&self, place: &str, name: &str, library: &[u8]) -> PathBuf {
        let folder = self.0.path().join(place).join(name);
        fs::create_dir_all(&folder).expect("the folder cannot be made");
        let target = target();
        let text = format!(
            "name = \"{name}\"\nversion = \"1.0.0\"\nabi = \"1.0\"\nruntimes = [\"{name}\"]\n\
             merges = [\"merge-{name}\"]\n[files.{target}]\npath = \"lib.so\"\n"
        );
        fs::write(folder.join(PACKAGE_FILE), text).expect("the file cannot be written");
        fs::write(folder.join("lib.so"), library).expect("the file cannot be written");
        for path in [&folder, &folder.join(PACKAGE_FILE), &folder.join("lib.so")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
                .expect("the mode cannot be set");
        }
        folder
    }
}

/// A library that will do: that of this very test, which the loader would take too.
fn some_library() -> Vec<u8> {
    let program = std::env::current_exe().expect("a test has a file");
    fs::read(program).expect("it can be read")
}

#[test]
fn the_first_name_wins_and_the_others_are_shown() {
    let folder = Folder::new();
    folder.plugin("a", "one", b"");
    folder.plugin("b", "one", b"");
    folder.plugin("b", "two", b"");
    let search = Search::new(vec![
        folder.place("nowhere", PlaceOrigin::Config),
        folder.place("a", PlaceOrigin::Flag),
        folder.place("b", PlaceOrigin::User),
        folder.place("b/two", PlaceOrigin::System),
    ]);
    let all = search.all().expect("all can be read");
    let seen: Vec<_> = all
        .iter()
        .map(|found| (found.name.as_str(), found.origin, found.shadowed_by.is_some()))
        .collect();
    assert_eq!(
        seen,
        [
            ("one", PlaceOrigin::Flag, false),
            ("one", PlaceOrigin::User, true),
            ("two", PlaceOrigin::User, false)
        ]
    );
    assert_eq!(
        search.runtime("one").expect("the plugin has no such runtime").origin,
        PlaceOrigin::Flag
    );
    assert_eq!(search.merge("merge-two").expect("the plugin has no such merge").name, "two");
    let error = search.runtime("three").expect_err("there is none");
    assert_eq!(error.to_string(), "there is no runtime `three` among the plugins here");
    assert!(error.hint().expect("it helps").starts_with("there are one, two; looked in "));
}

#[test]
fn a_broken_package_is_named_when_it_is_meant() {
    let folder = Folder::new();
    let broken = folder.plugin("a", "one", b"");
    fs::write(broken.join(PACKAGE_FILE), "name = 1").expect("the file cannot be written");
    let search = Search::new(vec![folder.place("a", PlaceOrigin::Flag)]);
    let error = search.runtime("one").expect_err("it is broken");
    assert!(error.to_string().contains("plugin.toml:1:8: name: found 1"), "{error}");
    let error = search.runtime("two").expect_err("there is none");
    assert!(matches!(error, PluginError::NotFound { .. }), "{error}");
}

#[test]
fn a_folder_has_the_name_of_its_plugin() {
    let folder = Folder::new();
    let old = folder.plugin("a", "one", b"");
    let new = old.with_file_name("two");
    fs::rename(old, &new).expect("the file cannot be renamed");
    let error = Candidate::read(new, PlaceOrigin::User).check(None).expect_err("not the same");
    assert!(error.to_string().contains("the plugin is called `one`"), "{error}");
}

#[test]
fn a_project_is_asked_for_trust_and_what_was_trusted_may_not_change() {
    let folder = Folder::new();
    let library = some_library();
    let path = folder.plugin("a", "one", &library);
    let candidate = |origin| Candidate::read(path.clone(), origin);
    candidate(PlaceOrigin::User).check(None).expect("the user's own needs no more");
    let error = candidate(PlaceOrigin::Project).check(None).expect_err("it was not trusted");
    assert!(matches!(error, PluginError::NotTrusted { .. }), "{error}");
    let examined = candidate(PlaceOrigin::Project).examine().expect("it is whole");
    let digest = examined.digest();
    candidate(PlaceOrigin::Project).check(Some(digest)).expect("it is trusted");

    let mut other = library;
    other.push(0);
    fs::write(path.join("lib.so"), other).expect("the file cannot be written");
    for origin in [PlaceOrigin::Project, PlaceOrigin::User] {
        let error = candidate(origin).check(Some(digest)).expect_err("it has changed");
        assert!(matches!(error, PluginError::Changed { .. }), "{error}");
    }
}

#[test]
fn a_package_may_say_what_its_library_is() {
    let folder = Folder::new();
    let path = folder.plugin("a", "one", &some_library());
    let package = path.join(PACKAGE_FILE);
    let text = fs::read_to_string(&package).expect("the file cannot be read");
    let wrong = ContentHash::of(b"something else");
    fs::write(&package, format!("{text}digest = \"{wrong}\"\n"))
        .expect("the file cannot be written");
    let error = Candidate::read(path, PlaceOrigin::User).check(None).expect_err("it differs");
    assert!(error.to_string().contains("is not what its plugin.toml says"), "{error}");
}

#[test]
fn files_that_cannot_be_it_are_named() {
    let folder = Folder::new();
    let check = |name: &str, library: Option<&[u8]>, expected: &str| {
        let path = folder.plugin("a", name, library.unwrap_or_default());
        if library.is_none() {
            fs::remove_file(path.join("lib.so")).expect("it was there");
        }
        let error = Candidate::read(path, PlaceOrigin::User).check(None).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some(), "{error}");
    };
    check("missing", None, "there is no file ");
    check("text", Some(b"no library at all\n"), "is a text file, not a library");
    check("empty", Some(b""), "is an empty file, not a library");
    let mut other = some_library();
    let machine = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    other[18] = machine;
    check("machine", Some(&other), " (64 bits), this machine is ");
    let half = &some_library()[..10_000];
    check("half", Some(half), "is cut short");
}
