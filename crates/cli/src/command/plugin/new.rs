//! `offshoot plugin new`: a crate outside any workspace, which builds, with a test and a README; or a program.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use offshoot_plugin_host::{PACKAGE_FILE, PluginName, abi_version, target};
use serde::Serialize;

use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// `offshoot plugin new`.
#[derive(Debug, Args)]
pub(crate) struct NewPluginArguments {
    /// A runtime of this name, in a folder of this name
    #[arg(long, value_name = "NAME", required_unless_present = "merge", conflicts_with = "merge")]
    pub(crate) runtime: Option<String>,

    /// A merge of this name, in a folder of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) merge: Option<String>,

    /// The language: a library or a program in Rust, or a program in Python, TypeScript or JavaScript without dependencies
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value = "rust")]
    pub(crate) language: Language,

    /// The source folder of the SDK [default: that from which this command was built]
    #[arg(long, value_name = "PATH")]
    pub(crate) sdk: Option<PathBuf>,
}

/// The language of a new plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// A library over the SDK.
    Rust,
    /// A program over the SDK.
    RustProcess,
    /// A program for Python 3.
    Python,
    /// A program for node, with types.
    Typescript,
    /// A program for node.
    Javascript,
}

/// The SDK of the checkout that this command was built from; none where it was built from a package.
const BUILT_FROM: Option<&str> = option_env!("OFFSHOOT_BUILT_BESIDE_SDK");
/// The version of the SDK that belongs to this command.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const MANIFEST: &str = include_str!("template/Cargo.toml.in");
const PACKAGE: &str = include_str!("template/plugin.toml.in");
const RUNTIME: (&str, &str) =
    (include_str!("template/runtime.rs.in"), include_str!("template/runtime.md.in"));
const MERGE: (&str, &str) =
    (include_str!("template/merge.rs.in"), include_str!("template/merge.md.in"));
/// The part of the manifest that only a library has.
const LIB: &str = "\
[lib]
name = \"{{library}}\"
# `cdylib` is what is loaded; `rlib` lets tests use the crate as any other.
crate-type = [\"cdylib\", \"rlib\"]

";
const PANIC: &str = "\
# A panic must unwind, so that it ends one run and not the whole tree: offshoot refuses a plugin that aborts.
panic = \"unwind\"
";
const PROGRAM_PACKAGE: &str = include_str!("template/program.toml.in");
const PROGRAM_README: &str = include_str!("template/program.md.in");
const PYTHON: Program = Program {
    language: "Python",
    command: &["python3", "agent.py"],
    file: "agent.py",
    beside: &[],
    files: "",
    build: "",
    runtime: include_str!("template/python/agent.py.in"),
    merge: include_str!("template/python/merge.py.in"),
};
const JAVASCRIPT: Program = Program {
    language: "JavaScript",
    command: &["node", "agent.mjs"],
    file: "agent.mjs",
    beside: &[],
    files: "",
    build: "",
    runtime: include_str!("template/javascript/agent.mjs.in"),
    merge: include_str!("template/javascript/merge.mjs.in"),
};

const TYPESCRIPT: Program = Program {
    language: "TypeScript",
    command: &["node", "start.mjs"],
    file: "src/agent.mts",
    beside: &[
        ("start.mjs", include_str!("template/typescript/start.mjs.in")),
        ("tsconfig.json", include_str!("template/typescript/tsconfig.json.in")),
    ],
    files: "files = [\"src\"]\n",
    build: include_str!("template/typescript/build.md.in"),
    runtime: include_str!("template/typescript/agent.mts.in"),
    merge: include_str!("template/typescript/merge.mts.in"),
};

/// A language in which a plugin is a program of one file.
struct Program {
    language: &'static str,
    command: &'static [&'static str],
    file: &'static str,
    /// Files that run the file or check it, and are the same for each plugin.
    beside: &'static [(&'static str, &'static str)],
    /// The line of `plugin.toml` that names files which the command does not name.
    files: &'static str,
    /// The part of the README about building.
    build: &'static str,
    runtime: &'static str,
    merge: &'static str,
}

/// A plugin that was made.
#[derive(Serialize)]
struct Made<'a> {
    folder: &'a Path,
    files: &'a [&'static str],
}

/// Makes the folder.
pub(super) fn run(arguments: &NewPluginArguments, cx: &Invocation) -> Result<(), Failure> {
    let (name, kind) = match (&arguments.runtime, &arguments.merge) {
        (Some(name), _) => (name, "runtimes"),
        (None, Some(name)) => (name, "merges"),
        (None, None) => unreachable!("the command line asks for one of them"),
    };
    let name = PluginName::parse(name).map_err(|error| Failure::of(Exit::BadInput, &error))?;
    let folder = cx.environment.working_folder.join(name.as_str());
    if folder.exists() {
        return Err(Failure::input(
            FailureCode::PluginIsThere,
            format_args!("there is {} already", folder.display()),
        )
        .hint("choose another name, or another folder"));
    }
    let (files, depends, then) = match arguments.language {
        Language::Python => PYTHON.files(&name, kind),
        Language::Javascript => JAVASCRIPT.files(&name, kind),
        Language::Typescript => TYPESCRIPT.files(&name, kind),
        Language::Rust | Language::RustProcess => {
            let named = arguments.sdk.as_ref().map(|folder| cx.absolute(folder));
            let sdk = Sdk::chosen(named, BUILT_FROM)?;
            let then = format!(
                "cd {name} && cargo test && cargo build --release && offshoot plugin check ."
            );
            (rust(&name, kind, arguments.language, &sdk), Some(sdk), then)
        }
    };
    let write = || {
        files.iter().try_for_each(|(path, text)| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("it is in the folder"))?;
            fs::write(path, text)
        })
    };
    write().map_err(Failure::writing(&folder))?;
    let files: Vec<&'static str> = files.into_iter().map(|(path, _)| path).collect();
    cx.output.result(&Made { folder: &folder, files: &files }, || {
        cx.output.line(format_args!("made {}", folder.display()))?;
        files.iter().try_for_each(|file| cx.output.line(format_args!("  {file}")))?;
        if let Some(sdk) = depends {
            cx.output.note(NoteCode::DependsOnSdk, format_args!("it depends on {sdk}"));
        }
        cx.output.hint(NoteCode::NextSteps, then);
        Ok(())
    })
}

/// The files of a plugin, by their paths.
type Files = Vec<(&'static str, String)>;

/// A crate, of a library or of a program. `kind` is the list that has the name.
fn rust(name: &PluginName, kind: &str, language: Language, sdk: &Sdk) -> Files {
    let runtime = kind == "runtimes";
    let (code, readme) = if runtime { RUNTIME } else { MERGE };
    let other = if runtime { "merges" } else { "runtimes" };
    let library = name.as_str().replace('-', "_");
    let is_library = language == Language::Rust;
    let (file, built, exported) = if is_library {
        ("src/lib.rs", format!("target/release/lib{library}.so"), "export_plugin")
    } else {
        ("src/main.rs", format!("target/release/{name}"), "serve_plugin")
    };
    let package = if is_library { PACKAGE } else { PROGRAM_PACKAGE };
    let of_library = |text: &'static str| if is_library { text } else { "" };
    let filled = |text: &str| {
        text.replace("{{lib}}", of_library(LIB))
            .replace("{{panic}}", of_library(PANIC))
            .replace("{{macro}}", exported)
            .replace("{{file}}", file)
            .replace("{{built}}", &built)
            .replace("{{command}}", &format!("[\"{built}\"]"))
            .replace("{{files}}", "")
            .replace("{{name}}", name.as_str())
            .replace("{{library}}", &library)
            .replace("{{type}}", &type_name(name.as_str()))
            .replace("{{kind}}", kind)
            .replace("{{other}}", other)
            .replace("{{abi}}", &abi_version().to_string())
            .replace("{{target}}", &target())
            .replace("{{sdk}}", &sdk.dependency(""))
            .replace("{{sdk_for_tests}}", &sdk.dependency(", features = [\"conformance\"]"))
    };
    vec![
        ("Cargo.toml", filled(MANIFEST)),
        (PACKAGE_FILE, filled(package)),
        ("README.md", filled(readme)),
        (".gitignore", "/target\n".to_owned()),
        (file, filled(code)),
    ]
}

impl Program {
    /// The files of a plugin, and what is to be done next. It depends on no SDK.
    fn files(&self, name: &PluginName, kind: &str) -> (Files, Option<Sdk>, String) {
        let (code, check, used) = if kind == "runtimes" {
            let used = format!("offshoot run --plugin-path . --runtime {name} 'hello'");
            (
                self.runtime,
                "offshoot plugin check . --hanging-task wait --asking-task 'ask hello'",
                used,
            )
        } else {
            let merge = format!("--plugin-path . --merge plugin:{name}");
            let used = format!("offshoot fanout {merge} --task 'a' --task 'bcd' -- cat");
            (self.merge, "offshoot plugin check .", used)
        };
        let filled = |text: &str| {
            text.replace("{{name}}", name.as_str())
                .replace("{{kind}}", kind)
                .replace("{{abi}}", &abi_version().to_string())
                .replace("{{language}}", self.language)
                .replace("{{command}}", &format!("{:?}", self.command))
                .replace("{{files}}", self.files)
                .replace("{{build}}", self.build)
                .replace("{{file}}", self.file)
                .replace("{{check}}", check)
                .replace("{{use}}", &used)
        };
        let own = [
            (PACKAGE_FILE, filled(PROGRAM_PACKAGE)),
            ("README.md", filled(PROGRAM_README)),
            (self.file, filled(code)),
        ];
        let beside = self.beside.iter().map(|(path, text)| (*path, (*text).to_owned()));
        (own.into_iter().chain(beside).collect(), None, format!("cd {name} && {check}"))
    }
}

/// The SDK that the crate depends on.
#[derive(Debug, PartialEq, derive_more::Display)]
enum Sdk {
    /// The source folder.
    #[display("the SDK in {}", _0.display())]
    Folder(PathBuf),
    /// A version that cargo gets.
    #[display("version {_0} of the SDK")]
    Version(&'static str),
}

impl Sdk {
    /// Chooses the named folder, else the checkout that this command was built from, else the version of this command.
    fn chosen(named: Option<PathBuf>, built_from: Option<&str>) -> Result<Self, Failure> {
        let Some(folder) = named.or_else(|| built_from.map(PathBuf::from)) else {
            return Ok(Self::Version(VERSION));
        };
        let found = folder.canonicalize().ok().filter(|folder| folder.join("Cargo.toml").is_file());
        found.map(Self::Folder).ok_or_else(|| {
            Failure::input(
                FailureCode::NoSdk,
                format_args!("there is no SDK in {}", folder.display()),
            )
            .hint("name the folder crates/plugin-sdk of a source tree with --sdk PATH")
        })
    }

    /// Returns the dependency as it stands in a Cargo.toml, with these further fields.
    fn dependency(&self, more: &str) -> String {
        match self {
            Self::Folder(folder) => format!("{{ path = \"{}\"{more} }}", toml_text(folder)),
            Self::Version(version) => format!("{{ version = \"{version}\"{more} }}"),
        }
    }
}

/// `my-agent` as a type: `MyAgent`.
fn type_name(name: &str) -> String {
    let words = name.split(['-', '_']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    };
    let name: String = words.map(capital).collect();
    // A type cannot begin with a digit, and must not be called like what it implements.
    match name.as_str() {
        "Runtime" | "Merge" | "MergeFn" | "Plugin" | "Settings" => format!("The{name}"),
        _ if name.starts_with(|c: char| c.is_ascii_digit()) => format!("Plugin{name}"),
        _ => name,
    }
}

/// A path within a TOML text.
fn toml_text(path: &Path) -> String {
    path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_depends_on_what_was_named_or_built_from_or_on_this_version() {
        let folder = tempfile::tempdir().expect("no temporary folder can be made");
        fs::write(folder.path().join("Cargo.toml"), "").expect("the file cannot be written");
        let real = folder.path().canonicalize().expect("the path cannot be resolved");
        let path = folder.path().to_str().expect("a plain name");
        let here = || Some(folder.path().to_owned());
        let checks = [
            (here(), None, Sdk::Folder(real.clone())),
            (here(), Some("/gone"), Sdk::Folder(real.clone())),
            (None, Some(path), Sdk::Folder(real)),
            (None, None, Sdk::Version(VERSION)),
        ];
        for (named, built_from, expected) in checks {
            assert_eq!(Sdk::chosen(named, built_from).expect("there is one"), expected);
        }
        Sdk::chosen(None, Some("/gone")).expect_err("its source tree is gone");
        assert_eq!(Sdk::Version("0.1.0").dependency(""), "{ version = \"0.1.0\" }");
        let quoted = Sdk::Folder("/a \"b\"".into()).dependency("");
        assert_eq!(quoted, r#"{ path = "/a \"b\"" }"#);
    }

    #[test]
    fn names_become_types() {
        for (name, expected) in [
            ("upper", "Upper"),
            ("my-agent_2", "MyAgent2"),
            ("3d", "Plugin3d"),
            ("runtime", "TheRuntime"),
            ("a--b", "AB"),
        ] {
            assert_eq!(type_name(name), expected);
        }
    }
}
