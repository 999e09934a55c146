//! The ticket of a run at the meter: it stands where the key of a provider would stand.

use std::fmt::Write as _;
use std::io;

use secrecy::{ExposeSecret, SecretString};

/// A random text that names a run to the meter. It has no `Display`, its `Debug` prints nothing of it, and it is compared by its digest
/// alone.
///
/// ```
/// use offshoot_meter::Ticket;
///
/// let ticket = Ticket::mint()?;
/// assert!(ticket.expose().starts_with("offshoot-meter-"));
/// assert!(!format!("{ticket:?}").contains(ticket.expose()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Ticket([redacted])")]
pub struct Ticket(SecretString);

/// The digest of a ticket. Two are compared in constant time, and no ticket follows from one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TicketDigest(blake3::Hash);

/// The beginning of every ticket, by which it is told from a key.
const BEGINNING: &str = "offshoot-meter-";

impl Ticket {
    /// A new one, of 128 bits from the kernel's random numbers. Fails where the kernel has none, which is before it has booted.
    pub fn mint() -> io::Result<Self> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            filled += rustix::io::retry_on_intr(|| {
                rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())
            })?;
        }
        let mut text = BEGINNING.to_owned();
        for byte in bytes {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text.into()))
    }

    /// The text: for the environment of the run, or the address that it is given.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub(crate) fn digest(&self) -> TicketDigest {
        TicketDigest::of(self.expose())
    }
}

impl TicketDigest {
    /// The digest of a text that may be a ticket.
    pub(crate) fn of(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_known_by_its_digest() {
        let (one, other) = (Ticket::mint().unwrap(), Ticket::mint().unwrap());
        assert!(one.digest() == TicketDigest::of(one.expose()));
        assert!(one.digest() != other.digest());
        assert_eq!(one.expose().len(), BEGINNING.len() + 32);
        assert_eq!(format!("{one:?}"), "Ticket([redacted])");
    }
}
