//! A signature of a tree's last link, in the format of `ssh-keygen -Y`.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use offshoot_model::RootId;
use offshoot_store::ChainHead;
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;

/// The length of a line in the format of `ssh-keygen`.
const PEM_WIDTH: usize = 70;

/// The purpose of a signature, so that no signature for another purpose fits.
const NAMESPACE: &str = "offshoot";

/// Returns the text that is signed, which can be written down again without the record.
fn statement(root: RootId, head: &ChainHead) -> String {
    format!("offshoot tree {root}\nevents {}\nlink {}\n", head.events, head.link)
}

/// A private key of ssh, and the name of its file.
#[derive(Debug)]
pub(crate) struct SigningKey {
    key: PrivateKey,
    file: PathBuf,
}

impl SigningKey {
    /// Reads a key that can be used.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let key = PrivateKey::read_openssh_file(file).map_err(|error| unusable(file, &error))?;
        match key.algorithm() {
            Algorithm::Ed25519 => Ok(Self { key, file: file.to_owned() }),
            other => {
                let why = format_args!("it is a key of the kind {other}, and ed25519 is needed");
                Err(unusable(file, &why))
            }
        }
    }

    /// Signs the last link of a tree.
    pub(crate) fn sign(&self, root: RootId, head: &ChainHead) -> Result<String, Failure> {
        let statement = statement(root, head);
        let signed = self.key.sign(NAMESPACE, HashAlg::Sha512, statement.as_bytes());
        let pem = signed.and_then(|signature| signature.to_pem(LineEnding::LF));
        pem.map_err(|error| unusable(&self.file, &error))
    }

    /// Signs the same, and returns one word: the output of `ssh-keygen` without its first line, its last one and its line breaks.
    pub(crate) fn sign_in_a_word(&self, root: RootId, head: &ChainHead) -> Result<String, Failure> {
        let signature = self.sign(root, head)?;
        Ok(signature.lines().filter(|line| !line.starts_with("-----")).collect())
    }
}

/// The failure where the key of `audit.sign` cannot be used.
fn unusable(file: &Path, why: &dyn Display) -> Failure {
    Failure::input(
        FailureCode::KeyUnusable,
        format_args!("cannot sign with `{}`: {why}", file.display()),
    )
    .hint("`ssh-keygen -t ed25519 -f FILE` makes a key that fits; one with a passphrase does not")
}

/// The signature in a file: alone, or in the last line of a list of links that is about this link and has one.
fn find(text: &str, root: RootId, head: &ChainHead) -> ssh_key::Result<SshSig> {
    let about = format!("{root} {} {} ", head.events, head.link);
    let word = text.lines().rev().find_map(|line| line.strip_prefix(&about));
    let Some(word) = word else { return SshSig::from_pem(text) };
    let letters: Vec<char> = word.trim().chars().collect();
    let lines: Vec<String> = letters.chunks(PEM_WIDTH).map(String::from_iter).collect();
    let lines = lines.join("\n");
    SshSig::from_pem(format!(
        "-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n"
    ))
}

/// Makes sure that a file is a signature of the last link of a tree, by a public key; the fingerprint of that.
pub(super) fn verify(
    root: RootId,
    head: &ChainHead,
    signature: &Path,
    key: &Path,
) -> Result<String, Failure> {
    let read = |path: &Path| fs::read_to_string(path).map_err(Failure::reading(path));
    let unreadable = |path: &Path, error: ssh_key::Error| {
        Failure::input(
            FailureCode::SignatureUnreadable,
            format_args!("`{}` cannot be used: {error}", path.display()),
        )
        .hint("--key takes a public key as `ssh-keygen` writes it into FILE.pub, --verify the file to which `audit.heads` appends")
    };
    let public = PublicKey::from_openssh(read(key)?.trim()).map_err(|e| unreadable(key, e))?;
    let signed = find(&read(signature)?, root, head).map_err(|e| unreadable(signature, e))?;
    let statement = statement(root, head);
    match public.verify(NAMESPACE, statement.as_bytes(), &signed) {
        Ok(()) => Ok(public.fingerprint(HashAlg::Sha256).to_string()),
        Err(_) => Err(Failure::new(
            FailureCode::SignatureWrong,
            Exit::AgentFailed,
            format_args!("`{}` is no signature of this record by that key", signature.display()),
        )
        .hint("the record was written anew since it was signed, or another key has signed it")),
    }
}
