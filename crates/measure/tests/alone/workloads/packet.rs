//! Packets over a pair of devices of their own, and to peers that there are not.

use super::*;

/// Whether namespaces of the network may be made here.
fn may() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root || std::env::var_os("CI").is_none(), "CI runs this as root");
    is_root
}

#[test]
fn packets_go_there_and_back() {
    if !may() {
        return;
    }
    let _alone = alone();
    let before = interfaces();
    let mut plan = plan("packet");
    plan.duration_ns = 1_000_000_000;
    let got = run(&plan).remove(0);
    assert_eq!((got.report.reason, got.report.scheduled), (EndReason::Complete, 1000), "{got:?}");
    // A loaded machine keeps the thread from sending; an answer is never lost here.
    assert!(got.totals.wake.count() > 500 && got.report.ending.unanswered == 0, "{got:?}");
    // Two ways through the stack and two system calls.
    assert!(got.min() > 500, "{got:?}");
    assert_eq!(interfaces(), before, "its devices are in namespaces of their own");
}

#[test]
fn two_threads_have_devices_of_their_own() {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !may() || cpus < 2 {
        return;
    }
    let _alone = alone();
    let mut plan = plan("packet");
    plan.cpus = vec![0, 1];
    for got in run(&plan) {
        assert_eq!((got.report.scheduled, got.report.ending.unanswered), (400, 0), "{got:?}");
    }
}

#[test]
fn a_peer_that_there_is_not_is_named() {
    if !may() {
        return;
    }
    let _alone = alone();
    let error = |text: &str| Session::start(&plan(text)).expect_err("no such peer").to_string();
    let said = error("packet:nothere0:192.0.2.7");
    assert!(said.contains("nothere0") && said.contains("ip link"), "{said}");
    // The loopback device leads to no other machine.
    let said = error("packet:lo:192.0.2.7");
    assert!(said.contains("192.0.2.7"), "{said}");
}

#[expect(clippy::disallowed_methods, reason = "the namespace of this test")]
fn interfaces() -> String {
    let text = std::fs::read_to_string("/proc/net/dev").expect("interfaces");
    let names = text.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim()).collect::<Vec<_>>().join(" ")
}
