//! extlinux.conf, read by extlinux and by U-Boot ("distro boot"): a second label at the end. There
//! is no choice for one boot.

use super::loader::{
    Around, BootError, Change, Entry, ID, Kind, Loader, Method, TITLE, View, Word, Written, block,
    cmdline,
};

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
pub(super) fn detect(view: &View<'_>, around: &Around) -> Result<Option<Loader>, BootError> {
    let Some(path) = PATHS.iter().find(|path| view.exists(path)) else { return Ok(None) };
    let (labels, default) = parse(path, &block::others(view, path)?)?;
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
        kind: Kind::Extlinux,
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
fn parse(path: &str, text: &str) -> Result<(Vec<Label>, Option<String>), BootError> {
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
            // Settings of the menu that stand below a label.
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
    fn entry(&self, path: &str) -> Entry {
        Entry {
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
    fn labels(&self, view: &View<'_>) -> Result<(Vec<Label>, Option<String>), BootError> {
        let text = view.bytes(&self.path)?.unwrap_or_default();
        parse(&self.path, &String::from_utf8_lossy(&text))
    }
}

impl Method for Extlinux {
    fn write(&self, view: &View<'_>, words: &[Word]) -> Result<Written, BootError> {
        let append = cmdline::edited(&self.base.append, words)?;
        let mut lines = format!("LABEL {ID}\n\tMENU LABEL {TITLE}\n");
        for line in &self.base.lines {
            lines += &format!("{line}\n");
        }
        lines += &format!("\tAPPEND {append}\n");
        Ok(Written { changes: vec![block::put(view, &self.path, &lines)?], printed: None })
    }

    fn entry(&self, view: &View<'_>) -> Result<Option<Entry>, BootError> {
        let (labels, _) = self.labels(view)?;
        let ours = labels.iter().rfind(|label| label.name == ID);
        Ok(ours.map(|label| label.entry(&self.path)))
    }

    fn confirm(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        let default = format!("DEFAULT {ID}\n");
        let lines = block::ours(view, &self.path)?.replace(&default, "");
        Ok(vec![block::put(view, &self.path, &format!("{lines}{default}"))?])
    }

    fn is_default(&self, view: &View<'_>) -> Result<bool, BootError> {
        Ok(self.labels(view)?.1.as_deref() == Some(ID))
    }

    fn removal(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        Ok(block::removal(view, &self.path)?.into_iter().collect())
    }

    fn by_hand(&self) -> String {
        "nothing falls back by itself: U-Boot tries another label only when the kernel's file \
         cannot be read; choose the old label in the menu (serial console)"
            .into()
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
        let (labels, default) = parse("f", text).unwrap();
        assert_eq!(default.as_deref(), Some("l0"));
        assert_eq!(labels[0].append, "ro quiet");
        assert_eq!(labels[0].line, 11);
        assert_eq!(labels[0].lines, ["\tlinux /vmlinuz-6.1", "\tinitrd /initrd", "\tfdtdir /dtb/"]);
        assert!(labels[1].is_menu_default && labels[1].lines == ["  KERNEL /v"]);
        assert!(parse("f", &"label x\n".repeat(100_001)).is_err());
    }
}
