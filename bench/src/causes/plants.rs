//! What is planted on the machine itself, and what must be blamed. All of it is bounded in time and
//! keeps to the measured CPU.

use rtproof_lab::blame::Counted;

#[derive(Clone, Copy, Debug)]
pub(super) struct Plant {
    /// Name in the matrix.
    pub(super) name: &'static str,
    /// Arguments of lab-plant, without place and time; the books of the first are the truth.
    pub(super) commands: &'static [&'static str],
    /// Causes of which each is right.
    pub(super) causes: &'static [&'static str],
    /// Words that the culprit must have.
    pub(super) culprit: &'static [&'static str],
    /// Shorter spikes are left out.
    pub(super) least_ns: u64,
    /// Which of the books tell when it acted.
    pub(super) told: Counted,
    /// Whether the plant is itself the application whose wake-ups are late (`rtproof explain`).
    pub(super) is_application: bool,
    /// Longer than the others, because it acts seldom.
    pub(super) times_as_long: u64,
}

const DAEMON: Plant = Plant {
    name: "daemon of RR 99",
    commands: &["multipathd burst --busy 4ms --every 100ms --policy rr:99 --gap 20us"],
    causes: &["preempted"],
    culprit: &["multipathd", "RR 99"],
    least_ns: 100_000,
    told: Counted::Occurrences,
    is_application: false,
    times_as_long: 1,
};

pub(super) const ALL: &[Plant] = &[
    DAEMON,
    Plant {
        name: "daemon of RR 99, each second",
        commands: &["multipathd burst --busy 4ms --every 1s --policy rr:99 --gap 20us"],
        times_as_long: 2,
        ..DAEMON
    },
    Plant {
        name: "neighbour of equal priority",
        commands: &["lab-plant burst --busy 3ms --every 50ms --policy fifo:80 --gap 20us"],
        causes: &["queued"],
        culprit: &["lab-plant", "FIFO 80"],
        ..DAEMON
    },
    Plant {
        name: "lock that FIFO 90 waits for",
        commands: &["lab-plant boost --busy 3ms --every 50ms"],
        causes: &["priority-inheritance"],
        culprit: &["lab-plant"],
        ..DAEMON
    },
    Plant {
        name: "kernel code without preemption",
        commands: &["lab-plant purge --every 100ms --count 8000 --policy fifo:20"],
        causes: &["preempt-off"],
        culprit: &["lab-plant"],
        told: Counted::Alike,
        ..DAEMON
    },
    Plant {
        name: "soft interrupt",
        commands: &["lab-plant deliver --every 50ms --count 4000 --policy fifo:20"],
        causes: &["softirq"],
        culprit: &["NET_RX"],
        told: Counted::Alike,
        ..DAEMON
    },
    Plant {
        name: "timers of one instant",
        commands: &["lab-plant expire --every 50ms --count 2000 --policy fifo:20"],
        causes: &["timer-work"],
        culprit: &[],
        told: Counted::Alike,
        ..DAEMON
    },
    Plant {
        name: "fair server",
        commands: &[
            "lab-plant burst --busy 100ms --every 100ms --policy fifo:10",
            "lab-plant burst --busy 100ms --every 100ms",
        ],
        causes: &["throttled"],
        culprit: &["fair server"],
        // What the scheduler gives to others at once; hypervisors take less.
        told: Counted::Gaps(20_000_000),
        times_as_long: 2,
        ..DAEMON
    },
    Plant {
        name: "SIGSTOP",
        commands: &["lab-plant stop --busy 20ms --every 250ms"],
        causes: &["stopped"],
        culprit: &["lab-plant"],
        // It has to be noticed first.
        least_ns: 5_000_000,
        ..DAEMON
    },
    Plant {
        name: "application's own overrun",
        commands: &["lab-plant cycle --busy 100us --every 2ms --each 50 --long 5ms"],
        causes: &["own-cycle"],
        culprit: &[],
        is_application: true,
        ..DAEMON
    },
    Plant {
        name: "application's page faults",
        commands: &["lab-plant cycle --busy 100us --every 2ms --each 50 --bytes 64m"],
        causes: &["page-fault"],
        culprit: &[],
        is_application: true,
        ..DAEMON
    },
    Plant {
        name: "application moved to a busy CPU",
        commands: &["lab-plant move --busy 4ms --every 100ms"],
        causes: &["migration"],
        culprit: &["CPU"],
        is_application: true,
        ..DAEMON
    },
];
