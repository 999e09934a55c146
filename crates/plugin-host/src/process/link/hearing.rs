//! The words of a process, line by line.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use offshoot_plugin_abi::wire::event;
use offshoot_plugin_abi::wire::line::{self, Answered, Asked, Line};
use offshoot_plugin_abi::{AbiError, RunHostRef, event as kinds};
use offshoot_runtime::RunEvent;

use super::{Link, Reply, Unread, What};
use crate::package::Per;
use crate::process::visit::Visit;

/// Lines that wait to be read by the program. One that reads none of so many has stopped reading.
const MOST_UNREAD: usize = 10_000;
/// The level of what it says on standard error.
const INFO: u32 = 3;
const WARN: u32 = 2;
/// The number of characters that are shown of a line that means nothing.
const SHOWN: usize = 80;

impl Link {
    /// One line of standard output.
    pub(super) fn hear(&self, line: &[u8]) {
        if self.deaf.load(Ordering::Relaxed) {
            return;
        }
        if line.len() >= line::LONGEST {
            return self.wrong(&format!("wrote a line of more than {} bytes", line::LONGEST));
        }
        if line.trim_ascii().is_empty() {
            return;
        }
        let read = std::str::from_utf8(line)
            .map_err(|error| AbiError::new(AbiError::INVALID, error.to_string()))
            .and_then(line::read);
        match read {
            Ok(Line::Answer(id, answer)) => self.answered(id, answer),
            Ok(Line::Request { id, of, asked }) => self.asked(id, of, asked),
            Err(error) => {
                let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
                self.wrong(&format!(
                    "wrote a line that means nothing here ({error}): `{}`",
                    shown.trim_end()
                ));
            }
        }
    }

    fn answered(&self, id: u64, answer: Result<Answered<'_>, AbiError>) {
        let (waited, visit) = {
            let mut state = self.state();
            let waited = state.waiting.remove(&id);
            // Of a merge, the beginning is answered and it goes on; of a run, this is the end.
            let over = waited.as_ref().is_some_and(|(what, _)| *what == What::Outcome);
            let visit = (over || answer.is_err()).then(|| state.visits.remove(&id)).flatten();
            (waited, visit)
        };
        drop(visit);
        // One that comes late was given up.
        let Some((what, then)) = waited else { return };
        then(answer.map(|answered| Reply {
            ok: answered.ok.get().to_owned(),
            outcome: (what == What::Outcome).then(|| answered.outcome()),
            early: (what == What::Pushed).then(|| answered.early()),
        }));
    }

    fn asked(&self, id: Option<u64>, of: Option<u64>, asked: Asked<'_>) {
        if self.unread.load(Ordering::Relaxed) > MOST_UNREAD {
            return self.wrong("asks for more and more, and reads no answer");
        }
        match (asked, of) {
            (Asked::Event(kind, payload), Some(of)) => {
                let Some(host) = self.visit(of) else { return };
                let process = self.process.get().filter(|_| self.plugin.per == Per::Run);
                match process {
                    // The process is known to us, whether or not the program says it.
                    Some(process) if kind == kinds::STATUS => {
                        let started = RunEvent::Started(Some(*process));
                        let named = match event::decode(kind, &payload) {
                            Ok(Some(RunEvent::Started(None))) => event::encode(&started).1,
                            _ => payload.as_ref().into(),
                        };
                        host.event(kind, (&*named).into());
                    }
                    _ => drop(host.event(kind, (&*payload).into())),
                }
            }
            (Asked::Spawn(request), Some(of)) => {
                self.later(id, of, |host| host.spawn(request.into()));
            }
            (Asked::Call(name, args), Some(of)) => {
                self.later(id, of, |host| host.call((&*name).into(), args.into()));
            }
            (Asked::Call(name, args), None) => {
                let called = self.host.get().map(|host| host.call((&*name).into(), args.into()));
                let answer = called.map_or_else(
                    || Err(AbiError::unsupported(&name)),
                    |answer| answer.into_result().map(String::from),
                );
                self.answer(id, &answer);
            }
            (Asked::Log { level, target, message, fields }, _) => {
                if let Some(host) = self.host.get() {
                    let target = if target.is_empty() { &*self.plugin.name } else { &*target };
                    host.log(level, target.into(), (&*message).into(), fields.into());
                }
            }
            (Asked::Event(..), None) => {
                self.remark(WARN, "an event without `of`, the number of its run, was passed over");
            }
            (Asked::Spawn(_), None) => {
                let message = "`spawn` without `of`, the number of the run";
                self.answer(id, &Err(AbiError::new(AbiError::INVALID, message)));
            }
            (Asked::Unknown(name), _) => self.answer(id, &Err(AbiError::unsupported(&name))),
        }
    }

    /// Asks the host of a run, and answers when it has.
    fn later(
        &self,
        id: Option<u64>,
        of: u64,
        ask: impl FnOnce(&RunHostRef) -> offshoot_plugin_abi::Later,
    ) {
        let Some(host) = self.visit(of) else {
            let over = AbiError::new(AbiError::CANCELLED, "this run is over");
            return self.answer(id, &Err(over));
        };
        let asked = ask(&host);
        drop(host);
        let (lines, unread) = (self.state().lines.clone(), Unread::one_more(&self.unread));
        let answer = async move {
            let answer = asked.await.into_result().map(String::from);
            if let (Some(id), Some(lines)) = (id, lines) {
                // One that is about to end reads no more.
                let _ = lines.send((line::answer(id, &answer), unread));
            }
        };
        if let Some(visit) = self.state().visits.get_mut(&of) {
            visit.ask(answer, &self.plugin.home);
        }
    }

    fn answer(&self, id: Option<u64>, answer: &Result<String, AbiError>) {
        if let Some(id) = id {
            self.write(&self.state(), line::answer(id, answer));
        }
    }

    fn visit(&self, of: u64) -> Option<Arc<RunHostRef>> {
        self.state().visits.get(&of).map(Visit::host)
    }

    /// One line of standard error.
    pub(super) fn says(&self, line: &[u8]) {
        self.remark(INFO, &String::from_utf8_lossy(line));
    }

    fn remark(&self, level: u32, text: &str) {
        if let Some(host) = self.host.get() {
            host.log(level, (&*self.plugin.name).into(), text.into(), "".into());
        }
    }

    /// The process broke the protocol, and is ended.
    pub(super) fn wrong(&self, what: &str) {
        let message = format!("the process of the plugin `{}` {what}", self.plugin.name);
        self.fail(AbiError::new(AbiError::FAILED, message));
    }
}
