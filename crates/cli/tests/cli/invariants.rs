//! Each invariant of `ARCHITECTURE.md`, attacked from outside: by programs in a real tree that want to break it. More attacks on
//! the door, each with a test of its own, are in `security.rs` and `attacks.rs`, and those on processes in `orphans.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use offshoot_test_support::{Watched, fake_agent};
use serde_json::Value;

use crate::command::Place;

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");

/// Longer than anything here takes to end.
const FAR: Duration = Duration::from_secs(30);

/// One attack.
struct Attack {
    /// The invariant that it is meant to break.
    invariant: &'static str,
    /// Options of the tree.
    options: &'static [&'static str],
    /// The shell script of the root. `ask METHOD PARAMS` asks at the door, and prints codes, fields and statuses.
    script: &'static str,
    /// The expected output of the root.
    prints: &'static str,
    /// The exit code of the command.
    exit: i32,
    /// The exit code of an audit of the tree.
    audit: i32,
    /// Checks what else holds afterwards.
    then: fn(&After),
}

/// The state that is there when a tree is over.
struct After {
    place: Place,
    /// All runs on record, the root first.
    runs: Vec<Value>,
}

const ATTACKS: &[Attack] = &[
    Attack {
        invariant: "one_tree_one_supervisor",
        script: r#"for way in "env -i PATH=$PATH" "env XDG_RUNTIME_DIR=$PWD" "env -u OFFSHOOT_SOCKET -u OFFSHOOT_TICKET" "setsid -w" "nohup"; do
                     $way "$OFFSHOOT" -q --data-dir elsewhere run --label below x -- echo below 2>&1
                   done"#,
        prints: "below\nbelow\nbelow\nbelow\nbelow\n",
        then: |after| {
            assert_eq!(after.runs.len(), 6);
            assert!(!after.place.path().join("elsewhere").exists());
        },
        ..NOTHING
    },
    Attack {
        invariant: "a_waiting_parent_lends_its_slot",
        options: &["--max-concurrent", "1", "--max-depth", "3"],
        // Waits that are cut off, and that wait for what is over, for each other and for nothing.
        script: r#"run=$("$OFFSHOOT" spawn 1 -- sh -c '"$OFFSHOOT" spawn --wait 2 -- sh -c "\"\$OFFSHOOT\" spawn --wait 3 -- cat"')
                   "$FAKE" ask-and-go wait '{}'; "$FAKE" ask-and-go wait "{\"runs\":[\"$run\"]}"
                   "$OFFSHOOT" -q wait --timeout 0 2> /dev/null
                   "$OFFSHOOT" wait & "$OFFSHOOT" wait $run & wait
                   "$OFFSHOOT" wait $run; "$OFFSHOOT" -q wait"#,
        prints: "3\n3\n3\n3\n",
        ..NOTHING
    },
    Attack {
        invariant: "lineage_comes_from_us",
        options: &["--max-depth", "1"],
        script: r#""$OFFSHOOT" spawn --wait x -- env FAKE="$FAKE" OFFSHOOT_DEPTH=0 OFFSHOOT_RUN_ID=$OFFSHOOT_RUN_ID \
                     OFFSHOOT_SESSION_KEY=$OFFSHOOT_SESSION_KEY OFFSHOOT_TICKET=$OFFSHOOT_TICKET sh -c '
                       code() { grep -o "\"code\":\"[a-z_]*\""; }
                       "$FAKE" ask spawn "{\"task\":\"x\",\"parent\":\"$OFFSHOOT_RUN_ID\",\"depth\":0}" 2>&1 | code
                       env -u OFFSHOOT_TICKET "$FAKE" ask spawn "{\"task\":\"x\",\"parent\":\"$OFFSHOOT_RUN_ID\",\"depth\":0}" | code'"#,
        prints: "\"code\":\"unknown_caller\"\n\"code\":\"depth_limit\"\n",
        then: |after| assert_eq!(after.runs.len(), 2),
        ..NOTHING
    },
    Attack {
        invariant: "rights_only_shrink",
        // What plain programs use is said to be nothing, so that the child's whole budget is there to be shared.
        options: &[
            "--config",
            "plain.toml",
            "--budget-tokens",
            "100",
            "--timeout",
            "50",
            "--max-depth",
            "2",
        ],
        script: r#"cat > grand.sh <<'END'
ask spawn '{"task":"x","command":["true"],"budget":{"tokens":61}}'
ask spawn '{"task":"x","command":["true"],"budget":{"tokens":60},"runTimeoutSeconds":4000,"label":"grandchild"}'
END
                   cat ask.sh grand.sh > all.sh
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":101}}'
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":18446744073709551615}}'
                   ask spawn '{"task":"x","command":["sh","all.sh"],"budget":{"tokens":60},"runTimeoutSeconds":40,"label":"child"}'
                   "$OFFSHOOT" wait"#,
        prints: "budget_exhausted\nbudget_exhausted\nrunId\nbudget_exhausted\nrunId\n",
        then: |after| {
            for (label, tokens, seconds) in [("child", 60, 40), ("grandchild", 60, 40)] {
                let grant = after.shown(label)["grant"].clone();
                assert_eq!(
                    (&grant["budget"]["tokens"], &grant["runTimeoutSeconds"]),
                    (&tokens.into(), &seconds.into())
                );
            }
        },
        ..NOTHING
    },
    Attack {
        invariant: "three_identities_apart",
        script: r#"ask spawn "{\"task\":\"x\",\"command\":[\"true\"],\"label\":\"child\",\"agent\":\"main\",\"sessionKey\":\"agent:main:main\",\"root\":\"$OFFSHOOT_RUN_ID\",\"runId\":\"$OFFSHOOT_RUN_ID\"}"
                   ask spawn '{"task":"x","agent":"main:subagent:x"}'
                   ask spawn '{"task":"x","agent":"stranger","command":["true"]}'
                   "$OFFSHOOT" -q wait > /dev/null"#,
        prints: "runId\ninvalid_request\nunknown_agent\n",
        then: |after| {
            let (root, child) = (&after.runs[0], after.shown("child"));
            assert_eq!((&child["root"], &child["parent"]), (&root["runId"], &root["runId"]));
            assert_ne!(child["runId"], root["runId"]);
            assert_eq!(child["agent"], "main");
            let key = child["sessionKey"].as_str().expect("a key");
            assert!(key.starts_with("agent:main:subagent:"), "{key}");
        },
        ..NOTHING
    },
    Attack {
        invariant: "a_malformed_key_is_an_error",
        script: r#"for key in agent: agent:main: agent::main "agent:main:subagent" "agent:main:subagent:a:sub:" "agent:MAIN:../x:y z" ; do
                     "$OFFSHOOT" -q cancel "$key" 2> /dev/null; echo $?
                     ask history "{\"run\":\"$key\"}"
                   done"#,
        prints: "2\ninvalid_request\n2\ninvalid_request\n2\ninvalid_request\n2\ninvalid_request\n2\ninvalid_request\n2\ninvalid_request\n",
        ..NOTHING
    },
    Attack {
        invariant: "recorded_before_told",
        // It ends the supervisor in the moment in which it has heard of an outcome.
        script: r#""$OFFSHOOT" spawn --wait --label child x -- echo told > heard; kill -9 $PPID"#,
        exit: -9,
        then: |after| {
            assert_eq!(fs::read(after.place.path().join("heard")).expect("it was told"), b"told\n");
            let child = after.run("child");
            assert_eq!(child["status"], "completed");
            let id = child["runId"].as_str().expect("the run has no id");
            assert_eq!(
                after.place.run(&["show", id, "--answer"]).expect_code(0).stdout(),
                "told\n"
            );
        },
        ..NOTHING
    },
    Attack {
        invariant: "finished_means_gone",
        // Four ways to stay: in the background, without a parent, in a session of its own, without ears for a polite signal.
        script: r#"sleep 1000 & echo $! >> left
                   (sleep 1000 & echo $! >> left)
                   setsid sh -c 'echo $$ >> left; exec sleep 1000' &
                   sh -c 'trap "" TERM HUP INT; echo $$ >> left; while :; do sleep 1000; done' &
                   while [ "$(wc -l < left)" -lt 4 ]; do :; done"#,
        then: |after| {
            let left = fs::read_to_string(after.place.path().join("left"))
                .expect("the file cannot be read");
            for pid in left.lines().map(|line| line.parse().expect("a number")) {
                assert!(Watched::new(pid).is_gone_within(FAR), "process {pid}");
            }
        },
        ..NOTHING
    },
    Attack {
        invariant: "soft_then_firm",
        options: &["--config", "c.toml"],
        script: r#"mkfifo up
                   run=$("$OFFSHOOT" spawn --label deaf x -- sh -c 'trap "echo asked >> said" TERM; sleep 1000 & echo > up; while :; do wait; done')
                   read up < up; "$OFFSHOOT" cancel $run; "$OFFSHOOT" -q wait $run > /dev/null 2>&1
                   # By its time as by a cancel: asked first, and killed after the grace.
                   ask spawn '{"task":"x","command":["sh","-c","trap \"echo asked >> said\" TERM; sleep 1000 & while :; do wait; done"],"label":"late","runTimeoutSeconds":1}'
                   "$OFFSHOOT" -q wait > /dev/null 2>&1; cat said"#,
        prints: "runId\nasked\nasked\n",
        then: |after| {
            assert_eq!(after.run("deaf")["status"], "cancelled");
            assert_eq!(after.run("late")["status"], "timed_out");
        },
        ..NOTHING
    },
    Attack {
        invariant: "cancel_goes_down_results_go_up",
        script: r#"mkfifo up
                   deep=$("$OFFSHOOT" spawn --label top x -- sh -c '"$OFFSHOOT" spawn --label deep x -- sleep 1000; echo > up; "$OFFSHOOT" -q wait')
                   read up < up
                   # A child ends neither its parent nor its sibling, and hears no result of theirs.
                   "$OFFSHOOT" spawn --wait x -- sh -c '
                     for run in "$@" main; do
                       "$OFFSHOOT" -q cancel $run 2> /dev/null; echo $?; "$OFFSHOOT" -q wait $run 2> /dev/null; echo $?
                     done' sh $OFFSHOOT_RUN_ID $deep
                   "$OFFSHOOT" cancel $deep; "$OFFSHOOT" -q wait $deep > /dev/null 2>&1; true"#,
        prints: "2\n2\n2\n2\n2\n2\n",
        then: |after| {
            assert_eq!(after.run("top")["status"], "cancelled");
            assert_eq!(after.run("deep")["status"], "cancelled", "it went down");
            assert_eq!(after.runs[0]["status"], "completed", "and not up");
        },
        ..NOTHING
    },
    Attack {
        invariant: "breaker_and_budget_at_admission",
        options: &["--max-spawns", "3", "--max-concurrent", "8"],
        // Many at once, each of which would still have been within the bound before the others.
        script: r#"for n in 1 2 3 4 5 6 7 8 9 10 11 12; do "$FAKE" ask spawn '{"task":"x","command":["true"]}' > asked.$n & done; wait
                   cat asked.* | grep -c '"runId"'; cat asked.* | grep -c spawn_limit; "$OFFSHOOT" -q wait > /dev/null"#,
        prints: "3\n9\n",
        then: |after| assert_eq!(after.runs.len(), 4),
        ..NOTHING
    },
    Attack {
        invariant: "breaker_and_budget_at_admission",
        options: &["--config", "tired.toml", "--budget-tokens", "100", "--max-concurrent", "8"],
        // A budget that would be enough for each of them, and an agent that has failed as often as it may.
        script: r#"all() { for n in 1 2 3 4 5 6 7 8 9 10 11 12; do "$FAKE" ask spawn "$1" > asked.$n & done; wait; cat asked.*; }
                   all '{"task":"x","command":["sleep","1000"],"budget":{"tokens":60}}' > asked
                   grep -c '"runId"' asked; grep -c budget_exhausted asked
                   "$OFFSHOOT" -q cancel "$(grep -o '[0-9a-f-]\{36\}' asked | head -1)"; "$OFFSHOOT" -q wait > /dev/null 2>&1
                   for n in 1 2; do "$OFFSHOOT" -q spawn --wait x -- ./missing > /dev/null 2>&1; done
                   all '{"task":"x","command":["true"]}' | grep -c breaker_open"#,
        prints: "1\n11\n12\n",
        then: |after| assert_eq!(after.runs.len(), 4),
        ..NOTHING
    },
    Attack {
        invariant: "same_events_same_picture",
        // Words that look like events of others, or erase what is before them.
        script: r#"lie=$(printf 'x\n2026-01-01T00:00:00Z main completed\r\033[2K\033[1A\302\233')
                   "$OFFSHOOT" events --follow $OFFSHOOT_RUN_ID > live &
                   "$OFFSHOOT" report "$lie"; "$OFFSHOOT" -q spawn --wait --label "$lie" x -- true 2> /dev/null
                   "$OFFSHOOT" -q spawn --wait "$lie" -- sh -c 'printf %s "$0"; exit 3' "$lie" > /dev/null 2>&1
                   "$OFFSHOOT" report "the last word"; until grep -q "the last word" live; do sleep 0.01; done"#,
        then: |after| {
            let live = fs::read_to_string(after.place.path().join("live")).expect("it was written");
            let id = after.runs[0]["runId"].as_str().expect("the run has no id");
            for look in [&["events", id][..], &["show", id], &["history", id], &["tree", id]] {
                let outcome = after.place.run(look).expect_code(0);
                let text = outcome.stdout();
                assert!(!text.lines().any(|line| line.starts_with("2026-01-01")), "{text:?}");
                let controls = |char: char| char.is_control() && char != '\n';
                assert!(!text.chars().any(controls), "{text:?}");
            }
            let replayed = after.place.run(&["events", id]).expect_code(0);
            let live = live.trim_end();
            assert!(replayed.stdout().starts_with(live), "{live}\n\n{}", replayed.stdout());
        },
        ..NOTHING
    },
    Attack {
        invariant: "every_runtime_passes_the_contract",
        // Programs that end oddly: by a signal, with a half JSON, without a word, with their output held by another.
        script: r#"odd() { "$OFFSHOOT" -q spawn --label "$1" x -- "$FAKE" $2 > /dev/null; }
                   odd signal "signal 9"; odd half "lie-json"; odd silent "close-stdin silent exit 7"; odd holder "print it fork-grandchild --hold-stdout"
                   "$OFFSHOOT" -q wait > /dev/null 2>&1"#,
        exit: 1,
        then: |after| {
            for (label, status) in [
                ("signal", "failed"),
                ("half", "completed"),
                ("silent", "failed"),
                ("holder", "completed"),
            ] {
                assert_eq!(after.run(label)["status"], status, "{label}");
            }
        },
        ..NOTHING
    },
    Attack {
        invariant: "unknown_is_not_zero",
        // A program that an agent names may call a model. What it will use is not known, and so it gets nothing of a budget of
        // none, whether it asks for some or not.
        options: &["--budget-tokens", "0"],
        script: r#"ask spawn '{"task":"x","command":["true"]}'
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":1}}'
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":-1}}'
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":0.5}}'
                   ask spawn '{"task":"x","command":["true"],"budget":{"tokens":"many"}}'"#,
        prints: "budget_exhausted\nbudget_exhausted\ninvalid_request\ninvalid_request\ninvalid_request\n",
        ..NOTHING
    },
    Attack {
        invariant: "the_record_proves_it",
        // As the same user it can write into the record; it cannot do so unseen.
        script: r#""$OFFSHOOT" -q spawn --wait --label child x -- echo true > /dev/null
                   python3 -c 'import sqlite3; c = sqlite3.connect(".offshoot/offshoot.db", timeout=30)
c.execute("UPDATE events SET body = replace(body, \"child\", \"saint\") WHERE body LIKE \"%child%\""); c.commit()'"#,
        audit: 1,
        ..NOTHING
    },
];

const NOTHING: Attack =
    Attack { invariant: "", options: &[], script: "", prints: "", exit: 0, audit: 0, then: |_| {} };

/// `ask METHOD PARAMS`: the refusal's code, or which of some fields the answer has.
const ASK: &str = r#"
[ $OFFSHOOT_DEPTH != 0 ] || echo $OFFSHOOT_RUN_ID > root
ask() { "$FAKE" ask "$1" "$2" | grep -oE '"(runId|status)"|"code":"[a-z_]*"' | grep -v '"status"' | head -1 | sed 's/"code"://; s/"//g'; }
"#;

#[test]
fn no_attack_breaks_an_invariant() {
    // All at once: most of them wait most of the time.
    let broken: Vec<&str> = thread::scope(|scope| {
        let started = ATTACKS.iter().map(|attack| (attack, scope.spawn(|| attack.run())));
        let started: Vec<_> = started.collect();
        let ended = started.into_iter().map(|(attack, thread)| (attack, thread.join()));
        ended.filter(|(_, ended)| ended.is_err()).map(|(attack, _)| attack.invariant).collect()
    });
    assert_eq!(broken, [""; 0], "what each of them did is said above");
}

#[test]
fn every_invariant_has_an_attack() {
    let listed = |line: &'static str| {
        let (number, rest) = line.split_once(". `")?;
        let (name, _) = rest.split_once("`: ")?;
        number.parse::<u32>().is_ok().then_some(name)
    };
    let listed: BTreeSet<&str> = PAGE.lines().filter_map(listed).collect();
    let attacked: BTreeSet<&str> = ATTACKS.iter().map(|attack| attack.invariant).collect();
    assert_eq!(listed.len(), 15);
    assert_eq!(attacked, listed);
}

impl Attack {
    fn run(&self) {
        let place = Place::new();
        place.file("c.toml", "[agents.defaults.subagents]\ngraceSeconds = 1\n");
        let tired = "[agents.defaults.subagents.breaker]\nfailures = 2\ncooldownSeconds = 3600\n";
        place.file("tired.toml", format!("{tired}[runtimes.exec]\ncost = \"none\"\n"));
        place.file("plain.toml", "[runtimes.exec]\ncost = \"none\"\n");
        let fake = fake_agent().display();
        place.file("ask.sh", format!("FAKE={fake}\n{ASK}"));
        let outcome = place.tree(self.options, &format!(". ./ask.sh\n{}", self.script));
        let words = format!("{}\n{}", self.invariant, outcome.text());
        // An empty answer is an empty line.
        let printed = outcome.stdout().strip_prefix('\n').unwrap_or(outcome.stdout());
        assert_eq!((printed, outcome.code), (self.prints, self.exit), "{words}");
        // Of a record that was changed nothing is shown.
        let runs = place.run(&["list", "--all", "--json"]).json();
        let runs = runs.as_array().expect("a list").clone();
        let root = fs::read_to_string(place.path().join("root")).expect("the file cannot be read");
        let audit = place.run(&["audit", root.trim()]);
        assert_eq!(audit.code, self.audit, "{words}\n{}", audit.text());
        (self.then)(&After { place, runs });
    }
}

impl After {
    /// The run with this label.
    fn run(&self, label: &str) -> &Value {
        self.runs.iter().find(|run| run["label"] == label).unwrap_or_else(|| panic!("{label}"))
    }

    fn shown(&self, label: &str) -> Value {
        let id = self.run(label)["runId"].as_str().expect("the run has no id");
        self.place.run(&["show", id, "--json"]).expect_code(0).json()
    }
}
