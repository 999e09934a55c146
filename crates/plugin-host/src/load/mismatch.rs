//! The differences of two layouts, in three lines. The whole of it runs to thousands.

use std::fmt::{Debug, Display};

use offshoot_plugin_abi::abi_stable::abi_stability::abi_checking::{
    AbiInstability, AbiInstabilityErrors, ExpectedFound,
};
use offshoot_plugin_abi::abi_stable::type_layout::TLFieldOrFunction;

/// More of them say the same again.
const SHOWN: usize = 3;
/// A type can be longer than any line.
const WIDEST: usize = 100;

/// The differences that lie deepest, each with the fields that lead there.
pub(super) fn innermost(errors: &AbiInstabilityErrors) -> Vec<String> {
    let mut all: Vec<(usize, String)> = Vec::new();
    for error in &errors.errors {
        let depth = error.stack_trace.len();
        // Fields without a name are those of wrappers, which say nothing to a reader.
        let steps = error.stack_trace.iter().map(|step| name(&step.found));
        let way: Vec<&str> = steps.filter(|step| step.parse::<u32>().is_err()).collect();
        let way = if way.is_empty() { "the plugin".to_owned() } else { way.join(".") };
        for difference in &error.errs {
            all.push((depth, format!("{way}: {}", words(difference))));
        }
    }
    // Stable, so that of two at the same depth the one that was found first comes first.
    all.sort_by_key(|&(depth, _)| std::cmp::Reverse(depth));
    all.dedup();
    all.into_iter().take(SHOWN).map(|(_, line)| line).collect()
}

fn name(step: &TLFieldOrFunction) -> &'static str {
    match step {
        TLFieldOrFunction::Field(field) => field.name(),
        TLFieldOrFunction::Function(function) => function.name.as_str(),
    }
}

fn words(difference: &AbiInstability) -> String {
    match difference {
        AbiInstability::Name(types) => text("type", types),
        AbiInstability::Size(sizes) => text("size", sizes),
        AbiInstability::Alignment(alignments) => text("alignment", alignments),
        AbiInstability::Package(packages) => text("crate", packages),
        AbiInstability::PackageVersion(versions) => text("version of the crate", versions),
        AbiInstability::FieldCountMismatch(counts) => text("number of fields", counts),
        AbiInstability::MismatchedPrefixSize(sizes) => text("number of frozen fields", sizes),
        AbiInstability::TooManyVariants(counts) => text("number of variants", counts),
        AbiInstability::GenericParamCount(types) => text("type parameters", types),
        AbiInstability::UnexpectedField(fields) => {
            format!("field: expected `{}`, found `{}`", fields.expected.name(), fields.found.name())
        }
        AbiInstability::MismatchedPrimitive(primitives) => debug("primitive type", primitives),
        AbiInstability::TLDataDiscriminant(kinds) => debug("kind of type", kinds),
        AbiInstability::ReprAttr(attributes) => debug("representation", attributes),
        AbiInstability::NonZeroness(values) => debug("whether it can be zero", values),
        AbiInstability::FnQualifierMismatch(_) => "the functions have other qualifiers".to_owned(),
        AbiInstability::FnLifetimeMismatch(_) | AbiInstability::FieldLifetimeMismatch(_) => {
            "the lifetimes differ".to_owned()
        }
        other => short(&format!("{other:?}")),
    }
}

fn text<T: Display>(what: &str, pair: &ExpectedFound<T>) -> String {
    let (expected, found) = (short(&pair.expected.to_string()), short(&pair.found.to_string()));
    format!("{what}: expected {expected}, found {found}")
}

fn debug<T: Debug>(what: &str, pair: &ExpectedFound<T>) -> String {
    let (expected, found) = (format!("{:?}", pair.expected), format!("{:?}", pair.found));
    format!("{what}: expected {}, found {}", short(&expected), short(&found))
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
