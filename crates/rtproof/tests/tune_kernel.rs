//! `tune trial --kernel`: another kernel in the boot entry of a machine in a folder, and everything
//! as it was after the undo.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{
    self, ACCEPTED, FAILED, REFUSED, expect_code,
    small::{Small, image},
    stderr, stdout,
};
use serde_json::Value;
use tempfile::TempDir;

/// The kernel that the machine runs.
const OLD: &str = "6.12.5-rt";
/// The one that is tried.
const NEW: &str = "6.13.1-rt9";

/// A machine with GRUB and a folder for modules.
fn machine() -> Small {
    let tree = Small::with_grub();
    fs::create_dir_all(tree.file("/lib/modules")).unwrap();
    tree
}

/// Adds a kernel to GRUB's menu as Debian does.
fn install(tree: &Small, release: &str) {
    let entry = format!(
        "submenu 'Advanced' $menuentry_id_option 'gnulinux-advanced-1' {{\n\
         \tmenuentry 'Debian, with Linux {release}' --class debian --id 'linux-{release}' {{\n\
         \t\techo 'Loading Linux {release} ...'\n\
         \t\tlinux\t/boot/vmlinuz-{release} root=/dev/sda1 ro quiet\n\
         \t\tinitrd\t/boot/initrd.img-{release}\n\t}}\n\
         \tmenuentry 'Debian, with Linux {release} (recovery mode)' --id 'rescue-{release}' {{\n\
         \t\tlinux\t/boot/vmlinuz-{release} root=/dev/sda1 ro single\n\t}}\n}}\n"
    );
    let menu =
        tree.read("/boot/grub/grub.cfg").replace("if [ -f  $", &format!("{entry}if [ -f  $"));
    tree.write("/boot/grub/grub.cfg", &menu);
    tree.write(&format!("/boot/vmlinuz-{release}"), "kernel\n");
    tree.write(&format!("/boot/initrd.img-{release}"), "initrd\n");
}

/// The machine as it is when this kernel runs.
fn boots(tree: &Small, release: &str, line: &str) {
    tree.write("/proc/sys/kernel/osrelease", &format!("{release}\n"));
    tree.write("/proc/version", &format!("Linux version {release} (user@host) #1 SMP\n"));
    tree.write("/proc/cmdline", line);
    tree.write("/proc/sys/kernel/panic", "10\n");
    tree.write("/proc/sys/kernel/random/boot_id", "22222222-2222-4333-8444-555555555555\n");
    let block =
        tree.read("/boot/grub/grubenv").replace("next_entry=rtproof-real-time", "next_entry=");
    let short = 1024 - block.len();
    tree.write("/boot/grub/grubenv", &(block + &"#".repeat(short)));
}

fn module(release: &str) -> Vec<u8> {
    format!("\x7fELF..vermagic={release} SMP preempt_rt mod_unload \0.").into_bytes()
}

fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The folder of a build.
fn build(release: &str) -> TempDir {
    let folder = support::folder();
    put(folder.path(), "build/arch/x86/boot/bzImage", &image(release));
    put(folder.path(), "build/drivers/x/x.ko", &module(release));
    put(folder.path(), "build/fs/y.ko", &module(release));
    put(folder.path(), "build/modules.order", b"drivers/x/x.o\nfs/y.o\n");
    put(folder.path(), "build/modules.builtin", b"kernel/fs/z.ko\n");
    put(folder.path(), "build/modules.builtin.modinfo", b"");
    put(folder.path(), "build/.config", b"CONFIG_MODULES=y\n");
    put(folder.path(), "build/include/config/kernel.release", format!("{release}\n").as_bytes());
    folder
}

/// A package with a kernel, made by dpkg-deb.
fn package(folder: &Path, release: &str, modules_of: &str) -> PathBuf {
    let top = folder.join("package");
    let control = format!(
        "Package: linux-image-{release}\nVersion: {release}-1\nArchitecture: amd64\n\
         Maintainer: x <x@example.org>\nInstalled-Size: 20\nDescription: a kernel\n"
    );
    put(&top, "DEBIAN/control", control.as_bytes());
    put(&top, &format!("boot/vmlinuz-{release}"), &image(release));
    put(&top, &format!("boot/config-{release}"), b"CONFIG_MODULES=y\n");
    let modules = top.join("lib/modules").join(modules_of);
    put(&modules, "kernel/fs/y.ko", &module(modules_of));
    put(&modules, "modules.order", b"kernel/fs/y.ko\n");
    put(&modules, "modules.builtin", b"");
    std::os::unix::fs::symlink("/usr/src/linux", modules.join("build")).unwrap();
    let file = folder.join("x.deb");
    let made = Command::new("dpkg-deb").arg("-b").arg(&top).arg(&file).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    file
}

fn trial(tree: &Small, kernel: &Path, more: &[&str]) -> Output {
    let kernel = kernel.to_str().unwrap();
    tree.tune(&[&["trial", "--yes", "--kernel", kernel][..], more].concat())
}

/// Nothing of ours is there: neither files nor folders.
#[track_caller]
fn expect_as_before(tree: &Small, before: &std::collections::BTreeMap<PathBuf, Vec<u8>>) {
    let of = |all: &std::collections::BTreeMap<PathBuf, Vec<u8>>| {
        let is_kept = |path: &PathBuf| !path.starts_with(tree.file("/proc"));
        let kept = all.iter().filter(|(path, _)| is_kept(path));
        kept.map(|(path, bytes)| (path.clone(), bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of(&tree.all()), of(before));
    for folder in ["/boot/rtproof", "/lib/modules/6.13.1-rt9", "/var/lib/rtproof/tune/kernel"] {
        assert!(!tree.file(folder).exists(), "{folder}");
    }
}

#[test]
fn a_kernel_of_the_menu_is_tried_verified_kept_and_removed() {
    let tree = machine();
    install(&tree, NEW);
    let before = tree.all();
    let made = trial(&tree, Path::new(NEW), &[]);
    expect_code(&made, ACCEPTED);
    assert!(stdout(&made).contains(&format!("Kernel {NEW}, from entry")), "{}", stdout(&made));
    let custom = tree.read("/boot/grub/custom.cfg");
    for part in [
        format!("linux\t/boot/vmlinuz-{NEW} root=/dev/sda1 ro quiet panic=10\n"),
        format!("initrd\t/boot/initrd.img-{NEW}\n"),
    ] {
        assert!(custom.contains(&part), "{part}: {custom}");
    }
    // The old kernel runs: its boot is not the trial, whatever its words are.
    tree.write(
        "/proc/cmdline",
        "BOOT_IMAGE=/boot/vmlinuz-6.12.5-rt root=/dev/sda1 ro quiet panic=10\n",
    );
    let early = tree.tune(&["confirm"]);
    expect_code(&early, FAILED);
    assert!(stderr(&early).contains(&format!("{NEW}; {OLD} runs")), "{}", stderr(&early));
    let verified = tree.tune(&["verify"]);
    expect_code(&verified, REFUSED);
    assert!(stdout(&verified).contains("another kernel runs"), "{}", stdout(&verified));

    boots(
        &tree,
        NEW,
        &format!("BOOT_IMAGE=/boot/vmlinuz-{NEW} root=/dev/sda1 ro quiet panic=10\n"),
    );
    let verified = tree.tune(&["verify", "--json"]);
    expect_code(&verified, ACCEPTED);
    let document: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(document["kernel"]["release"], NEW, "{document}");
    let status = stdout(&tree.tune(&["status"]));
    assert!(status.contains(&format!("kernel {NEW}, which runs")), "{status}");
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    assert!(tree.read("/boot/grub/custom.cfg").contains("set default='rtproof-real-time'"));
    expect_code(&tree.tune(&["undo", "--all"]), ACCEPTED);
    tree.write(
        "/boot/grub/grubenv",
        &String::from_utf8_lossy(&before[&tree.file("/boot/grub/grubenv")]),
    );
    expect_as_before(&tree, &before);
}

#[test]
fn a_version_that_is_not_there_is_an_error_with_those_that_are() {
    let tree = machine();
    install(&tree, NEW);
    let before = tree.all();
    let refused = trial(&tree, Path::new("6.13.1"), &[]);
    expect_code(&refused, FAILED);
    let text = stderr(&refused);
    for part in ["no entry of kernel 6.13.1;", OLD, NEW, "/boot/grub/grub.cfg"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let refused = trial(&tree, Path::new("/no/such"), &[]);
    expect_code(&refused, support::USAGE);
    assert_eq!(tree.all(), before);
}

#[test]
fn a_build_is_tried_and_leaves_no_trace() {
    let kernel = build(NEW);
    let initrd = kernel.path().join("initrd");
    fs::write(&initrd, "an initial RAM disk").unwrap();
    let one = "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";
    let own = format!("{one}30 25 8:2 / /boot rw,relatime - ext4 /dev/sda2 rw\n");
    for (mountinfo, prefix) in [(one, "/boot"), (&own, "")] {
        let tree = machine();
        tree.write("/proc/self/mountinfo", mountinfo);
        let menu = tree.read("/boot/grub/grub.cfg");
        let menu = menu.replace("\t/boot/", &format!("\t{prefix}/"));
        tree.write("/boot/grub/grub.cfg", &menu);
        let before = tree.all();
        let made = trial(&tree, kernel.path(), &["--initrd", initrd.to_str().unwrap()]);
        expect_code(&made, ACCEPTED);
        let text = stdout(&made);
        for part in ["/boot/rtproof/vmlinuz-6.13.1-rt9", "/lib/modules/6.13.1-rt9", " files, "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let custom = tree.read("/boot/grub/custom.cfg");
        let wanted = format!(
            "\tlinux\t{prefix}/rtproof/vmlinuz-{NEW} root=/dev/sda1 ro quiet panic=10\n\
             \tinitrd\t{prefix}/rtproof/initrd.img-{NEW}\n"
        );
        assert!(custom.contains(&wanted), "{custom}");
        let staged = tree.file("/boot/rtproof");
        assert_eq!(fs::read(staged.join(format!("vmlinuz-{NEW}"))).unwrap(), image(NEW));
        for name in ["kernel/drivers/x/x.ko", "kernel/fs/y.ko", "modules.dep", "modules.builtin"] {
            assert!(tree.file(&format!("/lib/modules/{NEW}/{name}")).exists(), "{name}");
        }
        assert_eq!(tree.read(&format!("/boot/config-{NEW}")), "CONFIG_MODULES=y\n");
        let status = tree.tune(&["status"]);
        expect_code(&status, ACCEPTED);
        // One that was put in place before is tried again by its version.
        expect_code(&trial(&tree, Path::new(NEW), &["skew_tick=1"]), ACCEPTED);
        let custom = tree.read("/boot/grub/custom.cfg");
        let wanted = format!("{prefix}/rtproof/vmlinuz-{NEW} root=/dev/sda1 ro quiet skew_tick=1 ");
        assert!(custom.contains(&wanted), "{custom}");
        expect_code(&tree.tune(&["undo"]), ACCEPTED);
        // A second one of the same name would overwrite it.
        let again = trial(&tree, kernel.path(), &["--initrd", "none"]);
        expect_code(&again, FAILED);
        assert!(stderr(&again).contains("is there already"), "{}", stderr(&again));
        expect_code(&tree.tune(&["undo"]), ACCEPTED);
        expect_as_before(&tree, &before);
    }
}

#[test]
fn a_package_is_unpacked_and_not_installed() {
    let tree = machine();
    let before = tree.all();
    let folder = support::folder();
    let file = package(folder.path(), NEW, NEW);
    // The entry has an initial RAM disk, which no program can make for a folder.
    let refused = trial(&tree, &file, &[]);
    expect_code(&refused, FAILED);
    assert!(stderr(&refused).contains("--initrd none"), "{}", stderr(&refused));
    assert_eq!(tree.all(), before);
    let made = trial(&tree, &file, &["--initrd", "none", "--json", "mitigations=off"]);
    expect_code(&made, ACCEPTED);
    let document: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(document["kernel"]["release"], NEW, "{document}");
    let custom = tree.read("/boot/grub/custom.cfg");
    assert!(custom.contains("mitigations=off panic=10") && !custom.contains("initrd"), "{custom}");
    assert!(!tree.file(&format!("/lib/modules/{NEW}/build")).exists(), "a link to elsewhere");
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    expect_as_before(&tree, &before);
}

#[test]
fn what_is_no_kernel_of_this_machine_is_refused_by_name() {
    let tree = machine();
    let before = tree.all();
    let folder = support::folder();
    let mut arm = vec![0; 0x40];
    arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
    arm.extend(b"Linux version 6.13.1-rt9 (me)");
    put(folder.path(), "arm/build/arch/arm64/boot/Image", &arm);
    put(folder.path(), "odd/build/arch/x86/boot/bzImage", &image("6.13;reboot"));
    put(folder.path(), "text/build/arch/x86/boot/bzImage", b"no kernel");
    put(folder.path(), "plain", &image("6.13.2"));
    let kernel = build(NEW);
    put(kernel.path(), "build/fs/y.ko", &module("6.12.0-other"));
    fs::remove_file(kernel.path().join("build/drivers/x/x.ko")).unwrap();
    put(kernel.path(), "build/modules.order", b"fs/y.o\n");
    let unfinished = build(NEW);
    fs::remove_file(unfinished.path().join("build/fs/y.ko")).unwrap();
    let mixed = build(NEW);
    put(mixed.path(), "build/include/config/kernel.release", b"6.13.2\n");
    let leads_out = build(NEW);
    fs::remove_file(leads_out.path().join("build/fs/y.ko")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", leads_out.path().join("build/fs/y.ko")).unwrap();
    let not = folder.path().join("not.deb");
    fs::write(&not, "text").unwrap();
    // Its modules would be those of the machine that it is read on, moved away.
    let elsewhere = support::folder();
    put(elsewhere.path(), &format!("{NEW}/kernel/y.ko"), &module(NEW));
    let top = folder.path().join("linked");
    put(
        &top,
        "DEBIAN/control",
        b"Package: x\nVersion: 1\nArchitecture: amd64\nMaintainer: x <x@x>\nDescription: x\n",
    );
    put(&top, &format!("boot/vmlinuz-{NEW}"), &image(NEW));
    fs::create_dir_all(top.join("lib")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), top.join("lib/modules")).unwrap();
    let linked = folder.path().join("linked.deb");
    let made = Command::new("dpkg-deb").arg("-b").arg(&top).arg(&linked).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let other = package(folder.path(), NEW, "6.13.2");
    for (kernel, says) in [
        (folder.path().join("arm"), "a kernel for aarch64; this machine is x86_64"),
        (folder.path().join("odd"), "has characters that a boot loader"),
        (folder.path().join("text"), "not a kernel"),
        (folder.path().join("plain"), "its modules are not in /lib/modules/6.13.2"),
        (folder.path().to_owned(), "has no kernel"),
        (kernel.path().to_owned(), "a module for 6.12.0-other; the kernel is 6.13.1-rt9"),
        (unfinished.path().to_owned(), "y.ko: modules.order names it"),
        (mixed.path().to_owned(), "says 6.13.2, and the image is 6.13.1-rt9"),
        (leads_out.path().to_owned(), "(/etc/passwd)"),
        (not, "no Debian package"),
        (linked, "leads out of"),
        (other, "modules for 6.13.2; the kernel is 6.13.1-rt9"),
    ] {
        let refused = trial(&tree, &kernel, &["--initrd", "none"]);
        expect_code(&refused, FAILED);
        assert!(stderr(&refused).contains(says), "{says}: {}", stderr(&refused));
        assert_eq!(tree.all(), before, "{says}");
        assert!(!tree.file("/var/lib/rtproof/tune/kernel").exists(), "{says}");
    }
    assert!(elsewhere.path().join(NEW).join("kernel/y.ko").exists());
}

#[test]
fn what_others_added_to_the_modules_stays() {
    let tree = machine();
    let before = tree.all();
    let kernel = build(NEW);
    expect_code(&trial(&tree, kernel.path(), &["--initrd", "none"]), ACCEPTED);
    let added = format!("/lib/modules/{NEW}/updates/dkms/z.ko");
    tree.write(&added, "another's");
    let indexed = format!("/lib/modules/{NEW}/modules.dep");
    tree.write(&indexed, "made anew by depmod\n");
    let undone = tree.tune(&["undo"]);
    expect_code(&undone, REFUSED);
    let text = stdout(&undone);
    assert!(text.contains("left alone") && text.contains("2 files"), "{text}");
    let mut kept: Vec<PathBuf> = tree.all().into_keys().collect();
    kept.retain(|path| !before.contains_key(path));
    assert_eq!(kept, [tree.file(&indexed), tree.file(&added)]);
    // A package that has brought the same files has its own from then on.
    fs::remove_dir_all(tree.file(&format!("/lib/modules/{NEW}"))).unwrap();
    expect_code(&trial(&tree, kernel.path(), &["--initrd", "none"]), ACCEPTED);
    let list = "/var/lib/dpkg/info/linux-image-x.list";
    tree.write(list, &format!("/.\n/lib/modules/{NEW}\n/lib/modules/{NEW}/modules.builtin\n"));
    expect_code(&tree.tune(&["undo"]), REFUSED);
    assert!(tree.file(&format!("/lib/modules/{NEW}/kernel/fs/y.ko")).exists());
    assert!(!tree.file("/boot/rtproof").exists(), "the rest is undone");
}

#[test]
fn modules_of_the_kernel_that_runs_stay_while_it_runs() {
    let tree = machine();
    let before = tree.all();
    let env = tree.read("/boot/grub/grubenv");
    let kernel = build(NEW);
    expect_code(&trial(&tree, kernel.path(), &["--initrd", "none"]), ACCEPTED);
    let line = tree.read("/proc/cmdline");
    boots(&tree, NEW, &format!("BOOT_IMAGE=/boot/rtproof/vmlinuz-{NEW} ro quiet panic=10\n"));
    // Another trial is of the kernel that runs, though the menu does not have it.
    expect_code(&tree.tune(&["trial", "--yes", "quiet"]), ACCEPTED);
    let custom = tree.read("/boot/grub/custom.cfg");
    assert!(custom.contains(&format!("linux\t/boot/rtproof/vmlinuz-{NEW} ")), "{custom}");
    let undone = tree.tune(&["undo", "--all"]);
    expect_code(&undone, FAILED);
    let text = stdout(&undone);
    assert!(text.contains("reboot into the other kernel"), "{text}");
    // What boots next is the old one again.
    assert!(!tree.file("/boot/grub/custom.cfg").exists());
    boots(&tree, OLD, &line);
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    tree.write("/boot/grub/grubenv", &env);
    expect_as_before(&tree, &before);
}

#[test]
fn secure_boot_refuses_an_unsigned_kernel() {
    let tree = machine();
    let name = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    tree.write(&format!("/sys/firmware/efi/efivars/{name}"), "\u{6}\0\0\0\u{1}");
    let before = tree.all();
    let kernel = build(NEW);
    let refused = trial(&tree, kernel.path(), &["--initrd", "none"]);
    expect_code(&refused, FAILED);
    assert!(stderr(&refused).contains("nobody has signed"), "{}", stderr(&refused));
    assert_eq!(tree.all(), before);
}

#[test]
fn files_of_a_killed_run_are_removed_by_the_next_undo() {
    let tree = machine();
    let before = tree.all();
    let left = "/var/lib/rtproof/tune/kernel/modules/x.ko";
    tree.write(left, "left by a run that was killed");
    let undone = tree.tune(&["undo"]);
    assert!(!tree.file(left).exists(), "{undone:?}");
    tree.write(left, "once more");
    let kernel = build(NEW);
    expect_code(&trial(&tree, kernel.path(), &["--initrd", "none"]), ACCEPTED);
    assert!(!tree.file(&format!("/lib/modules/{NEW}/x.ko")).exists());
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    expect_as_before(&tree, &before);
}
