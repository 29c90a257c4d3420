//! The cache outside the tree: packages, unpacked kernels, snapshots. Bounded, shared by concurrent
//! runs, usable offline.
//!
//! `DIR/KIND/KEY` is an entry, `DIR/KIND/.KEY.tmp` the place where it is being made,
//! `DIR/KIND/.KEY.lock` the lock of its maker. A temporary place without a locked lock belongs to a
//! run that died.

use std::{
    collections::HashSet,
    env,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};

/// The kind whose entries are large and made in seconds, so that only a few are kept.
pub const SNAPSHOTS: &str = "snapshots";

/// How many snapshots stay.
const SNAPSHOTS_KEPT: usize = 32;

/// How long an entry that no table names stays after its last use: a branch with another table may
/// share the cache.
const UNKNOWN_KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// The cache folder: `$RTPROOF_LAB_CACHE`, else `$XDG_CACHE_HOME/rtproof-lab`, else
/// `~/.cache/rtproof-lab`.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache, making its folder.
    pub fn open() -> Result<Self> {
        let folder =
            |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let dir = folder("RTPROOF_LAB_CACHE")
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("rtproof-lab")))
            .or_else(|| Some(folder("HOME")?.join(".cache/rtproof-lab")))
            .context("no place for the lab's cache: set RTPROOF_LAB_CACHE or HOME to a folder")?;
        Self::at(&dir)
    }

    /// A cache in this folder, which is made.
    pub fn at(dir: &Path) -> Result<Self> {
        // kbuild splits at spaces, QEMU's options at commas, qemu-img at colons.
        let text = dir.to_string_lossy();
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || ",:;'\"\\$`&|<>".contains(c);
        ensure!(
            !text.contains(is_odd),
            "{text:?}: compilers and QEMU take no such path; set RTPROOF_LAB_CACHE to a folder \
             without spaces and punctuation"
        );
        let make = || fs::canonicalize(dir);
        let dir = fs::create_dir_all(dir).and_then(|()| make()).with_context(|| {
            format!("{}: cannot make the lab's cache; set RTPROOF_LAB_CACHE", dir.display())
        })?;
        Ok(Self { dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The entry `KIND/KEY` if it is there; it is marked as used now.
    pub fn existing(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let path = self.dir.join(kind).join(key);
        let file = File::open(&path).ok()?;
        // Another user's cache may be read-only: then the marks are not kept, nothing else suffers.
        let _ = file.set_modified(SystemTime::now());
        Some(path)
    }

    /// The entry `KIND/KEY` (a file or a folder); if it is not there, `make` is called with the
    /// path of a temporary place beside it that is then renamed. Two processes never make one
    /// entry at once (file lock). The entry is marked as used now.
    ///
    /// # Errors
    /// What `make` says; the temporary place is removed.
    pub fn entry(
        &self,
        kind: &str,
        key: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        for name in [kind, key] {
            ensure!(
                !name.is_empty() && !name.contains('/') && !name.starts_with('.'),
                "{name:?} cannot name a cache entry: no '/', no leading '.'"
            );
        }
        if let Some(path) = self.existing(kind, key) {
            return Ok(path);
        }
        let folder = self.dir.join(kind);
        fs::create_dir_all(&folder)
            .with_context(|| format!("{}: cannot make", folder.display()))?;
        let lock = Lock::wait(&folder.join(format!(".{key}.lock")))?;
        if let Some(path) = self.existing(kind, key) {
            return Ok(path);
        }
        let path = folder.join(key);
        let temporary = folder.join(format!(".{key}.tmp"));
        remove(&temporary)?;
        let made = make(&temporary).and_then(|()| {
            fs::rename(&temporary, &path)
                .with_context(|| format!("{}: cannot be moved into place", path.display()))
        });
        if made.is_err() {
            remove(&temporary)?;
        }
        drop(lock);
        made?;
        self.existing(kind, key).with_context(|| format!("{}: just made, now gone", path.display()))
    }

    /// Removes snapshots beyond the most recently used ones, places of runs that died, and entries
    /// that `known` does not name (by key) and that nobody has used for two weeks.
    ///
    /// # Errors
    /// The cache cannot be listed, or an entry cannot be removed.
    pub fn prune(&self, known: &HashSet<String>) -> Result<()> {
        for kind in list(&self.dir)? {
            if !kind.path.is_dir() {
                continue;
            }
            let mut entries = list(&kind.path)?;
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
            let (hidden, entries): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|entry| entry.name.starts_with('.'));
            for dead in hidden {
                let key = dead.name.rsplit_once('.').map_or("", |(key, _)| key);
                if let Some(_lock) = Lock::attempt(&kind.path.join(format!("{key}.lock")))? {
                    remove(&kind.path.join(format!("{key}.tmp")))?;
                }
            }
            let now = SystemTime::now();
            for (rank, entry) in entries.iter().enumerate() {
                let age = now.duration_since(entry.used).unwrap_or_default();
                let stale = if kind.name == SNAPSHOTS {
                    rank >= SNAPSHOTS_KEPT
                } else {
                    age > UNKNOWN_KEPT && !known.contains(&entry.name)
                };
                if stale {
                    remove(&entry.path)?;
                }
            }
        }
        Ok(())
    }
}

/// A locked file; unlocked and removed when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for whoever has it.
    pub(crate) fn wait(path: &Path) -> Result<Self> {
        loop {
            let file = Self::open(path)?;
            file.lock().with_context(|| format!("{}: cannot be locked", path.display()))?;
            let lock = Self { file, path: path.to_path_buf() };
            if lock.is_current() {
                return Ok(lock);
            }
        }
    }

    /// `None`: someone else has it.
    fn attempt(path: &Path) -> Result<Option<Self>> {
        let file = Self::open(path)?;
        match file.try_lock() {
            Ok(()) => {
                let lock = Self { file, path: path.to_path_buf() };
                Ok(lock.is_current().then_some(lock))
            }
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => {
                bail!("{}: cannot be locked: {error}", path.display())
            }
        }
    }

    fn open(path: &Path) -> Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).open(path).with_context(|| {
            format!("{}: cannot be opened; is the cache writable?", path.display())
        })
    }

    /// The one before us removed its file when it was done: then we hold a lock that nobody sees.
    fn is_current(&self) -> bool {
        let same = |ours: fs::Metadata, named: fs::Metadata| ours.ino() == named.ino();
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(ours), Ok(named)) => same(ours, named),
            _ => false,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_current() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[derive(Debug)]
struct Listed {
    name: String,
    path: PathBuf,
    used: SystemTime,
}

fn list(dir: &Path) -> Result<Vec<Listed>> {
    let failed = || format!("{}: cannot be listed", dir.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        // Another run may remove it at this moment.
        let Ok(used) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push(Listed { name, path: entry.path(), used });
    }
    Ok(found)
}

/// Removes a file or a folder; it is fine when it is not there.
fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: cannot be removed; remove it", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        (dir, cache)
    }

    #[test]
    fn an_entry_is_made_once_and_a_failed_one_leaves_nothing() {
        let (_dir, cache) = cache();
        let failed = cache.entry("debs", "a", |path| {
            fs::create_dir(path)?;
            fs::write(path.join("half"), "x")?;
            bail!("no more")
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(list(&cache.dir().join("debs")).unwrap().len(), 0);

        let made = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let path = cache.entry("debs", "a", |path| {
                        made.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(5));
                        Ok(fs::write(path, "whole")?)
                    });
                    assert_eq!(fs::read_to_string(path.unwrap()).unwrap(), "whole");
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert_eq!(list(&cache.dir().join("debs")).unwrap().len(), 1);
        assert!(cache.entry("debs", "../a", |_| Ok(())).is_err());
    }

    #[test]
    fn a_folder_that_programs_would_split_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a b", "a,b", "a:b", "a'b"] {
            let error = Cache::at(&dir.path().join(name)).unwrap_err().to_string();
            assert!(error.contains("RTPROOF_LAB_CACHE"), "{error}");
        }
        assert!(Cache::at(&dir.path().join("a-b_c.d+e~")).is_ok());
    }

    #[test]
    fn prune_keeps_what_is_known_or_used() {
        let (_dir, cache) = cache();
        let aged = |kind: &str, key: &str, days: u64| {
            let path = cache.entry(kind, key, |path| Ok(fs::create_dir(path)?)).unwrap();
            let used = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
            File::open(path).unwrap().set_modified(used).unwrap();
        };
        for day in 0..35 {
            aged(SNAPSHOTS, &format!("s{day}"), day);
        }
        aged("debs", "known", 100);
        aged("debs", "old", 100);
        aged("debs", "fresh", 1);
        fs::create_dir(cache.dir().join("debs/.dead.tmp")).unwrap();
        fs::create_dir(cache.dir().join("debs/.alive.tmp")).unwrap();
        let alive = Lock::wait(&cache.dir().join("debs/.alive.lock")).unwrap();

        cache.prune(&HashSet::from(["known".to_owned()])).unwrap();

        let names = |kind: &str| {
            let listed = list(&cache.dir().join(kind)).unwrap();
            let mut names: Vec<_> = listed.into_iter().map(|entry| entry.name).collect();
            names.sort();
            names
        };
        assert_eq!(names("debs"), [".alive.lock", ".alive.tmp", "fresh", "known"]);
        assert_eq!(names(SNAPSHOTS).len(), SNAPSHOTS_KEPT);
        assert!(!names(SNAPSHOTS).contains(&"s32".to_owned()));
        drop(alive);
    }
}
