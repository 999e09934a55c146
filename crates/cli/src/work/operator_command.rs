//! A command of the operator's, which is told something on its standard input.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use offshoot_host::OperatorCommands;
use offshoot_model::ProcessIdentity;
use offshoot_process::{
    Exit as Ended, Identity, Keep, Kept, Processes, Program, Stdin, Stop, StopHandle,
    resolve_program,
};

use crate::code::FailureCode;
use crate::environment::Environment;
use crate::failure::Failure;

/// The time that the command may take for one text. What told it does not end before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that are kept of its standard error, of which the last line is shown where it fails.
const DIAGNOSTIC_BYTES: usize = 4096;

/// A program and its arguments, with all it needs to run.
#[derive(Clone, Debug)]
pub(crate) struct OperatorCommand {
    words: Vec<String>,
    /// The folder in which it runs, and from which its name is seen.
    folder: PathBuf,
    variables: Vec<(OsString, OsString)>,
    search_path: Option<OsString>,
    processes: Processes,
}

impl OperatorCommand {
    /// A command in this folder, with the environment of this process.
    pub(crate) fn new(
        words: &[String],
        folder: PathBuf,
        environment: &Environment,
        processes: Processes,
    ) -> Self {
        let search_path = environment.path().cloned();
        let variables = environment.variables.clone();
        Self { words: words.to_vec(), folder, variables, search_path, processes }
    }

    /// Lets it read this text, and ends it where it takes too long. With `commands` it may ask at the door of their tree, as the
    /// operator's.
    pub(crate) async fn tell(
        &self,
        text: String,
        commands: Option<OperatorCommands>,
    ) -> Result<(), Failure> {
        self.tell_within(text, commands, PATIENCE).await
    }

    /// Runs a command of `notify` or `audit.heads`, and waits for its end.
    async fn tell_within(
        &self,
        text: String,
        commands: Option<OperatorCommands>,
        patience: Duration,
    ) -> Result<(), Failure> {
        let Self { words, folder, search_path, processes, .. } = self;
        let wrong = |error: &dyn std::fmt::Display| {
            let program = &words[0];
            Failure::input(FailureCode::CommandNotTold, format_args!("`{program}`: {error}"))
                .hint(format_args!("try it by hand: `echo '{{}}' | {program}`; `offshoot config show` says where it is set"))
        };
        let path = resolve_program(words[0].as_ref(), search_path.as_deref(), folder);
        let program = Program {
            args: words[1..].iter().map(Into::into).collect(),
            env: self.variables.clone(),
            stdin: Stdin::Bytes(text.into_bytes().into()),
            stderr: Keep::Last(DIAGNOSTIC_BYTES).into(),
            ..Program::new(path.map_err(|error| wrong(&error))?, folder.clone())
        };
        let mut known = commands.as_ref().map(OperatorCommands::begin);
        let child = processes.spawn(program).map_err(|error| wrong(&error))?;
        if let Some(known) = &mut known {
            let Identity { pid, start_time } = child.identity();
            known.started(ProcessIdentity::new(pid, start_time));
        }
        let (handle, stop) = StopHandle::new();
        let mut ended = std::pin::pin!(child.wait(stop));
        let finished = match tokio::time::timeout(patience, &mut ended).await {
            Ok(finished) => finished,
            Err(_) => {
                handle.stop(Stop::Firm);
                ended.await;
                let seconds = patience.as_secs_f32();
                return Err(wrong(&format_args!("has not ended within {seconds} s")));
            }
        };
        let last = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            text.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
        };
        let said = match &finished.stderr.kept {
            Kept::Memory(text) => last(text),
            Kept::File(_) => String::new(),
        };
        match finished.exit {
            Ended::Code(0) => Ok(()),
            Ended::Code(code) => Err(wrong(&format_args!("ended with exit code {code}{said}"))),
            other => Err(wrong(&format_args!("ended by {other:?}{said}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use offshoot_process::Options;

    use super::*;

    #[tokio::test]
    async fn a_program_that_does_not_end_is_ended() {
        let environment = Environment::read().expect("a test has a folder and a program");
        let processes = Processes::start(Options::default()).expect("no keeper is asked for");
        let words = ["sleep", "600"].map(str::to_owned);
        let folder = environment.working_folder.clone();
        let command = OperatorCommand::new(&words, folder, &environment, processes.clone());
        let told =
            command.tell_within("a line\n".to_owned(), None, Duration::from_millis(50)).await;
        let failure = told.expect_err("it does not end by itself");
        assert_eq!(failure.complaints[0].message, "`sleep`: has not ended within 0.05 s");
        assert_eq!(processes.live(), [], "the program has ended");
    }
}
