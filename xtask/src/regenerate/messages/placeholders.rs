//! Placeholders of texts as words: `{}` has the name of the value that is put there.

use std::collections::BTreeMap;

use super::declared::{group, shown};
use crate::regenerate::tokens::Token;

/// The text in place of a value that has no name.
pub(super) const NAMELESS: &str = "{…}";

/// Words of an expression that do not say what its value is.
const SAY_NOTHING: [&str; 9] = ["self", "Self", "crate", "super", "mut", "ref", "as", "move", "it"];

/// The whole numbers of constants, by their names. A name with several values has none.
pub(super) fn number_constants<'a>(
    files: impl Iterator<Item = &'a [Token]>,
) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for tokens in files {
        for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.is_word("const")) {
            let mut value = tokens[at..].iter().take_while(|token| **token != Token::Sign(';'));
            let name = value.nth(1).map(shown).unwrap_or_default();
            let value: Vec<_> =
                value.skip_while(|token| **token != Token::Sign('=')).skip(1).collect();
            let [Token::Word(number)] = value[..] else { continue };
            if number.starts_with(|c: char| c.is_ascii_digit()) {
                let number = Some(number.replace('_', ","));
                found
                    .entry(name)
                    .and_modify(|known| {
                        if *known != number {
                            *known = None;
                        }
                    })
                    .or_insert(number);
            }
        }
    }
    found
}

/// The file with words in the placeholders of its texts.
pub(super) fn named(tokens: Vec<Token>, numbers: &BTreeMap<String, Option<String>>) -> Vec<Token> {
    let name = |(at, token): (usize, &Token)| match token {
        Token::Text(text) if text.contains('{') => {
            Token::Text(filled(text, &positional(&tokens[at + 1..]), numbers))
        }
        other => other.clone(),
    };
    tokens.iter().enumerate().map(name).collect()
}

/// The values behind a text, without those that have a name there.
fn positional(tokens: &[Token]) -> Vec<&[Token]> {
    let mut found = Vec::new();
    let mut at = 0;
    while tokens.get(at) == Some(&Token::Sign(',')) {
        let begin = at + 1;
        at = begin;
        while at < tokens.len() && !matches!(tokens[at], Token::Sign(',' | ')' | ']' | '}' | ';')) {
            at += match tokens[at] {
                Token::Sign('(' | '[' | '{') => group(&tokens[at..]),
                _ => 1,
            };
        }
        let value = &tokens[begin..at.min(tokens.len())];
        let is_named = matches!(value, [Token::Word(_), Token::Sign('='), next, ..] if *next != Token::Sign('='));
        if !value.is_empty() && !is_named {
            found.push(value);
        }
    }
    found
}

/// The text with words in its placeholders. What stands between braces and is no name stays.
fn filled(text: &str, values: &[&[Token]], numbers: &BTreeMap<String, Option<String>>) -> String {
    let mut values = values.iter();
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            out.push('{');
            rest = after;
            continue;
        }
        let Some(end) = rest.find('}') else {
            out.push('{');
            continue;
        };
        let inside = &rest[..end];
        let name = inside.split(':').next().unwrap_or_default();
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            out.push('{');
            continue;
        }
        rest = &rest[end + 1..];
        if name.is_empty() {
            out.push_str(&values.next().map_or_else(|| NAMELESS.to_owned(), |it| name_of(it)));
        } else if let Some(Some(number)) = numbers.get(name) {
            out.push_str(number);
        } else {
            out.push_str(&placeholder(name));
        }
    }
    out.push_str(rest);
    out.replace("}}", "}")
}

/// The placeholder for the value of an expression: what it begins with, or the field of that.
fn name_of(value: &[Token]) -> String {
    let word = |at: usize| match value.get(at) {
        Some(Token::Word(word)) => Some(word.as_str()),
        _ => None,
    };
    let is_sign = |at: usize, sign: char| value.get(at) == Some(&Token::Sign(sign));
    let is_value = |at: usize| {
        word(at).is_some_and(|word| {
            word.starts_with(|c: char| c.is_lowercase()) && !SAY_NOTHING.contains(&word)
        }) && !is_sign(at + 1, '(')
            && !is_sign(at + 1, ':')
            && !is_sign(at + 1, '!')
    };
    let Some(mut at) = (0..value.len()).find(|&at| is_value(at)) else {
        return NAMELESS.to_owned();
    };
    while is_sign(at + 1, '.') && is_value(at + 2) {
        at += 2;
    }
    placeholder(word(at).unwrap_or_default())
}

/// The placeholder of this name.
pub(super) fn placeholder(name: &str) -> String {
    format!("{{{}}}", name.to_lowercase().replace('_', " ").trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regenerate::tokens::tokens;

    #[test]
    fn a_placeholder_has_the_name_of_its_value() {
        let numbers = [("MOST".to_owned(), Some("64".to_owned()))].into();
        for (code, expected) in [
            (
                "format!(\"cannot read {}: {}\", self.path.display(), plain(error))",
                "cannot read {path}: {error}",
            ),
            ("f(\"a {name:?} of {run_id}\")", "a {name} of {run id}"),
            (
                "f(\"{}, {} more\", names.join(\", \"), count(paths.len() as u64))",
                "{names}, {paths} more",
            ),
            ("f(\"at most {MOST} and {OTHER_MOST}\")", "at most 64 and {other most}"),
            ("f(\"a {{literal}} and {}\", x.y.z)", "a {literal} and {z}"),
            ("f(\"{}\", 3)", "{…}"),
            ("f(\"`{\\\"file\\\": …}`\")", "`{\"file\": …}`"),
            ("f(\"{one} {}\", one = two.three, four)", "{one} {four}"),
        ] {
            let found = named(tokens(code), &numbers);
            let text = found.iter().find_map(|token| match token {
                Token::Text(text) => Some(text.clone()),
                _ => None,
            });
            assert_eq!(text.as_deref(), Some(expected), "{code}");
        }
    }

    #[test]
    fn a_constant_with_two_values_has_none() {
        let files =
            [tokens("const A: u8 = 1; const B: usize = 16_384;"), tokens("const A: u8 = 2;")];
        let found = number_constants(files.iter().map(Vec::as_slice));
        assert_eq!(found["A"], None);
        assert_eq!(found["B"].as_deref(), Some("16,384"));
    }
}
