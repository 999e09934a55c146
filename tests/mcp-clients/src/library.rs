//! Which libraries there are.

use std::path::Path;
use std::sync::OnceLock;

use offshoot_test_support::skip;

use crate::Client;
use crate::install::{node, python};

/// A client library of those who keep the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The package `@modelcontextprotocol/sdk`.
    Node,
    /// The package `mcp`.
    Python,
}

impl Library {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Node, Self::Python];

    /// The library for this test; none where it cannot be had, which is then said and counted.
    ///
    /// # Panics
    ///
    /// With `CI=true`, where it cannot be had.
    pub fn install(self, test: &str) -> Option<Client> {
        static NODE: OnceLock<Result<Client, String>> = OnceLock::new();
        static PYTHON: OnceLock<Result<Client, String>> = OnceLock::new();
        let installed = match self {
            Self::Node => NODE.get_or_init(|| {
                let folder = node()?;
                Ok(Client::new(["node".to_owned(), script("client.mjs"), text(&folder)?]))
            }),
            Self::Python => PYTHON.get_or_init(|| {
                let program = python()?;
                Ok(Client::new([text(&program)?, script("client.py")]))
            }),
        };
        match installed {
            Ok(client) => Some(client.clone()),
            Err(why) => {
                skip(&format!("{test} ({self:?})"), why);
                None
            }
        }
    }
}

fn script(name: &str) -> String {
    format!("{}/scripts/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}
