//! GRUB 2: grub.cfg with the menu in it, or with one file for each entry.
//!
//! Our entry stands in custom.cfg beside grub.cfg, which grub.cfg reads at its end (41_custom): no
//! `update-grub` is run and no file of the distribution is touched.

mod bls;
pub(super) mod env;
mod menu;
mod script;

use self::{env::Environment, menu::Menu, script::Script};
use super::{Around, BootError, Loader, storage, view::View};

/// Folders in which grub.cfg is, in the order asked.
const FOLDERS: &[&str] = &["/boot/grub", "/boot/grub2"];
/// Where folders of boot loaders are on the EFI system partition.
const ESP: &str = "/boot/efi/EFI";

/// grub.cfg and what goes with it.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// Its folder.
    pub folder: String,
    /// Its text.
    pub text: String,
    script: Script,
    /// What GRUB keeps between boots.
    pub environment: Environment,
}

/// GRUB, if it started this kernel.
pub(super) fn detect(view: &View<'_>, around: &Around) -> Result<Option<Loader>, BootError> {
    if !around.has_boot_image() {
        return Ok(None);
    }
    let Some(config) = config(view, around)? else { return Ok(None) };
    let is_bls = config.script.top.iter().any(|statement| statement.command() == "blscfg");
    if is_bls && view.names("/boot/loader/entries")?.iter().any(|name| name.ends_with(".conf")) {
        return bls::loader(view, around, config).map(Some);
    }
    Menu::read(view, config)?.loader(view, around).map(Some)
}

/// The grub.cfg that makes the menu. One that only leads to another is passed over.
fn config(view: &View<'_>, around: &Around) -> Result<Option<Config>, BootError> {
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
        let script = script::parse(&path, &text)?;
        let has_menu = !script.entries.is_empty();
        if !has_menu && !script.top.iter().any(|statement| statement.command() == "blscfg") {
            continue;
        }
        let environment = env::read(view, &format!("{folder}/grubenv"))?;
        return Ok(Some(Config { folder, text, script, environment }));
    }
    Ok(None)
}

impl Config {
    pub(super) fn path(&self) -> String {
        format!("{}/grub.cfg", self.folder)
    }

    pub(super) fn custom(&self) -> String {
        format!("{}/custom.cfg", self.folder)
    }

    /// What `default` is set to when no boot was chosen once: variables put in, empty for the
    /// first.
    fn default_spec(&self, custom: &Script) -> String {
        let statements = self.script.top.iter().chain(&custom.top);
        let values = statements.filter_map(script::Statement::assignment);
        let mut defaults =
            values.filter(|(name, value)| *name == "default" && !value.contains("next_entry"));
        let value = defaults.next_back().map_or("0", |(_, value)| value);
        match value {
            "${saved_entry}" | "$saved_entry" => {
                self.environment.get("saved_entry").unwrap_or_default().to_owned()
            }
            value => value.to_owned(),
        }
    }

    /// Whether grub.cfg takes a default from the environment.
    pub(super) fn is_saved_default(&self) -> bool {
        let values = self.script.top.iter().filter_map(script::Statement::assignment);
        let mut defaults = values.filter(|(name, _)| *name == "default");
        defaults.any(|(_, value)| ["${saved_entry}", "$saved_entry"].contains(&value))
    }

    /// Whether grub.cfg reads custom.cfg after it has set the default.
    pub(super) fn reads_custom(&self) -> bool {
        let mut is_after = false;
        for statement in &self.script.top {
            if statement.assignment().is_some_and(|(name, _)| name == "default") {
                is_after = false;
            }
            let is_source = ["source", "."].contains(&statement.command());
            if is_source && statement.words.iter().any(|word| word.text.ends_with("/custom.cfg")) {
                is_after = true;
            }
        }
        is_after
    }

    /// Why a choice for one boot cannot be made safely; `None` when it can.
    pub(super) fn no_trial(&self, view: &View<'_>) -> Option<String> {
        let path = self.path();
        let has = |command: &str, word: &str| {
            self.script.top.iter().any(|statement| {
                statement.command() == command
                    && (word.is_empty() || statement.words.iter().any(|known| known.text == word))
            })
        };
        let takes = self.script.top.iter().filter_map(script::Statement::assignment);
        let takes = takes.into_iter().any(|assignment| assignment == ("default", "${next_entry}"));
        if !takes || !has("load_env", "") || !has("save_env", "next_entry") {
            return Some(format!(
                "{path} does not look at next_entry, so an entry cannot be booted once; make it \
                 anew with update-grub or grub2-mkconfig"
            ));
        }
        if let Some(why) = &self.environment.unusable {
            return Some(why.clone());
        }
        storage::why_grub_cannot_write(view.root(), &self.environment.path)
    }
}
