//! Swap and transparent huge pages.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// Memory settings that bring page faults and compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Active swap areas.
    pub swaps: Reading<Vec<Swap>>,
    /// transparent_hugepage/enabled: always, madvise or never.
    pub thp_enabled: Reading<String>,
    /// transparent_hugepage/defrag.
    pub thp_defrag: Reading<String>,
    /// Memory that can be had without swapping, bytes (MemAvailable).
    pub available_bytes: Reading<u64>,
}

/// One swap area (/proc/swaps).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swap {
    /// File or device.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// In use, bytes.
    pub used_bytes: u64,
}
