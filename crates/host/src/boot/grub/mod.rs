//! GRUB 2: grub.cfg with the menu in it, or with one file for each entry.
//!
//! Our entry is in custom.cfg beside grub.cfg, which grub.cfg reads at its end (41_custom): no
//! `update-grub` is run and no file of the distribution is touched.

mod bls;
mod config;
pub(super) mod env;
mod keep;
mod menu;
mod script;

use self::{config::Config, menu::Menu};
use super::{
    error::BootError,
    loader::{Around, Loader},
    view::View,
};

/// Folders in which grub.cfg is, in the order of reading.
const FOLDERS: &[&str] = &["/boot/grub", "/boot/grub2"];
/// Where folders of boot loaders are on the EFI system partition.
const ESP: &str = "/boot/efi/EFI";

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
