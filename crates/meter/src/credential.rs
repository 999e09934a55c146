//! The operator's key: where it is found, and the header that holds it. Nothing here prints it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use offshoot_process::{Exit, Keep, Kept, NeverStop, Processes, Program};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

/// The place of a key.
#[derive(Clone, derive_more::Debug)]
pub enum KeySource {
    /// Here, as the environment had it when the supervisor began.
    Text(SecretString),
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a program prints, such as that of a keyring.
    Command {
        /// The processes among which it is started.
        #[debug(skip)]
        processes: Processes,
        /// The program, by its absolute path.
        program: PathBuf,
        /// The arguments.
        #[debug(skip)]
        arguments: Vec<OsString>,
        /// The whole environment.
        #[debug(skip)]
        environment: Vec<(OsString, OsString)>,
        /// The folder in which it is started.
        folder: PathBuf,
    },
}

/// The header that holds a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    ApiKey,
    /// `x-goog-api-key: KEY`.
    GoogApiKey,
}

/// The operator's key. It is read when it is first needed, and again after the provider has refused it. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Credential(Arc<Inner>);

#[derive(derive_more::Debug)]
struct Inner {
    source: KeySource,
    #[debug(skip)]
    read: Mutex<Option<SecretString>>,
}

/// A key that cannot be had. No text of it is part of the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The file cannot be read.
    #[error("the key in {} cannot be read: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The program did not print one.
    #[error("the program {} that prints the key failed: {message}", program.display())]
    Command {
        /// The program.
        program: PathBuf,
        /// The fault.
        message: String,
    },
    /// The text that was found there is no key.
    #[error("what stands for the key is not one line of printable characters")]
    NoKey,
}

/// Keys are short. More than this is not one.
const MOST_BYTES: usize = 16 * 1024;

/// The headers in which a program may show a key or a ticket. All of them are removed before a request leaves.
pub(crate) const KEY_HEADERS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

impl Credential {
    /// A key that is read from there.
    pub fn new(source: KeySource) -> Self {
        Self(Arc::new(Inner { source, read: Mutex::default() }))
    }

    /// The header with the key.
    pub(crate) async fn header(
        &self,
        scheme: Scheme,
    ) -> Result<(HeaderName, HeaderValue), CredentialError> {
        let known = self.0.read.lock().clone();
        let key = match known {
            Some(key) => key,
            None => {
                let key = self.0.source.read().await?;
                *self.0.read.lock() = Some(key.clone());
                key
            }
        };
        let key = key.expose_secret();
        let (name, text) = match scheme {
            Scheme::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
            Scheme::ApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Scheme::GoogApiKey => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| CredentialError::NoKey)?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    /// The provider has refused the key: it is read anew the next time.
    pub(crate) fn refused(&self) {
        if !matches!(self.0.source, KeySource::Text(_)) {
            *self.0.read.lock() = None;
        }
    }
}

impl KeySource {
    async fn read(&self) -> Result<SecretString, CredentialError> {
        match self {
            Self::Text(key) => Ok(key.clone()),
            Self::File(path) => {
                let fault = |message: String| CredentialError::File { path: path.clone(), message };
                let bytes =
                    tokio::fs::read(path).await.map_err(|error| fault(error.to_string()))?;
                first_line(bytes)
            }
            Self::Command { processes, program, arguments, environment, folder } => {
                let fault = |message: String| CredentialError::Command {
                    program: program.clone(),
                    message,
                };
                let started = processes.spawn(Program {
                    args: arguments.clone(),
                    env: environment.clone(),
                    stdout: Keep::First(MOST_BYTES).into(),
                    ..Program::new(program.clone(), folder.clone())
                });
                let finished =
                    started.map_err(|error| fault(error.to_string()))?.wait(NeverStop).await;
                match (finished.exit, finished.stdout.kept) {
                    (Exit::Code(0), Kept::Memory(bytes)) => first_line(bytes),
                    (Exit::Code(0), _) => Err(CredentialError::NoKey),
                    (exit, _) => Err(fault(format!("{exit:?}"))),
                }
            }
        }
    }
}

fn first_line(bytes: Vec<u8>) -> Result<SecretString, CredentialError> {
    let text = String::from_utf8(bytes).map_err(|_| CredentialError::NoKey)?;
    let line = text.lines().next().unwrap_or_default().trim();
    let fits = !line.is_empty() && line.len() <= MOST_BYTES;
    if fits { Ok(line.into()) } else { Err(CredentialError::NoKey) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use offshoot_process::Options;

    use super::*;

    async fn header(source: KeySource, scheme: Scheme) -> Result<String, CredentialError> {
        let credential = Credential::new(source);
        let (name, value) = credential.header(scheme).await?;
        let shown = format!("{credential:?} {value:?}");
        assert!(!shown.contains("sk-"), "{shown}");
        Ok(format!("{name}: {}", value.to_str().expect("printable")))
    }

    fn command(script: &str) -> KeySource {
        KeySource::Command {
            processes: Processes::start(Options::default()).expect("a world of processes"),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: Vec::new(),
            folder: "/".into(),
        }
    }

    #[tokio::test]
    async fn a_key_is_found_in_its_place() {
        let text = || KeySource::Text("sk-1".into());
        assert_eq!(header(text(), Scheme::Bearer).await.unwrap(), "authorization: Bearer sk-1");
        assert_eq!(header(text(), Scheme::ApiKey).await.unwrap(), "x-api-key: sk-1");
        assert_eq!(header(text(), Scheme::GoogApiKey).await.unwrap(), "x-goog-api-key: sk-1");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  sk-2 \nmore\n").unwrap();
        let found = header(KeySource::File(path), Scheme::ApiKey).await.unwrap();
        assert_eq!(found, "x-api-key: sk-2");
        let found = header(command("echo sk-3; echo more"), Scheme::ApiKey).await.unwrap();
        assert_eq!(found, "x-api-key: sk-3");
    }

    #[tokio::test]
    async fn faults_name_the_place_and_no_key() {
        let fault =
            async |source| header(source, Scheme::Bearer).await.expect_err("a fault").to_string();
        let missing = fault(KeySource::File("/no/such/key".into())).await;
        assert!(missing.starts_with("the key in /no/such/key cannot be read"), "{missing}");
        assert_eq!(
            fault(KeySource::Text("sk-\n".into())).await,
            CredentialError::NoKey.to_string()
        );
        assert_eq!(fault(command("true")).await, CredentialError::NoKey.to_string());
        let failed = fault(command("echo sk-4; exit 3")).await;
        assert!(failed.starts_with("the program /bin/sh that prints the key failed"), "{failed}");
        assert!(!failed.contains("sk-4"));
    }

    #[tokio::test]
    async fn a_refused_key_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let write = |path: &Path, key: &str| std::fs::write(path, key).unwrap();
        write(&path, "one");
        let credential = Credential::new(KeySource::File(path.clone()));
        let value = async || credential.header(Scheme::ApiKey).await.unwrap().1;
        assert_eq!(value().await, "one");
        write(&path, "two");
        assert_eq!(value().await, "one");
        credential.refused();
        assert_eq!(value().await, "two");
    }
}
