//! What a kernel image says of itself before it is booted: architecture, release, whether QEMU can
//! start it without its own unpacking, and the configuration inside.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use memchr::memmem;

use crate::{Arch, modules};

/// A kernel image: its architecture, release and unpacked kernel.
#[derive(Clone, Debug)]
pub struct Image {
    pub arch: Arch,
    /// `uname -r`, as far as it is found.
    pub release: Option<String>,
    /// The kernel itself, unpacked, where a program for that is here.
    pub kernel: Option<Vec<u8>>,
    /// Whether `kernel` is an ELF file that QEMU starts by its PVH note.
    pub has_pvh: bool,
    /// Image for QEMU if it is not the file itself: aarch64's Image, unpacked.
    pub is_packed: bool,
}

impl Image {
    /// Finds architecture, release and unpacked kernel in the bytes of an image.
    ///
    /// # Errors
    /// No kernel image, or of another architecture.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let (arch, kernel) = if bytes.get(0x202..0x206) == Some(b"HdrS") {
            ensure!(is_64_bit(bytes), "a 32-bit x86 kernel; guests are x86-64 or aarch64");
            (Arch::X86_64, modules::bootable(bytes).ok())
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
                !modules::is_zimage(bytes),
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
        // The words themselves occur in the program text, too.
        packed.starts_with(b"\x1f\x8b").then(|| modules::unpacked(packed).ok()).flatten()
    }
}

/// The architecture of an ELF file; `None`: no ELF file.
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
    let kernel = modules::unpacked(payload)?;
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

// Archives as the kernel unpacks them at boot: cpio in its "newc" form, without compression.
//
// The format is the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. Times and
// owners are zero, so that the same content gives the same bytes.

/// An archive that grows. Folders must come before what is in them.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_000;

const FILE: u32 = 0o100_000;

const LINK: u32 = 0o120_000;

const CHARACTER_DEVICE: u32 = 0o020_000;

impl Archive {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder. Paths have no slash at their beginning.
    pub fn folder(&mut self, path: &str, mode: u32) {
        self.member(path, FOLDER | mode, (0, 0), &[]);
    }

    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.member(path, FILE | mode, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.member(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) {
        self.member(path, CHARACTER_DEVICE | mode, (major, minor), &[]);
    }

    /// Adds a file or a folder with all that is in it, as `name`.
    ///
    /// # Errors
    /// A file cannot be read, or is neither a file nor a folder.
    pub fn tree(&mut self, path: &Path, name: &str) -> Result<()> {
        let failed = || format!("{}: cannot be read", path.display());
        let metadata = fs::metadata(path).with_context(failed)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_file() {
            let bytes = rtproof_host::door::read_bytes(path, MAX).with_context(failed)?;
            self.file(name, mode, &bytes);
            return Ok(());
        }
        if !metadata.is_dir() {
            bail!("{}: neither a file nor a folder; a guest cannot have it", path.display());
        }
        self.folder(name, mode);
        for inside in sorted(path)? {
            let file = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.tree(&inside, &format!("{name}/{file}"))?;
        }
        Ok(())
    }

    /// The whole archive. Another one may follow it.
    pub fn finish(mut self) -> Vec<u8> {
        self.member("TRAILER!!!", 0, (0, 0), &[]);
        self.pad(512);
        self.bytes
    }

    /// # Panics
    /// A file of 4 GiB or more: the format cannot hold it, and no guest could.
    fn member(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file in an initramfs is below 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        let links = if mode & 0o170_000 == FOLDER { 2 } else { 1 };
        let fields =
            [self.entries, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
        self.bytes.extend_from_slice(content);
        self.pad(4);
    }

    fn pad(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }
}

/// What is in a folder, always in the same order.
pub fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("{}: cannot be listed", dir.display());
    let mut inside = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        inside.push(entry.with_context(failed)?.path());
    }
    inside.sort();
    Ok(inside)
}

// Files on their way out of a guest: lines of base64 on its console, the one way that every kernel
// with a serial console has. What comes back is checked: a guest is not trusted with paths here.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes of one line.
const LINE: usize = 57;

/// Limit of all files together, unpacked.
const MAX: u64 = 1 << 30;

/// A file: name without a folder, content.
pub type GuestFile = (String, Vec<u8>);

/// The lines that carry these files.
///
/// # Errors
/// None is expected: it is written to memory.
pub fn pack(files: &[GuestFile]) -> Result<Vec<String>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, content) in files {
        writeln!(packed, "{} {name}", content.len())?;
        packed.write_all(content)?;
    }
    let packed = packed.finish()?;
    Ok(packed.chunks(LINE).map(encoded).collect())
}

/// The files of these lines.
///
/// # Errors
/// A line is damaged or missing, or a name would leave the folder.
pub fn unpack(lines: &[String]) -> Result<Vec<GuestFile>> {
    let mut packed = Vec::new();
    for line in lines {
        packed.extend(decoded(line).with_context(|| format!("not base64: {line:?}"))?);
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(&packed[..]).take(MAX + 1).read_to_end(&mut bytes);
    read.context("what came over the console is damaged")?;
    ensure!(bytes.len() as u64 <= MAX, "the guest sent more than {MAX} bytes");
    let mut rest = &bytes[..];
    let mut files = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').context("a name is cut off")?;
        let head = std::str::from_utf8(&rest[..end]).context("a name is not text")?;
        let (size, name) = head.split_once(' ').with_context(|| format!("no name: {head:?}"))?;
        let size: usize = size.parse().with_context(|| format!("no size: {head:?}"))?;
        if !is_plain(name) {
            bail!("the guest names a file {name:?}, which is not taken");
        }
        rest = &rest[end + 1..];
        let content = rest.get(..size).with_context(|| format!("{name}: cut off"))?;
        files.push((name.to_owned(), content.to_vec()));
        rest = &rest[size..];
    }
    Ok(files)
}

/// Whether a name stays in its folder and hides nothing.
pub fn is_plain(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !name.is_empty()
        && name.len() < 200
        && !name.starts_with(['.', '-'])
        && name.chars().all(is_fine)
}

fn encoded(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(LINE.div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let index = (word >> (18 - 6 * at) & 63) as usize;
            line.push(if at <= three.len() { ALPHABET[index].into() } else { '=' });
        }
    }
    line
}

fn decoded(line: &str) -> Option<Vec<u8>> {
    let text = line.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 || !line.len().is_multiple_of(4) || line.len() - text.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(line.len() / 4 * 3);
    for four in text.chunks(4) {
        let mut word = 0_u32;
        for at in 0..4 {
            let value = four.get(at).map_or(Some(0), |c| ALPHABET.iter().position(|a| a == c))?;
            word = word << 6 | u32::try_from(value).ok()?;
        }
        bytes.extend(&word.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
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
        let own = fs::read("/proc/self/exe").unwrap();
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

#[cfg(test)]
mod cpio_tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use super::*;

    fn small() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.folder("etc", 0o755);
        archive.file("etc/odd", 0o640, b"12345");
        archive.link("sh", "bin/busybox");
        archive.device("console", 0o600, 5, 1);
        archive.finish()
    }

    #[test]
    fn members_are_aligned_and_sized() {
        let bytes = small();
        assert_eq!(bytes.len() % 512, 0);
        assert_eq!(&bytes[..6], b"070701");
        // The header has 110 bytes; with "etc\0" that is 114, padded to 116.
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(&bytes[116 + 54..116 + 62], b"00000005");
        assert_eq!(&bytes[116 + 120..116 + 125], b"12345");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "what is left out is said")]
    fn other_programs_read_it() {
        let listed = ["cpio", "busybox"].into_iter().find_map(|program| {
            let mut command = Command::new(program);
            if program == "busybox" {
                command.arg("cpio");
            }
            command.args(["-t", "-v"]).env("TZ", "UTC").stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().ok()?;
            child.stdin.take()?.write_all(&small()).ok()?;
            String::from_utf8(child.wait_with_output().ok()?.stdout).ok()
        });
        let Some(listed) = listed else {
            eprintln!("left out: neither cpio nor busybox is installed");
            return;
        };
        let lines: Vec<_> = listed.lines().collect();
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" etc"), "{listed}");
        assert!(lines[1].starts_with("-rw-r-----") && lines[1].ends_with(" etc/odd"), "{listed}");
        assert!(lines[2].ends_with("sh -> bin/busybox"), "{listed}");
        assert!(lines[3].starts_with("crw-------"), "{listed}");
    }
}

#[cfg(test)]
mod files_tests {
    use super::*;

    fn files() -> Vec<GuestFile> {
        let noise: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
        vec![("prove.rtproof".into(), noise), ("empty.err".into(), vec![])]
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let lines = pack(&files()).unwrap();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 76));
        assert_eq!(unpack(&lines).unwrap(), files());
        assert_eq!(encoded(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        assert_eq!(decoded("YW55IGNhcm5hbCBwbGVhcw==").unwrap(), b"any carnal pleas");
    }

    #[test]
    fn damage_is_an_error_and_never_a_shorter_file() {
        let lines = pack(&files()).unwrap();
        for at in 0..lines.len() {
            let mut cut = lines.clone();
            cut.remove(at);
            assert!(unpack(&cut).is_err(), "line {at}");
            let mut odd = lines.clone();
            odd[at] = "[    2.0] BUG: scheduling while atomic".into();
            assert!(unpack(&odd).is_err(), "line {at}");
        }
        assert!(unpack(&[]).is_err());
    }

    #[test]
    fn a_guest_writes_nowhere_else() {
        for name in ["../x", "/etc/passwd", "a/b", ".hidden", "", "a b", "x\u{1b}"] {
            let lines = pack(&[(name.into(), b"x".to_vec())]).unwrap();
            assert!(unpack(&lines).is_err(), "{name:?}");
        }
    }
}
