//! Machines of others: the dumps that hwloc and util-linux test lscpu and lstopo with, of s390,
//! POWER, Itanium, Arm, RISC-V, SPARC and x86 since Linux 2.6. Their source packages hold dump and
//! expected output; nothing of them is kept here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use rtproof_checks::{Status, judge_all};
use rtproof_host::{Capture, CpuList, Facts, Root};

use crate::denied::intent;

/// Where the sources are unpacked, once for all runs.
static SOURCES: LazyLock<PathBuf> = LazyLock::new(fetch);

fn fetch() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache");
    let folder = cache.unwrap_or_else(home).join("rtproof-corpus");
    if folder.join("whole").exists() {
        return folder;
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("lists/partial")).expect("a folder");
    fs::create_dir_all(folder.join("archives/partial")).expect("a folder");
    let list = "deb-src http://deb.debian.org/debian bookworm main\n";
    fs::write(folder.join("sources.list"), list).expect("a file");
    let at = |name: &str| folder.join(name).display().to_string();
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-qq", "-o", "Dir::Etc::SourceParts=-", "-o", "APT::Sandbox::User="]);
        apt.arg("-o").arg(format!("Dir::Etc::SourceList={}", at("sources.list")));
        apt.arg("-o").arg(format!("Dir::State::Lists={}", at("lists")));
        apt.arg("-o").arg(format!("Dir::Cache={}", folder.display()));
        let done = apt.args(args).current_dir(&folder).status().expect("apt-get");
        assert!(done.success(), "apt-get {args:?}");
    };
    apt(&["update"]);
    apt(&["source", "--download-only", "hwloc", "util-linux"]);
    for file in fs::read_dir(&folder).expect("files").flatten() {
        if file.file_name().to_string_lossy().contains(".orig.tar") {
            unpack(&file.path(), &folder);
        }
    }
    fs::write(folder.join("whole"), "").expect("a file");
    folder
}

fn unpack(archive: &Path, into: &Path) {
    fs::create_dir_all(into).expect("a folder");
    let tar = Command::new("tar").arg("-C").arg(into).arg("-xf").arg(archive).status();
    assert!(tar.expect("tar").success(), "{}", archive.display());
}

/// A dumped machine with what the tool it is for says of it.
struct Dump {
    name: String,
    root: PathBuf,
    output: String,
}

/// The folder in a dump that holds proc and sys.
fn root_in(folder: &Path) -> Option<PathBuf> {
    if folder.join("proc").is_dir() || folder.join("sys").is_dir() {
        return Some(folder.to_owned());
    }
    let inner = fs::read_dir(folder).ok()?.flatten().map(|it| it.path());
    inner.filter(|it| it.is_dir()).find_map(|it| root_in(&it))
}

fn dumps(archives: &Path, ending: &str, output: impl Fn(&str) -> PathBuf) -> Vec<Dump> {
    let place = archives.join("unpacked");
    let mut all = Vec::new();
    for file in fs::read_dir(archives).expect("dumps").flatten() {
        let file_name = file.file_name().to_string_lossy().into_owned();
        let Some(name) = file_name.strip_suffix(ending) else { continue };
        let folder = place.join(name);
        if !folder.exists() {
            unpack(&file.path(), &folder);
        }
        let Ok(output) = fs::read_to_string(output(name)) else { continue };
        let root = root_in(&folder).expect("proc or sys");
        all.push(Dump { name: name.to_owned(), root, output });
    }
    assert!(all.len() > 10, "{}: {} dumps", archives.display(), all.len());
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn source(name: &str) -> PathBuf {
    let mut folders = fs::read_dir(&*SOURCES).expect("sources").flatten().map(|it| it.path());
    let is_it = |it: &PathBuf| {
        it.is_dir() && it.file_name().is_some_and(|it| it.to_string_lossy().starts_with(name))
    };
    folders.find(is_it).expect("the source")
}

static OF_LSCPU: LazyLock<Vec<Dump>> = LazyLock::new(|| {
    let tests = source("util-linux-").join("tests");
    let expected = tests.join("expected/lscpu");
    dumps(&tests.join("ts/lscpu/dumps"), ".tar.gz", |name| expected.join(format!("lscpu-{name}")))
});

static OF_HWLOC: LazyLock<Vec<Dump>> = LazyLock::new(|| {
    let folder = source("hwloc-").join("tests/hwloc/linux");
    let all = dumps(&folder, ".tar.bz2", |name| folder.join(format!("{name}.output")));
    let is_plain = |dump: &Dump| !folder.join(format!("{}.options", dump.name)).exists();
    all.into_iter().filter(is_plain).collect()
});

fn set(text: &str) -> CpuList {
    CpuList::parse(text.trim(), None).expect("a list")
}

#[test]
#[ignore = "it fetches sources with apt; CI runs it, in its stage corpus"]
fn corpus_of_lscpu_has_its_cpus_threads_and_nodes() {
    let mut wrong = Vec::new();
    for dump in OF_LSCPU.iter() {
        let facts = Facts::read(&Root::dir(&dump.root).expect("a root"));
        let field = |name: &str| {
            let lines = dump.output.lines().filter_map(|line| line.split_once(':'));
            lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).next()
        };
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let listed = field("On-line CPU(s) list").map(set);
        if listed.as_ref().is_some_and(|listed| *listed != online) {
            wrong.push(format!("{}: online {online}, lscpu {listed:?}", dump.name));
        }
        let threads = field("Thread(s) per core").and_then(|it| it.parse::<usize>().ok());
        let siblings =
            facts.cpus.cpus.iter().filter_map(|cpu| cpu.siblings.value()).map(CpuList::len).max();
        if let (Some(threads), Some(siblings)) = (threads, siblings)
            && threads != siblings
        {
            wrong.push(format!("{}: {siblings} threads a core, lscpu {threads}", dump.name));
        }
        for node in facts.cpus.nodes.value().into_iter().flatten() {
            let listed = field(&format!("NUMA node{} CPU(s)", node.id)).filter(|it| !it.is_empty());
            if listed.map(set).is_some_and(|listed| listed != node.cpus) {
                wrong.push(format!(
                    "{}: node {} {}, lscpu {listed:?}",
                    dump.name, node.id, node.cpus
                ));
            }
        }
        judge_all(&facts, &intent(&facts));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Numbers of the processing units of each core, as lstopo prints them.
fn cores(output: &str) -> Vec<BTreeSet<u32>> {
    let mut cores: Vec<BTreeSet<u32>> = Vec::new();
    for part in output.split(" L#") {
        // The name of the next object ends each part; the number and index begin it.
        let index = part.split_once("(P#").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        });
        if let (Some(index), Some(core)) =
            (index, cores.last_mut().filter(|core| core.contains(&u32::MAX)))
        {
            core.remove(&u32::MAX);
            core.insert(index);
        }
        let name = part.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        match name {
            Some("Core") => cores.push(BTreeSet::new()),
            Some("PU") => match cores.last_mut() {
                Some(core) => {
                    core.insert(u32::MAX);
                }
                None => cores.push(BTreeSet::from([u32::MAX])),
            },
            _ => {}
        }
    }
    cores.retain(|core| !core.is_empty());
    cores
}

#[test]
#[ignore = "it fetches sources with apt; CI runs it, in its stage corpus"]
fn corpus_of_hwloc_has_its_cpus_and_threads() {
    let (mut equal, mut wrong) = (0, Vec::new());
    for dump in OF_HWLOC.iter() {
        let facts = Facts::read(&Root::dir(&dump.root).expect("a root"));
        let expected = cores(&dump.output);
        let all: BTreeSet<u32> = expected.iter().flatten().copied().collect();
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let found: BTreeSet<u32> = online.iter().collect();
        // lstopo leaves out what the cpuset of who dumped it did not allow.
        if !all.is_subset(&found) {
            let expected = CpuList::new(all.iter().copied());
            wrong.push(format!("{}: online {online}, lstopo {expected}", dump.name));
            continue;
        }
        equal += usize::from(all == found);
        // It takes the two halves of AMD's modules for cores, the kernel for threads of one.
        if dump.name == "64amd64-4s2n4ca2co" {
            continue;
        }
        let of_core: BTreeMap<u32, &BTreeSet<u32>> =
            expected.iter().flat_map(|core| core.iter().map(move |cpu| (*cpu, core))).collect();
        for cpu in &facts.cpus.cpus {
            let Some(siblings) = cpu.siblings.value() else { continue };
            let siblings: BTreeSet<u32> = siblings.iter().filter(|it| all.contains(it)).collect();
            if of_core.get(&cpu.id).is_some_and(|core| **core != siblings) {
                wrong.push(format!(
                    "{}: CPU {} with {siblings:?}, lstopo {:?}",
                    dump.name, cpu.id, of_core[&cpu.id]
                ));
                break;
            }
        }
        judge_all(&facts, &intent(&facts));
    }
    assert!(equal > 20, "{equal} with all their CPUs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each file that a good finding cites is left out, and copied without its bytes: it is not good by
/// that file any more, and nothing else becomes good.
#[test]
#[ignore = "it fetches sources with apt; CI runs it, in its stage corpus"]
fn corpus_has_nothing_good_without_the_files_it_rests_on() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for dump in OF_LSCPU.iter().chain(OF_HWLOC.iter()) {
        let whole = Capture::take(&Root::dir(&dump.root).expect("a root"));
        let read = |capture: &Capture| Facts::read(&Root::captured(capture.clone()));
        let facts = read(&whole);
        let intent = intent(&facts);
        let before = judge_all(&facts, &intent);
        let there: BTreeSet<String> = whole.paths().map(str::to_owned).collect();
        let cited: BTreeSet<&str> = before
            .iter()
            .filter(|finding| finding.status == Status::Good)
            .flat_map(|finding| finding.evidence.iter().map(|evidence| evidence.path.as_str()))
            .filter(|path| there.contains(*path))
            .collect();
        for path in cited {
            for is_hollow in [false, true] {
                let mut less = whole.clone();
                match is_hollow {
                    true => less.set_file(path, b""),
                    false => less.set_absent(path),
                }
                tried += 1;
                for (was, is) in before.iter().zip(judge_all(&read(&less), &intent)) {
                    let cites = |finding: &rtproof_checks::Finding| {
                        finding.evidence.iter().any(|evidence| evidence.path == path)
                    };
                    let stays = was.status == Status::Good && is.status == Status::Good;
                    let becomes = was.status != Status::Good
                        && was.status != Status::NotApplicable
                        && is.status == Status::Good;
                    if becomes || stays && cites(&is) {
                        let how = if is_hollow { "empty" } else { "missing" };
                        wrong.push(format!(
                            "{}, {path} {how}: {} {:?} -> Good: {}",
                            dump.name, is.check, was.status, is.summary
                        ));
                    }
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
