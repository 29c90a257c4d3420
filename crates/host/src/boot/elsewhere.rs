//! Where the command line is kept elsewhere (an image's builder, a hypervisor, a server), or
//! by a boot loader that is not known: nothing is written, and what to do is printed.

use super::cmdline::Edit;
use super::loader::{
    Around, BootError, Change, Entry, ID, Kind, Loader, Method, View, Word, Written, cmdline,
};
use crate::text::field;

/// Words of /proc/cmdline that a boot loader put there.
const NOT_OURS: &[&str] = &["BOOT_IMAGE", "initrd"];

/// Who keeps the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    RpmOstree,
    Bootc,
    UbuntuCore,
    Petitboot,
    Network,
    Hypervisor,
    Unknown,
}

/// A machine whose command line is kept elsewhere.
#[derive(Debug)]
struct Elsewhere {
    keeper: Keeper,
    /// The command line that it has now.
    line: String,
}

/// Those that a file of a boot loader on the disk would hide.
pub(super) fn detect(view: &View<'_>, around: &Around) -> Option<Loader> {
    let words = cmdline::split(around.cmdline.as_deref().unwrap_or_default());
    let has = |name: &str| words.iter().any(|word| word.text.split('=').next() == Some(name));
    let is_nfs = words.iter().any(|word| word.text == "root=/dev/nfs");
    let keeper = match () {
        () if view.exists("/run/ostree-booted") || has("ostree") => {
            match view.exists("/usr/bin/rpm-ostree") {
                true => Keeper::RpmOstree,
                false => Keeper::Bootc,
            }
        }
        () if has("snapd_recovery_mode") || view.exists("/run/mnt/ubuntu-boot") => {
            Keeper::UbuntuCore
        }
        () if view.exists("/sys/firmware/opal") => Keeper::Petitboot,
        () if is_nfs || has("nfsroot") || has("BOOTIF") => Keeper::Network,
        () => return None,
    };
    Some(loader(around, keeper))
}

/// When nothing else is found.
pub(super) fn unknown(view: &View<'_>, around: &Around) -> Loader {
    let is_virtual =
        ["/sys/firmware/qemu_fw_cfg", "/sys/hypervisor"].iter().any(|p| view.exists(p))
            || view.root().read_text("/proc/cpuinfo").value().is_some_and(|text| {
                let flags = field(text, "flags").unwrap_or_default();
                flags.split_whitespace().any(|flag| flag == "hypervisor")
            });
    loader(around, if is_virtual { Keeper::Hypervisor } else { Keeper::Unknown })
}

fn loader(around: &Around, keeper: Keeper) -> Loader {
    let whole = around.cmdline.as_deref().unwrap_or_default();
    let not_ours: Vec<Word> = NOT_OURS.iter().map(|&name| Word::remove(name)).collect();
    let line = cmdline::edited(whole, &not_ours).unwrap_or_default();
    let entry = around.cmdline.as_ref().map(|_| Entry {
        title: "the running kernel".into(),
        id: String::new(),
        kernel: around.release.clone().unwrap_or_default(),
        initrd: vec![],
        cmdline: line.clone(),
        file: "/proc/cmdline".into(),
        line: 1,
    });
    let [name, why, _] = keeper.words();
    Loader {
        kind: Kind::Elsewhere,
        name: name.into(),
        files: vec![],
        default: entry.clone(),
        base: entry,
        is_of_release: false,
        kernels: vec![],
        secure_boot: around.firmware.secure_boot,
        no_trial: Some(why.into()),
        no_entry: Some(why.into()),
        id: ID.into(),
        limit: around.limit,
        method: Box::new(Elsewhere { keeper, line }),
    }
}

impl Keeper {
    /// Its name, why nothing is written, and what to do with what is printed.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::RpmOstree => [
                "rpm-ostree",
                "rpm-ostree keeps the command line and makes the boot entries itself",
                "Run, then reboot; the deployment before stays in the menu, and rpm-ostree \
                 rollback makes it the default again",
            ],
            Self::Bootc => [
                "bootc",
                "the bootable container keeps the command line and makes the boot entries",
                "Put into the image as /usr/lib/bootc/kargs.d/10-rtproof.toml, build it, run \
                 bootc upgrade and reboot; bootc rollback goes back",
            ],
            Self::UbuntuCore => [
                "Ubuntu Core",
                "snapd keeps the command line, sealed with the image",
                "Where the gadget allows it, run; snapd reboots and goes back when the boot fails",
            ],
            Self::Petitboot => [
                "petitboot",
                "petitboot makes its menu from what it finds, and keeps no choice",
                "In petitboot's menu press e on the entry and give it these boot arguments",
            ],
            Self::Network => [
                "network boot",
                "the machine boots over the network: its command line is on the server",
                "On the server give the machine a second label with this APPEND line (PXELINUX) or \
                 kernel arguments (iPXE, GRUB), and choose it by hand first",
            ],
            Self::Hypervisor => [
                "the hypervisor",
                "the kernel was started by the hypervisor, not by a boot loader of this machine",
                "Give the virtual machine this command line (QEMU: -append, libvirt: <cmdline>, \
                 Firecracker: boot_args), and keep the old one",
            ],
            Self::Unknown => [
                "unknown boot loader",
                "no boot loader that is known was found",
                "Give the boot loader a second entry with this command line, and choose it by hand \
                 first",
            ],
        }
    }

    /// What a human does with the words.
    fn advice(self, words: &[Word], before: &str, after: &str) -> String {
        let steps = steps(words, before);
        let new = steps.iter().filter(|(is_new, _)| *is_new).map(|(_, parameter)| parameter);
        let printed = match self {
            Self::RpmOstree => {
                let option = |(is_new, parameter): &(bool, String)| {
                    let option = if *is_new { "append-if-missing" } else { "delete-if-present" };
                    format!(" --{option}={}", shell(parameter))
                };
                format!("rpm-ostree kargs{}", steps.iter().map(option).collect::<String>())
            }
            Self::Bootc => {
                let new: Vec<String> = new.map(|parameter| format!("{parameter:?}")).collect();
                format!("kargs = [{}]", new.join(", "))
            }
            Self::UbuntuCore => {
                let new: Vec<String> = new.map(|parameter| cmdline::quoted(parameter)).collect();
                format!("snap set system system.kernel.cmdline-append={}", shell(&new.join(" ")))
            }
            _ => after.to_owned(),
        };
        let [.., what_to_do] = self.words();
        format!("{what_to_do}:\n\n{printed}\n")
    }
}

/// Parameters to add and parameters to delete, as they are now.
fn steps(words: &[Word], before: &str) -> Vec<(bool, String)> {
    let mut steps = Vec::new();
    for word in words {
        let same = cmdline::split(before)
            .into_iter()
            .map(|token| token.text)
            .filter(|text| Word::set(text.clone()).name() == word.name());
        let wanted = cmdline::shortened(&word.parameter);
        for there in same {
            if word.edit != Edit::Add && there != wanted {
                steps.push((false, there));
            }
        }
        if word.edit != Edit::Remove {
            steps.push((true, wanted));
        }
    }
    steps
}

/// An argument for a shell.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=,.:/_-+@%".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl Method for Elsewhere {
    fn write(&self, _: &View<'_>, words: &[Word]) -> Result<Written, BootError> {
        let after = cmdline::edited(&self.line, words)?;
        let printed = Some(self.keeper.advice(words, &self.line, &after));
        Ok(Written { changes: vec![], printed })
    }

    fn entry(&self, _: &View<'_>) -> Result<Option<Entry>, BootError> {
        Ok(None)
    }

    fn confirm(&self, _: &View<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![])
    }

    fn is_default(&self, _: &View<'_>) -> Result<bool, BootError> {
        Ok(false)
    }

    fn removal(&self, _: &View<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![])
    }
}
