//! One row, in words that a table can be written with.

use offshoot_model::RunStatus;

/// One awkward agent and its end.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is awkward about it. Also the label of its run.
    pub name: &'static str,
    /// What is started.
    pub agent: Agent,
    /// What it is asked to do; a prompt on standard input.
    pub task: String,
    /// Its own time limit.
    pub timeout_seconds: Option<u64>,
    /// Exit codes that mean success.
    pub ok_exit: &'static [i32],
    /// Whether its output is read as JSON.
    pub json: bool,
    /// Settings of its tree.
    pub settings: &'static [(&'static str, &'static str)],
    /// What happens to it from outside.
    pub ends: Ends,
    /// What comes of it.
    pub expected: Expected,
}

/// What is started.
#[derive(Clone, Copy, Debug)]
pub enum Agent {
    /// `fake-agent` with these arguments.
    Fake(&'static [&'static str]),
    /// Any program.
    Program(&'static [&'static str]),
    /// A closure of this process that panics.
    Panics,
}

/// What happens to an agent from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Nothing that it does not bring upon itself.
    Alone,
    /// The operator cancels it once it has done everything up to its `block-on`.
    Cancelled,
    /// The operator cancels it while it stands in line.
    CancelledInLine,
    /// A sibling answers first, and one answer is enough.
    BesideAnAnswer,
    /// A sibling fails, and none may.
    BesideAFailure,
    /// It is given a piece of a file that is not there.
    MissingInput,
    /// There is no room for its output.
    FullDisk,
}

/// What comes of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The state.
    pub status: RunStatus,
    /// The typed reason.
    pub code: &'static str,
    /// A part of what people are told.
    pub message: &'static str,
    /// What its answer is, whatever the ending.
    pub prints: Prints,
    /// What the command ends with.
    pub exit: Option<i32>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prints {
    /// None, because it never ran.
    Nothing,
    /// This.
    Text(&'static str),
    /// The number of a process that must be gone.
    Pid,
    /// So many bytes, in the store.
    Stored(u64),
    /// Whatever it got to.
    Something,
}

impl Row {
    /// An agent that completes.
    pub fn completes(name: &'static str, agent: Agent) -> Self {
        Self::ends(name, agent, RunStatus::Completed, "completed").exits(0)
    }

    /// An agent that fails for this reason.
    pub fn fails(name: &'static str, agent: Agent, code: &'static str) -> Self {
        Self::ends(name, agent, RunStatus::Failed, code).exits(1)
    }

    /// An agent that runs out of time for this reason.
    pub fn times_out(name: &'static str, agent: Agent, code: &'static str) -> Self {
        Self::ends(name, agent, RunStatus::TimedOut, code).exits(1)
    }

    /// An agent that is cancelled.
    pub fn is_cancelled(name: &'static str, agent: Agent, ends: Ends) -> Self {
        Self { ends, ..Self::ends(name, agent, RunStatus::Cancelled, "cancelled") }
    }

    /// With these words in the message.
    pub fn says(mut self, message: &'static str) -> Self {
        self.expected.message = message;
        self
    }

    /// With this answer.
    pub fn prints(mut self, prints: Prints) -> Self {
        self.expected.prints = prints;
        self
    }

    /// With this exit code of the command.
    pub fn exits(mut self, code: i32) -> Self {
        self.expected.exit = Some(code);
        self
    }

    /// Not by the command, which cannot set the row up.
    pub fn not_by_command(mut self) -> Self {
        self.expected.exit = None;
        self
    }

    /// With a time limit of a second.
    pub fn for_a_second(mut self) -> Self {
        self.timeout_seconds = Some(1);
        self
    }

    /// In a tree with these settings.
    pub fn under(mut self, settings: &'static [(&'static str, &'static str)]) -> Self {
        self.settings = settings;
        self
    }

    fn ends(name: &'static str, agent: Agent, status: RunStatus, code: &'static str) -> Self {
        let prints = Prints::Something;
        Self {
            name,
            agent,
            task: "task".to_owned(),
            timeout_seconds: None,
            ok_exit: &[],
            json: false,
            settings: &[],
            ends: Ends::Alone,
            expected: Expected { status, code, message: "", prints, exit: None },
        }
    }
}
