//! The ticket that a run shows at the door.

use std::io;
use std::str::FromStr;

/// 128 random bits that name a run to its supervisor. Written as 32 hexadecimal digits, and only by
/// [`Ticket::expose`]: it has no `Display`, its `Debug` is redacted, and two are compared in constant time.
///
/// ```
/// use offshoot_door::Ticket;
///
/// let ticket = Ticket::mint()?;
/// assert_eq!(ticket.expose().parse(), Ok(ticket.clone()));
/// assert_eq!(format!("{ticket:?}"), "Ticket([redacted])");
/// assert!("0000".parse::<Ticket>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Ticket([redacted])")]
pub struct Ticket([u8; 16]);

/// A text that is no ticket. It does not say which text: that may be half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ticket has 32 hexadecimal digits")]
pub struct ParseTicketError;

impl Ticket {
    /// A new one, from the kernel's random numbers. Fails where the kernel has none, which is before it has booted.
    pub fn mint() -> io::Result<Self> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            filled += rustix::io::retry_on_intr(|| {
                rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())
            })?;
        }
        Ok(Self(bytes))
    }

    /// The 32 digits: for the environment of the run, a file that only its user can read, or the greeting.
    pub fn expose(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FromStr for Ticket {
    type Err = ParseTicketError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim();
        if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(ParseTicketError);
        }
        let number = u128::from_str_radix(digits, 16).map_err(|_| ParseTicketError)?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl PartialEq for Ticket {
    /// Looks at every byte, so that the time it takes tells nothing about where two differ.
    fn eq(&self, other: &Self) -> bool {
        let differences =
            self.0.iter().zip(&other.0).fold(0, |differences, (a, b)| differences | (a ^ b));
        std::hint::black_box(differences) == 0
    }
}

impl Eq for Ticket {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_its_digits() {
        let ticket: Ticket = "00112233445566778899aAbBcCdDeEfF".parse().unwrap();
        assert_eq!(ticket.expose(), "00112233445566778899aabbccddeeff");
        assert_eq!(format!("{}\n", ticket.expose()).parse(), Ok(ticket));
        for text in ["", "0", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"é".repeat(16)] {
            assert_eq!(text.parse::<Ticket>(), Err(ParseTicketError), "{text}");
        }
    }

    #[test]
    fn every_bit_counts() {
        let ticket = Ticket([7; 16]);
        for at in 0..128 {
            let mut other = ticket.clone();
            other.0[at / 8] ^= 1 << (at % 8);
            assert_ne!(ticket, other);
        }
        assert_ne!(Ticket::mint().unwrap(), Ticket::mint().unwrap());
    }
}
