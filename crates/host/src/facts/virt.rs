//! What is between this system and the hardware: hypervisor, container, stolen time.
//! Also the systemd units that matter to latency.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::knob::Place;
use crate::text::field;
use crate::{Reading, Root, knobs};

/// Facts about virtualisation: hypervisor, container runtime, steal time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Virt {
    /// Name of the hypervisor, `None` on bare metal.
    pub hypervisor: Reading<Option<String>>,
    /// What the files say from which that is known, quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor_quoted: Option<String>,
    /// Name of the container runtime, `None` outside.
    pub container: Reading<Option<String>>,
    /// Steal time per CPU since boot, in clock ticks (column 8 of /proc/stat).
    pub steal_ticks: Reading<Vec<(u32, u64)>>,
}

impl Virt {
    /// Reads the facts of virtualisation; /proc/cpuinfo is passed in.
    pub fn read(root: &Root, cpuinfo: &Reading<String>) -> Self {
        let hypervisor = read_hypervisor(root, cpuinfo);
        let hypervisor_quoted =
            hypervisor.value().and_then(|_| quoted(root, &hypervisor.path, cpuinfo));
        Self {
            hypervisor,
            hypervisor_quoted,
            container: read_container(root),
            steal_ticks: root.read_text("/proc/stat").and_then(steal),
        }
    }
}

impl Virt {
    /// Name of the container runtime, where we are known to be in one.
    pub(crate) fn container(root: &Root) -> Option<String> {
        read_container(root).value().cloned().flatten()
    }
}

fn steal(path: String, text: String) -> Reading<Vec<(u32, u64)>> {
    let mut ticks = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")) {
        let mut words = line.split_whitespace();
        let cpu = words.next().and_then(|word| word["cpu".len()..].parse().ok());
        match (cpu, words.nth(7).and_then(|word| word.parse().ok())) {
            (Some(cpu), Some(steal)) => ticks.push((cpu, steal)),
            _ => return Reading::malformed(path, line, "cpuN and ten counters"),
        }
    }
    if ticks.is_empty() {
        return Reading::malformed(path, &text, "lines cpuN");
    }
    Reading::known(path, ticks)
}

// systemd units that matter to latency, read from their files: no bus, no systemctl, so that a
// captured machine gives the same result.

/// Folders of unit files, the first that has a unit wins (systemd.unit(5), "Unit File Load Path").
pub(crate) const FOLDERS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A unit that systemd itself brings and needs to start (bootup(7)).
const EVERYWHERE: &str = "basic.target";

/// Groups of running system services, cgroup version 2 and 1.
pub(crate) const SLICES: &[&str] =
    &["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];

/// Units by name; what the knobs name and the machine has.
pub type Units = BTreeMap<String, Unit>;

/// One unit that is installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unit {
    pub file: String,
    /// Whether it starts by itself: a link in a `*.wants` or `*.requires` folder, or an alias of a
    /// bus name.
    pub enabled: bool,
    /// Whether its file is a link to /dev/null.
    pub masked: bool,
    /// Whether it runs: a service has a control group as long as it does. `None`: not known.
    pub running: Option<bool>,
}

/// Reads the units that knobs name. Absent where the machine has no systemd.
pub fn read_units(root: &Root) -> Reading<Units> {
    let mut names: Vec<&str> = Vec::new();
    for knob in knobs::all() {
        if let Place::Units(units) = knob.place {
            names.extend(units);
        }
    }
    let mut folders = Vec::new();
    for folder in FOLDERS {
        let listed = root.list_dir(folder);
        match listed.value() {
            Some(entries) => folders.push((*folder, entries.clone())),
            None if listed.is_absent() => {}
            // It may have, or enable, any of them.
            None => return listed.map(|_| Units::new()),
        }
    }
    if folders.is_empty() {
        return Reading::absent(FOLDERS.join(", "));
    }
    // Every system with systemd has this unit: a tree without it holds some files only, and that a
    // unit is not in it means nothing.
    if !folders.iter().any(|(_, entries)| entries.iter().any(|entry| entry == EVERYWHERE)) {
        let path: Vec<&str> = folders.iter().map(|(folder, _)| *folder).collect();
        return Reading::denied(
            path.join(", "),
            format!("only a part of the unit files is here: {EVERYWHERE} is missing"),
        );
    }
    let wanted = match wanted(root, &folders) {
        Ok(wanted) => wanted,
        Err(refused) => return refused.map(|_| Units::new()),
    };
    let running: Option<Vec<String>> =
        SLICES.iter().find_map(|slice| root.list_dir(slice).value().cloned());
    let unit = |name: &str| {
        let folder =
            folders.iter().find(|(_, entries)| entries.iter().any(|entry| entry == name))?;
        let file = format!("{}/{name}", folder.0);
        let masked = root.read_link(&file).value().is_some_and(|target| target == "/dev/null");
        let is_service = name.ends_with(".service");
        let running = running.as_ref().filter(|_| is_service);
        let unit = Unit {
            enabled: wanted.iter().any(|wanted| wanted == name),
            masked,
            running: running.map(|names| names.iter().any(|running| running == name)),
            file,
        };
        Some((name.to_owned(), unit))
    };
    let path: Vec<&str> = folders.iter().map(|(folder, _)| *folder).collect();
    Reading::known(path.join(", "), names.into_iter().filter_map(unit).collect())
}

/// Names in all `*.wants` and `*.requires` folders; a folder that cannot be listed may enable any.
fn wanted(
    root: &Root,
    folders: &[(&str, Vec<String>)],
) -> Result<Vec<String>, Reading<Vec<String>>> {
    let mut names = Vec::new();
    for (folder, entries) in folders {
        let is_list = |entry: &&String| entry.ends_with(".wants") || entry.ends_with(".requires");
        for list in entries.iter().filter(is_list) {
            let listed = root.list_dir(&format!("{folder}/{list}"));
            match listed.value() {
                Some(listed) => names.extend(listed.iter().cloned()),
                None if listed.is_absent() => {}
                None => return Err(listed),
            }
        }
    }
    Ok(names)
}

// Which container we are in, from the marks that runtimes leave.

/// Name of the runtime. `None` only where process 1 could be looked at.
fn read_container(root: &Root) -> Reading<Option<String>> {
    let mark = |path: &str, name: &str| {
        root.exists(path).then(|| Reading::known(path, Some(name.to_owned())))
    };
    let manager = root.trimmed("/run/systemd/container");
    if let Some(name) = manager.value().filter(|name| !name.is_empty()) {
        return Reading::known(&manager.path, Some(name.clone()));
    }
    let marked = mark("/run/.containerenv", "podman").or_else(|| mark("/.dockerenv", "docker"));
    if let Some(marked) = marked.filter(|_| !root.in_initial_namespaces()) {
        return marked;
    }
    // For root only; where it is refused the control group still shows it.
    let environment = root.read_text("/proc/1/environ");
    if let Some(name) = environment.value().and_then(|text| from_environment(text)) {
        return Reading::known(environment.path, Some(name));
    }
    // Our own group shows it, too: a container may share the machine's process ids.
    let group = |path: &str| root.read_text(path).map(|text| from_cgroup(&text).map(str::to_owned));
    let (first, own) = (group("/proc/1/cgroup"), group("/proc/self/cgroup"));
    if own.value().is_some_and(Option::is_some) && first.value().is_none_or(Option::is_none) {
        return own;
    }
    if first.value().is_some_and(Option::is_none)
        && let Some(doubt) = overlay_root(root, &first.path)
    {
        return doubt;
    }
    first.or_else(|| environment.map(|_| None))
}

/// File systems that lay what is written over an image.
const OVERLAYS: [&str; 3] = ["overlay", "fuse.fuse-overlayfs", "aufs"];

/// Where process 1 is in the first group of all, no group shows a container that has a namespace of
/// groups (containerd's, Kubernetes' and podman's default): the namespace does, else the root.
fn overlay_root(root: &Root, group: &str) -> Option<Reading<Option<String>>> {
    let text = root.read_text(group);
    let is_first = |line: &str| line.rsplit(':').next() == Some("/");
    if !text.value()?.lines().all(is_first) {
        return None;
    }
    let namespace = root.read_link("/proc/self/ns/cgroup");
    match namespace.value().map(String::as_str) {
        Some("cgroup:[4026531835]") => return None,
        Some(_) if root.is_whole() => {
            return Some(Reading::known(namespace.path, Some("unknown".into())));
        }
        _ => {}
    }
    let mounts = root.read_text("/proc/1/mounts").or_else(|| root.read_text("/proc/self/mounts"));
    let is_overlay = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("/") && words.next().is_some_and(|kind| OVERLAYS.contains(&kind))
    };
    match mounts.value() {
        Some(text) if !text.lines().any(is_overlay) => None,
        Some(_) => {
            let why = "the root is an overlay: a container, or a system that runs from an image";
            Some(Reading::denied(format!("{group}, {}", mounts.path), why))
        }
        None => Some(mounts.map(|_| None)),
    }
}

fn from_environment(text: &str) -> Option<String> {
    let name = text.split('\0').find_map(|variable| variable.strip_prefix("container="))?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn from_cgroup(text: &str) -> Option<&'static str> {
    let marks = [
        ("kubepods", "kubernetes"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
        ("machine.slice/systemd-nspawn", "systemd-nspawn"),
    ];
    // docker.service is the daemon's own group, on a host.
    let paths = || text.lines().filter(|line| !line.ends_with(".service"));
    marks
        .into_iter()
        .find_map(|(mark, name)| paths().any(|path| path.contains(mark)).then_some(name))
}

// Which hypervisor is below, if any.
//
// "Bare metal" is only said on evidence: an x86 CPU without the `hypervisor` bit, firmware
// tables or a device tree of a real board. A file that is missing is no evidence.

const ACPI_TABLE: &str = "/sys/firmware/acpi/tables/FACP";

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

const DMI: [&str; 3] = [
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/bios_vendor",
];

/// Name of the hypervisor, `None` on bare metal.
fn read_hypervisor(root: &Root, cpuinfo: &Reading<String>) -> Reading<Option<String>> {
    let flagged = cpuinfo.value().and_then(|text| has_hypervisor_flag(text));
    let pci = root.read_text(PCI);
    let by_name = by_sysfs(root).or_else(|| by_dmi(root, flagged)).or_else(|| by_device_tree(root));
    if let Some((path, name)) = by_name {
        return Reading::known(path, Some(name));
    }
    // The bit is there and firmware is silent: the clock or the tables may name it.
    if flagged == Some(true) {
        let (path, name) = by_clock(root)
            .map(|clock| with_product(root, clock))
            .or_else(|| by_acpi(root))
            .or_else(|| by_pci(&pci))
            .unwrap_or_else(|| (cpuinfo.path.clone(), "unknown hypervisor".to_owned()));
        return Reading::known(path, Some(name));
    }
    // Hypervisors can hide the bit: the devices or the firmware have to agree.
    match by_pci(&pci) {
        Some((path, name)) => Reading::known(path, Some(name)),
        None if flagged.is_some() && pci.value().is_some_and(|text| !text.trim().is_empty()) => {
            Reading::known(format!("{}, {PCI}", cpuinfo.path), None)
        }
        None => by_board(root, cpuinfo),
    }
}

/// What the files of a reading of the hypervisor hold, as far as it decides.
fn quoted(root: &Root, paths: &str, cpuinfo: &Reading<String>) -> Option<String> {
    const TEXT_CHARS: usize = 80;
    let of_path = |path: &str| match path {
        PCI | ACPI_TABLE => None,
        _ if path == cpuinfo.path => {
            let has = has_hypervisor_flag(cpuinfo.value()?)?;
            Some(if has { "flags with hypervisor" } else { "flags without hypervisor" }.to_owned())
        }
        _ => {
            let text = root.trimmed(path);
            let text = text.value()?.replace('\0', " ");
            Some(format!("\"{}\"", text.chars().take(TEXT_CHARS).collect::<String>()))
        }
    };
    let all: Vec<String> = paths.split(", ").filter_map(of_path).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

const PCI: &str = "/proc/bus/pci/devices";

/// Devices that only guests have, by their vendors.
fn by_pci(devices: &Reading<String>) -> Option<(String, String)> {
    const VENDORS: [(&str, &str); 8] = [
        ("80ee", "VirtualBox"),
        ("15ad", "VMware"),
        ("5853", "Xen"),
        ("1414", "Hyper-V"),
        ("1ab8", "Parallels"),
        ("1234", "QEMU"),
        ("1b36", "QEMU"),
        ("1af4", "unknown hypervisor"),
    ];
    let ids: Vec<&str> =
        devices.value()?.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let is_there = |(vendor, _): &&(&str, &str)| ids.iter().any(|id| id.starts_with(vendor));
    let (_, name) = VENDORS.iter().find(is_there)?;
    Some((devices.path.clone(), (*name).to_owned()))
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
    let board =
        named(DMI[1]).or_else(|| named(DMI[0])).or_else(|| named("/proc/device-tree/model"));
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

    #[test]
    fn steal_per_cpu() {
        let read = |text| {
            let tree = Tree::new(&[("proc/stat", text)]);
            Virt::read(&tree.root(), &Reading::absent("c")).steal_ticks
        };
        let text = "cpu  1 2 3 4 5 6 7 26 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu10 1 2 3 4 5 6 7 18 0 0\nintr 1\n";
        assert_eq!(read(text).value().unwrap(), &[(0, 8), (10, 18)]);
        assert!(read("cpu0 1 2 3\n").why_unknown().unwrap().contains("counters"));
        assert!(read("intr 1\n").why_unknown().is_some());
    }
}

#[cfg(test)]
mod units_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_machine_without_systemd_is_absent() {
        assert!(read_units(&Tree::new(&[("proc/stat", "")]).root()).is_absent());
    }

    #[test]
    fn a_part_of_the_unit_files_is_not_all() {
        let service = ("etc/systemd/system/chrony.service", "");
        let part = read_units(&Tree::new(&[service]).root());
        assert!(part.why_unknown().expect("unknown").contains("only a part"), "{part:?}");
        let whole = Tree::new(&[service, ("usr/lib/systemd/system/basic.target", "")]);
        assert!(read_units(&whole.root()).value().is_some());
    }

    #[test]
    fn wants_folders_enable() {
        let tree = Tree::new(&[
            ("usr/lib/systemd/system/a.service", ""),
            ("usr/lib/systemd/system/x.target.wants/a.service", ""),
        ]);
        let entries = vec!["a.service".to_owned(), "x.target.wants".to_owned()];
        let found = wanted(&tree.root(), &[("/usr/lib/systemd/system", entries)]);
        assert_eq!(found.unwrap(), ["a.service"]);
    }

    #[test]
    fn an_unrequested_list_is_not_an_empty_one() {
        let text = "rtproof capture 1\nfrom live, read by root\n\
            == /etc/systemd/system folder\n|basic.target\n|timers.target.wants\n== end\n";
        let capture = crate::Capture::read(text.as_bytes()).unwrap().unwrap();
        let units = read_units(&Root::captured(capture));
        assert!(units.why_unknown().unwrap().contains("not in the capture"), "{units:?}");
    }
}

#[cfg(test)]
mod container_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn marks_of_runtimes() {
        let name =
            |files: &[(&str, &str)]| read_container(&Tree::new(files).root()).value().cloned();
        let some = |name: &str| Some(Some(name.to_owned()));
        assert_eq!(name(&[("run/systemd/container", "lxc\n")]), some("lxc"));
        assert_eq!(name(&[("run/.containerenv", "")]), some("podman"));
        assert_eq!(name(&[(".dockerenv", "")]), some("docker"));
        assert_eq!(name(&[("proc/1/environ", "A=b\0container=oci\0")]), some("oci"));
        let pods = "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope\n";
        assert_eq!(name(&[("proc/1/cgroup", pods)]), some("kubernetes"));
        assert_eq!(name(&[("proc/1/cgroup", "9:name=systemd:/docker/abc\n")]), some("docker"));
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope\n")]), Some(None));
        assert_eq!(name(&[("proc/1/environ", "HOME=/\0")]), Some(None));
        assert_eq!(name(&[]), None);
        // A namespace of groups hides all of this.
        let (first, disk) = (("proc/1/cgroup", "0::/\n"), "/dev/sda1 / ext4 rw 0 0\n");
        assert_eq!(name(&[first]), None);
        assert_eq!(name(&[first, ("proc/1/mounts", disk)]), Some(None));
        let overlay = ("proc/self/mounts", "overlay / overlay rw 0 0\nproc /proc proc rw 0 0\n");
        assert_eq!(name(&[first, overlay]), None);
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope\n"), overlay]), Some(None));
        let shared = ("proc/self/cgroup", "0::/docker/abc\n");
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope\n"), shared]), some("docker"));
    }

    #[test]
    fn a_mark_left_in_an_image_is_no_container() {
        let tree = Tree::new(&[(".dockerenv", ""), ("proc/1/cgroup", "0::/\n")]);
        let ns = tree.path().join("proc/self/ns");
        std::fs::create_dir_all(&ns).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", ns.join("pid")).unwrap();
        std::os::unix::fs::symlink("cgroup:[4026532000]", ns.join("cgroup")).unwrap();
        assert_eq!(read_container(&tree.root()).value(), Some(&Some("docker".to_owned())));
        std::fs::remove_file(ns.join("cgroup")).unwrap();
        std::os::unix::fs::symlink("cgroup:[4026531835]", ns.join("cgroup")).unwrap();
        assert_eq!(read_container(&tree.root()).value(), Some(&None));
    }
}

#[cfg(test)]
mod hypervisor_tests {
    use super::*;
    use crate::testing::Tree;

    fn reading(files: &[(&str, &str)]) -> Reading<Option<String>> {
        let tree = Tree::new(files);
        let root = tree.root();
        read_hypervisor(&root, &root.read_text("/proc/cpuinfo"))
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
        // The bit can be hidden: without it a second witness is asked for.
        assert!(reading(&[BARE]).is_absent());
        let pci = |id: &str| format!("0000\t{id}\t0\n00f8\t80861c49\t0\n");
        assert_eq!(name(&[BARE, ("proc/bus/pci/devices", &pci("80860104"))]), Some(None));
        assert_eq!(name(&[BARE, ("proc/bus/pci/devices", &pci("80eebeef"))]), some("VirtualBox"));
        assert!(reading(&[BARE, ("proc/bus/pci/devices", "")]).is_absent());
        // What names itself goes first.
        let virtio = pci("1af41042");
        let (devices, clock) =
            (("proc/bus/pci/devices", &*virtio), (CLOCKS[1..].as_ref(), "kvm-clock"));
        assert_eq!(name(&[GUEST, devices, clock]), some("KVM"));
        assert_eq!(name(&[GUEST, devices]), some("unknown hypervisor"));
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
