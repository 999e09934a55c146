//! Declarations of files: the variants of enums with their documentation, errors with their texts, texts by variant, and numbers.

use std::collections::BTreeMap;

use super::placeholders::placeholder;
use crate::regenerate::tokens::Token;

/// The variants of an enum with what is said of each.
pub(super) fn variants(tokens: &[Token], name: &str) -> Vec<(String, String)> {
    let Some(start) =
        tokens.windows(2).position(|pair| pair[0].is_word("enum") && pair[1].is_word(name))
    else {
        return Vec::new();
    };
    let mut depth = 0;
    let mut docs: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for token in &tokens[start + 2..] {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            Token::Doc(doc) if depth == 1 => docs.push(doc),
            Token::Word(word) if depth == 1 && word.starts_with(char::is_uppercase) => {
                found.push((word.clone(), std::mem::take(&mut docs).join(" ")));
            }
            _ => {}
        }
        if depth == 0 && *token == Token::Sign('}') {
            break;
        }
    }
    found
}

/// The errors with a text that a file declares: type, variant, what is said of it, and the text. A type that is one error has no variant.
pub(super) fn thrown(tokens: &[Token]) -> Vec<(String, String, String, String)> {
    let mut found = Vec::new();
    let (mut of, mut docs, mut text) = (String::new(), Vec::new(), None);
    for (at, token) in tokens.iter().enumerate() {
        let next = |ahead: usize| tokens.get(at + ahead);
        match token {
            Token::Word(word) if word == "enum" => {
                of = next(1).map(shown).unwrap_or_default();
                docs.clear();
            }
            Token::Word(word) if word == "struct" => {
                of = String::new();
                if let (Some(text), Some(Token::Word(name))) = (text.take(), next(1)) {
                    let text = with_fields(text, &tokens[at + 2..]);
                    found.push((name.clone(), String::new(), docs.join(" "), text));
                }
            }
            Token::Doc(doc) if text.is_none() => {
                if !matches!(at.checked_sub(1).map(|at| &tokens[at]), Some(Token::Doc(_))) {
                    docs.clear();
                }
                docs.push(doc.clone());
            }
            Token::Word(word)
                if word == "error"
                    && matches!(next(1), Some(Token::Sign('(')))
                    && at > 1
                    && tokens[at - 1] == Token::Sign('[') =>
            {
                if let Some(Token::Text(said)) = next(2) {
                    text = Some(said.clone());
                }
            }
            Token::Word(word)
                if word.starts_with(char::is_uppercase)
                    && at > 0
                    && matches!(tokens[at - 1], Token::Sign(']')) =>
            {
                if let (Some(text), false) = (text.take(), of.is_empty()) {
                    let text = with_fields(text, &tokens[at + 1..]);
                    found.push((of.clone(), word.clone(), docs.join(" "), text));
                }
            }
            _ => {}
        }
    }
    found
}

/// The texts that a file makes of its own, outside of its tests.
pub(super) fn made(tokens: &[Token]) -> Vec<String> {
    let is_beginning = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '`');
    let is_made = |three: &&[Token]| match (&three[0], &three[1], &three[2]) {
        (before, Token::Sign('('), Token::Text(text)) => {
            !before.is_word("expect") && text.contains(' ') && is_beginning(text)
        }
        _ => false,
    };
    let end = tokens.iter().position(|token| token.is_word("mod"));
    let own = &tokens[..end.unwrap_or(tokens.len())];
    own.windows(3).filter(is_made).map(|three| shown(&three[2])).collect()
}

/// The text with the types of the unnamed fields of its variant in the place of their numbers.
fn with_fields(mut text: String, tokens: &[Token]) -> String {
    if tokens.first() != Some(&Token::Sign('(')) {
        return text;
    }
    let fields = &tokens[1..group(tokens) - 1];
    for (number, field) in fields.split(|token| *token == Token::Sign(',')).enumerate() {
        let mut names = field.iter().filter_map(|token| match token {
            Token::Word(word) if word.starts_with(char::is_uppercase) => Some(word.as_str()),
            _ => None,
        });
        let name = match names.next_back() {
            Some("String") | None => "text".to_owned(),
            Some(name) => snake(name),
        };
        text = text.replace(&format!("{{{number}}}"), &placeholder(&name));
    }
    text
}

/// The texts in the arms of a function of a type, by the variants of `Self` before them.
pub(super) fn arms(tokens: &[Token], of: &str, function: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut subject = false;
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is_word("impl") {
            let head = tokens[at..].iter().take_while(|token| **token != Token::Sign('{'));
            subject = head
                .filter(|token| matches!(token, Token::Word(_)))
                .last()
                .is_some_and(|last| last.is_word(of));
        }
        let is_here = subject
            && tokens[at].is_word("fn")
            && tokens.get(at + 1).is_some_and(|name| name.is_word(function));
        at += 1;
        if !is_here {
            continue;
        }
        let body = body(&tokens[at..]);
        let (mut variants, mut is_value): (Vec<String>, bool) = (Vec::new(), false);
        for (at, token) in body.iter().enumerate() {
            match token {
                Token::Word(word)
                    if (word == "Self" || word == of)
                        && body.get(at + 1) == Some(&Token::Sign(':')) =>
                {
                    if is_value {
                        (variants, is_value) = (Vec::new(), false);
                    }
                    variants.extend(body.get(at + 3).map(shown));
                }
                Token::Sign('>') if at > 0 && body[at - 1] == Token::Sign('=') => is_value = true,
                Token::Text(text) if is_value && is_said(text) => {
                    for variant in &variants {
                        found.entry(variant.clone()).or_default().push(text.clone());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// True of a text, and not of a word that is compared or of a mark between two parts.
fn is_said(text: &str) -> bool {
    text.trim().contains(' ') || text == "completed"
}

/// The tokens between the next pair of braces.
pub(super) fn body(tokens: &[Token]) -> &[Token] {
    let Some(start) = tokens.iter().position(|token| *token == Token::Sign('{')) else {
        return &[];
    };
    &tokens[start..start + group(&tokens[start..])]
}

/// The number of tokens of a group in brackets that begins here.
pub(super) fn group(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The file with the texts of its constants in their place.
pub(super) fn with_constants(tokens: Vec<Token>) -> Vec<Token> {
    let mut constants = BTreeMap::new();
    for (at, pair) in tokens.windows(2).enumerate().filter(|(_, pair)| pair[0].is_word("const")) {
        let value = tokens[at..].iter().take_while(|token| **token != Token::Sign(';'));
        let mut value = value.filter(|token| matches!(token, Token::Text(_)));
        if let (Some(only), None) = (value.next(), value.next()) {
            constants.insert(shown(&pair[1]), shown(only));
        }
    }
    let replaced = tokens.into_iter().map(|token| match token {
        Token::Word(name) => match constants.get(&name) {
            Some(text) => Token::Text(text.clone()),
            None => Token::Word(name),
        },
        Token::Text(text) if text.contains('{') => Token::Text(
            constants
                .iter()
                .fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value)),
        ),
        other => other,
    });
    replaced.collect()
}

/// The numbers of an enum.
pub(super) fn numbers(tokens: &[Token]) -> BTreeMap<String, String> {
    let is_number = |three: &&[Token]| {
        three[1] == Token::Sign('=') && shown(&three[2]).starts_with(|c: char| c.is_ascii_digit())
    };
    let pairs = tokens.windows(3).filter(is_number);
    pairs.map(|three| (shown(&three[0]), shown(&three[2]))).collect()
}

/// The exit codes of reasons.
pub(super) fn exits_of(
    tokens: &[Token],
    exits: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let Some(at) =
        tokens.windows(2).position(|pair| pair[0].is_word("fn") && pair[1].is_word("exit_of"))
    else {
        return BTreeMap::new();
    };
    let mut open = Vec::new();
    let mut found = BTreeMap::new();
    let body = body(&tokens[at..]);
    for (at, token) in body.iter().enumerate() {
        match token {
            Token::Text(text) => open.push(text.clone()),
            Token::Word(word) if word == "Exit" => {
                let exit = body.get(at + 3).and_then(|exit| exits.get(&shown(exit)));
                found.extend(
                    open.drain(..).zip(std::iter::repeat(exit.cloned().unwrap_or_default())),
                );
            }
            _ => {}
        }
    }
    found
}

pub(super) fn shown(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Text(text) | Token::Doc(text) => text.clone(),
        Token::Sign(sign) => sign.to_string(),
    }
}

/// The word of a variant, as in JSON.
pub(super) fn snake(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(c.to_lowercase());
    }
    word
}
