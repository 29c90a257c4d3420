//! Which hypervisor is below, if any.
//!
//! "Bare metal" is only said on evidence: an x86 CPU without the `hypervisor` bit, firmware
//! tables or a device tree of a real board. A file that is missing is no evidence.

use crate::{Reading, Root, text::field};

const ACPI_TABLE: &str = "/sys/firmware/acpi/tables/FACP";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const DMI: [&str; 3] = [
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/bios_vendor",
];

/// Name of the hypervisor, `None` on bare metal.
pub(super) fn read(root: &Root, cpuinfo: &Reading<String>) -> Reading<Option<String>> {
    let flagged = cpuinfo.value().and_then(|text| has_hypervisor_flag(text));
    let by_name = by_sysfs(root).or_else(|| by_dmi(root, flagged)).or_else(|| by_device_tree(root));
    if let Some((path, name)) = by_name {
        return Reading::known(path, Some(name));
    }
    match flagged {
        // The bit is there and firmware is silent: the clock or the tables may name it.
        Some(true) => {
            let (path, name) = by_clock(root)
                .map(|clock| with_product(root, clock))
                .or_else(|| by_acpi(root))
                .unwrap_or_else(|| (cpuinfo.path.clone(), "unknown hypervisor".to_owned()));
            Reading::known(path, Some(name))
        }
        Some(false) => Reading::known(&cpuinfo.path, None),
        None => by_board(root, cpuinfo),
    }
}

/// The `hypervisor` bit of x86 (CPUID 1, ECX 31); `None` where there are no x86 flags.
fn has_hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    Some(field(cpuinfo, "flags")?.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn by_sysfs(root: &Root) -> Option<(String, String)> {
    let kind = root.trimmed("/sys/hypervisor/type");
    let name = match kind.value()?.as_str() {
        "" | "none" => return None,
        "xen" => "Xen",
        other => other,
    };
    Some((kind.path.clone(), name.to_owned()))
}

fn by_dmi(root: &Root, flagged: Option<bool>) -> Option<(String, String)> {
    DMI.into_iter().find_map(|path| {
        let text = root.trimmed(path);
        let name = dmi_name(text.value()?, flagged == Some(false))?;
        Some((text.path, name.to_owned()))
    })
}

/// Strings that virtual firmware puts into DMI. Cloud vendors sell bare metal under the same name:
/// there, an x86 CPU without the hypervisor bit is believed.
fn dmi_name(text: &str, bare: bool) -> Option<&'static str> {
    let marks = [
        ("Firecracker", "Firecracker"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("Parallels", "Parallels"),
        ("BHYVE", "bhyve"),
        ("bhyve", "bhyve"),
        ("Virtual Machine", "Hyper-V"),
        ("Hyper-V", "Hyper-V"),
        ("Apple Virtualization", "Apple Virtualization"),
        ("KVM", "KVM"),
        ("OpenStack", "KVM"),
        ("oVirt", "KVM"),
        ("RHEV", "KVM"),
        ("QEMU", "QEMU"),
        ("Bochs", "QEMU"),
        ("SeaBIOS", "QEMU"),
    ];
    let clouds = [("Google Compute Engine", "Google Compute Engine"), ("Amazon EC2", "Amazon EC2")];
    let named = |&(mark, _): &(&str, &str)| text.contains(mark);
    let cloud = clouds.into_iter().find(|cloud| !bare && named(cloud) && !text.contains("metal"));
    marks.into_iter().find(named).or(cloud).map(|(_, name)| name)
}

fn by_device_tree(root: &Root) -> Option<(String, String)> {
    let compatible = root.trimmed("/proc/device-tree/hypervisor/compatible");
    if let Some(text) = compatible.value() {
        let marks = [("kvm", "KVM"), ("xen", "Xen"), ("vmware", "VMware")];
        let name = marks.into_iter().find(|(mark, _)| text.contains(mark));
        return Some((compatible.path.clone(), name.map_or("unknown hypervisor", |n| n.1).into()));
    }
    let model = root.trimmed("/proc/device-tree/model");
    let name = virtual_board(model.value()?)?;
    Some((model.path.clone(), name.to_owned()))
}

/// Models that only virtual boards have.
fn virtual_board(model: &str) -> Option<&'static str> {
    let marks = [
        ("linux,dummy-virt", "unknown hypervisor"),
        ("qemu", "QEMU"),
        ("QEMU", "QEMU"),
        ("XENVM", "Xen"),
        ("Jailhouse", "Jailhouse"),
        ("KVM", "KVM"),
    ];
    marks.into_iter().find(|(mark, _)| model.contains(mark)).map(|(_, name)| name)
}

/// Firecracker has no DMI; its ACPI tables carry its name as OEM id (bytes 10 to 16). Root only.
fn by_acpi(root: &Root) -> Option<(String, String)> {
    let table = root.read_bytes(ACPI_TABLE);
    let name = match table.value()?.get(10..16)? {
        b"FIRECK" => "Firecracker",
        b"CLOUDH" => "Cloud Hypervisor",
        b"BOCHS " => "QEMU",
        _ => return None,
    };
    Some((table.path.clone(), name.to_owned()))
}

/// The hypervisor of the clock, which every user sees, and beside it the product, which only root
/// reads: both users are given the same name first.
fn with_product(root: &Root, (path, name): (String, String)) -> (String, String) {
    match by_acpi(root) {
        Some((table, product)) => (format!("{path}, {table}"), format!("{name} ({product})")),
        None => (path, name),
    }
}

/// Clock sources that a hypervisor offers.
fn by_clock(root: &Root) -> Option<(String, String)> {
    let clocks = root.trimmed(CLOCKS);
    let marks = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let name = marks.into_iter().find(|(mark, _)| clocks.value().is_some_and(|c| c.contains(mark)));
    Some((clocks.path.clone(), name?.1.to_owned()))
}

/// No x86: firmware tables or a device tree that name a board, and none of the marks above.
fn by_board(root: &Root, cpuinfo: &Reading<String>) -> Reading<Option<String>> {
    let named = |path: &str| {
        root.trimmed(path).and_then(|path, name| match name.as_str() {
            "" => Reading::absent(path),
            _ => Reading::known(path, None),
        })
    };
    let board = named(DMI[1]).or_else(|| named("/proc/device-tree/model"));
    if board.value().is_some() {
        return board;
    }
    if cpuinfo.value().is_none() && !cpuinfo.is_absent() {
        return cpuinfo.clone().map(|_| None);
    }
    let paths = format!("/sys/hypervisor/type, {}, {}", board.path, cpuinfo.path);
    board.with_path(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn reading(files: &[(&str, &str)]) -> Reading<Option<String>> {
        let tree = Tree::new(files);
        let root = tree.root();
        read(&root, &root.read_text("/proc/cpuinfo"))
    }

    fn name(files: &[(&str, &str)]) -> Option<Option<String>> {
        reading(files).value().cloned()
    }

    fn some(name: &str) -> Option<Option<String>> {
        Some(Some(name.to_owned()))
    }

    const BARE: (&str, &str) = ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc\n");
    const GUEST: (&str, &str) = ("proc/cpuinfo", "flags\t\t: fpu hypervisor tsc\n");
    const ARM: (&str, &str) = ("proc/cpuinfo", "Features\t: fp asimd\n");
    const VENDOR: &str = "sys/class/dmi/id/sys_vendor";
    const PRODUCT: &str = "sys/class/dmi/id/product_name";

    #[test]
    fn x86() {
        assert_eq!(name(&[BARE]), Some(None));
        assert_eq!(name(&[GUEST]), some("unknown hypervisor"));
        assert_eq!(name(&[GUEST, (VENDOR, "QEMU\n")]), some("QEMU"));
        assert_eq!(name(&[GUEST, (VENDOR, "Red Hat\n"), (PRODUCT, "KVM\n")]), some("KVM"));
        assert_eq!(name(&[GUEST, (VENDOR, "VMware, Inc.\n")]), some("VMware"));
        assert_eq!(name(&[GUEST, (VENDOR, "innotek GmbH\n")]), some("VirtualBox"));
        let hyperv = [GUEST, (VENDOR, "Microsoft Corporation"), (PRODUCT, "Virtual Machine")];
        assert_eq!(name(&hyperv), some("Hyper-V"));
        // A guest that hides the bit but not its firmware; a Surface is real.
        assert_eq!(name(&[BARE, (VENDOR, "QEMU\n")]), some("QEMU"));
        assert_eq!(name(&[BARE, (VENDOR, "Microsoft Corporation")]), Some(None));
        assert_eq!(name(&[GUEST, (VENDOR, "Amazon EC2\n")]), some("Amazon EC2"));
        assert_eq!(name(&[BARE, (VENDOR, "Amazon EC2\n")]), Some(None));
        assert_eq!(name(&[BARE, ("sys/hypervisor/type", "xen\n")]), some("Xen"));
        let clock = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert_eq!(name(&[GUEST, (clock, "tsc kvm-clock \n")]), some("KVM"));
        let table = ("sys/firmware/acpi/tables/FACP", "FACP....\u{1}fFIRECKFCVMFADT");
        assert_eq!(name(&[GUEST, table, (clock, "kvm-clock")]), some("KVM (Firecracker)"));
        assert_eq!(name(&[GUEST, table]), some("Firecracker"));
    }

    #[test]
    fn arm_is_unknown_without_evidence() {
        assert!(reading(&[ARM]).is_absent());
        assert!(reading(&[]).is_absent());
        let model = "proc/device-tree/model";
        let pi = reading(&[ARM, (model, "Raspberry Pi 5 Model B Rev 1.0\0")]);
        assert_eq!(pi, Reading::known("/proc/device-tree/model", None));
        assert_eq!(name(&[ARM, (model, "linux,dummy-virt\0")]), some("unknown hypervisor"));
        assert_eq!(name(&[ARM, (model, "riscv-virtio,qemu\0")]), some("QEMU"));
        let node = ("proc/device-tree/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0");
        assert_eq!(name(&[ARM, node, (model, "Board\0")]), some("Xen"));
        assert_eq!(name(&[ARM, (PRODUCT, "HR330A\n"), (VENDOR, "Lenovo\n")]), Some(None));
        assert_eq!(name(&[ARM, (VENDOR, "QEMU\n"), (PRODUCT, "x")]), some("QEMU"));
    }
}
