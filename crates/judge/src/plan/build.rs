//! What a kernel that is built anew should have: what the checks of its build miss, at every level
//! of certainty, and the options without which those are not offered. Only what the running
//! kernel's configuration lacks.

use std::collections::BTreeMap;

use rtproof_host::Facts;

use super::request::Selection;
use crate::profile::Choice;
use crate::{Intent, Remedy, Status, checks};

/// One option of the kernel's build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOption {
    /// `NAME=value` without `CONFIG_`; `n`: not set.
    pub option: String,
    /// The check that asks for it.
    pub check: String,
    pub why: String,
    /// Where that is known from.
    pub source: String,
}

/// An option that no check asks for by itself.
struct Extra {
    option: &'static str,
    check: &'static str,
    /// Whether it matters; the configuration is that of the running kernel.
    when: fn(&BTreeMap<String, String>, &Intent) -> bool,
    why: &'static str,
    source: &'static str,
}

const EXTRAS: &[Extra] = &[
    Extra {
        option: "EXPERT=y",
        check: "preempt-rt",
        when: |config, _| !is_set(config, "PREEMPT_RT"),
        why: "PREEMPT_RT depends on it: without it the option is dropped and nothing says so",
        source: "kernel/Kconfig.preempt (depends on EXPERT && ARCH_SUPPORTS_RT)",
    },
    Extra {
        option: "COMPILE_TEST=n",
        check: "preempt-rt",
        when: |config, _| !is_set(config, "PREEMPT_RT"),
        why: "later kernels do not offer PREEMPT_RT beside it",
        source: "kernel/Kconfig.preempt (depends on !COMPILE_TEST)",
    },
    Extra {
        option: "HIGH_RES_TIMERS=y",
        check: "high-res-timers",
        when: |_, _| true,
        why: "without it a wake-up waits for the next tick, up to 1/HZ",
        source: "Documentation/timers/hrtimers.rst; Bridgers, \"Real Time Linux Scheduling \
                 Comparison\"",
    },
    Extra {
        option: "NO_HZ_FULL=y",
        check: "config-nohz",
        when: |_, intent| has_own_cpus(intent) && intent.profile.choices.nohz_full != Choice::Off,
        why: "nohz_full= stops the tick of the real-time CPUs; it costs little where that is not \
              given",
        source: "Documentation/timers/no_hz.rst; Flatscher, \"Real-time Optimizations\"",
    },
    Extra {
        option: "RCU_EXPERT=y",
        check: "config-rcu-nocb",
        when: |config, _| !is_set(config, "RCU_NOCB_CPU") && !is_set(config, "NO_HZ_FULL"),
        why: "RCU_NOCB_CPU depends on it, or on NO_HZ_FULL",
        source: "kernel/rcu/Kconfig (RCU_NOCB_CPU)",
    },
    Extra {
        option: "FTRACE=y",
        check: "hwlat",
        when: |_, _| true,
        why: "rtproof names the cause of a late wake-up from the kernel's events, and the tracers \
              below are part of it",
        source: "kernel/trace/Kconfig; Wu, \"Real-time programming with Linux, part 2\" (ftrace)",
    },
    Extra {
        option: "KALLSYMS=y",
        check: "hwlat",
        when: |_, _| true,
        why: "names the functions of the kernel in causes and stacks, which are numbers without it",
        source: "init/Kconfig (KALLSYMS)",
    },
    Extra {
        option: "OSNOISE_TRACER=y",
        check: "hwlat",
        when: |_, _| true,
        why: "its events name what took a CPU: interrupts, threads, hardware; it costs nothing \
              while it is off",
        source: "Documentation/trace/osnoise-tracer.rst",
    },
    Extra {
        option: "TIMERLAT_TRACER=y",
        check: "hwlat",
        when: |_, _| true,
        why: "it splits a late wake-up into its parts, from the timer's interrupt on",
        source: "Documentation/trace/timerlat-tracer.rst",
    },
];

/// The options, in the order of the checks; `None`: the configuration of the running kernel cannot
/// be read, so that what it lacks is not known.
pub fn build_options(
    facts: &Facts,
    intent: &Intent,
    wanted: &Selection,
) -> Option<Vec<BuildOption>> {
    let config = facts.kernel.config.value()?;
    let mut options: Vec<BuildOption> = Vec::new();
    let mut add = |option: BuildOption| {
        let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
        let is_new = options.iter().all(|known| name(&known.option) != name(&option.option));
        if is_new && built_otherwise(config, &option.option) {
            options.push(option);
        }
    };
    for finding in checks::judge_all(facts, intent) {
        let stands = matches!(finding.status, Status::Bad | Status::Doubtful);
        if !wanted.includes(&finding.check) || finding.skipped.is_some() {
            continue;
        }
        let of_check = EXTRAS.iter().filter(|extra| extra.check == finding.check);
        for extra in of_check.filter(|extra| (extra.when)(config, intent)) {
            add(BuildOption {
                option: extra.option.into(),
                check: extra.check.into(),
                why: extra.why.into(),
                source: extra.source.into(),
            });
        }
        for remedy in finding.remedies.iter().filter(|_| stands) {
            let Remedy::Build { options } = remedy else { continue };
            for option in options {
                add(BuildOption {
                    option: option.clone(),
                    check: finding.check.clone(),
                    why: finding.why.clone(),
                    source: finding.source.clone(),
                });
            }
        }
    }
    Some(options)
}

fn has_own_cpus(intent: &Intent) -> bool {
    !intent.rt_cpus.is_empty() && !intent.housekeeping.is_empty()
}

fn is_set(config: &BTreeMap<String, String>, name: &str) -> bool {
    matches!(config.get(name).map(String::as_str), Some("y" | "m"))
}

/// Whether the running kernel is built otherwise. A module is as good as built in.
fn built_otherwise(config: &BTreeMap<String, String>, option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else { return true };
    match value {
        "y" | "m" => !is_set(config, name),
        "n" => is_set(config, name),
        value => config.get(name).is_none_or(|found| found != value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{good, good_stock, intent, set_config};
    use rtproof_host::Reading;

    fn asked(facts: &Facts, intent: &Intent) -> Vec<String> {
        let all = build_options(facts, intent, &Selection::default()).unwrap();
        all.into_iter().map(|option| option.option).collect()
    }

    /// A kernel that lacks nothing.
    fn complete() -> Facts {
        let mut facts = good();
        for name in ["FTRACE", "KALLSYMS", "OSNOISE_TRACER", "TIMERLAT_TRACER", "NO_HZ_FULL"] {
            set_config(&mut facts, name, Some("y"));
        }
        facts
    }

    #[test]
    fn a_kernel_that_has_all_is_asked_nothing() {
        assert_eq!(asked(&complete(), &intent()), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_asked_with_its_reason_and_source() {
        let mut facts = complete();
        for name in ["OSNOISE_TRACER", "NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION"] {
            set_config(&mut facts, name, None);
        }
        set_config(&mut facts, "HZ", Some("250"));
        set_config(&mut facts, "DEBUG_PREEMPT", Some("y"));
        let found = asked(&facts, &intent());
        for option in [
            "HZ_1000=y",
            "HZ=1000",
            "NO_HZ_FULL=y",
            "CPU_ISOLATION=y",
            "RCU_EXPERT=y",
            "RCU_NOCB_CPU=y",
            "DEBUG_PREEMPT=n",
            "OSNOISE_TRACER=y",
        ] {
            assert!(found.iter().any(|one| one == option), "{option}: {found:?}");
        }
        let slow = Intent { period_ns: 4_000_000, ..intent() };
        assert!(!asked(&facts, &slow).iter().any(|one| one.starts_with("HZ")));
        for one in build_options(&facts, &intent(), &Selection::default()).unwrap() {
            assert!(!one.why.is_empty() && !one.source.is_empty(), "{one:?}");
        }
        let named = Selection { ids: vec!["config-hz".into()], ..Selection::default() };
        assert_eq!(build_options(&facts, &intent(), &named).unwrap().len(), 2);
        let skip = BTreeMap::from([("config-hz".to_owned(), "no".to_owned())]);
        let skipped = asked(&facts, &Intent { skip, ..intent() });
        assert!(!skipped.iter().any(|one| one.starts_with("HZ")), "{skipped:?}");
    }

    #[test]
    fn a_stock_kernel_is_asked_for_what_the_option_depends_on() {
        let mut facts = good_stock();
        set_config(&mut facts, "PREEMPT_RT", None);
        set_config(&mut facts, "EXPERT", None);
        set_config(&mut facts, "COMPILE_TEST", Some("y"));
        let found = asked(&facts, &intent());
        for option in ["PREEMPT_RT=y", "EXPERT=y", "COMPILE_TEST=n"] {
            assert!(found.iter().any(|one| one == option), "{option}: {found:?}");
        }
        set_config(&mut facts, "EXPERT", Some("y"));
        assert!(!asked(&facts, &intent()).iter().any(|one| one == "EXPERT=y"));
        facts.kernel.config = Reading::denied("/proc/config.gz", "EACCES");
        assert_eq!(build_options(&facts, &intent(), &Selection::default()), None);
    }
}
