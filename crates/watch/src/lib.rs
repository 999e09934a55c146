//! The live screen of a tree: what is on it, and what a key means.
//!
//! ```text
//!  events, silences, words of agents ──┐                 ┌──▶ draw    a picture, of any size
//!  keys ───────────────────────────────┼──▶ Screen ──────┤
//!  the time, once a second ────────────┘    (pure)       └──▶ Intent  what the operator wants done
//! ```
//!
//! Promise: the same events, keys and moments give the same picture. A picture takes as long as it has lines: of a tree of ten
//! thousand runs only those that are seen are drawn. Nothing an agent wrote moves a cursor. Each colour can be read on a light and on a
//! dark ground, and no colour says what is not said in words too.
//!
//! ```
//! use offshoot_model::Timestamp;
//! use offshoot_watch::{Key, Screen, Theme, draw};
//! use ratatui::{Terminal, backend::TestBackend};
//!
//! let mut screen = Screen::new(Timestamp::EPOCH);
//! screen.key(Key::Char('?'));
//! let mut terminal = Terminal::new(TestBackend::new(80, 24))?;
//! terminal.draw(|frame| draw(&mut screen, Theme::Plain, frame))?;
//! assert!(terminal.backend().to_string().contains("cancel"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod detail;
mod draw;
mod filter;
mod history;
mod intent;
mod key;
mod keys;
mod mode;
mod order;
mod replay;
mod rows;
mod said;
mod screen;
mod theme;

pub use draw::draw;
pub use intent::Intent;
pub use key::Key;
pub use keys::KEYS;
pub use said::{News, Words};
pub use screen::Screen;
pub use theme::Theme;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
