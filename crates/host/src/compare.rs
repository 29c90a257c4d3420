//! How a value that was read is compared with one that was written. Knobs say it, changes do it.

use serde::{Deserialize, Serialize};

/// How a value that was read is compared with one that was written: the kernel shows many values
/// otherwise than they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Compare {
    /// The same text but for white space at the ends.
    #[default]
    Text,
    /// The same number: `0x10` is `16`, `Y` is `1`, `N` is `0`.
    Number,
    /// The same set of CPUs: `0-2` is `0,1,2`.
    CpuList,
    /// The same mask of CPUs: `f` is `00000000,0000000f`.
    CpuMask,
    /// The choice in brackets: `always [never]` is `never`.
    Choice,
    /// The word is among those read: scheduler features, where writing `NO_X` shows `NO_X`.
    Word,
    /// Controllers of a group: writing `+cpuset` shows `cpuset`, writing `-cpuset` does not.
    Controller,
}
