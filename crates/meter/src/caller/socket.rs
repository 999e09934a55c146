//! The socket at the other end of a connection on this machine, by the kernel's `sock_diag`.
//!
//! The message is put together here: it is one table of 72 bytes each way, and the crate that has it was last released in 2023.

use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`: the kind of the question and of its answer.
const BY_FAMILY: u16 = 20;
/// The flag `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;
/// The head of every message: length, kind, flags, serial number, port.
const HEAD: usize = 16;
/// Both ends of a connection, an interface and a cookie.
const ENDS: usize = 48;
const QUESTION: usize = HEAD + 8 + ENDS;
/// The number of the socket stands behind the ends, the times, the queues and the user.
const INODE: usize = HEAD + 4 + ENDS + 16;

/// The number of the socket whose own end is `theirs` and whose other end is `ours`; none where there is none any more, or none that a
/// process holds.
pub(super) fn inode(theirs: SocketAddr, ours: SocketAddr) -> Option<u64> {
    let question = question(theirs, ours)?;
    let kinds = (AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = socket_with(kinds.0, kinds.1, kinds.2, Some(SOCK_DIAG)).ok()?;
    sendto(&socket, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
    let mut answer = [0; 1024];
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::empty()).ok()?;
    read(answer.get(..length)?)
}

fn question(theirs: SocketAddr, ours: SocketAddr) -> Option<[u8; QUESTION]> {
    let (family, from, to) = match (theirs.ip(), ours.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let wide = |address: [u8; 4]| {
                let mut wide = [0; 16];
                wide[..4].copy_from_slice(&address);
                wide
            };
            (AF_INET, wide(from.octets()), wide(to.octets()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => (AF_INET6, from.octets(), to.octets()),
        _ => return None,
    };
    let mut message = [0; QUESTION];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        message[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&(QUESTION as u32).to_ne_bytes());
    put(&BY_FAMILY.to_ne_bytes());
    put(&REQUEST.to_ne_bytes());
    put(&[0; 8]);
    put(&[family, TCP, 0, 0]);
    // In whatever state it is.
    put(&u32::MAX.to_ne_bytes());
    put(&theirs.port().to_be_bytes());
    put(&ours.port().to_be_bytes());
    put(&from);
    put(&to);
    // Any interface, and no cookie.
    put(&[0; 4]);
    put(&[0xff; 8]);
    Some(message)
}

fn read(answer: &[u8]) -> Option<u64> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let inode = u32::from_ne_bytes(answer.get(INODE..INODE + 4)?.try_into().ok()?);
    // A socket that no process holds any more has the number 0.
    (kind == BY_FAMILY && inode != 0).then_some(inode.into())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_kernel_names_the_other_end() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, theirs) = listener.accept().unwrap();
            let ours = server.local_addr().unwrap();
            let expected = rustix::fs::fstat(client.as_fd()).unwrap().st_ino;
            assert_eq!(inode(theirs, ours), Some(expected), "{address}");
            let own = rustix::fs::fstat(server.as_fd()).unwrap().st_ino;
            assert_eq!(inode(ours, theirs), Some(own), "{address}");
            drop(client);
            assert_ne!(inode(theirs, ours), Some(expected), "{address}");
        }
        let nobody = "127.0.0.1:1".parse().unwrap();
        assert_eq!(inode(nobody, nobody), None);
    }
}
