//! What runs outside of the lab's guests: `rtproof kernel boot` with the lab's kernels, as a user
//! boots one.

use std::{fs, path::Path, process::Command};

use rtproof_guest::Arch;
use serde_json::Value;

use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::kernels;

/// Boots a kernel of the table with these words; exit code and answer.
fn boot(cache: &Cache, id: &str, out: &Path, words: &[&str]) -> (i32, Value) {
    let kernel = kernels::named(id).unwrap();
    let ready = kernel.ready(cache).unwrap();
    let own = Binaries::build(Arch::X86_64, cache).unwrap().rtproof;
    let binary = Binaries::build(kernel.arch, cache).unwrap().rtproof;
    let output = Command::new(own)
        .args(["kernel", "boot", "--json", "--binary"])
        .arg(binary)
        .arg("-o")
        .arg(out)
        .args(words.iter().take_while(|word| **word != "--"))
        .arg(&ready.image)
        .args(words.iter().skip_while(|word| **word != "--"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(answer["release"], Value::from(ready.release), "{said}");
    assert!(out.join("console.log").exists() && !out.join("initramfs.cpio").exists());
    (output.status.code().unwrap(), answer)
}

#[test]
#[ignore = "kernels of Debian and a static rtproof: `make lab-all` and CI run it"]
fn kernels_of_both_architectures_boot_and_are_checked_inside() {
    let cache = Cache::open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for id in ["rt-6.1", "rt-6.1-arm64"] {
        let out = folder.path().join(id);
        let (code, _) = boot(&cache, id, &out, &["--check", "--no-kvm"]);
        let checked: Value =
            serde_json::from_slice(&fs::read(out.join("check.json")).unwrap()).unwrap();
        let findings = checked["findings"].as_array().unwrap();
        let of = |id: &str| findings.iter().find(|finding| finding["check"] == id).unwrap();
        assert_eq!(of("preempt-rt")["status"], "good", "{id}");
        // As `check` itself ends.
        let is_bad = findings.iter().any(|finding| finding["status"] == "bad");
        assert_eq!(code, if is_bad { 2 } else { 0 }, "{id}");
    }
}

#[test]
#[ignore = "kernels of Debian and a static rtproof: `make lab-all` and CI run it"]
fn with_counted_instructions_a_proof_is_the_same_each_time() {
    let cache = Cache::open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let prove = "--prove=--for 2s --load idle --no-trace --budget 1ms";
    let proof = |name: &str| {
        let out = folder.path().join(name);
        let words: Vec<&str> = ["--icount"].into_iter().chain([prove]).collect();
        let (_, answer) = boot(&cache, "rt-6.1", &out, &words);
        assert_eq!(answer["guest"]["clock"], "instructions");
        assert!(out.join("prove.rtproof").exists() && out.join("prove.html").exists());
        fs::read_to_string(out.join("prove.out")).unwrap()
    };
    let first = proof("first");
    assert!(first.contains("CPU 0"), "{first}");
    assert_eq!(first, proof("second"));
}

#[test]
#[ignore = "kernels of Debian and a static rtproof: `make lab-all` and CI run it"]
fn stock_and_real_time_kernels_are_told_apart_the_same_way_twice() {
    let cache = Cache::open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rtproof = Binaries::build(Arch::X86_64, &cache).unwrap().rtproof;
    let image = |id: &str| kernels::named(id).unwrap().ready(&cache).unwrap().image;
    let compared = || {
        let out = folder.path().join("out");
        let output = Command::new(&rtproof)
            .args(["kernel", "compare", "--json", "--prove=--for 3s --load cpu", "-o"])
            .arg(&out)
            .args([image("stock-6.1"), image("rt-6.1")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::remove_dir_all(out).unwrap();
        output.stdout
    };
    let first = compared();
    let answer: Value = serde_json::from_slice(&first).unwrap();
    let pair = answer["checks"].as_array().unwrap();
    let of = pair.iter().find(|pair| pair["check"] == "preempt-rt").expect("it differs");
    assert_eq!(of["status"], serde_json::json!(["bad", "good"]));
    let longest = |at: usize| answer["kernels"][at]["latency"]["max"].as_u64().unwrap();
    // Which one is longer in three seconds is chance.
    assert!(longest(0) > 0 && longest(1) > 0, "{} {}", longest(0), longest(1));
    assert!(first == compared(), "another answer the second time");
}
