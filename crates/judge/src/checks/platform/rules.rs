//! Rows: firmware, virtualization, security.

use rtproof_host::knobs::platform as knobs;

use crate::Impact;
use crate::checks::rule::{Absent, Rule, Want};

/// The table.
pub(super) const RULES: &[Rule] = &[
    Rule {
        knob: &knobs::SELINUX_AVC,
        title: "cache of SELinux's decisions",
        why: "a decision that is no longer in the cache is worked out again from the policy, \
              within a system call",
        source: "security/selinux/avc.c (avc_cache_threshold, 512 by default); tuned, profile \
                 openshift (8192)",
        trade_off: None,
        impact: Impact::Microseconds,
        want: |_| Want::at_least(8192).or_doubtful(),
        absent: Absent::NoSuchThing("SELinux is not in force"),
        applies: None,
        good: "8192",
        bad: "512",
    },
    Rule {
        knob: &knobs::IOMMU,
        title: "devices behind an IOMMU",
        why: "each buffer that a driver gives back has its translation invalidated, at once or in \
              batches, and the driver waits for the IOMMU",
        source: "Documentation/ABI/testing/sysfs-kernel-iommu_groups; \
                 Documentation/admin-guide/kernel-parameters.txt (iommu.passthrough, iommu.strict)",
        trade_off: Some(
            "a device without translation can write to any memory; devices passed to guests are \
             translated all the same",
        ),
        impact: Impact::Microseconds,
        want: |_| {
            Want::one_of(&["identity"]).set("1").text("identity (not translated)").or_doubtful()
        },
        absent: Absent::NoSuchThing("no device is behind an IOMMU"),
        applies: None,
        good: "identity",
        bad: "DMA",
    },
];
