//! Do the real-time CPUs have a part of the last-level cache to themselves?
//!
//! A part is theirs where the group they are in shares no bit of the cache's mask with any other
//! group, on the cache that these CPUs use: on another socket's cache it does not matter. Threads
//! may also be put into groups one by one, which outranks the CPU's group and is not looked at.

use rtproof_host::{
    CpuList, Facts,
    facts::resctrl::{DEFAULT, Group, Resctrl},
    knobs::memory as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::is_all_rt;
use crate::text;
use crate::{Finding, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "resctrl-cat",
    title: "part of the last-level cache for the real-time CPUs",
    why: "other CPUs push the application out of the cache they share, and it waits for memory",
    source: "Documentation/core-api/real-time/hardware.rst (System memory and cache); \
             Documentation/filesystems/resctrl.rst",
    trade_off: Some("the other CPUs have so much less cache"),
    knobs: &[&knobs::RESCTRL],
    wanted: Wanted::Text("a part of their own"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.resctrl;
    let draft = draft.read(reading, show);
    let Some(found) = reading.value() else {
        return draft.blind(reading);
    };
    if !found.supported {
        return draft.not_applicable("this processor or kernel cannot split its caches");
    }
    if is_all_rt(facts, intent) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("every CPU is a real-time CPU: there is no other to keep out");
    }
    let text = "make a group for the real-time CPUs and take its part of the mask from the \
                others: Documentation/filesystems/resctrl.rst";
    let manual = Remedy::Manual { text: text.into() };
    if found.groups.is_empty() {
        let command = "mount -t resctrl resctrl /sys/fs/resctrl".into();
        return draft
            .remedies([Remedy::Command { command }, manual])
            .doubtful("the processor can split its caches, and nobody does (resctrl unused)");
    }
    let draft = draft.remedies([manual]);
    if found.groups.len() == 1 {
        return draft.doubtful("only the default group: every CPU shares the whole cache");
    }
    let mut shared = Vec::new();
    for cpu in intent.rt_cpus.iter() {
        match is_exclusive(found, cpu) {
            None => return draft.unknown(format!("CPU {cpu}: its cache is not known")),
            Some(true) => {}
            Some(false) => shared.push(cpu),
        }
    }
    if shared.is_empty() {
        return draft.good("a part of the cache is theirs alone");
    }
    let shared = CpuList::new(shared);
    draft.doubtful(format!("{} share their part of the cache", text::cpus(&shared)))
}

/// Whether no other group may use what this CPU's group may, on this CPU's cache. `None`: the CPU's
/// cache is not known.
fn is_exclusive(found: &Resctrl, cpu: u32) -> Option<bool> {
    let (_, cache) = found.caches.iter().find(|(known, _)| *known == cpu)?;
    let mine = found.groups.iter().position(|group| group.cpus.contains(cpu))?;
    let own = masks(&found.groups[mine], *cache);
    let others = || found.groups.iter().enumerate().filter(|(at, _)| *at != mine);
    let is_free = |(name, mask): &(&str, u64)| {
        let meets =
            |group: &Group| masks(group, *cache).iter().any(|m| m.0 == *name && m.1 & mask != 0);
        !others().any(|(_, group)| meets(group))
    };
    Some(!own.is_empty() && own.iter().all(is_free))
}

/// Masks of the third-level cache with this id: of `L3`, or of `L3CODE` and `L3DATA`.
fn masks(group: &Group, cache: u32) -> Vec<(&str, u64)> {
    let mut masks = Vec::new();
    for line in &group.schemata {
        let Some((name, domains)) = line.split_once(':').filter(|(name, _)| name.starts_with("L3"))
        else {
            continue;
        };
        for domain in domains.split(';') {
            let of_cache = domain.split_once('=').filter(|(id, _)| id.parse() == Ok(cache));
            let mask = of_cache.and_then(|(_, mask)| u64::from_str_radix(mask, 16).ok());
            masks.extend(mask.map(|mask| (name, mask)));
        }
    }
    masks
}

fn show(found: &Resctrl) -> String {
    if !found.supported {
        return "no cache allocation".into();
    }
    let group = |group: &Group| {
        let name = if group.name == DEFAULT { "default" } else { &group.name };
        let l3: Vec<&str> =
            group.schemata.iter().filter(|l| l.starts_with("L3")).map(String::as_str).collect();
        format!("{name}: CPUs {} {}", text::or_empty(&group.cpus), l3.join(" "))
    };
    let groups: Vec<String> = found.groups.iter().map(group).collect();
    if groups.is_empty() { "not mounted".into() } else { text::first_few(&groups, 6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    fn group(name: &str, on: &[u32], l3: &str) -> Group {
        Group { name: name.into(), cpus: cpus(on), schemata: vec!["MB:0=100".into(), l3.into()] }
    }

    fn status(groups: Vec<Group>, caches: &[(u32, u32)]) -> Status {
        let mut facts = good();
        let found = Resctrl { supported: true, groups, caches: caches.to_vec() };
        facts.resctrl = Reading::known("/sys/fs/resctrl", found);
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn only_the_own_cache_counts() {
        let split =
            vec![group(DEFAULT, &[0, 1], "L3:0=00f;1=fff"), group("rt", &[2, 3], "L3:0=ff0;1=fff")];
        assert_eq!(status(split.clone(), &[(2, 0), (3, 0)]), Good);
        assert_eq!(status(split.clone(), &[(2, 0), (3, 1)]), Doubtful);
        assert_eq!(status(split, &[(2, 0)]), Unknown);
        let overlap = vec![group(DEFAULT, &[0, 1], "L3:0=fff"), group("rt", &[2, 3], "L3:0=ff0")];
        assert_eq!(status(overlap, &[(2, 0), (3, 0)]), Doubtful);
        let elsewhere = vec![group(DEFAULT, &[2, 3], "L3:0=fff"), group("vm", &[0], "L3:0=00f")];
        assert_eq!(status(elsewhere, &[(2, 0), (3, 0)]), Doubtful);
    }

    #[test]
    fn unused_and_unsupported() {
        assert_eq!(status(vec![], &[]), Doubtful);
        assert_eq!(status(vec![group(DEFAULT, &[0, 1, 2, 3], "L3:0=fff")], &[]), Doubtful);
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), ..intent() };
        assert_eq!(CHECK.judge(&good(), &all).status, NotApplicable);
        let mut facts = good();
        let none = Resctrl { supported: false, groups: vec![], caches: vec![] };
        facts.resctrl = Reading::known("/proc/cpuinfo", none);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        facts.resctrl = Reading::denied("/sys/fs/resctrl", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
