//! Where a change may write, whoever asks for it: a plan, a journal and `/etc/rtproof.toml` are
//! files like others.

/// Values of the running kernel. Control groups are below /sys.
const VALUES: &[&str] = &["/proc/sys/", "/proc/irq/", "/sys/"];
/// Files and folders: what systems are set up and started with.
const FILES: &[&str] = &["/etc/", "/boot/", "/efi/", "/run/", "/var/lib/rtproof/"];
/// Where the images of kernels on trial are: no `update-grub` and no `kernel-install` lists them.
pub const OWN_KERNELS: &str = "/boot/rtproof";
/// Where the files of such a kernel are prepared.
pub const STAGING: &str = "/var/lib/rtproof/tune/kernel";
/// Programs that make the initial RAM disk of a kernel, in the order of looking: initramfs-tools
/// (Debian, Ubuntu), Arch's, Fedora's, tiny-initramfs.
pub const INITRD_PROGRAMS: &[&str] = &["mkinitramfs", "mkinitcpio", "dracut", "mktirfs"];
/// Where the modules of kernels are.
pub(crate) const MODULES: &str = "/lib/modules/";
/// The configuration of a kernel, as every distribution names it.
const CONFIG: &str = "/boot/config-";
/// Values that name a program which the kernel starts as root: none of them makes a machine faster.
const PROGRAMS: &[&str] = &[
    "/core_pattern",
    "/kernel/modprobe",
    "/kernel/hotplug",
    "/poweroff_cmd",
    "/release_agent",
    "/uevent_helper",
];
/// Permissions that a file may get: without set-user-id, set-group-id and the sticky bit.
pub(crate) const MODE_MAX: u32 = 0o777;

/// Files of a kernel on trial: below [`OWN_KERNELS`] or, of its modules, [`MODULES`].
pub(crate) fn placed(path: &str) -> Result<(), String> {
    let name = path.strip_prefix(OWN_KERNELS).and_then(|rest| rest.strip_prefix('/'));
    let name = [CONFIG, MODULES].iter().find_map(|top| path.strip_prefix(top)).or(name);
    match name.is_some_and(is_release) {
        true => Ok(()),
        false => Err(format!(
            "{path}: rtproof puts the files of a kernel only into {OWN_KERNELS} and {MODULES}, and \
             its configuration to {CONFIG}RELEASE"
        )),
    }
}

/// Whether a name can be that of a kernel's release: of what `make kernelrelease` allows, what
/// every boot loader takes as it is.
pub(crate) fn is_release(name: &str) -> bool {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    (1..=64).contains(&name.len()) && !name.starts_with(['-', '.']) && name.chars().all(is_taken)
}

/// Looks whether rtproof makes a file there.
pub(crate) fn file(path: &str) -> Result<(), String> {
    below(path, FILES)
}

/// Looks whether rtproof writes such a value of the kernel.
pub(crate) fn value(path: &str) -> Result<(), String> {
    below(path, VALUES)?;
    match PROGRAMS.iter().any(|name| path.ends_with(name)) {
        true => Err(format!("{path}: names a program that the kernel runs as root: never written")),
        false => Ok(()),
    }
}

fn below(path: &str, tops: &[&str]) -> Result<(), String> {
    plain(path)?;
    match tops.iter().any(|top| path.starts_with(top)) {
        true => Ok(()),
        false => {
            let tops: Vec<&str> = tops.iter().map(|top| top.trim_end_matches('/')).collect();
            Err(format!("{path}: rtproof writes such a thing only below {}", tops.join(", ")))
        }
    }
}

/// An absolute path that leads where it says.
pub(crate) fn plain(path: &str) -> Result<(), String> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let parts = path.strip_prefix('/');
    match parts.is_some_and(|parts| parts.split('/').all(is_part)) && !path.contains('\0') {
        true => Ok(()),
        false => Err(format!("{path}: expected a path from / without . and ..")),
    }
}

/// Looks whether it is a name: neither a path nor an option of a program.
pub(crate) fn name(name: &str, of: &str) -> Result<(), String> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || ":_.@\\-".contains(c);
    match !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_taken) {
        true => Ok(()),
        false => Err(format!("{name}: no name of {of}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        change::{Bytes, Change, UnitState},
        knob::Compare,
    };

    fn value(path: &str) -> Change {
        let path = path.into();
        Change::Value { path, value: "1".into(), compare: Compare::Text, couples: Vec::new() }
    }

    fn file(path: &str, mode: Option<u32>) -> Change {
        Change::File { path: path.into(), content: Some(Bytes(Vec::new())), mode }
    }

    #[test]
    fn places_of_the_kernel_and_of_the_system_alone() {
        for path in ["/proc/sys/vm/swappiness", "/proc/irq/7/smp_affinity_list", "/sys/x/y"] {
            assert_eq!(value(path).may_be_made(), Ok(()), "{path}");
        }
        for path in [
            "/proc/self/root/etc/x",
            "/proc/1/mem",
            "/proc/sysrq-trigger",
            "/proc/sys/../self/root/etc/x",
            "/proc/sys//kernel/x",
            "/sys/./x",
            "/sys/x\0y",
            "/sys",
            "sys/x",
            "/etc/x",
            "/dev/sda",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/sys/kernel/uevent_helper",
            "/sys/fs/cgroup/cpu/release_agent",
        ] {
            assert!(value(path).may_be_made().is_err(), "{path}");
        }
        let mut with_couple = value("/proc/sys/vm/x");
        let Change::Value { couples, .. } = &mut with_couple else { return };
        couples.push("/root/x".into());
        assert!(with_couple.may_be_made().is_err());
        for path in ["/etc/x", "/boot/loader/x", "/run/x", "/var/lib/rtproof/x"] {
            assert_eq!(file(path, Some(0o755)).may_be_made(), Ok(()), "{path}");
            assert!(file(path, Some(0o4755)).may_be_made().is_err(), "{path}");
        }
        for path in ["/usr/bin/x", "/root/.bashrc", "/etc/../root/x", "/home/x", "/x", ""] {
            assert!(file(path, None).may_be_made().is_err(), "{path}");
            assert!(Change::Folder { path: path.into() }.may_be_made().is_err(), "{path}");
        }
        let unit = |unit: &str| Change::Unit { unit: unit.into(), want: UnitState::Stopped };
        assert_eq!(unit("getty@tty1.service").may_be_made(), Ok(()));
        assert_eq!(unit("dev-disk-by\\x2duuid.swap").may_be_made(), Ok(()));
        for name in ["--root=/x", "", "../x.service", "/etc/x.service", "a b"] {
            assert!(unit(name).may_be_made().is_err(), "{name}");
        }
        let placed = |path: &str, from: &str| {
            let (path, from, digest) = (path.into(), from.into(), String::new());
            Change::Placed { path, from, digest, files: 1, bytes: 1 }.may_be_made()
        };
        let from = format!("{STAGING}/vmlinuz");
        for path in
            ["/boot/config-6.1", "/boot/rtproof/vmlinuz-6.1+", "/lib/modules/6.1.0-50-rt-amd64"]
        {
            assert_eq!(placed(path, &from), Ok(()), "{path}");
            for from in ["/etc/shadow", STAGING, &format!("{STAGING}/../x"), &format!("{STAGING}/")]
            {
                assert!(placed(path, from).is_err(), "{from}");
            }
        }
        for path in [
            "/boot/vmlinuz-6.1",
            "/lib/modules/6.1/x",
            "/lib/modules/",
            "/etc/x",
            "/boot/rtproof/.x",
        ] {
            assert!(placed(path, &from).is_err(), "{path}");
        }
        let initrd = |path: &str, release: &str, program: &str| {
            let (path, release, program) = (path.into(), release.into(), program.into());
            Change::Initrd { path, release, program }.may_be_made()
        };
        let path = "/boot/rtproof/initrd.img-6.1";
        assert_eq!(initrd(path, "6.1", "mkinitramfs"), Ok(()));
        assert!(initrd(path, "6.1", "sh").is_err() && initrd(path, "-c", "mkinitramfs").is_err());
        assert!(initrd("/etc/x", "6.1", "mkinitramfs").is_err());
        let name = "LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f".to_owned();
        let variable = |name: String| Change::EfiVariable { name, value: String::new() };
        assert_eq!(variable(name).may_be_made(), Ok(()));
        assert!(variable("../x".into()).may_be_made().is_err());
        let member = |group: &str, user: &str| {
            Change::Member { group: group.into(), user: user.into() }.may_be_made()
        };
        assert_eq!(member("realtime", "alice"), Ok(()));
        for (group, user) in [("sudo", "alice"), ("realtime", "--root=/x"), ("realtime", "a:b")] {
            assert!(member(group, user).is_err(), "{group} {user}");
        }
        assert!(Change::Group { name: "docker".into() }.may_be_made().is_err());
    }
}
