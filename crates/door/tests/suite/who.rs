//! The identification of callers, with real processes: children of this one, which is the supervisor.
//!
//! A child is this test program again, told by its environment to knock and to say how it was received.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use offshoot_door::{CallerKind, Client, ClientError, Registry, Report, Ticket, process_identity};
use offshoot_model::ProcessIdentity;
use rustix::process::{Pid, getpid, set_child_subreaper};

use super::{Heard, House, run};

/// A call of a child, as a script that runs `$KNOCK`.
const DIRECTLY: &str = "exec $KNOCK";
const BELOW: &str = "$KNOCK; true";
const OWN_SESSION: &str = "setsid --wait $KNOCK; true";
/// The shell in between has ended before the child calls: it waits for its parent to change.
const ORPHAN: &str = "(ORPHAN=$$ exec $KNOCK) & exit 0";
const ORPHAN_AWAY: &str = "(ORPHAN=$$ exec setsid $KNOCK) & exit 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_is_its_run_whatever_it_says() {
    // As the command does: what forks away comes back to the supervisor.
    set_child_subreaper(Some(getpid())).expect("any process may");
    let house = House::new();
    let [of_a, of_b] = [(); 2].map(|()| Ticket::mint().unwrap());
    // A sibling with a process of its own that is alive all the time.
    let mut sibling = shell("read _").stdin(Stdio::piped()).spawn().unwrap();
    house.tickets.admit(run(2), of_b.clone());
    house.tickets.started(run(2), process_identity(sibling.id()));

    let a = run(1).to_string();
    let unknown = "unknown_caller".to_owned();
    for (script, ticket, expected) in [
        (DIRECTLY, Some(&of_a), &a),
        (DIRECTLY, None, &a),
        (DIRECTLY, Some(&of_b), &unknown),
        (BELOW, Some(&of_a), &a),
        (BELOW, None, &a),
        (BELOW, Some(&of_b), &unknown),
        (OWN_SESSION, Some(&of_a), &a),
        (OWN_SESSION, None, &a),
        (ORPHAN, Some(&of_a), &a),
        (ORPHAN, None, &a),
        (ORPHAN, Some(&of_b), &unknown),
        (ORPHAN_AWAY, Some(&of_a), &unknown),
        (ORPHAN_AWAY, None, &unknown),
        (ORPHAN_AWAY, Some(&of_b), &unknown),
    ] {
        house.tickets.admit(run(1), of_a.clone());
        let found = knock(&house, script, ticket, true).await;
        let what = format!("{script} with {}", if ticket.is_some() { "a ticket" } else { "none" });
        assert_eq!(found["caller"], *expected, "{what}");
        assert_eq!(found["supervisors above"], "1", "{what}");
        house.tickets.ended(run(1));
    }
    // Started by the supervisor, and no run: its helpers have nothing to ask.
    let found = knock(&house, DIRECTLY, None, false).await;
    assert_eq!(found["caller"], unknown);
    // The supervisor's own process is no run.
    assert_eq!(house.client().await.welcome().run_id, None);

    drop(sibling.stdin.take());
    sibling.wait().unwrap();
}

#[tokio::test]
async fn what_came_from_a_run_that_cannot_be_named_is_no_operator_of_a_later_tree() {
    let house = House::new();
    let parent = std::os::unix::process::parent_id();
    let parent = process_identity(parent).expect("it waits for us");
    // Another process with its number, which is gone.
    house.registry.remember_stray(ProcessIdentity { start_time: parent.start_time + 1, ..parent });
    for _ in 0..2 {
        assert_eq!(house.client().await.welcome().run_id, None, "the operator");
    }
    house.registry.remember_stray(parent);
    for _ in 0..2 {
        match Client::connect(&house.path(), &house.registry, None).await {
            Err(ClientError::Refused(refused)) => assert_eq!(refused.code, "unknown_caller"),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was let in"),
        }
    }
    // A run is what it is, whatever its parents were.
    house.tickets.admit(run(1), Ticket::mint().unwrap());
    house.tickets.started(run(1), process_identity(std::process::id()));
    assert_eq!(house.client().await.welcome().run_id, Some(run(1)));
}

#[tokio::test]
async fn a_client_inside_is_the_run_that_lives_here_while_that_lives() {
    let mut house = House::new();
    let server = house.server.as_ref().expect("it is closed");
    house.tickets.admit(run(1), Ticket::mint().unwrap());
    house.tickets.started(run(1), None);
    let inside = server.inside(run(1)).await.expect("it is let in");
    assert_eq!(inside.welcome().run_id, Some(run(1)));
    inside.call(Report { text: "from inside".into() }).await.unwrap();
    let heard = Heard::Report(CallerKind::Run(run(1)), "from inside".into());
    assert_eq!(house.heard().await, heard);
    // By the socket the same process is no run.
    assert_eq!(house.client().await.welcome().run_id, None);
    house.tickets.ended(run(1));
    let error = inside.call(Report { text: "afterwards".into() }).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(refused) if refused.code == "caller_ended"));
    house.server.take().expect("the server was stopped").stop().await;
    let error = inside.call(Report { text: "too late".into() }).await.unwrap_err();
    assert!(matches!(error, ClientError::Closed), "{error}");
}

/// Returns the answer to a child that calls like this. It is the process of the first run where `registered` says so.
async fn knock(
    house: &House,
    script: &str,
    ticket: Option<&Ticket>,
    registered: bool,
) -> BTreeMap<String, String> {
    let mut command = shell(script);
    let knock = format!(
        "{} --quiet --nocapture --exact who::the_child",
        std::env::current_exe().expect("a test knows its own file").display()
    );
    command.env_clear().env("PATH", "/usr/bin:/bin").env("KNOCK", knock);
    command.env("SOCKET", house.path()).env("USER_FOLDER", &house.registry.folders()[0]);
    if let Some(ticket) = ticket {
        command.env("TICKET", ticket.expose());
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("there is a shell");
    if registered {
        house.tickets.started(run(1), process_identity(child.id()));
    }
    let mut output = child.stdout.take().expect("the stream is not a pipe");
    let said = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        // The orphan holds the pipe until it has said everything.
        output.read_to_string(&mut said).expect("it says words");
        said
    });
    let said = said.await.expect("reading does not panic");
    // Reaped last: its number names it and its group as long as it can be asked for.
    child.wait().expect("the child cannot be waited for");
    let words = said.lines().filter_map(|line| line.split_once('='));
    words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn shell(script: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a child of a test, which ends with its script")]
    let mut command = Command::new("setsid");
    // As `process` does. It leads no group yet, so it becomes the shell itself.
    command.args(["/bin/sh", "-c", script]);
    command
}

/// Not a test but a child, where the environment says so.
#[tokio::test(flavor = "current_thread")]
async fn the_child() {
    let Some(socket) = std::env::var_os("SOCKET") else { return };
    if let Some(shell) = std::env::var_os("ORPHAN") {
        let shell: i32 = shell.to_str().unwrap().parse().unwrap();
        wait_for_the_end_of(Pid::from_raw(shell).expect("a number of a process"));
    }
    let user = std::env::var_os("USER_FOLDER").unwrap();
    let registry = Registry::in_folders([user.into()]);
    println!("\nsupervisors above={}", registry.above(std::process::id()).len());
    let ticket: Option<Ticket> =
        std::env::var_os("TICKET").map(|text| text.to_str().unwrap().parse().unwrap());
    let caller = match Client::connect(Path::new(&socket), &registry, ticket.as_ref()).await {
        Ok(client) => {
            let run = client.welcome().run_id;
            run.map_or("operator".to_owned(), |run| run.to_string())
        }
        Err(ClientError::Refused(refused)) => refused.code,
        Err(error) => error.to_string(),
    };
    println!("caller={caller}");
}

fn wait_for_the_end_of(process: Pid) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { return };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], None).expect("it can be waited for");
}
