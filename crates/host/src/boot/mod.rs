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
    own::{FOLDER, OwnKernel, detect_release, release_of, signature_bytes},
};
use self::{loader::Around, view::View};
use crate::Root;

/// Looks for one boot loader.
type Detector = fn(&View<'_>, &Around) -> Result<Option<Loader>, BootError>;

/// Reads the boot loader of a machine.
///
/// # Errors
/// A file of it cannot be read or understood.
pub fn detect(root: &Root) -> Result<Loader, BootError> {
    let around = Around::read(root);
    let mut loader = detect_around(&View::new(root), &around)?;
    own::take_running(root, &around, &mut loader);
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
