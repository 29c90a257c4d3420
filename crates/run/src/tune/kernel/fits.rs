//! Whether an image is a kernel for this machine, and which release it is.

use std::path::Path;

use anyhow::{Context as _, ensure};
use rtproof_guest::{arch::Arch, image::Image};
use rtproof_host::{Facts, Root};

use super::staged;

/// A kernel's image, once it is one for this machine, with its release.
pub(super) fn image_of(root: &Root, path: &Path, bytes: &[u8]) -> anyhow::Result<String> {
    let image = Image::read(bytes).map_err(|error| {
        anyhow::anyhow!("{}: {error:#}; expected the image of a kernel", path.display())
    })?;
    let arch = Facts::read(root).kernel.arch;
    let machine = arch.value().with_context(|| {
        format!(
            "{}: the architecture of this machine is unknown ({}), so it is unknown whether this \
             kernel runs on it",
            path.display(),
            arch.why_unknown().unwrap_or_default()
        )
    })?;
    let fits = match image.arch {
        Arch::X86_64 => machine == "x86_64",
        Arch::Aarch64 => machine == "aarch64",
        Arch::Armv7 => machine.starts_with("armv7"),
    };
    ensure!(
        fits,
        "{}: a kernel for {}; this machine is {machine}",
        path.display(),
        image.arch.name()
    );
    let release = image.release.with_context(|| {
        format!("{}: the kernel does not say which release it is", path.display())
    })?;
    ensure!(
        staged::is_release(&release),
        "{}: release \"{release}\" has characters that a boot loader would take as its own; build \
         it with another CONFIG_LOCALVERSION",
        path.display()
    );
    Ok(release)
}
