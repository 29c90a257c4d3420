//! What a kernel image says of itself before it is booted: architecture, release, whether QEMU can
//! start it without its own unpacking, and the configuration inside.

use anyhow::{Result, bail, ensure};
use memchr::memmem;

use crate::{arch::Arch, modules, vmlinux};

#[derive(Clone, Debug)]
pub struct Image {
    pub arch: Arch,
    /// `uname -r`, as far as it is found.
    pub release: Option<String>,
    /// The kernel itself, unpacked, where a program for that is here.
    pub kernel: Option<Vec<u8>>,
    /// Whether `kernel` is an ELF file that QEMU starts by its PVH note.
    pub has_pvh: bool,
    /// What QEMU is given where it is not the file itself: aarch64's Image, unpacked.
    pub is_packed: bool,
}

impl Image {
    /// Reads an image.
    ///
    /// # Errors
    /// It is none, or none of these architectures.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let (arch, kernel) = if bytes.get(0x202..0x206) == Some(b"HdrS") {
            ensure!(is_64_bit(bytes), "a 32-bit x86 kernel; guests are x86-64 or aarch64");
            (Arch::X86_64, vmlinux::bootable(bytes).ok())
        } else if let Some(arch) = elf(bytes)? {
            ensure!(
                arch == Arch::X86_64,
                "an aarch64 vmlinux, which QEMU does not start: give arch/arm64/boot/Image"
            );
            ensure!(
                has_pvh(bytes),
                "an ELF kernel without a PVH note (CONFIG_PVH), which QEMU does not start: give \
                 arch/x86/boot/bzImage"
            );
            (arch, Some(bytes.to_vec()))
        } else {
            ensure!(
                !vmlinux::is_zimage(bytes),
                "a zImage of 32-bit ARM, without its release; guests are x86-64 or aarch64"
            );
            (Arch::Aarch64, Some(arm(bytes)?))
        };
        let release = kernel.as_deref().and_then(linux_version).or_else(|| x86_version(bytes));
        let has_pvh = kernel.as_deref().is_some_and(has_pvh);
        let is_packed = arch == Arch::Aarch64 && kernel.as_deref() != Some(bytes);
        Ok(Self { arch, release, kernel, has_pvh, is_packed })
    }

    /// The configuration that CONFIG_IKCONFIG puts into the kernel (kernel/configs.c).
    pub fn config(&self) -> Option<Vec<u8>> {
        const BEGIN: &[u8] = b"IKCFG_ST";
        const END: &[u8] = b"IKCFG_ED";
        let kernel = self.kernel.as_deref()?;
        let begin = memmem::find(kernel, BEGIN)? + BEGIN.len();
        let packed = &kernel[begin..];
        let packed = &packed[..memmem::find(packed, END)?];
        // The words themselves stand in the program text, too.
        packed.starts_with(b"\x1f\x8b").then(|| vmlinux::unpacked(packed).ok()).flatten()
    }
}

/// The architecture of an ELF file; `None`: it is none.
///
/// # Errors
/// It is of another one.
pub fn elf(bytes: &[u8]) -> Result<Option<Arch>> {
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    match (bytes.get(4), bytes.get(18..20)) {
        (Some(2), Some([0x3e, 0])) => Ok(Some(Arch::X86_64)),
        (Some(2), Some([0xb7, 0])) => Ok(Some(Arch::Aarch64)),
        (class, machine) => bail!(
            "an ELF file of another architecture (class {}, machine {}); guests are x86-64 or \
             aarch64",
            class.copied().unwrap_or(0),
            machine.map_or(0, |it| u16::from_le_bytes([it[0], it[1]]))
        ),
    }
}

/// Whether an ELF program of 64 bits loads no libraries: it names no interpreter (PT_INTERP).
pub fn is_static(elf: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let word = |at: usize, size: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(elf.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (Some(headers), Some(size), Some(count)) = (word(0x20, 8), word(0x36, 2), word(0x38, 2))
    else {
        return false;
    };
    let kind = |index: usize| word(headers.checked_add(index * size)?, 4);
    (0..count).all(|index| kind(index).is_some_and(|kind| kind != PT_INTERP as usize))
}

/// Bit 0 of `xloadflags` (version 2.12 of the boot protocol, Documentation/arch/x86/boot.rst).
fn is_64_bit(image: &[u8]) -> bool {
    let field = |at: usize| Some(u16::from_le_bytes([*image.get(at)?, *image.get(at + 1)?]));
    field(0x206).is_some_and(|version| version >= 0x20c) && field(0x236).is_some_and(|f| f & 1 == 1)
}

/// aarch64's Image, also packed: by gzip as Debian has it, or behind an EFI stub
/// (drivers/firmware/efi/libstub/zboot-header.S).
fn arm(bytes: &[u8]) -> Result<Vec<u8>> {
    let is_image = |bytes: &[u8]| bytes.get(0x38..0x3c) == Some(b"ARM\x64");
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let payload = match (bytes.get(4..8), word(8), word(12)) {
        (Some(b"zimg"), Some(at), Some(size)) => {
            bytes.get(at as usize..(at as usize).saturating_add(size as usize)).unwrap_or(&[])
        }
        _ => bytes,
    };
    if is_image(payload) {
        return Ok(payload.to_vec());
    }
    let kernel = vmlinux::unpacked(payload)?;
    ensure!(
        is_image(&kernel),
        "not a kernel: neither an x86 bzImage or vmlinux nor an aarch64 Image"
    );
    Ok(kernel)
}

/// Xen's note 18, by which QEMU starts an ELF kernel (include/xen/interface/elfnote.h).
fn has_pvh(elf: &[u8]) -> bool {
    let note = b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0";
    let wide = b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0";
    let notes = modules::section(elf, b".notes").unwrap_or_default();
    memmem::find(notes, note).or_else(|| memmem::find(notes, wide)).is_some()
}

/// `Linux version 6.1.0-50-rt-amd64 (...`.
fn linux_version(kernel: &[u8]) -> Option<String> {
    const WORDS: &[u8] = b"Linux version ";
    let mut rest = kernel;
    // A format string of the same beginning may come first.
    while let Some(at) = memmem::find(rest, WORDS) {
        rest = &rest[at + WORDS.len()..];
        let release = first_word(rest);
        if release.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(release);
        }
    }
    None
}

/// The same of an image that cannot be unpacked here: `kernel_version` of its setup header.
fn x86_version(image: &[u8]) -> Option<String> {
    let at = u16::from_le_bytes([*image.get(0x20e)?, *image.get(0x20f)?]);
    let release = first_word(image.get(usize::from(at) + 0x200..)?);
    release.starts_with(|c: char| c.is_ascii_digit()).then_some(release)
}

fn first_word(bytes: &[u8]) -> String {
    let is_part = |byte: &&u8| byte.is_ascii_graphic();
    let word: Vec<u8> = bytes.iter().take(100).take_while(is_part).copied().collect();
    String::from_utf8_lossy(&word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm_image(more: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 64];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        image.extend(more);
        image
    }

    #[test]
    fn an_image_says_what_it_is() {
        let text = b"Linux version %s Linux version 6.12.1-rt5 (me@here) IKCFG_ST\x1f\x8b";
        let image = Image::read(&arm_image(text)).unwrap();
        assert_eq!(image.arch, Arch::Aarch64);
        assert_eq!(image.release.as_deref(), Some("6.12.1-rt5"));
        assert!(!image.is_packed && image.config().is_none(), "cut off");
        let mut packed = vec![0; 64];
        packed[4..8].copy_from_slice(b"zimg");
        packed[8] = 64;
        packed[12] = 70;
        packed.extend(arm_image(b"behind"));
        assert!(Image::read(&packed).unwrap().is_packed);
    }

    #[test]
    fn a_static_program_names_no_interpreter() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let names_one = memmem::find(&own, b"/ld-linux").is_some();
        assert_eq!(is_static(&own), !(names_one && cfg!(not(target_feature = "crt-static"))));
        assert!(!is_static(&own[..0x39]), "cut off");
    }

    #[test]
    fn what_cannot_be_booted_is_refused() {
        let refused = |bytes: &[u8]| Image::read(bytes).unwrap_err().to_string();
        assert!(refused(b"text").contains("not a kernel"));
        assert!(refused(b"").contains("not a kernel"));
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.resize(64, 0);
        elf[18] = 0xf3;
        assert!(refused(&elf).contains("machine 243"), "RISC-V");
        elf[18] = 0x3e;
        assert!(refused(&elf).contains("bzImage"), "no note");
        let mut old = vec![0; 1024];
        old[0x202..0x206].copy_from_slice(b"HdrS");
        assert!(refused(&old).contains("32-bit"));
        let mut arm = vec![0; 64];
        arm[0x24..0x28].copy_from_slice(&0x016f_2818_u32.to_le_bytes());
        assert!(refused(&arm).contains("zImage of 32-bit ARM"));
    }
}
