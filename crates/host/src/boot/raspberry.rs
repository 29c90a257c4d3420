//! The firmware of a Raspberry Pi: cmdline.txt, chosen by config.txt, and tryboot.txt, which takes
//! the place of config.txt for one boot when reboot(2) asks for it.

use super::loader::{
    AFTER_A_TRIAL, Around, BootError, Change, Entry, Kind, Loader, Method, TITLE, View, Word,
    Written, block, cmdline, view,
};

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
pub(super) fn detect(view: &View<'_>, around: &Around) -> Result<Option<Loader>, BootError> {
    for &folder in FOLDERS {
        let path = format!("{folder}/config.txt");
        let Some(bytes) = view.bytes(&path)? else { continue };
        let text = block::without(&path, &bytes)?;
        let config = parse(&path, &String::from_utf8_lossy(&text))?;
        let pi = Raspberry { folder, config };
        if pi.config.kernel.as_ref().is_some_and(|kernel| kernel.contains("u-boot")) {
            return Ok(None);
        }
        let Some(base) = pi.line(view, &pi.cmdline_path())? else { continue };
        return Ok(Some(Loader {
            kind: Kind::RaspberryPi,
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
fn parse(path: &str, text: &str) -> Result<Config, BootError> {
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
    fn line(&self, view: &View<'_>, path: &str) -> Result<Option<Entry>, BootError> {
        let Some(text) = view.text(path)? else { return Ok(None) };
        let line = text.lines().next().unwrap_or_default().trim();
        let is_ours = path == self.ours();
        Ok(Some(Entry {
            title: if is_ours { TITLE.into() } else { "config.txt".into() },
            id: path.rsplit('/').next().unwrap_or_default().into(),
            kernel: self.config.kernel.clone().unwrap_or_else(|| "the firmware's choice".into()),
            initrd: self.config.initrd.clone(),
            cmdline: line.to_owned(),
            file: path.into(),
            line: 1,
        }))
    }

    fn no_trial(&self, view: &View<'_>) -> Result<Option<String>, BootError> {
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
    fn write(&self, view: &View<'_>, words: &[Word]) -> Result<Written, BootError> {
        let tryboot = self.path("tryboot.txt");
        if view.bytes(&tryboot)?.is_some() && !block::is_in(view, &tryboot)? {
            let why = "not made by rtproof: tryboot is used by somebody else; move it away to try \
                       an entry of rtproof";
            return Err(BootError::file(tryboot, why));
        }
        let base = self.line(view, &self.cmdline_path())?.map(|entry| entry.cmdline);
        let line = cmdline::edited(&base.unwrap_or_default(), words)?;
        let config = self.path("config.txt");
        let text = block::without(&config, &view.bytes(&config)?.unwrap_or_default())?;
        let text = block::with(&tryboot, &text, &Self::choice())?;
        let changes = vec![view::file(self.ours(), format!("{line}\n")), view::file(tryboot, text)];
        Ok(Written { changes, printed: None })
    }

    fn entry(&self, view: &View<'_>) -> Result<Option<Entry>, BootError> {
        let tryboot = self.path("tryboot.txt");
        if block::is_in(view, &tryboot)? { self.line(view, &self.ours()) } else { Ok(None) }
    }

    fn confirm(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![block::put(view, &self.path("config.txt"), &Self::choice())?])
    }

    fn is_default(&self, view: &View<'_>) -> Result<bool, BootError> {
        block::is_in(view, &self.path("config.txt"))
    }

    fn removal(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        let mut changes = Vec::from_iter(block::removal(view, &self.path("config.txt"))?);
        let tryboot = self.path("tryboot.txt");
        if block::is_in(view, &tryboot)? {
            changes.push(view::gone(tryboot));
        }
        if view.bytes(&self.ours())?.is_some() {
            changes.push(view::gone(self.ours()));
        }
        Ok(changes)
    }

    fn reboot(&self) -> Option<String> {
        Some("0 tryboot".into())
    }

    fn fallback(&self) -> String {
        format!("the firmware takes tryboot.txt for one boot alone: {AFTER_A_TRIAL}")
    }

    fn by_hand(&self) -> String {
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
    fn settings_of_every_board() {
        let text = "# x\ndtparam=audio=on\n[pi4]\nkernel=k4.img\n[all]\ncmdline=c.txt\n\
                    os_prefix=current/\ninitramfs initrd.img followkernel\nkernel = vmlinuz\n";
        let config = parse("config.txt", text).unwrap();
        assert_eq!(config.cmdline.as_deref(), Some("c.txt"));
        assert_eq!(
            (config.prefix.as_str(), config.kernel.as_deref()),
            ("current/", Some("vmlinuz"))
        );
        assert_eq!(config.initrd, ["initrd.img"]);
        let error = parse("config.txt", "[pi5]\ncmdline=x\n").unwrap_err().to_string();
        assert!(error.contains("config.txt:2"), "{error}");
        assert!(parse("c", "[tryboot]\n").unwrap().has_tryboot);
    }
}
