//! Every row of every table: a good value, a bad one, and none.

use super::*;
use crate::checks::sections;
use crate::checks::testing::{cpus, good, good_stock, intent, set_setting};

fn rules() -> impl Iterator<Item = &'static Rule> {
    sections().iter().flat_map(|section| section.rules)
}

/// A machine that the rule concerns: the good one, else the stock one.
fn machine(rule: &Rule) -> Facts {
    let found = [good(), good_stock()].into_iter().find(|facts| {
        let applies = rule.applies.map_or(Applies::Yes, |applies| applies(facts, &intent()));
        applies == Applies::Yes && rule.other_machine(facts).is_none()
    });
    found.unwrap_or_else(|| {
        let mut facts = good();
        let name =
            if rule.knob.arch == rtproof_host::knob::Arch::Arm64 { "aarch64" } else { "x86_64" };
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", name.to_owned());
        facts
    })
}

#[test]
fn every_rule_has_a_good_a_bad_and_unknown_cases() {
    for rule in rules() {
        let id = rule.id();
        let with = |value: Reading<String>| {
            let mut facts = machine(rule);
            set_setting(&mut facts, rule.knob, value);
            rule.judge(&facts, &intent())
        };
        let path = "/the/path";
        let finding = with(Reading::known(path, rule.good.to_owned()));
        assert_eq!(finding.status, Status::Good, "{id}: {finding:#?}");
        assert!(finding.remedies.is_empty());
        let finding = with(Reading::known(path, rule.bad.to_owned()));
        let is_bad = matches!(finding.status, Status::Bad | Status::Doubtful);
        assert!(is_bad, "{id}: {finding:#?}");
        assert!(finding.summary.contains("wanted: "), "{id}: {}", finding.summary);
        let finding = with(Reading::denied(path, "EACCES"));
        assert_eq!(finding.status, Status::Unknown, "{id}: {finding:#?}");
        let finding = with(Reading::malformed(path, "?", "something"));
        assert_eq!(finding.status, Status::Unknown, "{id}: {finding:#?}");
        let finding = with(Reading::absent(path));
        let is_known_lack = matches!(rule.absent, Absent::WithoutOption(_));
        let is_right = finding.status == Status::Unknown
            || (is_known_lack && finding.status == Status::NotApplicable);
        assert!(is_right, "{id}: {finding:#?}");
    }
}

#[test]
fn a_folder_that_lacks_the_file_is_a_reason() {
    for rule in rules() {
        let mut facts = machine(rule);
        let setting = facts.settings.get_mut(rule.id()).unwrap();
        setting.values.clear();
        setting.lacking = Some(Reading::known("/sys", "holds no x".to_owned()));
        let finding = rule.judge(&facts, &intent());
        match rule.absent {
            Absent::NoSuchThing(why) => {
                assert_eq!(finding.status, Status::NotApplicable, "{finding:#?}");
                assert_eq!(finding.summary, why);
            }
            _ => assert_ne!(finding.status, Status::Good, "{finding:#?}"),
        }
    }
}

#[test]
fn masks_are_written_as_the_kernel_writes_them() {
    assert_eq!(mask(&cpus(&[0, 1])), "3");
    assert_eq!(mask(&cpus(&[])), "0");
    assert_eq!(mask(&cpus(&[1, 32, 63])), "80000001,00000002");
    for list in [cpus(&[0, 5]), cpus(&[31, 32, 70])] {
        assert_eq!(CpuList::parse_mask(&mask(&list)), Ok(list));
    }
}

#[test]
fn values_of_one_kind_share_a_line() {
    let value = |of: &str, text: &str| Value {
        of: of.into(),
        reading: Reading::known(format!("/x{of}"), text.to_owned()),
    };
    let values = [value("2", "a"), value("3", "a"), value("4", "b")];
    let values: Vec<&Value> = values.iter().collect();
    assert_eq!(summary(&values), "CPUs 2-3: a, CPU 4: b");
    let values = [value("eth0", "on"), value("eth1", "on")];
    assert_eq!(summary(&values.iter().collect::<Vec<_>>()), "eth0, eth1: on");
}

#[test]
fn many_files_with_many_values_make_a_short_summary() {
    let value = |n: u32| Value {
        of: format!("kmalloc-{n}"),
        reading: Reading::known(format!("/sys/kernel/slab/kmalloc-{n}/x"), (n % 3).to_string()),
    };
    let values: Vec<Value> = (1..=12).map(value).collect();
    let all: Vec<&Value> = values.iter().collect();
    assert_eq!(summary(&all), "/sys/kernel/slab/kmalloc-1/x: 1, and 11 other files");
    assert_eq!(summary(&all[..2]), "kmalloc-1: 1, kmalloc-2: 2");
}
