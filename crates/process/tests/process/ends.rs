//! The ends of programs.

use std::time::Duration;

use offshoot_process::{Capture, Exit, Keep, MARK_VARIABLE, Program, Stop, StopHandle, Tap};
use offshoot_test_support::fake_agent;

use super::{LIST_DESCRIPTORS, agent, inherited, processes, run, shell, text, within};

#[tokio::test]
async fn the_exit_is_what_the_system_says() {
    for (actions, expected) in [
        (&["exit", "0"][..], Exit::Code(0)),
        (&["exit", "7"], Exit::Code(7)),
        (&["exit", "255"], Exit::Code(255)),
        (&["silent"], Exit::Code(0)),
        (&["signal", "11"], Exit::Signal(11)),
        (&["signal", "15"], Exit::Signal(15)),
        (&["signal", "9"], Exit::Signal(9)),
    ] {
        let finished = run(agent(actions)).await;
        assert_eq!(finished.exit, expected, "{actions:?}");
        assert_eq!(finished.stop, None, "{actions:?}");
        assert_eq!((finished.stragglers, finished.lost), (0, 0), "{actions:?}");
        assert_eq!((text(&finished.stdout), finished.stdout.total), (String::new(), 0));
        assert!(!finished.stdout.truncated && !finished.stdout.held_open);
    }
}

#[tokio::test]
async fn a_program_gets_what_it_was_given_and_nothing_else() {
    let mut program = agent(&["folder", "all-env"]);
    program.env = vec![("B".into(), "two words".into()), ("A".into(), "".into())];
    program.cwd = "/usr/bin".into();
    let printed = text(&run(program).await.stdout);
    let (given, mark) = printed.rsplit_once(MARK_VARIABLE).expect("the mark sorts last");
    assert_eq!(given, "/usr/bin\nA=\nB=two words\n");
    assert!(mark.starts_with('=') && mark.ends_with(".1;\n"), "{mark:?}");
}

#[tokio::test]
async fn a_program_leads_a_group_and_ignores_no_signal() {
    let script = r#"read -r _ _ _ _ group _ < /proc/$$/stat; test "$group" = "$$" && grep SigIgn /proc/self/status"#;
    let finished = run(shell(script)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    let printed = text(&finished.stdout);
    let mask = printed.strip_prefix("SigIgn:").expect("the line of ignored signals");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
    // Signals above 31 are the C library's own: its `posix_spawn` sets two of them aside.
    assert_eq!(mask & 0x7fff_ffff, 0, "{mask:x}");
}

#[tokio::test]
async fn a_program_inherits_no_descriptor() {
    let finished = run(shell(LIST_DESCRIPTORS)).await;
    assert_eq!(text(&finished.stdout), inherited());
}

#[tokio::test]
async fn the_time_that_a_program_uses_is_that_of_all_that_it_starts() {
    let agent_path = fake_agent().display();
    let rows = [
        ("by itself", format!("exec {agent_path} burn 100 print done hang"), true),
        // Orphans do not come to this process, so it dies unseen.
        ("by a child", format!("{agent_path} burn 100 print done hang & wait"), false),
        (
            "by a child that has ended",
            format!("{agent_path} burn 100; echo done; exec sleep 1000"),
            true,
        ),
    ];
    for (what, script, stays) in rows {
        let (tx, rx) = tokio::sync::oneshot::channel();
        let mut tx = Some(tx);
        let tap: Tap = Box::new(move |_: &[u8]| {
            tx.take().map(|tx| tx.send(()));
        });
        let stdout = Capture { keep: Keep::Nothing, tap: Some(tap) };
        let child = processes().spawn(Program { stdout, ..shell(&script) });
        let child = child.expect("the shell is there");
        let clock = child.cpu();
        assert!(clock.read() < Duration::from_millis(100), "{what}");
        let (handle, stop) = StopHandle::new();
        let finished = within(async {
            let wait = child.wait(stop);
            let stop = async {
                rx.await.expect("it prints");
                let used = clock.read();
                assert!(used >= Duration::from_millis(100), "{what}: {used:?}");
                handle.stop(Stop::Firm);
            };
            tokio::join!(wait, stop).0
        });
        assert_eq!(finished.await.exit, Exit::Signal(9));
        let used = clock.read();
        assert!(!stays || used >= Duration::from_millis(100), "{what}, when it is over: {used:?}");
    }
}
