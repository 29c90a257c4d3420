//! What stands between this system and the hardware: hypervisor, container, stolen time.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// Virtualisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Virt {
    /// Name of the hypervisor, `None` on bare metal.
    pub hypervisor: Reading<Option<String>>,
    /// Name of the container runtime, `None` outside.
    pub container: Reading<Option<String>>,
    /// Steal time per CPU since boot, in clock ticks (column 8 of /proc/stat).
    pub steal_ticks: Reading<Vec<(u32, u64)>>,
}
