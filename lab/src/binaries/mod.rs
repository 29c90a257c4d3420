//! The programs that run inside guests: rtproof and lab-plant, static, for each architecture.
//!
//! Results are kept in the cache by a digest of all that goes into them, so that fresh clones of
//! the same sources share one build; one by a cross compiler takes minutes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};

use rtproof_guest::Arch;

use crate::{cache::Cache, programs::succeed};

mod cargo;
mod cross;
mod elf;
mod inputs;
mod pins;

/// Cache kind of the built programs.
const KIND: &str = "binaries";

/// How many results of one architecture stay in the cache.
const KEPT: usize = 2;

/// Another clone's run may be using a result that is no longer among the last; no run is longer.
const IN_USE: Duration = Duration::from_secs(3600);

/// Packages and programs that are built.
const PROGRAMS: &[(&str, &str)] = &[("rtproof", "rtproof"), ("rtproof-lab-plant", "lab-plant")];

/// Static programs for one architecture.
#[derive(Clone, Debug)]
pub struct Binaries {
    pub rtproof: PathBuf,
    pub plant: PathBuf,
}

impl Binaries {
    /// Builds them with cargo, or takes what was built from the same sources before.
    ///
    /// # Errors
    /// The build fails, or the cross tools cannot be fetched.
    pub fn build(arch: Arch, cache: &Cache) -> Result<Self> {
        let step = || format!("building rtproof and lab-plant for {}", arch.name());
        let workspace = workspace().with_context(step)?;
        let compiler = Compiler::find(arch, &workspace).with_context(step)?;
        // Someone may be editing: what was built from a mixture is not kept under either digest.
        for _ in 0..3 {
            let key = key(arch, &compiler, &workspace).with_context(step)?;
            let mut is_mixture = false;
            let entry = cache.entry(KIND, &key, |place| {
                let built = compiler.build(arch, &workspace, cache)?;
                is_mixture = self::key(arch, &compiler, &workspace)? != key;
                ensure!(!is_mixture, "the sources changed while they were being built");
                keep(arch, &built, place)
            });
            if is_mixture {
                continue;
            }
            let entry = entry.with_context(step)?;
            prune(cache, arch, &entry)?;
            return Ok(Self { rtproof: entry.join("rtproof"), plant: entry.join("lab-plant") });
        }
        bail!("{}: the sources changed during each of 3 builds; run again", step())
    }

    /// Those that a folder has for this machine, without what a debugger needs.
    ///
    /// # Errors
    /// One is not there, or cannot be copied.
    pub fn given(folder: &Path, to: &Path) -> Result<Self> {
        fs::create_dir_all(to).with_context(|| format!("{}: make", to.display()))?;
        let stripped = |name| {
            let place = to.join(name);
            let mut strip = std::process::Command::new("strip");
            succeed(strip.arg("-o").arg(&place).arg(folder.join(name)))?;
            Ok::<_, anyhow::Error>(place)
        };
        Ok(Self { rtproof: stripped("rtproof")?, plant: stripped("lab-plant")? })
    }
}

/// The compiler that builds for an architecture.
#[derive(Debug)]
struct Compiler {
    /// All that tells it from others, for the key.
    identity: String,
    /// Whether the Rust compiler is Debian's; otherwise this workspace's own.
    is_debian: bool,
}

impl Compiler {
    fn find(arch: Arch, workspace: &Path) -> Result<Self> {
        let own = cargo::rustc_version(workspace)?;
        if arch == Arch::X86_64 {
            return Ok(Self { identity: own + &inputs::host_c(workspace)?, is_debian: false });
        }
        ensure!(
            cfg!(target_arch = "x86_64"),
            "the cross tools run on x86-64 only; leave the {} cases out on this machine",
            arch.name()
        );
        let is_debian = !cargo::has_target(workspace, arch.target())?;
        let rust = if is_debian { String::new() } else { own };
        Ok(Self { identity: rust + &cross::identity(arch, is_debian), is_debian })
    }

    /// Runs cargo; the folder with the programs.
    fn build(&self, arch: Arch, workspace: &Path, cache: &Cache) -> Result<PathBuf> {
        let target = cargo::target_dir(workspace);
        let (target, environment) = match arch {
            Arch::X86_64 => (target, Vec::new()),
            // Another compiler would build the host's parts of the target folder anew each time.
            Arch::Aarch64 | Arch::Armv7 => (
                target.join(format!("lab-{}", arch.name())),
                cross::ready(cache, arch, self.is_debian)?.environment(),
            ),
        };
        cargo::build(workspace, &target, arch.target(), PROGRAMS, &environment)?;
        Ok(target.join(arch.target()).join("release"))
    }
}

fn workspace() -> Result<PathBuf> {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = lab.parent().with_context(|| format!("{}: has no parent", lab.display()))?;
    ensure!(
        root.join("Cargo.lock").is_file(),
        "{}: no Cargo.lock; the lab was built there, has the tree been moved? Build it anew",
        root.display()
    );
    Ok(root.to_path_buf())
}

/// Architecture and digest over the sources, the recipe and the compiler.
fn key(arch: Arch, compiler: &Compiler, workspace: &Path) -> Result<String> {
    let others = format!("{}\n{}\n{}", cargo::recipe(), arch.target(), compiler.identity);
    Ok(format!("{}-{}", arch.name(), &inputs::digest(workspace, &others)?[..32]))
}

/// Copies the programs into a new folder of the cache, after a look at what they are.
fn keep(arch: Arch, built: &Path, place: &Path) -> Result<()> {
    fs::create_dir(place).with_context(|| format!("{}: cannot be made", place.display()))?;
    for (_, program) in PROGRAMS {
        let from = built.join(program);
        let bytes =
            fs::read(&from).with_context(|| format!("{}: cannot be read", from.display()))?;
        elf::check_static(&bytes, arch).with_context(|| from.display().to_string())?;
        fs::copy(&from, place.join(program)).with_context(|| {
            format!("{}: cannot be copied to {}", from.display(), place.display())
        })?;
    }
    Ok(())
}

/// Removes all results of this architecture but the last ones and those in use.
fn prune(cache: &Cache, arch: Arch, current: &Path) -> Result<()> {
    let folder = cache.dir().join(KIND);
    let failed = || format!("{}: cannot be listed", folder.display());
    let mut results = Vec::new();
    for entry in fs::read_dir(&folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let is_ours = path
            .file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with(&format!("{}-", arch.name())));
        // Another run may have removed it in between.
        if let (true, Ok(used)) = (is_ours, fs::metadata(&path).and_then(|m| m.modified())) {
            results.push((used, path));
        }
    }
    results.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    let now = SystemTime::now();
    for (used, path) in results.into_iter().skip(KEPT) {
        if path != current && now.duration_since(used).unwrap_or_default() > IN_USE {
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_last_results_and_those_in_use_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        for (key, hours) in [("a", 50), ("b", 40), ("c", 30), ("d", 20)] {
            for arch in ["aarch64", "x86-64"] {
                let path = cache
                    .entry(KIND, &format!("{arch}-{key}"), |place| Ok(fs::create_dir(place)?))
                    .unwrap();
                let used = SystemTime::now() - Duration::from_secs(hours * 3600);
                File::open(path).unwrap().set_modified(used).unwrap();
            }
        }
        let folder = cache.dir().join(KIND);
        File::open(folder.join("aarch64-a")).unwrap().set_modified(SystemTime::now()).unwrap();
        File::open(folder.join("aarch64-b"))
            .unwrap()
            .set_modified(SystemTime::now() - IN_USE / 2)
            .unwrap();
        prune(&cache, Arch::Aarch64, &folder.join("aarch64-d")).unwrap();
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("aarch64"))
            .collect();
        left.sort();
        assert_eq!(left, ["aarch64-a", "aarch64-b", "aarch64-d"]);
        assert!(folder.join("x86-64-a").exists());
    }
}
