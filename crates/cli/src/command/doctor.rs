//! `offshoot doctor`.

mod found;
mod prove;

use std::io;
use std::path::PathBuf;

use clap::Args;
use offshoot_config::MeterMode;
use offshoot_display::number;
use offshoot_door::{Registry, Supervisor};
use offshoot_host::runtimes::EXEC;
use offshoot_host::{DayBudget, SlotsTaken, known_walls};
use offshoot_process::{
    HostMemory, KeeperState, groups_bound_memory, has_control_group, keeper_of,
};
use offshoot_spawner::{Clock, ParkedAccount, SystemClock};
use serde::Serialize;

use crate::arguments::LimitArguments;
use crate::code::NoteCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;

/// Check that running trees can be cleaned up, or that limits hold
///
/// Shows what is found on this computer: programs of agents with their versions and logins, the data folder, descriptors, memory, and what
/// trees of this user take of the limits of the section `host`. No key is read.
///
/// Shows also, for each supervisor of this user that runs, its keeper: the process that ends its agents if it is killed; and whether its
/// agents are in a control group; with --json that alone. Ends with 1 where a keeper is stopped or missing.
///
/// With --prove it tries the limits of the configuration that holds here, one by one: built-in agents ask for more than each limit
/// allows, and the table shows what they got. Limits over all trees of this user are tried apart from the trees that run.
/// No program and no model is started; it takes a few seconds. Ends with 1 where a limit does not hold.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot doctor
  offshoot doctor --prove
  offshoot doctor --prove --config strict.toml --json")]
pub(crate) struct DoctorArguments {
    /// Try each limit of the configuration with built-in agents
    #[arg(long)]
    pub(crate) prove: bool,
}

/// The page for programs: what is found on the computer, and the supervisors of this user.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    found: found::Found,
    supervisors: &'a [Checked],
    /// Lines for people about the limits of the computer, of money and of quotas.
    limits: Vec<String>,
}

/// A supervisor, and what would end its agents.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    pid: u32,
    socket: PathBuf,
    keeper: Keeper,
    control_group: bool,
}

/// The keeper of a supervisor.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Keeper {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    state: &'static str,
}

/// Looks at each supervisor of the user, or tries the limits.
pub(crate) fn run(arguments: &DoctorArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if arguments.prove {
        return prove::run(cx);
    }
    let registry = Registry::of_user(cx.environment.runtime_folder.as_deref());
    let mut supervisors = registry.supervisors();
    supervisors.sort_by_key(|supervisor| (supervisor.process.pid, supervisor.socket.clone()));
    let found: Vec<Checked> = supervisors.into_iter().map(look).collect();
    let limits = [host_limits(cx), money_limits(cx), quota_limits(cx)].concat();
    let page = Page { found: found::look(cx)?, supervisors: &found, limits };
    cx.output.result(&page, || {
        page.found.lines().iter().try_for_each(|line| cx.output.line(line))?;
        if found.is_empty() {
            cx.output.note(NoteCode::NoTreeRuns, "no tree of this user is running");
        }
        found.iter().try_for_each(|found| cx.output.line(describe(found)))?;
        page.limits.iter().try_for_each(|line| cx.output.line(line))
    })?;
    let holds = found.iter().all(|found| found.keeper.state == HOLDS);
    Ok(if holds { Exit::Done } else { Exit::AgentFailed })
}

/// Returns lines about the limits that the kernel and the trees of the user hold to together.
fn host_limits(cx: &Invocation) -> Vec<String> {
    let memory = match HostMemory::read() {
        Ok(HostMemory { total, available, stalled }) => {
            let counted = if stalled.is_some() { "are counted" } else { "are not counted" };
            let [total, available] = [total, available].map(number::bytes);
            format!(
                "{available} of {total} available, and standstills for want of memory {counted}"
            )
        }
        Err(error) => format!("not known, so that no run waits for it: {error}"),
    };
    let way = match groups_bound_memory() {
        true => "by control groups",
        false => "by address space, since no control group gives a controller of memory here",
    };
    let mut lines = vec![format!("memory: {memory}; maxMemoryBytes is held to {way}")];
    let state_home = cx.environment.state_home.as_deref();
    let of_all = SlotsTaken::of_user(state_home).map(|taken| vec![(String::new(), taken)]);
    let of_accounts = SlotsTaken::of_accounts(state_home);
    lines.extend(slots_taken("host.maxConcurrent", of_all));
    let of_accounts = of_accounts.map(|accounts| {
        accounts.into_iter().map(|(name, taken)| (format!(" of {name}"), taken)).collect()
    });
    lines.extend(slots_taken("host.maxConcurrentPerAccount", of_accounts));
    lines
}

/// Returns lines about the slots of a key that are taken, where trees count them.
fn slots_taken(key: &str, taken: io::Result<Vec<(String, SlotsTaken)>>) -> Vec<String> {
    match taken {
        // No tree counts those without a bound.
        Ok(taken) => taken
            .iter()
            .filter(|(_, taken)| taken.max > 0)
            .map(|(of, SlotsTaken { max, slots, trees, waiting })| {
                let trees =
                    if *trees == 1 { "1 tree".to_owned() } else { format!("{trees} trees") };
                format!("{key}: {slots} of {max} slots{of} are taken by {trees}; trees that wait for one: {waiting}")
            })
            .collect(),
        Err(error) => vec![format!("{key}: what is taken cannot be read: {error}")],
    }
}

/// Returns lines about the limits on money.
fn money_limits(cx: &Invocation) -> Vec<String> {
    // What is wrong with the configuration is for other commands to say.
    let Ok(config) = load::config(cx, &LimitArguments::default()) else { return Vec::new() };
    let state_home = cx.environment.state_home.as_deref();
    let mut lines = match DayBudget::lines(state_home, config.host(), SystemClock.now()) {
        Ok(lines) => lines,
        Err(error) => vec![format!("what trees spend in a day cannot be read: {error}")],
    };
    let Some(exec) = config.runtime(EXEC.name) else { return lines };
    let is_metered = exec.meter.as_ref().is_some_and(|meter| meter.value == MeterMode::On);
    if is_metered && exec.cost.is_none() {
        let text = "meter: a program that ignores its base URL passes it by, and what it costs is not known; with runtimes.exec.cost = \"none\" it costs nothing";
        lines.push(text.to_owned());
    }
    lines
}

/// Returns a line for each account of which a quota is used up now.
fn quota_limits(cx: &Invocation) -> Vec<String> {
    let now = SystemClock.now();
    let walls = known_walls(cx.environment.state_home.as_deref()).into_iter();
    let line = |ParkedAccount { account, window, until }| {
        let window = window.map(|window| format!(" {window}")).unwrap_or_default();
        let until = number::moment(until);
        format!(
            "quota: the quota{window} of an account of {account} is used up until {until}: no run with that login starts before"
        )
    };
    walls.filter(|wall| wall.until > now).map(line).collect()
}

const HOLDS: &str = "holds";

fn look(Supervisor { process, socket, .. }: Supervisor) -> Checked {
    let (pid, state) = match keeper_of(process.pid) {
        KeeperState::Holds { pid } => (Some(pid), HOLDS),
        KeeperState::Stopped { pid } => (Some(pid), "stopped"),
        KeeperState::Missing => (None, "missing"),
    };
    let control_group = has_control_group(process.pid);
    Checked { pid: process.pid, socket, keeper: Keeper { pid, state }, control_group }
}

fn describe(Checked { pid, socket, keeper, control_group }: &Checked) -> String {
    let keeper = match keeper {
        Keeper { pid: Some(keeper), state: HOLDS } => format!("keeper {keeper} holds"),
        Keeper { pid: Some(keeper), state } => format!(
            "keeper {keeper} is {state}: agents may live on if {pid} is killed; `kill -CONT {keeper}` lets it go on"
        ),
        Keeper { pid: None, .. } => format!("no keeper: agents may live on if {pid} is killed"),
    };
    let group = if *control_group { "agents in a control group" } else { "no control group" };
    format!("supervisor {pid} at {}: {keeper}; {group}", socket.display())
}
