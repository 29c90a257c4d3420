//! A small machine in a folder, to be changed: four CPUs, odd values, GRUB.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use super::{folder, processes, run};

/// Governors of the four CPUs.
pub(crate) const GOVERNORS: [&str; 4] = ["ondemand", "schedutil", "powersave", "schedutil"];

/// Kernel of the machine.
const RELEASE: &str = "6.12.5-rt";

/// A machine in a folder.
pub(crate) struct Small(TempDir);

impl Drop for Small {
    fn drop(&mut self) {
        // One that waits for a confirmation would wait on, for a folder that is gone.
        let ours = processes(&self.0.path().to_string_lossy());
        for pid in processes("guard").into_iter().filter(|pid| ours.contains(pid)) {
            let _ = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
        }
    }
}

impl Small {
    /// The machine.
    pub(crate) fn new() -> Self {
        let tree = Self(folder());
        let version = format!("Linux version {RELEASE} (user@host) (gcc) #1 SMP PREEMPT_RT\n");
        let release = format!("{RELEASE}\n");
        let cmdline = format!("BOOT_IMAGE=/boot/vmlinuz-{RELEASE} root=/dev/sda1 ro quiet\n");
        for (path, text) in [
            ("/proc/version", version.as_str()),
            ("/proc/cmdline", &cmdline),
            ("/proc/sys/kernel/osrelease", &release),
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT\n"),
            ("/proc/sys/kernel/arch", "x86_64\n"),
            ("/proc/sys/kernel/hostname", "plc7\n"),
            ("/proc/sys/kernel/random/boot_id", "11111111-2222-4333-8444-555555555555\n"),
            ("/proc/sys/vm/stat_interval", "7\n"),
            ("/proc/sys/kernel/timer_migration", "1\n"),
            ("/proc/irq/default_smp_affinity", "f\n"),
            ("/sys/kernel/mm/ksm/run", "1\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/possible", "0-3\n"),
            ("/sys/devices/system/cpu/present", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
            ("/etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ] {
            tree.write(path, text);
        }
        for (cpu, governor) in GOVERNORS.iter().enumerate() {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
            tree.write(&format!("{folder}/scaling_governor"), &format!("{governor}\n"));
            let all = "performance powersave schedutil ondemand\n";
            tree.write(&format!("{folder}/scaling_available_governors"), all);
            tree.write(&format!("{folder}/scaling_driver"), "acpi-cpufreq\n");
        }
        tree
    }

    /// The same with GRUB 2 as Debian has it.
    pub(crate) fn with_grub() -> Self {
        let tree = Self::new();
        let menu = format!(
            "if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n\
             if [ \"${{next_entry}}\" ] ; then\n   set default=\"${{next_entry}}\"\n   \
             set next_entry=\n   save_env next_entry\n   set boot_once=true\nelse\n   \
             set default=\"0\"\nfi\n\
             menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' \
             {{\n\tsearch --no-floppy --fs-uuid --set=root 1\n\
             \tlinux\t/boot/vmlinuz-{RELEASE} root=/dev/sda1 ro quiet\n\
             \tinitrd\t/boot/initrd.img-{RELEASE}\n}}\n\
             if [ -f  ${{config_directory}}/custom.cfg ]; then\n  \
             source ${{config_directory}}/custom.cfg\n\
             elif [ -z \"${{config_directory}}\" -a -f  $prefix/custom.cfg ]; then\n  \
             source $prefix/custom.cfg\nfi\n"
        );
        tree.write("/boot/grub/grub.cfg", &menu);
        let head = "# GRUB Environment Block\n";
        tree.write("/boot/grub/grubenv", &format!("{head}{}", "#".repeat(1024 - head.len())));
        tree.write("/etc/default/grub", "GRUB_DEFAULT=0\n");
        tree.write("/etc/grub.d/41_custom", "#!/bin/sh\n");
        tree.write(&format!("/boot/vmlinuz-{RELEASE}"), "kernel\n");
        tree.write(&format!("/boot/initrd.img-{RELEASE}"), "initrd\n");
        tree.write("/proc/self/mountinfo", "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n");
        tree.write("/proc/mounts", "/dev/sda1 / ext4 rw,relatime 0 0\n");
        tree
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file of it, of the system that the test runs on.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    /// Adds or replaces a file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.file(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, text).expect("a file");
    }

    /// The text of a file.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).expect(path)
    }

    /// Governor of a CPU.
    pub(crate) fn governor(&self, cpu: u32) -> String {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        self.read(&path).trim().to_owned()
    }

    /// Every file with its bytes, the journals aside.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true if path.ends_with("var/lib/rtproof") => {}
                    true => folders.push(path),
                    false => {
                        let bytes = fs::read(&path).expect("a file");
                        all.insert(path, bytes);
                    }
                }
            }
        }
        all
    }

    /// Runs `tune` on it.
    pub(crate) fn tune(&self, args: &[&str]) -> Output {
        let root = self.path().to_str().expect("UTF-8");
        let mut all = vec!["tune"];
        all.extend(args);
        all.extend(["--root", root]);
        run(self.path(), &all)
    }

    /// The newest journal.
    pub(crate) fn journal(&self) -> PathBuf {
        let found = super::files(&self.file("/var/lib/rtproof/tune"), ".journal");
        found.last().expect("a journal").clone()
    }
}

/// An x86 image as far as its head says so (Documentation/arch/x86/boot.rst).
pub(crate) fn image(release: &str) -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x20fu16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    image[0x236] = 1;
    image[0x300..0x300 + release.len()].copy_from_slice(release.as_bytes());
    image
}
