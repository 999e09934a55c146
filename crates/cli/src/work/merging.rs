//! How answers become one: a strategy of ours, or a plugin's merge.

use std::fmt;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_model::JsonText;
use offshoot_plugin_host::{PluginMerge, PluginName};
use offshoot_spawner::ExternalMerge;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::{Found, Plugins};

/// As written after `--merge` and `--strategy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// One of ours.
    Strategy(Strategy),
    /// `plugin:NAME` or `plugin:NAME=PARAMETERS`.
    Plugin {
        /// The name of the merge.
        name: PluginName,
        /// JSON where it is JSON, else text; `null` where there are none.
        params: JsonText,
    },
}

impl Merging {
    /// Reads the text.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let Some(plugin) = text.strip_prefix("plugin:") else {
            let strategy = text.parse().map_err(|error| {
                Failure::of(Exit::BadInput, &error)
                    .hint("a plugin's merge is plugin:NAME[=PARAMETERS]")
            })?;
            return Ok(Self::Strategy(strategy));
        };
        let (name, params) = match plugin.split_once('=') {
            Some((name, params)) => (name, Some(params)),
            None => (plugin, None),
        };
        let name = PluginName::parse(name).map_err(|error| Failure::of(Exit::BadInput, &error))?;
        let params = match params {
            None => JsonText::parse("null".to_owned()),
            Some(text) => JsonText::parse(text.to_owned()).or_else(|_| JsonText::of(&text)),
        };
        Ok(Self::Plugin { name, params: params.expect("text is always JSON") })
    }

    /// The strategy, which is the default one where a plugin merges.
    pub(crate) fn strategy(&self) -> Strategy {
        match self {
            Self::Strategy(strategy) => *strategy,
            Self::Plugin { .. } => Strategy::default(),
        }
    }

    /// Loads the plugin's merge, where it is one.
    pub(crate) fn load(
        &self,
        plugins: &Plugins,
        cx: &Invocation,
    ) -> Result<Option<ExternalMerge>, Failure> {
        self.load_by(|name| plugins.merge(name, cx))
    }

    /// The same for an agent of a tree that runs, from what was found when it began.
    pub(crate) fn load_found(&self, found: &Found) -> Result<Option<ExternalMerge>, Failure> {
        self.load_by(|name| found.merge(name))
    }

    fn load_by(
        &self,
        load: impl FnOnce(&str) -> Result<PluginMerge, Failure>,
    ) -> Result<Option<ExternalMerge>, Failure> {
        let Self::Plugin { name, params } = self else { return Ok(None) };
        let merge = load(name.as_str())?;
        Ok(Some(ExternalMerge { merge: Arc::new(merge), params: params.clone() }))
    }
}

impl fmt::Display for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strategy(strategy) => strategy.fmt(f),
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
            let Merging::Plugin { name: found, params: given } =
                Merging::parse(text).expect("it is one")
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
        assert_eq!(Merging::parse("quorum:3").expect("it is one").to_string(), "quorum:3");
        for wrong in ["plugin:", "plugin:A b", "plugin", "jq"] {
            assert_eq!(Merging::parse(wrong).expect_err(wrong).exit, Exit::BadInput);
        }
    }
}
