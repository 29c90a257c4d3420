//! Whether what is set now survives the next boot, and whether it still stands.

use rtproof_host::{Facts, facts::next_boot::relevant};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Intent, Remedy, When, machine};

// Will the next boot have the parameters of this one?
//
// A parameter typed in at the boot loader's prompt is gone with the next boot; one in a file is
// not in force before it. Tools that write the wrong file, or forget to run update-grub, show here
// and nowhere else. Only parameters about latency are compared.

/// Most parameters in a summary.
const NAMED_MAX: usize = 4;

pub(super) static BOOT_PERSISTENCE: Check = Check {
    id: "boot-persistence",
    title: "boot parameters in force and those of the next boot",
    why: "what is only in force is gone with the next boot, and what is only in the boot entry is \
          not in force",
    source: "Boot Loader Specification (uapi-group.org); GNU GRUB manual (Simple configuration); \
             redhat-performance/tuned issues 98 and 528",
    when: When::Boot,
    wanted: Wanted::Text("the same"),
    judge: Judge::Ask(judge_boot_persistence),
    ..Check::NEW
};

fn judge_boot_persistence(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let (cmdline, boot) = (&facts.kernel.cmdline, &facts.platform.boot);
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let shown = |words: &[String]| match words {
        [] => "no parameter about latency".to_owned(),
        words => words.join(" "),
    };
    let now = relevant(line);
    let draft = draft.read(cmdline, |_| shown(&now)).read(boot, |boot| shown(&boot.parameters));
    let Some(next) = boot.value() else {
        return draft.unreadable(boot);
    };
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|word| !those.contains(word)).cloned().collect()
    };
    let (gone, new) = (only(&now, &next.parameters), only(&next.parameters, &now));
    if gone.is_empty() && new.is_empty() {
        return draft.good(match now.len() {
            0 => "no parameter about latency, now or then".to_owned(),
            n => format!("the same: {}", machine::count(n, "parameter")),
        });
    }
    let mut parts = Vec::new();
    if !gone.is_empty() {
        parts.push(format!("not in {}: {}", boot.path, machine::first_few(&gone, NAMED_MAX)));
    }
    if !new.is_empty() {
        parts.push(format!("not in force: {}", machine::first_few(&new, NAMED_MAX)));
    }
    let mut remedies: Vec<Remedy> =
        gone.into_iter().map(|parameter| Remedy::Boot { parameter }).collect();
    if !new.is_empty() {
        let text = match next.is_source {
            true => "run update-grub or grub2-mkconfig, and boot",
            false => "boot",
        };
        remedies.push(Remedy::Manual { text: text.into() });
    }
    draft.remedies(remedies).doubtful(parts.join("; "))
}

// Are the values in force those that files of sysctl.d set at boot?
//
// Where they differ, a boot or the next run of sysctl, which installing a package starts, changes
// how the machine behaves. Only settings about latency are compared.

pub(super) static PERSISTENCE_DRIFT: Check = Check {
    id: "persistence-drift",
    title: "settings in force and those of sysctl.d",
    why: "a boot or the next run of sysctl sets the values of the files, and with them the latency \
          that was measured is gone",
    source: "sysctl.d(5); systemd-sysctl.service(8); sysctl(8) (--system)",
    wanted: Wanted::Text("the same"),
    judge: Judge::Ask(judge_persistence_drift),
    ..Check::NEW
};

fn judge_persistence_drift(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let sysctl = &facts.platform.sysctl;
    let draft = draft
        .read(sysctl, |found| format!("{} about latency", machine::count(found.len(), "setting")));
    let Some(found) = sysctl.value() else {
        return draft.unreadable(sysctl);
    };
    let mut differ = Vec::new();
    let mut remedies = Vec::new();
    let mut evidence = Vec::new();
    let mut unreadable = None;
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
            unreadable.get_or_insert(live);
            continue;
        };
        compared += 1;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if words(value) != words(&one.value) {
            differ.push(format!("{} is {value}, {} sets {}", one.name, one.file, one.value));
            remedies.push(Remedy::File {
                path: rtproof_host::knobs::SYSCTL_FILE.into(),
                line: format!("{} = {value}", one.name),
            });
        }
    }
    let draft = draft.evidence(evidence).remedies(remedies);
    if !differ.is_empty() {
        return draft.doubtful(machine::first_few(&differ, NAMED_MAX));
    }
    if let Some(reading) = unreadable {
        return draft.unreadable(reading);
    }
    match (found.first(), compared) {
        (None, _) => draft.good("no file sets anything about latency"),
        (Some(first), 0) => draft.unreadable(&first.live),
        (Some(_), n) => draft.good(format!("the same: {}", machine::count(n, "setting"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::{Reading, facts::next_boot::NextBoot};

    fn with(now: &str, next: &[&str]) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, now);
        let parameters = next.iter().map(|&word| word.to_owned()).collect();
        let next = NextBoot { is_source: true, parameters };
        facts.platform.boot = Reading::known("/etc/default/grub", next);
        BOOT_PERSISTENCE.judge(&facts, &intent())
    }

    #[test]
    fn both_directions() {
        assert_eq!(with("quiet", &[]).status, Good);
        assert_eq!(
            with("nohz-full=2 quiet isolcpus=2", &["isolcpus=2", "nohz_full=2"]).status,
            Good
        );
        let finding = with("isolcpus=2 quiet", &["isolcpus=3"]);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "not in /etc/default/grub: isolcpus=2; not in force: isolcpus=3"
        );
        assert_eq!(finding.remedies[0], Remedy::Boot { parameter: "isolcpus=2".into() });
    }

    #[test]
    fn no_entry_is_unknown() {
        let mut facts = good();
        facts.platform.boot = Reading::absent("/boot/grub/grub.cfg, /etc/default/grub");
        assert_eq!(BOOT_PERSISTENCE.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(BOOT_PERSISTENCE.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod persistence_drift_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::platform::Assigned};

    fn with(value: &str, live: Reading<String>) -> Finding {
        let mut facts = good();
        let assigned = Assigned {
            name: "vm.swappiness".into(),
            value: value.into(),
            file: "/etc/sysctl.d/x.conf".into(),
            live,
        };
        facts.platform.sysctl = Reading::known("/etc/sysctl.d", vec![assigned]);
        PERSISTENCE_DRIFT.judge(&facts, &intent())
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
        assert_eq!(PERSISTENCE_DRIFT.judge(&facts, &intent()).status, Unknown);
    }
}
