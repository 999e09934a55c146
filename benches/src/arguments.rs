//! The arguments of the program.

use std::path::PathBuf;

use crate::{Result, rows};

/// Shown for `--help`.
pub(crate) const USAGE: &str = "\
offshoot beside its peers, in one run and in turns.

Usage: cargo xtask bench [OPTIONS] [ROW…]

  ROW…             these rows alone; --list names them
  --quick          a smoke run of seconds: small numbers, one round, nothing to rely on
  --json FILE      where the numbers go; target/bench.json where not given
  --folder FOLDER  where files are written, on the disk that is to be measured; target where not given
  --list           names the rows
";

/// The work to do.
pub(crate) enum Mode {
    Help,
    List,
    Measure(Arguments),
    /// One measurement that needs a process of its own.
    Alone(Vec<String>),
}

/// The rows to measure.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) quick: bool,
    pub(crate) only: Vec<String>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
}

impl Mode {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        if let Some((crate::alone::ALONE, order)) =
            arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
        {
            return Ok(Self::Alone(order.to_vec()));
        }
        let mut parsed = Arguments::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value =
                || rest.next().map(PathBuf::from).ok_or(format!("{argument} needs a path"));
            match argument.as_str() {
                "--help" | "-h" => return Ok(Self::Help),
                "--list" => return Ok(Self::List),
                "--quick" => parsed.quick = true,
                "--json" => parsed.json = Some(value()?),
                "--folder" => parsed.folder = Some(value()?),
                name if rows::ALL.iter().any(|row| row.name == name) => {
                    parsed.only.push(name.to_owned());
                }
                other => return Err(format!("`{other}` is no row; --list names them").into()),
            }
        }
        Ok(Self::Measure(parsed))
    }
}
