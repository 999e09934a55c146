//! Requests to a model through the meter, beside requests that go to their provider directly.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use offshoot_meter::{
    Ask, Credential, KeySource, Login, Meter, ModelPrice, Options, PriceTable, Provider, Rates,
    Scheme, Terms, Ticket, Upstream, Verdict,
};
use offshoot_model::RunId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Row;
use crate::Result;
use crate::comparison::{Samples, Side, alternate, compare, percentile};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "meter",
    what: "from a request to the first byte of its answer, at the 99th percentile",
    measure,
};

pub(crate) const STREAMS: Row = Row {
    name: "meter-streams",
    what: "64 streams at once, each of 200 events 5 ms apart",
    measure: |setting| measure_streams(setting, 200),
};

pub(crate) const LONG_STREAMS: Row = Row {
    name: "meter-long-streams",
    what: "64 streams at once, each of 1,000 events 5 ms apart",
    measure: |setting| measure_streams(setting, 1_000),
};

const DIRECT: &str = "asked directly";
const METERED: &str = "through the meter";
const ADDED: &str = "added by the meter";
const BEGUN: &str = ", until all have begun";
/// The field of a request with the number of events, which the provider of these rows reads.
const EVENTS: &str = "events";

fn measure(setting: &Setting) -> Result<Outcome> {
    let requests = setting.pick(2_000, 20);
    let runtime = setting.runtime()?;
    let street = runtime.block_on(Street::build())?;
    let ask = |address| runtime.block_on(first_bytes(address, &street.request(None), requests));
    let p99 = |address| Ok(percentile(&ask(address)?, 99));
    let added = || {
        let (metered, direct) = (p99(street.meter)?, p99(street.provider)?);
        // A difference below nothing is noise.
        Ok((metered - direct).max(0.0))
    };
    let sides = vec![
        Side::new(DIRECT, || p99(street.provider)),
        Side::new(METERED, || p99(street.meter)),
        Side::new(ADDED, added),
    ];
    let samples = compare(setting, setting.rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("request"), samples)
        .at_most(ADDED, 1e-3)
        .beside(METERED, DIRECT)
        .note(format!("{requests} requests one after the other on one connection, before a provider on this machine that answers at once"))
        .note("the owner of the budgets grants at once; in a tree a reservation is on record first, which is one flush: row `append`"))
}

fn measure_streams(setting: &Setting, events: u32) -> Result<Outcome> {
    let streams = setting.pick(64, 4);
    let runtime = setting.runtime()?;
    let street = runtime.block_on(Street::build())?;
    let request = street.request(Some(events));
    let all = |address| runtime.block_on(streams_at_once(address, &request, streams));
    let sides = alternate(
        setting,
        setting.few_rounds(),
        vec![Side::new(DIRECT, || all(street.provider)), Side::new(METERED, || all(street.meter))],
    )?;
    let of = |name: &str, pick: fn(&(f64, f64)) -> f64| -> Vec<Samples> {
        let of = |(side, turns): &(&str, Vec<_>)| Samples {
            name: format!("{side}{name}"),
            values: turns.iter().map(pick).collect(),
        };
        sides.iter().map(of).collect()
    };
    let mut samples = of("", |(_, over)| *over);
    samples.extend(of(BEGUN, |(begun, _)| *begun));
    Ok(Outcome::new(Unit::Seconds("64 streams"), samples)
        .times(METERED, 1.02, DIRECT)
        .beside(&format!("{METERED}{BEGUN}"), &format!("{DIRECT}{BEGUN}"))
        .note("all streams are asked for in the same moment, and the time until all have begun is a part of the whole"))
}

/// A provider, and a meter before it.
struct Street {
    provider: SocketAddr,
    meter: SocketAddr,
    ticket: Ticket,
}

impl Street {
    async fn build() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = listener.local_addr()?;
        spawn(serve(listener));
        let (sender, mut asks) = mpsc::unbounded_channel();
        let price = ModelPrice::flat(Rates::of("3".parse()?, "15".parse()?));
        let prices = PriceTable::new([("m".to_owned(), price)]);
        let meter = Meter::open(Options { prices, ..Options::default() }, sender).await?;
        let (address, runs) = (meter.address(), meter.runs());
        spawn(meter.serve());
        spawn(async move {
            while let Some(ask) = asks.recv().await {
                if let Ask::Reserve(reserve) = ask {
                    // The program may have gone.
                    let _ = reserve.answer.send(Verdict::Granted);
                }
            }
        });
        let key = Credential::new(KeySource::Text("key".into()));
        let upstream =
            Upstream::new(&format!("http://{provider}"), Login::Key(key, Scheme::ApiKey))?;
        let upstreams = [(Provider::Anthropic, upstream)].into();
        let (run, ticket) = (RunId::from_uuid(Uuid::now_v7()), Ticket::mint()?);
        runs.admit(run, &ticket, Terms { dollars: true, upstreams, ..Terms::default() });
        runs.started(run, None);
        Ok(Self { provider, meter: address, ticket })
    }

    /// A request; for an answer in so many events where that is given.
    fn request(&self, events: Option<u32>) -> Vec<u8> {
        let stream = events.is_some();
        let events = events.map(|events| format!(r#","{EVENTS}":"{events}""#)).unwrap_or_default();
        let text = "x".repeat(4 * 1024);
        let body = format!(
            r#"{{"model":"m","max_tokens":100,"stream":{stream}{events},"messages":[{{"role":"user","content":"{text}"}}]}}"#
        );
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: provider\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n",
            self.ticket.expose(),
            body.len()
        );
        (head + &body).into_bytes()
    }
}

/// Starts a task that ends with the runtime of its row.
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    #[expect(clippy::disallowed_methods, reason = "it ends with the runtime of its row")]
    drop(tokio::spawn(work));
}

/// Seconds to the first byte of each of so many answers.
async fn first_bytes(address: SocketAddr, request: &[u8], requests: usize) -> Result<Vec<f64>> {
    let mut connection = Connection::open(address).await?;
    let mut seconds = Vec::with_capacity(requests);
    for _ in 0..requests {
        let begun = Instant::now();
        connection.stream.write_all(request).await?;
        connection.more().await?;
        seconds.push(begun.elapsed().as_secs_f64());
        connection.rest_of_answer().await?;
    }
    Ok(seconds)
}

/// Seconds until each of so many streams, which are asked for at once, has begun, and until all of them are over.
async fn streams_at_once(
    address: SocketAddr,
    request: &[u8],
    streams: usize,
) -> Result<(f64, f64)> {
    let mut connections = Vec::new();
    for _ in 0..streams {
        connections.push(Connection::open(address).await?);
    }
    let begun = Instant::now();
    let read = connections.into_iter().map(|mut connection| async move {
        connection.stream.write_all(request).await?;
        connection.more().await?;
        let first = begun.elapsed();
        while !connection.bytes.ends_with(b"0\r\n\r\n") {
            connection.more().await?;
        }
        Ok::<_, std::io::Error>(first)
    });
    let first = futures_util::future::try_join_all(read).await?.into_iter().max();
    Ok((first.unwrap_or_default().as_secs_f64(), begun.elapsed().as_secs_f64()))
}

/// A client's connection, and what came on it since the last answer.
struct Connection {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, bytes: Vec::new() })
    }

    async fn more(&mut self) -> std::io::Result<()> {
        match self.stream.read_buf(&mut self.bytes).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads an answer whose length its head says.
    async fn rest_of_answer(&mut self) -> Result<()> {
        loop {
            if let Some(length) = length_of_message(&self.bytes)
                && self.bytes.len() >= length
            {
                self.bytes.drain(..length);
                return Ok(());
            }
            self.more().await?;
        }
    }
}

/// The bytes of a message with its head; none before the head is whole.
fn length_of_message(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?.to_ascii_lowercase();
    let length = head.split_once("content-length: ")?.1.split_once("\r\n")?.0;
    Some(end + length.parse::<usize>().ok()?)
}

/// A provider that answers at once, or event by event where that is asked for.
async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        // A connection that breaks off is the client's affair.
        spawn(async move { drop(answer_all(stream).await) });
    }
}

async fn answer_all(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection { stream, bytes: Vec::new() };
    loop {
        let request = loop {
            match length_of_message(&connection.bytes) {
                Some(length) if connection.bytes.len() >= length => {
                    break connection.bytes.drain(..length).collect::<Vec<u8>>();
                }
                _ => connection.more().await?,
            }
        };
        if let Some(events) = events_asked(&request) {
            stream_answer(&mut connection.stream, events).await?;
        } else {
            let body = r#"{"type":"message","usage":{"input_tokens":10,"output_tokens":5}}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
            let answer = format!("{head}{}\r\n\r\n{body}", body.len());
            connection.stream.write_all(answer.as_bytes()).await?;
        }
    }
}

/// The number of events in which an answer is asked for; none where it is to come at once.
fn events_asked(request: &[u8]) -> Option<u32> {
    let field = format!(r#""{EVENTS}":""#);
    let text = std::str::from_utf8(request).ok()?;
    text.split_once(&field)?.1.split_once('"')?.0.parse().ok()
}

async fn stream_answer(stream: &mut TcpStream, events: u32) -> Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    for number in 0..events {
        pace.tick().await;
        let event = match number {
            0 => {
                r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}"#
            }
            last if last + 1 == events => {
                r#"{"type":"message_delta","usage":{"output_tokens":200}}"#
            }
            _ => {
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a word"}}"#
            }
        };
        let event = format!("data: {event}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        stream.write_all(chunk.as_bytes()).await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(())
}
