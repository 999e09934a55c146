//! The adapter between the contract and the program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{BootId, CancelledBy, ProcessIdentity, Reason, Stream, error_chain};
use offshoot_process::{
    Capture, Child, Identity, Keep, Kept, Limits, NeverStop, Processes, Program, ProgramError,
    Stdin, Stray, boot_id, resolve_program,
};
use offshoot_runtime::{
    Abilities, CostKnowledge, Credential, Finished, Launch, Pressure, RunContext, RunHost, Runtime,
    SaidStream, Secrets, SharedPrompt, Variable, metered, pass_variables, system_prompt,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::argv::{Files, Parts, Session, argv};
use crate::check::{CheckError, FoundProgram, OLDEST, Version};
use crate::environment;
use crate::lines::Line;
use crate::outcome;
use crate::parking::KeptProcesses;
use crate::session::{self, StopRequests, Thread};
use crate::talk::Talk;
use crate::tools::{OWN_SERVER, permits_server};
use crate::{ClaudeOptions, OwnServer, prompt, run_file};

/// The number of bytes of standard error that are kept to explain a failure.
const DIAGNOSTIC_BYTES: usize = 8 * 1024;

/// To say its version it takes a fraction of a second; on a loaded machine some.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// Runs Claude Code. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("ClaudeRuntime({})", inner.options.command)]
pub struct ClaudeRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    processes: Processes,
    options: ClaudeOptions,
    inherited: Vec<Variable>,
    search_path: Option<OsString>,
    superuser: bool,
    parked: KeptProcesses,
    /// The service, as its runs have told.
    pressure: Pressure,
}

/// A file that is removed after the run, because it holds a ticket.
struct Secret(Option<PathBuf>);

impl ClaudeRuntime {
    /// The abilities of the runtime, whatever its options.
    pub const ABILITIES: Abilities =
        Abilities { cost: CostKnowledge::Reported, turns: true, resumes: true, enforces: None };

    /// The instructions of the program have 6 kB and its tools 32 to 72 kB (version 2.1.330), at four bytes a token. It reads values from
    /// files.
    pub const SHARED_PROMPT: SharedPrompt = SharedPrompt { own_tokens: 9_000, inline_bytes: 0 };

    /// A runtime that starts the program through these processes.
    pub fn new(processes: Processes, options: ClaudeOptions) -> Self {
        let inherited = environment::inherited(&options.environment, &options.more);
        let search_path =
            inherited.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let superuser = rustix::process::geteuid().is_root();
        let inner = Inner {
            processes,
            options,
            inherited,
            search_path,
            superuser,
            parked: KeptProcesses::default(),
            pressure: Pressure::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same, which waits with all trees of its account where the service has too much to do. Asked of a runtime that was just made.
    #[must_use]
    pub fn with_pressure(mut self, pressure: Pressure) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("no run of it has begun");
        inner.pressure = pressure;
        self
    }

    /// Looks whether the program is there and recent enough, as a run in this folder would find it.
    pub async fn check(&self, folder: &Path) -> Result<FoundProgram, CheckError> {
        let command = || self.inner.options.command.clone();
        let cannot = |error: &dyn std::error::Error| CheckError::CannotStart {
            command: command(),
            message: error_chain(error),
        };
        let path = self.locate(&command(), folder).map_err(|error| match error {
            ProgramError::NotFound { .. } => CheckError::NotFound { command: command() },
            other => cannot(&other),
        })?;
        let program = Program {
            args: vec!["--version".into()],
            env: self.inner.inherited.clone(),
            stdout: Keep::First(DIAGNOSTIC_BYTES).into(),
            stderr: Keep::First(DIAGNOSTIC_BYTES).into(),
            ..Program::new(path.clone(), folder)
        };
        let child = self.inner.processes.spawn(program).map_err(|error| cannot(&error))?;
        // A wait that is dropped kills the child.
        let ended = timeout(VERSION_LIMIT, child.wait(NeverStop)).await;
        let said = match ended.map(|ended| (ended.stdout.kept, ended.stderr.kept)) {
            Ok((Kept::Memory(out), Kept::Memory(err))) => {
                String::from_utf8_lossy(if out.is_empty() { &err } else { &out }).into_owned()
            }
            _ => String::new(),
        };
        match Version::parse(&said) {
            None => Err(CheckError::NoVersion { path, said: said.trim().to_owned() }),
            Some(version) if version < OLDEST => {
                Err(CheckError::TooOld { found: FoundProgram { path, version } })
            }
            Some(version) => Ok(FoundProgram { path, version }),
        }
    }

    /// One run; an error is the reason why nothing was started.
    async fn run(&self, launch: Launch, cx: RunContext) -> Result<Finished, Reason> {
        let Inner { options, parked, pressure, .. } = &*self.inner;
        let own_server = options.own_server.is_some() && launch.pass.is_some();
        let (first, files) = prepare(&launch, options)
            .map_err(|error| cannot_start(format!("its files: {error}")))?;
        let _secret = Secret(files.servers.clone());
        let RunContext { host, stop, turns, usage, cpu, memory } = cx;
        let mut usage = usage.listen();
        let mut thread = Thread { talk: Talk::new(own_server), turns };
        let (mut session, mut prompt) = (Session::New, first.clone());
        if launch.continues {
            (session, prompt) = (Session::Resume(launch.run.to_string()), prompt::GO_ON.to_owned());
        }
        let mut asked = stop.clone();
        loop {
            let started = tokio::select! {
                biased;
                // The party that asked knows why, and says so in the record.
                _ = asked.heard() => Err(Reason::Cancelled { by: CancelledBy::Operator }),
                started = self.start_process(&launch, &files, &session, own_server, &host) => started,
            };
            let (mut child, lines) = match started {
                Ok(started) => started,
                Err(reason) if session == Session::New => return Err(reason),
                Err(reason) => return Ok(thread.talk.broken_off(reason)),
            };
            let clock = child.cpu();
            let resident = clock.clone();
            cpu.measures(move || clock.read());
            memory.measures(move || resident.resident());
            let identity @ Identity { pid, start_time } = child.identity();
            let boot = boot_id().map(BootId::from_u128);
            host.started(Some(ProcessIdentity::new(pid, start_time).of_boot(boot)));
            tracing::debug!(pid, resumed = session != Session::New, "session runs");

            let stdin =
                child.take_stdin().expect("it was started with a pipe, which is taken here");
            let (end, ear) = StopRequests::new(stop.clone());
            let process = session::Session {
                run: launch.run,
                process: identity,
                sent: 0,
                asked: 0,
                requests: Vec::new(),
                usage: &mut usage,
                lines,
                stdin: Some(stdin),
                host: host.clone(),
                stop: stop.clone(),
                end,
                grace: Duration::from_secs(launch.grant.grace_seconds),
                options,
                parked,
                pressure,
                thread: &mut thread,
            };
            let (ended, next) = tokio::join!(child.wait(ear), process.run(&prompt));
            for Stray { pid, name } in &ended.strays {
                host.stray_ended(*pid, name.as_str());
            }
            match (next, thread.talk.session()) {
                (Some(next), Some(id)) => {
                    session = Session::Resume(id.to_owned());
                    prompt = next;
                    thread.talk.goes_on();
                }
                // It was interrupted before the program had saved anything, so there is nothing to go on with.
                _ if session != Session::New
                    && !thread.talk.began()
                    && stop.requested().is_none() =>
                {
                    session = Session::New;
                    prompt.clone_from(&first);
                    thread.talk = Talk::new(own_server);
                }
                _ => {
                    let secrets = self.secrets(&launch);
                    let reached = ended.reached;
                    let mut finished = thread.talk.finish(ended, launch.output);
                    finished.reason = outcome::bounded(finished.reason, reached, &launch.grant);
                    let strike_out = |text: String| secrets.strike_out(&text).into_owned();
                    finished.diagnostics = finished.diagnostics.map(strike_out);
                    return Ok(finished);
                }
            }
        }
    }

    /// Returns the values that are not to be recorded of this run.
    fn secrets(&self, launch: &Launch) -> Secrets {
        Secrets::new(
            environment::secrets(&self.inner.inherited).into_iter().chain(launch.tickets()),
        )
    }

    /// Starts a process for a session, new or not.
    async fn start_process(
        &self,
        launch: &Launch,
        files: &Files,
        session: &Session,
        own_server: bool,
        host: &RunHost,
    ) -> Result<(Child, mpsc::UnboundedReceiver<Line>), Reason> {
        let Inner { processes, options, superuser, pressure, .. } = &*self.inner;
        let superuser = *superuser;
        let why = "other runs of the account were told to wait";
        let tell = |wait| host.backs_off(why, wait, false);
        pressure.passes(Pressure::chance(launch.run), tell).await;
        let args = argv(Parts { launch, options, files, session, own_server, superuser })?;
        let (feed, lines) = session::feed(self.secrets(launch), host.clone());
        let said = SaidStream::new(host.clone(), Stream::Stderr, self.secrets(launch));
        let program = self.program(launch, args, own_server, (feed, said))?;
        let child = processes.spawn_when_possible(program).await.map_err(|error| {
            match error.is_pressure() {
                true => Reason::NoRoom { message: error_chain(&error) },
                false => cannot_start(error_chain(&error)),
            }
        })?;
        Ok((child, lines))
    }

    fn program(
        &self,
        launch: &Launch,
        args: Vec<OsString>,
        own_server: bool,
        (mut feed, mut said): (session::Feed, SaidStream),
    ) -> Result<Program, Reason> {
        let Inner { options, inherited, .. } = &*self.inner;
        let folder = &*launch.working_folder;
        let words = options.wrap.iter().chain([&options.command]).map(String::as_str);
        let [first, rest @ ..] = &words.collect::<Vec<_>>()[..] else {
            unreachable!("the command itself is a word");
        };
        let path = self.locate(first, folder).map_err(|error| {
            let hint = CheckError::NotFound { command: options.command.clone() }.hint();
            match error {
                ProgramError::NotFound { .. } => {
                    cannot_start(format!("{first} not found on PATH; {hint}"))
                }
                other => cannot_start(error_chain(&other)),
            }
        })?;
        let mut env = metered(launch, inherited.clone());
        env.extend(environment::own(launch, options, own_server));
        Ok(Program {
            args: rest.iter().map(OsString::from).chain(args).collect(),
            env,
            stdin: Stdin::Pipe,
            // The lines are read as they come; what is kept of them is what they said.
            stdout: Capture {
                keep: Keep::Nothing,
                tap: Some(Box::new(move |block: &[u8]| feed.feed(block))),
            },
            stderr: Capture {
                keep: Keep::Last(DIAGNOSTIC_BYTES),
                tap: Some(Box::new(move |block: &[u8]| said.feed(block))),
            },
            limits: Limits {
                memory_bytes: launch.grant.max_memory_bytes,
                open_files: launch.grant.max_open_files,
                cpu_seconds: launch.grant.max_cpu_seconds,
            },
            ..Program::new(path, folder.clone())
        })
    }

    fn locate(&self, program: &str, folder: &Path) -> Result<PathBuf, ProgramError> {
        resolve_program(program.as_ref(), self.inner.search_path.as_deref(), folder)
    }
}

impl Runtime for ClaudeRuntime {
    fn name(&self) -> &str {
        "claude"
    }

    fn abilities(&self) -> Abilities {
        Self::ABILITIES
    }

    /// A session with some work behind it has 500 to 600 MiB.
    fn memory(&self) -> u64 {
        600 << 20
    }

    fn shared_prompt(&self) -> Option<SharedPrompt> {
        Some(Self::SHARED_PROMPT)
    }

    fn credential(&self) -> Option<Credential> {
        environment::credential(&self.inner.inherited)
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let claude = self.clone();
        async move { claude.run(launch, cx).await.unwrap_or_else(Finished::of) }.boxed()
    }
}

/// Writes what the program is to find, and answers the first prompt.
fn prepare(launch: &Launch, options: &ClaudeOptions) -> io::Result<(String, Files)> {
    let (prompt, piece) = prompt::first(launch)?;
    let servers = servers(launch, options);
    let may_spawn = servers.contains_key(OWN_SERVER) && launch.may_spawn();
    let write = |name: &str, text: String| -> io::Result<PathBuf> {
        let (mut file, path) = run_file::create(&launch.run_folder, name)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    };
    let system_prompt = system_prompt(launch, may_spawn);
    let system_prompt = system_prompt.map(|text| write("system-prompt", text)).transpose()?;
    let settings = options.settings.as_ref().map(Value::to_string);
    let settings = settings.map(|text| write("settings.json", text)).transpose()?;
    let servers = (!servers.is_empty()).then(|| json!({"mcpServers": servers}).to_string());
    let servers = servers.map(|text| write("servers.json", text)).transpose()?;
    Ok((prompt, Files { system_prompt, servers, settings, piece }))
}

fn servers(launch: &Launch, options: &ClaudeOptions) -> BTreeMap<String, Value> {
    let permitted = |(name, _): &(&String, &Value)| permits_server(&launch.grant.tools, name);
    let others = options.servers.iter().filter(permitted);
    let mut servers: BTreeMap<_, _> =
        others.map(|(name, server)| (name.clone(), server.clone())).collect();
    if let (Some(OwnServer { command, args }), Some(pass)) = (&options.own_server, &launch.pass) {
        // Said here too, because a client may keep its environment to itself.
        let env: serde_json::Map<_, _> = pass_variables(pass)
            .map(|(name, value)| (name.to_owned(), value.to_string_lossy().into()))
            .into_iter()
            .collect();
        // Its tools stand in the first prompt, and that waits for them; by default a tool that is not the program's own
        // is hidden until the model searches for it, and a server that is slow to start is not waited for.
        let server = json!({
            "type": "stdio", "command": command, "args": args, "env": env, "alwaysLoad": true,
        });
        servers.insert(OWN_SERVER.to_owned(), server);
    }
    servers
}

fn cannot_start(message: String) -> Reason {
    Reason::CannotStart { message }
}

impl Drop for Secret {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // It may be gone with its folder; a ticket is void when its run has ended in any case.
            let _ = fs::remove_file(path);
        }
    }
}
