//! The source of a kernel: a folder as it is, or a copy in the folder of the build: unpacked from a
//! tarball, or patched. A copy is whole or not there.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rtproof_host::trusted;

use super::{
    error::KernelError,
    patches,
    tool::{Log, OnProgress, tool},
};

/// The name that stands for the distribution's source package.
pub const DISTRIBUTION: &str = "distribution";
/// Where Debian's packages put it.
const USR_SRC: &str = "/usr/src";

/// A source that can be built.
#[derive(Clone, Debug)]
pub struct Tree {
    pub path: PathBuf,
    /// Patches in it that were asked for, in order.
    pub patches: Vec<String>,
}

/// Opens a source. `place` is the folder of the build; the copy lies in `place/source`.
///
/// # Errors
/// There is none, it is no kernel's, it cannot be unpacked or patched.
pub fn open(
    from: &Path,
    place: &Path,
    patches: Option<&Path>,
    observer: OnProgress<'_>,
) -> Result<Tree, KernelError> {
    let from = if from == Path::new(DISTRIBUTION) { distribution()? } else { from.to_path_buf() };
    let from = from.canonical()?;
    // make includes files of the folder that it builds in.
    for folder in [place.to_path_buf(), place.join("build")] {
        if folder.exists() {
            obeyed(trusted::folder(&folder))?;
        }
    }
    if from.is_dir() {
        check(&from)?;
        if patches.is_none() {
            return Ok(Tree { path: from, patches: Vec::new() });
        }
    }
    let series = patches.map(patches::series).transpose()?.unwrap_or_default();
    let stamp = stamp(&from, &series)?;
    let (copy, mark) = (place.join("source"), place.join("source.from"));
    let names = series.iter().map(|it| it.display().to_string()).collect();
    if copy.exists() {
        return match read(&mark) {
            Ok(known) if known == stamp => Ok(Tree { path: copy, patches: names }),
            _ => Err(KernelError::path(
                &copy,
                format!(
                    "holds another source, or other patches, than {}; name another folder, or \
                     remove it",
                    from.display()
                ),
            )),
        };
    }
    let part = place.join("source.part");
    remove(&part)?;
    fs::create_dir_all(&part).map_err(KernelError::io(&part))?;
    let mut log = Log::begin(place.join("source.log"))?;
    let made = unpack(&from, &part, &mut log, observer)
        .and_then(|()| check(&part))
        .and_then(|()| patches::apply(&part, &series, &from, &mut log, observer));
    if let Err(error) = made {
        // Half of a source is of no use, and would be taken for one.
        remove(&part)?;
        return Err(error);
    }
    crate::file::write_whole(&mark, |to| Ok(to.write_all(stamp.as_bytes())?))
        .map_err(|error| KernelError::path(&mark, error.to_string()))?;
    fs::rename(&part, &copy).map_err(KernelError::io(&copy))?;
    Ok(Tree { path: copy, patches: names })
}

fn remove(path: &Path) -> Result<(), KernelError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(KernelError::io(path)(error))
        }
        _ => Ok(()),
    }
}

/// A path that stays right in another working directory.
trait Canonical {
    fn canonical(&self) -> Result<PathBuf, KernelError>;
}

impl Canonical for Path {
    #[expect(clippy::disallowed_methods, reason = "the user's own source")]
    fn canonical(&self) -> Result<PathBuf, KernelError> {
        self.canonicalize().map_err(KernelError::io(self))
    }
}

#[expect(clippy::disallowed_methods, reason = "the user's own build")]
fn read(path: &Path) -> std::io::Result<String> {
    fs::read_to_string(path)
}

/// The newest source package of the distribution that is installed.
#[expect(clippy::disallowed_methods, reason = "sources of kernels, not the machine's state")]
fn distribution() -> Result<PathBuf, KernelError> {
    let entries = fs::read_dir(USR_SRC).map_err(KernelError::io(USR_SRC))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<String> =
        names.filter(|name| name.starts_with("linux-source-") && name.contains(".tar.")).collect();
    let numbers = |name: &str| -> Vec<u64> {
        let words = name.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    found.sort_by_key(|name| numbers(name));
    let name = found.pop().ok_or_else(|| {
        KernelError::path(
            USR_SRC,
            "holds no linux-source-*.tar.*; on Debian and Ubuntu: apt-get install linux-source",
        )
    })?;
    Ok(Path::new(USR_SRC).join(name))
}

/// What a copy was made of: path, size and time of a file, and those of the patches.
fn stamp(from: &Path, series: &[PathBuf]) -> Result<String, KernelError> {
    let mut text = String::new();
    for path in std::iter::once(from).chain(series.iter().map(PathBuf::as_path)) {
        let of = path.metadata().map_err(KernelError::io(path))?;
        text += &format!("{} {} {}.{}\n", path.display(), of.size(), of.mtime(), of.mtime_nsec());
    }
    Ok(text)
}

/// Refuses what is no kernel's source, and as root one whose makefile another user could have
/// written or can replace: it would run as root.
pub(crate) fn check(path: &Path) -> Result<(), KernelError> {
    for name in ["Makefile", "Kconfig"] {
        let file = path.join(name);
        if !file.is_file() {
            let why = format!("no kernel source: there is no {name} in it");
            return Err(KernelError::path(path, why));
        }
        obeyed(trusted::open(&file).map(|_| ()))?;
    }
    Ok(())
}

/// As root, what is done must be nobody else's word.
pub(crate) fn obeyed(checked: std::io::Result<()>) -> Result<(), KernelError> {
    match checked {
        Err(why) if rustix::process::geteuid().is_root() => Err(KernelError::Distrusted { why }),
        _ => Ok(()),
    }
}

fn unpack(
    from: &Path,
    to: &Path,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<(), KernelError> {
    if from.is_dir() {
        let mut copy = tool("cp", "coreutils")?;
        copy.args(["-a", "--no-preserve=ownership", "--reflink=auto"]).arg(from.join(".")).arg(to);
        log.done("copying the source", copy, observer)?;
        return Ok(());
    }
    let mut tar = tool("tar", "tar")?;
    tar.args(["--no-same-owner", "--no-same-permissions", "--strip-components=1", "-C"])
        .arg(to)
        .arg("-xf")
        .arg(from);
    log.done("unpacking the source", tar, observer)?;
    Ok(())
}
