//! Which CPUs are alike: design of the core, computing power, highest frequency.

use std::cmp::Reverse;

use super::cpu::{Cpu, Cpus};
use super::cpu_part::E_CORE;
use crate::CpuList;

/// CPUs of one kind. What is not known of any of them is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuClass {
    pub cpus: CpuList,
    /// Design of the core, e.g. `Cortex-A72` or `P-core`.
    pub part: Option<String>,
    /// Computing power of the fastest of them, of 1024.
    pub capacity: Option<u32>,
    /// Highest frequency that the hardware of any of them can have.
    pub max_hz: Option<u64>,
}

/// Two values that differ by less are of one kind: some processors give each core a limit of its
/// own, a step or two above the others' (preferred cores). In percent of the larger.
const SAME_PERCENT: u64 = 10;

fn is_alike(one: Option<u64>, other: Option<u64>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return true;
    };
    one.abs_diff(other) * 100 <= one.max(other) * SAME_PERCENT
}

impl CpuClass {
    fn of(cpu: &Cpu) -> Self {
        Self {
            cpus: CpuList::new([cpu.id]),
            part: cpu.part.value().cloned(),
            capacity: cpu.capacity.value().copied(),
            max_hz: cpu.freq.hardware_max_hz.value().copied(),
        }
    }

    /// Whether anything is known of it.
    pub const fn is_known(&self) -> bool {
        self.part.is_some() || self.capacity.is_some() || self.max_hz.is_some()
    }

    fn takes(&self, other: &Self) -> bool {
        let is_one_part = match (&self.part, &other.part) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.is_known() == other.is_known()
            && is_one_part
            && is_alike(self.capacity.map(u64::from), other.capacity.map(u64::from))
            && is_alike(self.max_hz, other.max_hz)
    }

    fn take(&mut self, other: Self) {
        self.cpus = self.cpus.union(&other.cpus);
        self.part = self.part.take().or(other.part);
        self.capacity = self.capacity.max(other.capacity);
        self.max_hz = self.max_hz.max(other.max_hz);
    }

    /// What orders kinds by speed. Efficient cores of x86 have no capacity on most kernels.
    fn speed(&self) -> (Option<u32>, bool, Option<u64>) {
        (self.capacity, self.part.as_deref() != Some(E_CORE), self.max_hz)
    }
}

impl Cpus {
    /// The kinds of the online CPUs, the fastest first. CPUs of which nothing is known are the
    /// last one.
    pub fn classes(&self) -> Vec<CpuClass> {
        let mut cpus: Vec<CpuClass> = self.cpus.iter().map(CpuClass::of).collect();
        cpus.sort_by_key(|cpu| Reverse(cpu.speed()));
        let mut classes: Vec<CpuClass> = Vec::new();
        for cpu in cpus {
            match classes.iter_mut().find(|class| class.takes(&cpu)) {
                Some(class) => class.take(cpu),
                None => classes.push(cpu),
            }
        }
        classes.sort_by_key(|class| Reverse((class.is_known(), class.speed())));
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const CPU: &str = "sys/devices/system/cpu";

    /// The kinds of a machine whose CPUs have these files.
    fn kinds(cpuinfo: &str, cpus: &[&[(&str, &str)]], more: &[(&str, &str)]) -> Vec<CpuClass> {
        let online = format!("0-{}", cpus.len() - 1);
        let tree = Tree::new(&[(format!("{CPU}/online").as_str(), online.as_str())]);
        for (id, files) in cpus.iter().enumerate() {
            for (name, text) in *files {
                tree.write(&format!("{CPU}/cpu{id}/{name}"), text);
            }
        }
        tree.write("proc/cpuinfo", cpuinfo);
        for (path, text) in more {
            tree.write(path, text);
        }
        let root = tree.root().judged();
        Cpus::read(&root, &root.read_text("/proc/cpuinfo")).classes()
    }

    fn sets(kinds: &[CpuClass]) -> Vec<String> {
        kinds.iter().map(|kind| kind.cpus.to_string()).collect()
    }

    fn block(cpu: u32, lines: &str) -> String {
        format!("processor\t: {cpu}\n{lines}\n\n")
    }

    fn arm(parts: &[&str]) -> String {
        let of = |(cpu, part): (usize, &&str)| {
            block(cpu as u32, &format!("CPU implementer\t: 0x41\nCPU part\t: {part}"))
        };
        parts.iter().enumerate().map(of).collect()
    }

    #[test]
    fn designs_differ() {
        let none: &[(&str, &str)] = &[];
        let found = kinds(&arm(&["0xd03", "0xd08", "0xd08", "0xd03"]), &[none; 4], &[]);
        let mut found = sets(&found);
        found.sort();
        assert_eq!(found, ["0,3", "1-2"], "which is faster is not known");
        let midr = |value| [("regs/identification/midr_el1", value)];
        let (small, big) = (midr("0x00000000410fd034\n"), midr("0x00000000411fd0b0\n"));
        let found = kinds("", &[&small, &small, &big], &[]);
        let mut parts: Vec<_> = found.iter().filter_map(|kind| kind.part.clone()).collect();
        parts.sort();
        assert_eq!(parts, ["Cortex-A53", "Cortex-A76"]);
        let model = |cpu| block(cpu, "vendor_id\t: GenuineIntel\nmodel name\t: 13th Gen");
        let hybrid =
            [("sys/devices/cpu_core/cpus", "0-1\n"), ("sys/devices/cpu_atom/cpus", "2-3\n")];
        let text: String = (0..4).map(model).collect();
        let found = kinds(&text, &[none; 4], &hybrid);
        assert_eq!(sets(&found), ["0-1", "2-3"]);
        assert_eq!(found[1].part.as_deref(), Some("E-core"));
        assert_eq!(sets(&kinds(&text, &[none; 4], &[])), ["0-3"]);
    }

    #[test]
    fn speeds_differ() {
        let cpu = |khz| [("cpufreq/cpuinfo_max_freq", khz)];
        let same = arm(&["0xd03"; 4]);
        let (slow, fast) = (cpu("1200000\n"), cpu("1800000\n"));
        let found = kinds(&same, &[&slow, &slow, &fast, &fast], &[]);
        assert_eq!(sets(&found), ["2-3", "0-1"]);
        assert_eq!(found[0].max_hz, Some(1_800_000_000));
        // Preferred cores are no kind of their own.
        let (usual, preferred) = (cpu("5100000\n"), cpu("5300000\n"));
        assert_eq!(sets(&kinds("", &[&usual, &usual, &preferred, &usual], &[])), ["0-3"]);
        let capacity = |value| [("cpu_capacity", value)];
        let (little, mid, big) = (capacity("250\n"), capacity("870\n"), capacity("1024\n"));
        let found = kinds("", &[&little, &little, &mid, &big], &[]);
        assert_eq!(sets(&found), ["3", "2", "0-1"]);
    }

    #[test]
    fn what_is_not_known_makes_no_kind() {
        let none: &[(&str, &str)] = &[];
        let found = kinds("", &[none; 3], &[]);
        assert!(found.len() == 1 && !found[0].is_known());
        let known = [("cpu_capacity", "1024\n")];
        let found = kinds("", &[&known, none, &known], &[]);
        assert_eq!(sets(&found), ["0,2", "1"]);
        assert!(!found[1].is_known());
        // A block that lacks the number of its processor says nothing of one.
        let last = "processor\t: 0\n\nCPU implementer\t: 0x41\nCPU part\t: 0xc09\n";
        assert!(!kinds(last, &[none; 2], &[])[0].is_known());
        // The architecture is no design.
        let arm32 = |cpu, part| {
            let text =
                "model name\t: ARMv7 Processor rev 3 (v7l)\nCPU implementer\t: 0x41\nCPU part";
            block(cpu, &format!("{text}\t: {part}"))
        };
        let text = [arm32(0, "0xc07"), arm32(1, "0xc0f")].concat();
        assert_eq!(kinds(&text, &[none; 2], &[]).len(), 2);
    }
}
