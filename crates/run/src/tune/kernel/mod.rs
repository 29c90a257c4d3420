//! Another kernel on trial: of the boot menu, of a package, of a build. Its files are prepared and
//! looked through in rtproof's own folder first; the journal names them before they are put where
//! the boot loader and modprobe find them.

mod staged;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use staged::{LIBRARY, StagedKernel};

use rtproof_guest::{Arch, image::Image};
use rtproof_host::{
    Facts, Root,
    boot::{self, BootError, Loader, OwnKernel},
    door::usage,
    trusted,
    tune::{Change, INITRD_PROGRAMS, Machine, STAGING, Staging},
};
use rtproof_results::tune::TrialKernel;

/// What `--kernel` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelSource {
    /// A kernel of the boot menu, by its release.
    Release(String),
    /// A Debian package with a kernel.
    Package(PathBuf),
    /// The folder of a build.
    Build(PathBuf),
    /// A kernel's image whose modules are there, or that has none.
    Image(PathBuf),
}

impl KernelSource {
    /// What a text names: a folder, a file, else a version.
    ///
    /// # Errors
    /// Usage: a path that is not there.
    pub fn of(text: &Path) -> anyhow::Result<Self> {
        let name = text.to_str().unwrap_or_default();
        match fs::metadata(text) {
            Ok(of) if of.is_dir() => Ok(Self::Build(text.to_owned())),
            Ok(_) if text.extension() == Some(OsStr::new("deb")) => {
                Ok(Self::Package(text.to_owned()))
            }
            Ok(_) => Ok(Self::Image(text.to_owned())),
            Err(_) if name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains('/') => {
                Ok(Self::Release(name.to_owned()))
            }
            Err(error) => Err(usage(format!(
                "--kernel {}: {error}; give a .deb package, the folder of a build, or the version \
                 of a kernel of the boot menu",
                text.display()
            ))),
        }
    }
}

/// Which initial RAM disk a kernel of rtproof's own gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InitrdChoice {
    /// One that the distribution's program makes, where the entry that is copied has one.
    #[default]
    Made,
    File(PathBuf),
    /// Boot the kernel without an initrd.
    Without,
}

impl InitrdChoice {
    /// What an argument names.
    pub fn of(argument: Option<&Path>) -> Self {
        match argument {
            None => Self::Made,
            Some(path) if path.as_os_str() == "none" => Self::Without,
            Some(path) => Self::File(path.to_owned()),
        }
    }
}

/// A kernel that is ready to be put in place.
#[derive(Debug)]
pub struct PreparedKernel {
    /// What is prepared; removed when this is dropped.
    pub staging: Option<Staging>,
    /// What puts it in place, in this order and before the boot entry.
    pub changes: Vec<Change>,
    /// What is shown of it.
    pub shown: TrialKernel,
}

/// The boot loader, for an entry of this kernel.
///
/// # Errors
/// There is no entry of this version, or as [`rtproof_host::boot::detect`].
pub fn loader(root: &Root, source: &KernelSource) -> Result<Loader, BootError> {
    match source {
        KernelSource::Release(release) => boot::detect_release(root, release),
        _ => boot::detect(root),
    }
}

/// Prepares a kernel, and sets the boot loader's entry to it. Nothing is put in place.
///
/// # Errors
/// It is no kernel of this machine, parts of it are missing or are there already, there is no room,
/// or the boot loader cannot have it.
pub fn prepare(
    machine: &Machine<'_>,
    loader: &mut Loader,
    source: &KernelSource,
    initrd: &InitrdChoice,
) -> anyhow::Result<PreparedKernel> {
    if let KernelSource::Release(release) = source {
        ensure!(
            *initrd == InitrdChoice::Made,
            "--initrd: a kernel of the boot menu has its own; leave the option out"
        );
        return Ok(of_menu(loader, release));
    }
    // What the boot loader cannot have need not be unpacked.
    let initrd = possible(machine.root(), loader, initrd)?;
    let staging = Staging::begin(machine).context("the kernel cannot be prepared")?;
    let staged = match source {
        KernelSource::Package(path) => staged::unpack(machine, path, staging.path())?,
        KernelSource::Build(path) => staged::collect(machine, path, staging.path())?,
        KernelSource::Image(path) => staged::image(machine.root(), path, staging.path())?,
        KernelSource::Release(_) => bail!("a kernel of the boot menu is not prepared"),
    };
    place(machine, loader, staging, &staged, &initrd)
}

/// Looks whether kernels that are built here can boot once, before one is built. Returns the boot
/// loader, set to such a kernel.
///
/// # Errors
/// The boot loader cannot have them, or nothing makes their initial RAM disk.
pub fn check(root: &Root, initrd: &InitrdChoice) -> anyhow::Result<Loader> {
    let mut loader = boot::detect(root)?;
    if let Some(why) = loader.no_entry.as_ref().or(loader.no_trial.as_ref()) {
        bail!("{why}; nothing was changed");
    }
    ensure!(
        loader.secure_boot != Some(true),
        "the firmware checks signatures (Secure Boot), and a kernel that is built here has none: \
         switch Secure Boot off, or bisect in a guest"
    );
    possible(root, &mut loader, initrd)?;
    Ok(loader)
}

fn possible(root: &Root, loader: &mut Loader, initrd: &InitrdChoice) -> anyhow::Result<Initrd> {
    let probe = OwnKernel { release: "0".into(), has_initrd: true };
    loader.take_kernel(root, &probe)?;
    Initrd::choose(root, loader, initrd)
}

/// A kernel of the menu: nothing is put in place.
fn of_menu(loader: &Loader, release: &str) -> PreparedKernel {
    let from = loader
        .base
        .as_ref()
        .map_or_else(String::new, |base| format!("entry \"{}\" of {}", base.title, base.file));
    let shown = TrialKernel { release: release.into(), from, files: Vec::new(), notes: Vec::new() };
    PreparedKernel { staging: None, changes: Vec::new(), shown }
}

/// Where the initial RAM disk comes from.
#[derive(Clone, Debug)]
enum Initrd {
    None,
    File(PathBuf),
    /// A program of the distribution.
    Program(&'static str),
}

impl Initrd {
    fn choose(root: &Root, loader: &Loader, choice: &InitrdChoice) -> anyhow::Result<Self> {
        let of_base = loader.base.iter().flat_map(|base| &base.initrd);
        let has_one = of_base.into_iter().any(|path| !path.contains("ucode"));
        match choice {
            InitrdChoice::File(path) => return Ok(Self::File(path.clone())),
            InitrdChoice::Made if has_one => {}
            _ => return Ok(Self::None),
        }
        ensure!(
            root.is_live(),
            "the entry that is copied has an initial RAM disk, which is made on the machine itself \
             alone. Give --initrd FILE, or --initrd none for a kernel that mounts its root without \
             one"
        );
        let mut programs = INITRD_PROGRAMS.iter();
        let found = programs.find(|name| trusted::find_program(name).is_ok());
        found.map(|name| Self::Program(name)).with_context(|| {
            format!(
                "the entry that is copied has an initial RAM disk, and no program that makes one \
                 is here ({}). Give --initrd FILE, or --initrd none for a kernel that mounts its \
                 root without one",
                INITRD_PROGRAMS.join(", ")
            )
        })
    }
}

/// The changes for what is staged, once it is known to fit the machine.
fn place(
    machine: &Machine<'_>,
    loader: &mut Loader,
    staging: Staging,
    staged: &StagedKernel,
    initrd: &Initrd,
) -> anyhow::Result<PreparedKernel> {
    let root = machine.root();
    let release = &staged.release;
    let mut notes = Vec::new();
    if loader.secure_boot == Some(true) {
        ensure!(
            staged.is_signed,
            "{}: nobody has signed this kernel, and the firmware checks signatures (Secure Boot): \
             it would not be started; sign it, or switch Secure Boot off",
            staged.from
        );
        notes.push(
            "Secure Boot: the kernel is signed; only its boot shows whether this machine trusts \
             the signature"
                .to_owned(),
        );
    }
    let kernel =
        OwnKernel { release: release.clone(), has_initrd: !matches!(initrd, Initrd::None) };
    let mut changes = Vec::new();
    if !root.exists(boot::FOLDER) {
        changes.push(Change::Folder { path: boot::FOLDER.into() });
    }
    changes.push(staging.placed(staged::IMAGE, kernel.image())?);
    if staged.has_config {
        changes.push(staging.placed(staged::CONFIG, format!("/boot/config-{release}"))?);
    }
    if staged.has_modules {
        ensure!(
            root.exists(LIBRARY),
            "{LIBRARY} is not there, where modprobe looks for the modules of {release}"
        );
        changes.push(staging.placed(staged::MODULES, format!("{LIBRARY}/{release}"))?);
    }
    if let Some(path) = kernel.initrd() {
        changes.push(match initrd {
            Initrd::File(file) => {
                staged::copy(file, &staging.path().join(staged::INITRD))?;
                staging.placed(staged::INITRD, path)?
            }
            Initrd::Program(program) => {
                Change::Initrd { path, release: release.clone(), program: (*program).into() }
            }
            Initrd::None => bail!("no initial RAM disk"),
        });
    }
    for change in &changes {
        let path = change.target();
        ensure!(
            path == boot::FOLDER || !root.exists(&path),
            "{path} is there already, and rtproof replaces no files of a kernel. Where it is of an \
             earlier trial: rtproof tune undo. Where the kernel is installed: --kernel {release}"
        );
    }
    check_space(machine, loader, &changes)?;
    loader.take_kernel(root, &kernel)?;
    let files = changes.iter().map(|change| (change.target(), change.wanted())).collect();
    let shown = TrialKernel { release: release.clone(), from: staged.from.clone(), files, notes };
    Ok(PreparedKernel { staging: Some(staging), changes, shown })
}

/// A kernel's image, once it is one for this machine, with its release.
fn image_of(root: &Root, path: &Path, bytes: &[u8]) -> anyhow::Result<String> {
    let image = Image::read(bytes).map_err(|error| {
        anyhow::anyhow!("{}: {error:#}; expected the image of a kernel", path.display())
    })?;
    let arch = Facts::read(root).kernel.arch;
    let machine = arch.value().with_context(|| {
        format!(
            "{}: the architecture of this machine is unknown ({}), so it is unknown whether this \
             kernel runs on it",
            path.display(),
            arch.why_unknown().unwrap_or_default()
        )
    })?;
    let fits = match image.arch {
        Arch::X86_64 => machine == "x86_64",
        Arch::Aarch64 => machine == "aarch64",
        Arch::Armv7 => machine.starts_with("armv7"),
    };
    ensure!(
        fits,
        "{}: a kernel for {}; this machine is {machine}",
        path.display(),
        image.arch.name()
    );
    let release = image.release.with_context(|| {
        format!("{}: the kernel does not say which release it is", path.display())
    })?;
    ensure!(
        staged::is_release(&release),
        "{}: release \"{release}\" has characters that a boot loader would take as its own; build \
         it with another CONFIG_LOCALVERSION",
        path.display()
    );
    Ok(release)
}

// Whether there is room, before anything is put in place: a full /boot is a bad place to find out.

/// An initial RAM disk whose like is not there: the usual size of a distribution's.
const INITRD_BYTES: u64 = 64_000_000;

/// What stays free: a file system that is full to the last block is of no use.
const REST_BYTES: u64 = 1_000_000;

/// Whether so much can be prepared.
fn check_staging(machine: &Machine<'_>, bytes: u64) -> anyhow::Result<()> {
    fits(machine, STAGING, bytes, "to prepare the kernel")
}

/// Whether all of it fits where it is put. What is prepared on the same disk is there already.
fn check_space(machine: &Machine<'_>, loader: &Loader, changes: &[Change]) -> anyhow::Result<()> {
    let (mut of_boot, mut of_modules, mut made) = (0, 0, 0);
    for change in changes {
        match change {
            Change::Placed { path, bytes, .. } if path.starts_with(LIBRARY) => of_modules += bytes,
            Change::Placed { bytes, .. } => of_boot += bytes,
            Change::Initrd { .. } => made += initrd_bytes(machine, loader),
            _ => {}
        }
    }
    fits(machine, STAGING, made, "to make the initial RAM disk")?;
    if !machine.is_same_disk(STAGING, "/boot") {
        fits(machine, "/boot", of_boot + made, "for the image and its initial RAM disk")?;
    }
    match machine.is_same_disk(STAGING, LIBRARY) {
        true => Ok(()),
        false => fits(machine, LIBRARY, of_modules, "for the modules"),
    }
}

/// As large as the one of the entry that is copied, and a quarter more.
fn initrd_bytes(machine: &Machine<'_>, loader: &Loader) -> u64 {
    let of_base = loader.base.iter().flat_map(|base| &base.initrd);
    let names = of_base.filter_map(|path| path.rsplit('/').next());
    let sizes = names.filter_map(|name| machine.file_bytes(&format!("/boot/{name}")));
    match sizes.sum::<u64>() {
        0 => INITRD_BYTES,
        bytes => bytes / 4 * 5,
    }
}

fn fits(machine: &Machine<'_>, path: &str, bytes: u64, what: &str) -> anyhow::Result<()> {
    let free = machine.free_bytes(path).with_context(|| format!("{path}: free space"))?;
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let needed = bytes.saturating_add(REST_BYTES);
    let place = if path == "/boot" { boot::FOLDER } else { path };
    ensure!(
        free >= needed,
        "{place}: {:.1} MB are free, and {:.1} MB are needed {what}; make room. Nothing was put in \
         place",
        megabytes(free),
        megabytes(needed)
    );
    Ok(())
}
