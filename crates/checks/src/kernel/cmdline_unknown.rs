//! Are there parameters that the kernel did not take?
//!
//! A typing error, or a parameter that this kernel is built without, is no error to anybody: the
//! kernel hands it to the first process and says so in one line of its log, from 5.13 on.
//! Parameters with a dot belong to modules and are never reported. What is meant for init or the
//! boot loader is in the same line and means nothing.

use rtproof_host::{Facts, facts::platform::boot::PARAMETERS};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Intent, Remedy, When};
use crate::{machine, text};

/// First kernel that tells.
const TOLD_SINCE: (u32, u32) = (5, 13);
/// Most names in a summary.
const NAMED_MAX: usize = 4;

pub(super) static CHECK: Check = Check {
    id: "cmdline-unknown",
    title: "boot parameters that the kernel did not take",
    why: "a parameter that is misspelt, or that this kernel is built without, does nothing, and \
          nobody says so",
    source: "init/main.c (print_unknown_bootoptions, 5.13 and later); \
             Documentation/admin-guide/kernel-parameters.rst",
    when: When::Boot,
    wanted: Wanted::Text("none that is about latency"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let log = &facts.platform.log;
    let draft = draft.read(log, |log| match &log.unknown_parameters {
        Some(names) => format!("unknown parameters: {}", names.join(" ")),
        None if log.is_whole => "no unknown parameters".into(),
        None => "no unknown parameters in the part that is still there".into(),
    });
    let Some(found) = log.value() else {
        return draft.blind(log);
    };
    let Some(names) = &found.unknown_parameters else {
        if !found.is_whole {
            return draft.unknown("the start of the kernel's log was overwritten");
        }
        let version = &facts.kernel.version;
        return match machine::since(facts, TOLD_SINCE) {
            Some(true) => {
                draft.read(version, |(major, minor)| format!("{major}.{minor}")).good("none")
            }
            Some(false) => draft.unknown("kernels before 5.13 do not tell"),
            None => draft.blind(version),
        };
    };
    let is_known = |name: &&String| PARAMETERS.contains(&name.replace('-', "_").as_str());
    let known: Vec<&String> = names.iter().filter(is_known).collect();
    let meant: Vec<String> = names
        .iter()
        .filter(|name| !is_known(name))
        .filter_map(|name| Some(format!("{name} (is {} meant?)", similar(name)?)))
        .collect();
    let draft = draft.remedies([Remedy::Manual {
        text: "correct the boot entry, or use a kernel that is built with what it asks for".into(),
    }]);
    if !known.is_empty() {
        let names = text::first_few(&known, NAMED_MAX);
        return draft.bad(format!("this kernel does not know {names}"));
    }
    if !meant.is_empty() {
        return draft.doubtful(format!("not taken: {}", text::first_few(&meant, NAMED_MAX)));
    }
    let names = text::first_few(names, NAMED_MAX);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::log::KernelLog};

    fn with(names: Option<&[&str]>, is_whole: bool) -> Finding {
        let mut facts = good();
        let unknown_parameters =
            names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let log = KernelLog { is_whole, unknown_parameters, ..KernelLog::default() };
        facts.platform.log = Reading::known("/dev/kmsg", log);
        CHECK.judge(&facts, &intent())
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.platform.log = Reading::denied("/dev/kmsg", "EPERM");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
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
