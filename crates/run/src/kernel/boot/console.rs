//! What a guest's console tells of a boot that failed: a panic, silence before init, no console,
//! a reset.

use std::{path::Path, time::Duration};

use rtproof_guest::{console::PANIC, process::Ending};

use crate::kernel::KernelError;

/// Lines that are shown.
const LINES: usize = 16;
/// Lines that are shown from before a panic: the oops that led to it.
const BEFORE: usize = 6;

/// A boot that failed.
#[derive(Debug)]
pub(super) struct Failed<'a> {
    /// How QEMU or init ended.
    pub ending: &'a Ending,
    pub console: &'a str,
    /// What QEMU reported itself.
    pub errors: &'a str,
    /// The step that began last.
    pub step: Option<&'a str>,
    /// Time limit until init speaks, and from then on.
    pub limits: (Duration, Duration),
    /// Whether it ran under KVM.
    pub is_kvm: bool,
    /// Option of the console's driver.
    pub driver: &'static str,
    /// Whether the configuration that is known has it.
    pub has_driver: Option<bool>,
}

/// What is known of it.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    status: String,
    hint: String,
    lines: Vec<String>,
}

/// Texts of the kernel and what they mean here.
const HINTS: &[(&str, &str)] = &[
    (
        "Initramfs unpacking failed: write error",
        "the initramfs did not fit into the guest's memory: give more with --memory",
    ),
    ("Cannot find place for new RAMDISK", "the guest has too little memory: --memory"),
    ("System is deadlocked on memory", "the guest has too little memory: --memory"),
    ("Out of memory", "the guest has too little memory: --memory"),
    (
        "failed (error -8)",
        "the kernel cannot run the rtproof given to it: CONFIG_BINFMT_ELF, or another architecture",
    ),
    (
        "VFS: Unable to mount root fs",
        "the kernel did not take the initramfs: CONFIG_BLK_DEV_INITRD, or too little --memory",
    ),
    ("Attempted to kill init! exitcode=0x0000000b", "init, which is rtproof, ended by SIGSEGV"),
    ("Attempted to kill init! exitcode=0x00000007", "init, which is rtproof, ended by SIGBUS"),
    ("Attempted to kill init! exitcode=0x00000004", "init, which is rtproof, ended by SIGILL"),
];

impl Failed<'_> {
    /// The error that tells it.
    pub(super) fn error(&self, log: &Path) -> KernelError {
        let Known { status, hint, lines } = self.known();
        KernelError::Failed {
            step: "the boot".into(),
            status,
            hint: if hint.is_empty() { hint } else { format!("; {hint}") },
            lines,
            log: log.to_owned(),
        }
    }

    fn known(&self) -> Known {
        let lines: Vec<&str> = self.console.lines().map(unstamped).collect();
        let whole = lines.join("\n");
        let hint = HINTS.iter().find(|(text, _)| whole.contains(text));
        let hint = hint.map_or_else(String::new, |(_, means)| (*means).to_owned());
        let during = |what: &str| match self.step {
            Some(step) => format!("{what}, while {step} ran"),
            None => what.to_owned(),
        };
        let (until_init, after) = (self.limits.0.as_secs(), self.limits.1.as_secs());
        if let Some(at) = lines.iter().position(|line| line.contains(PANIC)) {
            let first = at.saturating_sub(BEFORE);
            let lines = lines[first..].iter().take(LINES).map(ToString::to_string).collect();
            return Known { status: during("kernel panic"), hint, lines };
        }
        let (status, other) = match self.ending {
            Ending::Interrupted => ("interrupted".to_owned(), String::new()),
            Ending::Broken(why) => {
                return Known {
                    status: "init failed".into(),
                    hint: why.clone(),
                    lines: last(&lines),
                };
            }
            Ending::DiedEarly if lines.is_empty() => {
                let errors = last(&self.errors.lines().collect::<Vec<_>>());
                let hint = if errors.is_empty() {
                    "nothing was on the console: the machine was reset at once, or has too little \
                     memory (--memory)"
                } else {
                    "QEMU itself reports"
                };
                let status = "QEMU ended before the kernel spoke".into();
                return Known { status, hint: hint.into(), lines: errors };
            }
            Ending::DiedEarly => (
                "the machine was reset or switched off before init".into(),
                "without a panic: a triple fault is such a reset".into(),
            ),
            Ending::NeverSpoke => {
                let (status, hint) = self.silence(&whole, until_init);
                let other =
                    "; try --no-kvm, which emulates: KVM inside of a guest is a reason, too";
                (status, hint + if self.is_kvm { other } else { "" })
            }
            Ending::TimedOut => (
                during(&format!("no end within {after} s of init")),
                "give more with --timeout".into(),
            ),
            Ending::Silent | Ending::Script(_) => {
                (during("the machine was reset or switched off"), String::new())
            }
        };
        let hint = if hint.is_empty() { other } else { hint };
        Known { status, hint, lines: last(&lines) }
    }

    /// Status and hint where init was not heard in time.
    fn silence(&self, whole: &str, seconds: u64) -> (String, String) {
        let driver = self.driver;
        if whole.trim().is_empty() {
            let hint = match self.has_driver {
                Some(true) => {
                    "its configuration has the serial console's driver: it hangs before that, or \
                     the image is not for this machine"
                        .to_owned()
                }
                _ => format!(
                    "it hangs early, or has no serial console (CONFIG_{driver}); its configuration \
                     is unknown (--config)"
                ),
            };
            return (format!("nothing on the serial console within {seconds} s"), hint);
        }
        let no_console = "Warning: unable to open an initial console";
        let is_started = ["Run /init as init process", no_console];
        if is_started.iter().any(|text| whole.contains(text)) {
            let hint = format!(
                "the kernel started it, but nothing that it wrote came: the kernel has no serial \
                 console (CONFIG_{driver}), or init hangs"
            );
            return (format!("init was not heard within {seconds} s"), hint);
        }
        let hint = "it hangs after the last lines, or its console ends there (an early one does \
                    without the driver), or it needs more time than it has";
        (format!("the kernel did not come to init within {seconds} s"), hint.into())
    }
}

/// A line of the log without the second at which it came.
fn unstamped(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    rest.map_or(line, |(_, rest)| rest)
}

fn last(lines: &[&str]) -> Vec<String> {
    let filled: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    let from = filled.len().saturating_sub(LINES);
    filled[from..].iter().map(ToString::to_string).collect()
}
