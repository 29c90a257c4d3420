//! Entries of the Boot Loader Specification (UAPI.1), type #1: one file for each, read by GRUB on
//! Fedora and by systemd-boot.

use std::cmp::Ordering;

use super::cmdline::{Edit, Word};
use super::loader::{
    BootEntry, ID, Loader, LoaderContext, LoaderKind, Method, TITLE, WrittenEntry,
};
use super::{BootError, BootView, KernelFiles, cmdline};
use crate::change::Change;
use crate::text::field;

/// First line of our entry: a file of our name without it is not ours.
const MARK: &str = "# made by rtproof tune, removed by rtproof tune undo";

/// Entries read in one folder.
const FILES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryFile {
    /// Name without the boot counter, with `.conf`.
    pub name: String,
    pub path: String,
    /// Key, value and line, in order.
    lines: Vec<(String, String, usize)>,
    /// Tries that are left, where boots are counted.
    pub tries_left: Option<u32>,
}

/// Reads every entry of a folder, in the order of their names.
pub(super) fn read(view: &BootView<'_>, folder: &str) -> Result<Vec<EntryFile>, BootError> {
    let names = view.names(folder)?;
    let names: Vec<&String> = names.iter().filter(|name| name.ends_with(".conf")).collect();
    if names.len() > FILES_MAX {
        let why = format!("{} entries; expected at most {FILES_MAX}", names.len());
        return Err(BootError::file(folder, why));
    }
    let mut files = Vec::new();
    for name in names {
        let path = format!("{folder}/{name}");
        let Some(text) = view.text(&path)? else { continue };
        files.push(parse(name, path, &text));
    }
    Ok(files)
}

fn parse(name: &str, path: String, text: &str) -> EntryFile {
    let (stem, tries_left) = uncounted(name.trim_end_matches(".conf"));
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        lines.push((key.to_owned(), value.trim().to_owned(), index + 1));
    }
    EntryFile { name: format!("{stem}.conf"), path, lines, tries_left }
}

/// A name without its boot counter, `+LEFT` or `+LEFT-DONE`, and how many tries are left.
pub(super) fn uncounted(stem: &str) -> (&str, Option<u32>) {
    let counted = stem.rsplit_once('+').and_then(|(stem, counter)| {
        let (left, done) = counter.split_once('-').unwrap_or((counter, "0"));
        done.parse::<u32>().ok()?;
        Some((stem, left.parse().ok()?))
    });
    match counted {
        Some((stem, left)) => (stem, Some(left)),
        None => (stem, None),
    }
}

impl EntryFile {
    /// The last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.lines.iter().rev().find(|(known, _, _)| known == key);
        found.map(|(_, value, _)| value.as_str())
    }

    fn all(&self, key: &str) -> impl Iterator<Item = (&str, usize)> {
        let is_it = move |(known, _, _): &&(String, String, usize)| known == key;
        self.lines.iter().filter(is_it).map(|(_, value, line)| (value.as_str(), *line))
    }

    /// Its options, those of several lines joined.
    pub(super) fn options(&self) -> String {
        self.all("options").map(|(value, _)| value).collect::<Vec<_>>().join(" ")
    }

    /// Name without `.conf`.
    pub(super) fn stem(&self) -> &str {
        self.name.trim_end_matches(".conf")
    }

    /// Whether it is ours, by name.
    pub(super) fn is_ours(&self) -> bool {
        IDS.contains(&self.stem())
    }

    /// As an entry, with this identity and these options.
    pub(super) fn entry(&self, id: &str, options: &str) -> BootEntry {
        let kernel = ["linux", "efi", "uki"].iter().find_map(|key| self.get(key));
        let line = self.all("options").next().map_or(1, |(_, line)| line);
        let initrd = self.all("initrd").flat_map(|(value, _)| value.split_whitespace());
        BootEntry {
            title: self.get("title").unwrap_or(self.stem()).to_owned(),
            id: id.to_owned(),
            kernel: kernel.unwrap_or_default().to_owned(),
            initrd: initrd.map(str::to_owned).collect(),
            cmdline: options.to_owned(),
            file: self.path.clone(),
            line,
        }
    }

    /// Our copy of it: another title, other options, and no sort key, so that it comes last.
    pub(super) fn copy(
        &self,
        options: &str,
        words: &[Word],
        own: Option<&KernelFiles>,
    ) -> Result<String, BootError> {
        let options = cmdline::edited(options, words)?;
        let mut text = head();
        for (key, value, _) in &self.lines {
            match (key.as_str(), own) {
                ("title" | "options" | "sort-key" | "id", _) | ("initrd", Some(_)) => {}
                ("linux", Some(own)) => text += &format!("linux {}\n", own.kernel),
                ("version", Some(own)) => text += &format!("version {}\n", own.release),
                _ => text += &format!("{key} {value}\n"),
            }
        }
        if let Some(own) = own {
            let of_base = self.all("initrd").flat_map(|(value, _)| value.split_whitespace());
            let initrds = own.initrds(of_base);
            if !initrds.is_empty() {
                text += &format!("initrd {}\n", initrds.join(" "));
            }
        }
        text += &format!("options {options}\n");
        Ok(text)
    }
}

/// Refuses a file of our name that rtproof did not write.
pub(super) fn not_taken(view: &BootView<'_>, path: &str) -> Result<(), BootError> {
    match view.bytes(path)? {
        Some(bytes) if !bytes.starts_with(MARK.as_bytes()) => {
            Err(BootError::file(path, "this entry was not made by rtproof; give it another name"))
        }
        _ => Ok(()),
    }
}

/// The change that removes an entry of ours; `None` where it is not there.
pub(super) fn removal(view: &BootView<'_>, path: &str) -> Result<Option<Change>, BootError> {
    not_taken(view, path)?;
    Ok(view.bytes(path)?.map(|_| super::removed_file(path)))
}

/// The mark of our files, for entries that are made and not copied.
pub(super) fn head() -> String {
    format!("{MARK}\ntitle {TITLE}\n")
}

/// Names of our entry. The second one sorts last among entries that have no sort key and are
/// chosen by their place: the newest name, which is first, is not ours then.
pub(super) const IDS: [&str; 2] = [ID, "a-rtproof-real-time"];

/// The name with which ours comes after `others`, newest first.
pub(super) fn id_after<'a>(
    mut others: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'static str> {
    IDS.into_iter()
        .find(|id| others.clone().all(|other| compare(other, id) == Ordering::Greater))
        .filter(|_| others.next().is_some())
}

/// Compares versions as UAPI.10 does: digits as numbers, letters by their place, `~` before
/// everything, `-`, `^` and `.` in this order.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let counts = |c: &u8| c.is_ascii_alphanumeric() || b"~-^.".contains(c);
    let mut a: Vec<u8> = one.bytes().filter(counts).rev().collect();
    let mut b: Vec<u8> = other.bytes().filter(counts).rev().collect();
    loop {
        // What ends first is older, but for `~`.
        let rank = |rest: &[u8]| match rest.last() {
            Some(b'~') => 0,
            None => 1,
            Some(b'-') => 2,
            Some(b'^') => 3,
            Some(b'.') => 4,
            Some(c) if c.is_ascii_alphabetic() => 5,
            Some(_) => 6,
        };
        let order = rank(&a).cmp(&rank(&b));
        if order.is_ne() {
            return order;
        }
        match rank(&a) {
            1 => return Ordering::Equal,
            5 => {
                let order = take(&mut a, u8::is_ascii_alphabetic)
                    .cmp(&take(&mut b, u8::is_ascii_alphabetic));
                if order.is_ne() {
                    return order;
                }
            }
            6 => {
                let number = |digits: Vec<u8>| {
                    let digits: Vec<u8> = digits.into_iter().skip_while(|&d| d == b'0').collect();
                    (digits.len(), digits)
                };
                let order = number(take(&mut a, u8::is_ascii_digit))
                    .cmp(&number(take(&mut b, u8::is_ascii_digit)));
                if order.is_ne() {
                    return order;
                }
            }
            _ => {
                a.pop();
                b.pop();
            }
        }
    }
}

/// Takes what is of a kind from the front of a reversed text.
fn take(rest: &mut Vec<u8>, is_it: impl Fn(&u8) -> bool) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Some(c) = rest.pop_if(|c| is_it(c)) {
        taken.push(c);
    }
    taken
}

// Where the command line is kept elsewhere (an image's builder, a hypervisor, a server), or
// by a boot loader that is not known: nothing is written, and what to do is printed.

/// Words of /proc/cmdline that a boot loader put there.
const NOT_OURS: &[&str] = &["BOOT_IMAGE", "initrd"];

/// Where the command line is kept.
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

/// Places that a boot loader's file on the disk would hide.
pub(super) fn detect_elsewhere(view: &BootView<'_>, around: &LoaderContext) -> Option<Loader> {
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
pub(super) fn unknown(view: &BootView<'_>, around: &LoaderContext) -> Loader {
    let is_virtual =
        ["/sys/firmware/qemu_fw_cfg", "/sys/hypervisor"].iter().any(|p| view.exists(p))
            || view.root().read_text("/proc/cpuinfo").value().is_some_and(|text| {
                let flags = field(text, "flags").unwrap_or_default();
                flags.split_whitespace().any(|flag| flag == "hypervisor")
            });
    loader(around, if is_virtual { Keeper::Hypervisor } else { Keeper::Unknown })
}

fn loader(around: &LoaderContext, keeper: Keeper) -> Loader {
    let whole = around.cmdline.as_deref().unwrap_or_default();
    let not_ours: Vec<Word> = NOT_OURS.iter().map(|&name| Word::remove(name)).collect();
    let line = cmdline::edited(whole, &not_ours).unwrap_or_default();
    let entry = around.cmdline.as_ref().map(|_| BootEntry {
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
        kind: LoaderKind::Elsewhere,
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
    fn write(&self, _: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let after = cmdline::edited(&self.line, words)?;
        let printed = Some(self.keeper.advice(words, &self.line, &after));
        Ok(WrittenEntry { changes: vec![], printed })
    }

    fn entry(&self, _: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        Ok(None)
    }

    fn confirm(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![])
    }

    fn is_default(&self, _: &BootView<'_>) -> Result<bool, BootError> {
        Ok(false)
    }

    fn removal(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_order() {
        let ascending = [
            "~a",
            "",
            "-a",
            "a",
            "a-1",
            "a1",
            "ab",
            "b",
            "b-6.1.0-9",
            "b-6.1.0-10",
            "b-6.1.10",
            "b1",
            "rtproof-real-time",
            "0-rescue",
            "0f",
            "6",
            "6.1",
            "12",
            "0123",
            "123a",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                let order = compare(one, other);
                // Zeros in front count for nothing.
                assert_eq!(order, at.cmp(&other_at), "{one} {other}");
                assert_eq!(order, compare(other, one).reverse());
            }
        }
    }

    #[test]
    fn ours_comes_last() {
        let ids = |names: &[&'static str]| id_after(names.iter().copied());
        assert_eq!(ids(&["6d1f-6.1.0.conf", "9a-6.1.0.conf"]), Some("rtproof-real-time"));
        assert_eq!(ids(&["c31f-6.1.0.conf", "9a-6.1.0.conf"]), Some("a-rtproof-real-time"));
        assert_eq!(ids(&["a31f-6.1.0", "a0"]), Some("a-rtproof-real-time"));
        assert_eq!(ids(&["a-a"]), None);
        assert_eq!(ids(&[]), None);
    }

    #[test]
    fn counters_are_no_part_of_a_name() {
        assert_eq!(uncounted("foo+3-1"), ("foo", Some(3)));
        assert_eq!(uncounted("foo+0"), ("foo", Some(0)));
        assert_eq!(uncounted("foo+bar"), ("foo+bar", None));
        assert_eq!(uncounted("6.1+deb12"), ("6.1+deb12", None));
    }
}
