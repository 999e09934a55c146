//! Models behind a chat endpoint, as a plugin: see `offshoot-runtime-openai`, of which this is the export.
//!
//! ```
//! use offshoot_plugin_openai::abilities;
//! use offshoot_plugin_sdk::Runtime;
//! use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime};
//!
//! let runtime = OpenAiRuntime::new("openai", OpenAiOptions::default(), &[]);
//! assert_eq!(runtime.abilities(), abilities());
//! ```
//!
//! The runtime `chat` is the same by a name that the command does not have.

use offshoot_plugin_sdk::{Abilities, CostKnowledge, Error, Plugin, Setup, export_plugin};
use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime};

/// What it can do, whatever its settings are.
pub fn abilities() -> Abilities {
    Abilities { cost: CostKnowledge::Unknown, turns: true, resumes: false, enforces: None }
}

/// What it offers.
pub fn plugin() -> Plugin {
    let about = "Ollama, llama.cpp, vLLM and services: our tools alone, retries, long conversations summed up";
    Plugin::new("models behind chat endpoints that speak OpenAI's protocol")
        .named("openai")
        .runtime("openai", about, abilities(), |setup| runtime("openai", setup))
        .runtime("chat", about, abilities(), |setup| runtime("chat", setup))
}

export_plugin!(plugin());

fn runtime(name: &str, setup: &Setup) -> Result<OpenAiRuntime, Error> {
    let options: OpenAiOptions = setup.config.parse()?;
    // A plugin has the environment of its host, and gets no other.
    let environment: Vec<_> = std::env::vars_os().collect();
    let runtime = OpenAiRuntime::new(name, options, &environment);
    runtime.check().map_err(|error| Error::invalid(format!("{error}; {}", error.hint())))?;
    Ok(runtime)
}
