//! What a check says of good plugins, and of those that only seem to be.

use offshoot_plugin_host::{Checked, Finding, Suite, Trier, Verdict, check};
use offshoot_plugin_tests::{folder, json, library};
use offshoot_process::{Options, Processes};

async fn findings(
    plugin: &str,
    runtime: &str,
    settings: &str,
    task: &str,
    hanging_task: Option<&str>,
    asking_task: Option<&str>,
) -> Vec<Finding> {
    let (_folder, place) = folder();
    let checked = Checked::file(&library(plugin, &place)).expect("the library was refused");
    let trier = Trier {
        processes: Processes::start(Options::default()).expect("processes cannot be held"),
        program: env!("CARGO_BIN_EXE_plugin-checker").into(),
        args: Vec::new(),
        environment: Vec::new(),
    };
    let suite = Suite {
        config: json("{}"),
        runtimes: vec![(runtime.to_owned(), json(settings))],
        merges: Vec::new(),
        task: task.to_owned(),
        hanging_task: hanging_task.map(str::to_owned),
        asking_task: asking_task.map(str::to_owned),
    };
    check(&trier, &checked, suite).await.expect("it can be loaded")
}

fn broken(findings: Vec<Finding>) -> Vec<(String, String)> {
    let broken = findings.into_iter().filter_map(|finding| match finding.verdict {
        Verdict::Broken(found) => Some((finding.rule, found)),
        Verdict::Kept | Verdict::Skipped(_) => None,
    });
    broken.collect()
}

#[tokio::test]
async fn a_good_one_keeps_every_rule_and_only_children_are_skipped() {
    let findings = findings("echo", "echo", "{}", "hello", Some("wait"), None).await;
    let kept = findings.iter().filter(|finding| finding.verdict == Verdict::Kept).count();
    assert_eq!(kept, findings.len() - 1, "{findings:#?}");
    assert!(kept >= 24, "{findings:#?}");
    let skipped = |rule: &Finding| matches!(rule.verdict, Verdict::Skipped(_));
    let skipped = findings.iter().find(|finding| skipped(finding)).expect("echo asks for none");
    assert_eq!(skipped.rule, ANSWERED);
}

const ANSWERED: &str = "a run that asks for a child completes with the answer of its wait";

#[tokio::test]
async fn a_runtime_that_asks_for_children_is_checked_with_both_answers_and_a_stop() {
    let check = async |task: &str, expected: &[(&str, &str)]| {
        let findings = findings("misbehave", "breaks", "{}", "well", None, Some(task)).await;
        let tried = |rule: &str| findings.iter().any(|finding| finding.rule == rule);
        assert!(tried(ANSWERED) && tried(REFUSED) && tried(STOPPED), "{findings:#?}");
        let broken = broken(findings);
        let broken: Vec<(&str, &str)> =
            broken.iter().map(|(rule, found)| (&**rule, &**found)).collect();
        assert_eq!(broken, expected, "{task}");
    };
    const REFUSED: &str = "a run whose child is refused completes";
    const STOPPED: &str = "a run that waits for a child can be stopped";
    check("asks", &[]).await;
    check("asks, and fails", &[(REFUSED, "runtime error: this check admits no children")]).await;
    check("asks, and lies", &[(STOPPED, "it says that it completed")]).await;
    let none = "it asked for no child";
    let no_wait = "it ended without a wait for its child";
    check("well", &[(ANSWERED, none), (REFUSED, none), (STOPPED, no_wait)]).await;
}

#[tokio::test]
async fn a_panic_that_ends_the_process_is_found_without_one_of_its_own() {
    let broken = broken(
        findings("misbehave", "misbehave", r#"{"hook":"abort"}"#, "hello", None, None).await,
    );
    let [(rule, found)] = &broken[..] else { panic!("{broken:#?}") };
    assert_eq!(rule, "a panic in a run is its outcome, and in an operation of it an error");
    assert!(found.contains("SIGABRT"), "{found}");
}

/// Each breaks one rule, and no other.
#[tokio::test]
async fn what_breaks_a_rule_is_named_and_the_check_goes_on() {
    let check = async |task: &str, hangs: Option<&str>, rule: &str, found: &str| {
        let findings = findings("misbehave", "breaks", "{}", task, hangs, None).await;
        let last = findings.last().expect("there are rules").rule.clone();
        assert_eq!(last, "it leaves no process behind");
        let broken = broken(findings);
        let [(broken, why)] = &broken[..] else { panic!("{task}: {broken:#?}") };
        assert_eq!(broken, rule, "{task}");
        assert!(why.starts_with(found), "{task}: {why}");
    };
    let once = "started is told exactly once";
    let further = "a run that is told to go on takes a further turn";
    let letter = "a letter is taken with the next turn";
    let no_more = "a run that is told to end takes no further turn";
    let lets_go = "a run that is over lets go of its host";
    let firm = "a firm stop ends a run that hangs";
    tokio::join!(
        check("silent", None, once, "0 times"),
        check("early word", None, "started comes first", "Some(Progress("),
        check("shrinks", None, "what was used only grows", "input: 1 after 2"),
        check("one turn", None, further, "it asked 1 times"),
        check("no letters", None, letter, "it had taken none"),
        check("more turns", None, no_more, "it asked 3 times"),
        check("stays", None, lets_go, "not within 10 s"),
        check("well", Some("lies firmly"), firm, "it says that it completed"),
    );
}
