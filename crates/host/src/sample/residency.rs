//! Idle-state residency as the hardware counted it: the MSRs of Intel's cores.
//!
//! Reading a register interrupts its CPU (arch/x86/kernel/msr.c, `rdmsr_safe_on_cpu`), so this is
//! only for CPUs that nobody measures, and where the user asked for it. A hypervisor answers reads
//! of registers that it does not know as it likes (KVM: `ignore_msrs`), so a guest has none.

use std::collections::BTreeMap;

use crate::{CpuList, Facts, Reading, Root, msr};

/// The time stamp counter, at whose rate the others count (Intel SDM volume 4, table 2-2).
const TSC: u64 = 0x10;
/// MSR_CORE_C3_RESIDENCY, MSR_CORE_C6_RESIDENCY, MSR_CORE_C7_RESIDENCY.
const STATES: [(u64, &str); 3] = [(0x3fc, "CC3"), (0x3fd, "CC6"), (0x3fe, "CC7")];

/// IA32_THERM_STATUS: bit 31 valid, bits 16 to 22 degrees below the one at which the CPU throttles.
const THERM_STATUS: u64 = 0x19c;
/// MSR_TEMPERATURE_TARGET: bits 16 to 23 have that temperature (Intel SDM volume 4, table 2-2).
const TEMPERATURE_TARGET: u64 = 0x1a2;

/// Counters of one CPU: time stamp, then each state that it has.
type Counters = (u64, BTreeMap<u64, u64>);

/// Reads them again and again.
#[derive(Debug)]
pub struct ResidencySampler {
    root: Root,
    last: BTreeMap<u32, Counters>,
}

/// Name of a state and its share of the time, 1/1000.
pub type Shares = Vec<(&'static str, u32)>;

impl ResidencySampler {
    /// Of some CPUs.
    ///
    /// # Errors
    /// Why there are no such counters here: a phrase.
    pub fn new(root: &Root, facts: &Facts, cpus: &CpuList) -> Result<Self, String> {
        match facts.virt.hypervisor.value() {
            Some(None) => {}
            Some(Some(name)) => return Err(format!("this is a guest ({name}) without its own")),
            None => return Err("whether this is a guest is not known".into()),
        }
        let model = facts.identity.cpu_model.value().map_or("", String::as_str);
        if !model.contains("Intel") {
            return Err(format!("they are known of Intel's CPUs alone, and this is \"{model}\""));
        }
        let first = cpus.iter().next().ok_or("no CPU may be interrupted for it")?;
        match msr::read(root, first, TSC) {
            read if read.value().is_some() => {}
            read if read.is_absent() => return Err(format!("{} (modprobe msr)", read.path)),
            read => {
                return Err(format!("{}: {}", read.path, read.why_unknown().unwrap_or_default()));
            }
        }
        let mut sampler = Self { root: root.clone(), last: BTreeMap::new() };
        let _ = sampler.sample(cpus);
        if sampler.last.values().all(|(_, states)| states.is_empty()) {
            return Err("the CPUs have none of the registers 0x3fc to 0x3fe".into());
        }
        Ok(sampler)
    }

    /// Shares since the reading before, by CPU.
    pub fn sample(&mut self, cpus: &CpuList) -> BTreeMap<u32, Shares> {
        let read = |cpu| Some((cpu, counters(|register| msr::read(&self.root, cpu, register))?));
        let now: BTreeMap<u32, Counters> = cpus.iter().filter_map(read).collect();
        let last = std::mem::replace(&mut self.last, now);
        let of = |(cpu, now): (&u32, &Counters)| Some((*cpu, shares(now, last.get(cpu)?)?));
        self.last.iter().filter_map(of).collect()
    }
}

impl ResidencySampler {
    /// Temperatures of the cores of some CPUs, thousandths of a degree Celsius; those without a
    /// valid reading are left out.
    pub fn temperatures(&self, cpus: &CpuList) -> BTreeMap<u32, i64> {
        let of = |cpu| {
            let read = |register| msr::read(&self.root, cpu, register);
            Some((cpu, temperature(read)?))
        };
        cpus.iter().filter_map(of).collect()
    }
}

fn temperature(read: impl Fn(u64) -> Reading<u64>) -> Option<i64> {
    let status = read(THERM_STATUS).into_value().filter(|status| status >> 31 & 1 == 1)?;
    let target = read(TEMPERATURE_TARGET).into_value()? >> 16 & 0xff;
    let below = status >> 16 & 0x7f;
    // A target of 0 is a processor that does not say it.
    let degrees = (target > 0).then(|| target.cast_signed() - below.cast_signed())?;
    Some(degrees * 1000)
}

fn counters(read: impl Fn(u64) -> Reading<u64>) -> Option<Counters> {
    let states = STATES.iter().filter_map(|&(register, _)| {
        let value = read(register).into_value()?;
        Some((register, value))
    });
    let states = states.collect();
    Some((read(TSC).into_value()?, states))
}

/// `None` where the time stamp went backwards: the CPU was off.
fn shares(now: &Counters, last: &Counters) -> Option<Shares> {
    let ticks = now.0.checked_sub(last.0).filter(|&ticks| ticks > 0)?;
    let share = |&(register, name): &(u64, &'static str)| {
        let since = now.1.get(&register)?.checked_sub(*last.1.get(&register)?)?;
        let permille = u128::from(since) * 1000 / u128::from(ticks);
        Some((name, u32::try_from(permille.min(1000)).unwrap_or(1000)))
    };
    let shares: Shares = STATES.iter().filter_map(share).collect();
    (!shares.is_empty()).then_some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_time_stamp() {
        let at = |tsc, c6, c7| (tsc, BTreeMap::from([(0x3fd, c6), (0x3fe, c7)]));
        assert_eq!(
            shares(&at(3000, 950, 7), &at(1000, 100, 7)),
            Some(vec![("CC6", 425), ("CC7", 0)])
        );
        assert_eq!(shares(&at(1000, 1, 1), &at(3000, 0, 0)), None);
        assert_eq!(shares(&(9, BTreeMap::new()), &(1, BTreeMap::new())), None);
    }

    #[test]
    fn a_temperature_is_so_many_degrees_below_the_one_of_throttling() {
        let of = |status: u64, target: u64| {
            temperature(|register| match register {
                THERM_STATUS => Reading::known("msr", status),
                TEMPERATURE_TARGET => Reading::known("msr", target),
                _ => Reading::absent("msr"),
            })
        };
        // 39 below 100 degrees; the other bits say other things.
        assert_eq!(of(1 << 31 | 39 << 16 | 0x88, 100 << 16 | 0x0a00), Some(61_000));
        assert_eq!(of(39 << 16, 100 << 16), None, "not valid");
        assert_eq!(of(1 << 31 | 39 << 16, 0), None, "no target");
        assert_eq!(temperature(|_| Reading::denied("msr", "Input/output error")), None);
    }

    #[test]
    fn a_register_that_is_not_there_is_left_out() {
        let read = |register| match register {
            TSC => Reading::known("msr", 5),
            0x3fd => Reading::known("msr", 4),
            _ => Reading::denied("msr", "Input/output error"),
        };
        assert_eq!(counters(read), Some((5, BTreeMap::from([(0x3fd, 4)]))));
        assert_eq!(counters(|_| Reading::absent("msr")), None);
    }
}
