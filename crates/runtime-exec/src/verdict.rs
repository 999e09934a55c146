//! From how a program ended to a reason. Pure.

use offshoot_model::{CancelledBy, Reason};
use offshoot_process::{Exit, Finished};

/// The reason, by evidence: what we did, what the system said, and last the program's own verdict.
pub(crate) fn reason(finished: &Finished, ok_exit: &[i32]) -> Reason {
    if finished.stop.is_some() {
        // The engine, which asked for the stop, records the reason.
        return Reason::Cancelled { by: CancelledBy::Operator };
    }
    if let Some(error) = &finished.stdout.error {
        return Reason::NotRecorded { message: format!("its output: {error}") };
    }
    if let Some(error) = &finished.input_error {
        let message = format!("its input cannot be read: {error}");
        return Reason::RuntimeError { message, retryable: false };
    }
    match finished.exit {
        Exit::Code(code) if is_ok(code, ok_exit) => Reason::Completed { exit_code: Some(code) },
        Exit::Code(code) => Reason::ExitCode { code },
        Exit::Signal(signal) => Reason::Signal { signal },
        Exit::Lost => {
            let message =
                "it did not end when it was killed, so how it ended is not known".to_owned();
            Reason::RuntimeError { message, retryable: false }
        }
    }
}

fn is_ok(code: i32, ok_exit: &[i32]) -> bool {
    if ok_exit.is_empty() { code == 0 } else { ok_exit.contains(&code) }
}

#[cfg(test)]
mod tests {
    use offshoot_model::RunStatus;
    use offshoot_process::Rung;

    use super::*;

    #[test]
    fn the_table_of_endings() {
        let table: [(Exit, &[i32], Reason); 6] = [
            (Exit::Code(0), &[], Reason::Completed { exit_code: Some(0) }),
            (Exit::Code(7), &[], Reason::ExitCode { code: 7 }),
            (Exit::Code(1), &[0, 1], Reason::Completed { exit_code: Some(1) }),
            (Exit::Code(0), &[1], Reason::ExitCode { code: 0 }),
            (Exit::Signal(11), &[], Reason::Signal { signal: 11 }),
            (Exit::Signal(11), &[11], Reason::Signal { signal: 11 }),
        ];
        for (exit, ok_exit, expected) in table {
            assert_eq!(reason(&Finished::of(exit), ok_exit), expected, "{exit:?} {ok_exit:?}");
        }
        assert_eq!(reason(&Finished::of(Exit::Lost), &[]).code(), "runtime_error");
    }

    #[test]
    fn one_that_was_stopped_is_no_success() {
        let mut stopped = Finished::of(Exit::Code(0));
        stopped.stop = Some(Rung::Asked);
        assert_eq!(reason(&stopped, &[]).status(), RunStatus::Cancelled);
    }

    #[test]
    fn an_answer_that_could_not_be_kept_is_no_answer() {
        let mut full = Finished::of(Exit::Code(0));
        full.stdout.error = Some(std::io::Error::other("no space"));
        assert_eq!(reason(&full, &[]).code(), "not_recorded");
    }
}
