//! SMI: how many system management interrupts came? Intel CPUs count them in a register; firmware
//! runs in them, on all CPUs at once, and no kernel can hold them off. The register is read before
//! and after, on one CPU of each package; nothing is loaded for it.

use rtproof_host::{Reading, msr};
use rtproof_model::trial::SmiObservation;

use super::{Context, Length, Observation, Trial};
use crate::sys;

/// See the header.
#[derive(Clone, Copy, Debug)]
pub struct Smi;

impl Trial for Smi {
    fn name(&self) -> &'static str {
        "smi"
    }

    fn about(&self) -> &'static str {
        "counts system management interrupts; Intel, with the msr module"
    }

    fn length(&self) -> Length {
        Length::Time { default_ns: 10_000_000_000, longest_ns: 600_000_000_000 }
    }

    fn observe(&self, ctx: &Context<'_>) -> Observation {
        let vendor = vendor(ctx);
        let mut seen = SmiObservation { vendor, duration_ns: 0, counts: Vec::new() };
        if seen.vendor.value().is_none_or(|vendor| vendor != "GenuineIntel") {
            return Observation::Smi(seen);
        }
        let read = |cpu| msr::read(ctx.root, cpu, msr::SMI_COUNT);
        let before: Vec<(u32, Reading<u64>)> =
            one_of_each_package(ctx).into_iter().map(|cpu| (cpu, read(cpu))).collect();
        if before.iter().any(|(_, count)| count.value().is_some()) {
            seen.duration_ns = ctx.wait(sys::now_ns(), ctx.duration_ns, |_| false);
        }
        let since = |(cpu, before): (u32, Reading<u64>)| {
            let count = before.and_then(|_, before| {
                // The register is of 32 bits.
                read(cpu).map(|after| u64::from((after as u32).wrapping_sub(before as u32)))
            });
            (cpu, count)
        };
        seen.counts = before.into_iter().map(since).collect();
        Observation::Smi(seen)
    }
}

/// On x86 before 5.19 reading /proc/cpuinfo interrupts busy CPUs: nothing is measured yet.
fn vendor(ctx: &Context<'_>) -> Reading<String> {
    ctx.root.read_text("/proc/cpuinfo").and_then(|path, cpuinfo| {
        let line = cpuinfo.lines().find(|line| line.starts_with("vendor_id"));
        match line.and_then(|line| line.split_once(':')) {
            Some((_, vendor)) => Reading::known(path, vendor.trim().to_owned()),
            None => Reading::absent(path),
        }
    })
}

/// A CPU that is not a real-time one where a package has one: to read a register the kernel
/// interrupts the CPU.
fn one_of_each_package(ctx: &Context<'_>) -> Vec<u32> {
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
    fn nothing_is_waited_for_where_nothing_can_be_read() {
        let Observation::Smi(seen) = try_out(&Smi, 100_000_000, false) else {
            panic!("another observation");
        };
        let is_readable = seen.counts.iter().any(|(_, count)| count.value().is_some());
        assert_eq!(seen.duration_ns > 0, is_readable, "{seen:?}");
    }
}
