//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{
        mounts::Mount,
        resctrl::{DEFAULT, Group, Resctrl},
    },
    knobs::memory as knobs,
};

use crate::testing::fill_setting;

pub(crate) fn fill(facts: &mut Facts) {
    for (knob, value) in [
        (&knobs::KHUGEPAGED, "0"),
        (&knobs::STAT_INTERVAL, "120"),
        (&knobs::DIRTY_RATIO, "10"),
        (&knobs::DIRTY_BYTES, "0"),
        (&knobs::DIRTY_BACKGROUND_RATIO, "3"),
        (&knobs::DIRTY_BACKGROUND_BYTES, "0"),
        (&knobs::HUGEPAGES, "4"),
    ] {
        fill_setting(facts, knob, value);
    }
    // The first wildcard is the node.
    let pages = facts.settings.get_mut(knobs::HUGEPAGES.id);
    for value in pages.into_iter().flat_map(|setting| &mut setting.values) {
        value.of = "0/2048kB".into();
    }
    let group = |name: &str, cpus: [u32; 2], mask: &str| Group {
        name: name.into(),
        cpus: CpuList::new(cpus),
        schemata: vec!["MB:0=100".into(), format!("L3:0={mask}")],
    };
    let groups = vec![group(DEFAULT, [0, 1], "00f"), group("rt", [2, 3], "ff0")];
    let caches = (0..4).map(|cpu| (cpu, 0)).collect();
    facts.resctrl = Reading::known("/sys/fs/resctrl", Resctrl { supported: true, groups, caches });
    let options = vec!["rw".into(), "relatime".into()];
    let root = Mount { name: "/".into(), kind: "ext4".into(), options };
    facts.mounts = Reading::known("/proc/self/mounts", vec![root]);
}
