//! Who may have changed it: for a change that is no longer as it was applied, the programs and
//! files of this machine that set the same thing, each with what points at it.
//!
//! The kernel does not know who wrote a value. Reported is which program would write it, and is
//! there to do it: a suspect, not a culprit. Nothing is changed.

mod clue;
mod files;
#[cfg(test)]
mod tests;
mod words;

pub use self::clue::{Clue, Suspect};
use self::{
    clue::group_of,
    words::{Subject, Words},
};
use crate::Root;
use crate::change::Change;

/// Who may have changed what a change set; files that name the thing come first. Empty: no one
/// known is there. Reads a hundred small files at most.
pub fn suspects(root: &Root, change: &Change) -> Vec<Suspect> {
    let words = Words::of(root, change);
    let mut found = files::sysctl(root, &words);
    found.extend(files::udev(root, &words));
    found.extend(files::tuned(root, &words));
    found.extend(files::power_settings(root, &words));
    let running = [
        irqbalance(root, &words),
        power_daemons(root, &words),
        link(root, &words),
        resume(root, &words),
        hotplug(root, &words),
        control_group(root, change),
        on_demand(root, change),
        packages(root, change),
    ];
    found.extend(running.into_iter().flatten());
    found
}

/// By its process: it may run without a unit. The names alone are read, nothing that would have
/// the kernel interrupt a busy CPU.
fn irqbalance(root: &Root, words: &Words) -> Option<Suspect> {
    if !words.is(Subject::Irq) {
        return None;
    }
    let pids = root.list_numbered("/proc", "");
    let is_it = |path: &String| root.trimmed(path).value().is_some_and(|comm| comm == "irqbalance");
    let path = pids.value()?.iter().map(|pid| format!("/proc/{pid}/comm")).find(is_it)?;
    let why = "moves interrupts every ten seconds; disable it, or ban the real-time CPUs";
    Suspect::new("irqbalance", why, vec![Clue::new(path, "irqbalance runs")])
}

/// Daemons that set frequencies, and what they are.
const POWER: &[(&str, &str)] = &[
    ("power-profiles-daemon.service", "sets the energy preference and the platform's profile"),
    ("tuned-ppd.service", "switches tuned's profile when the desktop asks"),
    ("thermald.service", "lowers frequencies when the machine is warm"),
    ("tlp.service", "sets frequencies and devices when power is plugged in or out"),
    ("auto-cpufreq.service", "sets the governor by the load, all the time"),
    ("system76-power.service", "sets frequencies by its profile"),
    ("upower.service", "asks others to save power when the battery runs low"),
];

fn power_daemons(root: &Root, words: &Words) -> Option<Suspect> {
    if !words.is(Subject::Power) {
        return None;
    }
    let running: Vec<(String, &str, &str)> = POWER
        .iter()
        .filter_map(|&(unit, what)| Some((group_of(root, unit)?, unit, what)))
        .collect();
    let who: Vec<&str> = running.iter().map(|(_, unit, _)| *unit).collect();
    let clues = running
        .iter()
        .map(|(group, unit, what)| Clue::new(group.clone(), format!("{unit} runs: it {what}")));
    let why = "sets frequencies of CPUs while it runs; stop and disable it";
    Suspect::new(&who.join(", "), why, clues.collect())
}

/// A driver asks for its interrupts anew when its interface comes up, and they start from the
/// default affinity; queues are made anew, too.
fn link(root: &Root, words: &Words) -> Option<Suspect> {
    let interface = words.interface.as_deref()?;
    let top = format!("/sys/class/net/{interface}");
    let ups = root.trimmed(&format!("{top}/carrier_up_count"));
    let ups: Option<u64> = ups.value().and_then(|ups| ups.parse().ok()).filter(|ups| *ups > 0);
    let mut clues: Vec<Clue> = ups
        .map(|ups| {
            let text =
                format!("the link came up {} since boot", rtproof_stats::quantity::times(ups));
            Clue::new(format!("{top}/carrier_up_count"), text)
        })
        .into_iter()
        .collect();
    let managers = [
        "NetworkManager.service",
        "systemd-networkd.service",
        "networking.service",
        "connman.service",
    ];
    let manager = managers.iter().find_map(|unit| Some((group_of(root, unit)?, *unit)));
    if let Some((group, unit)) = &manager {
        clues.push(Clue::new(group.clone(), format!("{unit} takes interfaces up and down")));
    }
    let who = manager.map_or("the driver", |(_, unit)| unit);
    let why = "when an interface comes up its driver asks for the interrupts anew, and they start \
               from the default affinity; set /proc/irq/default_smp_affinity (irqaffinity=), too";
    Suspect::new(&format!("{interface}: {who}"), why, clues)
}

fn resume(root: &Root, words: &Words) -> Option<Suspect> {
    const PATH: &str = "/sys/power/suspend_stats/success";
    let moves = [Subject::Irq, Subject::Power, Subject::Hotplug, Subject::Device];
    let slept: u64 = root.trimmed(PATH).value()?.parse().ok()?;
    if slept == 0 || !moves.iter().any(|subject| words.is(*subject)) {
        return None;
    }
    let why = "waking up takes every CPU but the first into operation anew, and drivers set their \
               devices up again";
    Suspect::new(
        "resume from sleep",
        why,
        vec![Clue::new(PATH, format!("{} since boot", rtproof_stats::quantity::times(slept)))],
    )
}

fn hotplug(root: &Root, words: &Words) -> Option<Suspect> {
    const PATH: &str = "/sys/devices/system/cpu/offline";
    if ![Subject::Irq, Subject::Task, Subject::Power].iter().any(|subject| words.is(*subject)) {
        return None;
    }
    let offline = root.trimmed(PATH).value().cloned().filter(|cpus| !cpus.is_empty())?;
    let why = "a CPU that goes out of operation sends its interrupts and threads elsewhere, and \
               what it had was set anew when it came back";
    Suspect::new("CPU hotplug", why, vec![Clue::new(PATH, format!("{offline} out of operation"))])
}

/// The CPUs of a task follow those of its control group.
fn control_group(root: &Root, change: &Change) -> Option<Suspect> {
    let Change::Task { task, set } = change else { return None };
    let path = format!("/proc/{}/cgroup", task.tid);
    let text = root.read_text(&path);
    let group = text.value()?.lines().find_map(|line| line.strip_prefix("0::"))?.trim().to_owned();
    if set.cpus.is_none() || group == "/" {
        return None;
    }
    let why = "when the CPUs of a control group change, the kernel sets the affinity of its tasks \
               anew; set AllowedCPUs= or CPUAffinity= of the unit";
    Suspect::new("cpuset of its control group", why, vec![Clue::new(path, group)])
}

/// A unit that another unit starts.
fn on_demand(root: &Root, change: &Change) -> Option<Suspect> {
    let Change::Unit { unit, want } = change else { return None };
    let stops = want.stops();
    let name = unit.rsplit_once('.').map_or(unit.as_str(), |(name, _)| name);
    let starters = ["timer", "socket", "path"].map(|kind| format!("{name}.{kind}"));
    let folders = ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"];
    let clue = |starter: &String| {
        let path = folders.iter().map(|top| format!("{top}/{starter}"));
        let path = path.into_iter().find(|path| root.exists(path))?;
        Some(Clue::new(path, format!("{starter} starts {unit}")))
    };
    let clues = starters.iter().filter_map(clue).collect();
    Suspect::new("systemd", "another unit starts it; mask it", clues).filter(|_| stops)
}

/// Files of /etc and /boot that packages write.
fn packages(root: &Root, change: &Change) -> Option<Suspect> {
    const LOGS: [&str; 5] = [
        "/var/log/dpkg.log",
        "/var/log/dnf.log",
        "/var/log/dnf5.log",
        "/var/log/pacman.log",
        "/var/log/zypp/history",
    ];
    let path = match change {
        Change::File { path, .. } | Change::GrubEnv { path, .. } => path,
        _ => return None,
    };
    if !["/etc/", "/boot/", "/efi/"].iter().any(|top| path.starts_with(top)) {
        return None;
    }
    let log = LOGS.iter().find(|log| root.exists(log))?;
    let why = "an update replaces files of /etc and, with a new kernel, writes the boot menu anew";
    Suspect::new("package updates", why, vec![Clue::new(*log, "what was installed when")])
}
