//! A look at the bounds, put into a program before each call it makes. Pure.
//!
//! The language repeats something in two ways: a filter calls itself, or `range` goes on. So a look before each call and
//! after each number of `range` is met however a program goes on for ever. The look gives back what it was given, and has
//! the same place in a path, so that nothing else changes, not even that a last call takes no stack.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};

/// A name that no program can call.
pub(crate) const LOOK: &str = "!look";

type Filter<'s> = Term<&'s str>;

/// A definition with looks in its body.
pub(crate) fn definition(def: Def<&str>) -> Def<&str> {
    Def { body: term(def.body), ..def }
}

/// A term with looks in it.
pub(crate) fn term<'s>(term: Filter<'s>) -> Filter<'s> {
    match term {
        Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => term,
        Term::Str(format, parts) => {
            Term::Str(format, parts.into_iter().map(part_of_string).collect())
        }
        Term::Arr(inner) => Term::Arr(inner.map(boxed)),
        Term::Obj(fields) => {
            let field = |(key, value): (Filter<'s>, Option<Filter<'s>>)| {
                (self::term(key), value.map(self::term))
            };
            Term::Obj(fields.into_iter().map(field).collect())
        }
        Term::Neg(inner) => Term::Neg(boxed(inner)),
        Term::BinOp(left, operator, right) => {
            let operator = match operator {
                BinaryOp::Pipe(Some(bound)) => BinaryOp::Pipe(Some(pattern(bound))),
                other => other,
            };
            Term::BinOp(boxed(left), operator, boxed(right))
        }
        Term::Label(name, inner) => Term::Label(name, boxed(inner)),
        Term::Fold(name, source, bound, arguments) => {
            Term::Fold(name, boxed(source), pattern(bound), terms(arguments))
        }
        Term::TryCatch(tried, caught) => Term::TryCatch(boxed(tried), caught.map(boxed)),
        Term::IfThenElse(cases, otherwise) => {
            let case = |(condition, then)| (self::term(condition), self::term(then));
            Term::IfThenElse(cases.into_iter().map(case).collect(), otherwise.map(boxed))
        }
        Term::Def(definitions, inner) => {
            Term::Def(definitions.into_iter().map(definition).collect(), boxed(inner))
        }
        Term::Call(name, arguments) => call(name, arguments),
        Term::Path(head, Path(parts)) => {
            let part = |(part, optional)| (part_of_path(part), optional);
            Term::Path(boxed(head), Path(parts.into_iter().map(part).collect()))
        }
    }
}

fn call<'s>(name: &'s str, arguments: Vec<Filter<'s>>) -> Filter<'s> {
    let goes_on = name == "range" && arguments.len() == 3;
    // A filter that is handed on as it is stays so: with a look in each hand it would grow with each call.
    let handed_on =
        |argument: &Filter<'_>| matches!(argument, Term::Call(_, inner) if inner.is_empty());
    let argument = |argument| if handed_on(&argument) { argument } else { term(argument) };
    let arguments = arguments.into_iter().map(argument).collect();
    let call = pipe(look(), Term::Call(name, arguments));
    if goes_on { pipe(call, look()) } else { call }
}

fn look<'s>() -> Filter<'s> {
    Term::Call(LOOK, Vec::new())
}

fn pipe<'s>(left: Filter<'s>, right: Filter<'s>) -> Filter<'s> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}

fn boxed(mut inner: Box<Filter<'_>>) -> Box<Filter<'_>> {
    *inner = term(std::mem::take(&mut *inner));
    inner
}

fn terms(inner: Vec<Filter<'_>>) -> Vec<Filter<'_>> {
    inner.into_iter().map(term).collect()
}

fn part_of_string<'s>(part: StrPart<&'s str, Filter<'s>>) -> StrPart<&'s str, Filter<'s>> {
    match part {
        StrPart::Term(inner) => StrPart::Term(term(inner)),
        other => other,
    }
}

fn part_of_path<'s>(part: Part<Filter<'s>>) -> Part<Filter<'s>> {
    match part {
        Part::Index(index) => Part::Index(term(index)),
        Part::Range(from, to) => Part::Range(from.map(term), to.map(term)),
    }
}

fn pattern(bound: Pattern<&str>) -> Pattern<&str> {
    match bound {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(pattern).collect()),
        Pattern::Obj(fields) => Pattern::Obj(
            fields.into_iter().map(|(key, value)| (term(key), pattern(value))).collect(),
        ),
    }
}
