//! Small machines that were read wrongly once, with the truth; read in place: the folder named by
//! `RTPROOF_CAPTURES`, or ../shared/data beside the workspace. Where it is absent the tests say so
//! and pass.

use std::path::{Path, PathBuf};

use rtproof_checks::{Finding, Intent, Remedy, Status, judge_all};
use rtproof_host::{CpuList, Facts, Root, facts::copied::CopyKind};

use crate::denied::intent;

struct Machine {
    facts: Facts,
    findings: Vec<Finding>,
}

fn data() -> Option<PathBuf> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = data.join("machine-inputs");
    if !folder.is_dir() {
        println!("ignored: no {}; set RTPROOF_CAPTURES", folder.display());
    }
    folder.is_dir().then_some(folder)
}

/// A machine with these real-time CPUs; none: its own, or those that are proposed.
fn machine(name: &str, rt_cpus: &[u32]) -> Option<Machine> {
    let root = Root::open_path(data()?.join(name)).expect("a machine");
    let facts = Facts::read(&root);
    let own = intent(&facts);
    let intent = match rt_cpus {
        [] => own,
        some => {
            let rt_cpus = CpuList::new(some.iter().copied());
            let online = facts.cpus.online.value().cloned().unwrap_or_default();
            Intent { housekeeping: online.difference(&rt_cpus), rt_cpus, proposed: None, ..own }
        }
    };
    Some(Machine { findings: judge_all(&facts, &intent), facts })
}

impl Machine {
    fn finding(&self, check: &str) -> &Finding {
        self.findings.iter().find(|finding| finding.check == check).expect("a check")
    }

    fn status(&self, check: &str) -> Status {
        self.finding(check).status
    }

    fn assert(&self, status: Status, checks: &[&str]) {
        for check in checks {
            assert_eq!(self.status(check), status, "{:?}", self.finding(check));
        }
    }

    /// The remedies of one check, as the report shows them.
    fn remedies(&self, check: &str) -> String {
        self.finding(check).remedies.iter().map(|remedy| format!("{remedy}; ")).collect()
    }

    /// What all checks would boot with.
    fn boots(&self) -> Vec<&str> {
        let remedies = self.findings.iter().flat_map(|finding| &finding.remedies);
        fn boot(remedy: &Remedy) -> Option<&str> {
            match remedy {
                Remedy::Boot { parameter } => Some(parameter),
                _ => None,
            }
        }
        remedies.filter_map(boot).collect()
    }
}

#[test]
fn versions() {
    for name in ["isolcpus-flags-5.4.230-rt80", "isolcpus-flags-4.19.100-rt42"] {
        let Some(old) = machine(name, &[2, 3]) else { return };
        old.assert(Status::NotApplicable, &["isolcpus-managed-irq"]);
        assert!(!old.boots().iter().any(|word| word.contains("managed_irq")), "{:?}", old.boots());
    }
    let Some(none) = machine("isolcpus-none-5.4", &[2, 3]) else { return };
    assert!(none.boots().contains(&"isolcpus=2-3"), "{:?}", none.boots());
    let Some(old) = machine("option-newer-than-kernel", &[]) else { return };
    old.assert(Status::NotApplicable, &["config-cpu-isolation", "hwlat"]);
    assert!(!old.boots().iter().any(|word| word.starts_with("cpufreq.")), "{:?}", old.boots());
}

#[test]
fn completeness() {
    let Some(hollow) = machine("hollow-copy", &[]) else { return };
    assert!(hollow.findings.iter().all(|finding| finding.status == Status::Unknown));
    let copy = hollow.facts.copy.expect("a copy");
    assert!(copy.empty_files.is_some() && copy.empty_files == copy.files);
    let Some(sys) = machine("hollow-copy-sys", &[]) else { return };
    sys.assert(Status::Unknown, &["mitigations", "smt", "cpufreq-driver", "nohz-full"]);
    let Some(modules) = machine("modules-without-taint", &[]) else { return };
    modules.assert(Status::Unknown, &["oot-modules", "gpu-nvidia"]);
    let Some(part) = machine("part-of-tasks", &[]) else { return };
    part.assert(Status::Unknown, &["rogue-rt-tasks", "prio-99", "dl-admission", "irq-thread-prio"]);
    let Some(masks) = machine("mask-without-list", &[]) else { return };
    assert_eq!(masks.facts.cpus.nodes.value().map(Vec::len), Some(2));
    let siblings =
        |cpu: usize| masks.facts.cpus.cpus[cpu].siblings.value().map(ToString::to_string);
    assert_eq!((siblings(0).as_deref(), siblings(2).as_deref()), (Some("0-1"), Some("2-3")));
    let Some(file) = machine("driver-file-missing", &[]) else { return };
    file.assert(Status::Unknown, &["cpufreq-driver", "cpufreq-minmax"]);
}

#[test]
fn proofs() {
    let Some(guest) = machine("guest-without-flag", &[]) else { return };
    let name = guest.facts.virt.hypervisor.value().cloned().flatten();
    assert_eq!(name.as_deref(), Some("VirtualBox"));
    assert_ne!(guest.status("steal-time"), Status::Good);
    assert_ne!(guest.status("kvm-guest"), Status::Good);
    let Some(arm) = machine("arm-bhb", &[]) else { return };
    assert!(arm.finding("mitigations").summary.contains("spectre_v2"));
    let Some(x86) = machine("x86-swapgs", &[]) else { return };
    assert!(x86.finding("mitigations").summary.contains("spectre_v1"));
    let Some(container) = machine("container-cgroupns", &[]) else { return };
    assert_ne!(container.facts.virt.container.value(), Some(&None));
}

#[test]
fn architectures() {
    for (name, devices) in [("arm-ppi", [40]), ("riscv-timer", [14])] {
        let Some(own) = machine(name, &[]) else { return };
        let irqs = own.facts.irqs.irqs.value().expect("interrupts");
        let numbers: Vec<u32> = irqs.iter().map(|irq| irq.number).collect();
        assert_eq!(numbers, devices, "{name}");
        assert_ne!(own.status("irq-storm"), Status::Doubtful, "{name}");
    }
    let Some(timer) = machine("arm-local-timer", &[]) else { return };
    timer.assert(Status::Good, &["clockevent"]);
    assert!(!timer.remedies("clocksource").contains("TSC"));
    let Some(arm) = machine("arm32-rt-remedy", &[]) else { return };
    assert!(!arm.remedies("preempt-rt").contains("linux-image-rt"));
    assert!(!arm.remedies("clocksource").contains("TSC"));
    let Some(power) = machine("power-smt", &[]) else { return };
    assert!(power.remedies("smt").contains("ppc64_cpu --smt=off"), "{}", power.remedies("smt"));
    let Some(soc) = machine("shared-irq-on-soc", &[]) else { return };
    assert!(!soc.remedies("irq-shared").contains("slot"));
    assert!(!soc.finding("irq-shared").summary.contains("28"));
    let Some(core) = machine("cokernel", &[]) else { return };
    let said = rtproof_checks::first_sentence(&core.facts, &intent(&core.facts), &core.findings);
    assert_eq!(said.map(|said| said.situation), Some("cokernel"));
    core.assert(Status::Doubtful, &["preempt-rt"]);
}

#[test]
fn cpus() {
    let Some(two) = machine("big-little", &[]) else { return };
    let kinds: Vec<String> =
        two.facts.cpus.classes().iter().map(|kind| kind.cpus.to_string()).collect();
    assert_eq!(kinds, ["2-3", "0-1"]);
    assert_eq!(intent(&two.facts).rt_cpus.to_string(), "2-3");
    let Some(offline) = machine("offline-unsaid", &[]) else { return };
    assert_eq!(offline.facts.cpus.offline().map(|cpus| cpus.to_string()).as_deref(), Some("0-3"));
    let Some(smt) = machine("smt-off-takes-rt", &[]) else { return };
    let sets = |remedy: &Remedy| matches!(remedy, Remedy::Set { .. });
    assert!(!smt.finding("smt").remedies.iter().any(sets));
    assert!(smt.remedies("smt").contains("6-7"), "{}", smt.remedies("smt"));
}

#[test]
fn words() {
    let Some(board) = machine("misquoted-evidence", &[]) else { return };
    let quoted = |check: &str, text: &str| {
        let evidence = &board.finding(check).evidence;
        assert!(evidence.iter().any(|it| it.value.contains(text)), "{evidence:?}");
    };
    quoted("hypervisor", "Board 3000");
    quoted("laptop", "main server chassis");
    let Some(proc) = machine("proc-folder", &[]) else { return };
    assert_eq!(proc.facts.copy.map(|copy| copy.kind), Some(CopyKind::Proc));
    let Some(config) = machine("lone-config/board.config", &[]) else { return };
    let kernel = &config.facts.kernel;
    assert_eq!(kernel.release.value().map(String::as_str), Some("4.14.40"));
    assert!(kernel.arch.value().is_some_and(|arch| arch.starts_with("arm")));
    config.assert(Status::NotApplicable, &["config-cpu-isolation"]);
}
