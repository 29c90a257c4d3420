//! The files of a project: which, and what is put into them.

use super::request::{Class, Language, Request};

/// A file of the project.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Relative to the project's folder.
    pub(super) path: String,
    pub(super) text: String,
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

const MARK_H: &str = include_str!("../../../../marks/rtproof_mark.h");

const C: &[Template] = &[
    template!("src/main.c", "the application: loop, logger, signals", "templates/c/main.c"),
    template!("src/rt.h", "memory, stack and time", "templates/common/rt.h"),
    template!("src/queue.h", "the queue from the loop to the logger", "templates/c/queue.h"),
    Template { path: "src/rtproof_mark.h", about: "begin and end of a cycle", text: MARK_H },
    template!("Makefile", "", "templates/c/Makefile"),
];

const CPP: &[Template] = &[
    template!("src/main.cpp", "the application: loop, logger, signals", "templates/cpp/main.cpp"),
    template!("src/rt.h", "memory, stack and time", "templates/common/rt.h"),
    template!(
        "src/pi_mutex.hpp",
        "the mutex with priority inheritance",
        "templates/cpp/pi_mutex.hpp"
    ),
    template!("src/queue.hpp", "the queue from the loop to the logger", "templates/cpp/queue.hpp"),
    template!(
        "src/rtproof_mark.hpp",
        "begin and end of a cycle",
        "../../../../marks/rtproof_mark.hpp"
    ),
    Template { path: "src/rtproof_mark.h", about: "", text: MARK_H },
    template!("Makefile", "", "templates/cpp/Makefile"),
];

const RUST: &[Template] = &[
    template!("src/main.rs", "the application: loop, logger, signals", "templates/rust/main.rs.in"),
    template!("src/rt.rs", "memory, stack, time and signals", "templates/rust/rt.rs.in"),
    template!(
        "src/pi_mutex.rs",
        "the mutex with priority inheritance",
        "templates/rust/pi_mutex.rs.in"
    ),
    template!(
        "src/queue.rs",
        "the queue from the loop to the logger",
        "templates/rust/queue.rs.in"
    ),
    template!("rtproof-mark/Cargo.toml", "", "templates/rust/mark.toml.in"),
    template!(
        "rtproof-mark/src/lib.rs",
        "the crate of the marks: begin and end of a cycle",
        "../../../../marks/src/lib.rs"
    ),
    template!("rtproof-mark/src/ring.rs", "", "../../../../marks/src/ring.rs"),
    template!(
        "tests/realtime.rs",
        "runs `test.sh` under `cargo test`",
        "templates/rust/test.rs.in"
    ),
    template!("Cargo.toml", "", "templates/rust/Cargo.toml.in"),
];

const TEST: &str = include_str!("templates/common/test.sh");
const README: &str = include_str!("templates/common/README.md");

const FIFO_H: &str = include_str!("templates/class/fifo.h");
const FIFO_RS: &str = include_str!("templates/class/fifo.rs.in");
const FIFO_UNIT: &str = include_str!("templates/class/fifo.service");
const DEADLINE_H: &str = include_str!("templates/class/deadline.h");
const DEADLINE_RS: &str = include_str!("templates/class/deadline.rs.in");
const DEADLINE_UNIT: &str = include_str!("templates/class/deadline.service");

/// All files, in the order of the README.
pub(super) fn of(request: &Request) -> Vec<Made> {
    let (templates, class_path) = match request.language {
        Language::C => (C, "src/class.h"),
        Language::Cpp => (CPP, "src/class.h"),
        Language::Rust => (RUST, "src/class.rs"),
    };
    let is_rust = request.language == Language::Rust;
    let (class, unit) = match (request.class, is_rust) {
        (Class::Fifo, false) => (FIFO_H, FIFO_UNIT),
        (Class::Fifo, true) => (FIFO_RS, FIFO_UNIT),
        (Class::Deadline, false) => (DEADLINE_H, DEADLINE_UNIT),
        (Class::Deadline, true) => (DEADLINE_RS, DEADLINE_UNIT),
    };
    let class = Template { path: class_path, about: "period and scheduling class", text: class };
    let (main, rest) = templates.split_at(1);
    let listed: Vec<&Template> = main.iter().chain([&class]).chain(rest).collect();
    let named = |text: &str| text.replace("@NAME@", &request.name.0);
    let mut files: Vec<Made> = listed
        .iter()
        .map(|template| Made { path: template.path.into(), text: named(template.text) })
        .collect();
    let ignored = match request.language {
        Language::Rust => "/target\n".to_owned(),
        Language::C | Language::Cpp => format!("/{}\n", request.name),
    };
    files.extend([
        Made { path: format!("{}.service", request.name), text: named(unit) },
        Made { path: "test.sh".into(), text: TEST.into() },
        Made { path: "README.md".into(), text: named(&readme(request, &listed, class_path)) },
        Made { path: ".gitignore".into(), text: ignored },
    ]);
    files
}

/// Commands that build it, run it and test it, in its folder.
pub(super) fn commands(request: &Request) -> [String; 3] {
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
        Class::Fifo => (
            "SCHED_FIFO, priority 80",
            "Bind it to the CPU that is set aside for it: `taskset -c 1`, or the unit.",
        ),
        Class::Deadline => (
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_filled_in_and_every_file_fits_a_terminal() {
        for language in [Language::C, Language::Cpp, Language::Rust] {
            for class in [Class::Fifo, Class::Deadline] {
                let name = "arm".parse().unwrap();
                let request = Request { name, language, class, parent: "/".into() };
                let files = of(&request);
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
