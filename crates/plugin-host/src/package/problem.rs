//! The problems of a `plugin.toml`: each problem with its place, all of them together.

use std::fmt;
use std::path::PathBuf;

/// Everything that is wrong, from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageProblems(pub(super) Vec<PackageProblem>);

/// One thing that is wrong. The text form is `path:line:column: key: what`, which editors open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageProblem {
    /// The file.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Dotted; empty where the text itself cannot be read.
    pub key: String,
    /// The text of the problem.
    pub message: String,
}

impl PackageProblems {
    /// The problems; never none.
    pub fn problems(&self) -> &[PackageProblem] {
        &self.0
    }
}

impl fmt::Display for PackageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.path.display(), self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for PackageProblems {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(PackageProblem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for PackageProblem {}
impl std::error::Error for PackageProblems {}
