//! Ways to treat the door of one's supervisor: plainly, as any language could, and badly.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::act::{bad, number};

/// A line that no server would keep in memory whole has this much of the letter x at a time.
const BLOCK: usize = 64 * 1024;

/// What the door was asked, or how it was treated.
pub(crate) fn knock(
    how: &str,
    args: &mut impl Iterator<Item = OsString>,
) -> io::Result<Option<String>> {
    let mut text = || {
        let text = args.next().and_then(|text| text.into_string().ok());
        text.ok_or_else(|| bad("a text is missing"))
    };
    match how {
        "ask" => {
            let mut door = Door::open()?;
            door.say(&request(&text()?, &text()?))?;
            door.line().map(Some)
        }
        "ask-and-go" => {
            Door::open()?.say(&request(&text()?, &text()?))?;
            Ok(None)
        }
        "say" => {
            let mut door = Door::connect()?;
            door.say(&text()?)?;
            door.line().map(Some)
        }
        "flood-door" => {
            let mut door = Door::open()?;
            let block = [b'x'; BLOCK];
            let mut left: usize = number(args.next())?;
            while left > 0 {
                // The server reads no further than its bound, and says so.
                let length = left.min(BLOCK);
                if door.stream.get_mut().write_all(&block[..length]).is_err() {
                    break;
                }
                left -= length;
            }
            door.line().map(|line| Some(format!("{line} and {left} bytes were not taken")))
        }
        "crowd" => {
            let mut doors = Vec::new();
            let mut refused = 0;
            for _ in 0..number::<u32>(args.next())? {
                match Door::open() {
                    Ok(door) => doors.push(door),
                    Err(_) => refused += 1,
                }
            }
            let welcome = doors.len();
            // They stay open until this process ends.
            std::mem::forget(doors);
            Ok(Some(format!("{welcome} {refused}")))
        }
        other => Err(bad(&format!("no way to knock: {other}"))),
    }
}

struct Door {
    stream: BufReader<UnixStream>,
}

impl Door {
    fn connect() -> io::Result<Self> {
        let socket = std::env::var_os("OFFSHOOT_SOCKET").ok_or_else(|| bad("there is no door"))?;
        Ok(Self { stream: BufReader::new(UnixStream::connect(socket)?) })
    }

    /// Connects, says hello and is welcomed.
    fn open() -> io::Result<Self> {
        let ticket =
            std::env::var_os("OFFSHOOT_TICKET").and_then(|ticket| ticket.into_string().ok());
        let ticket = ticket.map_or_else(|| "null".to_owned(), |ticket| format!("\"{ticket}\""));
        let mut door = Self::connect()?;
        door.say(&request("hello", &format!(r#"{{"protocol":1,"ticket":{ticket}}}"#)))?;
        let answer = door.line()?;
        match answer.contains("\"error\"") {
            false => Ok(door),
            true => Err(io::Error::other(answer)),
        }
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}
