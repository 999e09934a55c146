//! `posix_spawn` with a session of its own for each child.
//!
//! The standard library can open a session only after a fork (`pre_exec`), which copies page tables: 20 ms instead of
//! 0.4 ms for a supervisor of 400 MiB. The C library's `posix_spawn` keeps to `vfork` and has a flag for it.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;

use super::ProcessId;

/// The program of a new process, with its arguments, environment, folder and streams.
pub(crate) struct Image<'a> {
    /// The absolute path of the program.
    pub(crate) path: &'a Path,
    /// Without the program itself.
    pub(crate) args: &'a [OsString],
    /// The whole environment. Of a name that is there twice the last value counts.
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) cwd: &'a Path,
    /// The descriptors 0, 1 and 2.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
}

// The `libc` crate declares it for one C library only. glibc has it since 2.29, musl since 1.1.24.
#[expect(unsafe_code, reason = "a function of the C library has to be declared to be called")]
// SAFETY: this is its declaration in both libraries' headers.
unsafe extern "C" {
    fn posix_spawn_file_actions_addchdir_np(
        actions: *mut libc::posix_spawn_file_actions_t,
        path: *const c_char,
    ) -> c_int;
}

/// The pauses before the next attempts to start a program whose file is open for writing, in milliseconds: 63 ms in all.
///
/// A program that was written a moment ago can be open in a process that another thread has just started: that process holds a
/// copy of all descriptors until it becomes its own program. The system tells of no end of that, so there is nothing to wait for.
const BUSY_PAUSES: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// Starts a program as the leader of a session, and with that of a group, of its own. It has no controlling terminal,
/// so `/dev/tty` is not there for it. Signals are as a program expects them: none is blocked, and `SIGPIPE` ends it.
///
/// # Errors
/// What the system said of the folder, the program or the lack of something. Nothing was started then.
pub(crate) fn spawn(image: &Image<'_>) -> io::Result<ProcessId> {
    let path = text(image.path.as_os_str())?;
    let cwd = text(image.cwd.as_os_str())?;
    let argv =
        [image.path.as_os_str()].into_iter().chain(image.args.iter().map(OsString::as_os_str));
    let argv = argv.map(text).collect::<io::Result<Vec<_>>>()?;
    let env: BTreeMap<&OsStr, &OsStr> =
        image.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
    let env = env.into_iter().map(|(name, value)| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).map_err(io::Error::from)
    });
    let env = env.collect::<io::Result<Vec<_>>>()?;

    let mut actions = Actions::new()?;
    // Kept open until the start is over.
    let mut moved = Vec::new();
    for (place, side) in (0..).zip(image.stdio) {
        // What is put in the place of 0, 1 and 2 must not stand in one of these places itself.
        if side.as_raw_fd() <= 2 {
            let side = fcntl_dupfd_cloexec(side, 3)?;
            actions.dup2(side.as_fd(), place)?;
            moved.push(side);
        } else {
            actions.dup2(side, place)?;
        }
    }
    actions.change_folder(&cwd)?;
    let attributes = Attributes::new()?;
    let (argv, envp) = (pointers(&argv), pointers(&env));
    let mut pid: libc::pid_t = 0;
    let mut start = || {
        #[expect(
            unsafe_code,
            reason = "the only call that starts a process in a session, off the slow path"
        )]
        // SAFETY: both arrays end with a null pointer and point to strings that live, with the actions and the attributes,
        // until the call is over. It writes none of them, and the number of the new process into `pid`.
        unsafe {
            libc::posix_spawn(
                &raw mut pid,
                path.as_ptr(),
                actions.0.as_ptr(),
                attributes.0.as_ptr(),
                argv.as_ptr(),
                envp.as_ptr(),
            )
        }
    };
    let mut result = start();
    for pause in BUSY_PAUSES {
        if result != libc::ETXTBSY {
            break;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the system has no event for the end of this state"
        )]
        std::thread::sleep(Duration::from_millis(pause));
        result = start();
    }
    check(result)?;
    let pid = u32::try_from(pid).ok().and_then(ProcessId::new);
    Ok(pid.expect("the system gives a child a number above 1"))
}

/// Steps that the new process takes before it becomes the program.
struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        #[expect(unsafe_code, reason = "the list belongs to the C library")]
        // SAFETY: it makes the list in the place that it is given.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        Ok(Self(actions))
    }

    fn dup2(&mut self, side: BorrowedFd<'_>, place: c_int) -> io::Result<()> {
        let actions = self.0.as_mut_ptr();
        #[expect(unsafe_code, reason = "the list belongs to the C library")]
        // SAFETY: the list was made by `new`, and both are numbers.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(actions, side.as_raw_fd(), place) })
    }

    fn change_folder(&mut self, folder: &CString) -> io::Result<()> {
        let actions = self.0.as_mut_ptr();
        #[expect(unsafe_code, reason = "the list belongs to the C library")]
        // SAFETY: the list was made by `new`. The string ends with a zero, and the call copies it.
        check(unsafe { posix_spawn_file_actions_addchdir_np(actions, folder.as_ptr()) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the list belongs to the C library")]
        // SAFETY: the list was made by `new` and is not used again. No implementation fails here.
        unsafe {
            libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr());
        }
    }
}

/// A session of its own, no blocked signal, and `SIGPIPE` as it was before this program set it aside.
struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        #[expect(unsafe_code, reason = "the attributes belong to the C library")]
        // SAFETY: it makes them in the place that it is given.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        let mut attributes = Self(attributes);
        let own = attributes.0.as_mut_ptr();
        let mut set = MaybeUninit::uninit();
        // The C library's headers give the flags two types; the largest is 128.
        let flags = libc::POSIX_SPAWN_SETSID
            | (libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF) as libc::c_short;
        #[expect(unsafe_code, reason = "attributes and sets of signals belong to the C library")]
        // SAFETY: the attributes were made above. `sigemptyset` makes the set that the others read or change, and each
        // call copies what it is given.
        unsafe {
            check(libc::sigemptyset(set.as_mut_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(own, set.as_ptr()))?;
            check(libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE))?;
            check(libc::posix_spawnattr_setsigdefault(own, set.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(own, flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the attributes belong to the C library")]
        // SAFETY: they were made by `new` and are not used again. No implementation fails here.
        unsafe {
            libc::posix_spawnattr_destroy(self.0.as_mut_ptr());
        }
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}

/// The form in which the system takes a list of strings: it ends with a null pointer.
fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([std::ptr::null_mut()]).collect()
}

/// The calls of this family answer with the number of the error.
fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}
