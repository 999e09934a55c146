//! The tokens of a Rust file, as far as a search for messages needs them.

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, a word of the language or a number.
    Word(String),
    /// A string, as it is printed.
    Text(String),
    /// A line of documentation.
    Doc(String),
    /// A single character of punctuation.
    Sign(char),
}

impl Token {
    /// True of this word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(it) if it == word)
    }
}

/// Reads a file up to its tests.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some(line) = rest.strip_prefix("//") {
            let end = line.find('\n').unwrap_or(line.len());
            if let Some(doc) = line[..end].strip_prefix('/') {
                found.push(Token::Doc(doc.trim().to_owned()));
            }
            rest = &line[end..];
        } else if let Some((string, after)) = string(rest) {
            found.push(Token::Text(string));
            rest = after;
        } else if first == '\'' {
            rest = after_quote(rest);
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            if !first.is_whitespace() {
                found.push(Token::Sign(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

/// A string at the beginning of the text, and what follows it.
fn string(text: &str) -> Option<(String, &str)> {
    let bare = text.strip_prefix('b').unwrap_or(text);
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(body) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let at = body.find(&end)?;
            return Some((body[..at].to_owned(), &body[at + end.len()..]));
        }
    }
    let body = bare.strip_prefix('"')?;
    let mut string = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((string, &body[at + 1..])),
            '\\' => match chars.next()?.1 {
                // The next line goes on with its first word.
                '\n' => {
                    let left = chars.as_str();
                    let blanks = left.len() - left.trim_start().len();
                    chars.by_ref().take(blanks).for_each(drop);
                }
                'n' => string.push('\n'),
                other => string.push(other),
            },
            c => string.push(c),
        }
    }
    None
}

/// The text after a character or the mark of a lifetime.
fn after_quote(text: &str) -> &str {
    let mut chars = text[1..].char_indices();
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some((_, '\\')), _) => {
            let end = text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'');
            end.map_or("", |(at, _)| &text[2 + at + 1..])
        }
        (Some(_), Some((at, '\''))) => &text[1 + at + 1..],
        _ => &text[1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_comments_and_characters_are_told_apart() {
        let text = "/// Says.\nfn a<'a>(x: &'a str) { b(\"c \\\"d\\\" \\\n   e\", r#\"\"f\"\"#, '\"', '\\'') } // \"g\"\n";
        let found = tokens(text);
        let texts: Vec<_> = found
            .iter()
            .filter_map(|it| if let Token::Text(text) = it { Some(&**text) } else { None })
            .collect();
        assert_eq!(texts, ["c \"d\" e", "\"f\""]);
        assert_eq!(found[0], Token::Doc("Says.".to_owned()));
        assert!(found.last().is_some_and(|last| *last == Token::Sign('}')));
    }
}
