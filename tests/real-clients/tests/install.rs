//! What is installed is what is pinned.

#[test]
fn the_pinned_versions_are_installed() {
    let name = "the_pinned_versions_are_installed";
    let Some(clients) = offshoot_real_clients::install(name) else { return };
    let programs = [
        ("@anthropic-ai/claude-code", clients.claude()),
        ("@openai/codex", clients.codex()),
        ("@google/gemini-cli", clients.gemini()),
    ];
    for (package, program) in programs {
        #[expect(clippy::disallowed_methods, reason = "asking for a version starts no agent")]
        let output = std::process::Command::new(program)
            .arg("--version")
            .env("HOME", clients.folder())
            .output()
            .expect("the program cannot be started");
        let said = String::from_utf8_lossy(&output.stdout);
        // `2.1.3 (Claude Code)`, `codex-cli 0.1.2`, `0.1.2`
        let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        let version = said.split_whitespace().find(is_version).unwrap_or("?");
        let pinned = format!("\"{package}\": \"{version}\"");
        assert!(include_str!("../package.json").contains(&pinned), "{package}: {said}");
    }
}
