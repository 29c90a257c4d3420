//! The boot loader: what boots next, and a second entry, "real-time", beside it.
//!
//! Nothing is written here. [`detect`] reads; [`Loader::real_time`] says as a list of changes
//! what makes the entry, what boots it once and what makes it the default; the engine
//! ([`crate::tune`]) makes and undoes them. The entry that boots now is never edited, and
//! no file of a distribution is made anew: where our lines stand in a file of others, they stand
//! between two marks.
//!
//! One file for each boot loader; each says what it reads and writes. docs/boot.md is for users.

mod block;
pub mod cmdline;
mod efi;
mod elsewhere;
mod entries;
mod error;
mod extlinux;
mod grub;
mod loader;
mod own;
mod pe;
mod raspberry;
mod storage;
mod systemd_boot;
mod view;

#[cfg(test)]
mod tests;

pub use self::{
    cmdline::{Edit, Word, WordError},
    error::BootError,
    loader::{BootChanges, Entry, ID, Kind, Loader, Standing, TITLE},
    own::{FOLDER, OwnKernel, release_of, signature_bytes},
};
use self::{loader::Around, view::View};
use crate::Root;

/// Looks for one boot loader.
type Detector = fn(&View<'_>, &Around) -> Result<Option<Loader>, BootError>;

/// Reads the boot loader of a machine.
pub fn detect(root: &Root) -> Result<Loader, BootError> {
    let around = Around::read(root);
    let mut loader = detect_around(&View::new(root), &around)?;
    take_running(root, &around, &mut loader);
    Ok(loader)
}

fn detect_around(view: &View<'_>, around: &Around) -> Result<Loader, BootError> {
    if let Some(loader) = elsewhere::detect(view, around) {
        return Ok(loader);
    }
    // A loader that says that it started this system did; else its files decide, the clearest
    // first.
    let is_systemd = around.firmware.loader.as_deref().is_some_and(|n| n.starts_with("systemd"));
    let detectors: [Detector; 4] = match is_systemd {
        true => [systemd_boot::detect, raspberry::detect, grub::detect, extlinux::detect],
        false => [raspberry::detect, grub::detect, systemd_boot::detect, extlinux::detect],
    };
    for detect in detectors {
        if let Some(loader) = detect(view, around)? {
            return Ok(loader);
        }
    }
    Ok(elsewhere::unknown(view, around))
}

/// Reads the boot loader for an entry that is a copy of the one of this kernel, or boots one that a
/// trial has put in place.
///
/// # Errors
/// As [`detect`]; there is no entry of this kernel: the error lists those that there are.
pub fn detect_release(root: &Root, release: &str) -> Result<Loader, BootError> {
    let around = Around { release: Some(release.to_owned()), ..Around::read(root) };
    let mut loader = detect_around(&View::new(root), &around)?;
    if let Some(kernel) = OwnKernel::there(root, release).filter(|_| !loader.is_of_release) {
        loader.take_kernel(root, &kernel)?;
        return Ok(loader);
    }
    if loader.kind == Kind::Elsewhere {
        let why = loader.no_entry.unwrap_or_default();
        return Err(BootError::file(loader.name, format!("{why}: it has no entries to choose of")));
    }
    if loader.is_of_release {
        return Ok(loader);
    }
    let mut there: Vec<String> = loader.kernels.iter().map(|it| shown(it)).collect();
    there.sort();
    there.dedup();
    let there = match there.is_empty() {
        true => "its kernels have no version in their names".to_owned(),
        false => format!("there are entries of {}", there.join(", ")),
    };
    let place = loader.files.into_iter().next().unwrap_or(loader.name);
    Err(BootError::file(place, format!("no entry of kernel {release}; {there}")))
}

/// Lets an entry of the running kernel boot that kernel also where it is on trial, and the menu
/// does not have it.
fn take_running(root: &Root, around: &Around, loader: &mut Loader) {
    let Some(release) = around.release.as_deref().filter(|_| !loader.is_of_release) else { return };
    let Some(kernel) = OwnKernel::there(root, release) else { return };
    if let Err(error) = loader.take_kernel(root, &kernel) {
        loader.no_trial = Some(error.to_string());
        loader.no_entry = loader.no_trial.clone();
    }
}

/// A kernel as an error shows it: its release, else its path.
fn shown(kernel: &str) -> String {
    release_of(kernel).unwrap_or_else(|| kernel.to_owned())
}
