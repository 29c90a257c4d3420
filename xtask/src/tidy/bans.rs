//! What crates must not do. Unsafe code stands in few places, where it is read as a whole. Paths
//! of the machine are known to `host`. Clippy's bans are only as good as the files that hold them:
//! each list keeps its entries, and the crates that say they are pure have the longer list.

use serde::Deserialize;

use crate::tree::{Complaint, Files, Tree};

/// Where unsafe code may be: the only file or folder of `measure`, the ring that runs in other
/// people's applications, and tests of these with a counting allocator.
const UNSAFE: &[&str] = &[
    "crates/measure/src/sys/",
    "crates/measure/tests/",
    "crates/stats/tests/",
    "marks/src/ring.rs",
];
/// What no crate calls.
const EVERYWHERE: &[&str] = &[
    "std::fs::canonicalize",
    "std::fs::read",
    "std::fs::read_dir",
    "std::fs::read_link",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::fs::File::open",
    "std::fs::OpenOptions::open",
    "std::fs::File::create",
    "std::fs::File::create_new",
    "std::fs::copy",
    "std::process::exit",
];
/// What a pure crate calls neither.
const PURE: &[&str] = &[
    "std::env::var",
    "std::io::stdout",
    "std::process::Command::new",
    "std::thread::sleep",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
];
/// Crates that do no I/O and read no clock.
const PURE_CRATES: &[&str] = &["checks", "judge", "render", "report", "results", "stats", "trace"];
/// The crate that knows where the kernel's files are.
const MACHINE: &str = "crates/host/";
/// What a path of the kernel's values begins with.
const KERNEL_FILES: &[&str] = &["/sys/", "/proc/sys/"];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Clippy {
    msrv: String,
    disallowed_methods: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    path: String,
}

/// Checks every Rust file and every list of bans.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let is_outside = |path: &str| !UNSAFE.iter().any(|place| path.starts_with(place));
    for file in files.rust().filter(|file| is_outside(file.path)) {
        for line in file.source.lines_with_word("unsafe") {
            let text = format!("unsafe code: move it to {} behind a safe function", UNSAFE[0]);
            complaints.push(Complaint::at(file.path, line, text));
        }
    }
    for file in files.product().filter(|file| !file.path.starts_with(MACHINE)) {
        let source = &file.source;
        for (line, text) in source.strings.iter().filter(|(line, _)| !source.in_test(*line)) {
            if KERNEL_FILES.iter().any(|path| text.starts_with(path)) {
                let path = text.split_whitespace().next().unwrap_or_default();
                let text =
                    format!("`{path}`: a path of the machine belongs to a knob or fact of host");
                let name = file.path.split("/src/").next().unwrap_or_default();
                let complaint = Complaint::at(file.path, *line, text);
                complaints.push(complaint.known_as(format!("machine paths in {name}")));
            }
        }
    }
    let tree = files.tree;
    let list = |name: &&str| format!("crates/{name}/clippy.toml");
    let pure = PURE_CRATES.iter().filter(|name| tree.exists(&format!("crates/{name}")));
    let pure: Vec<String> = pure.map(list).collect();
    check_list(tree, "clippy.toml", EVERYWHERE, &mut complaints);
    for path in &pure {
        check_list(tree, path, &[EVERYWHERE, PURE].concat(), &mut complaints);
    }
    for path in tree.paths() {
        let is_list = path.starts_with("crates/") && path.ends_with("clippy.toml");
        if is_list && !pure.iter().any(|known| known == path) {
            let text = "takes the workspace's bans away: name the crate in tidy's PURE_CRATES";
            complaints.push(Complaint::about(path, text));
        }
    }
    complaints
}

fn check_list(tree: &Tree, path: &str, bans: &[&str], complaints: &mut Vec<Complaint>) {
    let mut complain = |text: String| complaints.push(Complaint::about(path, text));
    let clippy = match tree.text(path).map(toml::from_str::<Clippy>) {
        None => return complain("is missing: restore it".into()),
        Some(Err(error)) => return complain(error.message().into()),
        Some(Ok(clippy)) => clippy,
    };
    for wanted in bans {
        if !clippy.disallowed_methods.iter().any(|ban| ban.path == *wanted) {
            complain(format!("does not ban `{wanted}`: add it"));
        }
    }
    if rust_version(tree).is_some_and(|version| version != clippy.msrv) {
        complain(format!("msrv is {}: make it `rust-version` of Cargo.toml", clippy.msrv));
    }
}

fn rust_version(tree: &Tree) -> Option<String> {
    let manifest: toml::Table = toml::from_str(tree.text("Cargo.toml")?).ok()?;
    Some(manifest.get("workspace")?.get("package")?.get("rust-version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn list(paths: &[&[&str]]) -> String {
        let bans: Vec<_> = paths.concat().iter().map(|p| format!("{{ path = \"{p}\" }}")).collect();
        format!("msrv = \"1.89\"\ndisallowed-methods = [{}]\n", bans.join(", "))
    }

    #[test]
    fn unsafe_is_found_in_code_and_only_there() {
        let unsafe_lines = |path: &str, text: &str| {
            let all = found(check, &[(path, text), ("clippy.toml", &list(&[EVERYWHERE]))]);
            all.into_iter().map(|(_, line, _)| line).collect::<Vec<_>>()
        };
        let text = "//! Not unsafe.\nfn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(unsafe_lines("crates/host/src/a.rs", text), [3]);
        assert_eq!(unsafe_lines("crates/measure/src/sys/mod.rs", text), [0; 0]);
        let text = "//! Not unsafe.\n#![deny(unsafe_code)]\nconst A: &str = \"unsafe\";\n";
        assert_eq!(unsafe_lines("crates/host/src/a.rs", text), [0; 0]);
    }

    #[test]
    fn machine_paths_are_found_outside_of_host() {
        let paths = |path: &str, text: &str| {
            let list = list(&[EVERYWHERE]);
            found(check, &[(path, text), ("clippy.toml", &list)]).len()
        };
        let text = "// /sys/a\nfn a() { b(\"/sys/a\", \"/proc/sys/b\", \"see /sys/c\") }\n";
        assert_eq!(paths("crates/run/src/a.rs", text), 2);
        assert_eq!(paths("crates/host/src/a.rs", text), 0);
        assert_eq!(paths("crates/run/tests/a.rs", text), 0);
    }

    #[test]
    fn full_lists_pass() {
        let (all, pure) = (list(&[EVERYWHERE]), list(&[EVERYWHERE, PURE]));
        let files = [
            ("clippy.toml", &*all),
            ("crates/judge/clippy.toml", &*pure),
            ("crates/render/clippy.toml", &*pure),
            ("Cargo.toml", "[workspace.package]\nrust-version = \"1.89\"\n"),
        ];
        assert_eq!(found(check, &files), []);
    }

    #[test]
    fn a_missing_entry_list_or_version_is_found() {
        let (all, pure) = (list(&[&EVERYWHERE[1..]]), list(&[EVERYWHERE]));
        let files = [
            ("clippy.toml", &*all),
            ("crates/judge/clippy.toml", &*pure),
            ("crates/stats/src/lib.rs", "//! S.\n"),
            ("crates/host/clippy.toml", ""),
            ("Cargo.toml", "[workspace.package]\nrust-version = \"1.90\"\n"),
        ];
        let complaints = found(check, &files);
        let has = |path: &str, part: &str| {
            complaints.iter().any(|(of, _, text)| of == path && text.contains(part))
        };
        assert!(has("clippy.toml", "std::fs::canonicalize"));
        assert!(has("clippy.toml", "rust-version"));
        assert!(has("crates/judge/clippy.toml", "std::time::Instant::now"));
        assert!(has("crates/stats/clippy.toml", "missing"));
        assert!(has("crates/host/clippy.toml", "PURE_CRATES"));
    }
}
