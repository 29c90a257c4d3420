//! A small real-time application that is right from the start: what `rtproof new` writes.
//!
//! The project is files of this tree with a name put in; a test builds and runs every variant.
//! Those of Rust end in `.in`, so that no tool takes them for a part of this workspace.

use std::{
    fmt::{self, Display, Formatter},
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Mode, OFlags};

use rtproof_host::door::Invalid;

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
    let mut made = ProjectFolder { parent, name, paths: Vec::new() };
    let files = project_files(request);
    made.fill(&files).map_err(|(path, source)| {
        made.remove();
        NewError::Write { path: folder.join(path), source: source.into() }
    })?;
    let files = files.into_iter().map(|file| file.path).collect();
    Ok(Project { folder, files, commands: commands(request) })
}

/// What there is of a project.
struct ProjectFolder {
    parent: OwnedFd,
    name: String,
    /// Relative to its folder; folders before what is in them.
    paths: Vec<PathBuf>,
}

impl ProjectFolder {
    fn fill(&mut self, files: &[ProjectFile]) -> Result<(), (PathBuf, rustix::io::Errno)> {
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

    fn write(&mut self, folder: impl AsFd, file: &ProjectFile) -> rustix::io::Result<()> {
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

// The files of a project: which, and what is put into them.

/// A file of the project.
#[derive(Clone, Debug)]
struct ProjectFile {
    /// Relative to the project's folder.
    path: String,
    text: String,
}

struct Template {
    path: &'static str,
    /// What it is, for the README; empty: not listed.
    about: &'static str,
    text: &'static str,
}

macro_rules! template {
    ($path:literal, $about:literal, $file:literal) => {
        Template { path: $path, about: $about, text: include_str!($file) }
    };
}

const MARK_H: &str = include_str!("../../../marks/rtproof_mark.h");

const C: &[Template] = &[
    template!("src/main.c", "the application: loop, logger, signals", "new/templates/c/main.c"),
    template!("src/rt.h", "memory, stack and time", "new/templates/common/rt.h"),
    template!("src/queue.h", "the queue from the loop to the logger", "new/templates/c/queue.h"),
    Template { path: "src/rtproof_mark.h", about: "begin and end of a cycle", text: MARK_H },
    template!("Makefile", "", "new/templates/c/Makefile"),
];

const CPP: &[Template] = &[
    template!(
        "src/main.cpp",
        "the application: loop, logger, signals",
        "new/templates/cpp/main.cpp"
    ),
    template!("src/rt.h", "memory, stack and time", "new/templates/common/rt.h"),
    template!(
        "src/pi_mutex.hpp",
        "the mutex with priority inheritance",
        "new/templates/cpp/pi_mutex.hpp"
    ),
    template!(
        "src/queue.hpp",
        "the queue from the loop to the logger",
        "new/templates/cpp/queue.hpp"
    ),
    template!(
        "src/rtproof_mark.hpp",
        "begin and end of a cycle",
        "../../../marks/rtproof_mark.hpp"
    ),
    Template { path: "src/rtproof_mark.h", about: "", text: MARK_H },
    template!("Makefile", "", "new/templates/cpp/Makefile"),
];

const RUST: &[Template] = &[
    template!(
        "src/main.rs",
        "the application: loop, logger, signals",
        "new/templates/rust/main.rs.in"
    ),
    template!("src/rt.rs", "memory, stack, time and signals", "new/templates/rust/rt.rs.in"),
    template!(
        "src/pi_mutex.rs",
        "the mutex with priority inheritance",
        "new/templates/rust/pi_mutex.rs.in"
    ),
    template!(
        "src/queue.rs",
        "the queue from the loop to the logger",
        "new/templates/rust/queue.rs.in"
    ),
    template!("rtproof-mark/Cargo.toml", "", "new/templates/rust/mark.toml.in"),
    template!(
        "rtproof-mark/src/lib.rs",
        "the crate of the marks: begin and end of a cycle",
        "../../../marks/src/lib.rs"
    ),
    template!("rtproof-mark/src/ring.rs", "", "../../../marks/src/ring.rs"),
    template!(
        "tests/realtime.rs",
        "runs `test.sh` under `cargo test`",
        "new/templates/rust/test.rs.in"
    ),
    template!("Cargo.toml", "", "new/templates/rust/Cargo.toml.in"),
];

const TEST: &str = include_str!("new/templates/common/test.sh");

const README: &str = include_str!("new/templates/common/README.md");

const FIFO_H: &str = include_str!("new/templates/class/fifo.h");

const FIFO_RS: &str = include_str!("new/templates/class/fifo.rs.in");

const FIFO_UNIT: &str = include_str!("new/templates/class/fifo.service");

const DEADLINE_H: &str = include_str!("new/templates/class/deadline.h");

const DEADLINE_RS: &str = include_str!("new/templates/class/deadline.rs.in");

const DEADLINE_UNIT: &str = include_str!("new/templates/class/deadline.service");

/// All files, in the order of the README.
fn project_files(request: &Request) -> Vec<ProjectFile> {
    let (templates, class_path) = match request.language {
        Language::C => (C, "src/class.h"),
        Language::Cpp => (CPP, "src/class.h"),
        Language::Rust => (RUST, "src/class.rs"),
    };
    let is_rust = request.language == Language::Rust;
    let (class, unit) = match (request.class, is_rust) {
        (LoopPolicy::Fifo, false) => (FIFO_H, FIFO_UNIT),
        (LoopPolicy::Fifo, true) => (FIFO_RS, FIFO_UNIT),
        (LoopPolicy::Deadline, false) => (DEADLINE_H, DEADLINE_UNIT),
        (LoopPolicy::Deadline, true) => (DEADLINE_RS, DEADLINE_UNIT),
    };
    let class = Template { path: class_path, about: "period and scheduling class", text: class };
    let (main, rest) = templates.split_at(1);
    let listed: Vec<&Template> = main.iter().chain([&class]).chain(rest).collect();
    let named = |text: &str| text.replace("@NAME@", &request.name.0);
    let mut files: Vec<ProjectFile> = listed
        .iter()
        .map(|template| ProjectFile { path: template.path.into(), text: named(template.text) })
        .collect();
    let ignored = match request.language {
        Language::Rust => "/target\n".to_owned(),
        Language::C | Language::Cpp => format!("/{}\n", request.name),
    };
    files.extend([
        ProjectFile { path: format!("{}.service", request.name), text: named(unit) },
        ProjectFile { path: "test.sh".into(), text: TEST.into() },
        ProjectFile {
            path: "README.md".into(),
            text: named(&readme(request, &listed, class_path)),
        },
        ProjectFile { path: ".gitignore".into(), text: ignored },
    ]);
    files
}

/// Commands that build it, run it and test it, in its folder.
fn commands(request: &Request) -> [String; 3] {
    let name = &request.name;
    match request.language {
        Language::C | Language::Cpp => ["make".into(), format!("./{name}"), "make test".into()],
        Language::Rust => [
            "cargo build --release".into(),
            format!("target/release/{name}"),
            format!("sh test.sh target/release/{name}"),
        ],
    }
}

fn readme(request: &Request, listed: &[&Template], class_path: &str) -> String {
    let [build, run, test] = commands(request);
    let rows: Vec<String> = listed
        .iter()
        .filter(|template| !template.about.is_empty())
        .map(|template| format!("| `{}` | {} |", template.path, template.about))
        .collect();
    let (class, hint) = match request.class {
        LoopPolicy::Fifo => (
            "SCHED_FIFO, priority 80",
            "Bind it to the CPU that is set aside for it: `taskset -c 1`, or the unit.",
        ),
        LoopPolicy::Deadline => (
            "SCHED_DEADLINE",
            "The runtime has to hold the longest cycle: a loop that uses it up waits for its next \
             period.",
        ),
    };
    let fill = [
        ("@CLASS@", class),
        ("@BUILD@", &*build),
        ("@RUN@", &*run),
        ("@TEST@", &*test),
        ("@FILES@", &*rows.join("\n")),
        ("@CLASSFILE@", class_path),
        ("@HINT@", hint),
    ];
    fill.iter().fold(README.to_owned(), |text, (mark, with)| text.replace(mark, with))
}

// What is to be made: name, language, class, place.

/// Longest name: a thread's name has 15 bytes, and this one is its begin.
const NAME_BYTES_MAX: usize = 32;

/// Names that Cargo, Rust or the project itself need.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "class",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "libc",
    "loop",
    "macro",
    "main",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "rtproof",
    "rtproof-mark",
    "self",
    "src",
    "static",
    "std",
    "struct",
    "super",
    "target",
    "test",
    "tests",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Language of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C11.
    C,
    /// C++17.
    Cpp,
    /// Rust, edition 2021.
    Rust,
}

/// Scheduling class of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPolicy {
    Fifo,
    Deadline,
}

/// The name of a project: of its folder, program and unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

impl std::str::FromStr for ProjectName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |why: &str| {
            Invalid(format!(
                "\"{}\": {why}; a name has 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _, begins \
                 with a letter and ends with a letter or digit, e.g. arm-control",
                text.escape_default()
            ))
        };
        let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if text.is_empty() {
            return Err(wrong("no name"));
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(wrong("too long"));
        }
        if let Some(c) = text.chars().find(|&c| !is_end(c) && c != '-' && c != '_') {
            return Err(wrong(&format!("`{}` is no character of a name", c.escape_default())));
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.ends_with(is_end) {
            return Err(wrong("its first or last character does not fit"));
        }
        if TAKEN.contains(&text) {
            return Err(Invalid(format!(
                "\"{text}\" has a meaning to Cargo, Rust or the project itself: take another name, \
                 e.g. {text}-control"
            )));
        }
        Ok(Self(text.into()))
    }
}

impl Display for ProjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the project.
    pub name: ProjectName,
    pub language: Language,
    pub class: LoopPolicy,
    /// Folder in which the project's folder is made; it exists.
    pub parent: PathBuf,
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "this test's own folders")]
mod tests {
    use super::*;

    fn request(parent: &Path) -> Request {
        Request {
            name: "arm".parse().unwrap(),
            language: Language::Rust,
            class: LoopPolicy::Fifo,
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
        let mut made =
            ProjectFolder { parent: parent.into(), name: "arm".into(), paths: Vec::new() };
        let file = |path: &str| ProjectFile { path: path.into(), text: "text".into() };
        // The second is in the way of the third.
        let failed = made.fill(&[file("src/deep/a"), file("b"), file("b/c")]).unwrap_err();
        assert_eq!(failed, (PathBuf::from("b/c"), rustix::io::Errno::NOTDIR));
        assert!(dir.path().join("arm/src/deep/a").is_file());
        made.remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[cfg(test)]
mod files_tests {
    use super::*;

    #[test]
    fn every_mark_is_filled_in_and_every_file_fits_a_terminal() {
        for language in [Language::C, Language::Cpp, Language::Rust] {
            for class in [LoopPolicy::Fifo, LoopPolicy::Deadline] {
                let name = "arm".parse().unwrap();
                let request = Request { name, language, class, parent: "/".into() };
                let files = project_files(&request);
                let own = files.iter().filter(|file| !file.path.contains("mark"));
                let mut lines = 0;
                for file in own {
                    let text = &file.text;
                    let is_open = text.split('@').skip(1).step_by(2).any(|part| {
                        !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase())
                    });
                    assert!(!is_open && text.ends_with('\n'), "{}", file.path);
                    // A table of Markdown has its rows on one line.
                    let long = |line: &&str| line.replace('\t', "        ").chars().count() > 108;
                    assert_eq!(text.lines().find(long), None, "{}", file.path);
                    lines += text.lines().count();
                }
                // What a reader can take in within ten minutes.
                assert!((300..720).contains(&lines), "{language:?} {class:?}: {lines} lines");
                let readme = &files.iter().find(|file| file.path == "README.md").unwrap().text;
                assert!(readme.lines().count() <= 45, "more than a screen");
                assert!(files.iter().any(|file| file.path == "arm.service"));
            }
        }
    }
}

#[cfg(test)]
mod request_tests {
    use super::*;

    #[test]
    fn names_are_those_that_every_tool_takes() {
        for name in ["a", "arm-control", "x1", "a_b", &"a".repeat(32)] {
            assert_eq!(name.parse::<ProjectName>().unwrap().to_string(), name);
        }
        let long = "a".repeat(33);
        let bad = [
            "",
            "1a",
            "-a",
            "a-",
            "_a",
            "A",
            "a b",
            "a/b",
            "../a",
            ".",
            "a.b",
            "a\n",
            "a\0",
            "é",
            "fn",
            "test",
            "libc",
            "src",
            "rtproof-mark",
            &long,
            "a@b",
            "$(id)",
            "%s",
        ];
        for name in bad {
            let error = name.parse::<ProjectName>().expect_err(name);
            assert!(error.contains("e.g. "), "{error}");
        }
    }
}
