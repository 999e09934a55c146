//! A place with the real Claude Code in it, before a service that answers by rules.

use std::fs;
use std::process::Command;

use offshoot_fake_model_api::{FakeModelApi, Rule, Script};
use offshoot_real_clients::Clients;

use crate::command::{Outcome, Place};

/// A place with the program on its search path, and the service.
pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) api: FakeModelApi,
    path: String,
}

impl Stage {
    pub(crate) fn new(clients: &Clients, rules: impl IntoIterator<Item = Rule>) -> Self {
        let program = clients.claude();
        let folder = program.parent().expect("a program is in a folder");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
        Self { place: Place::new(), api, path }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.envs([
            ("PATH", self.path.as_str()),
            ("ANTHROPIC_BASE_URL", &self.api.url()),
            ("ANTHROPIC_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ]);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.place.outcome(self.command(arguments), &[])
    }

    /// Returns the number of processes that are left and were started as an agent of this place.
    pub(crate) fn agents(&self) -> usize {
        let home = format!("HOME={}", self.place.path().join("home").display());
        let of_this_place = |environ: Vec<u8>| {
            let has =
                |what: &[u8]| environ.split(|byte| *byte == 0).any(|one| one.starts_with(what));
            has(home.as_bytes()) && has(b"OFFSHOOT_RUN_ID=")
        };
        let processes = fs::read_dir("/proc").expect("the system tells of its processes");
        // A process that is gone by now, or that belongs to another user, has nothing to read.
        let environ = |entry: fs::DirEntry| fs::read(entry.path().join("environ")).ok();
        processes
            .flatten()
            .filter_map(environ)
            .filter(|environ| of_this_place(environ.clone()))
            .count()
    }
}
