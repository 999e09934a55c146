//! The stages of a map: commands behind `--then`, of which each reads what the one before it printed for the same piece.

use std::sync::Arc;

use offshoot_config::Config;
use offshoot_host::Merging;
use offshoot_host::runtimes::EXEC;
use offshoot_model::SpawnRequest;
use offshoot_spawner::{Piece, PieceNeed, RunSpec};

use super::dry_run::{PlannedAgent, PlannedCommand};
use super::pieces::AnswerRules;
use super::plan::Plan;
use super::preflight::{self, Prepared};
use crate::arguments::WorkArguments;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// The words between two stages.
const BETWEEN: [&str; 2] = ["--then", "--"];

/// Splits the words behind `--` into the command of the first stage, and those of the later ones.
pub(crate) fn split(words: &[String]) -> Result<(&[String], Vec<&[String]>), Failure> {
    let mut commands = Vec::new();
    let mut rest = words;
    while let Some(at) = rest.windows(2).position(|pair| pair == BETWEEN) {
        commands.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    commands.push(rest);
    let many = commands.len();
    if let Some(at) = commands.iter().position(|command| command.is_empty() && many > 1) {
        let stage = at + 1;
        return Err(Failure::input(
            FailureCode::StageWithoutCommand,
            format_args!("stage {stage} of {many} has no command"),
        )
        .hint("offshoot map INPUT -- COMMAND --then -- COMMAND"));
    }
    let later = commands.split_off(1);
    Ok((commands[0], later))
}

/// Looks for the programs of the later stages, and refuses what makes no sense with them.
pub(crate) fn prepare(
    later: &[&[String]],
    (config, prepared): (&Config, &Prepared),
    terms: &AnswerRules,
    work: &WorkArguments,
    cx: &Invocation,
) -> Result<Vec<Arc<[String]>>, Failure> {
    if later.is_empty() {
        return Ok(Vec::new());
    }
    let refuse = |what: &str, why: &str| {
        Err(Failure::input(
            FailureCode::NotWithStages,
            format_args!("{what} cannot be used with --then: {why}"),
        )
        .hint(format_args!("leave {what} out, or run the stages as one command: `sh -c '...'`")))
    };
    if work.isolation.as_ref().is_some_and(|isolation| !isolation.is_none()) {
        return refuse("--isolation", "no stage would see what the one before it has changed");
    }
    if terms.merging == Merging::Patch {
        return refuse("--merge patch", "stages hand on what they print, and no changes of files");
    }
    if *prepared.runtime != *EXEC.name {
        return refuse("--runtime", "each stage is a program");
    }
    if config.agent(&prepared.agent).is_some_and(|agent| agent.command.is_some()) {
        let what = format!("the agent `{}`", prepared.agent);
        return refuse(&what, "it has a command of its own, which each stage would run");
    }
    let program = |command: &&[String]| preflight::program(command, config, prepared, cx);
    later.iter().map(program).collect()
}

/// Adds the runs of the later stages of a plan, each behind that of the stage before it: so what was begun is finished before more is
/// begun, and a later start finds each run in its place again.
pub(crate) fn chained(firsts: Vec<Piece>, plan: &Plan, all: &RunSpec) -> Vec<Piece> {
    if plan.stages.is_empty() {
        return firsts;
    }
    let spec = |command: &Arc<[String]>| {
        Arc::new(RunSpec { command: Some(Arc::clone(command)), ..all.clone() })
    };
    let specs: Vec<Arc<RunSpec>> = plan.stages.iter().map(spec).collect();
    let first_task = wording::command_line(&plan.program);
    let task = |command: &Arc<[String]>| wording::command_line(command).into();
    let tasks: Vec<Arc<str>> = plan.stages.iter().map(task).collect();
    let mut pieces = Vec::with_capacity(firsts.len() * (1 + specs.len()));
    for first in firsts {
        let title = first.key.clone().or_else(|| first.request.label.clone()).unwrap_or_default();
        let label = |number: usize| -> Arc<str> { stage_label(&title, number).into() };
        let SpawnRequest { task, schema, .. } = first.request.clone();
        let common = SpawnRequest { schema: None, ..first.request.clone() };
        let request = SpawnRequest { label: Some(label(1)), ..common.clone() };
        pieces.push(Piece { request, key: Some(Arc::clone(&title)), ..first });
        for (number, (spec, own_task)) in (2..).zip(specs.iter().zip(&tasks)) {
            let before = u32::try_from(pieces.len() - 1).expect("fewer pieces than 2^32");
            let is_last = number == 1 + specs.len();
            let request = SpawnRequest {
                // Without --task it is the command that runs.
                task: Arc::clone(if *task == *first_task { own_task } else { &task }),
                label: Some(label(number)),
                schema: schema.clone().filter(|_| is_last),
                ..common.clone()
            };
            pieces.push(Piece {
                run_spec: Some(Arc::clone(spec)),
                needs: vec![PieceNeed { name: label(number - 1), place: before }],
                reads_need: true,
                ..request.into()
            });
        }
    }
    pieces
}

/// The same for a dry run.
pub(crate) fn planned(firsts: Vec<PlannedAgent>, plan: &Plan) -> Vec<PlannedAgent> {
    if plan.stages.is_empty() {
        return firsts;
    }
    let runs = |command: &Arc<[String]>| {
        let (agent, runtime) = (plan.agent.clone(), Arc::clone(&plan.runtime));
        Some(PlannedCommand { agent, runtime, command: Arc::clone(command) })
    };
    let mut agents = Vec::with_capacity(firsts.len() * (1 + plan.stages.len()));
    for first in firsts {
        let title = Arc::clone(&first.label);
        let label = stage_label(&title, 1).into();
        agents.push(PlannedAgent { label, runs: runs(&plan.program), ..first });
        agents.extend((2..).zip(&plan.stages).map(|(number, command)| PlannedAgent {
            label: stage_label(&title, number).into(),
            bytes: None,
            runs: runs(command),
            wave: number,
            needs: vec![stage_label(&title, number - 1)],
        }));
    }
    agents
}

fn stage_label(piece: &str, number: usize) -> String {
    format!("{piece} (stage {number})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_where_then_is_followed_by_two_dashes() {
        #[track_caller]
        fn check(words: &str, expected: &[&str]) {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            let found = split(&words).map(|(first, later)| {
                let all = std::iter::once(first).chain(later);
                all.map(|command| command.join(" ")).collect::<Vec<_>>()
            });
            assert_eq!(found.expect("commands"), expected);
        }
        check("", &[""]);
        check("a b", &["a b"]);
        check("a x --then -- b --then -- c y", &["a x", "b", "c y"]);
        // Words of a command.
        check("a --then b", &["a --then b"]);
        check("a -- --then", &["a -- --then"]);
        check("a --then --then -- b", &["a --then", "b"]);
        check("a --then -- b -- c", &["a", "b -- c"]);
    }

    #[test]
    fn a_stage_without_a_command_is_named() {
        #[track_caller]
        fn check(words: &[&str], expected: &str) {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(split(&words).expect_err("no command").to_string(), expected);
        }
        check(&["--then", "--", "b"], "stage 1 of 2 has no command");
        check(&["a", "--then", "--"], "stage 2 of 2 has no command");
        check(&["a", "--then", "--", "--then", "--", "c"], "stage 2 of 3 has no command");
    }
}
