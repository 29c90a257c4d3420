//! A plant as lines for the guest's shell.

use super::{Cause, Plant};

/// Where plants write while rtproof measures: not into the shared folder, whose device would
/// disturb. The guest's script takes it there when it ends, after the plants have.
const BOOKS: &str = "trap 'wait $PLANTS; cat /tmp/truth.jsonl >/host/truth.jsonl' EXIT";
/// The unit that the rogue daemon is in.
const UNIT: &str = "/sys/fs/cgroup/system.slice/multipathd.service";
const GROUP: &str = "/sys/fs/cgroup/lab";

impl Plant {
    /// Shell lines that run in the guest before the case's script; they start the plant in the
    /// background.
    pub fn shell(&self) -> String {
        lines(self)
    }
}

fn lines(plant: &Plant) -> String {
    let mut lines = vec![BOOKS.to_owned()];
    match &plant.cause {
        Cause::Module(kind) => {
            let idle =
                if *kind == "idleexit" { format!(" idle_us={}", plant.us) } else { String::new() };
            lines.push(format!("[ -e /proc/rtproof_plant ] || insmod /host/module.ko{idle}"));
        }
        Cause::FairServer => {
            let servers = "/sys/kernel/debug/sched/fair_server";
            lines.push(format!("grep -r . {servers} >/host/fair_server.txt 2>/dev/null"));
            // It has to be running when the hog comes: on PREEMPT_RT the timer that would wake it
            // expires in a thread that the hog outranks.
            let starving = Plant {
                cause: burst("other"),
                after_ms: plant.after_ms.saturating_sub(300),
                for_ms: plant.for_ms + 600,
                ..whole(plant)
            };
            lines.push(background(&starving));
        }
        _ => {}
    }
    lines.push(background(plant));
    lines.join("\n")
}

fn background(plant: &Plant) -> String {
    format!("{} --truth /tmp/truth.jsonl & PLANTS=\"$PLANTS $!\"", command(plant))
}

fn burst(policy: &str) -> Cause {
    Cause::Burst { policy: policy.into(), is_daemon: false }
}

/// The same plant, busy all the time.
fn whole(plant: &Plant) -> Plant {
    plant.clone().us(100_000).every_ms(100)
}

/// The command without its books.
fn command(plant: &Plant) -> String {
    let Plant { us, every_us, times, .. } = *plant;
    let mut text = match &plant.cause {
        Cause::Module(kind) => format!(
            "lab-plant module --kind {kind} --busy {us}us --every {every_us}us --times {times}"
        ),
        Cause::Burst { policy, is_daemon: false } => {
            format!("lab-plant burst --busy {us}us --every {every_us}us --policy {policy}")
        }
        Cause::Burst { policy, is_daemon: true } => format!(
            "multipathd burst --busy {us}us --every {every_us}us --policy {policy} --cgroup {UNIT}"
        ),
        Cause::Throttling => "lab-plant throttle".into(),
        Cause::FairServer => {
            return command(&Plant { cause: burst("fifo:10"), ..whole(plant) });
        }
        Cause::NetworkFlood => "lab-plant softirq".into(),
        Cause::TimerInterrupts => format!("lab-plant irq --every {every_us}us --policy fifo:50"),
        Cause::Memory { bytes, high: None } => format!("lab-plant memory --bytes {bytes}"),
        Cause::Memory { bytes, high: Some(high) } => {
            format!("lab-plant memory --bytes {bytes} --memory-high {high} --cgroup {GROUP}/memory")
        }
        Cause::Forks => "lab-plant fork".into(),
        Cause::ClockStep { by_ms } => format!("lab-plant clock-step --by {by_ms}ms"),
        Cause::FullDisk { dir, leave } => {
            format!("lab-plant fill-disk --dir {dir} --leave {leave}")
        }
        Cause::Offline { down_ms } => {
            format!("lab-plant offline --down {down_ms}ms --every {every_us}us --times {times}")
        }
        Cause::Boost => format!("lab-plant boost --busy {us}us --every {every_us}us"),
        Cause::Deliver { sockets } => {
            format!("lab-plant deliver --count {sockets} --every {every_us}us")
        }
        Cause::Expire { timers } => {
            format!("lab-plant expire --count {timers} --every {every_us}us")
        }
        Cause::Purge { messages } => {
            format!("lab-plant purge --count {messages} --every {every_us}us")
        }
        Cause::Stop => format!("lab-plant stop --busy {us}us --every {every_us}us"),
        Cause::Move => format!("lab-plant move --busy {us}us --every {every_us}us"),
        Cause::Quota { quota_us } => {
            format!("lab-plant quota --quota {quota_us}us --of 100ms --cgroup {GROUP}/quota")
        }
    };
    let for_ms = match plant.cause {
        // Long enough for all occurrences; they end it.
        Cause::Offline { down_ms } => (every_us / 1_000 + down_ms) * times + 1_000,
        _ => plant.for_ms,
    };
    text += &format!(" --for {for_ms}ms --after {}ms", plant.after_ms);
    text += &plant.cpu.map(|cpu| format!(" --cpu {cpu}")).unwrap_or_default();
    text += &plant.phase_us.map(|us| format!(" --phase {us}us")).unwrap_or_default();
    text + if plant.at_once { "" } else { " --when-measuring" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(plant: &Plant) -> String {
        plant.shell().lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_module_plant_loads_it_once() {
        let plant = Plant::irqs_off().cpu(1).us(3000).every_ms(100).times(20).phase_us(250);
        assert!(plant.needs_module());
        assert!(plant.shell().contains("|| insmod /host/module.ko\n"));
        assert_eq!(
            last_line(&plant),
            "lab-plant module --kind irqsoff --busy 3000us --every 100000us --times 20 --for 3000ms \
             --after 500ms --cpu 1 --phase 250us --when-measuring --truth /tmp/truth.jsonl & \
             PLANTS=\"$PLANTS $!\""
        );
    }

    #[test]
    fn the_rogue_daemon_has_its_name_and_its_unit() {
        let line = last_line(&Plant::rogue_rr99().at_once());
        assert!(line.starts_with("multipathd burst --busy 5000us --every 1000000us"), "{line}");
        assert!(line.contains("--policy rr:99 --cgroup /sys/fs/cgroup/system.slice/"), "{line}");
        assert!(!line.contains("--when-measuring"), "{line}");
    }

    #[test]
    fn the_fair_server_has_somebody_to_serve() {
        let shell = Plant::fair_server().cpu(0).shell();
        let hogs: Vec<&str> = shell.lines().filter(|line| line.contains("burst")).collect();
        assert_eq!(hogs.len(), 2, "{shell}");
        assert!(hogs[0].contains("--policy other") && hogs[1].contains("--policy fifo:10"));
        assert!(hogs.iter().all(|line| line.contains("--busy 100000us --every 100000us")));
    }

    #[test]
    fn a_cpu_is_back_before_the_end() {
        let line = last_line(&Plant::cpu_offline(2).times(3).down_ms(200));
        assert!(line.contains("--down 200ms --every 1000000us --times 3 --for 4600ms"), "{line}");
        assert!(line.contains("--cpu 2"), "{line}");
    }

    #[test]
    fn every_command_is_one_that_lab_plant_has() {
        let help = include_str!("../../plant/src/main.rs");
        let all = [
            Plant::preempt_off(),
            Plant::hard_irq(),
            Plant::soft_irq(),
            Plant::smi(),
            Plant::moved(),
            Plant::equal_fifo(80),
            Plant::hog(),
            Plant::fifo_hog(10),
            Plant::rt_throttling(),
            Plant::network_flood(),
            Plant::timer_interrupts(),
            Plant::page_faults(),
            Plant::memory_pressure(),
            Plant::forks(),
            Plant::clock_step_ms(-1500),
            Plant::full_disk("/tmp/o", 4096),
            Plant::cpu_quota(),
            Plant::boost(),
            Plant::deliver(100),
            Plant::expire(100),
            Plant::purge(100),
            Plant::stop(),
        ];
        for plant in all {
            let line = last_line(&plant);
            let name = line.split(' ').nth(1).unwrap_or_default();
            assert!(help.contains(&format!("\n  {name} ")), "{line}");
            assert_eq!(plant.asked()["times"], 20);
        }
    }
}
