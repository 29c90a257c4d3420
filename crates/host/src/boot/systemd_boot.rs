//! systemd-boot: one file for each entry (type #1) or one image with everything in it (type #2,
//! UKI). Ours is a file; for an image, one that starts it with other options, which it takes where
//! Secure Boot is off.

use super::entries::EntryFile;
use super::loader::{
    AFTER_A_TRIAL, BootEntry, BootError, BootView, Change, ID, Loader, LoaderContext, LoaderKind,
    Method, TITLE, Word, WrittenEntry,
};
use super::{cmdline, efi, entries};

/// Where partitions of a boot loader are mounted.
const MOUNTS: [&str; 3] = ["/boot", "/efi", "/boot/efi"];

/// Bit of LoaderFeatures: takes an entry for one boot (systemd's boot loader interface).
const ONE_SHOT: u64 = 1 << 3;

const IMAGES_MAX: usize = 1024;

/// An entry of others.
#[derive(Clone, Debug)]
struct Other {
    /// Name, as the boot loader has it: with `.conf` or `.efi`.
    name: String,
    mount: &'static str,
    /// Sort order: with a sort key first, then by key, then newest first.
    sort_key: Option<String>,
    version: String,
    is_bad: bool,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    File(EntryFile),
    Image(Box<Image>),
}

#[derive(Clone, Debug)]
struct Image {
    path: String,
    texts: efi::Texts,
}

/// systemd-boot, and what ours is made of.
#[derive(Debug)]
struct SystemdBoot {
    base: Other,
    /// Name of the default of others.
    default: String,
    config: String,
    /// Name of our entry without `.conf`.
    id: &'static str,
    /// Whether the default is kept in a variable of the firmware.
    is_variable: bool,
    refusal: Option<Refusal>,
}

/// Why no entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The default is chosen by its place, and ours would take that place.
    Place,
    /// The firmware starts the image itself.
    NoLoader,
    /// The image takes no command line from outside.
    Signed,
}

impl Refusal {
    const fn why(self) -> &'static str {
        match self {
            Self::Place => {
                "the default is chosen by its place in the menu, and every name of an entry of \
                 ours would sort before it"
            }
            Self::NoLoader => {
                "the firmware starts the unified kernel image itself, without a boot loader that \
                 has entries"
            }
            Self::Signed => {
                "with Secure Boot a unified kernel image takes its command line from its own \
                 signed section alone"
            }
        }
    }
}

/// systemd-boot, if it started this kernel or is all that there is.
pub(super) fn detect(
    view: &BootView<'_>,
    around: &LoaderContext,
) -> Result<Option<Loader>, BootError> {
    let firmware = &around.firmware;
    let is_it = |name: &Option<String>, who| name.as_deref().is_some_and(|n| n.starts_with(who));
    let is_reported = is_it(&firmware.loader, "systemd-boot");
    let is_installed = MOUNTS.iter().any(|mount| {
        ["loader/loader.conf", "EFI/systemd"].iter().any(|p| view.exists(&format!("{mount}/{p}")))
    });
    let is_stub_alone = firmware.loader.is_none() && is_it(&firmware.stub, "systemd-stub");
    if !is_reported && !is_installed && !is_stub_alone {
        return Ok(None);
    }
    let mut others = others(view)?;
    others.sort_by(Other::order);
    let config = config(view);
    let keys = settings(view, &config)?;
    let spec = firmware.entry_default.as_deref().or(keys.as_deref()).unwrap_or_default();
    let by_name = others.iter().position(|other| matches(spec, &other.name));
    let Some(default) = others.get(by_name.unwrap_or(0)) else {
        return Ok(None);
    };
    let is_running = |other: &&Other| other.is_running(around);
    let running = Some(default).filter(is_running).or_else(|| others.iter().find(is_running));
    let base = running.unwrap_or(default).clone();
    let id = match by_name {
        // `default *` and the like would take ours as well.
        Some(_) if !matches(spec, &format!("{}.conf", entries::IDS[0])) => Some(entries::IDS[0]),
        _ if others.iter().all(|other| other.sort_key.is_some()) => Some(entries::IDS[0]),
        _ => {
            let names = others.iter().filter(|other| other.sort_key.is_none());
            entries::id_after(names.map(|other| other.name.trim_end_matches(".conf")))
        }
    };
    let (kind, name) = match base.what {
        What::File(_) => (LoaderKind::SystemdBoot, "systemd-boot"),
        What::Image(_) => (LoaderKind::UnifiedImage, "systemd-boot with a unified kernel image"),
    };
    let refusal = match (&base.what, id) {
        (_, None) => Some(Refusal::Place),
        (What::Image(_), _) if is_stub_alone => Some(Refusal::NoLoader),
        (What::Image(_), _) if firmware.secure_boot == Some(true) => Some(Refusal::Signed),
        _ => None,
    };
    let no_entry = refusal.map(|refusal| refusal.why().to_owned());
    let no_trial = no_entry.clone().or_else(|| no_trial(around));
    let id = id.unwrap_or(entries::IDS[0]);
    Ok(Some(Loader {
        kind,
        name: name.into(),
        files: [config.clone(), base.entry().file].into_iter().filter(|p| view.exists(p)).collect(),
        default: Some(default.entry()),
        base: Some(base.entry()),
        is_of_release: base.is_running(around),
        kernels: others.iter().map(|other| other.entry().kernel).collect(),
        secure_boot: firmware.secure_boot,
        no_trial,
        no_entry,
        id: format!("{id}.conf"),
        limit: around.limit,
        method: Box::new(SystemdBoot {
            default: default.name.clone(),
            base,
            config,
            id,
            is_variable: firmware.entry_default.is_some(),
            refusal,
        }),
    }))
}

fn no_trial(around: &LoaderContext) -> Option<String> {
    let firmware = &around.firmware;
    if !firmware.is_uefi {
        return Some(
            "the machine was not booted by UEFI, so systemd-boot takes no entry for one boot"
                .into(),
        );
    }
    match (&firmware.loader, firmware.features) {
        (Some(name), Some(bits)) if name.starts_with("systemd-boot") && bits & ONE_SHOT == 0 => {
            Some(format!("{name} does not take an entry for one boot; update it (bootctl update)"))
        }
        (Some(name), _) if name.starts_with("systemd-boot") => None,
        (Some(name), _) => Some(format!("{name} started this system, not systemd-boot")),
        (None, _) => Some(
            "no boot loader reports that it started this system (LoaderInfo), so it is unknown \
             whether it accepts an entry for one boot"
                .into(),
        ),
    }
}

/// Entries of others on every partition.
fn others(view: &BootView<'_>) -> Result<Vec<Other>, BootError> {
    let mut others = Vec::new();
    for mount in MOUNTS {
        for file in entries::read(view, &format!("{mount}/loader/entries"))? {
            if file.is_ours() || ["linux", "efi", "uki"].iter().all(|k| file.get(k).is_none()) {
                continue;
            }
            others.push(Other {
                name: file.name.clone(),
                mount,
                sort_key: file.get("sort-key").map(str::to_owned),
                version: file.get("version").unwrap_or_default().to_owned(),
                is_bad: file.tries_left == Some(0),
                what: What::File(file),
            });
        }
        let folder = format!("{mount}/EFI/Linux");
        let names = view.names(&folder)?;
        let names = names.iter().filter(|name| name.to_ascii_lowercase().ends_with(".efi"));
        for name in names.take(IMAGES_MAX) {
            let path = format!("{folder}/{name}");
            let Some(texts) = efi::read_unified_image(view, &path)? else { continue };
            let (stem, left) = entries::uncounted(&name[..name.len() - 4]);
            others.push(Other {
                name: format!("{stem}.efi"),
                mount,
                sort_key: texts.release("IMAGE_ID").or_else(|| texts.release("ID")),
                version: ["IMAGE_VERSION", "VERSION", "VERSION_ID", "BUILD_ID"]
                    .iter()
                    .find_map(|key| texts.release(key))
                    .unwrap_or_default(),
                is_bad: left == Some(0),
                what: What::Image(Box::new(Image { path, texts })),
            });
        }
    }
    Ok(others)
}

impl efi::Texts {
    /// A value of the os-release in the image.
    fn release(&self, key: &str) -> Option<String> {
        let lines = self.osrel.as_deref()?.lines();
        let value = lines.filter_map(|line| line.split_once('=')).find(|(known, _)| *known == key);
        value.map(|(_, value)| value.trim_matches(['"', '\'']).to_owned())
    }
}

/// loader.conf, on the EFI system partition: the file shows which of the mounts that is.
fn config(view: &BootView<'_>) -> String {
    let paths = MOUNTS.map(|mount| format!("{mount}/loader/loader.conf"));
    let there = paths.iter().find(|path| view.exists(path));
    let with_loader = || {
        let mount = MOUNTS.iter().find(|mount| view.exists(&format!("{mount}/EFI/systemd")));
        format!("{}/loader/loader.conf", mount.unwrap_or(&MOUNTS[0]))
    };
    there.cloned().unwrap_or_else(with_loader)
}

/// The last `default` of loader.conf that is not ours.
fn settings(view: &BootView<'_>, path: &str) -> Result<Option<String>, BootError> {
    let text = efi::lines_outside_marks(view, path)?;
    let value = |line: &str| {
        let (key, value) = line.trim().split_once(char::is_whitespace)?;
        (key == "default" && value.trim() != "@saved").then(|| value.trim().to_owned())
    };
    Ok(text.lines().filter_map(value).next_back())
}

/// A pattern of loader.conf: `*` and `?`, letters of either case.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    !pattern.is_empty() && pattern[p..].iter().all(|&c| c == '*')
}

impl Other {
    /// The order of systemd-boot: what has run out of tries last, with a sort key first.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |entry: &Self| entry.sort_key.clone();
        let newest = |a: &str, b: &str| entries::compare(b, a);
        self.is_bad
            .cmp(&other.is_bad)
            .then(match (key(self), key(other)) {
                (Some(a), Some(b)) => a.cmp(&b).then(newest(&self.version, &other.version)),
                (a, b) => b.is_some().cmp(&a.is_some()),
            })
            .then(newest(self.name.trim_end_matches(".conf"), other.name.trim_end_matches(".conf")))
    }

    fn entry(&self) -> BootEntry {
        match &self.what {
            What::File(file) => file.entry(&self.name, &file.options()),
            What::Image(image) => BootEntry {
                title: image.texts.release("PRETTY_NAME").unwrap_or_else(|| self.name.clone()),
                id: self.name.clone(),
                kernel: image.path.strip_prefix(self.mount).unwrap_or(&image.path).to_owned(),
                initrd: vec![],
                cmdline: image.texts.cmdline.clone().unwrap_or_default(),
                file: image.path.clone(),
                line: 1,
            },
        }
    }

    fn is_running(&self, around: &LoaderContext) -> bool {
        let Some(release) = around.release.as_deref() else { return false };
        match &self.what {
            What::File(file) => {
                let is_version = file.get("version") == Some(release);
                let kernel = file.get("linux").or_else(|| file.get("efi")).unwrap_or_default();
                // kernel-install has the release as a folder: TOKEN/RELEASE/linux.
                is_version
                    || around.is_running(kernel)
                    || kernel.split('/').any(|part| part == release)
            }
            What::Image(image) => {
                let is_named = self.name.trim_end_matches(".efi").ends_with(release);
                image.texts.uname.as_deref().map_or(is_named, |uname| uname == release)
            }
        }
    }
}

impl SystemdBoot {
    fn path(&self) -> String {
        format!("{}/loader/entries/{}.conf", self.base.mount, self.id)
    }

    /// What a human does where nothing is written.
    fn printed(&self, refusal: Refusal, line: &str) -> String {
        let image = self.base.entry();
        let quoted = format!("'{}'", line.replace('\'', "'\\''"));
        match refusal {
            Refusal::Place => format!(
                "Choose the default by its name, then plan again:\n\nbootctl set-default {}\n",
                self.default
            ),
            Refusal::NoLoader => format!(
                "Where Secure Boot is off, give the firmware a second entry for the same image. \
                 Boot it once by its number. When it came up, put it first in the boot order:\n\n\
                 efibootmgr --create-only --disk DISK --part PARTITION --label '{TITLE}' \
                 --loader '{}' --unicode {quoted}\nefibootmgr --bootnext NUMBER\n",
                image.kernel.replace('/', "\\")
            ),
            Refusal::Signed => format!(
                "Build and sign a second image with this command line beside {}, then boot it \
                 once:\n\n\
                 ukify build --linux=VMLINUZ --initrd=INITRD --cmdline={quoted} \
                 --secureboot-private-key=KEY --secureboot-certificate=CERTIFICATE \
                 --output={}/EFI/Linux/{ID}.efi\nbootctl set-oneshot {ID}.efi\n",
                image.file, self.base.mount
            ),
        }
    }
}

impl Method for SystemdBoot {
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let path = self.path();
        if let Some(refusal) = self.refusal {
            let line = cmdline::edited(&self.base.entry().cmdline, words)?;
            return Ok(WrittenEntry {
                changes: vec![],
                printed: Some(self.printed(refusal, &line)),
            });
        }
        entries::not_taken(view, &path)?;
        let text = match &self.base.what {
            What::File(file) => file.copy(&file.options(), words, None)?,
            What::Image(_) => {
                let image = self.base.entry();
                let options = cmdline::edited(&image.cmdline, words)?;
                format!("{}efi {}\noptions {options}\n", entries::head(), image.kernel)
            }
        };
        Ok(WrittenEntry { changes: vec![super::file_change(path, text)], printed: None })
    }

    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        let found = entries::read(view, &format!("{}/loader/entries", self.base.mount))?;
        let ours = found.iter().find(|file| file.stem() == self.id);
        Ok(ours.map(|file| file.entry(&file.name, &file.options())))
    }

    fn trial(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let value = format!("{}.conf", self.id);
        Ok(vec![Change::EfiVariable { name: efi::name("LoaderEntryOneShot"), value }])
    }

    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let value = format!("{}.conf", self.id);
        // The firmware's memory has more say than the file.
        if self.is_variable {
            return Ok(vec![Change::EfiVariable { name: efi::name("LoaderEntryDefault"), value }]);
        }
        Ok(vec![efi::with_lines(view, &self.config, &format!("default {value}\n"))?])
    }

    fn is_armed(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        let firmware = efi::Firmware::read(view.root());
        Ok(firmware.entry_one_shot == Some(format!("{}.conf", self.id)))
    }

    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        match efi::Firmware::read(view.root()).entry_default {
            Some(default) => Ok(default == format!("{}.conf", self.id)),
            None => efi::is_in(view, &self.config),
        }
    }

    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let mut changes = Vec::from_iter(efi::removal(view, &self.config)?);
        let firmware = efi::Firmware::read(view.root());
        if firmware.entry_default == Some(format!("{}.conf", self.id)) {
            let name = efi::name("LoaderEntryDefault");
            changes.push(Change::EfiVariable { name, value: self.default.clone() });
        }
        changes.extend(entries::removal(view, &self.path())?);
        Ok(changes)
    }

    /// `initrd=` words for each initial RAM disk, by kernels that load them themselves.
    fn added_bytes(&self, entry: &BootEntry) -> usize {
        entry.initrd.iter().map(|path| "initrd= ".len() + path.len()).sum()
    }

    fn fallback(&self) -> String {
        format!("systemd-boot forgets the choice before it starts the kernel: {AFTER_A_TRIAL}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, is_it) in [
            ("debian-*", "debian-6.1.conf", true),
            ("DEBIAN-?.1*", "debian-6.1.conf", true),
            ("*-rt*.conf", "a-6.1-rt.conf", true),
            ("*", "x", true),
            ("", "x", false),
            ("a*b", "axc", false),
            ("a**b", "aqb", true),
            ("debian", "debian-6", false),
        ] {
            assert_eq!(matches(pattern, name), is_it, "{pattern} {name}");
        }
        let many = "*a".repeat(2000);
        assert!(!matches(&many, &"a".repeat(1999)));
    }
}
