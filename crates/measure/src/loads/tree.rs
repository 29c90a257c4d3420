//! A worker's own process and the processes below it, as /proc/PID/stat tells: who they are, to end
//! them, and how much CPU time they used, to know that they worked. The worker is a subreaper, so
//! that descendants whose parents have ended, and those with sessions of their own, stay below it.

use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Scheduling policy by its number.
    pub(super) policy: u32,
    /// CPU time of itself, in ticks.
    used_ticks: u64,
    /// CPU time of all below it that were waited for, in ticks.
    waited_ticks: u64,
}

/// The calling process; `None` without /proc.
pub(super) fn own() -> Option<Process> {
    parse(&text("self")?)
}

/// Every process below the calling one. Empty without /proc.
pub(super) fn descendants() -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    below(own, &all())
}

/// CPU time used by everything below the calling process so far, ended or not, in milliseconds.
pub(super) fn cpu_time_ms() -> u64 {
    let ended = own().map_or(0, |own| own.waited_ticks);
    let live: u64 = descendants().iter().map(|p| p.used_ticks + p.waited_ticks).sum();
    (ended + live) * 1000 / rustix::param::clock_ticks_per_second().max(1)
}

#[expect(clippy::disallowed_methods, reason = "this tool's own children, not the machine")]
fn text(pid: &str) -> Option<String> {
    // A command name need not be UTF-8.
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "this tool's own children, not the machine")]
fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    pids.filter_map(|pid| parse(&text(&pid)?)).collect()
}

/// Those of `all` that are below `top`.
fn below(top: i32, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![top];
    while let Some(parent) = parents.pop() {
        // Taken out, so that a list read while process numbers were reused cannot lead in a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// proc_pid_stat(5). The name in parentheses may hold anything, so the fields count from the last
/// one.
fn parse(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(" (")?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of the manual page is the first after the name.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        policy: u32::try_from(number(41)?).ok()?,
        used_ticks: number(14)? + number(15)?,
        waited_ticks: number(16)? + number(17)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, policy: 0, used_ticks: 0, waited_ticks: 0 }
    }

    #[test]
    fn reads_a_line_whatever_the_name_holds() {
        let line = "42 (a ) S 7 (b) R 7 42 42 0 -1 4194304 1 2 3 4 5 6 70 8 20 0 1 0 99 1 2 3 4 5 \
                    6 7 8 9 10 11 12 13 14 15 17 1 0 6 0 0 0\n";
        let expected = Process { used_ticks: 11, waited_ticks: 78, policy: 6, ..process(42, 7) };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("42 (short) R 7\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn finds_all_below_and_survives_a_circle() {
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5)];
        let pids: Vec<_> = below(2, &all).iter().map(|p| p.pid).collect();
        assert_eq!(pids, [3, 4]);
        assert_eq!(below(7, &[process(7, 8), process(8, 7)]).len(), 2);
    }

    #[test]
    fn this_process_is_there_and_not_real_time() {
        let own = own().unwrap();
        assert_eq!(u32::try_from(own.pid).unwrap(), std::process::id());
        assert_eq!(own.policy, 0);
    }
}
