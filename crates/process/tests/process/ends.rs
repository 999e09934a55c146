//! How programs end.

use offshoot_process::{Exit, MARK_VARIABLE};

use super::{LIST_DESCRIPTORS, agent, inherited, run, shell, text};

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
