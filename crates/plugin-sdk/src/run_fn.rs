//! The code of a runtime. Its name and its abilities stand in the declaration of the plugin.

use futures_util::future::BoxFuture;
use offshoot_runtime::{Abilities, Finished, Launch, RunContext, Runtime};

/// The code that runs an agent. A [`Runtime`] is one already, with its own abilities.
pub trait RunFn: Send + Sync + 'static {
    /// Starts a run, as [`Runtime::start`] does and under the same contract.
    fn run(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished>;

    /// The abilities, for a program whose settings change them. None: those of the declaration.
    fn abilities(&self) -> Option<Abilities> {
        None
    }
}

impl<R: Runtime> RunFn for R {
    fn run(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.start(launch, cx)
    }

    fn abilities(&self) -> Option<Abilities> {
        Some(Runtime::abilities(self))
    }
}

/// The code with the name and the abilities of its declaration.
pub(crate) struct Declared<R> {
    pub(crate) name: String,
    pub(crate) abilities: Abilities,
    pub(crate) code: R,
}

impl<R: RunFn> Runtime for Declared<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.code.abilities().unwrap_or_else(|| self.abilities.clone())
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.code.run(launch, cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::Plugin;

    struct Bare;

    impl RunFn for Bare {
        fn run(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
            async move {
                cx.host.started(None);
                Finished::text(launch.task)
            }
            .boxed()
        }
    }

    #[test]
    fn name_and_abilities_stand_in_the_declaration_alone() {
        let abilities = Abilities { resumes: true, ..Abilities::of_a_command() };
        let plugin = Plugin::new("").runtime("shout", "", abilities.clone(), |_| Ok(Bare));
        assert_eq!(plugin.manifest().runtimes[0].abilities, abilities);
        let made = plugin.made("shout", "{}").expect("it was declared");
        assert_eq!((made.name(), made.abilities()), ("shout", abilities));
        let absent = plugin.made("whisper", "{}").err().map(|error| error.to_string());
        assert_eq!(absent.as_deref(), Some("this plugin has no runtime `whisper`"));
    }
}
