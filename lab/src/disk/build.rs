//! Makes the Debian image: mmdebstrap, a file system written without a mount, and one boot in which
//! GRUB installs itself.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rtproof_guest::{
    Emulator, modules,
    process::{self, GuestEnding, NEVER, SPEAK_LIMIT_DISK, Spec, tail_of},
};

use super::image::{Boot, Image, args};
use super::recipe;
use crate::cache::Cache;
use crate::fetch::Archive;
use crate::machine::Machine;

/// Time that the first boot may take. Quiet: 40 s.
const FIRST_BOOT_LIMIT: Duration = Duration::from_secs(400);

/// What is set before mmdebstrap: when the lab ends, all its processes end and its mounts are gone.
/// Else a folder of the cache would keep /proc and /sys mounted in it.
const ALONE: &[&str] = &[
    "--pdeathsig",
    "KILL",
    "--",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Makes the entry's folder.
pub(super) fn make(place: &Path, cache: &Cache, emulator: &Emulator) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the Debian image has files of several owners, so only root can make it: run once as root"
    );
    fs::create_dir_all(place).with_context(|| format!("{}: cannot make", place.display()))?;
    let root = place.join("root");
    eprintln!("lab: making the Debian image (once, some minutes)");
    bootstrap(&root)?;
    furnish(&root)?;
    format(&root, &place.join(recipe::DISK))?;
    keep_kernel(&root, place)?;
    fs::remove_dir_all(&root).with_context(|| format!("{}: cannot remove", root.display()))?;
    first_boot(place, cache, emulator)
}

/// Releases of the two kernels: PREEMPT_RT, stock.
pub(super) fn releases(place: &Path) -> Result<(String, String)> {
    let path = place.join("releases");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("{}: remove its folder and run again", path.display()))?;
    match text.lines().collect::<Vec<_>>()[..] {
        [rt, stock] => Ok((rt.to_owned(), stock.to_owned())),
        _ => bail!("{}: two lines are expected, not {text:?}", path.display()),
    }
}

/// Runs a program to its end; its output is shown only when it fails.
pub(super) fn run(program: &str, package: &str, arguments: &[&str]) -> Result<()> {
    run_with_input(program, package, arguments, Stdio::null())
}

fn run_with_input(program: &str, package: &str, words: &[&str], input: Stdio) -> Result<()> {
    let output = Command::new(program)
        .args(words)
        // sfdisk and mke2fs are where users seldom look.
        .env("PATH", path_with_sbin())
        .env("LC_ALL", "C")
        .stdin(input)
        .output()
        .with_context(|| format!("{program} cannot be run; Debian's package {package} has it"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n");
        bail!("{program} ended with {}:\n{end}", output.status);
    }
    Ok(())
}

fn path_with_sbin() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

/// Unpacks and configures the packages into a folder.
fn bootstrap(root: &Path) -> Result<()> {
    run("mmdebstrap", "mmdebstrap", &["--version"])?;
    let mut words: Vec<String> = ALONE.iter().map(ToString::to_string).collect();
    let kind = ["mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=minbase"];
    words.extend(kind.map(Into::into));
    words.push(format!("--include={}", recipe::PACKAGES.join(",")));
    words.push("--aptopt=APT::Install-Recommends \"false\"".into());
    words.push("--aptopt=Acquire::Languages \"none\"".into());
    words.push("--aptopt=Acquire::Retries \"3\"".into());
    words.push("--dpkgopt=force-unsafe-io".into());
    words.extend(recipe::EXCLUDED.iter().map(|path| format!("--dpkgopt=path-exclude={path}")));
    let modules = recipe::MODULES.iter();
    words
        .extend(modules.map(|path| format!("--dpkgopt=path-include=/lib/modules/*/kernel/{path}")));
    // Kernels call tiny-initramfs while they are installed: its settings come first.
    words.push(format!(
        "--essential-hook=mkdir -p \"$1/etc/tiny-initramfs\" && \
         printf '%s' '{}' >\"$1/etc/tiny-initramfs/tiny-initramfs.conf\"",
        recipe::INITRAMFS
    ));
    words.push(recipe::SUITE.into());
    words.push(root.display().to_string());
    let (debian, security) = (Archive::Debian.url(), Archive::Security.url());
    words.push(format!("deb {debian} {} main", recipe::SUITE));
    words.push(format!("deb {debian} {}-updates main", recipe::SUITE));
    words.push(format!("deb {security} {}-security main", recipe::SUITE));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run("setpriv", "util-linux", &words)
}

/// Puts in the lab's own files.
fn furnish(root: &Path) -> Result<()> {
    for (path, text) in recipe::FILES {
        let path = root.join(path);
        make_parent(&path)?;
        fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    for (path, target) in recipe::LINKS {
        link(&root.join(path), target)?;
    }
    for unit in recipe::MASKED.lines() {
        link(&root.join("etc/systemd/system").join(unit), "/dev/null")?;
    }
    for script in recipe::WITHOUT_GRUB_SCRIPTS {
        let path = root.join("etc/grub.d").join(script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))
            .with_context(|| format!("{}: cannot be switched off", path.display()))?;
    }
    Ok(())
}

fn link(path: &Path, target: &str) -> Result<()> {
    make_parent(path)?;
    // mmdebstrap may have left one there.
    let _ = fs::remove_file(path);
    symlink(target, path).with_context(|| format!("{}: cannot link", path.display()))
}

fn make_parent(path: &Path) -> Result<()> {
    let folder = path.parent().with_context(|| format!("{}: no folder", path.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot make", folder.display()))
}

/// Writes a partition table and a file system with the folder's content.
fn format(root: &Path, disk: &Path) -> Result<()> {
    let file = fs::File::create(disk).with_context(|| format!("{}: create", disk.display()))?;
    file.set_len(recipe::SIZE_MIB * 1024 * 1024)
        .with_context(|| format!("{}: cannot be {} MiB", disk.display(), recipe::SIZE_MIB))?;
    drop(file);
    let disk = disk.display().to_string();
    let mut table = tempfile::tempfile().context("a temporary file")?;
    std::io::Write::write_all(&mut table, format!("{}M,,L,*\n", recipe::START_MIB).as_bytes())?;
    std::io::Seek::rewind(&mut table)?;
    run_with_input("sfdisk", "fdisk", &["-q", "--no-reread", &disk], table.into())?;
    let offset = recipe::START_MIB * 1024 * 1024;
    let options = format!("offset={offset},lazy_itable_init=0,nodiscard");
    let size = format!("{}k", (recipe::SIZE_MIB - recipe::START_MIB) * 1024);
    let root = root.display().to_string();
    let kind = ["-q", "-F", "-t", "ext4", "-L", "root", "-U", recipe::UUID];
    let rest = ["-E", options.as_str(), "-d", root.as_str(), disk.as_str(), size.as_str()];
    run("mke2fs", "e2fsprogs", &[&kind[..], &rest[..]].concat())
}

/// Copies the PREEMPT_RT kernel out, for boots past GRUB, and writes down both releases.
fn keep_kernel(root: &Path, place: &Path) -> Result<()> {
    let boot = root.join("boot");
    let mut found = Vec::new();
    for entry in fs::read_dir(&boot).with_context(|| format!("{}: list", boot.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        found.extend(name.strip_prefix("vmlinuz-").map(str::to_owned));
    }
    let (rt, stock): (Vec<_>, Vec<_>) = found.into_iter().partition(|name| name.contains("-rt-"));
    let ([rt], [stock]) = (&rt[..], &stock[..]) else {
        bail!("one PREEMPT_RT and one stock kernel are expected, not {rt:?} and {stock:?}");
    };
    let read = |path: &Path| fs::read(path).with_context(|| format!("{}: read", path.display()));
    let initrd = read(&boot.join(format!("initrd.img-{rt}")))?;
    // Unpacked here, so that no guest has to.
    let kernel = modules::bootable(&read(&boot.join(format!("vmlinuz-{rt}")))?)?;
    for (name, bytes) in [(recipe::KERNEL, kernel), (recipe::INITRD, initrd)] {
        let path = place.join(name);
        fs::write(&path, bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    let path = place.join("releases");
    fs::write(&path, format!("{rt}\n{stock}\n"))
        .with_context(|| format!("{}: cannot write", path.display()))
}

/// Boots the image once; in it GRUB installs itself.
fn first_boot(place: &Path, cache: &Cache, emulator: &Emulator) -> Result<()> {
    let image = open(place)?;
    let dir = tempfile::tempdir().context("folder for the first boot")?;
    let share = dir.path().join("share");
    fs::create_dir(&share)?;
    fs::write(share.join("run.sh"), recipe::FIRST_BOOT)?;
    let machine = Machine::disk().cpus(2).multi_threaded();
    let mut arguments = machine.hardware(emulator, cache)?;
    arguments.extend(args(&image.disk, Boot::Direct(&image)));
    arguments.extend(Machine::share_arguments(&share));
    let spec = Spec {
        speak_limit: SPEAK_LIMIT_DISK,
        emulator,
        arguments,
        dir: dir.path(),
        limit: FIRST_BOOT_LIMIT,
        cues: &[],
        ends_at_panic: false,
        interrupted: NEVER,
    };
    let mut outcome = process::run(&spec)?;
    if outcome.is_mute(false) {
        outcome = process::run(&spec)?;
    }
    ensure!(
        outcome.ending == GuestEnding::Script(0),
        "the image's first boot ended with {:?}; its console:\n{}",
        outcome.ending,
        tail_of(&dir.path().join("console.log"))
    );
    Ok(())
}

/// The image in this folder.
pub(super) fn open(folder: &Path) -> Result<Image> {
    let (release, stock_release) = releases(folder)?;
    Ok(Image {
        disk: folder.join(recipe::DISK),
        kernel: folder.join(recipe::KERNEL),
        initrd: folder.join(recipe::INITRD),
        release,
        stock_release,
    })
}
