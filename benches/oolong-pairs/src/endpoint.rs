//! The labeller behind a chat endpoint on loopback, with tokens and a price.

use std::io;
use std::sync::Mutex;

use offshoot_fake_model_api::{Break, FakeModelApi, Model, Reply, Usage};

use crate::{Asks, Entry, Faults, Reaction};

/// The characters that count as a token.
const CHARACTERS: u64 = 4;

/// Starts an endpoint whose model labels the lines that are entries. Each of four characters is a token.
///
/// # Errors
///
/// Fails if no socket can be bound.
pub fn endpoint(faults: Faults) -> io::Result<FakeModelApi> {
    let asks = Asks::Memory(Mutex::default());
    FakeModelApi::start_with(Model::new(move |conversation| {
        let prompt = &conversation.prompt;
        let is_entry = |line: &&str| line.parse::<Entry>().is_ok();
        let entries: String =
            prompt.lines().filter(is_entry).flat_map(|line| [line, "\n"]).collect();
        let ask = asks.count(&entries).expect("memory can be written");
        let read = (conversation.system.len() + prompt.len()) as u64;
        let (reply, written) = match faults.react(&entries, ask) {
            Reaction::Labels(text) => (Reply::text(text.trim_end()), text.len()),
            Reaction::Refusal(text) => (Reply::text(text), text.len()),
            Reaction::Death => (Reply::Broken(Break::Cut), 0),
        };
        let (input, output) = (read.div_ceil(CHARACTERS), (written as u64).div_ceil(CHARACTERS));
        (reply, Usage { input, output, cache_read: 0, cache_write: 0 })
    }))
}

/// Returns the configuration with which the runtime `openai` finds this endpoint. The prices are those of a small model, and an
/// entry stands in the prompt whatever the size of its piece.
pub fn configuration(endpoint: &FakeModelApi) -> String {
    let url = endpoint.url();
    format!(
        "[runtimes.openai.options]\nbaseUrl = \"{url}/v1\"\nmodel = \"labeller\"\ninlineBytes = 100000000\n\
         retries = {{ count = 0 }}\n\n\
         [prices.labeller]\ninputPerMillion = 0.25\noutputPerMillion = 2.0\n"
    )
}
