//! A program that already runs: which it is, its threads, and what they were doing before anybody
//! observed them.

use std::collections::BTreeSet;

use rtproof_host::{
    Root, counts,
    facts::app::{App, Target},
};
use rtproof_model::program::Mapping;

use crate::usage::usage;

/// Why the kernel does not report a thread of a program that was observed from its start.
pub(super) const UNREPORTED: &str =
    "a set-user-ID program, or one that may not be read, was executed";
/// The same of one that ran before.
pub(super) const MISSED: &str = "it was started while rtproof came, or it executed a program that \
                                 is set-user-ID or may not be read";

/// A thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The application that a process is.
///
/// # Errors
/// No such process, or one that is none (usage).
pub(crate) fn program(root: &Root, pid: u32) -> anyhow::Result<App> {
    if pid == std::process::id() {
        return Err(usage(format!(
            "--pid {pid}: that is this rtproof itself; name another process"
        )));
    }
    let app = App::read(root, &Target::Pid(pid));
    let app = app.map_err(|error| usage(format!("--pid {pid}: {error}")))?;
    if !runs(root, &app) {
        return Err(usage(format!(
            "--pid {pid}: the process has ended, and its parent has not waited for it; name one \
             that runs"
        )));
    }
    Ok(app)
}

/// Whether a thread of it runs: the first one may have ended before the others.
pub(super) fn runs(root: &Root, app: &App) -> bool {
    let main = app.processes.iter().find(|of| of.pid == app.pid);
    let is_same = main.map(|of| of.start_ticks) == counts::start_ticks(root, app.pid);
    let mut threads = counts::threads(root, app.pid).into_iter();
    is_same && threads.any(|tid| is_live(root, Thread { pid: app.pid, tid }))
}

/// The threads of a process and of those that it has started; rtproof's own left out, which may be
/// among them.
pub(crate) fn list(root: &Root, pid: u32) -> Vec<Thread> {
    let own = std::process::id();
    let ours: BTreeSet<u32> = counts::descendants(root, own).into_iter().chain([own]).collect();
    let all = counts::descendants(root, pid).into_iter().chain([pid]);
    let all = all.filter(|pid| !ours.contains(pid));
    let of = |pid| counts::threads(root, pid).into_iter().map(move |tid| Thread { pid, tid });
    all.flat_map(of).filter(|of| is_live(root, *of)).collect()
}

/// Whether a thread has not ended.
fn is_live(root: &Root, of: Thread) -> bool {
    let stat = root.read_text(&format!("/proc/{}/task/{}/stat", of.pid, of.tid));
    let state = stat.value().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'))
}

/// The name of a thread.
pub(crate) fn name(of: &Thread) -> String {
    let name = Root::live().trimmed(&format!("/proc/{}/task/{}/comm", of.pid, of.tid));
    name.value().cloned().unwrap_or_default()
}

/// The system call that a thread is in, where it waits in one: number and arguments.
pub(super) fn call_of(of: &Thread) -> Option<(i64, [u64; 6])> {
    let text = Root::live().read_text(&format!("/proc/{}/task/{}/syscall", of.pid, of.tid));
    let mut words = text.value()?.split_whitespace();
    let number = words.next()?.parse().ok().filter(|&number| number >= 0)?;
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, args))
}

/// The code that the process of a thread has mapped from files; none where that has ended.
pub(super) fn mappings(of: Thread) -> Vec<Mapping> {
    let maps = Root::live().read_text(&format!("/proc/{}/task/{}/maps", of.pid, of.tid));
    let text = maps.value().map(String::as_str).unwrap_or_default();
    text.lines().filter_map(mapping).collect()
}

/// A line of /proc/PID/maps: `7f..-7f.. r-xp 00001000 fe:00 1234    /path`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (range, rights, offset) = (word()?, word()?, word()?);
    let (_, inode) = (word()?, word()?);
    let (from, to) = range.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (address, end) = (hex(from)?, hex(to)?);
    let path = rest.trim_start().to_owned();
    let is_code = rights.contains('x') && path.starts_with('/');
    let (offset, inode) = (hex(offset)?, inode.parse().ok()?);
    is_code.then_some(Mapping { address, bytes: end.checked_sub(address)?, offset, inode, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_code_of_a_file_or_none() {
        let line = "7f10-7f30 r-xp 00001000 fe:00 1234                       /opt/a b/loop";
        let path = "/opt/a b/loop".to_owned();
        let wanted = Mapping { address: 0x7f10, bytes: 0x20, offset: 0x1000, inode: 1234, path };
        assert_eq!(mapping(line), Some(wanted));
        for other in [
            "7f10-7f30 rw-p 00001000 fe:00 1234                       /opt/loop",
            "7f10-7f30 r-xp 00000000 00:00 0                          [vdso]",
            "7f10-7f30 r-xp 00000000 00:00 0 ",
            "",
            "7f30-7f10 r-xp 00001000 fe:00 1234                       /opt/loop",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_threads_are_not_among_those_of_a_program() {
        // The parent of the tests has them as descendants.
        let root = Root::live();
        let parent = rustix::process::getppid().map(|of| of.as_raw_nonzero().get().cast_unsigned());
        let found = list(&root, parent.expect("a parent"));
        assert!(found.iter().all(|of| of.pid != std::process::id()), "{found:?}");
    }
}
