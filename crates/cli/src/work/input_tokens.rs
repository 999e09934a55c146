//! The tokens that a plan hands to its agents, as an estimate.

use std::io::{self, Read};

use offshoot_config::{AgentDefinition, Config};
use offshoot_display::number;
use offshoot_host::runtimes::input_price;
use offshoot_model::{MicroUsd, TokenCount};
use offshoot_split::InputFile;
use offshoot_tokens::{Counter, TOKENIZER, count};
use serde::Serialize;

use super::dry_run::PlannedAgent;
use super::plan::Plan;

/// As much of the files is counted; the tokens of the rest are taken to be as long.
const COUNTED: u64 = 16 << 20;

/// The tokens that agents read: their tasks, their parts of the input, and the system prompt of their definition. What runtimes and tools add is
/// not known before.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputTokens {
    /// The number for all agents together.
    tokens: u64,
    /// The tokenizer by which they were counted.
    tokenizer: &'static str,
    /// The model that will read them, where it is one for all and has a price.
    model: Option<String>,
    /// The price of reading them once.
    micro_usd: Option<MicroUsd>,
}

impl InputTokens {
    /// Counts what the agents of a plan read; none where a file cannot be read. `task` is what each is told.
    pub(crate) fn of(
        plan: &Plan,
        agents: &[PlannedAgent],
        task: &str,
        config: &Config,
    ) -> Option<Self> {
        let many = agents.len() as u64;
        let definition = config.agent(&plan.agent);
        let prompt =
            definition.and_then(|agent| Some(agent.system_prompt.as_ref()?.value.as_str()));
        let each = count(task.as_bytes()) + count(prompt.unwrap_or_default().as_bytes());
        let own: u64 = plan.tasks.iter().map(|task| count(task.task.as_bytes())).sum();
        let read: u64 = match plan.inputs.is_empty() {
            true => 0,
            false => agents.iter().filter_map(|agent| agent.bytes).sum(),
        };
        let tokens = each * many + own + of_files(&plan.inputs, read).ok()?;
        let price = model(plan, config).and_then(|model| {
            let price = input_price(config, &model)?;
            let micros = u128::from(tokens) * u128::from(price.as_micros()) / 1_000_000;
            Some((model, MicroUsd::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))))
        });
        let (model, micro_usd) = price.unzip();
        Some(Self { tokens, tokenizer: TOKENIZER, model, micro_usd })
    }

    /// Says how many there are, for people.
    pub(crate) fn line(&self) -> String {
        let tokens = number::tokens(TokenCount::Known(self.tokens));
        let price = match (&self.model, self.micro_usd) {
            (Some(model), Some(usd)) => {
                format!(", {} at the price of {model}", number::dollars(usd))
            }
            _ => String::new(),
        };
        format!(
            "to read: about {tokens} (tokenizer {TOKENIZER}){price}; what runtimes and tools add, and the answers, come on top"
        )
    }
}

/// Returns the model that all agents ask; none where it is not known, or where they ask several.
pub(super) fn model(plan: &Plan, config: &Config) -> Option<String> {
    let is_one = plan
        .tasks
        .iter()
        .all(|task| task.model.is_none() && task.runtime.is_none() && task.agent.is_none());
    let definition = config.agent(&plan.agent);
    let own = definition.and_then(AgentDefinition::primary_model).map(str::to_owned);
    let of_runtime = || {
        let options = config.runtime(&plan.runtime)?.options.as_ref()?;
        Some(options.value.get("model")?.as_str()?.to_owned())
    };
    own.or_else(of_runtime).filter(|_| is_one)
}

/// Returns the tokens of so many bytes of these files: the beginnings are counted, and repeated headers and what was not counted have
/// as many tokens for each byte.
fn of_files(files: &[InputFile], bytes: u64) -> io::Result<u64> {
    let (mut counter, mut left) = (Counter::default(), COUNTED);
    for file in files {
        let mut reader = file.reopen().map_err(io::Error::other)?.take(left);
        counter.read(&mut reader)?;
        left = reader.limit();
    }
    let counted = COUNTED - left;
    let tokens = u128::from(counter.finish()) * u128::from(bytes);
    Ok(tokens
        .checked_div(u128::from(counted))
        .map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX)))
}
