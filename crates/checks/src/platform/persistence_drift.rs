//! Are the values in force those that files of sysctl.d set at boot?
//!
//! Where they differ, a boot or the next run of sysctl, which installing a package starts, changes
//! how the machine behaves. Only settings about latency are compared.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy};

/// Most settings in a summary.
const NAMED_MAX: usize = 4;

pub(super) static CHECK: Check = Check {
    id: "persistence-drift",
    title: "settings in force and those of sysctl.d",
    why: "a boot or the next run of sysctl sets the values of the files, and with them the latency \
          that was measured is gone",
    source: "sysctl.d(5); systemd-sysctl.service(8); sysctl(8) (--system)",
    wanted: Wanted::Text("the same"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let sysctl = &facts.platform.sysctl;
    let draft = draft
        .read(sysctl, |found| format!("{} about latency", text::count(found.len(), "setting")));
    let Some(found) = sysctl.value() else {
        return draft.blind(sysctl);
    };
    let mut differ = Vec::new();
    let mut remedies = Vec::new();
    let mut evidence = Vec::new();
    let mut blind = None;
    let mut compared = 0;
    for one in found {
        let live = &one.live;
        if live.is_absent() {
            let value = format!("{} = {}: no such setting here", one.name, one.value);
            evidence.push(Evidence { path: one.file.clone(), value });
            continue;
        }
        let value = format!("{} = {}", one.name, one.value);
        evidence.push(Evidence { path: one.file.clone(), value });
        evidence.push(Evidence::of(live, String::clone));
        let Some(value) = live.value() else {
            blind.get_or_insert(live);
            continue;
        };
        compared += 1;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if words(value) != words(&one.value) {
            differ.push(format!("{} is {value}, {} sets {}", one.name, one.file, one.value));
            remedies.push(Remedy::File {
                path: rtproof_host::knobs::names::SYSCTL_FILE.into(),
                line: format!("{} = {value}", one.name),
            });
        }
    }
    let draft = draft.saw(evidence).remedies(remedies);
    if !differ.is_empty() {
        return draft.doubtful(text::first_few(&differ, NAMED_MAX));
    }
    if let Some(reading) = blind {
        return draft.blind(reading);
    }
    match (found.first(), compared) {
        (None, _) => draft.good("no file sets anything about latency"),
        (Some(first), 0) => draft.blind(&first.live),
        (Some(_), n) => draft.good(format!("the same: {}", text::count(n, "setting"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::sysctl::Assigned};

    fn with(value: &str, live: Reading<String>) -> Finding {
        let mut facts = good();
        let assigned = Assigned {
            name: "vm.swappiness".into(),
            value: value.into(),
            file: "/etc/sysctl.d/x.conf".into(),
            live,
        };
        facts.platform.sysctl = Reading::known("/etc/sysctl.d", vec![assigned]);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn values_are_compared() {
        let path = "/proc/sys/vm/swappiness";
        assert_eq!(with("10", Reading::known(path, "10".into())).status, Good);
        let finding = with("10", Reading::known(path, "60".into()));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "vm.swappiness is 60, /etc/sysctl.d/x.conf sets 10");
        assert_eq!(with("10", Reading::absent(path)).status, Unknown);
        assert_eq!(with("10", Reading::denied(path, "EACCES")).status, Unknown);
    }

    #[test]
    fn no_folder_is_unknown() {
        let mut facts = good();
        facts.platform.sysctl = Reading::denied("/etc/sysctl.d", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
