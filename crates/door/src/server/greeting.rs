//! The first request of a connection, and as whom it asks.

use std::sync::LazyLock;

use offshoot_model::{Refusal, json_error, json_object};

use super::Shared;
use super::slots::ConnectionSlot;
use crate::caller::{PeerFacts, Supervised, TicketFact, decide};
use crate::lineage::Lineage;
use crate::lines::{LineError, Lines};
use crate::peer::supervisor_by_name;
use crate::protocol::{
    Answer, ErrorCode, FEATURES, Hello, Incoming, Malformed, PROTOCOL, RawError, RequestId,
    Welcome, line,
};
use crate::{Caller, CallerKind, Peer, Tickets};

/// The outcome of a greeting.
pub(super) enum Greeting {
    /// The connection may ask. With the line that says so.
    Welcome(Caller, Vec<u8>),
    /// The client may not connect. With the line that says why.
    Refused(Vec<u8>),
    /// There was none.
    Gone,
}

pub(super) async fn greet(
    lines: &mut Lines,
    peer: Peer,
    lineage: Option<&Lineage>,
    known: Option<CallerKind>,
    slot: Option<&mut ConnectionSlot>,
    shared: &Shared,
) -> Greeting {
    let text = match tokio::time::timeout(shared.limits.hello, first(lines)).await {
        Ok(Ok(Some(text))) => text,
        Ok(Ok(None) | Err(LineError::Broken)) => return Greeting::Gone,
        Ok(Err(LineError::TooLong)) => return refused(None, shared.too_long()),
        Err(_) => {
            return refused(None, Malformed::request("a connection says `hello` at once").into());
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
    let identified = match known {
        Some(kind) => Ok(kind),
        None => identify(&hello, peer, lineage, shared).await,
    };
    match identified {
        Ok(kind) => {
            if let Some(Err(full)) = slot.map(|slot| slot.belongs_to(kind, &shared.limits)) {
                return refused(Some(&id), RawError::new(ErrorCode::TooMany, full));
            }
            let welcome = Welcome {
                protocol: PROTOCOL,
                features: FEATURES.iter().copied().map(str::to_owned).collect(),
                server: concat!("offshoot ", env!("CARGO_PKG_VERSION")).to_owned(),
                caller: kind.word(),
                run_id: kind.run(),
                max_message_bytes: shared.limits.message_bytes as u64,
            };
            let result =
                serde_json::value::to_raw_value(&welcome).expect("plain data does not serialise");
            Greeting::Welcome(Caller { kind, peer }, line(&Answer::result(&id, &result)))
        }
        Err(refusal) => refused(Some(&id), super::connection::refusal_error(&refusal)),
    }
}

/// The first line that is not blank.
async fn first(lines: &mut Lines) -> Result<Option<Vec<u8>>, LineError> {
    loop {
        // A greeting takes no descriptor.
        match lines.next().await?.map(|line| line.text) {
            Some(text) if text.trim_ascii().is_empty() => {}
            other => return Ok(other),
        }
    }
}

/// The greeting in the first line, or what is wrong with it.
fn read(text: &[u8]) -> Result<(RequestId, Hello), (Option<RequestId>, RawError)> {
    let incoming = Incoming::parse(text).map_err(|malformed| (None, malformed.into()))?;
    let first = || Malformed::request("the first request of a connection is `hello`").into();
    match incoming {
        Incoming::Request { id, method, params } if method == "hello" => {
            let params = params.as_deref().map_or("{}", |raw| raw.get());
            match json_object(params) {
                Ok(hello) => Ok((id, hello)),
                Err(error) => {
                    let error = RawError::new(ErrorCode::InvalidParams, json_error(params, &error));
                    Err((Some(id), error))
                }
            }
        }
        Incoming::Request { id, .. } => Err((Some(id), first())),
        Incoming::Notification { .. } | Incoming::Answer { .. } => Err((None, first())),
    }
}

/// Decides as whom the connection asks. A process may call before the engine has said that it runs; then the decision is
/// made again with each thing that is said, while something is still to be said that could change it.
async fn identify(
    hello: &Hello,
    peer: Peer,
    lineage: Option<&Lineage>,
    shared: &Shared,
) -> Result<CallerKind, Refusal> {
    let same_user = peer.uid == rustix::process::getuid().as_raw();
    let presented = hello.ticket();
    let others: Vec<_> =
        shared.registry.supervisors().into_iter().map(|other| other.process).collect();
    let is_stray = lineage.is_some_and(|lineage| shared.registry.comes_from_a_tree(lineage));
    // A tree that a command of the operator's has opened has a supervisor of its own, whatever the registry says.
    // Only asked for what is below such a command.
    let is_of_a_tree_below = LazyLock::new(|| {
        lineage.zip(shared.own.as_ref()).is_some_and(|(lineage, own)| {
            shared.registry.comes_from_a_tree_below(lineage)
                || supervisor_by_name(lineage)
                    .is_some_and(|supervisor| lineage.is_below(supervisor, own))
        })
    });
    let look = |tickets: &Tickets| {
        let ticket = match &presented {
            None => TicketFact::Absent,
            Some(Err(_)) => TicketFact::Worthless,
            Some(Ok(ticket)) => tickets.owner(ticket).map_or(TicketFact::Worthless, TicketFact::Of),
        };
        let facts = match (lineage, &shared.own) {
            (Some(lineage), Some(own)) => {
                let facts = lineage.place(same_user, tickets, own, &others);
                let of_operator = facts.of_operator && !*is_of_a_tree_below;
                match facts.supervised {
                    Supervised::No if is_stray => {
                        PeerFacts { supervised: Supervised::Elsewhere, ..facts }
                    }
                    _ => PeerFacts { of_operator, ..facts },
                }
            }
            _ => PeerFacts::unknown(same_user),
        };
        let may_change = match ticket {
            TicketFact::Worthless => false,
            TicketFact::Of(run) => tickets.expects_start_of(run),
            TicketFact::Absent => facts.supervised == Supervised::Here && tickets.expects_a_start(),
        };
        let decision = decide(ticket, &facts);
        (decision.is_err() && may_change, decision)
    };
    let mut tickets = shared.tickets.watch();
    // The tickets cannot close, since the server holds it; and whatever was decided last holds.
    let settled = tickets.wait_for(|tickets| !look(tickets).0);
    let _ = tokio::time::timeout(shared.limits.hello, settled).await;
    look(&tickets.borrow()).1
}

fn refused(id: Option<&RequestId>, error: RawError) -> Greeting {
    // Only the code is logged: the text may repeat words of the caller.
    tracing::warn!(code = error.code, "connection refused");
    Greeting::Refused(line(&Answer::error(id, error)))
}
