//! A whole Debian with systemd and GRUB: services, quotas, containers, boot parameters, a trial
//! boot, a power cut with a real file system.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

const MS: i64 = 1_000_000;

/// What rtproof would have a user write for one isolated CPU.
const ISOLATED: &str = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1";

pub(super) fn cases() -> Vec<Case> {
    let cases = [service(), container(), quota(), boot_parameters(), power_cut()];
    let cases = cases.into_iter().map(|case| case.tier(Tier::Three).limit_s(300));
    cases.chain([super::disk_unit::case()]).collect()
}

/// The daemon of the article as a service.
const UNIT: &str = "cat >/etc/systemd/system/multipathd.service <<'END'
[Service]
ExecStart=/usr/local/bin/multipathd burst --busy 5ms --every 200ms --for 60s
CPUSchedulingPolicy=rr
CPUSchedulingPriority=99
[Install]
WantedBy=multi-user.target
END";

/// The daemon of the article as a real unit; its remedy is carried out.
fn service() -> Case {
    Case::new(
        "disk/service",
        "a SCHED_RR 99 service is named with its unit, and systemctl disable --now, the remedy, \
         is one",
        Machine::disk(),
    )
    .script(format!(
        "cp /tmp/bin/multipathd /usr/local/bin/
             {UNIT}
             systemctl enable --now multipathd.service
             run check rtproof check --json
             prove run --for 2s --budget 2ms --load idle
             systemctl disable --now multipathd.service
             run cured rtproof check --json"
    ))
    .expect(service_is_named)
    .other_word("Policy=rr", "Policy=other", "check: rogue-rt-tasks")
}

fn service_is_named(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("run")?;
    for (name, findings) in [("check", &seen.json("check")?), ("prove", &report)] {
        let finding = findings.finding("rogue-rt-tasks")?;
        expect.equal(&format!("{name}: rogue-rt-tasks"), finding.text("/status"), "bad");
        for word in ["multipathd", "SCHED_RR 99", "multipathd.service"] {
            expect.contains(&format!("{name}: names {word}"), &finding.whole(), word);
        }
        let remedy = finding.list("/remedies").iter().find(|remedy| remedy["kind"] == "unit");
        let remedy = remedy.map(|r| format!("{} {}", r["action"], r["unit"]));
        let wanted = r#""disable --now" "multipathd.service""#.to_owned();
        expect.equal(&format!("{name}: remedy"), remedy, Some(wanted));
    }
    common::adds_up(expect, "prove", &report, 1);
    expect.equal("prove: exit code", seen.rc("run")?, 2);
    expect.within("prove: worst, ms", report.number("/all/max_ns")? / MS, 4..=5);
    let cured = seen.json("cured")?.finding("rogue-rt-tasks")?;
    expect.equal("the remedy works", cured.text("/status"), "good");
    Ok(())
}

/// A container of systemd's is named; latencies are those outside; missing rights are reported.
fn container() -> Case {
    let nspawn = "systemd-nspawn -q --register=no --keep-unit --volatile=yes -D / --bind=/tmp:/mnt";
    let prove = "/mnt/bin/rtproof prove --for 5s --cpus 0 --load idle --budget 1ms";
    Case::new(
        "disk/container",
        "in systemd-nspawn rtproof names the container, is as good as outside, and says what it \
         may not",
        Machine::disk(),
    )
    .script(format!(
        "prove outside --for 5s --cpus 0 --load idle --budget 1ms
         run inside {nspawn} --capability=CAP_SYS_NICE,CAP_IPC_LOCK --pipe {prove} -o /mnt/inside
         run unlocked {nspawn} --capability=CAP_SYS_NICE --pipe {prove} -o /mnt/unlocked
         cp /tmp/*.rtproof /host/",
    ))
    .expect(container_is_named)
    .other_word("CAP_SYS_NICE ", "CAP_SYS_NICE,CAP_IPC_LOCK ", "without the right: locked")
}

fn container_is_named(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let (outside, inside) = (seen.report("outside")?, seen.report("inside")?);
    expect.equal("outside: container", outside.text("/machine/container"), "");
    expect.equal("inside: container", inside.text("/machine/container"), "systemd-nspawn");
    common::adds_up(expect, "inside", &inside, 1);
    expect.equal("inside: exit code", seen.rc("inside")?, seen.rc("outside")?);
    let worst = (outside.number("/all/max_ns")?, inside.number("/all/max_ns")?);
    expect.that("latencies alike", "in 50 µs", (worst.0 - worst.1).abs() < 50_000, worst);
    expect.equal("inside: locked", has_note(&inside, "memory-not-locked"), false);
    let unlocked = seen.report("unlocked")?;
    expect.equal("without the right: locked", has_note(&unlocked, "memory-not-locked"), true);
    Ok(())
}

fn has_note(report: &Json, id: &str) -> bool {
    report.list("/notes").iter().any(|note| note["id"] == id)
}

/// 20 ms of each 100 ms: with a load beside it, an ordinary thread waits for the other 80.
fn quota() -> Case {
    Case::new(
        "disk/quota",
        "a service's CPU quota is seen as waits of its length, and refused",
        Machine::disk(),
    )
    .script(
        "run quota systemd-run -q --wait --pipe --unit q -p CPUQuota=20% /bin/sh -c \
           '/tmp/bin/rtproof prove -o /tmp/quota --cpus 0 --load cpu --load-cpus 0 --for 5s \
            --policy other --budget 10ms; cat /sys/fs/cgroup/system.slice/q.service/cpu.stat >&2'
         cp /tmp/quota.rtproof /host/",
    )
    .expect(|seen, expect| {
        let report = seen.report("quota")?;
        common::adds_up(expect, "quota", &report, 1);
        expect.within("worst, ms", report.number("/all/max_ns")? / MS, 60..=110);
        expect.equal("verdict", report.text("/verdict/answer"), "refused");
        let stat = seen.err("quota")?;
        let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        let throttled: i64 = throttled.and_then(|count| count.parse().ok()).unwrap_or(-1);
        expect.within("times throttled", throttled, 50..=1_000);
        Ok(())
    })
    .other_word("CPUQuota=20%", "CPUQuota=100%", "worst, ms")
}

/// Begin of the line that adds parameters to every entry of GRUB's menu.
const GRUB: &str = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX";
const MAKE_MENU: &str = ">/etc/default/grub.d/90-rtproof.cfg
    run menu update-grub
    echo reboot >/host/then";
/// Looks at what came of it, and chooses an entry without initramfs for the next boot alone.
const TRY: &str = r#"cat /proc/cmdline >/host/isolated
    run check rtproof check --json
    sed -n '/^menuentry.*-rt-amd64-advanced/,/^}/p' /boot/grub/grub.cfg |
        sed "1s/.*/menuentry 'trial' --id trial {/; /^\tinitrd/d" >/boot/grub/custom.cfg
    grub-reboot trial
    grub-editenv list >/host/chosen
    echo reboot >/host/then"#;

/// New parameters, a reboot, then a trial entry that panics and the way back: four boots.
fn boot_parameters() -> Case {
    Case::new(
        "disk/boot-parameters",
        "GRUB's new parameters isolate the CPU; a trial entry that panics is left by itself",
        Machine::grub(),
    )
    .script(format!("echo '{GRUB} {ISOLATED}\"' {MAKE_MENU}"))
    .then_again()
    .script(TRY)
    .then_again()
    .script("echo up")
    .ends_by_itself()
    .then_again()
    .script("cat /proc/cmdline >/host/back; grub-editenv list >/host/after")
    .expect(boots)
    .mutation("the menu is not made anew", "command line after the reboot", |case| {
        case.boots[0].script = case.boots[0].script.replace("run menu update-grub", "true");
        case.boots.truncate(2);
    })
    .mutation("the trial entry is not chosen", "boot 1: the guest ends by itself", |case| {
        case.boots.remove(0);
        case.boots[0].script = case.boots[0].script.replace("grub-reboot trial", "true");
        case.boots.truncate(2);
    })
}

fn boots(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.contains("command line after the reboot", &seen.text("isolated")?, ISOLATED);
    let isolation = seen.json("check")?.finding("isolation")?;
    expect.equal("isolation", isolation.text("/status"), "good");
    expect.contains("isolation names the CPU", &isolation.whole(), "CPU 1");
    expect.contains("trial chosen", &seen.text("chosen")?, "next_entry=trial\n");
    let trial = seen.boots().get(2).map(|boot| std::fs::read(&boot.console)).transpose()?;
    let trial = String::from_utf8_lossy(&trial.unwrap_or_default()).into_owned();
    expect.contains("the trial entry panics", &trial, "Kernel panic");
    expect.contains("next_entry is empty again", &seen.text("after")?, "next_entry=\n");
    expect.contains("the way back", &seen.text("back")?, ISOLATED);
    Ok(())
}

/// The record lies on the guest's own ext4, and is read after the next boot.
fn power_cut() -> Case {
    Case::new(
        "disk/power-cut",
        "after a power cut the record on the guest's disk lacks at most its last second",
        Machine::disk().cpus(2).multi_threaded(),
    )
    .script(
        "mkdir -p /var/lib/x
         rtproof prove -o /var/lib/x/cut --for 60s --cpus 1 --load idle >/dev/null 2>/host/prove &
         lab-plant wait-for --after 10s
         uptime_s >/host/uptime
         cue cut
         sleep 60",
    )
    .on("cut", |guest| guest.power_cut())
    .ends_by_itself()
    .then_again()
    .script(
        "run report rtproof report /var/lib/x/cut.rtproof --json
         cp /var/lib/x/* /host/",
    )
    .expect(second_is_lost)
    .other_word("--for 60s", "--for 5s", "record")
}

fn second_is_lost(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.json("report")?;
    expect.equal("exit code", seen.rc("report")?, 3);
    expect.equal("record", report.text("/record/state"), "torn");
    expect.that("no end", "null", report.at("/run/ended").is_null(), report.at("/run/ended"));
    let uptime: f64 = seen.text("uptime")?.trim().parse()?;
    // Uptime counts from the start as CLOCK_MONOTONIC does; the period is 1 ms.
    let last_ms =
        report.number("/run/started_monotonic_ns")? / MS + report.number("/all/scheduled")?;
    // One second by promise; the rest passes while two emulated CPUs share the host's.
    expect.within("lost, s", uptime - last_ms as f64 / 1e3, -5.0..=2.0);
    Ok(())
}
