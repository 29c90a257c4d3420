//! Archives as the kernel unpacks them at boot: cpio in its "newc" form, without compression.
//!
//! The format is the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. Times and
//! owners are zero, so that the same content gives the same bytes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// An archive that grows. Folders must come before what is in them.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

impl Archive {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder. Paths have no slash at their beginning.
    pub fn folder(&mut self, path: &str, mode: u32) {
        self.member(path, FOLDER | mode, (0, 0), &[]);
    }

    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.member(path, FILE | mode, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.member(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) {
        self.member(path, CHARACTER_DEVICE | mode, (major, minor), &[]);
    }

    /// Adds a file or a folder with all that is in it, as `name`.
    ///
    /// # Errors
    /// A file cannot be read, or is neither a file nor a folder.
    pub fn tree(&mut self, path: &Path, name: &str) -> Result<()> {
        let failed = || format!("{}: cannot be read", path.display());
        let metadata = fs::metadata(path).with_context(failed)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_file() {
            self.file(name, mode, &fs::read(path).with_context(failed)?);
            return Ok(());
        }
        if !metadata.is_dir() {
            bail!("{}: neither a file nor a folder; a guest cannot have it", path.display());
        }
        self.folder(name, mode);
        for inside in sorted(path)? {
            let file = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.tree(&inside, &format!("{name}/{file}"))?;
        }
        Ok(())
    }

    /// The whole archive. Another one may follow it.
    pub fn finish(mut self) -> Vec<u8> {
        self.member("TRAILER!!!", 0, (0, 0), &[]);
        self.pad(512);
        self.bytes
    }

    /// # Panics
    /// A file of 4 GiB or more: the format cannot hold it, and no guest could.
    fn member(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file in an initramfs is below 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        let links = if mode & 0o170_000 == FOLDER { 2 } else { 1 };
        let fields =
            [self.entries, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
        self.bytes.extend_from_slice(content);
        self.pad(4);
    }

    fn pad(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }
}

/// What is in a folder, always in the same order.
pub fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("{}: cannot be listed", dir.display());
    let mut inside = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        inside.push(entry.with_context(failed)?.path());
    }
    inside.sort();
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use std::{io::Write, process::Command, process::Stdio};

    use super::*;

    fn small() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.folder("etc", 0o755);
        archive.file("etc/odd", 0o640, b"12345");
        archive.link("sh", "bin/busybox");
        archive.device("console", 0o600, 5, 1);
        archive.finish()
    }

    #[test]
    fn members_are_aligned_and_sized() {
        let bytes = small();
        assert_eq!(bytes.len() % 512, 0);
        assert_eq!(&bytes[..6], b"070701");
        // The header has 110 bytes; with "etc\0" that is 114, padded to 116.
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(&bytes[116 + 54..116 + 62], b"00000005");
        assert_eq!(&bytes[116 + 120..116 + 125], b"12345");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "what is left out is said")]
    fn other_programs_read_it() {
        let listed = ["cpio", "busybox"].into_iter().find_map(|program| {
            let mut command = Command::new(program);
            if program == "busybox" {
                command.arg("cpio");
            }
            command.args(["-t", "-v"]).env("TZ", "UTC").stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().ok()?;
            child.stdin.take()?.write_all(&small()).ok()?;
            String::from_utf8(child.wait_with_output().ok()?.stdout).ok()
        });
        let Some(listed) = listed else {
            eprintln!("left out: neither cpio nor busybox is installed");
            return;
        };
        let lines: Vec<_> = listed.lines().collect();
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" etc"), "{listed}");
        assert!(lines[1].starts_with("-rw-r-----") && lines[1].ends_with(" etc/odd"), "{listed}");
        assert!(lines[2].ends_with("sh -> bin/busybox"), "{listed}");
        assert!(lines[3].starts_with("crw-------"), "{listed}");
    }
}
