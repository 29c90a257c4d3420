//! Is a boot parameter given twice?
//!
//! Boot entries are put together by several tools, each adding its own words. Of two different
//! values one counts, and which one depends on the parameter. Lists that contradict each other
//! across parameters are the check `isolation`.

use std::collections::BTreeMap;

use rtproof_host::{Facts, facts::platform::boot::PARAMETERS};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy, When};

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
/// What is said where there is none.
const NONE: &str = "each parameter about latency is given once";
/// Most repetitions in a summary.
const NAMED_MAX: usize = 3;

pub(super) static CHECK: Check = Check {
    id: "cmdline-duplicates",
    title: "boot parameters given more than once",
    why: "of two values one is dropped without a word, and it may be the one that was meant",
    source: "kernel/params.c (parse_args); kernel/sched/isolation.c (housekeeping_setup); \
             seapath/ansible issues 865 and 868",
    when: When::Boot,
    wanted: Wanted::Text("each once"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
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
    let draft = draft.saw([Evidence { path: cmdline.path.clone(), value }]);
    if differ.is_empty() {
        return draft.good(match same.is_empty() {
            true => NONE.to_owned(),
            false => {
                format!("repeated with the same value: {}", text::first_few(&same, NAMED_MAX))
            }
        });
    }
    let words: Vec<String> = differ.iter().map(|(_, words)| shown(words)).collect();
    let summary = format!("different values: {}", text::first_few(&words, NAMED_MAX));
    let text = "leave one of them in the boot entry; look into every file that it is made of";
    let draft = draft.remedies([Remedy::Manual { text: text.into() }]);
    match differ.iter().any(|(key, _)| LISTS.contains(&key.as_str())) {
        true => draft.bad(summary),
        false => draft.doubtful(format!("{summary}; as a rule the last counts")),
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
        CHECK.judge(&facts, &intent())
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
