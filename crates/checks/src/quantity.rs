//! Quantities as text: those of the statistics, and CPU lists.

use rtproof_host::CpuList;
pub use rtproof_stats::quantity::*;

/// `CPU 2` or `CPUs 2-3`.
pub fn cpus(cpus: &CpuList) -> String {
    cpus.phrase()
}
