//! Boot loaders whose configuration is one plain file: extlinux and U-Boot, the Raspberry Pi.

use super::loader::{
    AFTER_A_TRIAL, BootEntry, BootError, BootView, Change, ID, Loader, LoaderContext, LoaderKind,
    Method, TITLE, Word, WrittenEntry,
};
use super::{cmdline, efi};

// extlinux.conf, read by extlinux and by U-Boot ("distro boot"): a second label at the end. There
// is no choice for one boot.

/// Where it is, in the order of reading.
const PATHS: &[&str] = &["/boot/extlinux/extlinux.conf", "/extlinux/extlinux.conf"];

const LABELS_MAX: usize = 100_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Label {
    name: String,
    title: Option<String>,
    kernel: String,
    initrd: Vec<String>,
    append: String,
    /// Lines of it, without that of `label`.
    lines: Vec<String>,
    line: usize,
    is_menu_default: bool,
}

/// The file, and what ours is made of.
#[derive(Debug)]
struct Extlinux {
    path: String,
    base: Label,
}

/// extlinux.conf, if there is one.
pub(super) fn detect_extlinux(
    view: &BootView<'_>,
    around: &LoaderContext,
) -> Result<Option<Loader>, BootError> {
    let Some(path) = PATHS.iter().find(|path| view.exists(path)) else { return Ok(None) };
    let (labels, default) = parse_extlinux(path, &efi::lines_outside_marks(view, path)?)?;
    let is_default = |label: &&Label| match &default {
        Some(default) => label.name == *default,
        None => label.is_menu_default,
    };
    let Some(default) = labels.iter().find(is_default).or_else(|| labels.first()) else {
        let why = "no label; expected lines with LABEL, LINUX and APPEND";
        return Err(BootError::file(*path, why));
    };
    let is_running =
        |label: &&Label| around.is_running(&label.kernel) && !cmdline::has(&label.append, "single");
    let running = || labels.iter().find(is_running);
    let base = match around.is_running(&default.kernel) {
        true => default,
        false => running().unwrap_or(default),
    };
    Ok(Some(Loader {
        kind: LoaderKind::Extlinux,
        name: "extlinux.conf (U-Boot or extlinux)".into(),
        files: vec![(*path).into()],
        default: Some(default.entry(path)),
        base: Some(base.entry(path)),
        is_of_release: around.is_running(&base.kernel),
        kernels: labels.iter().map(|label| label.kernel.clone()).collect(),
        secure_boot: around.firmware.secure_boot,
        no_trial: Some(format!(
            "{path} has no choice for one boot: choose \"{TITLE}\" by hand in the menu (serial \
             console), and confirm it when it came up"
        )),
        no_entry: None,
        id: ID.into(),
        limit: around.limit,
        method: Box::new(Extlinux { path: (*path).into(), base: base.clone() }),
    }))
}

/// Labels, and the one that `default` names.
fn parse_extlinux(path: &str, text: &str) -> Result<(Vec<Label>, Option<String>), BootError> {
    let mut labels: Vec<Label> = Vec::new();
    let mut default = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let (key, value) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        let (key, value) = (key.to_ascii_lowercase(), value.trim());
        match key.as_str() {
            "" => continue,
            _ if key.starts_with('#') => continue,
            "default" => {
                default = Some(value.to_owned());
                continue;
            }
            "label" => {
                if labels.len() >= LABELS_MAX {
                    let what = "more than 100000 labels".into();
                    let next = "see whether the file is damaged";
                    return Err(BootError::Text { path: path.into(), line: index + 1, what, next });
                }
                let name = value.to_owned();
                labels.push(Label { name, line: index + 1, ..Label::default() });
                continue;
            }
            _ => {}
        }
        let Some(label) = labels.last_mut() else { continue };
        let menu = value.split_once(char::is_whitespace).unwrap_or((value, ""));
        let is_menu = |word| key == "menu" && menu.0.eq_ignore_ascii_case(word);
        match key.as_str() {
            _ if is_menu("label") => label.title = Some(menu.1.trim().to_owned()),
            _ if is_menu("default") => label.is_menu_default = true,
            "linux" | "kernel" | "fit" => label.kernel = value.to_owned(),
            "initrd" => label.initrd = value.split(',').map(str::to_owned).collect(),
            "append" => {
                label.append = value.to_owned();
                label.line = index + 1;
            }
            // Settings of the menu that follow a label.
            "timeout" | "prompt" | "ontimeout" | "ui" | "menu" | "display" | "say" => continue,
            _ => {}
        }
        let is_ours_to_write = key == "append" || is_menu("label") || is_menu("default");
        if !is_ours_to_write {
            label.lines.push(line.trim_end().to_owned());
        }
    }
    Ok((labels, default))
}

impl Label {
    fn entry(&self, path: &str) -> BootEntry {
        BootEntry {
            title: self.title.clone().unwrap_or_else(|| self.name.clone()),
            id: self.name.clone(),
            kernel: self.kernel.clone(),
            initrd: self.initrd.clone(),
            cmdline: self.append.clone(),
            file: path.into(),
            line: self.line,
        }
    }
}

impl Extlinux {
    /// All labels, ours with them, and the default's name.
    fn labels(&self, view: &BootView<'_>) -> Result<(Vec<Label>, Option<String>), BootError> {
        let text = view.bytes(&self.path)?.unwrap_or_default();
        parse_extlinux(&self.path, &String::from_utf8_lossy(&text))
    }
}

impl Method for Extlinux {
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let append = cmdline::edited(&self.base.append, words)?;
        let mut lines = format!("LABEL {ID}\n\tMENU LABEL {TITLE}\n");
        for line in &self.base.lines {
            lines += &format!("{line}\n");
        }
        lines += &format!("\tAPPEND {append}\n");
        Ok(WrittenEntry {
            changes: vec![efi::with_lines(view, &self.path, &lines)?],
            printed: None,
        })
    }

    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        let (labels, _) = self.labels(view)?;
        let ours = labels.iter().rfind(|label| label.name == ID);
        Ok(ours.map(|label| label.entry(&self.path)))
    }

    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let default = format!("DEFAULT {ID}\n");
        let lines = efi::lines_between_marks(view, &self.path)?.replace(&default, "");
        Ok(vec![efi::with_lines(view, &self.path, &format!("{lines}{default}"))?])
    }

    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        Ok(self.labels(view)?.1.as_deref() == Some(ID))
    }

    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(efi::removal(view, &self.path)?.into_iter().collect())
    }

    fn manual_step(&self) -> String {
        "nothing falls back by itself: U-Boot tries another label only when the kernel's file \
         cannot be read; choose the old label in the menu (serial console)"
            .into()
    }
}

// The firmware of a Raspberry Pi: cmdline.txt, chosen by config.txt, and tryboot.txt, which takes
// the place of config.txt for one boot when reboot(2) asks for it.

/// Where the boot partition is mounted, in the order of reading.
const FOLDERS: &[&str] = &["/boot/firmware", "/boot"];

const CMDLINE: &str = "cmdline-rtproof.txt";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Config {
    cmdline: Option<String>,
    prefix: String,
    kernel: Option<String>,
    initrd: Vec<String>,
    has_tryboot: bool,
}

#[derive(Debug)]
struct Raspberry {
    folder: &'static str,
    config: Config,
}

/// The firmware of a Raspberry Pi, if this is one that starts Linux itself.
pub(super) fn detect_raspberry(
    view: &BootView<'_>,
    around: &LoaderContext,
) -> Result<Option<Loader>, BootError> {
    for &folder in FOLDERS {
        let path = format!("{folder}/config.txt");
        let Some(bytes) = view.bytes(&path)? else { continue };
        let text = efi::without(&path, &bytes)?;
        let config = parse_raspberry(&path, &String::from_utf8_lossy(&text))?;
        let pi = Raspberry { folder, config };
        if pi.config.kernel.as_ref().is_some_and(|kernel| kernel.contains("u-boot")) {
            return Ok(None);
        }
        let Some(base) = pi.line(view, &pi.cmdline_path())? else { continue };
        return Ok(Some(Loader {
            kind: LoaderKind::RaspberryPi,
            name: "Raspberry Pi firmware".into(),
            files: vec![path, pi.cmdline_path()],
            default: Some(base.clone()),
            is_of_release: around.is_running(&base.kernel),
            kernels: vec![base.kernel.clone()],
            base: Some(base),
            secure_boot: around.firmware.secure_boot,
            no_trial: pi.no_trial(view)?,
            no_entry: None,
            id: CMDLINE.into(),
            limit: around.limit,
            method: Box::new(pi),
        }));
    }
    Ok(None)
}

/// Reads config.txt; settings of one model alone are not taken.
fn parse_raspberry(path: &str, text: &str) -> Result<Config, BootError> {
    let mut config = Config::default();
    let mut is_all = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        if let Some(filter) = line.strip_prefix('[') {
            let filter = filter.trim_end_matches(']').to_ascii_lowercase();
            is_all = filter == "all";
            config.has_tryboot |= filter == "tryboot";
            continue;
        }
        let words = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = words.or_else(|| line.split_once(' ')) else { continue };
        if ["cmdline", "os_prefix"].contains(&key) && !is_all {
            return Err(BootError::Text {
                path: path.into(),
                line: index + 1,
                what: format!("{key} is set for some boards alone"),
                next: "move it below [all], or edit the command line by hand",
            });
        }
        match key {
            "cmdline" => config.cmdline = Some(value.to_owned()),
            "os_prefix" => config.prefix = value.to_owned(),
            "kernel" if is_all => config.kernel = Some(value.to_owned()),
            "initramfs" => {
                config.initrd = value.split_whitespace().take(1).map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    Ok(config)
}

impl Raspberry {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn cmdline_path(&self) -> String {
        let name = self.config.cmdline.as_deref().unwrap_or("cmdline.txt");
        self.path(&format!("{}{name}", self.config.prefix))
    }

    fn ours(&self) -> String {
        self.path(&format!("{}{CMDLINE}", self.config.prefix))
    }

    /// The first line of a file is what the firmware takes.
    fn line(&self, view: &BootView<'_>, path: &str) -> Result<Option<BootEntry>, BootError> {
        let Some(text) = view.text(path)? else { return Ok(None) };
        let line = text.lines().next().unwrap_or_default().trim();
        let is_ours = path == self.ours();
        Ok(Some(BootEntry {
            title: if is_ours { TITLE.into() } else { "config.txt".into() },
            id: path.rsplit('/').next().unwrap_or_default().into(),
            kernel: self.config.kernel.clone().unwrap_or_else(|| "the firmware's choice".into()),
            initrd: self.config.initrd.clone(),
            cmdline: line.to_owned(),
            file: path.into(),
            line: 1,
        }))
    }

    fn no_trial(&self, view: &BootView<'_>) -> Result<Option<String>, BootError> {
        let autoboot = self.path("autoboot.txt");
        let auto = view.bytes(&autoboot)?.unwrap_or_default();
        let auto = String::from_utf8_lossy(&auto);
        let uses =
            |text: &str| text.lines().any(|line| line.trim().replace(' ', "") == "tryboot_a_b=1");
        if uses(&auto) || auto.contains("[tryboot]") {
            return Ok(Some(format!("{autoboot} uses tryboot to choose a partition")));
        }
        Ok(self.config.has_tryboot.then(|| {
            format!(
                "{} has a [tryboot] section: tryboot is used by somebody else",
                self.path("config.txt")
            )
        }))
    }

    /// The line in a configuration that chooses our command line.
    fn choice() -> String {
        format!("[all]\ncmdline={CMDLINE}\n")
    }
}

impl Method for Raspberry {
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let tryboot = self.path("tryboot.txt");
        if view.bytes(&tryboot)?.is_some() && !efi::is_in(view, &tryboot)? {
            let why = "not made by rtproof: tryboot is used by somebody else; move it away to try \
                       an entry of rtproof";
            return Err(BootError::file(tryboot, why));
        }
        let base = self.line(view, &self.cmdline_path())?.map(|entry| entry.cmdline);
        let line = cmdline::edited(&base.unwrap_or_default(), words)?;
        let config = self.path("config.txt");
        let text = efi::without(&config, &view.bytes(&config)?.unwrap_or_default())?;
        let text = efi::with_block(&tryboot, &text, &Self::choice())?;
        let changes = vec![
            super::file_change(self.ours(), format!("{line}\n")),
            super::file_change(tryboot, text),
        ];
        Ok(WrittenEntry { changes, printed: None })
    }

    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        let tryboot = self.path("tryboot.txt");
        if efi::is_in(view, &tryboot)? { self.line(view, &self.ours()) } else { Ok(None) }
    }

    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![efi::with_lines(view, &self.path("config.txt"), &Self::choice())?])
    }

    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        efi::is_in(view, &self.path("config.txt"))
    }

    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let mut changes = Vec::from_iter(efi::removal(view, &self.path("config.txt"))?);
        let tryboot = self.path("tryboot.txt");
        if efi::is_in(view, &tryboot)? {
            changes.push(super::removed_file(tryboot));
        }
        if view.bytes(&self.ours())?.is_some() {
            changes.push(super::removed_file(self.ours()));
        }
        Ok(changes)
    }

    fn reboot(&self) -> Option<String> {
        Some("0 tryboot".into())
    }

    fn fallback(&self) -> String {
        format!("the firmware takes tryboot.txt for one boot alone: {AFTER_A_TRIAL}")
    }

    fn manual_step(&self) -> String {
        format!(
            "nothing falls back by itself: take the lines of rtproof out of {} on another machine",
            self.path("config.txt")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_any_case() {
        let text = "## x\ntimeout 50\ndefault l0\n\nlabel l0\n\tmenu label Debian 6.1\n\
                    \tlinux /vmlinuz-6.1\n\tinitrd /initrd\n\tfdtdir /dtb/\n\n\tappend ro quiet\n\
                    LABEL x\n  MENU DEFAULT\n  KERNEL /v\nTIMEOUT 5\n";
        let (labels, default) = parse_extlinux("f", text).unwrap();
        assert_eq!(default.as_deref(), Some("l0"));
        assert_eq!(labels[0].append, "ro quiet");
        assert_eq!(labels[0].line, 11);
        assert_eq!(labels[0].lines, ["\tlinux /vmlinuz-6.1", "\tinitrd /initrd", "\tfdtdir /dtb/"]);
        assert!(labels[1].is_menu_default && labels[1].lines == ["  KERNEL /v"]);
        assert!(parse_extlinux("f", &"label x\n".repeat(100_001)).is_err());
    }
}

#[cfg(test)]
mod raspberry_tests {
    use super::*;

    #[test]
    fn settings_of_every_board() {
        let text = "# x\ndtparam=audio=on\n[pi4]\nkernel=k4.img\n[all]\ncmdline=c.txt\n\
                    os_prefix=current/\ninitramfs initrd.img followkernel\nkernel = vmlinuz\n";
        let config = parse_raspberry("config.txt", text).unwrap();
        assert_eq!(config.cmdline.as_deref(), Some("c.txt"));
        assert_eq!(
            (config.prefix.as_str(), config.kernel.as_deref()),
            ("current/", Some("vmlinuz"))
        );
        assert_eq!(config.initrd, ["initrd.img"]);
        let error = parse_raspberry("config.txt", "[pi5]\ncmdline=x\n").unwrap_err().to_string();
        assert!(error.contains("config.txt:2"), "{error}");
        assert!(parse_raspberry("c", "[tryboot]\n").unwrap().has_tryboot);
    }
}
