//! Is microcode loaded while the system runs?
//!
//! Late loading stops all CPUs for it. Kernels from 5.19 on have it only where they are built with
//! CONFIG_MICROCODE_LATE_LOADING, so that the build mostly settles it without the log.

use rtproof_host::{Facts, knob::Arch};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When};

/// First kernel with an option for it ("x86/microcode: Default-disable late loading").
const OPTION_SINCE: (u32, u32) = (5, 19);

pub(super) static CHECK: Check = Check {
    id: "microcode-late",
    title: "microcode loaded after boot",
    why: "all CPUs are stopped while each of them loads it",
    source: "Documentation/arch/x86/microcode.rst; arch/x86/kernel/cpu/microcode/core.c \
             (load_late_stop_cpus)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("loaded at boot only"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !Arch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    if let Some(log) = facts.platform.log.value()
        && let Some(line) = log.microcode.last()
    {
        let text = "put the microcode into the initrd (intel-microcode, amd64-microcode, \
                    microcode_ctl, dracut --early-microcode), so that boot loads it";
        let draft = draft.read(&facts.platform.log, |log| log.microcode.join("; "));
        return draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("it was loaded while the system ran: {line}"));
    }
    let is_optional = machine::since(facts, OPTION_SINCE);
    if is_optional == Some(true)
        && machine::built_with(facts, "MICROCODE_LATE_LOADING") == Some(false)
    {
        return draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .saw([machine::option(facts, "MICROCODE_LATE_LOADING")])
            .good("this kernel loads microcode at boot only");
    }
    let log = &facts.platform.log;
    let draft = draft.read(log, |_| "no line about loading".into());
    match log.value() {
        Some(found) if found.is_whole => draft.good("not since boot"),
        Some(_) => draft.unknown("the start of the kernel's log was overwritten"),
        None => draft.blind(log),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::{Reading, facts::platform::log::KernelLog};

    #[test]
    fn the_build_or_the_log_tells() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "MICROCODE_LATE_LOADING", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        let line = "microcode: load: updated on 4 primary CPUs with 4 siblings".to_owned();
        let log = |is_whole, microcode| KernelLog { is_whole, microcode, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log(false, vec![line]));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        facts.platform.log = Reading::known("/dev/kmsg", log(false, vec![]));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.platform.log = Reading::denied("/dev/kmsg", "EPERM");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
