//! /proc/interrupts by CPU. Only sums are kept: a large machine has a hundred thousand numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Reading,
    facts::irq::{Row, table},
};

/// What /proc/interrupts counts, by CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Rows with a name: LOC, RES, CAL, TLB, IPI0 ...
    pub rows: Vec<CounterRow>,
    pub devices: Vec<DeviceCount>,
}

/// A row with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterRow {
    /// Name, e.g. `TLB`.
    pub name: String,
    /// What the kernel calls it, e.g. `TLB shootdowns`.
    pub what: String,
    /// Count of each CPU of `devices`, in the same order.
    pub counts: Vec<u64>,
}

/// Interrupts of devices on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCount {
    pub cpu: u32,
    pub count: u64,
    /// The interrupt that came most often, and how often.
    pub most: Option<(u32, u64)>,
}

pub(super) fn read(interrupts: &Reading<String>) -> Reading<Counters> {
    interrupts.as_ref().and_then(|path, text| {
        let (cpus, lines) = table(text);
        if cpus.is_empty() {
            let header = text.lines().next().unwrap_or_default();
            return Reading::malformed(path, header, "a header CPU0 CPU1 ...");
        }
        let device = |&cpu: &u32| DeviceCount { cpu, count: 0, most: None };
        let mut devices: Vec<DeviceCount> = cpus.iter().map(device).collect();
        let mut rows = Vec::new();
        for Row { label, counts, about } in lines.filter(|row| row.counts.len() == cpus.len()) {
            let what = about.split_whitespace().collect::<Vec<_>>().join(" ");
            match label.parse::<u32>() {
                Ok(_) if is_per_cpu(&what) => {}
                Ok(number) => add_device(&mut devices, number, &counts),
                Err(_) => rows.push(CounterRow { name: label.into(), what, counts }),
            }
        }
        Reading::known(path, Counters { rows, devices })
    })
}

/// Timers and counters of the CPU itself, which have a number on Arm.
fn is_per_cpu(what: &str) -> bool {
    ["arch_timer", "arm-pmu", "kvm guest vtimer", "local-timer", "twd"]
        .iter()
        .any(|name| what.ends_with(name))
}

fn add_device(devices: &mut [DeviceCount], number: u32, counts: &[u64]) {
    for (device, &count) in devices.iter_mut().zip(counts) {
        device.count = device.count.saturating_add(count);
        if count > device.most.map_or(0, |(_, most)| most) {
            device.most = Some((number, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_rows() {
        let text = "      CPU0  CPU3\n  8: 3 0 IO-APIC 8-edge rtc0\n 24: 10 32 PCI-MSIX 1-edge a\n \
                    27: 900 800 GICv3 27 Level arch_timer\nTLB: 1 2 TLB shootdowns\nERR: 0\n";
        let found = read(&Reading::known("/proc/interrupts", text.into()));
        let found = found.value().unwrap();
        let device = |cpu, count, most| DeviceCount { cpu, count, most };
        assert_eq!(found.devices, [device(0, 13, Some((24, 10))), device(3, 32, Some((24, 32)))]);
        assert_eq!(found.rows.len(), 1);
        assert_eq!((found.rows[0].name.as_str(), found.rows[0].counts[1]), ("TLB", 2));
        assert_eq!(found.rows[0].what, "TLB shootdowns");
        assert!(read(&Reading::known("p", "x".into())).value().is_none());
    }
}
