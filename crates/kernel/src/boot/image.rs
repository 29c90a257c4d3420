//! The initramfs of a guest, with rtproof in it, and what comes back over its console.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rtproof_guest::{
    Arch,
    image::{self, Archive, Image},
    inside::{self, PANIC},
    modules::{Chosen, unpacked},
    process::GuestEnding,
};

use rtproof_host::door;

use crate::KernelError;

// The initramfs of a guest: rtproof as init, the plan, programs of this machine with their
// libraries, modules.

/// Folders of every guest.
const FOLDERS: &[&str] =
    &["bin", "boot", "dev", "etc", "lib", "modules", "proc", "root", "run", "sbin", "sys", "tmp"];

/// Enough for programs that ask who and where they are.
const FILES: &[(&str, &str)] = &[
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/group", "root:x:0:\n"),
    ("etc/hosts", "127.0.0.1 localhost guest\n"),
    ("etc/hostname", "guest\n"),
    ("etc/os-release", "ID=rtproof-guest\nPRETTY_NAME=\"rtproof guest\"\n"),
];

/// What goes into a guest.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub arch: Arch,
    /// rtproof of that architecture.
    pub binary: &'a Path,
    /// Programs of this machine: they will be /bin/NAME.
    pub programs: &'a [PathBuf],
    /// Files for the folder of the commands, /root.
    pub files: &'a [PathBuf],
    pub config: Option<&'a str>,
    pub modules: &'a Chosen,
    pub plan: &'a rtproof_guest::GuestPlan,
}

/// Makes the initramfs archive that the guest boots.
///
/// # Errors
/// A file cannot be read, or is of another architecture.
pub(super) fn archive(content: &Content<'_>) -> Result<Vec<u8>, KernelError> {
    let mut to = ArchiveBuilder { archive: Archive::new(), there: BTreeSet::new() };
    FOLDERS.iter().for_each(|folder| to.folder(folder));
    to.archive.device("dev/console", 0o600, 5, 1);
    to.archive.device("dev/null", 0o666, 1, 3);
    for (path, text) in FILES {
        to.archive.file(path, 0o644, text.as_bytes());
    }
    to.program(content.arch, content.binary, "init")?;
    to.archive.link("bin/rtproof", "/init");
    for program in content.programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        to.program(content.arch, program, &format!("bin/{name}"))?;
    }
    for file in content.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        to.file(file, &format!("root/{name}"))?;
    }
    if let Some(config) = content.config {
        to.archive.file("boot/config", 0o644, config.as_bytes());
    }
    for module in &content.modules.modules {
        to.archive.file(&format!("modules/{}.ko", module.name), 0o644, &module.content);
    }
    let plan = serde_json::to_vec(content.plan).map_err(anyhow::Error::from)?;
    to.archive.file(rtproof_guest::PATH.trim_start_matches('/'), 0o644, &plan);
    Ok(to.archive.finish())
}

struct ArchiveBuilder {
    archive: Archive,
    there: BTreeSet<String>,
}

impl ArchiveBuilder {
    /// A folder with those above it.
    fn folder(&mut self, path: &str) {
        if path.is_empty() || self.there.contains(path) {
            return;
        }
        self.folder(path.rsplit_once('/').map_or("", |(above, _)| above));
        self.archive.folder(path, if path == "tmp" { 0o1777 } else { 0o755 });
        self.there.insert(path.to_owned());
    }

    /// A file of the user's.
    fn file(&mut self, from: &Path, to: &str) -> Result<Vec<u8>, KernelError> {
        let file = door::read(from).map_err(KernelError::io(from))?;
        let of = file.metadata().map_err(KernelError::io(from))?;
        if of.len() > u64::from(u32::MAX) {
            return Err(KernelError::path(from, "4 GiB or more: an initramfs cannot hold it"));
        }
        let bytes = door::bytes_of(file, u32::MAX.into()).map_err(KernelError::io(from))?;
        let mode = std::os::unix::fs::MetadataExt::mode(&of) & 0o777;
        self.folder(to.rsplit_once('/').map_or("", |(above, _)| above));
        if self.there.insert(to.to_owned()) {
            self.archive.file(to, mode, &bytes);
        }
        Ok(bytes)
    }

    /// A program with the libraries that it loads.
    fn program(&mut self, arch: Arch, from: &Path, to: &str) -> Result<(), KernelError> {
        let bytes = self.file(from, to)?;
        match image::elf(&bytes) {
            Ok(Some(of)) if of == arch => {}
            Ok(Some(of)) => {
                let why = format!("a program for {of}; the kernel is for {arch}");
                return Err(KernelError::path(from, why));
            }
            Ok(None) => {
                let why = "no ELF program; name the interpreter of a script, and the script with \
                           --file";
                return Err(KernelError::path(from, why));
            }
            Err(error) => return Err(KernelError::path(from, error.to_string())),
        }
        if image::is_static(&bytes) {
            return Ok(());
        }
        if Arch::native() != Some(arch) {
            let why =
                format!("loads libraries, which are not looked up for {arch}: build it static");
            return Err(KernelError::path(from, why));
        }
        for library in inside::libraries(from)? {
            let to = library.display().to_string();
            self.file(&library, to.trim_start_matches('/'))?;
        }
        Ok(())
    }
}

// Diagnosis of a failed boot from the guest's console: a panic, silence before init, no console,
// a reset.

/// Lines that are shown.
const LINES: usize = 16;

/// Lines that are shown from before a panic: the oops that led to it.
const BEFORE: usize = 6;

/// A boot that failed.
#[derive(Debug)]
pub(super) struct Failed<'a> {
    /// How QEMU or init ended.
    pub ending: &'a GuestEnding,
    pub console: &'a str,
    /// What QEMU reported itself.
    pub errors: &'a str,
    /// The step that began last.
    pub step: Option<&'a str>,
    /// Time limit until init speaks, and from then on.
    pub limits: (Duration, Duration),
    /// Whether it ran under KVM.
    pub is_kvm: bool,
    /// Option of the console's driver.
    pub driver: &'static str,
    /// Whether the configuration that is known has it.
    pub has_driver: Option<bool>,
}

/// Status and hint of the boot.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    status: String,
    hint: String,
    lines: Vec<String>,
}

/// Texts of the kernel and what they mean here.
const HINTS: &[(&str, &str)] = &[
    (
        "Initramfs unpacking failed: write error",
        "the initramfs did not fit into the guest's memory: give more with --memory",
    ),
    ("Cannot find place for new RAMDISK", "the guest has too little memory: --memory"),
    ("System is deadlocked on memory", "the guest has too little memory: --memory"),
    ("Out of memory", "the guest has too little memory: --memory"),
    (
        "failed (error -8)",
        "the kernel cannot run the rtproof given to it: CONFIG_BINFMT_ELF, or another architecture",
    ),
    (
        "VFS: Unable to mount root fs",
        "the kernel did not take the initramfs: CONFIG_BLK_DEV_INITRD, or too little --memory",
    ),
    ("Attempted to kill init! exitcode=0x0000000b", "init, which is rtproof, ended by SIGSEGV"),
    ("Attempted to kill init! exitcode=0x00000007", "init, which is rtproof, ended by SIGBUS"),
    ("Attempted to kill init! exitcode=0x00000004", "init, which is rtproof, ended by SIGILL"),
];

impl Failed<'_> {
    /// The error for the caller.
    pub(super) fn error(&self, log: &Path) -> KernelError {
        let Known { status, hint, lines } = self.known();
        KernelError::Failed {
            step: "the boot".into(),
            status,
            hint: if hint.is_empty() { hint } else { format!("; {hint}") },
            lines,
            log: log.to_owned(),
        }
    }

    fn known(&self) -> Known {
        let lines: Vec<&str> = self.console.lines().map(unstamped).collect();
        let whole = lines.join("\n");
        let hint = HINTS.iter().find(|(text, _)| whole.contains(text));
        let hint = hint.map_or_else(String::new, |(_, means)| (*means).to_owned());
        let during = |what: &str| match self.step {
            Some(step) => format!("{what}, while {step} ran"),
            None => what.to_owned(),
        };
        let (until_init, after) = (self.limits.0.as_secs(), self.limits.1.as_secs());
        if let Some(at) = lines.iter().position(|line| line.contains(PANIC)) {
            let first = at.saturating_sub(BEFORE);
            let lines = lines[first..].iter().take(LINES).map(ToString::to_string).collect();
            return Known { status: during("kernel panic"), hint, lines };
        }
        let (status, other) = match self.ending {
            GuestEnding::Interrupted => ("interrupted".to_owned(), String::new()),
            GuestEnding::Broken(why) => {
                return Known {
                    status: "init failed".into(),
                    hint: why.clone(),
                    lines: last(&lines),
                };
            }
            GuestEnding::DiedEarly if lines.is_empty() => {
                let errors = last(&self.errors.lines().collect::<Vec<_>>());
                let hint = if errors.is_empty() {
                    "nothing was on the console: the machine was reset at once, or has too little \
                     memory (--memory)"
                } else {
                    "QEMU itself reports"
                };
                let status = "QEMU ended before the kernel spoke".into();
                return Known { status, hint: hint.into(), lines: errors };
            }
            GuestEnding::DiedEarly => (
                "the machine was reset or switched off before init".into(),
                "without a panic: a triple fault is such a reset".into(),
            ),
            GuestEnding::NeverSpoke => {
                let (status, hint) = self.silence(&whole, until_init);
                let other =
                    "; try --no-kvm, which emulates: KVM inside of a guest is a reason, too";
                (status, hint + if self.is_kvm { other } else { "" })
            }
            GuestEnding::TimedOut => (
                during(&format!("no end within {after} s of init")),
                "give more with --timeout".into(),
            ),
            GuestEnding::Silent | GuestEnding::Script(_) => {
                (during("the machine was reset or switched off"), String::new())
            }
        };
        let hint = if hint.is_empty() { other } else { hint };
        Known { status, hint, lines: last(&lines) }
    }

    /// Status and hint where init was not heard in time.
    fn silence(&self, whole: &str, seconds: u64) -> (String, String) {
        let driver = self.driver;
        if whole.trim().is_empty() {
            let hint = match self.has_driver {
                Some(true) => {
                    "its configuration has the serial console's driver: it hangs before that, or \
                     the image is not for this machine"
                        .to_owned()
                }
                _ => format!(
                    "it hangs early, or has no serial console (CONFIG_{driver}); its configuration \
                     is unknown (--config)"
                ),
            };
            return (format!("nothing on the serial console within {seconds} s"), hint);
        }
        let no_console = "Warning: unable to open an initial console";
        let is_started = ["Run /init as init process", no_console];
        if is_started.iter().any(|text| whole.contains(text)) {
            let hint = format!(
                "the kernel started it, but nothing that it wrote came: the kernel has no serial \
                 console (CONFIG_{driver}), or init hangs"
            );
            return (format!("init was not heard within {seconds} s"), hint);
        }
        let hint = "it hangs after the last lines, or its console ends there (an early one does \
                    without the driver), or it needs more time than it has";
        (format!("the kernel did not come to init within {seconds} s"), hint.into())
    }
}

/// A line of the log without the second at which it came.
fn unstamped(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    rest.map_or(line, |(_, rest)| rest)
}

fn last(lines: &[&str]) -> Vec<String> {
    let filled: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    let from = filled.len().saturating_sub(LINES);
    filled[from..].iter().map(ToString::to_string).collect()
}

// The kernel that is to be booted: a file, an installed version or a built tree; with its
// configuration, as far as that can be read.

/// Where distributions put kernels.
pub const BOOT: &str = "/boot";

/// Where they put modules.
const MODULES: &str = "/lib/modules";

/// Images in a built tree.
const BUILT: &[&str] = &["arch/x86/boot/bzImage", "arch/arm64/boot/Image"];

/// Larger files are no kernel.
const MAX_BYTES: u64 = 1 << 30;

/// A kernel configuration as text, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// Where it is from.
    pub from: String,
    pub text: String,
}

impl ConfigText {
    /// Value of an option, without `CONFIG_`; `n`: not set.
    pub fn value(&self, option: &str) -> &str {
        let value = |line: &'_ str| -> Option<usize> {
            let rest = line.strip_prefix("CONFIG_")?.strip_prefix(option)?;
            rest.starts_with('=').then(|| line.len() - rest.len() + 1)
        };
        self.text.lines().find_map(|line| Some(&line[value(line)?..])).unwrap_or("n")
    }

    /// Options that a guest needs and that are not built in.
    pub fn missing(&self, arch: Arch) -> Vec<&'static str> {
        let console = match arch {
            Arch::X86_64 => "SERIAL_8250_CONSOLE",
            Arch::Aarch64 | Arch::Armv7 => "SERIAL_AMBA_PL011_CONSOLE",
        };
        let needed = ["BLK_DEV_INITRD", "BINFMT_ELF", "DEVTMPFS", "PROC_FS", "SYSFS", console];
        needed.into_iter().filter(|option| self.value(option) != "y").collect()
    }
}

/// A kernel image with its configuration and modules.
#[derive(Clone, Debug)]
pub struct Located {
    pub path: PathBuf,
    pub image: Image,
    /// Its configuration; `None`: unknown.
    pub config: Option<ConfigText>,
    /// Where its modules are, if any are there.
    pub modules: Option<PathBuf>,
}

/// Finds the kernel image, its configuration and its modules.
///
/// # Errors
/// There is none, it cannot be read, or QEMU cannot start it.
pub fn locate(what: &Path, config: Option<&Path>) -> Result<Located, KernelError> {
    locate_in(what, config, Path::new(BOOT), Path::new(MODULES))
}

fn locate_in(
    what: &Path,
    config: Option<&Path>,
    boot: &Path,
    modules: &Path,
) -> Result<Located, KernelError> {
    let is_name =
        what.components().count() == 1 && !what.as_os_str().as_encoded_bytes().contains(&b'/');
    let (path, config_path, below) = if what.is_dir() {
        let (tree, path) = built(what)?;
        (path, Some(tree.join(".config")), Some(tree))
    } else if what.exists() {
        let config_path = config_of(what);
        (what.to_owned(), config_path, None)
    } else if is_name {
        let path = boot.join(format!("vmlinuz-{}", what.display()));
        if !path.exists() {
            return Err(KernelError::path(what, not_found(&path, boot)));
        }
        (path, Some(boot.join(format!("config-{}", what.display()))), Some(modules.join(what)))
    } else {
        return Err(KernelError::path(what, "no such file or folder"));
    };
    let image = Image::read(&read(&path)?)
        .map_err(|error| KernelError::path(&path, format!("{error:#}")))?;
    let config = match config {
        Some(path) => Some(named_config(path)?),
        None => image.config().map_or_else(
            || {
                let path = config_path?;
                let text = door::read_text(&path, crate::CONFIG_MAX).ok()?;
                Some(ConfigText { from: path.display().to_string(), text })
            },
            |bytes| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(ConfigText { from: format!("{}, inside", path.display()), text })
            },
        ),
    };
    let below = below.filter(|folder| folder.join("modules.builtin").exists());
    Ok(Located { path, image, config, modules: below })
}

/// The tree and its image: `kernel build` puts objects into `build` below its folder.
fn built(folder: &Path) -> Result<(PathBuf, PathBuf), KernelError> {
    let trees = [folder.to_owned(), folder.join("build")];
    let each = trees.iter().flat_map(|tree| BUILT.iter().map(|it| (tree.clone(), tree.join(it))));
    let found: Vec<_> = each.filter(|(_, path)| path.exists()).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(KernelError::path(
            folder,
            format!("has no kernel: looked for {}, also below build/", BUILT.join(" and ")),
        )),
        more => {
            let paths: Vec<_> = more.iter().map(|(_, path)| path.display().to_string()).collect();
            let why = format!("has several kernels; name one of {}", paths.join(", "));
            Err(KernelError::path(folder, why))
        }
    }
}

/// `config-X` beside `vmlinuz-X`.
fn config_of(image: &Path) -> Option<PathBuf> {
    let name = image.file_name()?.to_str()?;
    let version = ["vmlinuz-", "vmlinux-", "Image-"].iter().find_map(|it| name.strip_prefix(it))?;
    Some(image.with_file_name(format!("config-{version}")))
}

#[expect(clippy::disallowed_methods, reason = "names of installed kernels, for an error")]
fn not_found(path: &Path, boot: &Path) -> String {
    let entries = fs::read_dir(boot).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut versions: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_owned())).collect();
    versions.sort();
    let there = match versions.as_slice() {
        [] => format!("{} has none", boot.display()),
        versions => format!("{} has {}", boot.display(), versions.join(", ")),
    };
    format!(
        "neither a file nor a folder, and no installed kernel: {} is missing, {there}",
        path.display()
    )
}

/// A configuration that the user names, plain or packed as kernels are.
pub fn named_config(path: &Path) -> Result<ConfigText, KernelError> {
    let bytes = unpacked(&read(path)?)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.contains("\nCONFIG_") && !text.starts_with("CONFIG_") {
        return Err(KernelError::path(path, "no configuration of a kernel: no line CONFIG_...="));
    }
    Ok(ConfigText { from: path.display().to_string(), text })
}

fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    door::read_bytes(path, MAX_BYTES).map_err(KernelError::io(path))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests' own files")]
mod tests {
    use super::*;

    fn arm_image() -> Vec<u8> {
        let mut image = vec![0; 64];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        image.extend(b"Linux version 6.1.0-x (me)");
        image
    }

    #[test]
    fn a_kernel_is_found_by_file_version_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path();
        fs::write(boot.join("vmlinuz-6.1.0-x"), arm_image()).unwrap();
        fs::write(boot.join("config-6.1.0-x"), "CONFIG_DEVTMPFS=y\n").unwrap();
        let tree = boot.join("tree/build/arch/arm64/boot");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("Image"), arm_image()).unwrap();
        let find = |what: &Path| locate_in(what, None, boot, boot);
        for what in [Path::new("6.1.0-x"), &boot.join("vmlinuz-6.1.0-x")] {
            let found = find(what).unwrap();
            assert_eq!(found.image.release.as_deref(), Some("6.1.0-x"));
            let config = found.config.unwrap();
            assert!(config.from.ends_with("config-6.1.0-x"), "{config:?}");
            assert_eq!((config.value("DEVTMPFS"), config.value("DEV")), ("y", "n"));
        }
        let found = find(&boot.join("tree")).unwrap();
        assert!(found.path.ends_with("Image") && found.config.is_none());
        let refused = |what: &Path| find(what).unwrap_err().to_string();
        assert!(refused(Path::new("6.2")).contains("has 6.1.0-x"));
        assert!(refused(&boot.join("tree/build/arch")).contains("looked for"));
        assert!(refused(&boot.join("no/such")).contains("no/such"));
        assert!(refused(&boot.join("config-6.1.0-x")).contains("not a kernel"));
        assert!(refused(Path::new("/dev/null")).contains("no regular file"));
        fs::create_dir_all(boot.join("tree/arch/x86/boot")).unwrap();
        fs::write(boot.join("tree/arch/x86/boot/bzImage"), "").unwrap();
        assert!(refused(&boot.join("tree")).contains("name one of"));
    }

    #[test]
    fn what_a_guest_needs_is_built_in() {
        let text = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_BINFMT_ELF=y\n# CONFIG_DEVTMPFS is not set\n\
            CONFIG_PROC_FS=y\nCONFIG_SYSFS=y\nCONFIG_SERIAL_8250_CONSOLE=m\n";
        let config = ConfigText { from: "x".into(), text: text.into() };
        assert_eq!(config.missing(Arch::X86_64), ["DEVTMPFS", "SERIAL_8250_CONSOLE"]);
        let whole =
            text.replace("=m", "=y").replace("# CONFIG_DEVTMPFS is not set", "CONFIG_DEVTMPFS=y");
        let config = ConfigText { text: whole, ..config };
        assert!(config.missing(Arch::X86_64).is_empty());
        assert_eq!(config.missing(Arch::Aarch64), ["SERIAL_AMBA_PL011_CONSOLE"]);
    }
}
