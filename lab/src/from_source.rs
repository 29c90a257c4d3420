//! From Debian's source to a kernel that was proven in a guest, by the commands of
//! docs/kernel.md, booted once by a whole Debian, and compared with one of the same source without
//! PREEMPT_RT. Two builds take 20 minutes and more on two cores, so CI leaves it out: `make
//! lab-all` runs it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use rtproof_guest::Arch;
use serde_json::Value;

use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::programs::succeed;
use crate::run::Bench;

/// Of Debian's package linux-source-6.12.
const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";

const TREE: &str = "linux-source-6.12";

/// What Debian on the lab's disk needs beside a guest of rtproof. Its shared folder is a module, as
/// modules are what the trial has to bring along.
const DISK: &str = "MODULES=y MODULE_UNLOAD=y PCI=y BLOCK=y BLK_DEV=y VIRTIO_MENU=y VIRTIO_PCI=y \
    VIRTIO_BLK=y EXT4_FS=y EXT4_FS_POSIX_ACL=y MSDOS_PARTITION=y NETWORK_FILESYSTEMS=y NET_9P=m \
    NET_9P_VIRTIO=m 9P_FS=m CGROUPS=y CPUSETS=y CGROUP_PIDS=y INOTIFY_USER=y FANOTIFY=y FHANDLE=y \
    TMPFS=y TMPFS_POSIX_ACL=y TMPFS_XATTR=y AUTOFS_FS=y UNIX=y NAMESPACES=y NET_NS=y SECCOMP=y \
    DEVPORT=y DEVMEM=y RTC_CLASS=y UNIX98_PTYS=y POSIX_MQUEUE=y DMI=y DMIID=y ACPI=y \
    CRYPTO_CRC32C=y RD_GZIP=y RD_XZ=y RD_ZSTD=y LOCALVERSION=\"-own\"";

struct Work {
    rtproof: PathBuf,
    folder: PathBuf,
}

impl Work {
    fn run(&self, words: &[&str]) -> Output {
        let output = Command::new(&self.rtproof)
            .args(["kernel"])
            .arg(words[0])
            // What follows `--` is the guest's.
            .arg("--json")
            .args(&words[1..])
            .current_dir(&self.folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 1), "{words:?}: {said}");
        output
    }

    fn answer(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.run(words).stdout).unwrap()
    }

    fn text(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The value of an option in a configuration.
fn value<'a>(config: &'a str, name: &str) -> &'a str {
    let set = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(name)?.strip_prefix('='));
    set.unwrap_or("n")
}

/// The table of survived and dropped options is what was built.
fn agrees(configured: &Value, config: &str) {
    let rows = configured["options"].as_array().unwrap();
    assert!(rows.len() > 40, "{}", rows.len());
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert_eq!(row["after"], value(config, name), "{name}");
        assert_eq!(row["fate"] == "survived", row["wanted"] == row["after"], "{name}");
    }
}

#[test]
#[ignore = "builds two kernels, 20 minutes and more: `make lab-all`"]
fn linux_source_becomes_a_proven_kernel_and_differs_from_stock() {
    let cache = Cache::open().unwrap();
    // The source and two builds: 3 GB.
    let folder = tempfile::tempdir().unwrap();
    let work = Work {
        rtproof: Binaries::build(Arch::X86_64, &cache).unwrap().rtproof,
        folder: folder.path().to_owned(),
    };
    succeed(Command::new("tar").arg("-C").arg(&work.folder).args(["-xf", SOURCE])).unwrap();
    let configured = work.answer(&[
        "config",
        "--source",
        TREE,
        "--profile",
        "periodic",
        "--for",
        "guest",
        "--core-sched",
        "rt",
    ]);
    let config = work.folder.join("rt/build/.config");
    let more: String = DISK.split(' ').map(|option| format!("CONFIG_{option}\n")).collect();
    fs::write(&config, fs::read_to_string(&config).unwrap() + &more).unwrap();
    work.answer(&["build", "--source", TREE, "--deb", "rt"]);
    let built = work.text("rt/build/.config");
    agrees(&configured, &built);
    assert_eq!(value(&built, "PREEMPT_RT"), "y");
    let prove = "--prove=--for 5s --budget 1ms";
    work.answer(&["boot", "rt", "--check", prove, "--icount", "-o", "boot"]);
    let checked: Value = serde_json::from_str(&work.text("boot/check.json")).unwrap();
    let findings = checked["findings"].as_array().unwrap();
    let of = |id: &str| findings.iter().find(|finding| finding["check"] == id).unwrap();
    for id in ["preempt-rt", "high-res-timers", "config-hz"] {
        assert_eq!(of(id)["status"], "good", "{id}");
    }
    assert!(work.folder.join("boot/prove.rtproof").exists());
    assert!(work.text("boot/prove.out").contains("under load cpu+memory+net+disk"));

    // The package boots once in a Debian with GRUB, and nothing of it stays.
    let packages = fs::read_dir(work.folder.join("rt")).unwrap();
    let is_image = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("linux-image-") && name.ends_with(".deb") && !name.contains("-dbg")
    };
    let package = packages.map(|entry| entry.unwrap().path()).find(is_image).unwrap();
    let bench = Bench::open(work.folder.join("lab"), None).unwrap();
    let case = crate::cases::tune::of_build(package);
    let report = bench.run(&case, "kernel-of-build").unwrap();
    assert!(report.failures.is_empty(), "{:#?}\n{}", report.failures, report.console);
    assert!(report.asked > 8, "{}", report.asked);

    // A core of two threads: a program gets a cookie there, which Debian's kernels do not have.
    let own = work.rtproof.display().to_string();
    let run = format!("{own} run --cpus 0 --core-sched --tune none --place affinity --no-trace --");
    let mut words = vec!["boot", "rt", "--cpus", "2", "--threads", "2", "--no-kvm", "-o", "cookie"];
    words.push("--");
    words.extend(run.split(' '));
    words.extend(["/bin/rtproof", "--version"]);
    let answer = work.answer(&words);
    assert_eq!(answer["steps"][0]["exit"], 0, "{answer:#}");
    let said = work.text("cookie/command.err");
    assert!(said.contains("nothing runs on the other thread"), "{said}");

    // The same source and configuration, but for PREEMPT_RT.
    let stock = built.replace("CONFIG_PREEMPT_RT=y", "# CONFIG_PREEMPT_RT is not set");
    fs::write(work.folder.join("stock.config"), stock).unwrap();
    work.answer(&["build", "--source", TREE, "--config", "stock.config", "stock"]);
    let compared = || {
        let words = ["compare", "stock", "rt", "--prove=--for 3s --load cpu,net", "-o", "compare"];
        let output = work.run(&words);
        fs::remove_dir_all(work.folder.join("compare")).unwrap();
        output.stdout
    };
    let first = compared();
    let answer: Value = serde_json::from_slice(&first).unwrap();
    let options = answer["options"].as_array().unwrap();
    assert!(options.iter().any(|of| of["name"] == "PREEMPT_RT"), "{options:?}");
    let longest = |at: usize| answer["kernels"][at]["latency"]["max"].as_u64().unwrap();
    assert!(longest(0) > longest(1), "{} {}", longest(0), longest(1));
    assert!(first == compared(), "another answer the second time");
}
