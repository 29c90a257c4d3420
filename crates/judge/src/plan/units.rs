//! The systemd units that rtproof puts on a machine, as texts and as changes: one that holds the
//! latency limit of the idle states, one that repeats the runtime part of a plan at each boot, and
//! the watch that ends a trial boot that is not confirmed.
//!
//! No unit is a daemon of ours but the first, which sleeps. All are sandboxed as far as their work
//! allows (docs/persist.md has the reason of every line that is missing).

use rtproof_host::tune::{Bytes, Change, UnitState};

/// Where units of the administrator are.
pub const FOLDER: &str = "/etc/systemd/system";

/// What is repeated at each boot.
pub const CONFIG: &str = "/etc/rtproof.toml";

/// Repeats the runtime part of a plan at each boot.
pub const SERVICE: &str = "rtproof.service";

/// Holds `/dev/cpu_dma_latency` open.
pub const LATENCY: &str = "rtproof-latency.service";

pub const TRIAL: &str = "rtproof-trial.service";

/// Starts the reboot when a trial was not confirmed in time.
pub const TRIAL_TIMER: &str = "rtproof-trial.timer";

/// Goes on with a bisection over trial boots.
pub const BISECT: &str = "rtproof-bisect.service";

/// Word on the command line of a trial boot.
pub const TRIAL_WORD: &str = "rtproof.trial";

/// Word on the command line of a boot that is to repeat nothing.
pub const SKIP_WORD: &str = "rtproof.skip";

/// What every unit of ours can do without, whatever its work.
const SANDBOX: &str = "\
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
UMask=0077
IPAddressDeny=any
";

/// What units can do without that start when the file systems are mounted: these lines give a unit
/// mounts of its own, and it depends on those that they are made of.
const MOUNTS: &str = "\
PrivateMounts=yes
PrivateTmp=yes
ProtectClock=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectSystem=strict
";

/// The unit that holds a latency limit of 0 µs; `exe` is the path of rtproof.
pub fn latency_unit(exe: &str) -> String {
    latency_unit_of(exe, 0)
}

/// The unit that holds a latency limit, in microseconds.
///
/// The limit is in force for as long as the file is open, so that a program has to sleep on it. It
/// needs no capability: the device belongs to root.
pub fn latency_unit_of(exe: &str, limit_us: u32) -> String {
    let exe = quoted(exe);
    format!(
        "# Written by rtproof; `rtproof tune undo` takes it away.
[Unit]
Description=Limit on the exit latency of idle states (rtproof)
ConditionPathExists=/dev/cpu_dma_latency

[Service]
Type=notify
ExecStart={exe} tune hold --latency {limit_us}us
Restart=on-failure
RestartSec=1s
OOMScoreAdjust=-900
CapabilityBoundingSet=
DevicePolicy=closed
DeviceAllow=/dev/cpu_dma_latency rw
{SANDBOX}{MOUNTS}PrivateNetwork=yes
ProcSubset=pid
ProtectControlGroups=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX
RestrictRealtime=yes
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources

[Install]
WantedBy=multi-user.target
"
    )
}

/// Puts the unit there that holds a latency limit, and starts it.
pub fn latency_changes(exe: &str, limit_us: u32) -> Vec<Change> {
    vec![
        file(&format!("{FOLDER}/{LATENCY}"), latency_unit_of(exe, limit_us)),
        Change::Unit { unit: LATENCY.into(), want: UnitState::Enabled },
    ]
}

/// Services that set what a plan sets, at their start: the plan comes after them. A name that the
/// machine does not have orders nothing. tuned applies its profile after it says that it has
/// started: it has to be off, and the plan says so.
const OTHERS: &[&str] = &[
    "systemd-sysctl.service",
    "systemd-modules-load.service",
    "systemd-udev-trigger.service",
    "systemd-udev-settle.service",
    "network.target",
    "network-online.target",
    "irqbalance.service",
    "tuned.service",
    "tuned-ppd.service",
    "power-profiles-daemon.service",
    "thermald.service",
    "tlp.service",
    "auto-cpufreq.service",
    "cpufrequtils.service",
    "loadcpufreq.service",
    "cpupower.service",
    "ondemand.service",
    "rtirq.service",
];

/// The unit that repeats `config` at each boot. `after` names units whose tasks it sets.
///
/// It is not stopped at shutdown (no `Conflicts=shutdown.target`): what it set ends with the
/// running kernel, and setting CPUs and clocks back would only make the shutdown longer.
pub fn boot_unit(exe: &str, config: &str, after: &[String]) -> String {
    let exe = quoted(exe);
    let mut named: Vec<&str> =
        after.iter().map(String::as_str).filter(|unit| is_unit(unit)).collect();
    named.sort_unstable();
    named.dedup();
    named.retain(|unit| !OTHERS.contains(unit));
    let named: String = named.iter().map(|unit| format!("After={unit}\n")).collect();
    let others: String =
        OTHERS.chunks(4).map(|units| format!("After={}\n", units.join(" "))).collect();
    format!(
        "# Written by rtproof; `rtproof tune undo` takes it away. It repeats {config}.
# A boot with {SKIP_WORD} on the kernel's command line leaves it out.
[Unit]
Description=Runtime tuning for real time (rtproof)
DefaultDependencies=no
Requires=sysinit.target
After=sysinit.target basic.target
{others}{named}Before=multi-user.target
ConditionKernelCommandLine=!{SKIP_WORD}
ConditionVirtualization=!container

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=-/bin/udevadm settle --timeout=30
ExecStart={exe} tune apply --from {config} --yes --keep-going
ExecStop={exe} tune undo --from {config}
# 3: something was not there; the rest is set.
SuccessExitStatus=3
TimeoutStartSec=120s
StateDirectory=rtproof
StateDirectoryMode=0700
RuntimeDirectory=rtproof
RuntimeDirectoryPreserve=yes
CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_NET_ADMIN CAP_SYS_ADMIN CAP_SYS_NICE
PrivateDevices=yes
{SANDBOX}{MOUNTS}RestrictAddressFamilies=AF_UNIX AF_NETLINK
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
"
    )
}

/// Puts the unit there that repeats `config`, from the next boot on. It is not started: the values
/// are set already, and it would wait for the lock of the process that installs it. For the same
/// reason
/// a drop-in of the target wants it and no link does: there is nothing to start or stop when it
/// comes or goes, also in a folder tree.
pub fn boot_changes(exe: &str, config: &str, after: &[String]) -> Vec<Change> {
    vec![
        file(&format!("{FOLDER}/{SERVICE}"), boot_unit(exe, config, after)),
        folder("multi-user.target.d"),
        file(&format!("{FOLDER}/multi-user.target.d/50-rtproof.conf"), wants(SERVICE)),
    ]
}

/// The unit that reboots: the old entry is the default still, the trial was for one boot. It has
/// no mounts of its own, so that a file system that is missing does not keep it from its work.
pub fn trial_unit() -> String {
    format!(
        "# Written by rtproof; `rtproof tune confirm` takes it away.
[Unit]
Description=Reboot into the default entry: the trial was not confirmed (rtproof)
DefaultDependencies=no
ConditionKernelCommandLine={TRIAL_WORD}
FailureAction=reboot-force

[Service]
Type=oneshot
ExecStart=/bin/systemctl --no-block --message=\"rtproof: the trial was not confirmed\" reboot
TimeoutStartSec=60s
CapabilityBoundingSet=CAP_SYS_BOOT
{SANDBOX}RestrictAddressFamilies=AF_UNIX
RestrictRealtime=yes
SystemCallFilter=@system-service reboot
"
    )
}

/// Its timer, in seconds from the start of the system's services. It belongs to `sysinit.target`,
/// so that it runs also where the boot ends in the emergency shell.
pub fn trial_timer(within_s: u64) -> String {
    format!(
        "# Written by rtproof; `rtproof tune confirm` takes it away.
[Unit]
Description=Time to confirm the trial boot (rtproof)
DefaultDependencies=no
ConditionKernelCommandLine={TRIAL_WORD}

[Timer]
OnActiveSec={within_s}s
AccuracySec=1s
Unit={TRIAL}
"
    )
}

/// Puts the watch there: from the next boot on, and in a boot without [`TRIAL_WORD`] it does
/// nothing.
pub fn trial_changes(within_s: u64) -> Vec<Change> {
    vec![
        file(&format!("{FOLDER}/{TRIAL}"), trial_unit()),
        file(&format!("{FOLDER}/{TRIAL_TIMER}"), trial_timer(within_s)),
        folder("sysinit.target.d"),
        file(&format!("{FOLDER}/sysinit.target.d/50-rtproof-trial.conf"), wants(TRIAL_TIMER)),
    ]
}

/// Ends the watch: `tune confirm` makes these changes before any other, so that whatever fails
/// after them does not reboot the machine. An undo of the confirmation arms it again.
pub fn trial_ended() -> Vec<Change> {
    let gone = |path: String| Change::File { path, content: None, mode: None };
    vec![
        Change::Unit { unit: TRIAL_TIMER.into(), want: UnitState::Stopped },
        gone(format!("{FOLDER}/sysinit.target.d/50-rtproof-trial.conf")),
        gone(format!("{FOLDER}/{TRIAL_TIMER}")),
        gone(format!("{FOLDER}/{TRIAL}")),
    ]
}

/// The unit that goes on with a bisection after each boot: this program with these arguments, in
/// this folder, for as long as the bisection's state is there. It builds kernels and runs the
/// user's own test, so nothing of it is confined.
pub fn bisect_unit(exe: &str, words: &[String], folder: &str, state: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| argument(word)).collect();
    format!(
        "# Written by rtproof; the end of the bisection, or `rtproof tune undo`, takes it away.
[Unit]
Description=Bisection of kernels over trial boots (rtproof)
After=multi-user.target
ConditionPathExists={}

[Service]
Type=oneshot
WorkingDirectory={}
ExecStart={} {}
# 2: only candidates. 3: a reboot comes next.
SuccessExitStatus=2 3
",
        state.replace('%', "%%"),
        folder.replace('%', "%%"),
        quoted(exe),
        words.join(" ")
    )
}

/// Puts that unit there, from the next boot on.
pub fn bisect_changes(exe: &str, words: &[String], folder: &str, state: &str) -> Vec<Change> {
    vec![
        file(&format!("{FOLDER}/{BISECT}"), bisect_unit(exe, words, folder, state)),
        self::folder("multi-user.target.d"),
        file(&format!("{FOLDER}/multi-user.target.d/50-rtproof-bisect.conf"), wants(BISECT)),
    ]
}

/// A drop-in of a target that wants a unit.
fn wants(unit: &str) -> String {
    format!("# Written by rtproof.\n[Unit]\nWants={unit}\n")
}

fn file(path: &str, content: String) -> Change {
    let content = Some(Bytes(content.into_bytes()));
    Change::File { path: path.into(), content, mode: Some(0o644) }
}

fn folder(name: &str) -> Change {
    Change::Folder { path: format!("{FOLDER}/{name}") }
}

/// Whether a word is valid in `After=`.
fn is_unit(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "@:-_.\\".contains(c);
    name.contains('.') && name.len() < 256 && name.chars().all(is_known)
}

/// A path as the first word of `ExecStart=`: systemd knows specifiers and quotes there
/// (systemd.service(5), "Command lines").
fn quoted(path: &str) -> String {
    let path = path.replace('%', "%%");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-%".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// An argument of `ExecStart=`, where systemd also knows variables.
fn argument(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '\\' => text += "\\\\",
            '"' => text += "\\\"",
            '%' => text += "%%",
            '$' => text += "$$",
            '\n' => text += "\\n",
            c => text.push(c),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_to_the_program_as_they_are() {
        assert_eq!(argument("a b"), "\"a b\"");
        assert_eq!(argument("50%$x\\\"\n"), r#""50%%$$x\\\"\n""#);
        let words = ["kernel".into(), "a b".into()];
        let unit = bisect_unit("/usr/bin/rtproof", &words, "/root/5%", "/root/5%/bisect.json");
        assert!(unit.contains("ConditionPathExists=/root/5%%/bisect.json\n"), "{unit}");
        assert!(unit.contains("ExecStart=/usr/bin/rtproof \"kernel\" \"a b\"\n"), "{unit}");
        assert!(unit.contains("WorkingDirectory=/root/5%%\n"), "{unit}");
    }

    #[test]
    fn a_unit_names_the_program_and_its_order() {
        let after = ["app.service", "tuned.service", "bad\nExecStart=/bin/sh", "app.service"];
        let unit = boot_unit("/usr/local/bin/rtproof", CONFIG, &after.map(str::to_owned));
        let command = "ExecStart=/usr/local/bin/rtproof tune apply --from /etc/rtproof.toml --yes";
        assert!(unit.contains(command), "{unit}");
        assert_eq!(unit.matches("app.service").count(), 1, "{unit}");
        assert_eq!(unit.matches("tuned.service").count(), 1, "{unit}");
        assert!(!unit.contains("/bin/sh"), "{unit}");
        assert!(!unit.contains("ProtectKernelTunables"), "it writes them");
        // sysctls and queues of the network are those of the network namespace.
        assert!(!unit.contains("PrivateNetwork"), "{unit}");
    }

    #[test]
    fn a_path_stays_one_word() {
        assert_eq!(quoted("/opt/rt proof/100%/rtproof"), "\"/opt/rt proof/100%%/rtproof\"");
        assert_eq!(quoted("/usr/bin/rtproof"), "/usr/bin/rtproof");
        assert_eq!(quoted("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
    }

    #[test]
    fn what_comes_with_a_trial_goes_with_its_confirmation() {
        let files = |changes: &[Change]| -> Vec<String> {
            let path = |change: &Change| match change {
                Change::File { path, .. } => Some(path.clone()),
                _ => None,
            };
            let mut paths: Vec<String> = changes.iter().filter_map(path).collect();
            paths.sort();
            paths
        };
        assert_eq!(files(&trial_changes(600)), files(&trial_ended()));
        assert!(trial_timer(600).contains("OnActiveSec=600s"));
        // Without the word of the trial nothing of it may run.
        for unit in [trial_unit(), trial_timer(600)] {
            assert!(unit.contains("\nConditionKernelCommandLine=rtproof.trial\n"), "{unit}");
        }
    }

    #[test]
    fn all_but_a_stop_is_durable() {
        let changes = [latency_changes("/usr/bin/rtproof", 0), trial_changes(60)].concat();
        let boot = boot_changes("/usr/bin/rtproof", CONFIG, &[]);
        assert!(changes.iter().chain(&boot).all(|change| change.nature().is_durable));
        assert_eq!(trial_ended().iter().filter(|change| !change.nature().is_durable).count(), 1);
    }
}
