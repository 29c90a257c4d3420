//! The initramfs of a guest: rtproof as init, the plan, programs of this machine with their
//! libraries, modules.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rtproof_guest::{arch::Arch, cpio::Archive, image, modules::Chosen, plan, programs};

use crate::kernel::KernelError;

/// Folders of every guest.
const FOLDERS: &[&str] =
    &["bin", "boot", "dev", "etc", "lib", "modules", "proc", "root", "run", "sbin", "sys", "tmp"];

/// Enough for programs that ask who and where they are.
const FILES: &[(&str, &str)] = &[
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/group", "root:x:0:\n"),
    ("etc/hosts", "127.0.0.1 localhost guest\n"),
    ("etc/hostname", "guest\n"),
    ("etc/os-release", "ID=rtproof-guest\nPRETTY_NAME=\"rtproof guest\"\n"),
];

/// What goes into a guest.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub arch: Arch,
    /// rtproof of that architecture.
    pub binary: &'a Path,
    /// Programs of this machine: they will be /bin/NAME.
    pub programs: &'a [PathBuf],
    /// Files for the folder of the commands, /root.
    pub files: &'a [PathBuf],
    pub config: Option<&'a str>,
    pub modules: &'a Chosen,
    pub plan: &'a plan::Plan,
}

/// Makes the archive.
///
/// # Errors
/// A file cannot be read, or is of another architecture.
pub(super) fn archive(content: &Content<'_>) -> Result<Vec<u8>, KernelError> {
    let mut to = Growing { archive: Archive::new(), there: BTreeSet::new() };
    FOLDERS.iter().for_each(|folder| to.folder(folder));
    to.archive.device("dev/console", 0o600, 5, 1);
    to.archive.device("dev/null", 0o666, 1, 3);
    for (path, text) in FILES {
        to.archive.file(path, 0o644, text.as_bytes());
    }
    to.program(content.arch, content.binary, "init")?;
    to.archive.link("bin/rtproof", "/init");
    for program in content.programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        to.program(content.arch, program, &format!("bin/{name}"))?;
    }
    for file in content.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        to.file(file, &format!("root/{name}"))?;
    }
    if let Some(config) = content.config {
        to.archive.file("boot/config", 0o644, config.as_bytes());
    }
    for module in &content.modules.modules {
        to.archive.file(&format!("modules/{}.ko", module.name), 0o644, &module.content);
    }
    let plan = serde_json::to_vec(content.plan).map_err(anyhow::Error::from)?;
    to.archive.file(plan::PATH.trim_start_matches('/'), 0o644, &plan);
    Ok(to.archive.finish())
}

struct Growing {
    archive: Archive,
    there: BTreeSet<String>,
}

impl Growing {
    /// A folder with those above it.
    fn folder(&mut self, path: &str) {
        if path.is_empty() || self.there.contains(path) {
            return;
        }
        self.folder(path.rsplit_once('/').map_or("", |(above, _)| above));
        self.archive.folder(path, if path == "tmp" { 0o1777 } else { 0o755 });
        self.there.insert(path.to_owned());
    }

    /// A file of the user's.
    #[expect(clippy::disallowed_methods, reason = "programs and files that the user names")]
    fn file(&mut self, from: &Path, to: &str) -> Result<Vec<u8>, KernelError> {
        let of = fs::metadata(from).map_err(KernelError::io(from))?;
        if !of.is_file() {
            return Err(KernelError::path(from, "no regular file: a guest cannot have it"));
        }
        if of.len() > u64::from(u32::MAX) {
            return Err(KernelError::path(from, "4 GiB or more: an initramfs cannot hold it"));
        }
        let bytes = fs::read(from).map_err(KernelError::io(from))?;
        let mode = std::os::unix::fs::MetadataExt::mode(&of) & 0o777;
        self.folder(to.rsplit_once('/').map_or("", |(above, _)| above));
        if self.there.insert(to.to_owned()) {
            self.archive.file(to, mode, &bytes);
        }
        Ok(bytes)
    }

    /// A program with the libraries that it loads.
    fn program(&mut self, arch: Arch, from: &Path, to: &str) -> Result<(), KernelError> {
        let bytes = self.file(from, to)?;
        match image::elf(&bytes) {
            Ok(Some(of)) if of == arch => {}
            Ok(Some(of)) => {
                let why = format!("a program for {of}; the kernel is for {arch}");
                return Err(KernelError::path(from, why));
            }
            Ok(None) => {
                let why = "no ELF program; name the interpreter of a script, and the script with \
                           --file";
                return Err(KernelError::path(from, why));
            }
            Err(error) => return Err(KernelError::path(from, error.to_string())),
        }
        if image::is_static(&bytes) {
            return Ok(());
        }
        if Arch::native() != Some(arch) {
            let why =
                format!("loads libraries, which are not looked up for {arch}: build it static");
            return Err(KernelError::path(from, why));
        }
        for library in programs::libraries(from)? {
            let to = library.display().to_string();
            self.file(&library, to.trim_start_matches('/'))?;
        }
        Ok(())
    }
}
