//! Does the boot line turn on debugging of memory that the build leaves off?

use rtproof_host::{Facts, facts::kernel::CommandLine};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy, When};

/// Parameter, the values that turn it off, and whether the bare word turns it on.
const PARAMETERS: &[(&str, &[&str], bool)] = &[
    ("slub_debug", &["-"], true),
    ("slab_debug", &["-"], true),
    ("debug_pagealloc", &["off", "0", "n", "no"], false),
    ("page_poison", &["off", "0", "n", "no"], false),
    ("page_owner", &["off", "0", "n", "no"], false),
    ("kmemleak", &["off"], false),
];

pub(super) static CHECK: Check = Check {
    id: "debug-parameters",
    title: "debugging of memory turned on at boot (slab_debug= and others)",
    why: "each allocation is filled, checked or written down, under locks that others wait for",
    source: "Documentation/admin-guide/kernel-parameters.txt (slab_debug, debug_pagealloc, \
             page_poison, page_owner, kmemleak); Documentation/mm/slub.rst",
    when: When::Boot,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let on = cmdline.value().map(turned_on).unwrap_or_default();
    let shown = || if on.is_empty() { "none of them".to_owned() } else { on.join(" ") };
    let draft = draft.read(cmdline, |_| shown());
    if cmdline.value().is_none() {
        return draft.blind(cmdline);
    }
    if on.is_empty() {
        return draft.good("none");
    }
    let key = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
    let remedies = on.iter().map(|word| Remedy::Unboot { parameter: key(word) });
    draft.remedies(remedies).bad(text::first_few(&on, 4))
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
    PARAMETERS.iter().filter(is_on).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    #[test]
    fn what_is_on_is_named() {
        let with = |line| {
            let mut facts = good();
            set_cmdline(&mut facts, line);
            CHECK.judge(&facts, &intent())
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
