//! The two streams of a program that is a plugin: lines that go out, and answers that come in.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use futures_util::FutureExt as _;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::wire::line::{self, HostLine, Order, Request, op as ops, raw};
use offshoot_plugin_abi::wire::{op, orphans};
use offshoot_plugin_abi::{AbiError, Answer, Host, Later, RunHost, event};
use tokio::sync::oneshot;

/// The receiver of an answer.
type Then = Box<dyn FnOnce(Result<String, AbiError>) + Send>;

/// The moment of an answer.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// At once, where it is read: the code that asks may be what requests wait for.
    AtOnce,
    /// After the requests that were read before it. A letter is there when the answer that lets a run read it comes.
    InTurn,
}

/// Something that was read.
pub(super) enum Heard {
    Request { id: Option<u64>, of: Option<u64>, order: Order },
    Answer(Box<dyn FnOnce() + Send>),
}

/// The way to the host.
pub(super) struct Link {
    out: Mutex<File>,
    next: AtomicU64,
    /// Requests that wait for an answer. None once no answer can come.
    asked: Mutex<Option<HashMap<u64, (Moment, Then)>>>,
}

impl Link {
    /// Takes standard output for lines. From now on what is printed goes to standard error.
    pub(super) fn take_standard_output() -> io::Result<Self> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        let asked = Mutex::new(Some(HashMap::new()));
        Ok(Self { out: Mutex::new(out.into()), next: AtomicU64::new(1), asked })
    }

    /// Reads lines until there are no more of them.
    pub(super) fn read(&self, mut input: impl BufRead, mut take: impl FnMut(Heard)) {
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|length| length > 0) {
            match line::read_host(&line) {
                Ok(HostLine::Answer(id, answer)) => match self.waiting_for(id) {
                    Some((Moment::AtOnce, then)) => then(answer),
                    Some((Moment::InTurn, then)) => {
                        take(Heard::Answer(Box::new(move || then(answer))));
                    }
                    // It was given up.
                    None => {}
                },
                Ok(HostLine::Request { id, of, order }) => take(Heard::Request { id, of, order }),
                Err(_) if line.trim_ascii().is_empty() => {}
                // There is no number to answer to.
                Err(error) => self.remark(&format!("a line that means nothing here: {error}")),
            }
            line.clear();
        }
        let waiting = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().flatten().for_each(|(_, (_, then))| then(Err(gone())));
    }

    fn waiting_for(&self, id: u64) -> Option<(Moment, Then)> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.as_mut()?.remove(&id)
    }

    /// Writes one line, whole.
    pub(super) fn write(&self, line: &[u8]) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A host that reads no more is about to end this process.
        let _ = out.write_all(line);
    }

    /// Answers a request. An answer that is too long for a line is an error: the host would end this process.
    pub(super) fn answer(&self, id: u64, answer: &Result<String, AbiError>) {
        let mut line = line::answer(id, answer);
        if line.len() >= line::LONGEST {
            let message = format!("an answer of {} bytes is too long for a line", line.len());
            line = line::answer(id, &Err(AbiError::new(AbiError::LIMIT, message)));
        }
        self.write(&line);
    }

    fn ask(&self, request: &Request<'_>, moment: Moment, then: Then) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.as_mut() {
            Some(asked) => drop(asked.insert(id, (moment, then))),
            None => return then(Err(gone())),
        }
        drop(asked);
        self.write(&request.line(id));
    }

    fn remark(&self, message: &str) {
        let request = Request { level: Some(2), message: Some(message), ..Request::new(ops::LOG) };
        self.write(&line::tell(&request));
    }
}

/// The way to the host of the plugin itself.
pub(super) struct PluginsLink(pub(super) Arc<Link>);

impl Host for PluginsLink {
    fn log(&self, level: u32, target: RStr<'_>, message: RStr<'_>, fields_json: RStr<'_>) {
        let fields = raw(fields_json.as_str(), "fields").ok();
        let request = Request {
            level: Some(level),
            target: Some(target.as_str()),
            message: Some(message.as_str()),
            fields: fields.as_deref(),
            ..Request::new(ops::LOG)
        };
        self.0.write(&line::tell(&request));
    }

    /// Blocks until the host has answered. Lines are read by a thread that calls no code of the plugin, so it does.
    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Answer {
        if name.as_str() == op::ORPHANS {
            // Those of the host's process, which this one is not.
            return RResult::ROk(orphans::encode_answer(None).into());
        }
        let args = match raw(args_json.as_str(), "arguments") {
            Ok(args) => args,
            Err(error) => return RResult::RErr(error),
        };
        let (tx, rx) = mpsc::channel();
        let name = name.as_str();
        let request = Request { name: Some(name), args: Some(&args), ..Request::new(ops::CALL) };
        self.0.ask(&request, Moment::AtOnce, Box::new(move |answer| drop(tx.send(answer))));
        rx.recv().unwrap_or_else(|_| Err(gone())).map(RString::from).into()
    }
}

/// The way to the host of one run or merge.
pub(super) struct RunsLink {
    pub(super) link: Arc<Link>,
    /// The number of the request that made it.
    pub(super) of: u64,
}

impl RunsLink {
    fn later(&self, request: Result<Request<'_>, AbiError>) -> Later {
        let (tx, rx) = oneshot::channel();
        // What was given up is not told.
        let then: Then = Box::new(move |answer| drop(tx.send(answer)));
        match request {
            Ok(request) => self.link.ask(&request.of(self.of), Moment::InTurn, then),
            Err(error) => then(Err(error)),
        }
        let answer = rx.map(|answer| answer.unwrap_or_else(|_| Err(gone())).map(RString::from));
        answer.map(RResult::from).into_ffi()
    }
}

impl RunHost for RunsLink {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        // A document that is none would be the end of the whole process.
        match line::event(self.of, kind, payload.as_str()) {
            Ok(line) => self.link.write(&line),
            Err(error) => self.link.remark(&format!("an event of kind {kind}: {error}")),
        }
        // A request to stop is a line of its own.
        event::GO_ON
    }

    fn spawn(&self, spec_json: RStr<'_>) -> Later {
        let document = raw(spec_json.as_str(), "spawn");
        let request = document.as_ref().map_err(AbiError::clone);
        self.later(
            request.map(|document| Request { request: Some(document), ..Request::new(ops::SPAWN) }),
        )
    }

    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Later {
        let args = raw(args_json.as_str(), "arguments");
        let request = args.as_ref().map_err(AbiError::clone);
        self.later(request.map(|args| Request {
            name: Some(name.as_str()),
            args: Some(args),
            ..Request::new(ops::CALL)
        }))
    }
}

fn gone() -> AbiError {
    AbiError::new(AbiError::CANCELLED, "the host is gone")
}
