//! The architecture, from what a copy of a machine holds of it.

use crate::text::field;

/// By what arch/*/kernel (`show_cpuinfo`) alone writes.
pub(crate) fn of_cpuinfo(text: &str) -> Option<String> {
    let field = |name| field(text, name);
    if field("vendor_id").is_some_and(|vendor| vendor.starts_with("IBM/S390")) {
        return Some("s390x".into());
    }
    let has_flag = |name| field("flags").is_some_and(|flags| flags.split(' ').any(|it| it == name));
    if has_flag("fpu") {
        let is_64 = has_flag("lm");
        // Only a 32-bit kernel names this fault of the first Pentiums.
        let has_bug = field("fdiv_bug").is_some();
        return Some(if is_64 && !has_bug { "x86_64" } else { "i686" }.into());
    }
    if field("CPU implementer").is_some() || field("CPU architecture").is_some() {
        // `ARMv7 Processor rev 4 (v7l)`, `AArch64 Processor rev 2 (aarch64)`
        let named = field("model name").or_else(|| field("Processor"));
        let platform = named.and_then(|name| name.rsplit_once('(')?.1.strip_suffix(')'));
        return Some(match (platform, field("CPU architecture")) {
            (Some("aarch64"), _) => "aarch64".into(),
            (Some(platform), _) if platform.starts_with('v') => format!("arm{platform}"),
            (_, Some("8" | "AArch64")) => "aarch64".into(),
            _ => "arm".into(),
        });
    }
    if let Some(isa) = field("isa") {
        return match isa.get(..4) {
            Some("rv64") => Some("riscv64".into()),
            Some("rv32") => Some("riscv32".into()),
            _ => None,
        };
    }
    if field("CPU Family").is_some_and(|family| family.starts_with("Loongson")) {
        return Some("loongarch64".into());
    }
    if field("timebase").is_some() && field("cpu").is_some() {
        return Some("powerpc".into());
    }
    if field("system type").is_some() && field("cpu model").is_some() {
        return Some("mips".into());
    }
    field("type").filter(|kind| kind.starts_with("sun4")).map(|_| "sparc".into())
}

/// Architectures as far as remedies differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    X86,
    Arm32,
    Arm64,
    RiscV,
    Power,
    S390,
    Other,
}

impl Family {
    /// Of a name as `uname -m` or a `.config` has it.
    pub fn of(machine: &str) -> Self {
        match machine {
            "x86_64" | "x86" | "amd64" => Self::X86,
            i86 if i86.starts_with('i') && i86.ends_with("86") => Self::X86,
            "aarch64" | "arm64" => Self::Arm64,
            arm if arm.starts_with("arm") => Self::Arm32,
            riscv if riscv.starts_with("riscv") => Self::RiscV,
            power if power.starts_with("ppc") || power.starts_with("powerpc") => Self::Power,
            "s390x" | "s390" => Self::S390,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_writes_cpuinfo_in_its_own_way() {
        for (text, arch, family) in [
            ("vendor_id : GenuineIntel\nflags : fpu tsc lm\n", "x86_64", Family::X86),
            ("vendor_id : GenuineIntel\nfdiv_bug : no\nflags : fpu tsc lm\n", "i686", Family::X86),
            ("vendor_id : Geode by NSC\nflags : fpu tsc\n", "i686", Family::X86),
            ("vendor_id : IBM/S390\nfeatures : esan3 zarch\n", "s390x", Family::S390),
            (
                "processor : 0\nBogoMIPS : 38.40\nCPU implementer : 0x41\nCPU architecture: 8\n",
                "aarch64",
                Family::Arm64,
            ),
            (
                "Processor : AArch64 Processor rev 2 (aarch64)\nCPU implementer : 0x51\n",
                "aarch64",
                Family::Arm64,
            ),
            (
                "model name : ARMv7 Processor rev 4 (v7l)\nCPU implementer : 0x41\nCPU architecture: 7\n",
                "armv7l",
                Family::Arm32,
            ),
            ("CPU implementer : 0x41\nCPU architecture: 5TEJ\n", "arm", Family::Arm32),
            ("hart : 0\nisa : rv64imafdc\nmmu : sv39\n", "riscv64", Family::RiscV),
            (
                "processor : 0\ncpu : POWER9, altivec supported\ntimebase : 512000000\n",
                "powerpc",
                Family::Power,
            ),
            ("system type : Generic\ncpu model : MIPS 24Kc V5.0\n", "mips", Family::Other),
            ("CPU Family : Loongson-64bit\nModel Name : 3A5000\n", "loongarch64", Family::Other),
        ] {
            assert_eq!(of_cpuinfo(text).as_deref(), Some(arch), "{text}");
            assert_eq!(Family::of(arch), family, "{text}");
        }
        assert_eq!(of_cpuinfo("processor : 0\n"), None);
    }
}
