//! What `tune plan` writes for kernels of before 5.6, and whether these isolate CPUs by it:
//! Ubuntu's 4.4, 4.15 and 5.4. They need nothing of the lab's table: a bzImage, four CPUs, a line.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rtproof_guest::{Arch, Emulator, image::Archive};

use crate::cache::Cache;
use crate::fetch::{self, Archive as Server, Package};
use crate::{deb, initramfs};

const KERNELS: [Package; 3] = [
    of_ubuntu(
        "4.4.0-210-generic",
        "pool/main/l/linux/linux-image-unsigned-4.4.0-210-generic_4.4.0-210.242_amd64.deb",
        "804c3356872f439bd44c88e66172bdfe5ba7c2cc193b081dcd42d52a315b8352",
    ),
    of_ubuntu(
        "4.15.0-213-generic",
        "pool/main/l/linux/linux-image-unsigned-4.15.0-213-generic_4.15.0-213.224_amd64.deb",
        "1165ce25b7a822ef514479b70124b9e843477619536eb562fb2d63ec9a421f61",
    ),
    of_ubuntu(
        "5.4.0-216-generic",
        "pool/main/l/linux/linux-image-unsigned-5.4.0-216-generic_5.4.0-216.236_amd64.deb",
        "a0c4872252ba1e60348fd7216c9a9e27870fcb0fbc8bc9daf8dbf9735a7ea739",
    ),
];

const fn of_ubuntu(version: &'static str, path: &'static str, sha256: &'static str) -> Package {
    let name = "linux-image-unsigned";
    Package { name, version, path, sha256, archive: Server::Ubuntu }
}

const INIT: &str = "#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
echo \"ISOLATED $(/bin/busybox cat /sys/devices/system/cpu/isolated) \"
/bin/busybox poweroff -f
";

/// The parameter `isolcpus=` of a plan for four CPUs with this kernel.
fn planned(folder: &Path, release: &str) -> String {
    let cpu = "sys/devices/system/cpu";
    for (path, text) in [
        ("proc/version", format!("Linux version {release} (b@h) (gcc 9) #1 SMP\n")),
        ("proc/sys/kernel/osrelease", format!("{release}\n")),
        ("proc/sys/kernel/arch", "x86_64\n".into()),
        ("proc/cmdline", "root=/dev/sda1\n".into()),
        (&format!("{cpu}/online"), "0-3\n".into()),
        (&format!("{cpu}/possible"), "0-3\n".into()),
        (&format!("{cpu}/isolated"), "\n".into()),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--package", "rtproof", "--"])
        .args(["tune", "plan", "--cpus", "2-3", "--json", "--root"])
        .arg(folder)
        .output()
        .unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let words = plan["boot"]["words"].as_array().unwrap().iter();
    let parameters = words.filter_map(|word| word["parameter"].as_str());
    parameters.filter(|word| word.starts_with("isolcpus=")).map(str::to_owned).next().unwrap()
}

/// The CPUs that a kernel isolates by a command line.
fn isolated(emulator: &Emulator, kernel: &Path, initramfs: &Path, line: &str) -> String {
    let output = Command::new("timeout")
        .arg("180")
        .arg(&emulator.program)
        .args(&emulator.arguments)
        .args(["-M", "q35,accel=tcg", "-cpu", "qemu64", "-smp", "4", "-m", "512"])
        .args(["-nographic", "-no-reboot", "-nic", "none", "-kernel"])
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &format!("console=ttyS0 quiet {line}")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = console.lines().find_map(|line| Some(line.split_once("ISOLATED ")?.1.trim()));
    said.unwrap_or_else(|| panic!("{line}: it did not get so far:\n{console}")).to_owned()
}

#[test]
#[ignore = "it fetches kernels of Ubuntu and boots them; `make lab-all` and CI run it"]
fn old_kernels_isolate_by_what_is_planned_and_not_by_what_came_later() {
    let cache = Cache::open().unwrap();
    let emulator = Emulator::installed(Arch::X86_64).unwrap();
    let busybox = initramfs::busybox(&cache, Arch::X86_64).unwrap();
    let mut archive = Archive::new();
    for folder in ["bin", "dev", "proc", "sys"] {
        archive.folder(folder, 0o755);
    }
    archive.device("dev/console", 0o600, 5, 1);
    archive.file("init", 0o755, INIT.as_bytes());
    archive.file("bin/busybox", 0o755, &fs::read(busybox).unwrap());
    let place = tempfile::tempdir().unwrap();
    let initramfs = place.path().join("initramfs");
    fs::write(&initramfs, archive.finish()).unwrap();
    for package in &KERNELS {
        let release = package.version;
        // Not Debian's archive: where it cannot be reached nothing is shown, and that is said.
        let fetched = match fetch::fetch_set(&cache, &[std::slice::from_ref(package)], None) {
            Ok(fetched) => fetched,
            Err(error) => {
                println!("ignored: {release}: {error:#}");
                continue;
            }
        };
        let unpacked = place.path().join(release);
        fs::create_dir(&unpacked).unwrap();
        deb::unpack(&fetched.debs[0], &unpacked, &["./boot/*"]).unwrap();
        let kernel: PathBuf = unpacked.join("boot").join(format!("vmlinuz-{release}"));
        let line = planned(&unpacked, release);
        assert_eq!(isolated(&emulator, &kernel, &initramfs, &line), "2-3", "{release}: {line}");
        let newer = "isolcpus=managed_irq,domain,2-3";
        assert_eq!(isolated(&emulator, &kernel, &initramfs, newer), "", "{release}: {newer}");
    }
}
