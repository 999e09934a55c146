//! Keys, as the screen knows them.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those on the keys")]
pub enum Key {
    /// A character.
    Char(char),
    /// A character together with Ctrl.
    Control(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}
