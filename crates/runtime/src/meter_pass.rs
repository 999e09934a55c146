//! The way of a running agent to its model, through the meter.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::Variable;

/// The address of the meter, and the ticket that stands in place of a key. It is good for the processes of one run, and for the
/// plugin that works for it, while the run lives.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub struct MeterPass {
    /// The address, such as `http://127.0.0.1:40123`.
    pub address: Arc<str>,
    /// The ticket.
    #[debug("\"[redacted]\"")]
    pub ticket: Arc<str>,
    /// True if the program has a login of its own, such as that of a subscription: its headers pass, and the ticket stands in the path.
    pub own_login: bool,
    /// The variable that holds the key in the supervisor, where the operator has named one.
    pub key_variable: Option<Arc<str>>,
    /// The protocols for which the meter has a provider.
    pub protocols: MeterProtocols,
    /// The most tokens of one answer; none where nothing bounds it.
    pub output_tokens: Option<u64>,
}

/// The protocols of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterProtocols {
    /// Messages, as Anthropic has them.
    pub anthropic: bool,
    /// Responses and chat completions, as OpenAI has them.
    pub openai: bool,
    /// `generateContent`, as Gemini has it.
    pub gemini: bool,
}

/// Variables that hold a key or a login of a provider. A run that is metered inherits none of them.
const KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
];

/// Variables that say where a provider is.
const ADDRESSES: &[&str] =
    &["ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENAI_API_BASE", "OPENAI_BASE_URL"];

/// True for a variable that holds a key or a login of a provider, or says where a provider is.
pub fn leads_to_provider(name: &OsStr) -> bool {
    KEYS.iter().chain(ADDRESSES).any(|known| name == *known)
}

impl MeterPass {
    /// Returns the base address for Anthropic's and for Gemini's programs.
    pub fn base(&self) -> String {
        match self.own_login {
            true => format!("{}/r/{}", self.address, self.ticket),
            false => self.address.to_string(),
        }
    }

    /// Returns the base address for OpenAI's programs, with the version at its end.
    pub fn openai_base(&self) -> String {
        format!("{}/v1", self.base())
    }

    /// True for a variable that a metered run does not inherit: a key, or another way to a provider. A login of its own stays.
    pub fn hides(&self, name: &OsStr) -> bool {
        let is_in = |names: &[&str]| names.iter().any(|known| name == *known);
        let is_key = self.key_variable.as_deref().is_some_and(|variable| name == variable);
        is_key || is_in(ADDRESSES) || (!self.own_login && is_in(KEYS))
    }

    /// Returns the variables that lead a program to the meter, given the rule of its environment for addresses without a proxy.
    pub fn variables(&self, no_proxy: Option<&OsStr>) -> Vec<Variable> {
        let MeterProtocols { anthropic, openai, gemini } = self.protocols;
        let providers = [
            (anthropic, "ANTHROPIC_BASE_URL", self.base(), "ANTHROPIC_API_KEY"),
            (openai, "OPENAI_BASE_URL", self.openai_base(), "OPENAI_API_KEY"),
            (gemini, "GOOGLE_GEMINI_BASE_URL", self.base(), "GEMINI_API_KEY"),
        ];
        let mut variables: Vec<Variable> = Vec::new();
        for (_, address, base, key) in providers.into_iter().filter(|(is_there, ..)| *is_there) {
            variables.push((address.into(), base.into()));
            let ticket = (!self.own_login).then(|| (key.into(), (&*self.ticket).into()));
            variables.extend(ticket);
        }
        variables.extend(direct(no_proxy));
        variables
    }

    /// Returns what a metered run inherits of these variables, with those that lead it to the meter.
    pub fn environment(&self, inherited: Vec<Variable>) -> Vec<Variable> {
        let more = self.variables(no_proxy(&inherited));
        let keeps = |(name, _): &Variable| !self.hides(name) && !is_no_proxy(name);
        inherited.into_iter().filter(keeps).chain(more).collect()
    }
}

/// Returns these variables with a rule by which no proxy is asked for the meter.
pub fn past_proxies(variables: Vec<Variable>) -> Vec<Variable> {
    let more = direct(no_proxy(&variables));
    variables.into_iter().filter(|(name, _)| !is_no_proxy(name)).chain(more).collect()
}

fn is_no_proxy(name: &OsStr) -> bool {
    name == "NO_PROXY" || name == "no_proxy"
}

fn no_proxy(variables: &[Variable]) -> Option<&OsStr> {
    variables.iter().find(|(name, _)| is_no_proxy(name)).map(|(_, value)| value.as_os_str())
}

/// The rule for addresses without a proxy, given that of the environment. With a proxy a program would ask the proxy for the meter.
fn direct(no_proxy: Option<&OsStr>) -> [Variable; 2] {
    let mut direct: OsString = "127.0.0.1,localhost".into();
    if let Some(no_proxy) = no_proxy.filter(|no_proxy| !no_proxy.is_empty()) {
        direct.push(",");
        direct.push(no_proxy);
    }
    ["NO_PROXY", "no_proxy"].map(|name| (name.into(), direct.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(own_login: bool) -> MeterPass {
        MeterPass {
            address: "http://127.0.0.1:1".into(),
            ticket: "ticket".into(),
            own_login,
            key_variable: Some("OPERATOR_KEY".into()),
            protocols: MeterProtocols { anthropic: true, openai: true, gemini: false },
            output_tokens: None,
        }
    }

    fn environment(pass: &MeterPass) -> Vec<String> {
        let inherited = [
            ("PATH", "/bin"),
            ("OPERATOR_KEY", "sk-operator"),
            ("ANTHROPIC_API_KEY", "sk-secret"),
            ("ANTHROPIC_BASE_URL", "http://elsewhere"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "login"),
            ("no_proxy", "lan"),
        ];
        let inherited = inherited.map(|(name, value)| (name.into(), value.into())).into();
        let text = |(name, value): Variable| format!("{}={}", name.display(), value.display());
        pass.environment(inherited).into_iter().map(text).collect()
    }

    #[test]
    fn a_ticket_stands_where_the_key_stood() {
        let direct = "127.0.0.1,localhost,lan";
        assert_eq!(
            environment(&pass(false)),
            [
                "PATH=/bin",
                "ANTHROPIC_BASE_URL=http://127.0.0.1:1",
                "ANTHROPIC_API_KEY=ticket",
                "OPENAI_BASE_URL=http://127.0.0.1:1/v1",
                "OPENAI_API_KEY=ticket",
                &format!("NO_PROXY={direct}"),
                &format!("no_proxy={direct}"),
            ]
        );
        assert_eq!(format!("{:?}", pass(false)).matches("ticket\"").count(), 0);
    }

    #[test]
    fn a_login_of_the_programs_own_stays() {
        assert_eq!(
            environment(&pass(true))[..5],
            [
                "PATH=/bin",
                "ANTHROPIC_API_KEY=sk-secret",
                "CLAUDE_CODE_OAUTH_TOKEN=login",
                "ANTHROPIC_BASE_URL=http://127.0.0.1:1/r/ticket",
                "OPENAI_BASE_URL=http://127.0.0.1:1/r/ticket/v1",
            ]
        );
    }
}
