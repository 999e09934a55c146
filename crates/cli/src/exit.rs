//! The exit codes of the command, and the one place that ends the process.

/// The exit codes. Scripts rely on them, so a meaning is never given to another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and all completed, or partial success was permitted.
    Done = 0,
    /// An agent failed, timed out, was cancelled or lost.
    #[strum(serialize = "failed")]
    AgentFailed = 1,
    /// Bad usage, bad configuration, bad input, an invalid request.
    BadInput = 2,
    /// Refused by policy.
    Refused = 3,
    /// A budget, a deadline, a quota, a limit of the day or a breaker stopped what was running, or what would have been opened.
    Stopped = 4,
    /// A runtime cannot be used.
    NoRuntime = 5,
    /// Interrupted from the terminal: 128 and the number of the signal, as shells count.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// The word for programs.
    pub(crate) fn word(self) -> &'static str {
        self.into()
    }
}

/// Ends the process. Threads that are blocked in a read are not waited for: there is nothing they could still add.
#[expect(clippy::disallowed_methods, reason = "this is the one place that ends the process")]
pub(crate) fn end(exit: Exit) -> ! {
    std::process::exit(i32::from(exit.code()))
}
