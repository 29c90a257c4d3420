//! Texts, archives and reports of made-up machines.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::{Facts, facts::copied::CopyKind};

const UNAME: &str = "Linux plc7 5.10.201-rt98 #1 SMP PREEMPT_RT Tue Nov 21 12:00:00 UTC 2023 armv7l \
                     GNU/Linux\n";
const CMDLINE: &str = "console=ttyS0,115200n8 root=/dev/mmcblk0p2 rootwait isolcpus=1 quiet\n";
const INTERRUPTS: &str =
    "           CPU0       CPU1\n 16:       7       9  GIC-0  40 Level  eth0\n";
const LSCPU: &str = "Architecture:            x86_64\nCPU(s):                  4\n\
    On-line CPU(s) list:     0-3\nVendor ID:               GenuineIntel\n\
    Model name:              Made Up CPU\nThread(s) per core:      2\nFlags:    fpu tsc\n\
    NUMA node0 CPU(s):       0-1\nNUMA node1 CPU(s):       2-3\n\
    Vulnerability Meltdown:  Mitigation; PTI\n";
const SYSCTL: &str = "kernel.osrelease = 5.10.201-rt98\nkernel.sched_rt_runtime_us = -1\n\
    sysctl: permission denied on key 'kernel.cad_pid'\nnet.ipv4.conf.eth0/100.forwarding = 0\n";
const DMESG: &str = "[    0.000000] Linux version 5.10.201-rt98 (a@b) (gcc) #1 SMP PREEMPT_RT Tue\n\
    [    0.000000] Kernel command line: console=ttyS0,115200n8 root=/dev/mmcblk0p2 rootwait \
    isolcpus=1 quiet\n\
    [    1.200000] rcu: \tOffload RCU callbacks from CPUs: 1.\n";
const PS: &str = "    PID    PPID     TID CLS RTPRIO  NI PSR COMMAND\n\
    1 0 1 TS - 0 0 systemd\n2 0 2 TS - 0 0 kthreadd\n18 2 18 FF 99 - 0 migration/0\n\
    700 1 700 TS - 0 1 arm control\n700 1 701 FF 80 - 1 arm control\n";
const ETHTOOL: &str = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nrx-usecs: 3\n\
    rx-frames: 0\ntx-usecs: n/a\n";

fn open(files: &[(&str, &[u8])]) -> Result<Facts, String> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for (path, (_, bytes)) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    Root::open_paths(&paths).map(|root| Facts::read(&root)).map_err(|error| error.to_string())
}

fn texts(files: &[(&str, &str)]) -> Result<Facts, String> {
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    open(&files)
}

/// A tar archive: files, and links where the text begins with `-> `.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, bytes) in members {
        let target = bytes.strip_prefix(b"-> ");
        let data = if target.is_some() { &[][..] } else { bytes };
        let mut head = [0; 512];
        let (name, prefix) = match path.len() > 100 {
            true => path.split_at(path[..path.len() - 20].rfind('/').unwrap()),
            false => ("", *path),
        };
        let (name, prefix) = if name.is_empty() { (prefix, "") } else { (&prefix[1..], name) };
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
        head[156] = if target.is_some() { b'2' } else { b'0' };
        let target = target.unwrap_or_default();
        head[157..157 + target.len()].copy_from_slice(target);
        head[257..263].copy_from_slice(b"ustar\0");
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend(head);
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn each_text_is_recognised_by_what_it_holds() {
    let of = |text: &str| texts(&[("x", text)]).unwrap();
    let named = of(UNAME).kernel;
    assert_eq!(named.arch.value().unwrap(), "armv7l");
    assert_eq!(named.version.value(), Some(&(5, 10)));
    assert!(named.build.value().unwrap().contains("PREEMPT_RT"));
    assert!(of(CMDLINE).kernel.cmdline.value().unwrap().last("isolcpus").is_some());
    assert_eq!(of(INTERRUPTS).irqs.irqs.value().unwrap().len(), 1);
    let cpus = of(LSCPU);
    assert_eq!(cpus.cpus.online.value().unwrap().len(), 4);
    assert_eq!(cpus.cpus.nodes.value().unwrap().len(), 2);
    assert_eq!(cpus.cpus.smt_active.value(), Some(&true));
    assert_eq!(cpus.settings["mitigations"].values.len(), 1);
    assert_eq!(of(SYSCTL).sched.rt_runtime_us.value(), Some(&-1));
    let log = of(DMESG);
    assert!(log.platform.log.value().unwrap().is_whole && log.kernel.cmdline.value().is_some());
    assert_eq!(log.platform.log.value().unwrap().rcu_offloaded.as_ref().unwrap().len(), 1);
    let tasks = of(PS).rt_tasks;
    let tasks = tasks.value().unwrap();
    let shown: Vec<_> = tasks.iter().map(|t| (t.tid, t.priority, t.kernel_thread)).collect();
    assert_eq!(shown, [(18, 99, true), (701, 80, false)]);
    let net = of(ETHTOOL).net.interfaces;
    let coalesce = net.value().unwrap()[0].coalesce.value().unwrap().unwrap();
    assert_eq!((coalesce.rx_usecs, coalesce.adaptive_rx), (Some(3), Some(false)));
    for text in
        ["", "hello\n", "Linux is an operating system\n", "a: b\n", "the root of it, quiet\n"]
    {
        let error = texts(&[("x", text)]).unwrap_err();
        assert!(error.contains("uname -a") && error.contains("lscpu"), "{text}: {error}");
    }
}

#[test]
fn several_texts_are_one_machine_and_what_is_in_none_is_unknown() {
    let all = [("u", UNAME), ("c", CMDLINE), ("i", INTERRUPTS), ("s", SYSCTL), ("d", DMESG)];
    let facts = texts(&all).unwrap();
    assert!(facts.kernel.release.value().is_some() && facts.irqs.irqs.value().is_some());
    let copy = facts.copy.unwrap();
    assert_eq!((copy.kind, copy.parts.len()), (CopyKind::Files, 5));
    let why = facts.clock.source.why_unknown().unwrap();
    assert!(why.contains("not in what was given"), "{why}");
    assert!(!facts.virt.hypervisor.is_absent(), "nothing is known to be absent");
}

#[test]
fn files_of_two_machines_are_refused_with_both_names() {
    let other = UNAME.replace("5.10.201", "6.1.0");
    for (name, text) in [("two", &*other), ("two", "isolcpus=2 quiet ro\n")] {
        let error = texts(&[("one", UNAME), ("line", CMDLINE), (name, text)]).unwrap_err();
        assert!(error.contains("two") && error.contains("contradict"), "{error}");
    }
    let version = "Linux version 4.4.0 (a@b) (gcc) #1 SMP Tue\n";
    assert!(texts(&[("one", UNAME), ("two", version)]).unwrap_err().contains("4.4.0"));
    assert!(texts(&[("one", UNAME), ("again", UNAME)]).is_ok());
    let capture = Capture::of_files([]).to_text();
    assert!(texts(&[("one", UNAME), ("capture", &capture)]).unwrap_err().contains("alone"));
}

#[test]
fn tasks_are_unknown_where_a_list_does_not_tell_enough() {
    let no_parent = "PID TID CLS RTPRIO CMD\n1 1 TS - init\n2 2 TS - kthreadd\n";
    let container = "PID PPID TID CLS RTPRIO CMD\n1 0 1 TS - sh\n9 1 9 FF 99 app\n";
    for text in [no_parent, container, &PS.replace("FF 80", "?? 80")] {
        let facts = texts(&[("ps", text)]).unwrap();
        assert!(facts.rt_tasks.value().is_none(), "{text}");
        assert!(facts.copy.unwrap().notes.iter().any(|note| note.contains("unknown")));
    }
}

#[test]
fn a_report_is_read_as_a_machine_packed_or_not() {
    let long = format!("report/sys/devices/{}/numa_node", "pci0000:00/".repeat(9));
    let members: &[(&str, &[u8])] = &[
        ("report/", b""),
        ("report/proc/cmdline", CMDLINE.as_bytes()),
        ("report/proc/loadavg", b"0 0 0 1/5 9\n"),
        ("report/sys/devices/system/cpu/online", b"0-1\n"),
        ("report/sys/class/net/eth0", b"-> ../../devices/eth0"),
        ("report/sys/devices/eth0/device/uevent", b"x"),
        (&long, b"0\n"),
        ("report/sos_commands/kernel/uname_-a", UNAME.as_bytes()),
        ("report/sos_commands/networking/ethtool_-c_eth0", ETHTOOL.as_bytes()),
        ("report/sos_commands/process/ps_-eLo", b"no list at all\n"),
        ("report/var/log/messages", b"x"),
        ("../../etc/machine-id", b"outside\n"),
    ];
    let packed = tar(members);
    for bytes in [packed.clone(), gzip(&packed)] {
        let facts = open(&[("report.tar", &bytes)]).unwrap();
        assert_eq!(facts.kernel.version.value(), Some(&(5, 10)));
        assert_eq!(facts.cpus.online.value().unwrap().len(), 2);
        assert!(facts.kernel.cmdline.value().is_some());
        // As a folder: what a folder of the report lacks was not copied.
        let why = facts.cpus.isolated.why_unknown();
        assert_eq!(why.as_deref(), Some("not in the copy"));
        assert!(facts.identity.machine_id.value().is_none(), "a member outside of the report");
    }
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in members.iter().filter(|(path, _)| path.starts_with("report/")) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !bytes.is_empty() && !bytes.starts_with(b"->") {
            fs::write(path, bytes).unwrap();
        }
    }
    let facts = Facts::read(&Root::open_path(folder.path()).unwrap());
    assert_eq!(facts.kernel.version.value(), Some(&(5, 10)));
    // Cut off or damaged anywhere: an error, never a smaller machine.
    for end in (1..packed.len() - 1024).step_by(97).filter(|end| *end > 512) {
        assert!(open(&[("x", &packed[..end])]).is_err(), "{end}");
    }
    let mut damaged = packed;
    damaged[5] ^= 1;
    assert!(open(&[("x", &damaged)]).unwrap_err().contains("sum"));
}

#[test]
fn nodes_of_a_cluster_are_not_mixed() {
    let node = |name: &str| format!("must/quay/nodes/{name}/proc_cmdline");
    let two = tar(&[(&node("a"), CMDLINE.as_bytes()), (&node("b"), b"isolcpus=2 quiet ro\n")]);
    assert!(open(&[("x", &two)]).unwrap_err().contains("node b"));
    let one = tar(&[(&node("a"), CMDLINE.as_bytes())]);
    assert!(open(&[("x", &one)]).unwrap().kernel.cmdline.value().is_some());
}

#[test]
fn long_lists_are_cut_and_long_files_left_and_both_are_said() {
    let line = "[    2.000000] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n";
    let long = format!("{DMESG}{}", line.repeat(20_000));
    let facts = texts(&[("d", &long)]).unwrap();
    assert!(!facts.platform.log.value().unwrap().is_whole);
    assert!(facts.copy.unwrap().notes.iter().any(|note| note.contains("was cut")));
    let huge = format!("{INTERRUPTS}{}", " 17: 1 2 GIC-0 40 Level x\n".repeat(400_000));
    let facts = texts(&[("i", &huge)]).unwrap();
    assert!(facts.irqs.irqs.value().is_none());
    let large = tar(&[("proc/interrupts", huge.as_bytes()), ("proc/cmdline", b"quiet\n")]);
    let facts = open(&[("x", &large)]).unwrap();
    assert!(facts.irqs.irqs.value().is_none() && facts.kernel.cmdline.value().is_some());
    assert!(facts.copy.unwrap().notes.iter().any(|note| note.contains("8 MiB")));
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0..=255_u8, 0..2000)) {
        let _ = open(&[("x", &bytes)]);
        let _ = open(&[("x", &gzip(&bytes))]);
        let _ = open(&[("x", &tar(&[("proc/cmdline", &bytes), ("proc/1/stat", &bytes)]))]);
    }
}
