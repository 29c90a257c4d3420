//! Rows: firmware, virtualization, security.

use rtproof_host::knobs::platform as knobs;

use crate::Impact;
use crate::check::{Check, Judge};
use crate::value::{Absent, Want};

pub(super) static SELINUX_AVC: Check = Check {
    title: "cache of SELinux's decisions",
    why: "a decision that is no longer in the cache is worked out again from the policy, within a \
          system call",
    source: "security/selinux/avc.c (avc_cache_threshold, 512 by default); tuned, profile \
             openshift (8192)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::at_least(8192).or_doubtful(),
        Absent::NoSuchThing("SELinux is not in force"),
    ),
    ..Check::of(&[&knobs::SELINUX_AVC])
};

pub(super) static IOMMU: Check = Check {
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
    judge: Judge::value(
        |_| Want::one_of(&["identity"]).set("1").text("identity (not translated)").or_doubtful(),
        Absent::NoSuchThing("no device is behind an IOMMU"),
    ),
    ..Check::of(&[&knobs::IOMMU])
};
