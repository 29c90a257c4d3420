//! What is between this system and the hardware: hypervisor, container, stolen time.

mod container;
mod hypervisor;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Virt {
    /// Name of the hypervisor, `None` on bare metal.
    pub hypervisor: Reading<Option<String>>,
    /// Name of the container runtime, `None` outside.
    pub container: Reading<Option<String>>,
    /// Steal time per CPU since boot, in clock ticks (column 8 of /proc/stat).
    pub steal_ticks: Reading<Vec<(u32, u64)>>,
}

impl Virt {
    /// Reads what is known of virtualisation; /proc/cpuinfo is handed in.
    pub fn read(root: &Root, cpuinfo: &Reading<String>) -> Self {
        Self {
            hypervisor: hypervisor::read(root, cpuinfo),
            container: container::read(root),
            steal_ticks: root.read_text("/proc/stat").and_then(steal),
        }
    }
}

impl Virt {
    /// Name of the container runtime, where we are known to be in one.
    pub(crate) fn container(root: &Root) -> Option<String> {
        container::read(root).value().cloned().flatten()
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
