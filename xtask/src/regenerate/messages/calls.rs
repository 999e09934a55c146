//! The calls that say something, with their codes, texts, hints and exit codes.
//!
//! A text stands in the call itself, or in what is handed to it: a value of the function around it, another function of the file,
//! or what is handed to the function around it.

use super::declared::{body, group, shown};
use crate::regenerate::tokens::Token;

/// Enums whose variants are looked for among the arguments of a call.
const ENUMS: [&str; 4] = ["RefusalCode", "FailureCode", "NoteCode", "Exit"];

/// A call with a text, where it stands.
pub(super) struct Call {
    pub(super) name: String,
    /// The variants of [`ENUMS`] among its arguments, by the name of their enum.
    codes: Vec<(String, String)>,
    pub(super) texts: Vec<String>,
    pub(super) hints: Vec<String>,
}

/// A function and where it stands in its file.
#[derive(Clone, Copy)]
struct Around<'a> {
    file: &'a [Token],
    begun: usize,
    name: &'a str,
}

impl Call {
    /// The variant of this enum that the call is given.
    pub(super) fn code(&self, of: &str) -> Option<&str> {
        self.codes.iter().find(|(name, _)| name == of).map(|(_, code)| &**code)
    }

    /// True of a call that is given a code of the command.
    pub(super) fn is_coded(&self) -> bool {
        self.code("FailureCode").or(self.code("NoteCode")).is_some()
    }

    /// The call as one that is given this variant.
    pub(super) fn with_code(mut self, of: &str, code: &str) -> Self {
        self.codes.push((of.to_owned(), code.to_owned()));
        self
    }

    /// The word for the kind of message.
    pub(super) fn kind(&self) -> &str {
        match &*self.name {
            name @ ("note" | "warning" | "hint") => name,
            _ => "error",
        }
    }
}

/// The calls of these functions and methods. A method is one of `receivers`.
pub(super) fn calls(tokens: &[Token], names: &[&str], receivers: &[&str]) -> Vec<Call> {
    let mut found = Vec::new();
    let mut around = Around { file: tokens, begun: 0, name: "" };
    for (at, token) in tokens.iter().enumerate() {
        if token.is_word("fn")
            && let Some(Token::Word(name)) = tokens.get(at + 1)
        {
            around = Around { begun: at, name, ..around };
        }
        let Some(name) = names.iter().find(|name| is_call(&tokens[at..], name)) else { continue };
        let is_method = !receivers.is_empty() && !name.contains(':');
        let is_received = at > 1
            && tokens[at - 1] == Token::Sign('.')
            && receivers.iter().any(|it| tokens[at - 2].is_word(it));
        if is_method && !is_received {
            continue;
        }
        let open = at + if name.contains(':') { 4 } else { 1 };
        let end = open + group(&tokens[open..]);
        let inside = &tokens[open..end];
        let (said, advice) = match *name {
            // A field comes before the text.
            "Refusal::invalid" => (after_comma(inside), None),
            // The last argument is the hint.
            "Complaint::new" => {
                let text = after_comma(inside);
                let hint = after_comma(text);
                (&text[..text.len() - hint.len()], Some(hint))
            }
            // A code, the text, the hint, and the key of a setting.
            "refuse" => {
                let text = after_comma(inside);
                let hint = after_comma(text);
                let key = after_comma(hint);
                (&text[..text.len() - hint.len()], Some(&hint[..hint.len() - key.len()]))
            }
            _ => (inside, None),
        };
        let advice = advice.map(|advice| around.said(at, advice, false)).unwrap_or_default();
        let codes = inside.windows(4).filter(|four| {
            ENUMS.iter().any(|it| four[0].is_word(it)) && four[1] == Token::Sign(':')
        });
        found.push(Call {
            name: (*name).to_owned(),
            codes: codes.map(|four| (shown(&four[0]), shown(&four[3]))).collect(),
            texts: match *name {
                "Failure::file" => verbs(said),
                _ => around.said(at, said, true),
            },
            hints: [advice, around.hints(end)].concat(),
        });
    }
    found
}

impl Around<'_> {
    /// The texts of arguments that end at a place of the file.
    fn said(self, at: usize, inside: &[Token], is_outer: bool) -> Vec<String> {
        let direct = texts(inside);
        if !direct.is_empty() {
            return direct;
        }
        let is_name = |token: &&Token| matches!(token, Token::Word(word) if word.starts_with(|c: char| c.is_lowercase()));
        for name in inside.iter().filter(is_name) {
            let found = self.given(at, name);
            let found = if found.is_empty() { self.returned(name) } else { found };
            if !found.is_empty() {
                return found;
            }
        }
        if is_outer { self.handed_over(inside) } else { Vec::new() }
    }

    /// The texts of the last value of this name before a place.
    fn given(self, at: usize, name: &Token) -> Vec<String> {
        let before = &self.file[self.begun..at];
        let is_it = |at: usize| {
            if !before[at].is_word("let") {
                return false;
            }
            let names = before[at + 1..].iter().take_while(|token| **token != Token::Sign('='));
            names.take(8).any(|token| token == name)
        };
        let Some(start) = (0..before.len()).rev().find(|&at| is_it(at)) else { return Vec::new() };
        let mut end = start;
        while end < before.len() && before[end] != Token::Sign(';') {
            end += match before[end] {
                Token::Sign('{' | '(' | '[') => group(&before[end..]),
                _ => 1,
            };
        }
        let statement = &before[start..end.min(before.len())];
        let direct = texts(statement);
        if !direct.is_empty() {
            return direct;
        }
        let mut names = statement.windows(2).filter(|pair| pair[1] == Token::Sign('('));
        names
            .find_map(|pair| Some(self.returned(&pair[0])).filter(|it| !it.is_empty()))
            .unwrap_or_default()
    }

    /// The texts in the function of this name.
    fn returned(self, name: &Token) -> Vec<String> {
        match name {
            Token::Word(name) => texts_of(self.file, name),
            _ => Vec::new(),
        }
    }

    /// The texts that are handed to the function around, where what is said is an argument of it.
    fn handed_over(self, inside: &[Token]) -> Vec<String> {
        let function = &self.file[self.begun..];
        let Some(open) = function.iter().position(|token| *token == Token::Sign('(')) else {
            return Vec::new();
        };
        let parameters = &function[open..open + group(&function[open..])];
        let is_parameter =
            |token: &&Token| matches!(token, Token::Word(_)) && parameters.contains(token);
        if inside.iter().find(is_parameter).is_none() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (at, pair) in self.file.windows(2).enumerate() {
            let is_call = pair[0].is_word(self.name) && pair[1] == Token::Sign('(');
            if is_call && (at == 0 || !self.file[at - 1].is_word("fn")) {
                found.extend(texts(&self.file[at + 1..][..group(&self.file[at + 1..])]));
            }
        }
        found
    }

    /// The hints that are added to what ends here.
    fn hints(self, mut at: usize) -> Vec<String> {
        let tokens = self.file;
        let mut found = Vec::new();
        loop {
            while matches!(tokens.get(at), Some(Token::Sign(')' | '}'))) {
                at += 1;
            }
            let is_added = tokens.get(at) == Some(&Token::Sign('.'))
                && ["hint", "maybe_hint", "with_hint", "caused_by"]
                    .iter()
                    .any(|name| tokens.get(at + 1).is_some_and(|it| it.is_word(name)));
            if !is_added {
                return found;
            }
            let end = at + 2 + group(&tokens[at + 2..]);
            if !tokens[at + 1].is_word("caused_by") {
                found.extend(self.said(at, &tokens[at + 2..end], false));
            }
            at = end;
        }
    }
}

fn is_call(tokens: &[Token], name: &str) -> bool {
    let mut words = name.split("::");
    let first = words.next().unwrap_or_default();
    match words.next() {
        None => tokens[0].is_word(first) && tokens.get(1) == Some(&Token::Sign('(')),
        Some(second) => {
            let shape = tokens.get(1) == Some(&Token::Sign(':'))
                && tokens.get(4) == Some(&Token::Sign('('));
            tokens[0].is_word(first) && shape && tokens.get(3).is_some_and(|it| it.is_word(second))
        }
    }
}

/// The arguments behind the first of a call.
fn after_comma(tokens: &[Token]) -> &[Token] {
    let mut at = 1;
    while at < tokens.len() {
        match tokens[at] {
            Token::Sign(',') => return &tokens[at..],
            Token::Sign('(' | '[' | '{') => at += group(&tokens[at..]),
            _ => at += 1,
        }
    }
    &[]
}

/// The strings of several words in the function of this name.
pub(super) fn texts_of(tokens: &[Token], function: &str) -> Vec<String> {
    let is_it = |pair: &[Token]| pair[0].is_word("fn") && pair[1].is_word(function);
    let at = tokens.windows(2).position(is_it);
    at.map(|at| texts(body(&tokens[at..]))).unwrap_or_default()
}

/// The strings of several words.
pub(super) fn texts(tokens: &[Token]) -> Vec<String> {
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Text(text) if text.trim().contains(' ') => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// The messages about a file, each of which is given its verb alone.
fn verbs(tokens: &[Token]) -> Vec<String> {
    let verb = tokens.iter().find(|token| matches!(token, Token::Text(_)));
    verb.into_iter().map(|verb| format!("cannot {} {{path}}: {{error}}", shown(verb))).collect()
}
