//! The initramfs of a guest: an uncompressed newc archive written here, with busybox, init and the
//! modules of its kernel.
