//! A small real-time application that is right from the start: what `rtproof new` writes.
//!
//! The project is files of this tree with a name put in; a test builds and runs every variant.
//! Those of Rust end in `.in`, so that no tool takes them for a part of this workspace.

mod files;
mod request;

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Mode, OFlags};

pub use self::request::{Class, Language, Name, Request};

/// A project that `rtproof new` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub folder: PathBuf,
    /// Its files, relative to the folder, in the order of the README.
    pub files: Vec<String>,
    /// Commands that build it, run it and test it, in its folder.
    pub commands: [String; 3],
}

/// Why no project was made. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// There is something of that name.
    #[error("{}: is there already; take another name, or another folder with --dir", .0.display())]
    Exists(PathBuf),
    /// The folder to make it in cannot be used.
    #[error("{}: the project cannot be made there: {source}", parent.display())]
    Parent { parent: PathBuf, source: io::Error },
    /// A file cannot be written.
    #[error("{}: {source}; what was made of the project was removed", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Makes the project. Nothing that exists is written to, and no symbolic link is followed in the
/// project's folder.
///
/// # Errors
/// It exists, or cannot be written; then nothing is left behind.
pub fn make(request: &Request) -> Result<Project, NewError> {
    let name = request.name.to_string();
    let folder = request.parent.join(&name);
    let failed = |source: rustix::io::Errno| match source {
        rustix::io::Errno::EXIST => NewError::Exists(folder.clone()),
        source => NewError::Parent { parent: request.parent.clone(), source: source.into() },
    };
    let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(rustix::fs::CWD, &request.parent, open, Mode::empty())
        .map_err(failed)?;
    rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o777)).map_err(failed)?;
    let mut made = Made { parent, name, paths: Vec::new() };
    let files = files::of(request);
    made.fill(&files).map_err(|(path, source)| {
        made.remove();
        NewError::Write { path: folder.join(path), source: source.into() }
    })?;
    let files = files.into_iter().map(|file| file.path).collect();
    Ok(Project { folder, files, commands: files::commands(request) })
}

/// What there is of a project.
struct Made {
    parent: OwnedFd,
    name: String,
    /// Relative to its folder; folders before what is in them.
    paths: Vec<PathBuf>,
}

impl Made {
    fn fill(&mut self, files: &[files::Made]) -> Result<(), (PathBuf, rustix::io::Errno)> {
        let open = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.parent, &self.name, open, Mode::empty());
        let folder = folder.map_err(|error| (PathBuf::new(), error))?;
        for file in files {
            let path = Path::new(&file.path);
            let within = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
            for part in within.collect::<Vec<_>>().into_iter().rev() {
                self.make_folder(&folder, part).map_err(|error| (part.into(), error))?;
            }
            self.write(&folder, file).map_err(|error| (path.into(), error))?;
        }
        Ok(())
    }

    fn make_folder(&mut self, folder: impl AsFd, part: &Path) -> rustix::io::Result<()> {
        if !self.paths.iter().any(|path| path == part) {
            rustix::fs::mkdirat(folder, part, Mode::from_raw_mode(0o777))?;
            self.paths.push(part.into());
        }
        Ok(())
    }

    fn write(&mut self, folder: impl AsFd, file: &files::Made) -> rustix::io::Result<()> {
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if file.path.ends_with(".sh") { 0o777 } else { 0o666 });
        let to = rustix::fs::openat(folder, &*file.path, create, mode)?;
        self.paths.push(file.path.clone().into());
        let written = File::from(to).write_all(file.text.as_bytes());
        written.map_err(|error| {
            rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
        })
    }

    /// As far as it goes: it is the way out of an error.
    fn remove(&self) {
        for path in self.paths.iter().rev() {
            let path = Path::new(&self.name).join(path);
            if rustix::fs::unlinkat(&self.parent, &path, AtFlags::empty()).is_err() {
                let _ = rustix::fs::unlinkat(&self.parent, &path, AtFlags::REMOVEDIR);
            }
        }
        let _ = rustix::fs::unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "this test's own folders")]
mod tests {
    use super::*;

    fn request(parent: &Path) -> Request {
        Request {
            name: "arm".parse().unwrap(),
            language: Language::Rust,
            class: Class::Fifo,
            parent: parent.into(),
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let project = make(&request(dir.path())).unwrap();
        assert_eq!(project.folder, dir.path().join("arm"));
        assert!(project.files.iter().all(|file| project.folder.join(file).is_file()));
        let again = make(&request(dir.path())).unwrap_err().to_string();
        assert!(again.contains("is there already"), "{again}");
        assert!(project.folder.join("src/main.rs").is_file());
        // An empty folder, a file and a link that leads nowhere are something, too.
        for make_it in [
            (|path: &Path| std::fs::create_dir(path)) as fn(&Path) -> io::Result<()>,
            |path| File::create(path).map(drop),
            |path| std::os::unix::fs::symlink("/no/such", path),
        ] {
            let dir = tempfile::tempdir().unwrap();
            make_it(&dir.path().join("arm")).unwrap();
            assert!(matches!(make(&request(dir.path())), Err(NewError::Exists(_))));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named() {
        let error = make(&request(Path::new("/no/such/folder"))).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/folder: the project cannot be made"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = make(&request(file.path())).unwrap_err().to_string();
        assert!(error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn what_was_begun_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let parent = File::open(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("arm")).unwrap();
        let mut made = Made { parent: parent.into(), name: "arm".into(), paths: Vec::new() };
        let file = |path: &str| files::Made { path: path.into(), text: "text".into() };
        // The second is in the way of the third.
        let failed = made.fill(&[file("src/deep/a"), file("b"), file("b/c")]).unwrap_err();
        assert_eq!(failed, (PathBuf::from("b/c"), rustix::io::Errno::NOTDIR));
        assert!(dir.path().join("arm/src/deep/a").is_file());
        made.remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
