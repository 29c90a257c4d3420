//! The kernel modules that a guest needs, in the order in which they must be loaded, found without
//! depmod: each module names what it depends on in its `.modinfo` section.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use rtproof_host::{door, trusted};

/// Bytes of a file of a kernel's.
const MAX: u64 = 1 << 30;

/// One module to be loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    pub name: String,
    /// Its ELF file, uncompressed, without its signature.
    pub content: Vec<u8>,
    /// What it depends on.
    pub depends: Vec<String>,
    /// Other names under which the kernel asks for it.
    pub aliases: Vec<String>,
}

/// Result for the wanted modules.
#[derive(Debug, Default)]
pub struct Chosen {
    /// In the order in which they can be loaded.
    pub modules: Vec<Module>,
    /// How many of them, from the beginning, are to be loaded at boot.
    pub at_boot: usize,
    /// Built into the kernel.
    pub builtin: Vec<String>,
    pub missing: Vec<String>,
}

/// Chooses from the modules below `tree` (`.../modules/RELEASE`, or a kernel that was built).
///
/// # Errors
/// A vital module is missing, or a module that another depends on.
pub fn choose(tree: &Path, at_boot: &[&str], on_demand: &[&str], vital: &[&str]) -> Result<Chosen> {
    let builtin = tree.join("modules.builtin");
    let builtin = door::read_text(&builtin, MAX)
        .with_context(|| format!("{}: cannot be read", builtin.display()))?;
    let builtin = builtin.lines().map(|line| module_name(Path::new(line))).collect();
    let mut files = BTreeMap::new();
    find(tree, &mut files)?;
    let mut search = Search { builtin, files, seen: HashSet::new(), chosen: Chosen::default() };
    for (index, name) in at_boot.iter().chain(on_demand).enumerate() {
        if index == at_boot.len() {
            search.chosen.at_boot = search.chosen.modules.len();
        }
        if search.builtin.contains(*name) {
            search.chosen.builtin.push((*name).to_owned());
        } else if search.files.contains_key(*name) {
            search.load(name, &[])?;
        } else {
            ensure!(!vital.contains(name), "{}: has no module {name}", tree.display());
            search.chosen.missing.push((*name).to_owned());
        }
    }
    if on_demand.is_empty() {
        search.chosen.at_boot = search.chosen.modules.len();
    }
    Ok(search.chosen)
}

impl Chosen {
    /// `modules.dep` for files named `NAME.ko` in one folder.
    pub fn dependencies(&self) -> String {
        let mut text = String::new();
        for module in &self.modules {
            text.push_str(&format!("{}.ko:", module.name));
            // modprobe wants all that come before, the nearest first.
            let mut all = Vec::new();
            self.add_needed(module, &mut all);
            for name in all {
                text.push_str(&format!(" {name}.ko"));
            }
            text.push('\n');
        }
        text
    }

    fn add_needed<'a>(&'a self, module: &'a Module, all: &mut Vec<&'a str>) {
        for name in &module.depends {
            let Some(needed) = self.modules.iter().find(|module| module.name == *name) else {
                continue;
            };
            all.retain(|known| known != name);
            all.push(name);
            self.add_needed(needed, all);
        }
    }

    pub fn aliases(&self) -> String {
        let each = self.modules.iter();
        let line = |name: &str, alias: &String| format!("alias {alias} {name}\n");
        each.flat_map(|module| module.aliases.iter().map(|alias| line(&module.name, alias)))
            .collect()
    }
}

struct Search {
    builtin: HashSet<String>,
    files: BTreeMap<String, PathBuf>,
    seen: HashSet<String>,
    chosen: Chosen,
}

impl Search {
    /// Loads a module after what it depends on.
    fn load(&mut self, name: &str, above: &[&str]) -> Result<()> {
        if self.builtin.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let path = self.files.get(name).with_context(|| {
            format!("module {name}, needed by {above:?}, is not among those that are there")
        })?;
        let packed = door::read_bytes(path, MAX)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        let mut content = unpacked(&packed).with_context(|| path.display().to_string())?;
        content.truncate(unsigned_length(&content));
        let info = modinfo(&content).with_context(|| path.display().to_string())?;
        let above = [above, &[name]].concat();
        for needed in &info.depends {
            self.load(needed, &above)?;
        }
        for wished in &info.before {
            // An alias of many modules ("crc32c") or one that was not unpacked is left to the
            // kernel.
            if self.files.contains_key(wished) {
                self.load(wished, &above)?;
            }
        }
        self.chosen.modules.push(Module {
            name: name.to_owned(),
            content,
            depends: info.depends,
            aliases: info.aliases,
        });
        Ok(())
    }
}

/// What a module says about those it needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Info {
    depends: Vec<String>,
    before: Vec<String>,
    aliases: Vec<String>,
}

/// Length without the signature, which an emulated CPU checks for up to a second (a kernel that
/// does not insist on it only notes a taint). It ends with its own length and a fixed text, the
/// kernel's include/linux/module_signature.h.
fn unsigned_length(elf: &[u8]) -> usize {
    const MARK: &[u8] = b"~Module signature appended~\n";
    const DESCRIPTION: usize = 12;
    let signature = elf.strip_suffix(MARK).and_then(|rest| {
        let length: [u8; 4] = rest.last_chunk().copied()?;
        rest.len().checked_sub(DESCRIPTION)?.checked_sub(u32::from_be_bytes(length) as usize)
    });
    signature.unwrap_or(elf.len())
}

/// Reads the `.modinfo` section: strings `key=value`, each ended by a zero byte.
fn modinfo(elf: &[u8]) -> Result<Info> {
    let section = section(elf, b".modinfo").context("not a kernel module: no .modinfo section")?;
    let mut info = Info::default();
    for line in section.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        let words = |text: &str, by: &[char]| -> Vec<String> {
            text.split(by).filter(|word| !word.is_empty()).map(normal).collect()
        };
        if let Some(list) = line.strip_prefix("depends=") {
            info.depends = words(list, &[',']);
        } else if let Some(alias) = line.strip_prefix("alias=") {
            info.aliases.push(alias.to_owned());
        } else if let Some((_, list)) =
            line.strip_prefix("softdep=").and_then(|text| text.split_once("pre:"))
        {
            let list = list.split("post:").next().unwrap_or_default();
            info.before.extend(words(list, &[' ', ',']));
        }
    }
    Ok(info)
}

/// The bytes of a section of a little-endian ELF file, of 64 or 32 bits.
pub(crate) fn section<'a>(elf: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(elf.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    // Size of an address; where the file header has the place of the section headers, and where
    // the size of one, their number and that of the names follow; place and size in one of them.
    let (long, headers_at, sizes_at, start_at, length_at) = match elf.get(..6)? {
        b"\x7fELF\x02\x01" => (8, 0x28, 0x3a, 0x18, 0x20),
        b"\x7fELF\x01\x01" => (4, 0x20, 0x2e, 0x10, 0x14),
        _ => return None,
    };
    let headers = number(headers_at, long)?;
    let header_size = number(sizes_at, 2)?;
    let header = |index: usize| headers.checked_add(index.checked_mul(header_size)?);
    let content = |header: usize| {
        let start = number(header.checked_add(start_at)?, long)?;
        elf.get(start..start.checked_add(number(header.checked_add(length_at)?, long)?)?)
    };
    let names = content(header(number(sizes_at + 4, 2)?)?)?;
    (0..number(sizes_at + 2, 2)?).filter_map(header).find_map(|header| {
        let name = names.get(number(header, 4)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        (name == wanted).then(|| content(header)).flatten()
    })
}

/// All module files below a folder, by name.
fn find(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let failed = || format!("{}: cannot be listed", dir.display());
    for entry in fs::read_dir(dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let path = entry.path();
        if entry.file_type().with_context(failed)?.is_dir() {
            find(&path, files)?;
        } else if entry.file_name().to_string_lossy().contains(".ko") {
            files.insert(module_name(&path), path);
        }
    }
    Ok(())
}

/// `kernel/fs/9p/9p.ko.xz` -> `9p`.
fn module_name(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    normal(file.split(".ko").next().unwrap_or_default())
}

/// Modules have two spellings.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

// The kernel inside a compressed kernel: QEMU starts an ELF vmlinux by its PVH note, which saves
// the guest the unpacking (half of a boot under software emulation).

/// Programs that unpack, by the first bytes of what they unpack.
const PROGRAMS: &[(&[u8], &[&str], &str)] = &[
    (b"\xfd7zXZ\0", &["xz", "-dc", "--single-stream"], "xz-utils"),
    (b"\x28\xb5\x2f\xfd", &["zstd", "-dcq"], "zstd"),
    (b"\x1f\x8b", &["gzip", "-dcq"], "gzip"),
    (b"\x02\x21\x4c\x18", &["lz4", "-dcq"], "lz4"),
];

/// Whether it is a kernel for 32-bit ARM (arch/arm/boot/compressed/head.S).
pub(crate) fn is_zimage(bytes: &[u8]) -> bool {
    bytes.get(0x24..0x28) == Some(&0x016f_2818_u32.to_le_bytes())
}

/// The image that QEMU boots, from the `vmlinuz` of an x86-64, aarch64 or armhf package.
///
/// # Errors
/// It is no kernel of a known form, or a program that unpacks is missing.
pub fn bootable(vmlinuz: &[u8]) -> Result<Vec<u8>> {
    // An Image, or a zImage, which unpacks itself.
    if vmlinuz.get(0x38..0x3c) == Some(b"ARM\x64") || is_zimage(vmlinuz) {
        return Ok(vmlinuz.to_vec());
    }
    // The setup header of the x86 boot protocol, Documentation/arch/x86/boot.rst.
    ensure!(
        vmlinuz.get(0x202..0x206) == Some(b"HdrS"),
        "not a kernel: neither an Image or zImage of ARM nor an x86 bzImage"
    );
    let setup_sectors = match vmlinuz[0x1f1] {
        0 => 4,
        count => usize::from(count),
    };
    let start = (setup_sectors + 1) * 512 + number(vmlinuz, 0x248)?;
    let length = number(vmlinuz, 0x24c)?;
    let payload = start
        .checked_add(length)
        .and_then(|end| vmlinuz.get(start..end))
        .with_context(|| format!("bzImage: payload of {length} bytes at {start} is cut off"))?;
    let elf = unpacked(payload)?;
    ensure!(elf.starts_with(b"\x7fELF"), "bzImage: the payload is no ELF file");
    // The last four bytes hold the unpacked size (gzip has it there by itself).
    let expected = number(payload, length.saturating_sub(4))?;
    ensure!(elf.len() == expected, "bzImage: unpacked {} bytes, expected {expected}", elf.len());
    Ok(elf)
}

/// Unpacks what xz, zstd, gzip or lz4 packed; anything else comes back as it is.
///
/// # Errors
/// The program is missing, or gives nothing.
pub fn unpacked(packed: &[u8]) -> Result<Vec<u8>> {
    let Some((_, command, package)) = PROGRAMS.iter().find(|(magic, ..)| packed.starts_with(magic))
    else {
        return Ok(packed.to_vec());
    };
    let mut child = trusted::command(command[0])
        .with_context(|| format!("{} cannot be run: install {package}", command[0]))?
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be run: install {package}", command[0]))?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("{}: no pipes", command[0]);
    };
    let mut content = Vec::new();
    thread::scope(|scope| {
        // A kernel's payload ends with its size, which some of the programs refuse after they have
        // unpacked everything; so neither this nor their status proves success.
        scope.spawn(move || {
            let _ = stdin.write_all(packed);
        });
        stdout.read_to_end(&mut content)
    })
    .with_context(|| format!("{}: its output cannot be read", command[0]))?;
    child.wait().with_context(|| format!("{} did not end", command[0]))?;
    ensure!(!content.is_empty(), "{} unpacked nothing; is the file broken?", command[0]);
    Ok(content)
}

/// A little-endian 32-bit number.
fn number(bytes: &[u8], at: usize) -> Result<usize> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    let word: [u8; 4] = word.with_context(|| format!("kernel image: cut off before byte {at}"))?;
    Ok(u32::from_le_bytes(word) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file that has nothing but a `.modinfo` section and the section of names.
    fn module(info: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0";
        let info = info.replace(';', "\0");
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.resize(0x40, 0);
        let names_at = elf.len();
        elf.extend_from_slice(names);
        let info_at = elf.len();
        elf.extend_from_slice(info.as_bytes());
        let headers = elf.len();
        elf[0x28..0x30].copy_from_slice(&(headers as u64).to_le_bytes());
        elf[0x3a] = 0x40;
        elf[0x3c] = 2;
        for (name, at, size) in [(0_u8, names_at, names.len()), (1, info_at, info.len())] {
            let mut header = vec![0; 0x40];
            header[0] = name;
            header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    fn tree(modules: &[(&str, &str)], builtin: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("modules.builtin"), builtin).unwrap();
        fs::create_dir(dir.path().join("kernel")).unwrap();
        for (file, info) in modules {
            fs::write(dir.path().join("kernel").join(file), module(info)).unwrap();
        }
        dir
    }

    #[test]
    fn what_a_module_needs_comes_first() {
        let tree = tree(
            &[
                ("9p.ko", "license=GPL;depends=9pnet,netfs;"),
                ("9pnet.ko", "depends=;softdep=pre: some-lib nothere post: late;"),
                ("9pnet_virtio.ko", "depends=9pnet,virtio;"),
                ("netfs.ko", "depends="),
                ("some-lib.ko", "depends=;"),
                ("late.ko", "depends=;alias=fs-late;"),
            ],
            "kernel/drivers/virtio/virtio.ko\nkernel/drivers/virtio/virtio-pci.ko\n",
        );
        let wanted = ["virtio_pci", "9pnet_virtio", "9p", "msr"];
        let chosen = choose(tree.path(), &wanted, &["late"], &[]).unwrap();
        let names: Vec<_> = chosen.modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["some_lib", "9pnet", "9pnet_virtio", "netfs", "9p", "late"]);
        assert_eq!(chosen.at_boot, 5);
        assert!(chosen.dependencies().contains("\n9p.ko: 9pnet.ko netfs.ko\n"));
        assert_eq!(chosen.aliases(), "alias fs-late late\n");
        assert_eq!(chosen.builtin, ["virtio_pci"]);
        assert_eq!(chosen.missing, ["msr"]);
    }

    #[test]
    fn vital_ones_must_be_there() {
        let tree = tree(&[("9p.ko", "depends=lost;")], "");
        assert!(choose(tree.path(), &["virtio_pci"], &[], &[]).is_ok());
        let error =
            choose(tree.path(), &["virtio_pci"], &[], &["virtio_pci"]).unwrap_err().to_string();
        assert!(error.contains("virtio_pci"), "{error}");
        let error = choose(tree.path(), &["9p"], &[], &[]).unwrap_err().to_string();
        assert!(error.contains("lost"), "{error}");
    }

    #[test]
    fn signatures_are_cut_off() {
        let mut signed = b"ELF".to_vec();
        signed.extend_from_slice(b"12345");
        signed.extend_from_slice(&[0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        signed.extend_from_slice(b"~Module signature appended~\n");
        assert_eq!(unsigned_length(&signed), 3);
        assert_eq!(unsigned_length(b"ELF"), 3);
    }

    /// The same of 32 bits, as of armhf.
    fn module_32(info: &str) -> Vec<u8> {
        let mut elf = b"\x7fELF\x01\x01".to_vec();
        elf.resize(0x34, 0);
        let (names, names_at) = (b"\0.modinfo\0", elf.len());
        elf.extend_from_slice(names);
        let info_at = elf.len();
        elf.extend_from_slice(info.replace(';', "\0").as_bytes());
        elf[0x20] = u8::try_from(elf.len()).unwrap();
        (elf[0x2e], elf[0x30]) = (0x28, 2);
        for (name, at, size) in [(0, names_at, names.len()), (1, info_at, info.len())] {
            let mut header = vec![0; 0x28];
            header[0] = name;
            header[0x10] = u8::try_from(at).unwrap();
            header[0x14] = u8::try_from(size).unwrap();
            elf.extend(header);
        }
        elf
    }

    #[test]
    fn modules_of_32_bit_kernels_are_read() {
        let text = "license=GPL;depends=9pnet,netfs;alias=fs-9p;";
        assert_eq!(modinfo(&module_32(text)).unwrap(), modinfo(&module(text)).unwrap());
    }

    #[test]
    fn broken_files_are_refused() {
        for whole in [module("depends=a;"), module_32("depends=a;")] {
            for length in 0..whole.len() {
                let _ = modinfo(&whole[..length]);
            }
        }
        assert!(modinfo(b"text").is_err());
    }
}

#[cfg(test)]
mod vmlinux_tests {
    use std::process::Command;

    use super::*;

    /// A bzImage around this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        let length = u32::try_from(payload.len()).unwrap();
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    fn packed(content: &[u8], program: &[&str]) -> Option<Vec<u8>> {
        let mut child = Command::new(program[0])
            .args(&program[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(content).ok()?;
        Some(child.wait_with_output().ok()?.stdout)
    }

    #[test]
    fn payloads_are_unpacked_and_their_size_is_checked() {
        let elf = b"\x7fELF and so on";
        let size = u32::try_from(elf.len()).unwrap();
        for program in [&["xz", "-c"][..], &["zstd", "-cq"], &["gzip", "-c"], &["lz4", "-lcq"]] {
            let Some(mut payload) = packed(elf, program) else { continue };
            if program[0] != "gzip" {
                payload.extend_from_slice(&size.to_le_bytes());
            }
            assert_eq!(bootable(&image(&payload)).unwrap(), elf, "{program:?}");
            let wrong = payload.len() - 4;
            payload[wrong] ^= 1;
            assert!(bootable(&image(&payload)).is_err(), "{program:?}");
        }
    }

    #[test]
    fn an_arm_image_stays_and_nonsense_is_refused() {
        let mut arm = vec![0; 64];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert_eq!(bootable(&arm).unwrap(), arm);
        assert!(bootable(b"nonsense").is_err());
        let mut cut = image(b"\x1f\x8bxxxx");
        cut.truncate(1026);
        assert!(bootable(&cut).unwrap_err().to_string().contains("cut off"));
    }
}
