//! Model-specific registers of x86 CPUs, read through the `msr` driver, which needs CAP_SYS_RAWIO
//! (arch/x86/kernel/msr.c; lockdown refuses writing, not reading). The CPU is interrupted to read
//! them: never within a measurement of that CPU.

use std::{fs::File, os::unix::fs::FileExt};

use crate::{Reading, Root};

/// SMIs since reset, of Intel CPUs (arch/x86/include/asm/msr-index.h, `MSR_SMI_COUNT`; Intel SDM
/// volume 4).
pub const SMI_COUNT: u64 = 0x34;

/// A register of a CPU of the live machine. Absent without the driver (`modprobe msr`); denied
/// without the right, where the CPU does not have the register, and for a captured machine.
pub fn read(root: &Root, cpu: u32, register: u64) -> Reading<u64> {
    let path = format!("/dev/cpu/{cpu}/msr");
    if !root.is_live() {
        return Reading::denied(path, "only a live machine has registers");
    }
    #[expect(clippy::disallowed_methods, reason = "a device of the live machine only")]
    let file = File::open(&path);
    let mut bytes = [0; 8];
    // The offset is the register's number.
    let read = file.and_then(|file| file.read_exact_at(&mut bytes, register));
    match read {
        Ok(()) => Reading::known(path, u64::from_ne_bytes(bytes)),
        Err(error) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            // ENXIO: the device file is there and the driver is not, or the CPU is offline.
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NXIO | rustix::io::Errno::NODEV) => {
                Reading::absent(path)
            }
            _ => Reading::denied(path, error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_machine_has_no_registers() {
        let tree = crate::testing::Tree::new(&[("dev/cpu/0/msr", "12345678")]);
        let read = read(&tree.root(), 0, SMI_COUNT);
        assert!(read.why_unknown().is_some_and(|why| why.contains("live machine")));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_absent() {
        assert!(read(&Root::live(), 4000, SMI_COUNT).value().is_none());
    }
}
