//! Made-up kernels for QEMU: a few instructions that write a text to the serial port, then hang or
//! reset.

/// What a made-up kernel does after its text.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Hang,
    Reset,
}

/// A bzImage, as far as QEMU and its boot loader look (Documentation/arch/x86/boot.rst), whose
/// 16-bit setup writes a text to the first serial port.
pub(crate) fn kernel(text: &str, then: Then) -> Vec<u8> {
    const CODE: usize = 0x280;
    const TEXT: u16 = 0x2c0;
    let mut image = vec![0; 512 * 6];
    image[0x1f1] = 4; // Sectors of the setup.
    image[0x1fe..0x202].copy_from_slice(&[0x55, 0xaa, 0xeb, 0x7e]); // jmp CODE
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&[0x0f, 0x02]); // Version 2.15.
    image[0x211] = 1; // LOADED_HIGH
    image[0x214..0x218].copy_from_slice(&0x10_0000_u32.to_le_bytes());
    image[0x22c..0x230].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes()); // initrd_addr_max
    image[0x236] = 1; // XLF_KERNEL_64
    image[0x238..0x23c].copy_from_slice(&2047_u32.to_le_bytes()); // cmdline_size
    let [low, high] = TEXT.to_le_bytes();
    let mut code = vec![0xbe, low, high]; // mov si, TEXT
    // L: lodsb; test al, al; jz E; mov dx, 0x3f8; out dx, al; jmp L; E:
    code.extend([0xac, 0x84, 0xc0, 0x74, 0x06, 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf5]);
    if matches!(then, Then::Reset) {
        code.extend([0xba, 0xf9, 0x0c, 0xb0, 0x06, 0xee]); // mov dx, 0xcf9; mov al, 6; out dx, al
    }
    code.extend([0xfa, 0xf4, 0xeb, 0xfd]); // cli; hlt; jmp to it
    image[CODE..CODE + code.len()].copy_from_slice(&code);
    let at = usize::from(TEXT);
    assert!(at + text.len() < 0xa00, "the setup has 4 sectors");
    image[at..at + text.len()].copy_from_slice(text.as_bytes());
    image
}

/// Whether QEMU is here.
pub(crate) fn has_qemu() -> bool {
    let here = cfg!(target_arch = "x86_64")
        && rtproof_host::trusted::find_program("qemu-system-x86_64").is_ok();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(here || !is_ci, "CI needs qemu-system-x86_64: scripts/deps.sh");
    if !here {
        eprintln!("left out: qemu-system-x86_64 missing");
    }
    here
}
