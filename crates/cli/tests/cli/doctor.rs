//! `offshoot doctor`: what is found on the computer.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use offshoot_host::WallFolder;
use offshoot_model::{Account, Timestamp};
use offshoot_spawner::{AccountBoard, Clock, ParkedAccount, SystemClock};

use crate::command::Place;

#[test]
fn doctor_says_which_programs_there_are_and_how_they_log_in() {
    let place = Place::new();
    for (name, script) in [
        ("claude", "echo '2.1.330 (Claude Code)'"),
        ("codex", "echo codex-cli 0.169.0"),
        ("gemini", "exit 1"),
    ] {
        let program = place.file(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let mode = Permissions::from_mode(0o755);
        fs::set_permissions(program, mode).expect("the mode cannot be set");
    }
    place.file("home/.claude/.credentials.json", "{\"secret\": \"never-read\"}");
    let mut doctor = place.command(&["doctor"]);
    let path = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
    doctor.env("PATH", path).env("CODEX_API_KEY", "never-shown");
    let said = place.outcome(doctor, &[]).expect_code(0);
    let text = said.stdout();
    for wanted in [
        "claude 2.1.330 at ",
        "logged in, by ",
        "codex 0.169.0 at ",
        ": a key is in CODEX_API_KEY",
        "gemini (says no version) at ",
        ": no login and no key found (GEMINI_API_KEY, GOOGLE_API_KEY)",
        "git ",
        ": nothing recorded yet, ",
        " free",
        "descriptors: ",
    ] {
        assert!(text.contains(wanted), "{wanted}: {}", said.text());
    }
    assert!(!said.text().contains("never-"), "{}", said.text());
    // The same for programs, and of a runtime the command that it starts.
    let other = place.file("bin/other", "#!/bin/sh\necho 9.8.7\n");
    fs::set_permissions(&other, Permissions::from_mode(0o755)).expect("the mode cannot be set");
    place.file("c.toml", "[runtimes.claude]\ncommand = [\"other\", \"--fast\"]\n");
    let mut doctor = place.command(&["--config", "c.toml", "doctor", "--json"]);
    doctor.env("PATH", format!("{}:/usr/bin:/bin", place.path().join("bin").display()));
    let page = place.outcome(doctor, &[]).expect_code(0).json();
    let claude = &page["programs"][0];
    assert_eq!((&claude["name"], &claude["version"]), (&"claude".into(), &"9.8.7".into()));
    assert_eq!(claude["path"], other.to_str().expect("the path is text"));
    assert_eq!(page["dataFolder"]["trees"], serde_json::Value::Null);
    let mut limits =
        page["limits"].as_array().expect("lines").iter().filter_map(|line| line.as_str());
    assert!(limits.any(|line| line.starts_with("memory: ")), "{page}");
    assert!(page["supervisors"].is_array(), "{page}");
    assert!(page["descriptors"]["now"].is_u64(), "{page}");
    // Each program has its own word for where its settings are.
    for (variable, file) in [
        ("CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("CODEX_HOME", "auth.json"),
        ("GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
    ] {
        let login = place.file(&format!("elsewhere/{variable}/{file}"), "{}");
        let mut doctor = place.command(&["doctor"]);
        let path = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
        let folder = place.path().join("elsewhere").join(variable);
        doctor.env("PATH", path).env(variable, folder);
        let said = place.outcome(doctor, &[]).expect_code(0);
        let wanted = format!("logged in, by {}", login.display());
        assert!(said.stdout().contains(&wanted), "{variable}: {}", said.text());
    }
}

#[test]
fn doctor_names_an_account_of_which_a_quota_is_used_up() {
    let place = Place::new();
    let state = place.path().join("home/.local/state");
    let walls = WallFolder::of_user(Some(&state)).expect("the folder can be made");
    let soon = SystemClock.now().plus(Duration::from_secs(3_600));
    for (runtime, until) in [("claude", soon), ("codex", Timestamp::EPOCH)] {
        let (account, window) = (Account::of_runtime(runtime), Some("five_hour".into()));
        walls.tell(&ParkedAccount { account, window, until });
    }
    // Of its exit code nothing is said: supervisors of other tests are seen too.
    let said = place.run(&["doctor"]);
    let lines = said.stdout().lines().filter(|line| line.starts_with("quota: "));
    let lines: Vec<&str> = lines.collect();
    let [line] = lines[..] else { panic!("{}", said.text()) };
    assert!(line.contains("the quota five_hour of an account of claude is used up"), "{line}");
}
