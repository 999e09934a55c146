//! The file of `--junit`: a test case for each piece, for what shows the outcome of builds.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_model::{AgentId, EnvelopeError};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::code::FailureCode;
use crate::failure::Failure;

/// The cases so far. The file is there from the beginning, and written at the end.
#[derive(Debug)]
pub(crate) struct JUnit {
    path: PathBuf,
    file: File,
    cases: Vec<(u32, TestCase)>,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) took: Duration,
    /// The reason why it is no success.
    pub(crate) error: Option<&'a EnvelopeError>,
    pub(crate) cancelled: bool,
}

impl JUnit {
    /// Makes the file of `--junit`, before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::file(FailureCode::CannotWrite, "write", path, &error))?;
        Ok(Self { path: path.to_owned(), file, cases: Vec::new() })
    }

    /// Adds a run that is over, at its place in the request.
    pub(crate) fn add_run(&mut self, place: u32, key: &str, run: &Finished<'_>) {
        let status = match (run.error, run.cancelled) {
            (None, _) => TestCaseStatus::success(),
            // It was not its own doing: the tree was stopped, or the answer stood without it.
            (Some(error), true) => {
                let mut status = TestCaseStatus::skipped();
                status.set_type(&*error.code).set_message(error.summary());
                status
            }
            (Some(error), false) => {
                non_success(NonSuccessKind::Failure, &error.code, &error.message)
            }
        };
        let mut case = TestCase::new(key, status);
        case.set_time(run.took);
        case.set_classname(run.agent.as_str());
        self.cases.push((place, case));
    }

    /// Adds a run that was not admitted.
    pub(crate) fn add_refused(&mut self, place: u32, key: &str, code: &str, message: &str) {
        let mut case = TestCase::new(key, non_success(NonSuccessKind::Error, code, message));
        case.set_time(Duration::ZERO);
        self.cases.push((place, case));
    }

    /// Writes the cases, in the order of the request, as a suite of this name.
    pub(crate) fn finish(mut self, name: &str) -> Result<(), Failure> {
        self.cases.sort_by_key(|(place, _)| *place);
        let mut suite = TestSuite::new(name);
        suite.add_test_cases(self.cases.into_iter().map(|(_, case)| case));
        let mut report = Report::new("offshoot");
        report.add_test_suite(suite);
        let text = report.to_string();
        let written = text.map_err(std::io::Error::other);
        let written =
            written.and_then(|text| std::io::Write::write_all(&mut self.file, text.as_bytes()));
        written
            .map_err(|error| Failure::file(FailureCode::CannotWrite, "write", &self.path, &error))
    }
}

fn non_success(kind: NonSuccessKind, code: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let first = text.lines().next().unwrap_or_default();
    status.set_type(code).set_message(first).set_description(text);
    status
}
