//! The few lines of the kernel's log that checks ask about.
//!
//! Filtered before they are facts: a log names networks, disks and people, and a capture must
//! not. Of parameters that the kernel did not take only the names are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading, Root, facts::kernel::CommandLine};

const LINES_MAX: usize = 64;
/// Longest line kept, in characters.
const LINE_CHARS_MAX: usize = 240;

/// What init/main.c says of what it hands to the first process.
const UNKNOWN: &str = "Unknown kernel command line parameters ";

/// What kernel/rcu/tree_nocb.h says at boot, before the CPUs.
const OFFLOADED: &str = "Offload RCU callbacks from CPUs: ";

/// What the kernel said since boot, filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelLog {
    /// Whether every message since boot was looked at: none was overwritten, none left out. Only
    /// then does a missing line mean that it was not said.
    pub is_whole: bool,
    /// Names of the parameters that the kernel did not take (5.13 and later); `None` where it said
    /// nothing.
    pub unknown_parameters: Option<Vec<String>>,
    /// Lines about the TSC and other clock sources that were found unstable.
    pub clock: Vec<String>,
    pub microcode: Vec<String>,
    /// CPUs whose RCU callbacks other CPUs run, as said at boot; `None` where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcu_offloaded: Option<CpuList>,
}

impl KernelLog {
    /// Reads the log, for root or where `kernel.dmesg_restrict` is 0.
    pub fn read(root: &Root) -> Reading<Self> {
        root.kernel_log(keep).map(|messages| {
            let mut log =
                Self { is_whole: messages.from_start && messages.to_end, ..Self::default() };
            log.is_whole &= messages.lines.len() <= LINES_MAX;
            for line in messages.lines.into_iter().take(LINES_MAX) {
                if let Some(names) = line.strip_prefix(UNKNOWN) {
                    let names = names.split_whitespace().map(str::to_owned);
                    log.unknown_parameters.get_or_insert_default().extend(names);
                } else if let Some(cpus) = offloaded(&line) {
                    let cpus = if cpus == "(none)" { "" } else { cpus };
                    log.rcu_offloaded = CpuList::parse(cpus, None).ok();
                } else if is_microcode(&line) {
                    log.microcode.push(line);
                } else {
                    log.clock.push(line);
                }
            }
            log
        })
    }
}

/// What is kept of a message.
fn keep(message: &str) -> Option<String> {
    if let Some((_, rest)) = message.split_once(UNKNOWN) {
        let quoted = rest.split_once('"')?.1;
        let line = CommandLine::parse(quoted.rsplit_once('"').map_or(quoted, |(line, _)| line));
        let names: Vec<&str> = line.parameters.iter().map(|p| p.key.as_str()).collect();
        return Some(format!("{UNKNOWN}{}", names.join(" ")));
    }
    let is_wanted = is_microcode(message) || is_clock(message) || offloaded(message).is_some();
    is_wanted.then(|| message.chars().take(LINE_CHARS_MAX).collect())
}

/// The CPUs of `rcu: <TAB>Offload RCU callbacks from CPUs: 2-3.`
fn offloaded(message: &str) -> Option<&str> {
    let (_, cpus) = message.split_once(OFFLOADED)?;
    Some(cpus.trim().trim_end_matches('.'))
}

/// arch/x86/kernel/tsc.c, kernel/time/clocksource.c, kernel/sched/clock.c.
fn is_clock(message: &str) -> bool {
    message.contains("Marking TSC unstable")
        || message.contains("TSC found unstable")
        || (message.contains("clocksource") && message.contains("unstable"))
}

/// Loading while the system runs; arch/x86/kernel/cpu/microcode/core.c and before 6.6 its older
/// words.
fn is_microcode(message: &str) -> bool {
    let words =
        ["load: updated on", "Late microcode loading", "late microcode", "Reload completed"];
    message.contains("microcode") && words.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;

    fn of(answer: &str) -> KernelLog {
        let text = format!(
            "rtproof capture 1\nfrom live, read by root\n== kernel log call\n|{answer}\n== end\n"
        );
        let root = Root::captured(Capture::parse(text.as_bytes()).unwrap());
        KernelLog::read(&root).value().unwrap().clone()
    }

    #[test]
    fn lines_are_sorted_by_what_they_are_about() {
        let log = of(
            "from boot\\x0Ato the end\\x0AUnknown kernel command line parameters a isolcpu\\x0A\
                      tsc: Marking TSC unstable due to clocksource watchdog\\x0A\
                      microcode: load: updated on 4 primary CPUs with 0 siblings",
        );
        assert!(log.is_whole);
        assert_eq!(log.unknown_parameters.unwrap(), ["a", "isolcpu"]);
        assert_eq!(log.clock.len(), 1);
        assert_eq!(log.microcode.len(), 1);
        assert!(!of("from later\\x0Ato the end").is_whole);
        assert_eq!(of("from boot\\x0Ato the end").unknown_parameters, None);
    }

    #[test]
    fn offloaded_cpus_are_those_of_the_log() {
        let of = |line: &str| {
            let line = keep(line).unwrap();
            of(&format!("from boot\\x0Ato the end\\x0A{line}")).rcu_offloaded
        };
        let cpus = of("rcu: \tOffload RCU callbacks from CPUs: 2-3.").unwrap();
        assert_eq!(cpus.to_string(), "2-3");
        assert!(of("rcu: \tOffload RCU callbacks from CPUs: (none).").unwrap().is_empty());
    }

    #[test]
    fn of_unknown_parameters_only_the_names_are_kept() {
        let line = "Unknown kernel command line parameters \"BOOT_IMAGE=/vmlinuz secret=x splash\", \
                    will be passed to user space.";
        let kept = keep(line).unwrap();
        assert_eq!(kept, "Unknown kernel command line parameters BOOT_IMAGE secret splash");
        assert_eq!(keep("Command line: root=/dev/sda"), None);
        assert_eq!(keep("microcode: Current revision: 0x000000f0"), None);
        let unstable = "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as \
                        unstable because the skew is too large:";
        assert!(keep(unstable).is_some());
    }
}
