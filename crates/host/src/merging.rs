//! The choice of a merge: a strategy of ours, a merge that asks, or a plugin's merge.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use offshoot_merge::{Asking, ParseAskingError, ParseStrategyError, Strategy};
use offshoot_model::JsonText;
use offshoot_plugin_host::{NameError, PluginMerge, PluginName};
use offshoot_spawner::ExternalMerge;

/// A merge as it is written: a strategy, a merge that asks, or `plugin:NAME[=PARAMETERS]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// One of ours.
    Strategy(Strategy),
    /// One that asks an agent or a program.
    Asking(Asking),
    /// The patches of runs that worked in folders of their own become a branch.
    Patch,
    /// A plugin's merge.
    Plugin {
        /// The name of the merge.
        name: PluginName,
        /// JSON where it is JSON, else text; `null` where there are none.
        params: JsonText,
    },
}

/// The name of the merge of patches.
pub const PATCH: &str = "patch";

/// A text that names no merge.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ParseMergingError {
    /// No strategy is written so.
    #[error(transparent)]
    Strategy(#[from] ParseStrategyError),
    /// A merge that asks is not written so.
    #[error(transparent)]
    Asking(#[from] ParseAskingError),
    /// No plugin can have this name.
    #[error(transparent)]
    Plugin(#[from] NameError),
}

impl ParseMergingError {
    /// Returns what can be done about it.
    pub fn hint(&self) -> String {
        const OTHERS: &str = "a plugin's merge is plugin:NAME[=PARAMETERS]";
        match self {
            Self::Asking(error) => error.hint().to_owned(),
            Self::Plugin(_) => OTHERS.to_owned(),
            Self::Strategy(error) => {
                let asking = Asking::NAMES.join(", ");
                let near = error.unknown().and_then(nearest);
                let near = near.map(|name| format!("the nearest is `{name}`; "));
                format!("{}others are {asking}, {PATCH}; {OTHERS}", near.unwrap_or_default())
            }
        }
    }
}

/// Returns the merge that was probably meant, as it is written.
fn nearest(name: &str) -> Option<&'static str> {
    let known = || Strategy::NAMES.iter().chain(Asking::NAMES).chain([&PATCH]).copied();
    let heads: Vec<&str> = known().filter_map(|name| name.split([':', '=']).next()).collect();
    let meant = offshoot_config::nearest(name.split([':', '=']).next()?, &heads)?;
    known().find(|name| name.starts_with(meant))
}

impl Merging {
    /// Returns the strategy, which is the default one where another merge is chosen.
    pub fn strategy(&self) -> Strategy {
        match self {
            Self::Strategy(strategy) => *strategy,
            Self::Asking(_) | Self::Patch | Self::Plugin { .. } => Strategy::default(),
        }
    }

    /// Returns the merge that asks, where it is one.
    pub fn asking(&self) -> Option<&Asking> {
        match self {
            Self::Asking(asking) => Some(asking),
            Self::Strategy(_) | Self::Patch | Self::Plugin { .. } => None,
        }
    }

    /// Loads the plugin's merge, where it is one.
    pub fn load<E>(
        &self,
        load: impl FnOnce(&str) -> Result<PluginMerge, E>,
    ) -> Result<Option<ExternalMerge>, E> {
        let Self::Plugin { name, params } = self else { return Ok(None) };
        let merge = load(name.as_str())?;
        Ok(Some(ExternalMerge { merge: Arc::new(merge), params: params.clone() }))
    }
}

impl FromStr for Merging {
    type Err = ParseMergingError;

    fn from_str(text: &str) -> Result<Self, ParseMergingError> {
        let Some(plugin) = text.strip_prefix("plugin:") else {
            return match Asking::parse(text) {
                None if text == PATCH => Ok(Self::Patch),
                Some(asking) => Ok(Self::Asking(asking?)),
                None => Ok(Self::Strategy(text.parse()?)),
            };
        };
        let (name, params) = plugin.split_once('=').unwrap_or((plugin, "null"));
        let name = PluginName::parse(name)?;
        let params = JsonText::parse(params.to_owned()).or_else(|_| JsonText::of(&params));
        Ok(Self::Plugin { name, params: params.expect("text is always JSON") })
    }
}

impl fmt::Display for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strategy(strategy) => strategy.fmt(f),
            Self::Asking(asking) => asking.fmt(f),
            Self::Patch => f.write_str(PATCH),
            Self::Plugin { name, params } => match params.as_str() {
                "null" => write!(f, "plugin:{name}"),
                params => write!(f, "plugin:{name}={params}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_their_parameters_are_told_apart_from_strategies() {
        let check = |text: &str, name: &str, params: &str| {
            let Merging::Plugin { name: found, params: given } = text.parse().expect("it is one")
            else {
                panic!("{text} is a plugin's");
            };
            assert_eq!((found.as_str(), given.as_str()), (name, params), "{text}");
        };
        check("plugin:jq", "jq", "null");
        check("plugin:jq=.a", "jq", "\".a\"");
        check("plugin:jq={\"program\":\".a=1\"}", "jq", "{\"program\":\".a=1\"}");
        check("plugin:jq=", "jq", "\"\"");
        check("plugin:my-merge=12", "my-merge", "12");
        assert_eq!("quorum:3".parse::<Merging>().expect("it is one").to_string(), "quorum:3");
        for wrong in ["plugin:", "plugin:A b", "plugin", "jq"] {
            wrong.parse::<Merging>().expect_err(wrong);
        }
    }

    #[test]
    fn the_nearest_merge_is_named() {
        for (written, expected) in [
            ("concat", "the nearest is `concatenate`; "),
            ("structure", "the nearest is `structured`; "),
            ("summar", "the nearest is `summarize`; "),
            ("best", "the nearest is `best-of=AGENT`; "),
            ("reduce", "the nearest is `reduce-with=AGENT`; "),
            ("majority", "others are "),
        ] {
            let hint = written.parse::<Merging>().expect_err("there is no such merge").hint();
            assert!(hint.starts_with(expected), "{written}: {hint}");
        }
    }
}
