//! Loading a plugin: opening its library, comparing layouts in both directions, asking what it is, beginning.

use offshoot_plugin_host::Checked;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::outcome::{Outcome, Unit};
use crate::plugins::{copy, load};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "plugin-load", what: "load a plugin whose file has been checked", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let samples =
        compare(setting, setting.rounds(), vec![Side::new("offshoot", || ours(setting))])?;
    Ok(Outcome::new(Unit::Seconds("plugin"), samples)
        .at_most("offshoot", 2e-3)
        .note("each is a file of its own; none is ever unloaded"))
}

fn ours(setting: &Setting) -> Result<f64> {
    let folder = setting.scratch()?;
    let checked = Checked::file(&copy("echo", folder.path())?)?;
    let (seconds, plugin) = timed(|| load(&checked))?;
    assert_eq!(plugin.manifest().name, "echo");
    Ok(seconds)
}
