//! What is installed is what is pinned.

#[test]
fn the_pinned_version_is_installed() {
    let name = "the_pinned_version_is_installed";
    let Some(clients) = offshoot_real_clients::install(name) else { return };
    #[expect(clippy::disallowed_methods, reason = "asking for a version starts no agent")]
    let output = std::process::Command::new(clients.claude())
        .arg("--version")
        .env("HOME", clients.folder())
        .output()
        .expect("it is installed");
    let version = String::from_utf8_lossy(&output.stdout);
    let pinned = include_str!("../package.json").contains(version.split(' ').next().unwrap_or("?"));
    assert!(pinned, "{version}");
}
