//! Trees of files, compared to the byte: what there was, what there is.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// One file, link or folder.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    content: Content,
    mode: u32,
    owner: (u32, u32),
    /// Nanoseconds since 1970. Not kept of folders, whose time changes with what comes and goes in
    /// them, nor of the kernel's own values, which have none.
    modified_ns: Option<i64>,
    /// Names of one file.
    names: u64,
}

#[derive(Clone, PartialEq, Eq)]
enum Content {
    File(Vec<u8>),
    Link(PathBuf),
    Folder,
}

/// Everything under a folder, but what is left out.
pub(crate) type Snapshot = BTreeMap<PathBuf, Entry>;

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::File(bytes) => write!(f, "file \"{}\"", bytes.escape_ascii())?,
            Content::Link(to) => write!(f, "link to {}", to.display())?,
            Content::Folder => write!(f, "folder")?,
        }
        write!(f, " {:o} {:?} x{}", self.mode, self.owner, self.names)?;
        self.modified_ns.map_or(Ok(()), |time| write!(f, " {time}"))
    }
}

/// Reads a tree; `left_out` are paths in it.
pub(crate) fn snapshot(root: &Path, left_out: &[&str]) -> Snapshot {
    let mut found = Snapshot::new();
    add(root, root, left_out, &mut found);
    found
}

fn add(root: &Path, folder: &Path, left_out: &[&str], found: &mut Snapshot) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below the root").to_owned();
        if left_out.iter().any(|out| name == Path::new(out)) {
            continue;
        }
        let data = fs::symlink_metadata(&path).expect("metadata");
        let content = if data.is_symlink() {
            Content::Link(fs::read_link(&path).expect("a link"))
        } else if data.is_dir() {
            add(root, &path, left_out, found);
            Content::Folder
        } else {
            Content::File(fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        };
        let is_kernels = ["proc", "sys"].iter().any(|top| name.starts_with(top));
        let has_time = matches!(content, Content::File(_)) && !is_kernels;
        let time = data.mtime() * 1_000_000_000 + data.mtime_nsec();
        let entry = Entry {
            names: if data.is_dir() { 1 } else { data.nlink() },
            content,
            mode: data.permissions().mode(),
            owner: (data.uid(), data.gid()),
            modified_ns: has_time.then_some(time),
        };
        found.insert(name, entry);
    }
}

/// What differs, a line for each path.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, was) in before {
        match after.get(path) {
            Some(is) if is == was => {}
            Some(is) => lines.push(format!("{}: was {was:?}, is {is:?}", path.display())),
            None => lines.push(format!("{}: was {was:?}, is gone", path.display())),
        }
    }
    for (path, is) in after.iter().filter(|(path, _)| !before.contains_key(*path)) {
        lines.push(format!("{}: was not, is {is:?}", path.display()));
    }
    lines
}

/// Writes a file with the folders above it.
pub(crate) fn put(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The same with permissions and a time of its own.
pub(crate) fn put_odd(root: &Path, path: &str, bytes: &[u8], mode: u32, seconds: u64) {
    put(root, path, bytes);
    let path = root.join(path.trim_start_matches('/'));
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 123_456_789);
    let file = fs::File::options().append(true).open(&path).expect("the file");
    file.set_modified(time).expect("a time");
}

/// A link, its text as given.
pub(crate) fn put_link(root: &Path, path: &str, to: &str) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    symlink(to, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
