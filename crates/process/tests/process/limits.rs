//! Bounds that the kernel holds to.

use offshoot_process::{Exit, Finished, Limits, NeverStop, Program, Reached, Stdin};
use rustix::process::{Resource, getrlimit};
use tokio::io::AsyncWriteExt;

use super::{processes, shell, text, within};

/// Runs a script under these bounds. It begins once they are set.
async fn bounded(script: &str, limits: Limits) -> Finished {
    let script = format!("read begin; {script}");
    let program = Program { stdin: Stdin::Pipe, limits, ..shell(&script) };
    let mut child = processes().spawn(program).expect("a shell can be started");
    let mut stdin = child.take_stdin().expect("it was started with a pipe");
    stdin.write_all(b"\n").await.expect("it reads");
    drop(stdin);
    within(child.wait(NeverStop)).await
}

#[tokio::test]
async fn a_program_and_what_it_starts_have_the_bounds_that_were_set() {
    let limits = Limits { memory_bytes: 300 << 20, open_files: 64, cpu_seconds: 7 };
    let asks = "ulimit -v; ulimit -n; ulimit -t";
    let finished = bounded(&format!("{asks}; sh -c '{asks}'"), limits).await;
    let told = format!("{}\n64\n7\n", 300 << 10).repeat(2);
    assert_eq!((text(&finished.stdout), finished.reached), (told, None));
}

#[tokio::test]
async fn what_is_not_bounded_is_as_before() {
    let files =
        getrlimit(Resource::Nofile).current.map_or("unlimited".to_owned(), |it| it.to_string());
    let finished = bounded("ulimit -n", Limits { cpu_seconds: 7, ..Limits::default() }).await;
    assert_eq!(text(&finished.stdout), format!("{files}\n"));
}

#[tokio::test]
async fn no_program_can_raise_its_bounds() {
    let limits = Limits { open_files: 64, ..Limits::default() };
    // One that may do everything on this computer can.
    let finished = bounded("ulimit -n 32 && ulimit -n", limits).await;
    assert_eq!(text(&finished.stdout), "32\n");
}

#[tokio::test]
async fn cpu_time_that_is_used_up_ends_a_program_also_where_it_ignores_the_signal() {
    let limits = Limits { cpu_seconds: 1, ..Limits::default() };
    let busy = "while :; do :; done";
    let finished = bounded(busy, limits).await;
    assert_eq!((finished.exit, finished.reached), (Exit::Signal(24), Some(Reached::Cpu)));
    let finished = bounded(&format!("trap : XCPU; {busy}"), limits).await;
    assert_eq!((finished.exit, finished.reached), (Exit::Signal(9), Some(Reached::Cpu)));
    let finished = bounded(&format!("sh -c '{busy}'; exit $?"), limits).await;
    assert_eq!((finished.exit, finished.reached), (Exit::Code(152), Some(Reached::Cpu)));
}

#[tokio::test]
async fn a_program_goes_before_us_where_memory_is_short() {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("the kernel tells");
    let own: i32 = own.trim().parse().expect("a number");
    let script = "cat /proc/self/oom_score_adj";
    let finished = bounded(script, Limits::default()).await;
    assert_eq!(text(&finished.stdout), format!("{}\n", (own + 300).min(1000)));
}
