//! Real machines captured by others, read in place: the folder named by `RTPROOF_CAPTURES`, or
//! ../shared/data beside the workspace. Where it is absent the tests say so and pass.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rtproof_host::{Facts, Root, changed_facts, condition_id, facts::kernel::CommandLine};
use tempfile::TempDir;

fn captures(name: &str) -> Option<PathBuf> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = data.join("captures").join(name);
    if path.exists() {
        return Some(path);
    }
    let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", path.display());
    None
}

/// The fields of a tar header that are needed (POSIX ustar, GNU long names).
struct Header {
    name: String,
    link: String,
    size: u64,
    kind: u8,
}

fn header(block: &[u8; 512]) -> Option<Header> {
    let text = |from: usize, length: usize| {
        let field = &block[from..from + length];
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(length);
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    let size = u64::from_str_radix(text(124, 12).trim(), 8).ok()?;
    let prefix = if &block[257..262] == b"ustar" && block[263] != b' ' && block[262] == 0 {
        text(345, 155)
    } else {
        String::new()
    };
    let name = if prefix.is_empty() { text(0, 100) } else { format!("{prefix}/{}", text(0, 100)) };
    Some(Header { name, link: text(157, 100), size, kind: block[156] })
}

fn unpack(archive: &Path) -> TempDir {
    let into = tempfile::tempdir().expect("a temporary folder");
    let mut tar = flate2::read::GzDecoder::new(File::open(archive).expect("the archive opens"));
    let mut block = [0; 512];
    let mut long_name = None;
    while tar.read_exact(&mut block).is_ok() {
        let Some(header) = header(&block) else { break };
        let padded = header.size.div_ceil(512) * 512;
        let mut content = vec![0; usize::try_from(padded).expect("a small file")];
        tar.read_exact(&mut content).expect("the archive is whole");
        content.truncate(usize::try_from(header.size).expect("a small file"));
        if header.kind == b'L' {
            let name = String::from_utf8_lossy(&content);
            long_name = Some(name.trim_end_matches('\0').to_owned());
            continue;
        }
        let name = long_name.take().unwrap_or(header.name);
        let path = into.path().join(name.trim_start_matches(['.', '/']));
        let parent = path.parent().expect("inside the folder");
        fs::create_dir_all(parent).expect("a folder is made");
        match header.kind {
            b'5' => fs::create_dir_all(path).expect("a folder is made"),
            b'2' => symlink(header.link, path).expect("a link is made"),
            b'0' | 0 => fs::write(path, content).expect("a file is written"),
            _ => {}
        }
    }
    into
}

/// Facts that no collection of these files can know.
fn assert_nothing_made_up(facts: &Facts) {
    assert_eq!(facts.kernel.release.value(), None);
    assert_eq!(facts.kernel.arch.value().map(String::as_str), Some("x86_64"));
    assert!(facts.kernel.preemption.value().is_none() && facts.kernel.config.value().is_none());
    assert!(facts.cpus.possible.value().is_none() && facts.cpus.allowed.value().is_none());
    assert!(facts.cpus.isolated.value().is_none() && facts.cpus.nohz_full.value().is_none());
    assert!(facts.cpus.idle_driver.value().is_none() && facts.cpus.idle_governor.value().is_none());
    for cpu in &facts.cpus.cpus {
        assert!(
            cpu.idle_states.value().is_none() && cpu.pm_qos_resume_latency_us.value().is_none()
        );
        assert!(cpu.freq.governor.value().is_none() && cpu.freq.max_hz.value().is_none());
    }
    assert!(facts.clock.source.value().is_none() && facts.clock.available.value().is_none());
    assert!(
        facts.sched.rt_runtime_us.value().is_none() && facts.sched.fair_server.value().is_none()
    );
    assert!(facts.rt_tasks.value().is_none() && facts.irqs.irqbalance.value().is_none());
    assert!(facts.limits.rtprio.value().is_none() && facts.limits.cap_sys_nice.value().is_none());
    assert!(facts.memory.swaps.value().is_none() && facts.memory.thp_enabled.value().is_none());
    assert!(facts.virt.container.value().is_none() && facts.virt.steal_ticks.value().is_none());
    assert!(
        facts.identity.hostname.value().is_none() && facts.identity.machine_id.value().is_none()
    );
}

#[test]
fn worker1_rt_80_cpus() {
    let Some(folder) = captures("openshift-nodes") else {
        return;
    };
    let tree = unpack(&folder.join("worker1-rt-80cpu.tgz"));
    let root = Root::dir(tree.path()).expect("a captured machine");
    let facts = Facts::read(&root);
    assert_nothing_made_up(&facts);

    assert_eq!(facts.cpus.cpus.len(), 80);
    assert_eq!(facts.cpus.online.value().expect("online").to_string(), "0-79");
    assert_eq!(facts.cpus.cpus[0].siblings.value().expect("siblings").as_slice(), [0, 40]);
    assert_eq!(facts.cpus.smt_active.value(), Some(&true));
    assert_eq!(facts.cpus.cpus[1].package.value(), Some(&1));
    assert_eq!(facts.cpus.cpus[0].last_level_cache_bytes.value(), Some(&(28_160 << 10)));
    let nodes = facts.cpus.nodes.value().expect("nodes");
    assert!(nodes.len() == 2 && nodes[1].cpus.contains(79) && nodes[1].cpus.len() == 40);
    assert_eq!(facts.identity.memory_bytes.value(), Some(&(196_633_688 << 10)));
    assert_eq!(facts.identity.model.value().expect("model"), "PowerEdge R740xd");
    assert_eq!(facts.virt.hypervisor.value(), Some(&None));

    let line: &CommandLine = facts.kernel.cmdline.value().expect("command line");
    assert_eq!(line.all("tsc").collect::<Vec<_>>(), [Some("reliable"); 2]);
    assert_eq!(line.all("skew_tick").count(), 2);
    assert_eq!(line.last("isolcpus"), Some(Some("managed_irq,0-4,11-79")));

    worker1_interrupts(&root, &facts);
}

/// 554 interrupts have a folder; 542 of them are lines of /proc/interrupts, all with an action. By
/// the command line CPUs 0-4 and 11-79 are isolated.
fn worker1_interrupts(root: &Root, facts: &Facts) {
    let irqs = facts.irqs.irqs.value().expect("interrupts");
    assert_eq!(irqs.len(), 542);
    let housekeeping = rtproof_host::CpuList::parse("5-10", None).expect("a list");
    let numbers = root.list_numbered("/proc/irq", "");
    let numbers = numbers.value().expect("folders");
    assert_eq!(numbers.len(), 554);
    let effective = |number: &&u32| {
        let list = root.cpu_list(&format!("/proc/irq/{number}/effective_affinity_list"));
        list.value().is_some_and(|cpus| !cpus.difference(&housekeeping).is_empty())
    };
    assert_eq!(numbers.iter().filter(effective).count(), 513);
    let acpi = irqs.iter().find(|irq| irq.number == 9).expect("interrupt 9");
    assert_eq!((acpi.actions.as_str(), acpi.chip.as_str()), ("acpi", "IR-IO-APIC 9-fasteoi"));
    assert!(irqs.iter().all(|irq| irq.requested.value().is_some()));
}

#[test]
fn worker2_stock_32_cpus() {
    let Some(folder) = captures("openshift-nodes") else {
        return;
    };
    let tree = unpack(&folder.join("worker2-stock-32cpu.tgz"));
    let facts = Facts::read(&Root::dir(tree.path()).expect("a captured machine"));
    assert_nothing_made_up(&facts);
    assert_eq!(facts.cpus.cpus.len(), 32);
    assert_eq!(facts.irqs.irqs.value().map(Vec::len), Some(233));
    assert_eq!(facts.kernel.cmdline.value().expect("command line").last("isolcpus"), None);
    let rows = facts.rows();
    assert!(rows.windows(2).all(|pair| pair[0].key < pair[1].key));
    assert_eq!(condition_id(&rows).len(), 16);
    assert_eq!(changed_facts(&facts, &facts), []);
    let json = serde_json::to_string(&facts).expect("facts serialise");
    assert_eq!(serde_json::from_str::<Facts>(&json).expect("facts come back"), facts);
}

#[test]
fn edited_procfs_fixtures_are_read_and_not_believed() {
    let Some(folder) = captures("procfs") else {
        return;
    };
    let facts = Facts::read(&Root::dir(folder).expect("a captured machine"));
    // One process was captured: that is not all of them.
    assert!(facts.rt_tasks.is_absent() && facts.limits.rtprio.is_absent());
    let irqs = facts.irqs.irqs.value().expect("interrupts");
    assert!(irqs.iter().any(|irq| irq.actions == "ahci[0000:00:1f.2]" && irq.count == 2296));
    assert!(facts.identity.memory_bytes.value().is_some());
    assert!(facts.virt.steal_ticks.value().is_some());
    assert!(!facts.rows().is_empty());
}
