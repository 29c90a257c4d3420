//! What the distribution of this machine offers as a real-time kernel, asked through its own
//! package manager. To add one: a `Manager` and a line of `MANAGERS`.

use std::{collections::BTreeMap, time::Duration};

use rtproof_host::{child, trusted};
use rtproof_results::kernel::{FIND_SCHEMA, KernelPackage, Offers};

/// In the order of the search: a machine that has two has its own first.
const MANAGERS: &[&Manager] = &[&APT, &DNF, &ZYPPER, &APK, &PACMAN];

/// Asks the machine's package manager. Nothing is installed or refreshed.
///
/// # Errors
/// No manager is here, or it failed.
pub fn find() -> Result<Offers, FindError> {
    let manager = MANAGERS.iter().find(|manager| trusted::find_program(manager.program).is_ok());
    let manager = manager.ok_or_else(|| {
        let names: Vec<&str> = MANAGERS.iter().map(|manager| manager.program).collect();
        FindError::NoManager(names.join(", "))
    })?;
    let mut queries = Queries::default();
    let mut packages = (manager.ask)(&mut queries)?;
    for package in &mut packages {
        package.follows = !has_version(&package.name);
        package.install = format!("{} {}", manager.install, package.name);
        let all: Vec<&str> =
            [&package.name].into_iter().chain(&package.with).map(String::as_str).collect();
        package.remove = format!("{} {}", manager.remove, all.join(" "));
    }
    packages.sort_by_key(|package| !package.follows);
    Ok(Offers {
        schema: FIND_SCHEMA,
        manager: manager.id.into(),
        queries: queries.commands,
        packages,
    })
}

/// Whether a name holds a version: digits, a dot, digits.
fn has_version(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.windows(3).any(|of| of[0].is_ascii_digit() && of[1] == b'.' && of[2].is_ascii_digit())
}

// apk (Alpine).

const APK: Manager =
    Manager { id: "apk", program: "apk", ask: ask_apk, install: "apk add", remove: "apk del" };

fn ask_apk(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let found = queries.ask(&["apk", "search", "-v", "linux-rt*"], None)?;
    let installed = queries.ask(&["apk", "info", "-v"], None)?;
    Ok(apk_packages(&found, &installed))
}

/// Lines of `NAME-VERSION-rN - description`; sizes are not in them.
fn apk_packages(found: &str, installed: &str) -> Vec<KernelPackage> {
    let split = |word: &str| {
        let (front, release) = word.rsplit_once('-')?;
        let (name, version) = front.rsplit_once('-')?;
        Some((name.to_owned(), format!("{version}-{release}")))
    };
    let installed: Vec<_> = installed.lines().filter_map(split).collect();
    let all = found.lines().filter_map(|line| {
        let (word, description) = line.split_once(" - ").unwrap_or((line, ""));
        let (name, version) = split(word.trim())?;
        let same = installed.iter().find(|(is, _)| *is == name);
        is_realtime(&name).then(|| KernelPackage {
            installed: same.map(|(_, version)| version.clone()),
            description: description.into(),
            name,
            version,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

// apt (Debian, Ubuntu).

const APT: Manager = Manager {
    id: "apt",
    program: "apt-get",
    ask: ask_apt,
    // What a kernel recommends and is not here was left out on purpose.
    install: "apt-get install --no-install-recommends",
    // autoremove would take along what else on the machine is no longer needed.
    remove: "apt-get purge",
};

fn ask_apt(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let search = ["apt-cache", "search", "--names-only", "^linux-image-.*(rt|realtime)"];
    let found = queries.ask(&search, None)?;
    let names = found.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| is_realtime(name)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut show = vec!["apt-cache", "show", "--no-all-versions"];
    show.extend(&names);
    let shown = queries.ask(&show, None)?;
    let mut policy = vec!["apt-cache", "policy"];
    policy.extend(&names);
    let policy = queries.ask(&policy, None)?;
    Ok(apt_packages(&shown, &installed(&policy)))
}

/// Packages as `apt-cache show` prints them.
fn apt_packages(shown: &str, installed: &BTreeMap<String, String>) -> Vec<KernelPackage> {
    let all = paragraphs(shown);
    let field = |of: &BTreeMap<String, String>, name: &str| of.get(name).cloned();
    let sizes = |of: &BTreeMap<String, String>| {
        let number = |name| field(of, name).and_then(|text| text.parse::<u64>().ok());
        (number("Size"), number("Installed-Size").map(|kib| kib * 1024))
    };
    let of = |paragraph: &BTreeMap<String, String>| {
        let name = field(paragraph, "Package")?;
        let depends = field(paragraph, "Depends").unwrap_or_default();
        let first = |one: &str| one.split_whitespace().next().unwrap_or_default().to_owned();
        let with: Vec<String> =
            depends.split(',').map(first).filter(|name| name.starts_with("linux-image-")).collect();
        let (mut download_bytes, mut disk_bytes) = sizes(paragraph);
        for name in &with {
            let other = all.iter().find(|it| it.get("Package") == Some(name));
            let (download, disk) = other.map(sizes).unwrap_or_default();
            download_bytes = download_bytes.zip(download).map(|(a, b)| a + b);
            disk_bytes = disk_bytes.zip(disk).map(|(a, b)| a + b);
        }
        Some(KernelPackage {
            version: field(paragraph, "Version")?,
            installed: installed.get(&name).cloned(),
            download_bytes,
            disk_bytes,
            with,
            description: field(paragraph, "Description")
                .or_else(|| field(paragraph, "Description-en"))
                .unwrap_or_default(),
            name,
            ..KernelPackage::default()
        })
    };
    all.iter().filter_map(of).collect()
}

/// Versions that `apt-cache policy` reports as installed.
fn installed(policy: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut name = "";
    for line in policy.lines() {
        if let Some(title) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            name = title;
        } else if let Some(version) = line.trim().strip_prefix("Installed: ")
            && version != "(none)"
        {
            all.insert(name.to_owned(), version.to_owned());
        }
    }
    all
}

// dnf (Fedora, RHEL and their kin). RHEL has kernel-rt in a repository of its own, which a
// subscription enables; what is not enabled is not offered.

const DNF: Manager = Manager {
    id: "dnf",
    program: "dnf",
    ask: ask_dnf,
    install: "dnf install",
    remove: "dnf remove",
};

/// Of dnf 4 and 5, each field after a tab; dnf 5 ends no line by itself.
const FORMAT: &str =
    "%{name}\t%{version}-%{release}\t%{downloadsize}\t%{installsize}\t%{summary}\n";

fn ask_dnf(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let words =
        |kind| ["dnf", "-q", "repoquery", kind, "--latest-limit=1", "--qf", FORMAT, "kernel-rt*"];
    let offered = queries.ask(&words("--available"), None)?;
    let installed = queries.ask(&words("--installed"), None)?;
    dnf_packages(&offered, &installed)
}

fn dnf_packages(offered: &str, installed: &str) -> Result<Vec<KernelPackage>, FindError> {
    let installed = rows(installed)?;
    let mut all = rows(offered)?;
    for package in &mut all {
        let same = installed.iter().find(|it| it.name == package.name);
        package.installed = same.map(|it| it.version.clone());
    }
    Ok(all)
}

fn rows(text: &str) -> Result<Vec<KernelPackage>, FindError> {
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, version, download, disk, summary] = fields[..] else {
            return Err(FindError::Answer {
                command: "dnf repoquery".into(),
                line: line.to_owned(),
            });
        };
        if is_realtime(name) {
            all.push(KernelPackage {
                name: name.into(),
                version: version.into(),
                // dnf 4 prints sizes of bytes; 0 means none reported.
                download_bytes: download.parse().ok().filter(|&bytes: &u64| bytes > 0),
                disk_bytes: disk.parse().ok().filter(|&bytes: &u64| bytes > 0),
                description: summary.into(),
                ..KernelPackage::default()
            });
        }
    }
    Ok(all)
}

// A package manager and how it is asked: what the managers' files share.

/// Time that a manager may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

struct Manager {
    id: &'static str,
    /// The program whose presence shows that the machine has it.
    program: &'static str,
    ask: fn(&mut Queries) -> Result<Vec<KernelPackage>, FindError>,
    /// What comes before the package's name to install and to remove it.
    install: &'static str,
    remove: &'static str,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// None of the managers is here.
    #[error(
        "no package manager found ({0}): what the distribution offers is unknown; build a kernel \
         with `rtproof kernel build`"
    )]
    NoManager(String),
    /// It could not be started.
    #[error("{command}: {source}")]
    Start { command: String, source: std::io::Error },
    #[error("{command}: exit status {status}: {output}")]
    Failed { command: String, status: String, output: String },
    /// It answered something else than expected.
    #[error("{command}: unexpected answer: {line:?}")]
    Answer { command: String, line: String },
}

/// The commands that were run.
#[derive(Debug, Default)]
struct Queries {
    commands: Vec<String>,
}

impl Queries {
    /// Runs one and gives what it writes to stdout. An exit status of `empty` means "none".
    fn ask(&mut self, words: &[&str], empty: Option<i32>) -> Result<String, FindError> {
        let command = words.join(" ");
        self.commands.push(command.clone());
        let start = |source| FindError::Start { command: command.clone(), source };
        let mut asked = trusted::command(words[0]).map_err(start)?;
        asked.args(&words[1..]);
        let output = child::output_within(&mut asked, ANSWER_MAX).map_err(start)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() || output.status.code().is_some_and(|is| Some(is) == empty) {
            return Ok(stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let status = output.status.code().map_or("none: a signal".into(), |is| is.to_string());
        let said = lines[lines.len().saturating_sub(3)..].join("; ");
        Err(FindError::Failed { command, status, output: said })
    }
}

/// Whether a name is a real-time kernel's: a part of it says so, and none says that it is
/// something beside the kernel.
fn is_realtime(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    has(&["rt", "realtime", "preempt_rt", "rt64"])
        && !has(&[
            "dbg",
            "debug",
            "debuginfo",
            "unsigned",
            "headers",
            "devel",
            "doc",
            "docs",
            "tools",
            "dev",
            "source",
            "modules",
            "selftests",
            "kvm",
            "template",
            "base",
            "vdso",
            "extra",
            "internal",
            "core",
            "matched",
        ])
}

// pacman (Arch).

const PACMAN: Manager = Manager {
    id: "pacman",
    program: "pacman",
    ask: ask_pacman,
    install: "pacman -S",
    remove: "pacman -Rs",
};

fn ask_pacman(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    // 1: nothing matches.
    let found = queries.ask(&["pacman", "-Ssq", "^linux-(rt|realtime)"], Some(1))?;
    let names: Vec<&str> = found.lines().map(str::trim).filter(|name| is_realtime(name)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut info = vec!["pacman", "-Si"];
    info.extend(&names);
    let shown = queries.ask(&info, None)?;
    let mut local = vec!["pacman", "-Q"];
    local.extend(&names);
    let installed = queries.ask(&local, Some(1))?;
    Ok(pacman_packages(&shown, &installed))
}

fn pacman_packages(shown: &str, installed: &str) -> Vec<KernelPackage> {
    let version_of = |name: &str| {
        let mut pairs = installed.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(is, _)| *is == name).map(|(_, version)| version.to_owned())
    };
    let all = paragraphs(shown).into_iter().filter_map(|of| {
        let field = |name: &str| of.get(name).cloned();
        let name = field("Name")?;
        let size = |title| field(title).and_then(|text| parse_bytes(&text));
        Some(KernelPackage {
            version: field("Version")?,
            installed: version_of(&name),
            download_bytes: size("Download Size"),
            disk_bytes: size("Installed Size"),
            description: field("Description").unwrap_or_default(),
            name,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

// `Name: value` paragraphs, as apt, zypper and pacman print them, and sizes with a unit.

/// Paragraphs of fields; a line that begins with a blank continues the one before.
fn paragraphs(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for line in text.lines() {
        if line.trim().is_empty() {
            all.push(BTreeMap::new());
        } else if let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with(' '))
        {
            let last = all.last_mut().expect("there is one");
            last.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// `12.5 MiB` in bytes; the managers mean powers of 1024, whatever letters they take.
fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "B"));
    let number: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    let factor = match unit.trim() {
        "B" | "" => 1.0,
        "KiB" | "kB" | "KB" | "K" => 1024.0,
        "MiB" | "MB" | "M" => 1024.0 * 1024.0,
        "GiB" | "GB" | "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * factor) as u64)
}

// zypper (openSUSE, SLE).

const ZYPPER: Manager = Manager {
    id: "zypper",
    program: "zypper",
    ask: ask_zypper,
    install: "zypper install",
    remove: "zypper remove --clean-deps",
};

/// `ZYPPER_EXIT_INF_CAP_NOT_FOUND`: nothing matches.
const NONE: i32 = 104;

fn ask_zypper(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let search =
        ["zypper", "--non-interactive", "--no-refresh", "search", "-t", "package", "kernel-rt*"];
    let found = queries.ask(&search, Some(NONE))?;
    let names = names(&found);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut info = vec!["zypper", "--non-interactive", "--no-refresh", "info"];
    info.extend(names.iter().map(String::as_str));
    Ok(zypper_packages(&queries.ask(&info, None)?))
}

/// The second column of the table.
fn names(table: &str) -> Vec<String> {
    let name = |line: &str| line.split('|').nth(1).map(|name| name.trim().to_owned());
    table.lines().filter_map(name).filter(|name| is_realtime(name)).collect()
}

fn zypper_packages(info: &str) -> Vec<KernelPackage> {
    let all = paragraphs(info).into_iter().filter_map(|of| {
        let field = |name: &str| of.get(name).cloned();
        let (name, version) = (field("Name")?, field("Version")?);
        let is_installed = field("Installed").is_some_and(|text| text.starts_with("Yes"));
        // "out-of-date (version 6.4.0 installed)".
        let old = field("Status").and_then(|text| {
            let (_, rest) = text.split_once("(version ")?;
            rest.split_once(" installed)").map(|(version, _)| version.to_owned())
        });
        Some(KernelPackage {
            installed: is_installed.then(|| old.unwrap_or_else(|| version.clone())),
            disk_bytes: field("Installed Size").and_then(|text| parse_bytes(&text)),
            description: field("Summary").unwrap_or_default(),
            name,
            version,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_packages_are_distinguished_from_their_parts() {
        for name in ["linux-image-rt-amd64", "kernel-rt", "linux-rt-lts", "linux-image-realtime"] {
            assert!(is_realtime(name) && !has_version(name), "{name}");
        }
        for name in ["linux-image-rt-amd64-dbg", "kernel-rt-devel", "linux-headers-rt-amd64"] {
            assert!(!is_realtime(name), "{name}");
        }
        assert!(!is_realtime("linux-image-cart-amd64"));
        assert!(has_version("linux-image-6.1.0-56-rt-amd64"));
    }

    #[test]
    fn a_manager_that_fails_is_an_error_and_one_that_has_none_is_not() {
        let mut queries = Queries::default();
        assert_eq!(queries.ask(&["sh", "-c", "echo a; exit 1"], Some(1)).unwrap(), "a\n");
        let error = queries.ask(&["sh", "-c", "echo no net >&2; exit 4"], Some(1)).unwrap_err();
        assert!(error.to_string().ends_with("exit status 4: no net"), "{error}");
        assert!(queries.ask(&["no-such-program-here"], None).is_err());
        assert_eq!(queries.commands.len(), 3);
    }
}

#[cfg(test)]
mod apk_tests {
    use super::*;

    #[test]
    fn a_name_ends_before_its_version() {
        let all =
            apk_packages("linux-rt-6.6.1-r0 - RT kernel\nlinux-rt-dev-6.6.1-r0 - x\n", "a-1-r0\n");
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].version.as_str()), ("linux-rt", "6.6.1-r0"));
        assert_eq!((all[0].disk_bytes, all[0].installed.as_ref()), (None, None));
    }
}

#[cfg(test)]
mod apt_tests {
    use super::*;

    const SHOWN: &str = "\
Package: linux-image-rt-amd64\nVersion: 6.1.192-2\nInstalled-Size: 13\nSize: 1480\n\
Depends: linux-image-6.1.0-56-rt-amd64 (= 6.1.192-2)\n\
Description: Linux for 64-bit PCs (meta-package)\n\n\
Package: linux-image-6.1.0-56-rt-amd64\nVersion: 6.1.192-2\nInstalled-Size: 400366\n\
Depends: kmod, linux-base (>= 4.3~)\nSize: 70352040\nDescription: Linux 6.1 for 64-bit PCs\n\n\
Package: linux-image-6.12-rt-amd64\nVersion: 6.12.1-1\nInstalled-Size: 13\nSize: 1480\n\
Depends: linux-image-6.12.1+deb12-rt-amd64 (= 6.12.1-1)\n";

    #[test]
    fn sizes_are_those_of_what_comes_with_it() {
        let policy = "linux-image-rt-amd64:\n  Installed: (none)\n  Candidate: 6.1.192-2\n\
                      linux-image-6.1.0-56-rt-amd64:\n  Installed: 6.1.1\n  Candidate: 6.1.192-2\n";
        let all = apt_packages(SHOWN, &installed(policy));
        assert_eq!(all[0].with, ["linux-image-6.1.0-56-rt-amd64"]);
        assert_eq!(all[0].download_bytes, Some(70_353_520));
        assert_eq!(all[0].disk_bytes, Some(400_379 * 1024));
        assert_eq!(
            (all[0].installed.as_deref(), all[1].installed.as_deref()),
            (None, Some("6.1.1"))
        );
        // The image of this one was not among the answers: its size is unknown, not 1480 bytes.
        assert_eq!((all[2].download_bytes, all[2].disk_bytes), (None, None));
    }
}

#[cfg(test)]
mod dnf_tests {
    use super::*;

    #[test]
    fn rows_are_read_and_another_answer_is_an_error() {
        let offered = "kernel-rt\t5.14.0-503\t1048576\t0\tThe Linux kernel with PREEMPT_RT\n\n\
                       kernel-rt-devel\t5.14.0-503\t1\t1\tfor modules\n";
        let all = dnf_packages(offered, "kernel-rt\t5.14.0-427\t1\t1\tx\n").unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].installed.as_deref(), Some("5.14.0-427"));
        assert_eq!((all[0].download_bytes, all[0].disk_bytes), (Some(1_048_576), None));
        assert!(dnf_packages("Last metadata expiration check\n", "").is_err());
    }
}

#[cfg(test)]
mod pacman_tests {
    use super::*;

    #[test]
    fn paragraphs_are_read() {
        let shown = "Repository      : extra\nName            : linux-rt\n\
                     Version         : 6.6.1.rt1-1\nDescription     : RT kernel\n\
                     Download Size   : 1.5 MiB\nInstalled Size  : 3.00 MiB\n";
        let all = pacman_packages(shown, "linux-rt 6.5.0-1\n");
        assert_eq!(all[0].download_bytes, Some(1_572_864));
        assert_eq!(all[0].disk_bytes, Some(3_145_728));
        assert_eq!(all[0].installed.as_deref(), Some("6.5.0-1"));
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn fields_and_sizes_are_read() {
        let all = paragraphs("Package: a\nDescription: x: y\n more: of it\n\nPackage: b\n");
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["Description"], "x: y");
        assert!(!all[0].contains_key("more"));
        assert_eq!(parse_bytes("250.0 MiB"), Some(262_144_000));
        assert_eq!(parse_bytes("17"), Some(17));
        assert_eq!(parse_bytes("-1 B"), None);
        assert_eq!(parse_bytes("3 parsecs"), None);
    }
}

#[cfg(test)]
mod zypper_tests {
    use super::*;

    #[test]
    fn the_table_and_the_paragraphs_are_read() {
        let found = "S | Name | Summary | Type\n--+--+--+--\n  | kernel-rt | RT kernel | package\n\
                     i | kernel-rt-devel | x | package\n";
        assert_eq!(names(found), ["kernel-rt"]);
        let info = "Information for package kernel-rt:\n---\nRepository     : OSS\n\
                    Name           : kernel-rt\nVersion        : 6.4.0-1\n\
                    Installed Size : 2.0 KiB\nInstalled      : Yes\n\
                    Status         : out-of-date (version 6.3.0 installed)\nSummary : RT\n";
        let all = zypper_packages(info);
        assert_eq!(all[0].disk_bytes, Some(2048));
        assert_eq!(all[0].installed.as_deref(), Some("6.3.0"));
        assert_eq!(all[0].download_bytes, None);
    }
}
