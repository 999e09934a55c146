//! From how a program ended to a reason. Pure.

use offshoot_model::{CancelledBy, Grant, Reason};
use offshoot_process::{Exit, Finished, Kept, Reached};

/// The reason, by evidence: what we did, what the system said, and last the program's own verdict.
pub(crate) fn reason(finished: &Finished, ok_exit: &[i32], grant: &Grant) -> Reason {
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
    match (finished.exit, finished.reached) {
        (Exit::Code(code), _) if is_ok(code, ok_exit) => {
            return Reason::Completed { exit_code: Some(code) };
        }
        (_, Some(Reached::Cpu)) => return Reason::CpuLimit { seconds: grant.max_cpu_seconds },
        (_, Some(Reached::Memory)) => {
            let bytes = Some(grant.max_memory_bytes).filter(|bytes| *bytes > 0);
            return Reason::OutOfMemory { bytes };
        }
        (_, None) => {}
    }
    match finished.exit {
        Exit::Code(_) if lacked_files(finished, grant) => {
            Reason::OpenFileLimit { files: grant.max_open_files }
        }
        Exit::Code(code) => Reason::ExitCode { code },
        Exit::Signal(signal) => Reason::Signal { signal },
        Exit::Lost => {
            let message =
                "it did not end when it was killed, so how it ended is not known".to_owned();
            Reason::RuntimeError { message, retryable: false }
        }
    }
}

/// True if the files of a process are bounded, and its last words say that it was refused one: the kernel itself tells nothing of that.
fn lacked_files(finished: &Finished, grant: &Grant) -> bool {
    /// The words of the C library, and the names of the error.
    const WORDS: [&[u8]; 3] = [b"Too many open files", b"EMFILE", b"Errno 24]"];
    let Kept::Memory(said) = &finished.stderr.kept else { return false };
    let says = |word: &&[u8]| said.windows(word.len()).any(|part| part == *word);
    grant.max_open_files > 0 && WORDS.iter().any(says)
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
            assert_eq!(
                reason(&Finished::of(exit), ok_exit, &Grant::unbounded()),
                expected,
                "{exit:?} {ok_exit:?}"
            );
        }
        assert_eq!(
            reason(&Finished::of(Exit::Lost), &[], &Grant::unbounded()).code(),
            "runtime_error"
        );
    }

    #[test]
    fn a_bound_of_the_kernel_has_a_name_unless_the_end_is_accepted() {
        let check = |exit, ok: &[i32], reached, expected: Reason| {
            let grant = Grant { max_cpu_seconds: 7, max_memory_bytes: 8, ..Grant::unbounded() };
            let finished = Finished { reached: Some(reached), ..Finished::of(exit) };
            assert_eq!(reason(&finished, ok, &grant), expected, "{finished:?} {ok:?}");
        };
        let (memory, cpu) = (Reached::Memory, Reached::Cpu);
        check(Exit::Signal(24), &[], cpu, Reason::CpuLimit { seconds: 7 });
        check(Exit::Code(152), &[], cpu, Reason::CpuLimit { seconds: 7 });
        check(Exit::Code(152), &[152], cpu, Reason::Completed { exit_code: Some(152) });
        check(Exit::Signal(9), &[], memory, Reason::OutOfMemory { bytes: Some(8) });
        check(Exit::Code(137), &[], memory, Reason::OutOfMemory { bytes: Some(8) });
    }

    #[test]
    fn a_refused_file_has_a_name_where_files_are_bounded() {
        let check = |max_open_files, said: &str, code, expected: Reason| {
            let mut finished = Finished::of(Exit::Code(code));
            finished.stderr.kept = Kept::Memory(said.into());
            let grant = Grant { max_open_files, ..Grant::unbounded() };
            assert_eq!(reason(&finished, &[], &grant), expected, "{said}");
        };
        let python = "OSError: [Errno 24] Too many open files: 'x'\n";
        check(9, python, 1, Reason::OpenFileLimit { files: 9 });
        check(
            9,
            "Error: EMFILE: too many open files, open 'x'",
            1,
            Reason::OpenFileLimit { files: 9 },
        );
        check(0, python, 1, Reason::ExitCode { code: 1 });
        check(9, python, 0, Reason::Completed { exit_code: Some(0) });
        check(9, "no such file", 1, Reason::ExitCode { code: 1 });
    }

    #[test]
    fn one_that_was_stopped_is_no_success() {
        let mut stopped = Finished::of(Exit::Code(0));
        stopped.stop = Some(Rung::Asked);
        assert_eq!(reason(&stopped, &[], &Grant::unbounded()).status(), RunStatus::Cancelled);
    }

    #[test]
    fn an_answer_that_could_not_be_kept_is_no_answer() {
        let mut full = Finished::of(Exit::Code(0));
        full.stdout.error = Some(std::io::Error::other("no space"));
        assert_eq!(reason(&full, &[], &Grant::unbounded()).code(), "not_recorded");
    }
}
