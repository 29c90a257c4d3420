//! Huge pages, mounts, and the share of the cache that the real-time CPUs have.

use std::ops::ControlFlow::{self, Break, Continue};

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::memory::{DEFAULT, Mount, Resctrl, ResctrlGroup},
    knobs::cpu as knobs,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, is_all_rt, option};
use crate::{Evidence, Finding, Impact, Intent, Remedy, machine, value};

// Does the kernel build huge pages behind the application's back?
//
// PREEMPT_RT kernels have no transparent huge pages, so there the file is missing rightly. Writing
// the knob moves `vm.min_free_kbytes` with it: whoever applies the remedy saves both.

pub(super) static THP: Check = Check {
    id: "thp",
    title: "transparent huge pages",
    why: "khugepaged collapses pages under the process's memory lock and interrupts its CPUs, and \
          a page fault may compact memory first",
    source: "Documentation/admin-guide/mm/transhuge.rst; mm/Kconfig (TRANSPARENT_HUGEPAGE depends \
             on !PREEMPT_RT); rigtorp.se/low-latency-guide",
    impact: Impact::Hundreds,
    knobs: &[&knobs::THP],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge_thp),
    ..Check::NEW
};

fn judge_thp(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let enabled = &facts.memory.thp_enabled;
    let draft = draft.read(enabled, String::clone);
    if enabled.is_absent() && built_with(facts, "TRANSPARENT_HUGEPAGE") == Some(false) {
        return draft
            .evidence([option(facts, "TRANSPARENT_HUGEPAGE")])
            .not_applicable("this kernel has no transparent huge pages");
    }
    let Some(value) = enabled.value() else {
        return draft.unreadable(enabled);
    };
    let draft = draft.remedies([
        Remedy::set(&knobs::THP, vec![enabled.path.clone()], "never"),
        Remedy::Boot { parameter: "transparent_hugepage=never".into() },
    ]);
    match value.as_str() {
        "never" => draft.good("never"),
        "always" => draft.bad("always: any mapping may be collapsed at any time"),
        "madvise" => draft.doubtful("madvise: for programs and allocators that ask for it"),
        other => draft.unknown(format!("\"{other}\" is not a mode this check knows")),
    }
}

// Are files on servers, in user space, or written at each read?
//
// A page of a program or a library that is not in memory comes from its file system. On a server
// or a daemon's file system that takes as long as they take. Where the application's files are
// only the user knows.

/// Behind a network or a process, by the part of the name before a dot; and reiserfs, whose big
/// lock held every writer up.
const SLOW: &[&str] = &[
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse",
    "fuseblk",
    "glusterfs",
    "nfs",
    "nfs4",
    "reiserfs",
    "smb3",
    "smbfs",
];

/// Of these only what a daemon shows of the kernel's own files.
const NO_FILES: &[&str] = &["fuse.lxcfs", "fuse.portal", "fuse.gvfsd-fuse", "fuse.snapfuse"];

/// Kinds whose mounts say when they write access times.
const HAS_ATIME: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs"];

pub(super) static FS_MOUNTS: Check = Check {
    id: "fs-mounts",
    title: "file systems over a network, in user space, or written at each read",
    why: "a thread that touches a page of a file waits for the server or process that holds it, \
          and access times make a write of each read",
    source: "rtcqs, filesystems_check (fuse, reiserfs, nfs, cifs); mount(8) (strictatime, \
             relatime, sync); mmap(2), mlock(2)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("the application's files on a local disk or in memory"),
    judge: Judge::Ask(judge_fs_mounts),
    ..Check::NEW
};

fn judge_fs_mounts(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.mounts;
    let draft = draft.read(reading, |mounts| show_fs_mounts(mounts));
    let Some(mounts) = reading.value() else {
        return draft.unreadable(reading);
    };
    let slow: Vec<String> = mounts.iter().filter(|m| is_slow(m)).map(named).collect();
    let written: Vec<String> = mounts.iter().filter(|m| is_written(m)).map(named).collect();
    let mut remedies = Vec::new();
    let mut parts = Vec::new();
    if !slow.is_empty() {
        parts.push(format!("{}: keep the application's files away", machine::first_few(&slow, 3)));
        let text = "move the application, its libraries and its data to a local file system, \
                    or lock them in memory (mlockall) before real-time work starts";
        remedies.push(Remedy::Manual { text: text.into() });
    }
    if !written.is_empty() {
        parts.push(format!("{}: writes at once or at each read", machine::first_few(&written, 3)));
        let text = "mount with relatime or noatime, and without sync";
        remedies.push(Remedy::Manual { text: text.into() });
    }
    if parts.is_empty() {
        return draft.good("no network or user-space file system");
    }
    draft.remedies(remedies).doubtful(parts.join("; "))
}

fn is_slow(mount: &Mount) -> bool {
    let kind = mount.kind.split('.').next().unwrap_or_default();
    SLOW.contains(&kind) && !NO_FILES.contains(&mount.kind.as_str())
}

fn is_written(mount: &Mount) -> bool {
    let has = |option: &str| mount.options.iter().any(|known| known == option);
    let writes_atime =
        HAS_ATIME.contains(&mount.kind.as_str()) && !has("relatime") && !has("noatime");
    has("rw") && (has("sync") || writes_atime)
}

fn named(mount: &Mount) -> String {
    format!("{} ({})", mount.name, mount.kind)
}

fn show_fs_mounts(mounts: &[Mount]) -> String {
    let mount =
        |mount: &Mount| format!("{} {} {}", mount.name, mount.kind, mount.options.join(","));
    let mounts: Vec<String> = mounts.iter().map(mount).collect();
    if mounts.is_empty() {
        "none with files of its own".into()
    } else {
        machine::first_few(&mounts, 8)
    }
}

// Do the real-time CPUs have a part of the last-level cache to themselves?
//
// A part is theirs where the group they are in shares no bit of the cache's mask with any other
// group, on the cache that these CPUs use: on another socket's cache it does not matter. Threads
// may also be put into groups one by one, which outranks the CPU's group and is not looked at.

pub(super) static RESCTRL_CAT: Check = Check {
    id: "resctrl-cat",
    title: "part of the last-level cache for the real-time CPUs",
    why: "other CPUs push the application out of the cache they share, and it waits for memory",
    source: "Documentation/core-api/real-time/hardware.rst (System memory and cache); \
             Documentation/filesystems/resctrl.rst",
    trade_off: Some("the other CPUs have so much less cache"),
    knobs: &[&knobs::RESCTRL],
    wanted: Wanted::Text("a part of their own"),
    judge: Judge::Ask(judge_resctrl_cat),
    ..Check::NEW
};

fn judge_resctrl_cat(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.resctrl;
    let draft = draft.read(reading, show_resctrl_cat);
    let Some(found) = reading.value() else {
        return draft.unreadable(reading);
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
    draft.doubtful(format!("{} share their part of the cache", machine::cpus(&shared)))
}

/// Whether no other group may use what this CPU's group may, on this CPU's cache. `None`: the CPU's
/// cache is not known.
fn is_exclusive(found: &Resctrl, cpu: u32) -> Option<bool> {
    let (_, cache) = found.caches.iter().find(|(known, _)| *known == cpu)?;
    let mine = found.groups.iter().position(|group| group.cpus.contains(cpu))?;
    let own = masks(&found.groups[mine], *cache);
    let others = || found.groups.iter().enumerate().filter(|(at, _)| *at != mine);
    let is_free = |(name, mask): &(&str, u64)| {
        let meets = |group: &ResctrlGroup| {
            masks(group, *cache).iter().any(|m| m.0 == *name && m.1 & mask != 0)
        };
        !others().any(|(_, group)| meets(group))
    };
    Some(!own.is_empty() && own.iter().all(is_free))
}

/// Masks of the third-level cache with this id: of `L3`, or of `L3CODE` and `L3DATA`.
fn masks(group: &ResctrlGroup, cache: u32) -> Vec<(&str, u64)> {
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

fn show_resctrl_cat(found: &Resctrl) -> String {
    if !found.supported {
        return "no cache allocation".into();
    }
    let group = |group: &ResctrlGroup| {
        let name = if group.name == DEFAULT { "default" } else { &group.name };
        let l3: Vec<&str> =
            group.schemata.iter().filter(|l| l.starts_with("L3")).map(String::as_str).collect();
        format!("{name}: CPUs {} {}", machine::or_empty(&group.cpus), l3.join(" "))
    };
    let groups: Vec<String> = found.groups.iter().map(group).collect();
    if groups.is_empty() { "not mounted".into() } else { machine::first_few(&groups, 6) }
}

// Does making huge pages stop a thread: in its page fault, or by khugepaged?
//
// Both are irrelevant without transparent huge pages. Since 6.8 each size has
// a switch of its own, so `never` on top alone does not say that.

pub(super) static DEFRAG: Check = Check {
    id: "thp-defrag",
    title: "compaction in the page fault for a huge page",
    why: "a page fault that wants a huge page reclaims and compacts memory before it returns",
    source: "Documentation/admin-guide/mm/transhuge.rst (defrag)",
    knobs: &[&knobs::THP_DEFRAG, &knobs::THP_SIZES],
    wanted: Wanted::Text("never"),
    judge: Judge::Ask(judge_defrag),
    ..Check::NEW
};

fn judge_defrag(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let draft = match without_thp(draft, facts) {
        Break(finding) => return finding,
        Continue(draft) => draft,
    };
    let defrag = &facts.memory.thp_defrag;
    let draft = draft.read(defrag, String::clone);
    let Some(mode) = defrag.value() else {
        return draft.unreadable(defrag);
    };
    let paths = vec![defrag.path.clone()];
    let draft = draft.remedies([Remedy::set(&knobs::THP_DEFRAG, paths, "never")]);
    match mode.as_str() {
        "never" => draft.good("never: a fault takes a huge page only where one is free"),
        "always" => draft.bad("always: any page fault may compact memory"),
        "defer" => draft.doubtful("defer: kcompactd compacts memory in the background"),
        "madvise" | "defer+madvise" => {
            draft.doubtful(format!("{mode}: faults of programs that ask for huge pages compact"))
        }
        other => draft.unknown(format!("\"{other}\" is not a mode this check knows")),
    }
}

pub(super) static KHUGEPAGED: Check = Check {
    id: "khugepaged",
    title: "compaction by khugepaged",
    why: "khugepaged compacts memory to collapse pages, under the memory lock of the process and \
          with interrupts of its CPUs",
    source: "Documentation/admin-guide/mm/transhuge.rst (khugepaged/defrag); mm/khugepaged.c \
             (collapse_huge_page)",
    knobs: &[&knobs::KHUGEPAGED, &knobs::THP_SIZES],
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge_khugepaged),
    ..Check::NEW
};

fn judge_khugepaged(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let draft = match without_thp(draft, facts) {
        Break(finding) => return finding,
        Continue(draft) => draft,
    };
    let defrag = value::knob_number(facts, &knobs::KHUGEPAGED);
    let draft = draft.read(&defrag, i64::to_string);
    match defrag.value() {
        None => draft.unreadable(&defrag),
        Some(0) => draft.good("off: khugepaged collapses only into huge pages that are free"),
        Some(_) => {
            let paths = vec![defrag.path.clone()];
            draft
                .remedies([Remedy::set(&knobs::KHUGEPAGED, paths, "0")])
                .doubtful("khugepaged may compact memory")
        }
    }
}

/// The answer where no transparent huge page is made, or where that is unknown.
fn without_thp(draft: FindingBuilder, facts: &Facts) -> ControlFlow<Finding, FindingBuilder> {
    let enabled = &facts.memory.thp_enabled;
    let draft = draft.read(enabled, String::clone);
    if enabled.is_absent() && built_with(facts, "TRANSPARENT_HUGEPAGE") == Some(false) {
        return Break(
            draft
                .evidence([option(facts, "TRANSPARENT_HUGEPAGE")])
                .not_applicable("this kernel has no transparent huge pages"),
        );
    }
    let Some(mode) = enabled.value() else {
        return Break(draft.unreadable(enabled));
    };
    match of_one_size(facts) {
        Some(size) => Continue(draft.evidence([Evidence::of(size, String::clone)])),
        None if mode == "never" => Break(draft.good("no transparent huge pages are made")),
        None => Continue(draft),
    }
}

/// A size that is made whatever the switch on top says.
fn of_one_size(facts: &Facts) -> Option<&Reading<String>> {
    let values = &facts.settings.get(knobs::THP_SIZES.id)?.values;
    let is_made = |mode: &String| mode == "always" || mode == "madvise";
    values.iter().map(|value| &value.reading).find(|reading| reading.value().is_some_and(is_made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn status(mode: &str) -> Status {
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::known(facts.memory.thp_enabled.path, mode.into());
        THP.judge(&facts, &intent()).status
    }

    #[test]
    fn by_mode() {
        assert_eq!(status("never"), Good);
        assert_eq!(status("madvise"), Doubtful);
        assert_eq!(status("always"), Bad);
        assert_eq!(status("sometimes"), Unknown);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        assert_eq!(THP.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(THP.judge(&facts, &intent()).status, Unknown);
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::absent("/sys/kernel/mm/transparent_hugepage/enabled");
        assert_eq!(THP.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod fs_mounts_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn status(mounts: &[(&str, &str, &str)]) -> Status {
        let mount = |&(name, kind, options): &(&str, &str, &str)| Mount {
            name: name.into(),
            kind: kind.into(),
            options: options.split(',').map(str::to_owned).collect(),
        };
        let mut facts = good();
        facts.mounts = Reading::known("/proc/self/mounts", mounts.iter().map(mount).collect());
        FS_MOUNTS.judge(&facts, &intent()).status
    }

    #[test]
    fn local_is_good_remote_and_strict_are_doubtful() {
        let root = ("/", "ext4", "rw,relatime");
        assert_eq!(status(&[root, ("/boot/efi", "vfat", "rw")]), Good);
        assert_eq!(status(&[root, ("/var/lib/lxcfs", "fuse.lxcfs", "rw")]), Good);
        assert_eq!(status(&[root, ("/mnt", "nfs4", "rw,relatime")]), Doubtful);
        assert_eq!(status(&[root, ("/home/a", "fuse.sshfs", "rw")]), Doubtful);
        assert_eq!(status(&[("/", "ext4", "rw")]), Doubtful);
        assert_eq!(status(&[("/", "xfs", "rw,sync,noatime")]), Doubtful);
        assert_eq!(status(&[("/", "ext4", "ro")]), Good);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.mounts = Reading::absent("/proc/self/mounts");
        assert_eq!(FS_MOUNTS.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod resctrl_cat_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    fn group(name: &str, on: &[u32], l3: &str) -> ResctrlGroup {
        ResctrlGroup {
            name: name.into(),
            cpus: cpus(on),
            schemata: vec!["MB:0=100".into(), l3.into()],
        }
    }

    fn status(groups: Vec<ResctrlGroup>, caches: &[(u32, u32)]) -> Status {
        let mut facts = good();
        let found = Resctrl { supported: true, groups, caches: caches.to_vec() };
        facts.resctrl = Reading::known("/sys/fs/resctrl", found);
        RESCTRL_CAT.judge(&facts, &intent()).status
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
        assert_eq!(RESCTRL_CAT.judge(&good(), &all).status, NotApplicable);
        let mut facts = good();
        let none = Resctrl { supported: false, groups: vec![], caches: vec![] };
        facts.resctrl = Reading::known("/proc/cpuinfo", none);
        assert_eq!(RESCTRL_CAT.judge(&facts, &intent()).status, NotApplicable);
        facts.resctrl = Reading::denied("/sys/fs/resctrl", "EACCES");
        assert_eq!(RESCTRL_CAT.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod thp_collapse_tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, good_stock, intent, set_setting};

    fn machine(enabled: &str, defrag: &str, khugepaged: &str) -> Facts {
        let mut facts = good_stock();
        facts.memory.thp_enabled = Reading::known(facts.memory.thp_enabled.path, enabled.into());
        facts.memory.thp_defrag = Reading::known(facts.memory.thp_defrag.path, defrag.into());
        fill_setting(&mut facts, &knobs::KHUGEPAGED, khugepaged);
        facts
    }

    fn both(facts: &Facts) -> [Status; 2] {
        [DEFRAG.judge(facts, &intent()).status, KHUGEPAGED.judge(facts, &intent()).status]
    }

    #[test]
    fn never_makes_the_rest_good() {
        assert_eq!(both(&machine("never", "always", "1")), [Good, Good]);
        let mut facts = machine("never", "always", "1");
        fill_setting(&mut facts, &knobs::THP_SIZES, "always");
        assert_eq!(both(&facts), [Bad, Doubtful]);
    }

    #[test]
    fn by_mode() {
        assert_eq!(both(&machine("madvise", "never", "0")), [Good, Good]);
        assert_eq!(both(&machine("madvise", "madvise", "1")), [Doubtful, Doubtful]);
        assert_eq!(both(&machine("always", "always", "1")), [Bad, Doubtful]);
        assert_eq!(both(&machine("always", "often", "x")), [Unknown, Unknown]);
    }

    #[test]
    fn kernels_without_and_files_that_are_refused() {
        assert_eq!(both(&good()), [NotApplicable, NotApplicable]);
        let mut facts = machine("always", "never", "0");
        facts.memory.thp_defrag = Reading::denied("x", "EACCES");
        set_setting(&mut facts, &knobs::KHUGEPAGED, Reading::absent("x"));
        assert_eq!(both(&facts), [Unknown, Unknown]);
        facts.memory.thp_enabled = Reading::denied("x", "EACCES");
        assert_eq!(both(&facts), [Unknown, Unknown]);
    }
}
