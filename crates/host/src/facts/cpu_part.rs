//! The design of a core: MIDR by /proc/cpuinfo or by /sys, the two types of x86, else the model.

use std::collections::BTreeMap;

use crate::text::field;
use crate::{CpuList, Reading, Root};

const P_CORE: &str = "P-core";
pub(super) const E_CORE: &str = "E-core";

/// What says of which design each CPU is.
pub(super) struct Parts {
    /// Of each CPU that /proc/cpuinfo has a block of.
    by_cpu: BTreeMap<u32, String>,
    /// Where the text was read, or why it was not.
    cpuinfo: Reading<()>,
    /// The two types of x86.
    types: [(Reading<CpuList>, &'static str); 2],
}

impl Parts {
    pub(super) fn read(root: &Root, cpuinfo: &Reading<String>) -> Self {
        let blocks = cpuinfo.value().into_iter().flat_map(|text| text.split("\n\n"));
        let of = |block: &str| Some((field(block, "processor")?.parse().ok()?, core(block)?));
        let cpus = |kind: &str| root.cpu_list(&format!("/sys/devices/{kind}/cpus"));
        Self {
            by_cpu: blocks.filter_map(of).collect(),
            cpuinfo: cpuinfo.as_ref().map(|_| ()),
            types: [(cpus("cpu_core"), P_CORE), (cpus("cpu_atom"), E_CORE)],
        }
    }

    /// Design of a CPU; `folder` is its folder in /sys.
    pub(super) fn of(&self, root: &Root, id: u32, folder: &str) -> Reading<String> {
        for (cpus, name) in &self.types {
            if cpus.value().is_some_and(|cpus| cpus.contains(id)) {
                return Reading::known(cpus.path.clone(), (*name).to_owned());
            }
        }
        if let Some(part) = self.by_cpu.get(&id) {
            return Reading::known(self.cpuinfo.path.clone(), part.clone());
        }
        let midr = root.trimmed(&format!("{folder}/regs/identification/midr_el1"));
        let midr = midr.parsed("MIDR_EL1 in hexadecimal", |text| {
            let midr = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
            let (implementer, part) = (midr >> 24 & 0xff, midr >> 4 & 0xfff);
            Some(arm_name(&format!("{implementer:#04x}"), &format!("{part:#05x}")))
        });
        match midr.is_absent() && !self.cpuinfo.is_absent() {
            true => self.cpuinfo.clone().and_then(|path, ()| Reading::absent(path)),
            false => midr,
        }
    }
}

/// Design of the core of a block of /proc/cpuinfo. The "model name" of ARM names the architecture
/// alone.
fn core(block: &str) -> Option<String> {
    let names = ["model name", "Model Name", "uarch", "cpu model", "cpu"];
    arm_core(block).or_else(|| names.iter().find_map(|name| field(block, name)).map(str::to_owned))
}

/// The core of an ARM, by its numbers in /proc/cpuinfo.
pub(super) fn arm_core(text: &str) -> Option<String> {
    Some(arm_name(field(text, "CPU implementer")?, field(text, "CPU part")?))
}

/// Implementer, part, name: MIDR_EL1 (arch/arm64/include/asm/cputype.h).
const ARM: &[(&str, &str, &str)] = &[
    ("0x41", "0xc05", "Cortex-A5"),
    ("0x41", "0xc07", "Cortex-A7"),
    ("0x41", "0xc08", "Cortex-A8"),
    ("0x41", "0xc09", "Cortex-A9"),
    ("0x41", "0xc0d", "Cortex-A17"),
    ("0x41", "0xc0f", "Cortex-A15"),
    ("0x41", "0xd03", "Cortex-A53"),
    ("0x41", "0xd04", "Cortex-A35"),
    ("0x41", "0xd05", "Cortex-A55"),
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd09", "Cortex-A73"),
    ("0x41", "0xd0a", "Cortex-A75"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd0d", "Cortex-A77"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd41", "Cortex-A78"),
    ("0x41", "0xd42", "Cortex-A78AE"),
    ("0x41", "0xd44", "Cortex-X1"),
    ("0x41", "0xd46", "Cortex-A510"),
    ("0x41", "0xd47", "Cortex-A710"),
    ("0x41", "0xd48", "Cortex-X2"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4b", "Cortex-A78C"),
    ("0x41", "0xd4d", "Cortex-A715"),
    ("0x41", "0xd4e", "Cortex-X3"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd80", "Cortex-A520"),
    ("0x41", "0xd81", "Cortex-A720"),
    ("0x41", "0xd82", "Cortex-X4"),
    ("0x4e", "0x003", "Denver 2"),
    ("0x4e", "0x004", "Carmel"),
];

fn arm_name(implementer: &str, part: &str) -> String {
    let core = ARM.iter().find(|(of, number, _)| (*of, *number) == (implementer, part));
    core.map_or_else(
        || format!("ARM implementer {implementer} part {part}"),
        |(_, _, name)| (*name).to_owned(),
    )
}
