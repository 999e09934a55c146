//! `--dry-run`: what would be run, and under which limits.

use std::sync::Arc;

use indexmap::IndexMap;
use offshoot_config::{AgentDefinition, AgentId, Config, Origin, Share, SubagentSettings, Valued};
use offshoot_display::json::Document;
use offshoot_display::number::{self, bytes, count};
use offshoot_door::StatusAnswer;
use offshoot_host::runtimes::{BuiltInRuntime, EXEC, is_metered};
use offshoot_model::{BudgetGrant, BudgetRequest, CostKnowledge, MicroUsd, TokenCount};
use offshoot_policy::Terms;
use offshoot_policy::budget::{Claim, first_part, first_pieces, parts, plausible_usd};
use serde::Serialize;
use serde_json::{Value, json};

use super::ahead::Ahead;
use super::input_tokens::InputTokens;
use super::plan::Plan;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// One agent of a dry run.
#[derive(Debug, Serialize)]
pub(crate) struct PlannedAgent {
    /// The name of the piece in the answer.
    pub(crate) label: Arc<str>,
    /// The number of bytes that it reads on standard input; none where that is an answer that is still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// The agent, the runtime and the command; none where they are those of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<PlannedCommand>,
    /// The wave in which it can start at the earliest, from 1: one behind the last of those that it needs.
    pub(crate) wave: usize,
    /// The ids of the tasks that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<String>,
}

/// The agent, the runtime and the command of one run of a dry run.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct PlannedCommand {
    pub(crate) agent: AgentId,
    pub(crate) runtime: Arc<str>,
    pub(crate) command: Arc<[String]>,
}

impl PlannedAgent {
    /// Returns the agent that runs: its own, or that of the plan.
    pub(crate) fn agent<'a>(&'a self, plan: &'a Plan) -> &'a AgentId {
        self.runs.as_ref().map_or(&plan.agent, |own| &own.agent)
    }

    /// Returns the runtime on which it runs: its own, or that of the plan.
    pub(crate) fn runtime<'a>(&'a self, plan: &'a Plan) -> &'a Arc<str> {
        self.runs.as_ref().map_or(&plan.runtime, |own| &own.runtime)
    }
}

/// A plan that is printed, and all that is said of it.
pub(crate) struct DryRun<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) agents: &'a [PlannedAgent],
    /// The words that each agent is told.
    pub(crate) task: &'a str,
    pub(crate) config: &'a Config,
    /// True if some run may cost money.
    pub(crate) is_paid: bool,
    /// The run inside which it is asked for, where there is one: its tree has the limits.
    pub(crate) inside: Option<&'a StatusAnswer>,
}

/// A dry run, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    plan: &'a Plan,
    agents: usize,
    bytes: u64,
    pieces: &'a [PlannedAgent],
    limits: Value,
    budget: Option<Budget>,
    cost: Cost,
    /// The tokens that its agents read; none where no model is asked that is known of.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<InputTokens>,
    /// The bounds of this computer; none inside an agent, whose supervisor has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<Ahead>,
}

/// The division of a budget.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Budget {
    /// The whole.
    whole: BudgetGrant,
    /// The way in which it is shared.
    shared: Shared,
    /// The first and the last of the amounts that are reserved, from the smallest; of a pool the first reservation alone.
    smallest: BudgetGrant,
    largest: BudgetGrant,
    /// The number of pieces of a pool that work at once before the first of them has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_first: Option<u64>,
    /// The amount that each task of a fanout has to itself, in their order; of a pool those alone that ask for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shares: Vec<BudgetGrant>,
}

/// The ways in which a budget is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Shared {
    /// Pieces draw from one pool as they start.
    Pool,
    /// Each piece has its part from the beginning.
    Parts,
    /// The one run has all.
    Root,
}

/// The knowledge of the cost before anything runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    /// True if some run may cost money.
    may_cost: bool,
    /// The most dollars, where a budget bounds them.
    at_most_usd: Option<MicroUsd>,
}

/// As many agents are shown to people.
const SHOWN: usize = 20;

impl DryRun<'_> {
    /// Prints it.
    pub(crate) fn print(&self, cx: &Invocation) -> Result<Exit, Failure> {
        let ahead = || Ahead::look(self.plan, self.agents, self.config, cx);
        let ahead = self.inside.is_none().then(ahead);
        let input = || InputTokens::of(self.plan, self.agents, self.task, self.config);
        let input = self.may_cost().then(input).flatten();
        if cx.output.wants_json() {
            let limits = match self.inside {
                Some(status) => json!({ "tree": status }),
                None => json!(self.limits()),
            };
            let printed = Printed {
                plan: self.plan,
                agents: self.agents.len(),
                bytes: self.bytes(),
                pieces: self.agents,
                limits,
                budget: self.budget(),
                cost: Cost { may_cost: self.may_cost(), at_most_usd: self.most_usd() },
                input,
                ahead,
            };
            cx.output.document(&printed, Document::DryRun)?;
            return Ok(Exit::Done);
        }
        let budget = self.budget().filter(|_| self.may_cost());
        self.print_agents(budget.as_ref(), cx)?;
        cx.output.line(format_args!("{} together", bytes(self.bytes())))?;
        if let Some(merge) = &self.plan.merge {
            cx.output.line(format_args!("merge: {merge}"))?;
        }
        match self.inside {
            Some(status) => {
                cx.output.line("limits of this run in its tree:")?;
                cx.output.table(&of_tree(status))?;
            }
            None => {
                cx.output.line("limits:")?;
                cx.output.values("  ", &self.limits())?;
            }
        }
        if let Some(budget) = budget {
            cx.output.line(budget.line())?;
        }
        input.iter().try_for_each(|input| cx.output.line(input.line()))?;
        cx.output.line(self.cost_line())?;
        ahead.iter().flat_map(Ahead::lines).try_for_each(|line| cx.output.line(line))?;
        Ok(Exit::Done)
    }

    fn print_agents(&self, budget: Option<&Budget>, cx: &Invocation) -> Result<(), Failure> {
        let agents = self.agents;
        let many = if agents.len() == 1 { "agent" } else { "agents" };
        let many = format!("{} {many}", count(agents.len() as u64));
        let differ = agents.iter().any(|agent| agent.runs != agents[0].runs);
        let of_first = agents.first().and_then(|agent| agent.runs.as_ref());
        let line = |own: &PlannedCommand| wording::command_line(&own.command);
        match differ {
            true => cx.output.line(many)?,
            false => {
                let program =
                    of_first.map_or_else(|| wording::command_line(&self.plan.program), line);
                cx.output.line(format_args!("{many}, each runs: {program}"))?;
            }
        }
        let row = |at: usize, agent: &PlannedAgent| {
            let runs = agent.runs.as_ref().filter(|_| differ);
            let runs = runs.map(|own| format!("{} runs: {}", own.agent, line(own)));
            let needs = match agent.needs.is_empty() {
                true => String::new(),
                false => format!("after {}", agent.needs.join(", ")),
            };
            let size = agent.bytes.map(bytes).unwrap_or_default();
            let share = budget.and_then(|budget| budget.shares.get(at)).map(|it| amounts(*it));
            let share = share.filter(|share| !share.is_empty()).map(|it| format!("gets {it}"));
            let share = share.unwrap_or_default();
            [format!("  {}", agent.label), size, runs.unwrap_or_default(), needs, share]
        };
        // In the order in which they can start.
        let mut in_order: Vec<(usize, &PlannedAgent)> = agents.iter().enumerate().collect();
        in_order.sort_by_key(|(_, agent)| agent.wave);
        let shown = in_order.into_iter().take(SHOWN).map(|(at, agent)| row(at, agent));
        cx.output.table(&shown.collect::<Vec<_>>())?;
        match agents.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => cx.output.line(format_args!("  and {} more", count(more as u64))),
        }
    }

    fn bytes(&self) -> u64 {
        self.agents.iter().filter_map(|agent| agent.bytes).sum()
    }

    /// The limits of the tree that would be opened. Pieces share a budget otherwise than what agents spawn, where no share is set.
    fn limits(&self) -> IndexMap<String, Valued<Value>> {
        let known = SubagentSettings::limits();
        let resolved = self.config.resolve(&self.plan.agent);
        let set = resolved.filter(|(key, valued)| known.contains(key) && !valued.value.is_null());
        set.map(|(key, mut valued)| {
            if key == "budget.share" && valued.origin == Origin::BuiltIn && self.has_pieces() {
                valued.value = json!(Share::Pool);
            }
            if key == "retries.count" && valued.origin == Origin::BuiltIn && !self.resumes() {
                valued.value = json!(0);
            }
            (key, valued)
        })
        .chain(self.config.host_values())
        .collect()
    }

    /// True if some run may go on where an attempt of it has ended. Of runtimes of plugins nothing is known before they are loaded.
    fn resumes(&self) -> bool {
        let resumes = |name: &str| BuiltInRuntime::of(name).is_none_or(|runtime| runtime.resumes);
        self.runtimes().any(|runtime| resumes(runtime))
    }

    /// The runtimes that agents have to themselves, and that of the plan.
    fn runtimes(&self) -> impl Iterator<Item = &Arc<str>> {
        let own = self.agents.iter().filter_map(|agent| Some(&agent.runs.as_ref()?.runtime));
        own.chain([&self.plan.runtime])
    }

    /// True for a map and a fanout.
    fn has_pieces(&self) -> bool {
        self.plan.merge.is_some()
    }

    /// True if some run may cost money, or runs on what is only asked about it when it starts.
    fn may_cost(&self) -> bool {
        let is_no_program = |agent: &PlannedAgent| **agent.runtime(self.plan) != *EXEC.name;
        self.is_paid || self.agents.iter().any(is_no_program)
    }

    /// True if each request to a model is reserved before it leaves.
    fn is_metered(&self) -> bool {
        self.runtimes().all(|runtime| is_metered(self.config, runtime))
    }

    /// The division of the budget; none where nothing bounds it, and inside an agent, where the supervisor decides.
    fn budget(&self) -> Option<Budget> {
        let settings = self.config.root_settings(&self.plan.agent).budget;
        let whole = settings.grant();
        if whole == BudgetGrant::default() || self.inside.is_some() {
            return None;
        }
        // A weight says how much of the whole each is worth, which a pool does not ask.
        let is_pool = settings.share.as_ref().is_none_or(|share| share.value == Share::Pool)
            && self.plan.tasks.iter().all(|task| task.weight.is_none());
        let claims = self.claims();
        let (mut at_first, mut divided) = (None, vec![BudgetGrant::default(); claims.len()]);
        let (shared, smallest, largest) = match is_pool {
            _ if !self.has_pieces() => (Shared::Root, whole, whole),
            true => {
                let definition = self.config.agent(&self.plan.agent);
                let model = definition.and_then(AgentDefinition::primary_model);
                let runtime = Some(&*self.plan.runtime);
                let plausible = plausible_usd(self.config, runtime, model);
                let first = first_part(whole, plausible);
                at_first = self
                    .draw_alike()
                    .then(|| first_pieces(whole, plausible).min(self.agents.len() as u64));
                (Shared::Pool, first, first)
            }
            false => {
                divided = parts(whole, settings.keep(), &claims);
                let some = || divided.iter().filter(|part| **part != BudgetGrant::default());
                let by = |part: &&BudgetGrant| (part.usd, part.tokens);
                let smallest = some().min_by_key(by).copied().unwrap_or_default();
                let largest = some().max_by_key(by).copied().unwrap_or_default();
                (Shared::Parts, smallest, largest)
            }
        };
        let share = |(claim, part): (&Claim, BudgetGrant)| BudgetGrant {
            tokens: claim.own.tokens.or(part.tokens),
            usd: claim.own.usd.or(part.usd),
        };
        let shares = match self.plan.tasks.is_empty() {
            true => Vec::new(),
            false => claims.iter().zip(divided).map(share).collect(),
        };
        Some(Budget { whole, shared, smallest, largest, at_first, shares })
    }

    /// True if all pieces draw the same from a pool as they start: each may cost something, has no amount of its own, and runs the agent of the
    /// plan on its runtime.
    fn draw_alike(&self) -> bool {
        let is_alike = |claim: &Claim| claim.spends && claim.own == BudgetGrant::default();
        let is_plans =
            |own: &PlannedCommand| own.agent == self.plan.agent && own.runtime == self.plan.runtime;
        self.claims().iter().all(is_alike)
            && self.agents.iter().all(|agent| agent.runs.as_ref().is_none_or(is_plans))
    }

    /// The claims of the tasks on the budget, in their order; without tasks those of the pieces of a map.
    fn claims(&self) -> Vec<Claim> {
        let spends = |agent: &PlannedAgent| {
            **agent.runtime(self.plan) != *EXEC.name
                || Terms::root(self.config, agent.agent(self.plan)).allow_recursive_spawn()
        };
        let claim = |(at, agent): (usize, &PlannedAgent)| {
            let task = self.plan.tasks.get(at);
            let BudgetRequest { tokens, usd } = task.and_then(|it| it.budget).unwrap_or_default();
            let own = BudgetGrant { tokens, usd };
            Claim { own, weight: task.and_then(|task| task.weight), spends: spends(agent) }
        };
        self.agents.iter().enumerate().map(claim).collect()
    }

    fn most_usd(&self) -> Option<MicroUsd> {
        match self.inside {
            Some(status) => status.budget.and_then(|budget| budget.usd),
            None => self.config.root_settings(&self.plan.agent).budget.usd(),
        }
    }

    fn cost_line(&self) -> String {
        let is_said = |runtime: &Arc<str>| {
            let cost = self.config.runtime(runtime).and_then(|it| it.cost.as_ref());
            cost.is_some_and(|cost| cost.value == CostKnowledge::None)
        };
        if self.runtimes().all(is_said) {
            return format!("cost: none, as runtimes.{}.cost says", self.plan.runtime);
        }
        match (self.may_cost(), self.most_usd()) {
            (false, None) => "cost: none that is known, because the program is yours; agents that it starts and whose cost is reported share what runtimes.NAME.defaultUsd allows".to_owned(),
            (false, Some(most)) => format!("cost: none that is known, because the program is yours; paid agents that it starts: at most {} together", number::dollars(most)),
            (true, Some(most)) if self.is_metered() => {
                format!("cost: not known before; at most {}", number::dollars(most))
            }
            (true, Some(most)) => format!(
                "cost: not known before; at most {}, and beyond it what the calls cost that are under way when it is reached",
                number::dollars(most)
            ),
            (true, None) => "cost: not known before, and no budget in dollars bounds it; agents whose cost is reported share what runtimes.NAME.defaultUsd allows".to_owned(),
        }
    }
}

impl Budget {
    /// Says how it is divided, with amounts.
    fn line(&self) -> String {
        let is_nothing =
            self.whole.tokens == Some(0) || self.whole.usd == Some(MicroUsd::default());
        if is_nothing {
            return format!(
                "budget: {}, which pays for nothing: no agent starts",
                amounts(self.whole)
            );
        }
        let (whole, smallest) = (amounts(self.whole), amounts(self.smallest));
        match self.shared {
            Shared::Root => format!("budget: {whole} for the run and all that it asks for"),
            Shared::Pool => {
                let at_first = match self.at_first {
                    None => String::new(),
                    Some(1) => {
                        ", and works alone until it has ended, then at most twice as many work as have ended"
                            .to_owned()
                    }
                    Some(many) => {
                        format!(
                            ", and at most {} work at once, or twice as many as have ended where that is more",
                            count(many)
                        )
                    }
                };
                format!(
                    "budget: one pool of {whole} for all; the first agent takes {smallest} as it starts{at_first}: later ones take what the last ones used, \
                     and each more as it needs it"
                )
            }
            Shared::Parts if self.smallest == self.largest => {
                format!("budget: {whole}, of which each gets {smallest}")
            }
            Shared::Parts => {
                let largest = amounts(self.largest);
                format!(
                    "budget: {whole}, of which each gets {smallest} to {largest}, by weight; what it asks for by itself goes off first"
                )
            }
        }
    }
}

fn amounts(grant: BudgetGrant) -> String {
    let usd = grant.usd.map(number::dollars);
    let tokens = grant.tokens.map(|tokens| number::tokens(TokenCount::Known(tokens)));
    usd.into_iter().chain(tokens).collect::<Vec<_>>().join(" and ")
}

/// The limits of a run inside which the plan is printed.
fn of_tree(status: &StatusAnswer) -> Vec<[String; 2]> {
    let mut rows = vec![
        ["  depth".to_owned(), status.depth.to_string()],
        ["  maxDepth".to_owned(), status.max_depth.to_string()],
        ["  may spawn".to_owned(), if status.may_spawn { "yes" } else { "no" }.to_owned()],
    ];
    if let Some(left) = status.budget {
        let left = amounts(BudgetGrant { tokens: left.tokens, usd: left.usd });
        if !left.is_empty() {
            rows.push(["  budget left".to_owned(), left]);
        }
    }
    rows
}
