//! The interface as tables, read from the layouts that a host compares.

use std::fmt::Write;

use offshoot_plugin_abi::PluginRef;
use offshoot_plugin_abi::abi_stable::StableAbi;
use offshoot_plugin_abi::abi_stable::type_layout::{TLField, TLFunction, TypeLayout};

type Layout = &'static TypeLayout;

/// Everything that can be reached from the root module, in the order in which it is first met.
pub(crate) fn text() -> String {
    let mut met = Vec::new();
    meet(<PluginRef as StableAbi>::LAYOUT, &mut met);
    let ours = |layout: &Layout| layout.package().as_str() == "offshoot-plugin-abi";

    let mut text = String::from(HEAD);
    for layout in met.iter().copied().filter(ours).filter(|layout| !is_marker(layout)) {
        section(&mut text, layout);
    }
    text.push_str(BLOCKS);
    let mut blocks: Vec<String> = met
        .iter()
        .copied()
        .filter(|layout| !ours(layout) && !is_marker(layout))
        .map(block)
        .collect();
    blocks.sort();
    blocks.dedup();
    text.extend(blocks);
    text
}

const HEAD: &str = "\
# The interface of plugins, version 1.0

Made by `cargo xtask regenerate` from the layouts that a host compares when it loads a plugin. What each function
promises stands at its definition in `crates/plugin-abi`; how a plugin is written, in [plugins.md](plugins.md).

All functions have the C calling convention, all structs the C representation of a 64-bit machine. Objects
(`Host`, `Run` …) are a table of functions and a box; the first argument of each of their functions is the box.

## What is promised

The layouts on this page stay for all of 1.x, and so do the documents of JSON in `crates/plugin-abi/tests/wire`; a test compares
both with what is written today. Of `abi_stable` and `async-ffi`, whose types are building blocks below, it takes the versions named there.

The number of the interface is a constant, `VERSION`. The version of the crate `offshoot-plugin-abi` is another number: a loader
finds it in each layout and asks that it is of the same major version, so it stays 1.x.

In Rust 1.x promises what the crate has without a feature. Its feature `wire`, which writes and reads the documents, takes types of
`offshoot-model` and `offshoot-runtime`: these are 0.x, and may change with any version of the workspace. It is for the SDK
and the host, which are built from the same.
";

const BLOCKS: &str = "
## Building blocks

Those of `abi_stable` 0.11 and `async-ffi` 0.5. A function table may be longer than what is listed: it is reached by a
reference, and grows at its end.

| type | size | align | kind | fields |
|---|---|---|---|---|
";

fn meet(layout: Layout, met: &mut Vec<Layout>) {
    if met.iter().any(|known| id(known) == id(layout)) {
        return;
    }
    met.push(layout);
    for field in fields(layout) {
        for function in field.function_range().iter() {
            function.param_type_layouts.iter().for_each(|layout| meet(layout(), met));
            function.return_type_layout().into_iter().for_each(|layout| meet(layout(), met));
        }
        meet(field.layout(), met);
    }
    layout.phantom_fields().iter().for_each(|field| meet(field.layout(), met));
}

/// A type by what tells it from others of its name.
fn id(layout: &TypeLayout) -> (String, String) {
    (layout.mod_path().to_string(), name(layout))
}

fn fields(layout: &TypeLayout) -> Vec<TLField> {
    layout.get_fields().map(|fields| fields.to_vec()).unwrap_or_default()
}

/// Types without a size carry what the compiler needs to know and a reader does not; the rest is primitive.
fn is_marker(layout: &TypeLayout) -> bool {
    layout.size() == 0 || layout.mod_path().to_string() == "<prelude>" || {
        let objects = ["Host_TO", "RunHost_TO", "Runtime_TO", "Run_TO", "Merge_TO", "MergeJob_TO"];
        objects.contains(&layout.name())
    }
}

/// A struct or a table of functions of our own.
fn section(text: &mut String, layout: Layout) {
    let (size, align) = (layout.size(), layout.alignment());
    let module = layout.mod_path().to_string();
    let title = match (layout.name(), module.rsplit("::").next()) {
        ("VTable", Some(module)) => module.trim_end_matches("_trait").to_owned(),
        (name, _) => name.to_owned(),
    };
    let write = |text: &mut String, line: String| {
        writeln!(text, "{line}").expect("writing into a string cannot fail");
    };
    write(text, format!("\n## `{title}`\n\n{size} bytes, aligned to {align}.\n"));
    let functions = fields(layout).iter().any(TLField::is_function);
    if functions {
        write(text, "| function | arguments | answer |\n|---|---|---|".to_owned());
    } else {
        write(text, "| field | type |\n|---|---|".to_owned());
    }
    for field in fields(layout).iter().filter(|field| field.layout().size() > 0) {
        write(
            text,
            match field.function_range().get(0) {
                Some(function) if field.is_function() => {
                    let (arguments, answer) = signature(&function);
                    format!("| `{}` | {arguments} | {answer} |", field.name())
                }
                _ if functions => {
                    format!("| `{}` (a table) | | {} |", field.name(), code(field.layout()))
                }
                _ => format!("| `{}` | {} |", field.name(), code(field.layout())),
            },
        );
    }
}

/// A type that is not ours, as a row.
fn block(layout: Layout) -> String {
    let (size, align) = (layout.size(), layout.alignment());
    let kind = format!("{:?}", layout.data_discriminant());
    let fields = fields(layout).into_iter().filter(|field| field.layout().size() > 0);
    let fields: Vec<String> = fields
        .map(|field| match field.function_range().get(0) {
            Some(function) if field.is_function() => {
                let (arguments, answer) = signature(&function);
                format!("`{}`({arguments}) → {answer}", field.name())
            }
            _ => format!("`{}`: {}", field.name(), code(field.layout())),
        })
        .collect();
    format!("| {} | {size} | {align} | {kind} | {} |\n", code(layout), fields.join(", "))
}

fn signature(function: &TLFunction) -> (String, String) {
    let arguments: Vec<String> =
        function.param_type_layouts.iter().map(|layout| code(layout())).collect();
    let answer =
        function.return_type_layout().map_or("nothing".to_owned(), |layout| code(layout()));
    (arguments.join(", "), answer)
}

fn code(layout: Layout) -> String {
    format!("`{}`", name(layout))
}

/// The name with what it is made of, where that is not part of the name.
fn name(layout: &TypeLayout) -> String {
    let of = |layouts: Vec<Layout>| -> String {
        layouts.into_iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let inner = || fields(layout).iter().map(TLField::layout).collect::<Vec<_>>();
    let phantom = || layout.phantom_fields().iter().map(|field| field.layout()).collect::<Vec<_>>();
    match layout.name() {
        "RResult" | "ROption" | "FfiPoll" | "ManuallyDrop" | "Option" => {
            format!("{}<{}>", layout.name(), of(inner()))
        }
        "PrefixRef" => format!("PrefixRef<{}>", of(phantom())),
        "RVec" => "RVec<u8>".to_owned(),
        "NonNull" => of(inner()),
        "BorrowingFfiFuture" | "LocalBorrowingFfiFuture" => {
            let polled = answer_of_future(layout).expect("a future is polled");
            format!("{}<{}>", layout.name().replace("Borrowing", ""), name(polled))
        }
        "RObject" => format!("RObject<{}>", of(inner().into_iter().take(1).collect())),
        "VTable" => {
            let module = layout.mod_path().to_string();
            let object = module.rsplit("::").next().expect("a path has a last part");
            format!("{} functions", object.trim_end_matches("_trait"))
        }
        name if name.ends_with("_TO") => name.trim_end_matches("_TO").to_owned(),
        _ => {
            layout.full_type().to_string().replace("'a ", "").replace("<'a>", "").trim().to_owned()
        }
    }
}

/// Returns the layout of what a future answers, which only its poll function tells.
fn answer_of_future(layout: &TypeLayout) -> Option<Layout> {
    fields(layout).iter().find_map(|field| {
        let function = field.function_range().get(0);
        let polled = function.and_then(|function| function.return_type_layout());
        match polled.map(|layout| layout()) {
            Some(poll) if poll.name() == "FfiPoll" => Some(fields(poll).first()?.layout()),
            _ if field.layout().name() == "LocalBorrowingFfiFuture" => {
                answer_of_future(field.layout())
            }
            _ => None,
        }
    })
}
