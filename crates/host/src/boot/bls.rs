//! GRUB with one file for each entry (Fedora, RHEL): our entry is a file of its own, and GRUB's
//! environment says which one boots.

use super::entries::EntryFile;
use super::grub::{GrubConfig, Menu};
use super::loader::{
    BootEntry, BootError, BootView, Change, Loader, LoaderContext, LoaderKind, Method, Word,
    WrittenEntry,
};
use super::{cmdline, efi, entries, grub, grub_script};

/// Where the files are; grub.cfg can name another folder in `blsdir`.
const FOLDER: &str = "/boot/loader/entries";

/// GRUB and its files.
#[derive(Debug)]
pub(super) struct Files {
    config: GrubConfig,
    /// Entries of others, newest first, as the menu shows them.
    others: Vec<EntryFile>,
    base: EntryFile,
    /// Name of our entry.
    id: &'static str,
    /// The kernel in place of the base's.
    own: Option<super::KernelFiles>,
}

pub(super) fn loader(
    view: &BootView<'_>,
    around: &LoaderContext,
    config: GrubConfig,
) -> Result<Loader, BootError> {
    let mut others = entries::read(view, FOLDER)?;
    others.retain(|file| !file.is_ours() && file.get("linux").is_some());
    others.sort_by(|a, b| entries::compare(b.stem(), a.stem()));
    let custom = grub::custom_entries(view, &config.custom())?;
    let spec = config.default_spec(&custom);
    let by_name = others.iter().position(|file| {
        file.stem() == spec || file.name == spec || file.get("title") == Some(&spec)
    });
    let place = spec.parse().ok().filter(|&place| place < others.len()).unwrap_or(0);
    let default = by_name.unwrap_or(place);
    let is_running = |file: &&EntryFile| {
        around.is_running(file.get("linux").unwrap_or_default()) && !file.stem().contains("rescue")
    };
    let Some(first) = others.get(default) else {
        let why = "no entry that boots Linux; see what boots this machine";
        return Err(BootError::file(FOLDER, why));
    };
    let base = match Some(first).filter(is_running).or_else(|| others.iter().find(is_running)) {
        Some(running) => running.clone(),
        None => first.clone(),
    };
    // By place, the first would be ours if its name sorted first.
    let id = match by_name {
        Some(_) => Some(entries::IDS[0]),
        None => entries::id_after(others.iter().map(EntryFile::stem)),
    };
    let no_default = !config.is_saved_default() && !config.reads_custom();
    let no_entry = match id {
        None => Some(format!(
            "{FOLDER}: every name of an entry of ours would sort before the default, which is \
             chosen by its place; choose it by name first: grub2-set-default {}",
            first.stem()
        )),
        Some(_) if no_default => Some(format!(
            "{} takes its default neither from saved_entry nor from custom.cfg; make it anew with \
             grub2-mkconfig",
            config.path()
        )),
        Some(_) => None,
    };
    let is_of_release = is_running(&&base);
    let id = id.unwrap_or(entries::IDS[0]);
    let files = Files { id, base, others: vec![], config, own: None };
    let entry = |file: &EntryFile| file.entry(file.stem(), &files.expanded(&file.options()));
    let names = [files.config.path(), files.config.environment.path.clone()];
    Ok(Loader {
        kind: LoaderKind::GrubEntries,
        name: "GRUB 2 with boot loader entries".into(),
        files: names.into_iter().chain([entry(&files.base).file]).collect(),
        default: Some(entry(first)),
        base: Some(entry(&files.base)),
        is_of_release,
        kernels: others.iter().map(|file| entry(file).kernel).collect(),
        secure_boot: around.firmware.secure_boot,
        no_trial: no_entry.clone().or_else(|| files.config.no_trial(view)),
        no_entry,
        id: files.id.into(),
        limit: around.limit,
        method: Box::new(Files { others, ..files }),
    })
}

impl Files {
    fn path(&self) -> String {
        format!("{FOLDER}/{}.conf", self.id)
    }

    /// Options with GRUB's variables put in: from its environment, else from grub.cfg. One that is
    /// nowhere is empty, as in GRUB.
    fn expanded(&self, options: &str) -> String {
        let options = if options.is_empty() { "$default_kernelopts" } else { options };
        let words = cmdline::split(options).into_iter().map(|token| {
            let name = token.raw.strip_prefix('$').map(|name| {
                name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
            });
            match name {
                Some(name) => self.variable(name),
                None => token.raw,
            }
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn variable(&self, name: &str) -> String {
        let of_script = || {
            let values =
                self.config.script.top.iter().filter_map(grub_script::Statement::assignment);
            values
                .filter(|(known, _)| *known == name)
                .map(|(_, value)| value.to_owned())
                .next_back()
        };
        let value = self.config.environment.get(name).or_else(of_script);
        value.unwrap_or_default().trim().to_owned()
    }
}

impl Method for Files {
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let path = self.path();
        entries::not_taken(view, &path)?;
        // GRUB reads the options as words of its script.
        for word in words {
            if word.parameter.contains(['$', '\\', '\'', '`', ';', '&', '|', '<', '>', '{', '}']) {
                return Err(cmdline::WordError::Parameter {
                    parameter: word.parameter.chars().take(80).collect(),
                    why: "GRUB would take a character of it as its own; leave it out".into(),
                }
                .into());
            }
        }
        let text =
            self.base.copy(&self.expanded(&self.base.options()), words, self.own.as_ref())?;
        Ok(WrittenEntry { changes: vec![super::file_change(path, text)], printed: None })
    }

    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        let found = entries::read(view, FOLDER)?;
        let ours = found.iter().find(|file| file.stem() == self.id);
        Ok(ours.map(|file| file.entry(self.id, &self.expanded(&file.options()))))
    }

    fn take(&mut self, files: super::KernelFiles) -> Result<(), String> {
        self.own = Some(files);
        Ok(())
    }

    fn trial(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![self.config.environment.set("next_entry", self.id)])
    }

    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        if self.config.is_saved_default() {
            return Ok(vec![self.config.environment.set("saved_entry", self.id)]);
        }
        let lines = grub::default_lines(self.id, 0);
        Ok(vec![efi::with_lines(view, &self.config.custom(), &lines)?])
    }

    fn is_armed(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        self.config.environment.now(view, "next_entry", self.id)
    }

    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        match self.config.is_saved_default() {
            true => self.config.environment.now(view, "saved_entry", self.id),
            false => grub::is_default(view, &self.config.custom(), self.id),
        }
    }

    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let mut changes = grub::removal(view, &self.config.custom())?;
        let environment = &self.config.environment;
        if environment.now(view, "saved_entry", self.id)? {
            let newest = self.others.first().map_or("0", EntryFile::stem);
            changes.push(environment.set("saved_entry", newest));
        }
        changes.extend(entries::removal(view, &self.path())?);
        Ok(changes)
    }

    fn added_bytes(&self, entry: &BootEntry) -> usize {
        "BOOT_IMAGE= ".len() + entry.kernel.len() + "(hd00,gpt00)".len()
    }

    fn fallback(&self) -> String {
        grub::fallback_sentence()
    }
}

// GRUB 2: grub.cfg with the menu in it, or with one file for each entry.
//
// Our entry is in custom.cfg beside grub.cfg, which grub.cfg reads at its end (41_custom): no
// `update-grub` is run and no file of the distribution is touched.

/// Folders in which grub.cfg is, in the order of reading.
const FOLDERS: &[&str] = &["/boot/grub", "/boot/grub2"];

/// Where folders of boot loaders are on the EFI system partition.
const ESP: &str = "/boot/efi/EFI";

/// GRUB, if it started this kernel.
pub(super) fn detect_grub(
    view: &BootView<'_>,
    around: &LoaderContext,
) -> Result<Option<Loader>, BootError> {
    if !around.has_boot_image() {
        return Ok(None);
    }
    let Some(config) = config(view, around)? else { return Ok(None) };
    let is_bls = config.script.top.iter().any(|statement| statement.command() == "blscfg");
    if is_bls && view.names("/boot/loader/entries")?.iter().any(|name| name.ends_with(".conf")) {
        return loader(view, around, config).map(Some);
    }
    Menu::read(view, config)?.loader(view, around).map(Some)
}

/// The grub.cfg that makes the menu. One that only leads to another is passed over.
pub(super) fn config(
    view: &BootView<'_>,
    around: &LoaderContext,
) -> Result<Option<GrubConfig>, BootError> {
    let mut folders: Vec<String> = FOLDERS.iter().map(|&folder| folder.into()).collect();
    let esp = view.names(ESP).unwrap_or_default();
    let esp = esp.iter().map(|name| format!("{ESP}/{name}"));
    // RHEL 8 with UEFI has the one that counts there, and maybe an old one in /boot/grub2.
    match around.firmware.is_uefi {
        true => folders.splice(0..0, esp).for_each(drop),
        false => folders.extend(esp),
    }
    for folder in folders {
        let path = format!("{folder}/grub.cfg");
        let Some(text) = view.text(&path)? else { continue };
        let script = grub_script::parse_script(&path, &text)?;
        let has_menu = !script.entries.is_empty();
        if !has_menu && !script.top.iter().any(|statement| statement.command() == "blscfg") {
            continue;
        }
        let environment = grub::read_environment(view, &format!("{folder}/grubenv"))?;
        return Ok(Some(GrubConfig { folder, text, script, environment }));
    }
    Ok(None)
}
