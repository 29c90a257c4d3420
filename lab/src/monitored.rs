//! The kernel's own monitors of real-time applications (CONFIG_RV_MON_RTAPP), which no kernel of
//! Debian has: one is built from Debian's source and booted, and `rtproof run --rules` takes their
//! reports there. The build takes 10 minutes and more on two cores, so CI leaves it out: `make
//! lab-all` runs it.

use std::{fs, path::Path, process::Command};

use rtproof_guest::Arch;
use serde_json::Value;

use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::fetch::{Newest, Suite, fetch_set};
use crate::programs::{compiled, succeed};
use crate::{deb, pins};

const PLANTED: &str = include_str!("../../crates/rtproof/tests/rules/planted.c");
const MONITORED: &str = include_str!("../../crates/rtproof/tests/rules/monitored.c");

const NEWEST: Newest =
    Newest { suite: Suite::TrixieBackports, architecture: "amd64", names: &["linux-source-7.2"] };

/// What it needs beside a guest of rtproof.
const CONFIG: &str = "RV=y RV_PER_TASK_MONITORS=2 RV_MON_RTAPP=y RV_MON_PAGEFAULT=y RV_MON_SLEEP=y \
    RV_REACTORS=y RV_REACT_PRINTK=y";

/// Runs in the guest. What is on afterwards is in lines with a name.
const SCRIPT: &str = r#"
rv=/sys/kernel/tracing/rv
cd /tmp
state() {
    echo "STATE $1" $(cat $rv/enabled_monitors) $(ls /run | grep tracer)
}
run() {
    name=$1
    shift
    rtproof run --dma-latency off --no-trace --rules --rules-after signal \
        --json $name.json "$@" > $name.out 2>&1
    echo "RC $name $?"
    state $name
    echo "JSON $name $(cat $name.json)"
}
run planted -- planted
run clean -- planted clean
run monitored --policy other -- monitored
# What is on stays on.
echo rtapp:sleep >> $rv/enabled_monitors
run kept -- planted clean
echo '!rtapp:sleep' >> $rv/enabled_monitors
# Where the kernel would do more than tell, nothing is changed.
echo printk > $rv/monitors/rtapp/sleep/reactors
run reacts -- planted clean
echo nop > $rv/monitors/rtapp/sleep/reactors
rtproof run --no-trace --rules --tune none -- sleep 60 > /dev/null 2>&1 &
tries=0
until grep -q sleep $rv/enabled_monitors || [ $tries = 60 ]; do
    sleep 1
    tries=$((tries + 1))
done
state before-kill
kill -9 $!
sleep 5
state killed
"#;

/// The lines of a kind, by name.
fn lines<'a>(text: &'a str, kind: &str, name: &str) -> Vec<&'a str> {
    let first = format!("{kind} {name}");
    text.lines().filter_map(|line| Some(line.strip_prefix(&first)?.trim())).collect()
}

fn rules(text: &str, name: &str) -> Value {
    let (_, from) = text.split_once(&format!("JSON {name} ")).expect(name);
    let mut all = serde_json::Deserializer::from_str(from).into_iter::<Value>();
    all.next().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"))["rules"].clone()
}

/// The breaches that the kernel's monitors report: rule, monitor, and whether a comment in their
/// line names the rule.
fn reported<'a>(rules: &'a Value, source: &str) -> Vec<(&'a str, &'a str, bool)> {
    let all = rules["breaches"].as_array().unwrap().iter();
    all.filter_map(|it| {
        let line = it["at"]["line"].as_u64().unwrap_or(0) as usize;
        let line = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let rule = it["rule"].as_str()?;
        Some((rule, it["monitor"].as_str()?, line.ends_with(&format!("/* {rule} */"))))
    })
    .collect()
}

fn told(text: &str) {
    let sleep = "rtapp:sleep";
    let planted = rules(text, "planted");
    let found = reported(&planted, PLANTED);
    for rule in ["relative-sleep", "lock"] {
        assert!(found.contains(&(rule, sleep, true)), "{rule}: {found:?}\n{planted:#}");
    }
    let monitored = rules(text, "monitored");
    let found = reported(&monitored, MONITORED);
    let told = found.iter().filter(|it| **it == ("kernel-monitor", sleep, true)).count();
    assert!(told >= 2, "{found:?}\n{monitored:#}");
    for name in ["clean", "kept", "reacts"] {
        let clean = rules(text, name);
        assert_eq!(clean["answer"], "kept", "{name}: {clean:#}");
        let taken = clean["monitors"]["taken"].as_array().unwrap().len();
        assert_eq!(taken, if name == "reacts" { 0 } else { 2 }, "{clean:#}");
    }
    for name in ["planted", "clean", "monitored", "reacts", "killed"] {
        assert_eq!(lines(text, "STATE", name), [""], "{name}: on, or old values are left");
    }
    assert_eq!(lines(text, "STATE", "kept"), [sleep]);
    let [before] = lines(text, "STATE", "before-kill")[..] else { panic!("{text}") };
    assert!(before.contains(sleep) && before.contains(".tracer"), "{before}");
}

/// Makes the kernel in `folder`/out; a source that was unpacked before is used again.
fn built(rtproof: &Path, folder: &Path, cache: &Cache) {
    let sets = pins::sets("source-7.2").unwrap();
    let sets: Vec<_> = sets.iter().map(Vec::as_slice).collect();
    let source = fetch_set(cache, &sets, Some(&NEWEST)).unwrap();
    deb::unpack(&source.debs[0], folder, &["*/linux-source-7.2.tar.xz"]).unwrap();
    let tarball = folder.join("usr/src/linux-source-7.2.tar.xz");
    succeed(Command::new("tar").arg("-C").arg(folder).arg("-xf").arg(tarball)).unwrap();
    let kernel = |words: &[&str]| {
        let mut command = Command::new(rtproof);
        command.arg("kernel").args(words).args(["--source", "linux-source-7.2", "out"]);
        let status = command.current_dir(folder).status().unwrap();
        assert!(status.code().is_some_and(|code| code != 1), "{words:?}: {status}");
    };
    kernel(&["config", "--profile", "periodic", "--for", "guest"]);
    let config = folder.join("out/build/.config");
    let more: String = CONFIG.split(' ').map(|option| format!("CONFIG_{option}\n")).collect();
    fs::write(&config, fs::read_to_string(&config).unwrap() + &more).unwrap();
    kernel(&["build"]);
}

#[test]
#[ignore = "builds a kernel, 10 minutes and more: `make lab-all`"]
fn linux_source_with_monitors_reports_what_they_say_and_leaves_them_off() {
    let cache = Cache::open().unwrap();
    let rtproof = Binaries::build(Arch::X86_64, &cache).unwrap().rtproof;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    built(&rtproof, folder, &cache);
    let text = guest(&rtproof, folder);
    told(&text);
}

/// Boots it and runs the script; what that said.
fn guest(rtproof: &Path, folder: &Path) -> String {
    for (name, source) in [("planted", PLANTED), ("monitored", MONITORED)] {
        let file = format!("{name}.c");
        let compiler = ["cc", "-O0", "-g", "-static", "-pthread", "-o", name, &file];
        compiled(folder, &file, source, &compiler).unwrap();
    }
    fs::write(folder.join("script"), SCRIPT).unwrap();
    let mut boot = Command::new(rtproof);
    boot.args(["kernel", "boot", "out", "--no-kvm", "--timeout", "20m", "-o", "boot"]);
    for program in ["planted", "monitored"] {
        boot.arg("--program").arg(folder.join(program));
    }
    for program in ["cat", "sleep", "ls", "grep", "rm"] {
        boot.arg("--program").arg(Path::new("/bin").join(program));
    }
    boot.args(["--file", "script", "--", "sh", "script"]);
    let output = boot.current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    fs::read_to_string(folder.join("boot/command.out")).unwrap()
}
