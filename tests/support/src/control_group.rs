//! The control group in which tests run.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of this process's control group of version 2, where it may make groups below it that the kernel can kill. What the
/// answer is does not depend on what is tested.
pub fn control_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].into_iter().map(Path::new);
    let home = mounts
        .map(|mount| mount.join(own))
        .find(|home| home.join("cgroup.procs").exists() && !home.join("tasks").exists())?;
    let may_leave = fs::OpenOptions::new().write(true).open(home.join("cgroup.procs")).is_ok();
    let trial = home.join(format!("test-{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir(&trial).ok()?;
    let can_kill = trial.join("cgroup.kill").exists();
    fs::remove_dir(&trial).ok()?;
    (may_leave && can_kill).then_some(home)
}
