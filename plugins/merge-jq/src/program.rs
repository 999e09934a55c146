//! A jq program: from its text to a value.

use jaq_core::box_iter::box_once;
use jaq_core::data::{DataT, HasLut};
use jaq_core::load::lex::Token;
use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Lexer, Loader, Parser};
use jaq_core::native::Fun;
use jaq_core::{Compiler, Ctx, Exn, Lut, Native, Vars};
use jaq_json::Val;

use crate::guard;
use crate::watch::{Halted, Watch};
use crate::wrong::Wrong;

/// Longer ones are refused: a text is read by calls in calls, which take stack.
pub(crate) const LONGEST: usize = 16 * 1024;

/// The fault of a program, in its text or while it ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProgramError {
    /// The text is no program.
    #[error("the jq program is wrong at {0}")]
    Wrong(Wrong),
    /// The text is too long to be read.
    #[error("the jq program is longer than {} KiB", LONGEST / 1024)]
    TooLong,
    /// The program ended in an error of its own.
    #[error("the jq program failed: {0}")]
    Failed(String),
    /// The program has no value, or more than one.
    #[error("the jq program gave {0} instead of one")]
    Values(&'static str),
    /// The program was ended.
    #[error(transparent)]
    Halted(#[from] Halted),
}

/// A program that can be run.
pub(crate) struct Program(jaq_core::Filter<Watched>);

/// The values and the data of a run.
struct Watched;

#[derive(Clone, Copy)]
struct Data<'a> {
    lut: &'a Lut<Watched>,
    watch: &'a Watch,
}

impl DataT for Watched {
    type V<'a> = Val;
    type Data<'a> = Data<'a>;
}

impl<'a> HasLut<'a, Watched> for Data<'a> {
    fn lut(&self) -> &'a Lut<Watched> {
        self.lut
    }
}

/// Filters that look elsewhere than at the results, or act: a merge of the same results is the same answer, always.
const ABSENT: &[&str] = &[
    "debug",
    "debug_empty",
    "env",
    "halt",
    "halt_error",
    "localtime",
    "now",
    "stderr",
    "stderr_empty",
    "strflocaltime",
];

/// The name under which the program itself stands among the definitions.
const MAIN: &str = "merge_jq_program";

impl Program {
    /// Reads a program.
    pub(crate) fn read(text: &str) -> Result<Self, ProgramError> {
        if text.len() > LONGEST {
            return Err(ProgramError::TooLong);
        }
        let main = Def { name: MAIN, args: Vec::new(), body: parse(text)? };
        let known = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let known = known.filter(|def: &Def<&'static str>| !ABSENT.contains(&def.name));
        let known = known.map(shorter);
        let arena = Arena::default();
        let modules = Loader::new(known.chain([main]).map(guard::definition))
            .load(&arena, File { code: MAIN, path: () })
            .map_err(drop)
            .expect("the name of a definition is a program");
        let native = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let native = native.filter(|(name, ..): &Fun<Watched>| !ABSENT.contains(name));
        let compiled = Compiler::default().with_funs(native.chain([look()])).compile(modules);
        compiled.map(Self).map_err(|errors| {
            let mut wrong = errors.iter().flat_map(|(_, errors)| errors);
            let (name, what) = wrong.next().expect("what is refused is refused for something");
            ProgramError::Wrong(Wrong::unknown(text, name, what))
        })
    }

    /// Runs it on a value; its one value is the answer, as JSON text.
    pub(crate) fn run(&self, input: Val, watch: &Watch) -> Result<String, ProgramError> {
        let mut values = self.values(input, watch);
        let value = values.next().ok_or(ProgramError::Values("no value"))??;
        match values.next().transpose()? {
            None => Ok(value.to_string()),
            Some(_) => Err(ProgramError::Values("several values")),
        }
    }

    /// Runs it on a value; its values come as it makes them, and after an error no more should be asked for.
    pub(crate) fn values<'a>(
        &'a self,
        input: Val,
        watch: &'a Watch,
    ) -> impl Iterator<Item = Result<Val, ProgramError>> + 'a {
        let Self(filter) = self;
        let cx = Ctx::<Watched>::new(Data { lut: &filter.lut, watch }, Vars::new([]));
        let mut values = filter.id.run((cx, input));
        std::iter::from_fn(move || {
            let value = values.next();
            // A program may have passed over the request to end.
            if let Some(halted) = watch.look() {
                return Some(Err(halted.into()));
            }
            Some(value?.map_err(|exception| match exception.get_err() {
                Ok(error) => ProgramError::Failed(shortened(&error.to_string())),
                Err(_) => unreachable!("breaks have their label, and only a look halts"),
            }))
        })
    }
}

/// A definition that lives as long as any text.
fn shorter<'s>(def: Def<&'static str>) -> Def<&'s str> {
    def
}

/// Reads the text alone, with places.
fn parse(text: &str) -> Result<Term<&str>, ProgramError> {
    let tokens = Lexer::new(text).lex().map_err(|errors| {
        let (expected, found) = errors.first().expect("what is refused is refused for something");
        ProgramError::Wrong(Wrong::expected(text, expected.as_str(), found))
    })?;
    Parser::new(&tokens).parse(|parser| parser.term()).map_err(|errors| {
        let (expected, found) = errors.first().expect("what is refused is refused for something");
        let found = found.map_or(&text[text.len()..], |Token(found, _)| found);
        ProgramError::Wrong(Wrong::expected(text, expected.as_str(), found))
    })
}

/// The filter that looks at the bounds.
fn look() -> Fun<Watched> {
    fn halted<V>(data: Data<'_>) -> Option<Exn<'_, V>> {
        // No program can catch this.
        data.watch.look().map(|_| Exn::halt(1))
    }
    let native = Native::<Watched>::new(|cv| {
        let exception = halted(*cv.0.data());
        box_once(exception.map_or(Ok(cv.1), Err))
    });
    let native = native.with_paths(|cv| {
        let exception = halted(*cv.0.data());
        box_once(exception.map_or(Ok(cv.1), Err))
    });
    let native = native.with_update(|cv, update| match halted(*cv.0.data()) {
        Some(exception) => box_once(Err(exception)),
        None => update(cv.1),
    });
    (guard::LOOK, Box::default(), native)
}

/// An error quotes the value that it is about, which may be any size.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
