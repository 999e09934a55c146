//! The lines of a log.
//!
//! Messages are made once and drawn from for every line, so that a line costs two copies and a few
//! digits: fast even without optimisation, which is how chores are built.

use super::random::Random;

/// An upper bound for the length of a line, in bytes.
pub(super) const LONGEST: usize = 80 << 10;

/// Enough that a log of a gigabyte does not look repeated, few enough to stay in the cache.
const MESSAGES: usize = 16_384;

const SERVICES: &[&str] = &["api", "auth", "billing", "catalog", "gateway", "mailer", "worker"];
const PATHS: &[&str] =
    &["/v1/orders", "/v1/users", "/login", "/search", "/assets/app.js", "/healthz"];
const CAUSES: &[&str] = &[
    "connection reset by peer",
    "deadline exceeded",
    "no space left on device",
    "unexpected end of stream",
    "deadlock detected",
];
const NAMES: &[&str] = &["ada", "grace", "Zoë", "Łukasz", "数据", "José", "Ørjan", "Дмитрий", "🦀"];

/// An endless log.
pub(super) struct Lines {
    random: Random,
    messages: Vec<Message>,
    clock: Clock,
}

struct Message {
    /// The rest of a line behind the time, with its newline.
    text: Box<[u8]>,
    is_error: bool,
}

impl Lines {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let messages = (0..MESSAGES).map(|_| Message::new(&mut random)).collect();
        Self { random, messages, clock: Clock::new() }
    }

    /// Appends the next line and says whether it is one with `ERROR`.
    pub(super) fn push_next(&mut self, buffer: &mut Vec<u8>) -> bool {
        let drawn = self.random.next();
        self.clock.advance(((drawn >> 32) % 8) as u16);
        let message = &self.messages[drawn as usize % MESSAGES];
        buffer.extend_from_slice(&self.clock.text);
        buffer.extend_from_slice(&message.text);
        message.is_error
    }
}

impl Message {
    /// About 2 % errors, 6 % warnings; one in a thousand is long, as a dump of a request is.
    fn new(random: &mut Random) -> Self {
        let service = random.pick(SERVICES);
        let (level, words) = match random.below(100) {
            0..2 => ("ERROR", error(random)),
            2..8 => {
                ("WARN", format!("slow query: {} ms, table {}", 200 + random.below(5_000), service))
            }
            8..28 => ("DEBUG", format!("cache miss key={:016x}", random.next())),
            _ => ("INFO", request(random)),
        };
        let mut text = format!(" {level:<5} {service}[{}]: {words}", 100 + random.below(900));
        if random.below(1_000) == 0 {
            let length = 4_096 + random.below(60 << 10) as usize;
            text.push_str(" body=");
            while text.len() < length {
                text.push_str(&format!("{:016x}", random.next()));
            }
        }
        text.push('\n');
        Self { text: text.into_bytes().into(), is_error: level == "ERROR" }
    }
}

fn error(random: &mut Random) -> String {
    let (cause, path) = (random.pick(CAUSES), random.pick(PATHS));
    format!(
        "{path} failed: {cause} (attempt {}, request {:016x})",
        1 + random.below(5),
        random.next()
    )
}

fn request(random: &mut Random) -> String {
    let method = random.pick(&["GET", "GET", "GET", "POST", "PUT"]);
    let (path, user) = (random.pick(PATHS), random.pick(NAMES));
    let status = random.pick(&["200", "200", "200", "201", "304", "404"]);
    let (id, bytes, took) = (random.below(1_000_000), random.below(200_000), random.below(900));
    format!(
        "{method} {path}/{id} {status} {bytes}B {took}ms user=\"{user}\" trace={:016x}",
        random.next()
    )
}

/// The time at the beginning of a line, kept as the text that it is written as.
struct Clock {
    text: [u8; 24],
    milliseconds: u16,
    seconds_of_day: u32,
    day: u8,
    month: u8,
    year: u16,
}

impl Clock {
    fn new() -> Self {
        let start = *b"2026-01-01T00:00:00.000Z";
        Self { text: start, milliseconds: 0, seconds_of_day: 0, day: 1, month: 1, year: 2026 }
    }

    /// Goes on by less than a second.
    fn advance(&mut self, milliseconds: u16) {
        self.milliseconds += milliseconds;
        if self.milliseconds >= 1_000 {
            self.milliseconds -= 1_000;
            self.next_second();
        }
        self.put(20, 3, self.milliseconds.into());
    }

    fn next_second(&mut self) {
        self.seconds_of_day += 1;
        if self.seconds_of_day == 86_400 {
            self.seconds_of_day = 0;
            self.next_day();
        }
        self.put(11, 2, self.seconds_of_day / 3_600);
        self.put(14, 2, self.seconds_of_day / 60 % 60);
        self.put(17, 2, self.seconds_of_day % 60);
    }

    fn next_day(&mut self) {
        let leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let last = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.day += 1;
        if self.day > last {
            (self.day, self.month) = (1, self.month + 1);
        }
        if self.month > 12 {
            (self.month, self.year) = (1, self.year + 1);
        }
        self.put(0, 4, self.year.into());
        self.put(5, 2, self.month.into());
        self.put(8, 2, self.day.into());
    }

    /// Writes a number with leading zeros.
    fn put(&mut self, at: usize, width: usize, mut number: u32) {
        for place in (at..at + width).rev() {
            self.text[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_line_is_bounded() {
        for seed in 0..4 {
            let longest = Lines::new(seed).messages.iter().map(|m| m.text.len()).max().unwrap();
            assert!(longest + 24 <= LONGEST, "{longest}");
        }
    }

    #[test]
    fn the_clock_carries() {
        #[track_caller]
        fn check(days: u32, seconds: u32, milliseconds: u16, expected: &str) {
            let mut clock = Clock::new();
            (0..days).for_each(|_| clock.next_day());
            (0..seconds).for_each(|_| clock.next_second());
            clock.advance(milliseconds);
            assert_eq!(str::from_utf8(&clock.text), Ok(expected));
        }
        check(0, 0, 7, "2026-01-01T00:00:00.007Z");
        check(0, 3_661, 999, "2026-01-01T01:01:01.999Z");
        check(0, 86_400, 0, "2026-01-02T00:00:00.000Z");
        check(59, 0, 0, "2026-03-01T00:00:00.000Z");
        check(365, 0, 0, "2027-01-01T00:00:00.000Z");
        check(365 * 2 + 59, 0, 0, "2028-02-29T00:00:00.000Z");
    }
}
