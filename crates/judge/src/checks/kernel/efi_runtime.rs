//! Can the kernel call the firmware after boot?
//!
//! PREEMPT_RT says no by itself; some distributions and products say yes again with
//! `efi=runtime`. The folder that the kernel makes only with runtime services tells what is in
//! force.

use rtproof_host::{CpuList, Facts, Reading};

use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) struct EfiRuntime;

impl Check for EfiRuntime {
    fn id(&self) -> &'static str {
        "config-efi-runtime"
    }

    fn title(&self) -> &'static str {
        "calls of EFI firmware while the system runs"
    }

    fn why(&self) -> &'static str {
        "the firmware runs with interrupts off, for milliseconds when it writes a variable or \
         reads the clock; some stops the other CPUs, too"
    }

    fn source(&self) -> &'static str {
        "Documentation/core-api/real-time/hardware.rst (EFI) and kernel-configuration.rst; commit \
         d9f283ae71af (get_time: about 10 ms)"
    }

    fn trade_off(&self) -> Option<&'static str> {
        Some(
            "without runtime services efibootmgr, firmware updates and pstore in EFI variables do \
              not work",
        )
    }

    fn impact(&self) -> Impact {
        Impact::Milliseconds
    }

    fn when(&self) -> When {
        When::Boot
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = Draft::of(self, "efi=noruntime, or confined to CPUs that are not real-time");
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
        let Some(setting) = facts.settings.get("efi-runtime") else {
            return draft
                .blind(&Reading::<String>::denied("/sys/firmware/efi/runtime", "not asked"));
        };
        let runtime = setting.values.first().map(|value| &value.reading);
        if let Some(lacking) = setting.lacking.as_ref().filter(|found| found.value().is_some()) {
            let draft = draft.read(lacking, String::clone);
            return match lacking.path.ends_with("/efi") {
                true => draft.good("EFI runtime services are off"),
                false => draft.not_applicable("not booted by EFI"),
            };
        }
        let Some(runtime) = runtime.filter(|reading| reading.value().is_some()) else {
            let none = Reading::<String>::absent("/sys/firmware/efi/runtime");
            return draft.blind(runtime.unwrap_or(&none));
        };
        let draft = draft
            .read(runtime, String::clone)
            .remedies([Remedy::Boot { parameter: "efi=noruntime".into() }]);
        confined(draft, facts, intent)
    }
}

/// Runtime services are on: where may they run?
fn confined(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let setting = facts.settings.get("efi-runtime-cpus");
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
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::checks::testing::{fill_setting, good, intent, set_cmdline};
    use rtproof_host::facts::settings::{Setting, Value};
    use rtproof_host::knobs::kernel as knobs;

    fn with(line: &str, lacking: Option<&str>) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        fill_setting(&mut facts, &knobs::EFI, "0xfffffffeda12b018");
        fill_setting(&mut facts, &knobs::EFI_CPUS, "3");
        if let Some(folder) = lacking {
            let reading = Reading::absent("/sys/firmware/efi/runtime");
            let values = vec![Value { of: String::new(), reading }];
            let lacking = Some(Reading::known(folder, "holds no x".to_owned()));
            facts.settings.insert("efi-runtime".into(), Setting { values, lacking });
        }
        EfiRuntime.judge(&facts, &intent())
    }

    fn status(line: &str, lacking: Option<&str>) -> Status {
        with(line, lacking).status
    }

    #[test]
    fn what_is_in_force_decides() {
        assert_eq!(status("efi=noruntime", None), Good);
        assert_eq!(status("quiet", Some("/sys/firmware/efi")), Good);
        assert_eq!(status("quiet", Some("/sys/firmware")), NotApplicable);
        let finding = with("efi=noruntime efi=debug,runtime", None);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("confined"), "{}", finding.summary);
    }

    #[test]
    fn a_mask_with_real_time_cpus_and_unknown_ones() {
        let mut facts = good();
        set_cmdline(&mut facts, "quiet");
        fill_setting(&mut facts, &knobs::EFI, "0x1");
        fill_setting(&mut facts, &knobs::EFI_CPUS, "f");
        let finding = EfiRuntime.judge(&facts, &intent());
        assert_eq!(finding.summary, "EFI runtime services are on, on any CPU");
        facts.settings.remove("efi-runtime");
        assert_eq!(EfiRuntime.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(EfiRuntime.judge(&facts, &intent()).status, Unknown);
    }
}
