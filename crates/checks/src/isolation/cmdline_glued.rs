//! Are two boot parameters run together?
//!
//! A tool that appends to a boot entry without a space makes one word of two, and the kernel takes
//! neither for what it was meant: `console=ttyS0,115200n8spectre_v2=off`.

use rtproof_host::{Facts, facts::kernel::Parameter};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

/// Parameters that tools append, as they are written.
const APPENDED: &[&str] = &[
    "audit",
    "clocksource",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosoftlockup",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "skew_tick",
    "spectre_v2",
    "systemd.cpu_affinity",
    "threadirqs",
    "tsc",
    "tuned.non_isolcpus",
    "workqueue.unbound_cpus",
];

pub(super) static CMDLINE_GLUED: Check = Check {
    id: "cmdline-glued",
    title: "boot parameters run together without a space",
    why: "neither of two parameters that became one word has its effect",
    source: "github.com/redhat-performance/tuned issue 268; lib/cmdline.c (next_arg)",
    when: When::Boot,
    wanted: Wanted::Text("a space between parameters"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let glued: Vec<String> = line.parameters.iter().filter_map(glued).collect();
    let draft = draft.read(cmdline, |line| match glued.as_slice() {
        [] => text::count(line.parameters.len(), "parameter"),
        words => words.join(" "),
    });
    if glued.is_empty() {
        return draft.good("no two parameters run together");
    }
    let text = "put a space between the two in the boot loader's entry, and boot".into();
    draft
        .remedies([Remedy::Manual { text }])
        .bad(format!("two parameters in one word: {}", text::first_few(&glued, 3)))
}

/// A parameter whose value ends in another parameter, as written.
fn glued(parameter: &Parameter) -> Option<String> {
    let value = parameter.value.as_deref()?;
    let (before, _) = value.split_once('=')?;
    let is_end = |name: &&&str| {
        let start = before.strip_suffix(**name);
        // `ima_policy=x,audit=1` is a list of its own, and `root=UUID=...` a name.
        start.is_some_and(|start| start.ends_with(|c: char| c.is_ascii_alphanumeric()))
    };
    // Text in quotes has spaces, and is passed on as it is.
    let is_text = value.contains(' ');
    let _ = APPENDED.iter().find(is_end).filter(|_| !is_text)?;
    Some(format!("{}={value}", parameter.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        CMDLINE_GLUED.judge(&facts, &intent()).status
    }

    #[test]
    fn two_in_one_word_and_values_that_only_look_so() {
        assert_eq!(with("console=ttyS0,115200n8spectre_v2=off"), Bad);
        assert_eq!(with("quiet isolcpus=2-3nohz_full=2-3"), Bad);
        assert_eq!(with("root=UUID=1 rd.luks.options=a=b rootflags=x,nohz=on"), Good);
        assert_eq!(with("systemd.setenv=FOO=bar x=tsc=unstable"), Good);
        let mut facts = good();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(CMDLINE_GLUED.judge(&facts, &intent()).status, Unknown);
    }
}
