//! The first request of a connection, and as whom it asks.

use offshoot_model::Refusal;
use tokio::io::AsyncRead;

use super::Shared;
use crate::caller::{PeerFacts, TicketFact, decide};
use crate::lineage::Lineage;
use crate::lines::{LineError, Lines};
use crate::protocol::{
    Answer, ErrorCode, FEATURES, Hello, Incoming, Malformed, PROTOCOL, RawError, RequestId,
    Welcome, line,
};
use crate::{Caller, CallerKind, Peer, Tickets};

/// How a greeting went.
pub(super) enum Greeting {
    /// The connection may ask. With the line that says so.
    Welcome(Caller, Vec<u8>),
    /// It may not. With the line that says why.
    Refused(Vec<u8>),
    /// There was none.
    Gone,
}

pub(super) async fn greet<R: AsyncRead + Unpin>(
    lines: &mut Lines<R>,
    peer: Peer,
    lineage: Option<&Lineage>,
    shared: &Shared,
) -> Greeting {
    let text = loop {
        match lines.next().await {
            Ok(Some(text)) if text.trim_ascii().is_empty() => {}
            Ok(Some(text)) => break text,
            Ok(None) | Err(LineError::Broken) => return Greeting::Gone,
            Err(LineError::TooLong) => return refused(None, shared.too_long()),
        }
    };
    let (id, hello) = match read(&text) {
        Ok(greeting) => greeting,
        Err((id, error)) => return refused(id.as_ref(), error),
    };
    if hello.protocol < PROTOCOL {
        let message = format!("this supervisor speaks protocol {PROTOCOL}, not {}", hello.protocol);
        return refused(Some(&id), RawError::new(ErrorCode::UnsupportedProtocol, message));
    }
    match identify(&hello, peer, lineage, shared).await {
        Ok(kind) => {
            let welcome = Welcome {
                protocol: PROTOCOL,
                features: FEATURES.iter().copied().map(str::to_owned).collect(),
                server: concat!("offshoot ", env!("CARGO_PKG_VERSION")).to_owned(),
                caller: kind.word(),
                run_id: kind.run(),
                max_message_bytes: shared.limits.message_bytes as u64,
            };
            let result = serde_json::value::to_raw_value(&welcome).expect("it is plain data");
            Greeting::Welcome(Caller { kind, peer }, line(&Answer::result(&id, &result)))
        }
        Err(refusal) => refused(Some(&id), super::connection::refusal_error(&refusal)),
    }
}

/// The greeting in the first line, or what is wrong with it.
fn read(text: &[u8]) -> Result<(RequestId, Hello), (Option<RequestId>, RawError)> {
    let incoming = Incoming::parse(text).map_err(|malformed| (None, malformed.into()))?;
    let first = || Malformed::request("the first request of a connection is `hello`").into();
    match incoming {
        Incoming::Request { id, method, params } if method == "hello" => {
            let params = params.as_deref().map_or("{}", |raw| raw.get());
            match serde_json::from_str(params) {
                Ok(hello) => Ok((id, hello)),
                Err(error) => {
                    let error = RawError::new(ErrorCode::InvalidParams, error.to_string());
                    Err((Some(id), error))
                }
            }
        }
        Incoming::Request { id, .. } => Err((Some(id), first())),
        Incoming::Notification { .. } | Incoming::Answer { .. } => Err((None, first())),
    }
}

/// Decides as whom the connection asks. A process may call before the engine has said that it runs; then the decision is
/// made again with each thing that is said, as long as something is still to be said.
async fn identify(
    hello: &Hello,
    peer: Peer,
    lineage: Option<&Lineage>,
    shared: &Shared,
) -> Result<CallerKind, Refusal> {
    let same_user = peer.uid == rustix::process::getuid().as_raw();
    let presented = hello.ticket();
    let ticket = |tickets: &Tickets| match &presented {
        None => TicketFact::Absent,
        Some(Err(_)) => TicketFact::Worthless,
        Some(Ok(ticket)) => tickets.owner(ticket).map_or(TicketFact::Worthless, TicketFact::Of),
    };
    let others: Vec<_> =
        shared.registry.supervisors().into_iter().map(|other| other.process).collect();
    let place = |tickets: &Tickets| match (lineage, &shared.own) {
        (Some(lineage), Some(own)) => lineage.place(same_user, tickets, own, &others),
        _ => PeerFacts::of_nobody(same_user),
    };
    let mut roster = shared.roster.watch();
    loop {
        let (decision, settled) = {
            let tickets = roster.borrow_and_update();
            let decision = decide(ticket(&tickets), &place(&tickets));
            (decision, !tickets.expects_a_start())
        };
        // The roster cannot close: the server holds it.
        if decision.is_ok() || settled || roster.changed().await.is_err() {
            return decision;
        }
    }
}

fn refused(id: Option<&RequestId>, error: RawError) -> Greeting {
    Greeting::Refused(line(&Answer::error(id, error)))
}
