//! What is refused before a boot, and the command line of a guest.

use super::*;

#[test]
fn the_end_of_the_command_line_is_ours() {
    let line = command_line(Arch::X86_64, GuestMode::Kvm, " isolcpus=1 ");
    assert!(line.contains("console=ttyS0") && line.ends_with("isolcpus=1 -- guest-init"), "{line}");
    assert!(!line.contains("mitigations"), "what a check reads is not changed: {line}");
    assert!(command_line(Arch::X86_64, GuestMode::Icount, "").contains("tsc=reliable"));
    assert!(check_append("a b=c").is_ok());
    assert!(check_append("a -- b").is_err() && check_append("rdinit=/bin/sh").is_err());
}

#[test]
fn an_initramfs_that_does_not_fit_is_refused() {
    assert!(check_memory(512, 30 << 20).is_ok());
    let error = check_memory(256, 150 << 20).unwrap_err().to_string();
    assert!(error.contains("at least 428"), "{error}");
}

#[test]
fn only_a_guest_becomes_init() {
    let words = |line: &str| line.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
    assert!(init(words("rtproof guest-init").into_iter()).is_ok());
    let error = init(words("/init unknown guest-init").into_iter()).unwrap_err().to_string();
    assert!(error.contains("kernel boot"), "{error}");
}

#[test]
fn the_kernel_reports_how_many_cpus_came_up() {
    assert_eq!(cpus_up("[    0.1] smp: Brought up 1 node, 2 CPUs"), Some(2));
    assert_eq!(cpus_up("[    0.1] smp: Brought up 2 nodes, 16 CPUs"), Some(16));
    assert_eq!(cpus_up("[    0.1] smp: Bringing up secondary CPUs ..."), None);
}
