//! The processes that are found after a supervisor was killed with its keeper.

use std::collections::HashSet;

use offshoot_process::{Exit, Identity, NeverStop, Wanted, end_leftovers, leftovers};

use crate::{FAR, processes, shell, within};

const NONE: [u32; 0] = [];
const VARIABLE: &str = "OFFSHOOT_TEST_RUN";

fn wanted(leaders: &[Identity], value: Option<&str>) -> Wanted {
    let values: HashSet<String> = value.into_iter().map(str::to_owned).collect();
    Wanted { leaders: leaders.to_vec(), variable: VARIABLE, values }
}

fn found(wanted: &Wanted) -> Vec<u32> {
    let mut pids: Vec<u32> =
        leftovers(wanted).expect("/proc can be read").iter().map(|left| left.pid).collect();
    pids.sort_unstable();
    pids
}

#[tokio::test]
async fn a_process_is_known_by_number_and_start_or_by_its_environment() {
    let (theirs, others) = (processes(), processes());
    let mut program = shell("exec sleep 1000");
    program.env.push((VARIABLE.into(), "a run of theirs".into()));
    let named = theirs.spawn(program).expect("the program cannot be started");
    let unnamed = theirs.spawn(shell("exec sleep 1000")).expect("the program cannot be started");
    let stranger = others.spawn(shell("exec sleep 1000")).expect("the program cannot be started");
    let (id, other) = (named.identity(), stranger.identity());

    // Processes that stood below the same supervisor are found with it, and no others.
    let mut both = vec![id.pid, unnamed.identity().pid];
    both.sort_unstable();
    assert_eq!(found(&wanted(&[], Some("a run of theirs"))), both);
    assert_eq!(found(&wanted(&[id], None)), both);
    assert_eq!(found(&wanted(&[], None)), NONE);
    assert_eq!(found(&wanted(&[], Some("a run"))), NONE, "a part of a value is another value");
    // A number that was given away since.
    let reused = Identity { start_time: other.start_time + 1, ..other };
    assert_eq!(found(&wanted(&[reused], None)), NONE);
    // Nor those who look, whatever they carry.
    let ours = Identity { pid: std::process::id(), start_time: 0 };
    assert_eq!(found(&wanted(&[ours], None)), NONE);

    let wanted = wanted(&[id], Some("a run of theirs"));
    let left = leftovers(&wanted).expect("/proc can be read");
    let told: Vec<_> = left.iter().filter_map(|left| left.value.clone()).collect();
    assert_eq!(told, ["a run of theirs"]);
    assert_eq!(end_leftovers(left, &wanted, FAR).expect("/proc can be read"), (2, 0));
    for child in [named, unnamed] {
        assert_eq!(within(child.wait(NeverStop)).await.exit, Exit::Signal(9));
    }
    assert_eq!(found(&wanted_only(other)), [other.pid]);
}

#[tokio::test]
async fn what_is_found_goes_with_its_group_and_whatever_it_starts_meanwhile() {
    let theirs = processes();
    // Its children have nothing left by which they could be known, but the group.
    let mut program = shell("env -i sleep 1000 & env -i sleep 1000 & echo up; wait");
    program.env.push((VARIABLE.into(), "a leader".into()));
    let child = theirs.spawn(program).expect("the program cannot be started");
    let wanted = wanted(&[child.identity()], None);
    let left = leftovers(&wanted).expect("/proc can be read");
    // The others too, where they have not cleared their environment yet.
    assert!(left.iter().any(|left| left.pid == child.identity().pid));
    end_leftovers(left, &wanted, FAR).expect("/proc can be read");
    // It ends only when its output does, which the whole group holds.
    assert_eq!(within(child.wait(NeverStop)).await.exit, Exit::Signal(9));
}

fn wanted_only(leader: Identity) -> Wanted {
    wanted(&[leader], None)
}
