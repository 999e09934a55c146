//! The options of an endpoint: those that hold for all its runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use offshoot_model::AgentId;
use offshoot_runtime::SharedPrompt;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::meter::Pricing;
use crate::{Compaction, Price, Pruning, Retries};

/// The options that hold for all runs. From configuration: `runtimes.openai.options`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OpenAiOptions {
    /// The address, up to and without `/chat/completions`.
    pub base_url: String,
    /// The variable of the environment that holds the key; none where the endpoint wants none.
    pub key_variable: Option<String>,
    /// The model where a run names none.
    pub model: Option<String>,
    /// Models to go on with, in this order, where one is not there or does not come to itself.
    pub fallback_models: Vec<String>,
    /// Further fields of each request, such as `temperature` or `max_tokens`.
    pub request: Map<String, Value>,
    /// True if the endpoint may be asked for the usage; some refuse a request that does.
    pub ask_usage: bool,
    /// True if an endpoint beyond this machine may be called without encryption.
    pub plain_http: bool,
    /// A file of certificates in PEM that are trusted beside those of the system.
    pub certificates: Option<PathBuf>,
    /// The number and times of repeated calls.
    pub retries: Retries,
    /// To connect, in seconds.
    pub connect_seconds: u64,
    /// Without any byte while an answer is under way, in seconds; 0 = no limit. A model on a slow machine reads its
    /// prompt in silence.
    pub silence_seconds: u64,
    /// After so many rounds of tools a turn fails.
    pub max_rounds: u32,
    /// Up to so many bytes, values become part of the prompt; beyond, they are read by a tool.
    pub inline_bytes: u64,
    /// Of the result of a child, at most so many bytes are told to the model: its beginning and its end.
    pub result_bytes: usize,
    /// The cost of its runs.
    pub cost: CostOption,
    /// Prices by model, for estimates.
    pub prices: BTreeMap<String, Price>,
    /// The settings by which long conversations are summed up.
    pub compaction: Compaction,
    /// The part of old tool results that is left out.
    pub context_pruning: Pruning,
    /// Agents with other settings than these, by id.
    pub agents: BTreeMap<String, AgentOptions>,
}

/// The options of one agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentOptions {
    /// Instead of those of all.
    pub fallback_models: Option<Vec<String>>,
    /// Instead of that of all.
    pub max_rounds: Option<u32>,
    /// Instead of that of all.
    pub compaction: Option<Compaction>,
    /// Instead of that of all.
    pub context_pruning: Option<Pruning>,
}

/// The cost of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CostOption {
    /// No: a model on a machine of one's own.
    None,
    /// The cost follows from the prices, and is unknown where there is none.
    #[default]
    Unknown,
}

impl Default for OpenAiOptions {
    /// Ollama, as it comes.
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            key_variable: None,
            model: None,
            fallback_models: Vec::new(),
            request: Map::new(),
            ask_usage: true,
            plain_http: false,
            certificates: None,
            retries: Retries::default(),
            connect_seconds: 10,
            silence_seconds: 300,
            max_rounds: 100,
            inline_bytes: 64 * 1024,
            result_bytes: 16 * 1024,
            cost: CostOption::default(),
            prices: BTreeMap::new(),
            compaction: Compaction::default(),
            context_pruning: Pruning::default(),
            agents: BTreeMap::new(),
        }
    }
}

impl OpenAiOptions {
    /// Returns the beginning of their prompts that all runs have in common: values, and none of the runtime's own.
    pub fn shared_prompt(&self) -> SharedPrompt {
        SharedPrompt { own_tokens: 0, inline_bytes: self.inline_bytes }
    }

    /// The models that stand in for an agent's own.
    pub(crate) fn fallback_models(&self, agent: &AgentId) -> &[String] {
        let own = self.agents.get(agent.as_str()).and_then(|agent| agent.fallback_models.as_ref());
        own.unwrap_or(&self.fallback_models)
    }

    /// Returns the number of rounds of tools after which a turn of an agent fails.
    pub(crate) fn max_rounds(&self, agent: &AgentId) -> u32 {
        let own = self.agents.get(agent.as_str()).and_then(|agent| agent.max_rounds);
        own.unwrap_or(self.max_rounds)
    }

    /// Returns the price of a model.
    pub(crate) fn pricing(&self, model: &str) -> Pricing {
        match (self.cost, self.prices.get(model)) {
            (CostOption::None, _) => Pricing::Free,
            (CostOption::Unknown, Some(price)) => Pricing::Known(*price),
            (CostOption::Unknown, None) => Pricing::Unknown,
        }
    }

    /// Returns the settings by which an agent's conversation is summed up.
    pub(crate) fn compaction(&self, agent: &AgentId) -> &Compaction {
        let own = self.agents.get(agent.as_str()).and_then(|agent| agent.compaction.as_ref());
        own.unwrap_or(&self.compaction)
    }

    /// Returns the part that is left out of an agent's conversation.
    pub(crate) fn pruning(&self, agent: &AgentId) -> &Pruning {
        let own = self.agents.get(agent.as_str()).and_then(|agent| agent.context_pruning.as_ref());
        own.unwrap_or(&self.context_pruning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_configuration() {
        let options: OpenAiOptions = serde_json::from_str(
            r#"{"baseUrl": "https://api.example/v1", "keyVariable": "KEY", "model": "m",
                "request": {"temperature": 0}, "retries": {"count": 2}, "cost": "none",
                "prices": {"m": {"inputPerMillion": 0.15, "outputPerMillion": 0.6}},
                "compaction": {"mode": "safeguard", "atTokens": 9000, "of": "another program"},
                "agents": {"scout": {"compaction": {"mode": "off"}}}}"#,
        )
        .expect("options");
        assert_eq!(options.retries, Retries { count: 2, ..Retries::default() });
        assert_eq!(options.connect_seconds, 10, "what is not said stays");
        assert_eq!(options.compaction(&AgentId::main()).limit(), Some(9000));
        let scout = AgentId::parse("scout").expect("the text is no id");
        assert_eq!(options.compaction(&scout).limit(), None);
        let error = serde_json::from_str::<OpenAiOptions>(r#"{"baseURL": "x"}"#).unwrap_err();
        assert!(error.to_string().starts_with("unknown field `baseURL`"), "{error}");
    }
}
