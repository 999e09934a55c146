//! `audit`: what is kept of each tree elsewhere than in its record.

use crate::origin::Valued;
use crate::section::section;
use crate::setting::{FilePath, HeadsTarget};

section! {
    /// The data of each tree that is kept elsewhere than in its record.
    pub struct AuditSettings, foreign &[] => {
        /// The receiver of the last link of each tree when the command that ran it ends: a file, to which a line is appended, or
        /// a program and its arguments, which reads the line.
        pub heads: Option<Valued<HeadsTarget>> = "heads";
        /// A private key of ssh (ed25519, without a passphrase), with which the last link of each tree is signed.
        pub sign: Option<Valued<FilePath>> = "sign";
    }
}
