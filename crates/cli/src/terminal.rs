//! The whole terminal as a screen, given back as it was on every way out.
//!
//! ```text
//!   screen ─▶ what has changed, in memory ─▶ thread ─▶ terminal
//!     ▲                                        │
//!     └────────────── it is drawn ─────────────┘
//! ```
//!
//! Promise: a terminal that is not read holds up its thread alone. One picture at a time is on the way, and the next one has what
//! happened meanwhile. Giving the terminal back waits less than a second for such a terminal.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anstream::ColorChoice;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use data_encoding::BASE64;
use futures_util::StreamExt;
use offshoot_watch::{Key, Screen, Theme, draw};
use parking_lot::Mutex;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{QueueSelector, tcflush, ttyname};
use tokio::sync::mpsc::{self, Receiver};

use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::log::has_room;

/// The terminal of this process, while a screen is drawn on it.
pub(crate) struct Terminal {
    drawn: ratatui::Terminal<CrosstermBackend<Bytes>>,
    /// The bytes that are written with the next picture.
    bytes: Bytes,
    /// All is to be drawn anew, not what has changed alone.
    is_stale: bool,
    /// The thread that writes. It has one picture at most.
    writer: SyncSender<Vec<u8>>,
    /// The pictures that it has written.
    written: Receiver<()>,
    is_writing: bool,
    keys: EventStream,
    theme: Theme,
}

/// The bytes of a picture, while it is made.
#[derive(Clone, Debug, Default)]
struct Bytes(Rc<RefCell<Vec<u8>>>);

/// A sign from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// A key.
    Key(Key),
    /// A key without a meaning, or another size.
    Nothing,
    /// The last picture is on the terminal: it takes the next one.
    Drawn,
    /// The terminal has gone.
    End,
}

/// True while the terminal is ours.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while a part of a picture is written, not while a part waits for room.
static WRITING: Mutex<()> = Mutex::new(());

/// Bytes that a terminal with room takes without delay, also where it was not opened a second time: Linux makes room in its buffer
/// by this size.
const PART: usize = 256;

/// The time for which a part that is being written is waited for when the terminal is given back.
const PATIENCE: Duration = Duration::from_millis(300);

/// True if this process writes its messages, and so a log without a file, to a terminal.
pub(crate) fn has_messages() -> bool {
    io::stderr().is_terminal()
}

/// True if this process reads from a terminal and writes to one.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Terminal {
    /// Takes the terminal. It is given back when this is dropped, and when a thread of this process panics.
    pub(crate) fn open() -> Result<Self, Failure> {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
        let mut bytes = Bytes::default();
        let theme = match anstream::stdout().current_choice() {
            ColorChoice::Never => Theme::Plain,
            _ => Theme::Colour,
        };
        let drawn = ratatui::Terminal::new(CrosstermBackend::new(bytes.clone())).map_err(failed)?;
        let (writer, written) = start_writer().map_err(failed)?;
        take(&mut bytes).map_err(failed)?;
        Ok(Self {
            drawn,
            bytes,
            is_stale: false,
            writer,
            written,
            is_writing: false,
            keys: EventStream::new(),
            theme,
        })
    }

    /// True if the terminal takes a picture.
    pub(crate) const fn is_ready(&self) -> bool {
        !self.is_writing
    }

    /// Draws what has changed. The end of that is told by [`Self::pressed`].
    pub(crate) fn draw(&mut self, screen: &mut Screen) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_stale) {
            // Not `clear`, which asks the terminal for the place of the cursor, and waits for the answer.
            let size = self.drawn.size().map_err(failed)?;
            self.drawn.resize(Rect::from(size)).map_err(failed)?;
        }
        self.drawn.draw(|frame| draw(screen, self.theme, frame)).map_err(failed)?;
        // Where the thread has ended, the next sign says so.
        let _ = self.writer.send(self.bytes.0.take());
        self.is_writing = true;
        Ok(())
    }

    /// Forgets what was drawn: the next picture is drawn anew.
    pub(crate) const fn redraw(&mut self) {
        self.is_stale = true;
    }

    /// Waits for a key, or until the last picture is drawn.
    pub(crate) async fn pressed(&mut self) -> Pressed {
        let pressed = tokio::select! {
            written = self.written.recv() => {
                self.is_writing = false;
                return written.map_or(Pressed::End, |()| Pressed::Drawn);
            }
            pressed = self.keys.next() => pressed,
        };
        match pressed {
            Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                self::key(key.code, control).map_or(Pressed::Nothing, Pressed::Key)
            }
            Some(Ok(_)) => Pressed::Nothing,
            Some(Err(_)) | None => Pressed::End,
        }
    }

    /// Gives the terminal back to the shell, and stops this process until it is continued.
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        give_back();
        // Not the signal of Ctrl-Z, which this process listens to.
        kill_process(getpid(), Signal::STOP).map_err(|error| failed(error.into()))?;
        take(&mut self.bytes).map_err(failed)?;
        self.redraw();
        Ok(())
    }

    /// Puts a text on the clipboard of the terminal, with the next picture. Terminals that cannot do that pass over it.
    pub(crate) fn copy(&mut self, text: &str) {
        let text = format!("\x1b]52;c;{}\x07", BASE64.encode(text.as_bytes()));
        self.bytes.0.borrow_mut().extend_from_slice(text.as_bytes());
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal; the screen is changed to with the next picture.
fn take(bytes: &mut Bytes) -> io::Result<()> {
    enable_raw_mode()?;
    IS_TAKEN.store(true, Ordering::Relaxed);
    queue!(bytes, EnterAlternateScreen, Hide)
}

/// Starts the thread that writes to the terminal. It ends when the terminal has gone or nothing can come any more; where the
/// terminal is not read, with the process.
fn start_writer() -> io::Result<(SyncSender<Vec<u8>>, Receiver<()>)> {
    let terminal = own_descriptor()?;
    let (writer, pictures) = sync_channel::<Vec<u8>>(1);
    let (tx, written) = mpsc::channel(1);
    let write = move || {
        for picture in pictures {
            for part in picture.chunks(PART) {
                if write_part(&terminal, part).is_err() {
                    return;
                }
            }
            if tx.blocking_send(()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("terminal".to_owned()).spawn(write)?;
    Ok((writer, written))
}

/// Opens the terminal once more, so that a write that finds no room returns: the descriptor of standard output is shared with the
/// shell, whose writes must wait. Where the terminal has no name here, standard output itself is used.
fn own_descriptor() -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened =
        ttyname(io::stdout(), Vec::new()).and_then(|name| open(name, flags, Mode::empty()));
    match opened {
        Ok(opened) => Ok(File::from(opened)),
        Err(_) => Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
    }
}

/// Writes a part of a picture as the terminal takes it, unless the terminal was given back: a picture must not stand on it then.
fn write_part(terminal: &File, mut part: &[u8]) -> rustix::io::Result<()> {
    while !part.is_empty() {
        retry_on_intr(|| poll(&mut [PollFd::new(terminal, PollFlags::OUT)], None))?;
        let _writing = WRITING.lock();
        if !IS_TAKEN.load(Ordering::Relaxed) {
            return Ok(());
        }
        match retry_on_intr(|| rustix::io::write(terminal, part)) {
            Ok(written) => part = &part[written..],
            // Another process has written in between. The lock is free while room is waited for.
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives back the terminal, where it was taken. A terminal that has gone needs nothing.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        if !leave() {
            // What the terminal has not taken yet belongs to a screen that is left. Without it there is room again.
            let _ = tcflush(io::stdout(), QueueSelector::OFlush);
            leave();
        }
        let _ = disable_raw_mode();
    }
}

/// Leaves the screen, and returns false if the terminal does not take that.
fn leave() -> bool {
    let Some(_writing) = WRITING.try_lock_for(PATIENCE) else { return false };
    has_room(io::stdout().as_fd(), true)
        && execute!(io::stdout(), LeaveAlternateScreen, Show).is_ok()
}

/// The failure where the terminal of `watch` cannot be used.
fn failed(error: io::Error) -> Failure {
    Failure::new(FailureCode::CannotDraw, Exit::BadInput, "cannot use the terminal")
        .caused_by(Some(&error))
        .hint("`offshoot tree RUN` prints the tree once, `offshoot events -f RUN` what happens")
}

fn key(code: KeyCode, control: bool) -> Option<Key> {
    Some(match code {
        KeyCode::Char(char) if control => Key::Control(char.to_ascii_lowercase()),
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
