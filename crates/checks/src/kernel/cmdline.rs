//! The kernel's command line: duplicates, unknown words, words for debugging; and EFI runtime
//! services.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{kernel::CommandLine, next_boot::PARAMETERS},
    knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine};

// Is a boot parameter given twice?
//
// Boot entries are put together by several tools, each adding its own words. Of two different
// values one counts, and which one depends on the parameter. Lists that contradict each other
// across parameters are the check `isolation`.

/// Parameters whose values add up, or that come in pairs.
const ADD_UP: &[&str] = &[
    "amd_iommu",
    "default_hugepagesz",
    "efi",
    "hugepages",
    "hugepagesz",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "mce",
    "tsc",
];

/// Parameters with a list of CPUs.
const LISTS: &[&str] = &["irqaffinity", "isolcpus", "kthread_cpus", "nohz_full", "rcu_nocbs"];

/// Summary if there is none.
const NONE: &str = "each parameter about latency is given once";

/// Most repetitions in a summary.
const DUPLICATES_NAMED_MAX: usize = 3;

pub(super) static CMDLINE_DUPLICATES: Check = Check {
    id: "cmdline-duplicates",
    title: "boot parameters given more than once",
    why: "of two values one is dropped without a word, and it may be the one that was meant",
    source: "kernel/params.c (parse_args); kernel/sched/isolation.c (housekeeping_setup); \
             seapath/ansible issues 865 and 868",
    when: When::Boot,
    wanted: Wanted::Text("each once"),
    judge: Judge::Ask(judge_cmdline_duplicates),
    ..Check::NEW
};

fn judge_cmdline_duplicates(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let mut given: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for parameter in &line.parameters {
        let key = parameter.key.replace('-', "_");
        if PARAMETERS.contains(&key.as_str()) {
            let value = parameter.value.as_ref();
            let word = value.map_or(key.clone(), |value| format!("{key}={value}"));
            given.entry(key).or_default().push(word);
        }
    }
    let is_same = |words: &Vec<String>| words.iter().all(|word| *word == words[0]);
    // Where values add up, only the same word twice is a repetition.
    given.retain(|key, words| {
        words.len() > 1 && (is_same(words) || !ADD_UP.contains(&key.as_str()))
    });
    let differ: Vec<(&String, &Vec<String>)> =
        given.iter().filter(|(_, words)| !is_same(words)).collect();
    let same: Vec<&String> =
        given.values().filter(|words| is_same(words)).map(|words| &words[0]).collect();
    let shown = |words: &Vec<String>| words.join(" ");
    let repeated: Vec<String> = given.values().map(shown).collect();
    let value = match repeated.is_empty() {
        true => "no parameter about latency is repeated".to_owned(),
        false => repeated.join("; "),
    };
    let draft = draft.evidence([Evidence { path: cmdline.path.clone(), value }]);
    if differ.is_empty() {
        return draft.good(match same.is_empty() {
            true => NONE.to_owned(),
            false => {
                format!(
                    "repeated with the same value: {}",
                    machine::first_few(&same, DUPLICATES_NAMED_MAX)
                )
            }
        });
    }
    let words: Vec<String> = differ.iter().map(|(_, words)| shown(words)).collect();
    let summary = format!("different values: {}", machine::first_few(&words, DUPLICATES_NAMED_MAX));
    let text = "leave one of them in the boot entry; look into every file that it is made of";
    let draft = draft.remedies([Remedy::Manual { text: text.into() }]);
    match differ.iter().any(|(key, _)| LISTS.contains(&key.as_str())) {
        true => draft.bad(summary),
        false => draft.doubtful(format!("{summary}; as a rule the last counts")),
    }
}

// Are there parameters that the kernel did not take?
//
// A typing error, or a parameter that this kernel is built without, is no error to anybody: the
// kernel hands it to the first process and says so in one line of its log, from 5.13 on.
// Parameters with a dot belong to modules and are never reported. Words for init or the
// boot loader is in the same line and means nothing.

/// First kernel that reports unknown parameters.
const REPORTED_SINCE: (u32, u32) = (5, 13);

/// Most names in a summary.
const UNKNOWN_NAMED_MAX: usize = 4;

pub(super) static CMDLINE_UNKNOWN: Check = Check {
    id: "cmdline-unknown",
    title: "boot parameters that the kernel did not take",
    why: "a parameter that is misspelt, or that this kernel is built without, does nothing, and \
          nobody says so",
    source: "init/main.c (print_unknown_bootoptions, 5.13 and later); \
             Documentation/admin-guide/kernel-parameters.rst",
    when: When::Boot,
    wanted: Wanted::Text("none that is about latency"),
    judge: Judge::Ask(judge_cmdline_unknown),
    ..Check::NEW
};

fn judge_cmdline_unknown(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let log = &facts.platform.log;
    let draft = draft.read(log, |log| match &log.unknown_parameters {
        Some(names) => format!("unknown parameters: {}", names.join(" ")),
        None if log.is_whole => "no unknown parameters".into(),
        None => "no unknown parameters in the part that is still there".into(),
    });
    let Some(found) = log.value() else {
        return draft.unreadable(log);
    };
    let Some(names) = &found.unknown_parameters else {
        if !found.is_whole {
            return draft.unknown("the start of the kernel's log was overwritten");
        }
        let version = &facts.kernel.version;
        return match machine::since(facts, REPORTED_SINCE) {
            Some(true) => {
                draft.read(version, |(major, minor)| format!("{major}.{minor}")).good("none")
            }
            Some(false) => draft.unknown("kernels before 5.13 do not tell"),
            None => draft.unreadable(version),
        };
    };
    let is_known = |name: &&String| PARAMETERS.contains(&name.replace('-', "_").as_str());
    let known: Vec<&String> = names.iter().filter(is_known).collect();
    let misread: Vec<String> = names
        .iter()
        .filter(|name| !is_known(name))
        .filter_map(|name| Some(format!("{name} (is {} meant?)", similar(name)?)))
        .collect();
    let draft = draft.remedies([Remedy::Manual {
        text: "correct the boot entry, or use a kernel that is built with what it asks for".into(),
    }]);
    if !known.is_empty() {
        let names = machine::first_few(&known, UNKNOWN_NAMED_MAX);
        return draft.bad(format!("this kernel does not know {names}"));
    }
    if !misread.is_empty() {
        return draft
            .doubtful(format!("not taken: {}", machine::first_few(&misread, UNKNOWN_NAMED_MAX)));
    }
    let names = machine::first_few(names, UNKNOWN_NAMED_MAX);
    draft.good(format!("none about latency; for init or others: {names}"))
}

/// A parameter about latency that a name is nearly: one letter wrong, missing or too many, or only
/// `_` left out.
fn similar(name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let name = plain(name);
    // Short ones are near to too many words: `nohz`, `tsc`, `idle`.
    let is_near = |known: &str| {
        let known = plain(known);
        known == name || (known.len() >= 6 && distance_is_one(&known, &name))
    };
    PARAMETERS.iter().copied().find(|known| is_near(known))
}

fn distance_is_one(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, rest @ ..], b) if rest == b => true,
        (a, [_, rest @ ..]) if rest == a => true,
        // Two neighbours swapped.
        ([a1, a2, a @ ..], [b1, b2, b @ ..]) => a1 == b2 && a2 == b1 && a == b,
        _ => false,
    }
}

// Does the boot line turn on debugging of memory that the build leaves off?

/// Parameter, the values that turn it off, and whether the bare word turns it on.
const DEBUG_WORDS: &[(&str, &[&str], bool)] = &[
    ("slub_debug", &["-"], true),
    ("slab_debug", &["-"], true),
    ("debug_pagealloc", &["off", "0", "n", "no"], false),
    ("page_poison", &["off", "0", "n", "no"], false),
    ("page_owner", &["off", "0", "n", "no"], false),
    ("kmemleak", &["off"], false),
];

pub(super) static DEBUG_PARAMETERS: Check = Check {
    id: "debug-parameters",
    title: "debugging of memory turned on at boot (slab_debug= and others)",
    why: "each allocation is filled, checked or written down, under locks that others wait for",
    source: "Documentation/admin-guide/kernel-parameters.txt (slab_debug, debug_pagealloc, \
             page_poison, page_owner, kmemleak); Documentation/mm/slub.rst",
    when: When::Boot,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_debug_parameters),
    ..Check::NEW
};

fn judge_debug_parameters(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let on = cmdline.value().map(turned_on).unwrap_or_default();
    let shown = || if on.is_empty() { "none of them".to_owned() } else { on.join(" ") };
    let draft = draft.read(cmdline, |_| shown());
    if cmdline.value().is_none() {
        return draft.unreadable(cmdline);
    }
    if on.is_empty() {
        return draft.good("none");
    }
    let key = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
    let remedies = on.iter().map(|word| Remedy::Unboot { parameter: key(word) });
    draft.remedies(remedies).bad(machine::first_few(&on, 4))
}

fn turned_on(line: &CommandLine) -> Vec<String> {
    let is_on = |&&(key, off, bare): &&(&str, &[&str], bool)| match line.last(key) {
        Some(Some(value)) => !off.contains(&value),
        Some(None) => bare,
        None => false,
    };
    let word = |&(key, ..): &(&str, &[&str], bool)| match line.last(key).flatten() {
        Some(value) => format!("{key}={value}"),
        None => key.to_owned(),
    };
    DEBUG_WORDS.iter().filter(is_on).map(word).collect()
}

// Can the kernel call the firmware after boot?
//
// PREEMPT_RT says no by itself; some distributions and products say yes again with
// `efi=runtime`. No file shows what is in force: /sys/firmware/efi/runtime is an address that x86
// shows either way. So the boot line decides, and where it is silent the build.

/// First kernel with CONFIG_EFI_DISABLE_RUNTIME.
const OPTION_SINCE: (u32, u32) = (5, 19);

pub(super) static EFI_RUNTIME: Check = Check {
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
    judge: Judge::Ask(judge_efi_runtime),
    ..Check::NEW
};

fn judge_efi_runtime(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
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
        let lacking = setting.and_then(|setting| setting.missing_from.as_ref());
        return match lacking.filter(|found| found.value().is_some()) {
            Some(lacking) if booted.is_absent() => {
                draft.read(lacking, String::clone).not_applicable("not booted by EFI")
            }
            _ => draft.unreadable(booted),
        };
    }
    let draft = draft.read(booted, |bits| format!("{bits} bits"));
    if asked.is_none() {
        match off_by_build(facts) {
            None => return draft.unreadable(&facts.kernel.config),
            Some(Some(option)) => {
                let draft = draft.evidence([machine::option(facts, option)]);
                return draft.good("off by the kernel's build");
            }
            Some(None) => {}
        }
    }
    let draft = draft
        .evidence([machine::option(facts, "EFI_DISABLE_RUNTIME")])
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
fn confined(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
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
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        CMDLINE_DUPLICATES.judge(&facts, &intent())
    }

    #[test]
    fn different_values_count_and_lists_most() {
        assert_eq!(with("quiet isolcpus=2-3 console=tty0 console=ttyS0").status, Good);
        let finding = with("nohz_full=2-3 nohz-full=2-3");
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "repeated with the same value: nohz_full=2-3");
        let finding = with("irqaffinity=0-15 quiet irqaffinity=0-3");
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "different values: irqaffinity=0-15 irqaffinity=0-3");
        assert_eq!(with("mitigations=off mitigations=auto").status, Doubtful);
        // These add up, but not with themselves.
        assert_eq!(with("tsc=reliable tsc=nowatchdog").summary, NONE);
        let finding = with("tsc=reliable tsc=reliable");
        assert_eq!(finding.summary, "repeated with the same value: tsc=reliable");
    }

    #[test]
    fn no_line_is_unknown() {
        let mut facts = good();
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(CMDLINE_DUPLICATES.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod cmdline_unknown_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::KernelLog};

    fn with(names: Option<&[&str]>, is_whole: bool) -> Finding {
        let mut facts = good();
        let unknown_parameters =
            names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let log = KernelLog { is_whole, unknown_parameters, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log);
        CMDLINE_UNKNOWN.judge(&facts, &intent())
    }

    #[test]
    fn only_what_is_about_latency_counts() {
        assert_eq!(with(None, true).status, Good);
        assert_eq!(with(Some(&["BOOT_IMAGE", "splash", "single"]), true).status, Good);
        let finding = with(Some(&["splash", "nohz_full"]), true);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "this kernel does not know nohz_full");
        let finding = with(Some(&["isolcpu", "nohzfull"]), false);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("isolcpu (is isolcpus meant?)"), "{}", finding.summary);
        assert!(finding.summary.contains("nohzfull (is nohz_full meant?)"));
    }

    #[test]
    fn what_was_not_read_is_unknown() {
        assert_eq!(with(None, false).status, Unknown);
        let mut facts = good();
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
        assert_eq!(CMDLINE_UNKNOWN.judge(&facts, &intent()).status, Unknown);
        facts.platform.log = Reading::denied("/dev/kmsg", "EPERM");
        assert_eq!(CMDLINE_UNKNOWN.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn near_names() {
        assert!(distance_is_one("isolcpus", "isolcpu") && distance_is_one("abc", "acb"));
        assert!(!distance_is_one("abc", "abc") && !distance_is_one("abc", "xyz"));
        assert_eq!(similar("rcu_nocbss"), Some("rcu_nocbs"));
        assert_eq!(similar("quiet"), None);
        assert_eq!(similar("isc"), None);
    }
}

#[cfg(test)]
mod debug_parameters_tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    #[test]
    fn what_is_on_is_named() {
        let with = |line| {
            let mut facts = good();
            set_cmdline(&mut facts, line);
            DEBUG_PARAMETERS.judge(&facts, &intent())
        };
        assert_eq!(with("quiet slub_debug=- debug_pagealloc=off").status, Good);
        let finding = with("slab_debug page_poison=1");
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "slab_debug, page_poison=1");
    }

    #[test]
    fn no_line_is_unknown() {
        let mut facts = good();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(DEBUG_PARAMETERS.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod efi_runtime_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_cmdline, set_config};
    use rtproof_host::facts::settings::{Setting, SettingValue};

    /// Booted by EFI, with runtime services confined to CPUs 0-1 by mask.
    fn booted(line: &str) -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        fill_setting(&mut facts, &knobs::EFI_CPUS, "3");
        facts
    }

    #[test]
    fn the_boot_line_decides_and_then_the_build() {
        let judge = |facts: &Facts| EFI_RUNTIME.judge(facts, &intent());
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
        let judge = |facts: &Facts| EFI_RUNTIME.judge(facts, &intent()).status;
        let mut facts = booted("quiet");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(judge(&facts), Unknown);
        let reading = Reading::absent("/sys/firmware/efi/fw_platform_size");
        let values = vec![SettingValue { of: String::new(), reading }];
        let lacking = Some(Reading::known("/sys/firmware", "holds no efi".to_owned()));
        let setting = Setting { values: values.clone(), missing_from: lacking };
        facts.settings.insert(knobs::EFI_PLATFORM.id.into(), setting);
        assert_eq!(judge(&facts), NotApplicable);
        let setting = Setting { values, missing_from: None };
        facts.settings.insert(knobs::EFI_PLATFORM.id.into(), setting);
        assert_eq!(judge(&facts), Unknown);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(judge(&facts), Unknown);
    }
}
