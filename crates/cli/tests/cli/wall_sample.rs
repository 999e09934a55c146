//! Five hundred real processes that ask a service through the meter, three walls of a quota, and one kill -9.

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use offshoot_fake_model_api::{FakeModelApi, Model, Reply, Usage};
use serde_json::Value;

use crate::command::Place;

const PIECES: u64 = 500;

/// The service is at a wall after so many answers.
const WALLS: [u64; 3] = [100, 220, 380];

/// The supervisor is killed after so many.
const KILLED_AFTER: u64 = 300;

/// The time from a wall to its reset.
const RESET: Duration = Duration::from_secs(2);

/// Each answer costs 10 tokens read and 5 written: 105 millionths of a dollar.
const CONFIG: &str = "
[runtimes.exec]
meter = \"on\"

[prices.priced-1]
inputPerMillion = 3
outputPerMillion = 15
maxOutputTokens = 32000
contextWindowTokens = 200000
";

/// An agent that asks once, and prints the answer. It fails where it gets none.
const AGENT: &str = r#"
read -r piece
url=${OPENAI_BASE_URL#http://}
host=${url%%/*}
body='{"model":"priced-1","max_tokens":20,"messages":[{"role":"user","content":"'$piece'"}]}'
exec 3<>"/dev/tcp/${host/://}"
printf 'POST /%s/chat/completions HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\n' "${url#*/}" "$host" "$OPENAI_API_KEY" >&3
printf 'content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s' "${#body}" "$body" >&3
answer=$(cat <&3)
[[ $answer == *' 200 '* ]] || { echo "${answer:0:200}" >&2; exit 1; }
[[ $answer =~ did\ item\ [0-9]+ ]] && echo "${BASH_REMATCH[0]}"
"#;

/// The service: it answers, is at a wall now and then, and counts the answers to each piece.
struct Service {
    answered: AtomicU64,
    state: Mutex<State>,
    /// Told once it is time to kill the supervisor.
    time: mpsc::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The number of walls so far, and the reset of the last one.
    walls: usize,
    until: Option<Instant>,
    answers: HashMap<String, u32>,
    /// Requests that came while a wall stood.
    refused: u32,
}

impl Service {
    #[expect(clippy::disallowed_methods, reason = "a service outside has a clock of its own")]
    fn answer(&self, piece: &str) -> (Reply, Usage) {
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        let mut state = self.state.lock().expect("no answer panics");
        let answered = self.answered.load(Ordering::SeqCst);
        let is_next = WALLS.get(state.walls).is_some_and(|wall| answered >= *wall);
        let stands = state.until.is_some_and(|until| Instant::now() < until);
        if is_next && !stands {
            state.walls += 1;
            state.until = Some(Instant::now() + RESET);
        }
        if is_next || stands {
            state.refused += 1;
            return (Reply::wall(RESET), usage);
        }
        if self.answered.fetch_add(1, Ordering::SeqCst) + 1 == KILLED_AFTER {
            self.time.send(()).expect("the test waits for it");
        }
        *state.answers.entry(piece.to_owned()).or_default() += 1;
        (Reply::text(format!("did {piece}")), usage)
    }
}

fn kind(event: &Value) -> &str {
    event["kind"]["type"].as_str().expect("every event has a kind")
}

/// Checks that nothing started between a wall and its reset, and one run alone before it was known that the account answers again.
#[track_caller]
fn check_walls(events: &[Value]) -> usize {
    let mut walls = 0;
    let mut parked: Option<(String, usize)> = None;
    for event in events {
        match (kind(event), &mut parked) {
            ("parked", parked) => {
                walls += usize::from(parked.is_none());
                let until = event["kind"]["until"].as_str().expect("a moment").to_owned();
                *parked = Some((until, 0));
            }
            ("unparked", parked) => *parked = None,
            ("starting", Some((until, probes))) => {
                let at = event["at"].as_str().expect("a moment");
                assert!(at >= &**until, "a start at {at}, and the reset is at {until}");
                *probes += 1;
                assert_eq!(*probes, 1, "one probe goes first");
            }
            _ => {}
        }
    }
    walls
}

#[test]
fn five_hundred_agents_meet_three_walls_and_a_kill_and_nothing_is_done_twice() {
    let (time, is_time) = mpsc::channel();
    let (answered, state) = (AtomicU64::default(), Mutex::default());
    let service = Arc::new(Service { answered, state, time });
    let model = Arc::clone(&service);
    let answer = move |asked: &offshoot_fake_model_api::Conversation| model.answer(&asked.prompt);
    let api = FakeModelApi::start_with(Model::new(answer)).expect("a free port");
    let place = Place::new();
    place.file("c.toml", CONFIG);
    place.file("agent.sh", AGENT);
    place.file("in", (1..=PIECES).map(|piece| format!("item {piece}\n")).collect::<String>());
    let with_key = |mut command: Command| {
        command
            .env("OPENAI_API_KEY", "sk-a-dummy")
            .env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
        command
    };
    let map = ["--config", "c.toml", "-q", "map", "--split", "lines:1", "--max-concurrent", "8"];
    let map = [&map[..], &["--budget-usd", "0.2", "in", "--", "bash", "agent.sh"]].concat();
    let mut first = with_key(place.command(&map)).spawn().expect("the program was built");
    let pid = first.id();
    is_time.recv_timeout(Duration::from_secs(120)).expect("it asks the service");
    first.kill().expect("it was not waited for");
    first.wait().expect("the child cannot be waited for");
    place.locks_of(pid).wait();
    let record = || {
        let events = place.run(&["events", "last", "--json"]).expect_code(0);
        let event = |line: &str| serde_json::from_str(line).expect("a line is JSON");
        events.stdout().lines().map(event).collect::<Vec<Value>>()
    };
    let is_end =
        |event: &&Value| kind(event) == "ended" && event["kind"]["reason"]["type"] == "completed";
    let before = record();
    let done: Vec<&Value> = before.iter().filter(is_end).map(|event| &event["run"]).collect();
    assert!(done.len() > 200, "{}", done.len());

    let resumed = with_key(place.command(&["--config", "c.toml", "-q", "resume", "last"]));
    let resumed = place.outcome(resumed, &[]).expect_code(0);
    let answers: Vec<&str> = resumed.stdout().lines().filter(|line| *line != "---").collect();
    let expected: Vec<String> = (1..=PIECES).map(|piece| format!("did item {piece}")).collect();
    assert_eq!(answers, expected, "each piece has its own answer, in the order of the input");

    let events = record();
    assert_eq!(check_walls(&events), WALLS.len());
    let after = &events[before.len()..];
    let again =
        after.iter().filter(|event| kind(event) == "starting" && done.contains(&&event["run"]));
    assert_eq!(again.count(), 0, "what had completed is not started again");
    let completed = events.iter().filter(is_end).count() as u64;
    assert_eq!(completed, PIECES + 1, "the pieces and the root, each once");
    // What was asked twice was under way at the kill.
    let state = service.state.lock().expect("no answer panics");
    assert_eq!(state.answers.len() as u64, PIECES);
    let twice = state.answers.values().filter(|count| **count > 1).count();
    assert!(twice <= 8, "{twice} pieces were paid for twice, and 8 run at once");
    assert!(state.refused > 0 && state.walls == WALLS.len());
    // Each answer that was told is charged what it cost, and what was under way at the kill at its bound.
    let settled = |wanted: &dyn Fn(&str) -> bool| {
        let settled = events.iter().filter(|event| kind(event) == "request_settled");
        let settled = settled.filter(|event| event["kind"]["ending"].as_str().is_some_and(wanted));
        let costs =
            settled.map(|event| event["kind"]["cost"]["meteredUsd"].as_f64().unwrap_or(0.0));
        costs.collect::<Vec<f64>>()
    };
    let answered = settled(&|ending| ending == "answered");
    assert!(answered.iter().all(|cost| (cost - 0.000105).abs() < 1e-9), "{answered:?}");
    let of_service = service.answered.load(Ordering::SeqCst) as usize;
    assert!(answered.len() <= of_service && answered.len() + 8 >= of_service, "{of_service}");
    let all: f64 = settled(&|_| true).iter().sum();
    assert!(all <= 0.2, "{all}");
    place.run(&["audit", "last"]).expect_code(0);
}
