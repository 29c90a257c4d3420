//! Boots kernels under QEMU. The lab does so for its tests, `rtproof kernel boot` for its users:
//! both make an initramfs, start QEMU, follow the console and bring results out.

#![expect(
    clippy::disallowed_methods,
    reason = "kernel images, modules and programs that the caller names; results in its own folder"
)]

pub mod arch;
pub mod console;
pub mod cpio;
pub mod emulator;
pub mod files;
pub mod hardware;
pub mod image;
pub mod inside;
pub mod modules;
pub mod plan;
pub mod process;
pub mod programs;
pub mod vmlinux;
