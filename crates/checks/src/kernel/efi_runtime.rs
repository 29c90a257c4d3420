//! Can the kernel call the firmware after boot?
//!
//! PREEMPT_RT says no by itself; some distributions and products say yes again with
//! `efi=runtime`. No file tells what is in force: /sys/firmware/efi/runtime is an address that x86
//! shows either way. So the boot line decides, and where it is silent the build.

use rtproof_host::{CpuList, Facts, Reading, knobs::kernel as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact, Intent, Remedy, When};

/// First kernel with CONFIG_EFI_DISABLE_RUNTIME.
const OPTION_SINCE: (u32, u32) = (5, 19);

pub(super) static CHECK: Check = Check {
    id: "config-efi-runtime",
    title: "calls of EFI firmware while the system runs",
    why: "the firmware runs with interrupts off, for milliseconds when it writes a variable or \
          reads the clock; some stops the other CPUs, too",
    source: "Documentation/core-api/real-time/hardware.rst (EFI) and kernel-configuration.rst; \
             commit d9f283ae71af (get_time: about 10 ms)",
    trade_off: Some(
        "without runtime services efibootmgr, firmware updates and pstore in EFI variables do not \
         work",
    ),
    impact: Impact::Milliseconds,
    when: When::Boot,
    knobs: &[&knobs::EFI_CPUS],
    wanted: Wanted::Text("efi=noruntime, or confined to CPUs that are not real-time"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    // The last efi= with one of both words counts, and in it `runtime` (parse_efi_cmdline of
    // drivers/firmware/efi/efi.c).
    let word = |value: &str| {
        let has = |wanted: &str| value.split(',').any(|word| word == wanted);
        ["runtime", "noruntime"].into_iter().find(|word| has(word))
    };
    let asked = line.all("efi").flatten().filter_map(word).last();
    let is_noefi = line.last("noefi").is_some();
    let draft = draft.read(cmdline, |_| match asked {
        Some(word) => format!("efi={word}"),
        None if is_noefi => "noefi".into(),
        None => "no efi=runtime or efi=noruntime".into(),
    });
    if is_noefi || asked == Some("noruntime") {
        return draft.good(if is_noefi { "noefi" } else { "efi=noruntime" });
    }
    let path = knobs::EFI_PLATFORM.patterns().next().unwrap_or_default();
    let none = Reading::absent(path);
    let setting = facts.settings.get(knobs::EFI_PLATFORM.id);
    let booted = setting.and_then(|s| s.values.first()).map_or(&none, |value| &value.reading);
    if booted.value().is_none() {
        let lacking = setting.and_then(|setting| setting.lacking.as_ref());
        return match lacking.filter(|found| found.value().is_some()) {
            Some(lacking) if booted.is_absent() => {
                draft.read(lacking, String::clone).not_applicable("not booted by EFI")
            }
            _ => draft.blind(booted),
        };
    }
    let draft = draft.read(booted, |bits| format!("{bits} bits"));
    if asked.is_none() {
        match off_by_build(facts) {
            None => return draft.blind(&facts.kernel.config),
            Some(Some(option)) => {
                let draft = draft.saw([machine::option(facts, option)]);
                return draft.good("off by the kernel's build");
            }
            Some(None) => {}
        }
    }
    let draft = draft
        .saw([machine::option(facts, "EFI_DISABLE_RUNTIME")])
        .remedies([Remedy::Boot { parameter: "efi=noruntime".into() }]);
    confined(draft, facts, intent)
}

/// The option that turns them off, if one does; `None`: unknown. PREEMPT_RT by itself did
/// before 5.19 had the option.
fn off_by_build(facts: &Facts) -> Option<Option<&'static str>> {
    if machine::built_with(facts, "EFI_DISABLE_RUNTIME")? {
        return Some(Some("EFI_DISABLE_RUNTIME"));
    }
    let is_rt = machine::built_with(facts, "PREEMPT_RT")?;
    let has_option = machine::since(facts, OPTION_SINCE)?;
    Some((is_rt && !has_option).then_some("PREEMPT_RT"))
}

/// Runtime services are on: where may they run?
fn confined(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let setting = facts.settings.get(knobs::EFI_CPUS.id);
    let Some(mask) = setting.and_then(|setting| setting.values.first()).map(|value| &value.reading)
    else {
        return draft.doubtful("EFI runtime services are on");
    };
    let draft = draft.read(mask, String::clone);
    match mask.value().map(|text| CpuList::parse_mask(text)) {
        Some(Ok(cpus))
            if !intent.rt_cpus.is_empty() && cpus.intersection(&intent.rt_cpus).is_empty() =>
        {
            draft.doubtful(
                "EFI runtime services are on and confined to other CPUs; some firmware stops all",
            )
        }
        _ => draft.doubtful("EFI runtime services are on, on any CPU"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_config};
    use rtproof_host::facts::settings::{Setting, Value};

    /// Booted by EFI, with runtime services confined to CPUs 0-1 by mask.
    fn booted(line: &str) -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        fill_setting(&mut facts, &knobs::EFI_CPUS, "3");
        facts
    }

    #[test]
    fn the_boot_line_decides_and_then_the_build() {
        let judge = |facts: &Facts| CHECK.judge(facts, &intent());
        assert_eq!(judge(&booted("quiet")).status, Good);
        assert_eq!(judge(&booted("efi=runtime efi=noruntime")).status, Good);
        let finding = judge(&booted("efi=noruntime efi=debug,runtime"));
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("confined"), "{}", finding.summary);
        let mut facts = booted("quiet");
        set_config(&mut facts, "EFI_DISABLE_RUNTIME", None);
        fill_setting(&mut facts, &knobs::EFI_CPUS, "f");
        assert_eq!(judge(&facts).summary, "EFI runtime services are on, on any CPU");
        // PREEMPT_RT 5.16 turns them off without the option.
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 16));
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn another_boot_and_what_is_unknown() {
        let judge = |facts: &Facts| CHECK.judge(facts, &intent()).status;
        let mut facts = booted("quiet");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(judge(&facts), Unknown);
        let reading = Reading::absent("/sys/firmware/efi/fw_platform_size");
        let values = vec![Value { of: String::new(), reading }];
        let lacking = Some(Reading::known("/sys/firmware", "holds no efi".to_owned()));
        let setting = Setting { values: values.clone(), lacking };
        facts.settings.insert(knobs::EFI_PLATFORM.id.into(), setting);
        assert_eq!(judge(&facts), NotApplicable);
        let setting = Setting { values, lacking: None };
        facts.settings.insert(knobs::EFI_PLATFORM.id.into(), setting);
        assert_eq!(judge(&facts), Unknown);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(judge(&facts), Unknown);
    }
}
