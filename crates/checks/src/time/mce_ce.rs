//! Does every CPU look for corrected hardware errors?
//!
//! Corrected errors are found in two ways, by a timer on each CPU and by an interrupt (CMCI), and
//! `ignore_ce` ends both. Whether that is wanted the profile says: what is not looked for does not
//! warn of failing memory either.

use rtproof_host::{Facts, knob::Arch, knobs::time as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::profile::Choice;
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "mce-ce",
    title: "corrected machine checks",
    why: "a timer on each CPU reads its banks of machine checks, every five minutes and oftener \
          once it found an error, and an interrupt comes with each corrected error",
    source: "arch/x86/kernel/cpu/mce/core.c (mce_timer_fn, set_ignore_ce); \
             Documentation/arch/x86/x86_64/boot-options.rst (mce=); Codethink, \"Configuring Linux \
             systems to stabilise latency\" (periodic spikes); tuned, profile realtime (ignore_ce)",
    trade_off: Some(
        "memory that fails slowly is no longer reported by the kernel: watch it in the firmware's \
         log; uncorrected errors are still handled",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::MCE_IGNORE_CE, &knobs::MCE_CMCI_DISABLED, &knobs::MCE_CHECK_INTERVAL],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.corrected_errors;
    let wanted = match choice {
        Choice::On => "looked for",
        Choice::Off => "ignored: ignore_ce is 1",
        Choice::Either => "known",
    };
    let draft = draft.wants(wanted);
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !Arch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let ignored = setting::number(facts, &knobs::MCE_IGNORE_CE);
    let draft = draft.read(&ignored, i64::to_string);
    if ignored.is_absent()
        && let Some(lacking) = setting::lacking(facts, &knobs::MCE_IGNORE_CE)
    {
        return draft
            .read(lacking, String::clone)
            .not_applicable("no machine checks: switched off (mce=off), or none in this guest");
    }
    let Some(&is_ignored) = ignored.value() else {
        return draft.blind(&ignored);
    };
    if is_ignored != 0 {
        let summary = "corrected errors are ignored";
        return match choice {
            Choice::On => draft.doubtful(format!("{summary}: failing memory goes unseen")),
            Choice::Off | Choice::Either => draft.good(summary),
        };
    }
    let interval = setting::number(facts, &knobs::MCE_CHECK_INTERVAL);
    let disabled = setting::number(facts, &knobs::MCE_CMCI_DISABLED);
    let draft = draft.read(&interval, i64::to_string).read(&disabled, i64::to_string);
    let (Some(&interval_s), Some(&is_disabled)) = (interval.value(), disabled.value()) else {
        return draft.blind(if interval.value().is_none() { &interval } else { &disabled });
    };
    let polled = match interval_s {
        0 => "not polled".to_owned(),
        seconds => format!("polled at least every {seconds} s"),
    };
    let interrupt = if is_disabled == 0 { "interrupt on" } else { "interrupt off" };
    let summary = format!("{polled}, {interrupt}");
    let is_quiet = interval_s == 0 && is_disabled != 0;
    match choice {
        Choice::Off if !is_quiet => draft
            .remedies([
                Remedy::set(&knobs::MCE_IGNORE_CE, vec![ignored.path.clone()], "1"),
                Remedy::Boot { parameter: "mce=ignore_ce".into() },
            ])
            .bad(summary),
        Choice::On if is_quiet => draft.doubtful(format!("{summary}: failing memory goes unseen")),
        _ => draft.good(summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn machine(ignore: &str, disabled: &str, interval: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::MCE_IGNORE_CE, ignore);
        fill_setting(&mut facts, &knobs::MCE_CMCI_DISABLED, disabled);
        fill_setting(&mut facts, &knobs::MCE_CHECK_INTERVAL, interval);
        facts
    }

    fn status(choice: Choice, ignore: &str, disabled: &str, interval: &str) -> Status {
        let mut profile = Profile::default();
        profile.choices.corrected_errors = choice;
        let intent = Intent { profile, ..intent() };
        CHECK.judge(&machine(ignore, disabled, interval), &intent).status
    }

    #[test]
    fn the_profile_decides() {
        assert_eq!(status(Choice::Off, "1", "0", "300"), Good);
        assert_eq!(status(Choice::Off, "0", "1", "0"), Good);
        assert_eq!(status(Choice::Off, "0", "0", "300"), Bad);
        assert_eq!(status(Choice::Off, "0", "0", "0"), Bad);
        assert_eq!(status(Choice::Either, "0", "0", "300"), Good);
        assert_eq!(status(Choice::On, "0", "0", "300"), Good);
        assert_eq!(status(Choice::On, "1", "0", "300"), Doubtful);
        assert_eq!(status(Choice::Off, "0", "x", "300"), Unknown);
    }

    #[test]
    fn another_architecture_and_a_guest_without_machine_checks() {
        let mut facts = machine("0", "0", "300");
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = machine("0", "0", "300");
        set_setting(&mut facts, &knobs::MCE_IGNORE_CE, Reading::absent("x"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut("mce-ignore-ce").unwrap();
        let folder = "/sys/devices/system";
        setting.lacking = Some(Reading::known(folder, "holds no machinecheck".into()));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
