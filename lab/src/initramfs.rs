//! The initramfs of a guest: an uncompressed newc archive written here, with busybox, init and the
//! modules of its kernel.
//!
//! Nothing of ours is in it, so that snapshots of booted guests stay valid when rtproof changes.
//! For kernels without a shared folder a second archive is appended, see [`overlay`].

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rtproof_guest::{
    Arch,
    image::{Archive, sorted},
};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::fetch::{Package, hex, sha256_of};
use crate::{deb, fetch, pins};

const INIT: &[u8] = include_bytes!("../guest/init.sh");

/// Folders of a guest.
const FOLDERS: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "host",
    "lib",
    "lib/modules",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/sbin",
    "var",
];

/// Plain files of a guest: enough for programs that ask who and where they are.
const FILES: &[(&str, &str)] = &[
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nlab:x:1000:1000:lab:/tmp:/bin/sh\n"),
    ("etc/group", "root:x:0:\nlab:x:1000:\n"),
    ("etc/hosts", "127.0.0.1 localhost lab\n"),
    ("etc/hostname", "lab\n"),
    ("etc/os-release", "ID=rtproof-lab\nPRETTY_NAME=\"rtproof lab guest\"\n"),
];

/// Makes the archive for an unpacked kernel, or takes it from the cache. Gives the digest over the
/// kernel and it as well.
pub(crate) fn base(
    cache: &Cache,
    arch: Arch,
    kernel: &Path,
    kernel_key: &str,
) -> Result<(PathBuf, String)> {
    let busybox = busybox(cache, arch)?;
    let mut digest = Sha256::new();
    digest.update(kernel_key);
    digest.update(sha256_of(&busybox)?);
    digest.update(INIT);
    for (path, content) in FILES {
        digest.update(path);
        digest.update(content);
    }
    digest.update(FOLDERS.join(" "));
    let digest = hex(&digest.finalize());
    let key = format!("{kernel_key}-{}.cpio", &digest[..16]);
    let path = cache.entry("initramfs", &key, |place| {
        let archive = archive(kernel, &busybox)?;
        fs::write(place, archive).with_context(|| format!("{}: cannot write", place.display()))
    })?;
    Ok((path, digest))
}

fn archive(kernel: &Path, busybox: &Path) -> Result<Vec<u8>> {
    let release = String::from_utf8_lossy(&read(&kernel.join("release"))?).into_owned();
    let mut archive = Archive::new();
    for folder in FOLDERS {
        archive.folder(folder, if *folder == "tmp" { 0o1777 } else { 0o755 });
    }
    archive.device("dev/console", 0o600, 5, 1);
    archive.device("dev/null", 0o666, 1, 3);
    archive.file("init", 0o755, INIT);
    archive.file("bin/busybox", 0o755, &read(busybox)?);
    archive.link("bin/sh", "busybox");
    for (path, content) in FILES {
        archive.file(path, 0o644, content.as_bytes());
    }
    // Both places where distributions keep it.
    let config = read(&kernel.join("config"))?;
    archive.file(&format!("boot/config-{release}"), 0o644, &config);
    let library = format!("lib/modules/{release}");
    archive.folder(&library, 0o755);
    archive.link(&format!("{library}/config"), &format!("/boot/config-{release}"));
    let modules = kernel.join("modules");
    for path in sorted(&modules)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".ko") || name.starts_with("modules.") {
            archive.file(&format!("{library}/{name}"), 0o644, &read(&path)?);
        }
    }
    archive.file("etc/lab-modules", 0o644, &read(&modules.join("order"))?);
    Ok(archive.finish())
}

/// A static busybox of this architecture, from its package.
pub(crate) fn busybox(cache: &Cache, arch: Arch) -> Result<PathBuf> {
    let section = match arch {
        Arch::X86_64 => "busybox-x86",
        Arch::Aarch64 => "busybox-arm",
        Arch::Armv7 => "busybox-armhf",
    };
    let sets = pins::sets(section)?;
    let sets: Vec<&[Package]> = sets.iter().map(Vec::as_slice).collect();
    let fetched = fetch::fetch_set(cache, &sets, None)?;
    let folder = cache.entry("busybox", &fetched.digest[..16], |place| {
        fs::create_dir(place).with_context(|| format!("{}: cannot make", place.display()))?;
        for package in &fetched.debs {
            deb::unpack(package, place, &["*bin/busybox"])?;
        }
        Ok(())
    })?;
    let found = ["bin/busybox", "usr/bin/busybox"].map(|path| folder.join(path));
    let found = found.into_iter().find(|path| path.exists());
    found.with_context(|| format!("{}: has no busybox; remove it", folder.display()))
}

/// A second archive for guests that cannot mount the shared folder: its content below `overlay/`,
/// which init copies to /host. To be appended to the base.
///
/// # Errors
/// A file cannot be read, or is neither a file nor a folder.
pub fn overlay(folder: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    archive.tree(folder, "overlay")?;
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_is_the_folder_and_always_the_same() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join("bin/tool"), "tool").unwrap();
        fs::write(dir.path().join("run.sh"), "true").unwrap();
        let bytes = overlay(dir.path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let at = |name: &str| text.find(name).unwrap();
        assert!(at("overlay\0") < at("overlay/bin\0"));
        assert!(at("overlay/bin\0") < at("overlay/bin/tool\0"));
        assert!(at("overlay/bin/tool\0") < at("overlay/run.sh\0"));
        assert_eq!(bytes, overlay(dir.path()).unwrap());
        assert!(overlay(&dir.path().join("no")).is_err());
    }
}
