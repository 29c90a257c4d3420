//! SMI: how many system management interrupts came? Firmware runs in them, on all CPUs at once, and
//! no kernel can hold them off.
//!
//! Intel counts them in a register, read through the msr driver or perf; AMD from family 17h on as
//! an event of the cores, through perf. Counted is on one CPU of each package; nothing is loaded
//! for it. Where nothing counts, or nothing of the host's can be counted in a guest, a loop looks
//! for gaps, any of which may be one. Beside it the kernel's hwlat tracer, where there is one,
//! looks with interrupts off, for a fifth of the time: what that sees is no work of the kernel.

use std::{os::fd::OwnedFd, time::Instant};

use rtproof_host::{CpuList, Reading, idle, task, tracefs::TracefsError};
use rtproof_model::trial::{GapCounts, GapLook, SmiCounter, SmiObservation};

use super::{Length, Observation, Trial, TrialContext};
use crate::sys::{self, perf};
use crate::task::pin;
use crate::workloads::kernel::HwlatRun;

/// A step of the loop that is a gap: SMIs take longer (docs of the hwlat tracer: 10 us).
const GAP_NS: u64 = 10_000;

/// Where the kernel describes the PMU of model-specific registers.
const MSR_PMU: &str = "/sys/bus/event_source/devices/msr";

/// PERF_TYPE_RAW (include/uapi/linux/perf_event.h).
const RAW: u32 = 4;

/// LsSmiRx (tools/perf/pmu-events/arch/x86/amdzen1/other.json and later).
const LS_SMI_RX: u64 = 0x2b;

/// First family that has it.
const ZEN: u32 = 0x17;

/// The trial `smi`: whether system management interrupts stop the CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Smi;

impl Trial for Smi {
    fn name(&self) -> &'static str {
        "smi"
    }

    fn about(&self) -> &'static str {
        "counts system management interrupts by MSR 0x34 or perf, 10 s; where neither counts, a \
         loop and the kernel's hwlat look for gaps. hwlat turns interrupts of a CPU off, 20 ms at \
         a time: never on a machine in use"
    }

    fn length(&self) -> Length {
        Length::Time { default_ns: 10_000_000_000, longest_ns: 600_000_000_000 }
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        // On x86 before 5.19 reading it interrupts busy CPUs: nothing is measured yet.
        let vendor = of_cpuinfo(ctx, "vendor_id");
        let mut observed = SmiObservation {
            vendor,
            counter: None,
            duration_ns: 0,
            counts: Vec::new(),
            gaps: None,
            hwlat: Reading::absent("available_tracers"),
        };
        let cpus = one_of_each_package(ctx);
        match observed.vendor.value().map(String::as_str) {
            Some("GenuineIntel") => {
                registers(ctx, &cpus, &mut observed);
                if observed.duration_ns == 0 {
                    let smi = msr_event(ctx);
                    by_perf(ctx, &cpus, SmiCounter::PerfMsr, &smi, &mut observed);
                }
            }
            Some("AuthenticAMD") if family(ctx).is_some_and(|family| family >= ZEN) => {
                let smi = Reading::known("perf_event_open", (RAW, LS_SMI_RX));
                by_perf(ctx, &cpus, SmiCounter::PerfAmd, &smi, &mut observed);
            }
            _ => {}
        }
        if is_x86(ctx) && observed.duration_ns == 0 {
            measure_gaps(ctx, &mut observed);
        }
        Observation::Smi(observed)
    }
}

fn is_x86(ctx: &TrialContext<'_>) -> bool {
    ctx.facts.kernel.arch.value().is_none_or(|arch| arch.contains("86"))
}

fn of_cpuinfo(ctx: &TrialContext<'_>, key: &str) -> Reading<String> {
    ctx.root.read_text("/proc/cpuinfo").and_then(|path, cpuinfo| {
        let values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        match values.into_iter().find(|(name, _)| name.trim() == key) {
            Some((_, value)) => Reading::known(path, value.trim().to_owned()),
            None => Reading::absent(path),
        }
    })
}

fn family(ctx: &TrialContext<'_>) -> Option<u32> {
    of_cpuinfo(ctx, "cpu family").value()?.parse().ok()
}

/// Counts by the register, if it can be read on any CPU.
fn registers(ctx: &TrialContext<'_>, cpus: &[u32], observed: &mut SmiObservation) {
    let read = |cpu: u32| idle::read_msr(ctx.root, cpu, idle::SMI_COUNT);
    let before: Vec<(u32, Reading<u64>)> = cpus.iter().map(|&cpu| (cpu, read(cpu))).collect();
    observed.counter = Some(SmiCounter::Register);
    if before.iter().any(|(_, count)| count.value().is_some()) {
        observed.duration_ns = pass(ctx, observed);
    }
    let since = |(cpu, before): (u32, Reading<u64>)| {
        let count = before.and_then(|_, before| {
            // The register is of 32 bits.
            read(cpu).map(|after| u64::from((after as u32).wrapping_sub(before as u32)))
        });
        (cpu, count)
    };
    observed.counts = before.into_iter().map(since).collect();
}

/// Lets the time pass in which is counted; returns how long that was. In a guest, whose counter
/// does not show the host, the loop measures meanwhile.
fn pass(ctx: &TrialContext<'_>, observed: &mut SmiObservation) -> u64 {
    let start_ns = sys::now_ns();
    if !matches!(ctx.facts.virt.hypervisor.value(), Some(None)) {
        measure_gaps(ctx, observed);
    }
    match &observed.gaps {
        Some(_) => sys::now_ns() - start_ns,
        None => ctx.wait(start_ns, ctx.duration_ns, |_| false),
    }
}

/// Number of the PMU and its event, as the kernel describes them.
fn msr_event(ctx: &TrialContext<'_>) -> Reading<(u32, u64)> {
    let kind = ctx.root.read_text(&format!("{MSR_PMU}/type"));
    let event = ctx.root.read_text(&format!("{MSR_PMU}/events/smi"));
    let kind = kind.parsed("a number", |text| text.trim().parse().ok());
    let event = event.parsed("event=0x04", |text| {
        u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
    });
    kind.and_then(|_, kind: u32| event.map(|event| (kind, event)))
}

/// Counts by perf, if an event can be opened. A refusal replaces nothing that was read before.
fn by_perf(
    ctx: &TrialContext<'_>,
    cpus: &[u32],
    counter: SmiCounter,
    event: &Reading<(u32, u64)>,
    observed: &mut SmiObservation,
) {
    let opened: Vec<(u32, Reading<OwnedFd>)> = cpus
        .iter()
        .map(|&cpu| (cpu, event.as_ref().and_then(|_, event| open(cpu, *event))))
        .collect();
    if opened.iter().all(|(_, event)| event.value().is_none()) {
        if observed.counts.is_empty() {
            observed.counter = Some(counter);
            observed.counts = opened.into_iter().map(|(cpu, why)| (cpu, why.map(|_| 0))).collect();
        }
        return;
    }
    observed.counter = Some(counter);
    observed.duration_ns = pass(ctx, observed);
    observed.counts = opened.into_iter().map(|(cpu, event)| (cpu, event.and_then(count))).collect();
}

/// Opens the event on a CPU, for all that runs there.
fn open(cpu: u32, (kind, config): (u32, u64)) -> Reading<OwnedFd> {
    /// `pinned`: always on a counter, or in error; never a share of the time.
    const PINNED: u64 = 1 << 2;
    let attr = perf::Attr { kind, config, flags: PINNED, ..perf::Attr::default() };
    // Every task.
    match perf::open(&attr, None, cpu) {
        Ok(event) => Reading::known("perf_event_open", event),
        // No PMU, or none with this event: no right helps.
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {
                Reading::absent("perf_event_open")
            }
            _ => Reading::denied("perf_event_open", error.to_string()),
        },
    }
}

/// What an event has counted since it was opened.
fn count(path: String, event: OwnedFd) -> Reading<u64> {
    let mut bytes = [0_u8; 8];
    match rustix::io::read(&event, &mut bytes) {
        Ok(8) => Reading::known(path, u64::from_ne_bytes(bytes)),
        Ok(_) => Reading::denied(path, "the CPU had no free counter for it"),
        Err(error) => Reading::denied(path, error.to_string()),
    }
}

/// Looks for gaps on one CPU, a housekeeping one where there is one: firmware stops all.
fn measure_gaps(ctx: &TrialContext<'_>, observed: &mut SmiObservation) {
    let online = ctx.facts.cpus.online.value();
    let last = || online.and_then(|online| online.iter().last());
    let Some(cpu) = ctx.housekeeping.iter().last().or_else(last) else { return };
    let began = Instant::now();
    let tracer = HwlatRun::start(ctx.root, cpu, GAP_NS);
    observed.gaps = spin_on(ctx, cpu);
    let looked = tracer.and_then(|tracer| tracer.end(began.elapsed()));
    observed.hwlat = match looked {
        Ok(look) => Reading::known("current_tracer", look),
        Err(TracefsError::NoTracer { .. }) => Reading::absent("available_tracers"),
        Err(error) => Reading::denied("current_tracer", error.to_string()),
    };
}

/// The loop, on a thread of its own.
fn spin_on(ctx: &TrialContext<'_>, cpu: u32) -> Option<GapLook> {
    let one = CpuList::new([cpu]);
    let steal = || task::times(ctx.root, &one);
    let before = steal();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (switched, beneath, duration_ns) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("rtproof/gaps".into());
        let looks = thread.spawn_scoped(scope, || spin(cpu, ctx.duration_ns, &stop)).ok()?;
        ctx.wait(sys::now_ns(), ctx.duration_ns, |_| looks.is_finished());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        looks.join().ok()?
    })?;
    // A CPU that went off meanwhile has no line.
    let steal_ms = before.and_then(|path, before| {
        steal().and_then(|_, after| match (before.first(), after.first()) {
            (Some(before), Some(after)) => Reading::known(path, after.since(before).steal_ms),
            _ => Reading::absent(path),
        })
    });
    Some(GapLook { cpu, duration_ns, threshold_ns: GAP_NS, switched, beneath, steal_ms })
}

/// The loop; `None`: it may not run there.
fn spin(
    cpu: u32,
    duration_ns: u64,
    stop: &std::sync::atomic::AtomicBool,
) -> Option<(GapCounts, GapCounts, u64)> {
    sys::block_signals();
    pin(cpu).ok()?;
    let (mut switched, mut beneath) = (GapCounts::default(), GapCounts::default());
    let mut preemptions = sys::usage().preemptions;
    let start_ns = sys::now_ns();
    let mut last_ns = start_ns;
    loop {
        let now_ns = sys::now_ns();
        if now_ns - last_ns > GAP_NS {
            let now = sys::usage().preemptions;
            let gaps = if now > preemptions { &mut switched } else { &mut beneath };
            gaps.add(now_ns - last_ns);
            preemptions = now;
            // Asking took time.
            last_ns = sys::now_ns();
        } else {
            last_ns = now_ns;
        }
        let is_stopped = stop.load(std::sync::atomic::Ordering::Relaxed);
        if last_ns - start_ns >= duration_ns || is_stopped {
            return Some((switched, beneath, last_ns - start_ns));
        }
    }
}

/// A CPU that is not a real-time one where a package has one: to read a register the kernel
/// interrupts the CPU.
fn one_of_each_package(ctx: &TrialContext<'_>) -> Vec<u32> {
    let mut firsts: Vec<(Option<u32>, u32)> = Vec::new();
    for cpu in &ctx.facts.cpus.cpus {
        let package = cpu.package.value().copied();
        match firsts.iter_mut().find(|(known, _)| *known == package) {
            Some((_, first)) if ctx.rt_cpus.contains(*first) && !ctx.rt_cpus.contains(cpu.id) => {
                *first = cpu.id;
            }
            Some(_) => {}
            None => firsts.push((package, cpu.id)),
        }
    }
    firsts.into_iter().map(|(_, cpu)| cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::testing::try_out;

    #[test]
    fn what_is_not_counted_is_looked_for() {
        let Observation::Smi(observed) = try_out(&Smi, 100_000_000, false) else {
            panic!("another observation");
        };
        let is_counted = observed.counts.iter().any(|(_, count)| count.value().is_some());
        assert_eq!(observed.duration_ns > 0, is_counted, "{observed:?}");
        if is_counted {
            return;
        }
        if let Some(gaps) = observed.gaps {
            assert!(gaps.duration_ns >= 90_000_000, "{gaps:?}");
            assert!(gaps.switched.sum_ns + gaps.beneath.sum_ns <= gaps.duration_ns, "{gaps:?}");
        }
    }

    #[test]
    fn a_stop_ends_it() {
        let start_ns = sys::now_ns();
        try_out(&Smi, 60_000_000_000, true);
        assert!(sys::now_ns() - start_ns < 10_000_000_000);
    }
}
