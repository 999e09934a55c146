//! Text that agents wrote, made harmless for a terminal.
//!
//! A label, a line of progress or an error message may hold escape sequences that move the cursor, set the window's
//! title or hide what follows. Nothing of the kind reaches the screen; what was there stays visible.

use std::borrow::Cow;

/// The most characters of one text that are shown in one line.
const LONGEST: usize = 200;

/// The text in one line, at most 200 characters: white space of all kinds is a space, control characters are their
/// pictures (`␛`), and what would turn or hide text is `␦`.
pub fn line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.len() <= LONGEST && !text.chars().any(|char| char != ' ' && harmful(char)) {
        return Cow::Borrowed(text);
    }
    let mut words = text.split_whitespace();
    let mut safe: String = words.next().unwrap_or_default().chars().map(picture).collect();
    for word in words {
        safe.push(' ');
        safe.extend(word.chars().map(picture));
    }
    if let Some((cut, _)) = safe.char_indices().nth(LONGEST) {
        safe.truncate(cut);
        safe.push('…');
    }
    Cow::Owned(safe)
}

/// The text with its lines, and with tabs, each line made harmless.
pub fn block(text: &str) -> String {
    let keep = |char| matches!(char, '\n' | '\t');
    text.replace("\r\n", "\n")
        .chars()
        .map(|char| if keep(char) { char } else { picture(char) })
        .collect()
}

fn picture(char: char) -> char {
    match char {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(char)).unwrap_or('␦'),
        '\x7f' => '\u{2421}',
        char if harmful(char) => '␦',
        char => char,
    }
}

/// C0, DEL and C1; marks, embeddings, overrides and isolates of writing direction; separators that are line ends to
/// some; characters without width, in which text hides.
const fn harmful(char: char) -> bool {
    matches!(char,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_a_cursor() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected, "{text:?}");
        check("", "");
        check("plain ä 日本 🦀", "plain ä 日本 🦀");
        check("red\x1b[31m", "red␛[31m");
        check("title\x1b]0;x\x07", "title␛]0;x␇");
        check(" a\r\nb\tc \n", "a b c");
        check("\u{9b}2J\u{202e}abc\x7f", "␦2J␦abc␡");
        check("a\u{200b}b\u{2066}c\u{feff}", "a␦b␦c␦");
        // Joined emoji and marks of scripts stay whole.
        check("👩\u{200d}🚀 नि", "👩\u{200d}🚀 नि");
        check(&"x".repeat(200), &"x".repeat(200));
        check(&"é".repeat(201), &format!("{}…", "é".repeat(200)));
        assert_eq!(block("a\r\n\tb\x1b[2J\r\n"), "a\n\tb␛[2J\n");
    }

    #[test]
    fn every_character_is_safe_or_replaced() {
        for char in (0..=0x0010_ffff).filter_map(char::from_u32) {
            let text = char.to_string();
            assert!(!line(&text).chars().any(char::is_control), "{char:?}");
            assert!(!block(&text).chars().any(|char| char.is_control() && !"\n\t".contains(char)));
        }
    }
}
