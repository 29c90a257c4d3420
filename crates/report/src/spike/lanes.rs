//! What each CPU did round a spike, out of the events of its window: who ran, which interrupts and
//! softirqs were under way, and who on other CPUs had to do with it.

use std::collections::BTreeMap;

use rtproof_judge::causes::Explanation;
use rtproof_trace::{
    Event, What, Window,
    event::{Vector, flags},
};

/// Most moments of other CPUs that are shown.
const MOMENTS_MAX: usize = 12;

/// What the late CPU did, and what others did to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Who ran: tasks, and idle.
    pub(crate) tasks: Vec<Piece>,
    /// Hard interrupts and non-maskable ones.
    pub(crate) interrupts: Vec<Piece>,
    /// Softirqs.
    pub(crate) softirqs: Vec<Piece>,
    /// Other CPUs: by time.
    pub(crate) moments: Vec<Moment>,
}

/// What ran from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// From.
    pub(crate) from_ns: u64,
    /// To.
    pub(crate) to_ns: u64,
    /// Name.
    pub(crate) name: String,
    /// Kind.
    pub(crate) kind: Kind,
}

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The task that was late.
    Late,
    /// Another task.
    Task,
    /// Nobody.
    Idle,
    /// A hard interrupt.
    Interrupt,
    /// A softirq.
    Softirq,
}

/// Something that another CPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// When.
    pub(crate) at_ns: u64,
    /// CPU.
    pub(crate) cpu: u32,
    /// What, e.g. `eth0-rx wakes it`.
    pub(crate) text: String,
}

impl Lanes {
    /// The lanes of a window between two times.
    pub(crate) fn of(explanation: &Explanation, window: &Window, ends_ns: (u64, u64)) -> Self {
        let mut state = State::new(explanation.wake.tid, window, ends_ns);
        for event in window.events.iter().filter(|event| event.at_ns <= ends_ns.1) {
            if event.cpu == window.cpu {
                state.own(event);
            } else if event.at_ns >= ends_ns.0 {
                state.other(event);
            }
        }
        state.finish()
    }
}

/// Something under way.
#[derive(Clone, Debug)]
struct Open {
    from_ns: u64,
    name: String,
    kind: Kind,
}

/// The state of the late CPU while its events are read.
struct State<'a> {
    tid: i32,
    window: &'a Window,
    ends_ns: (u64, u64),
    lanes: Lanes,
    task: Option<Open>,
    running: Option<i32>,
    interrupts: Vec<Open>,
    /// Softirqs by task: on PREEMPT_RT they leave the CPU with the task that they run in.
    softirqs: BTreeMap<i32, Vec<Open>>,
}

impl<'a> State<'a> {
    fn new(tid: i32, window: &'a Window, ends_ns: (u64, u64)) -> Self {
        Self {
            tid,
            window,
            ends_ns,
            lanes: Lanes::default(),
            task: None,
            running: None,
            interrupts: Vec::new(),
            softirqs: BTreeMap::new(),
        }
    }

    fn own(&mut self, event: &Event) {
        if self.running.is_none() {
            // The first event tells who ran until now.
            let pid = match &event.what {
                What::Switch { prev_pid, .. } => *prev_pid,
                _ => event.pid,
            };
            self.runs(self.ends_ns.0.min(event.at_ns), pid, "");
        }
        let at_ns = event.at_ns;
        match &event.what {
            What::Switch { next_pid, next_comm, .. } => self.switch(at_ns, *next_pid, next_comm),
            What::Idle { state } => self.runs_as(at_ns, Kind::Idle, self.idle_name(*state)),
            What::IdleExit => self.runs_as(at_ns, Kind::Idle, "idle task".into()),
            What::VectorEntry { vector } => self.enter(at_ns, vector_name(*vector).into()),
            What::IrqEntry { irq, name } => self.enter(at_ns, format!("IRQ {irq} {name}")),
            What::IpiEntry { reason } => self.enter(at_ns, reason.to_string()),
            What::VectorExit { .. } | What::IrqExit { .. } | What::IpiExit { .. } => {
                self.leave(at_ns);
            }
            What::Nmi { delta_ns, .. } => {
                let from_ns = at_ns.saturating_sub(*delta_ns);
                let open = Open { from_ns, name: "NMI".into(), kind: Kind::Interrupt };
                close(&mut self.lanes.interrupts, open, at_ns, self.ends_ns);
            }
            What::SoftirqEntry { vec } => {
                let open = Open { from_ns: at_ns, name: softirq_name(*vec), kind: Kind::Softirq };
                self.softirqs.entry(self.running.unwrap_or(0)).or_default().push(open);
            }
            What::SoftirqExit { .. } => {
                let of_task = self.softirqs.entry(self.running.unwrap_or(0)).or_default();
                if let Some(open) = of_task.pop() {
                    close(&mut self.lanes.softirqs, open, at_ns, self.ends_ns);
                }
            }
            _ => {}
        }
    }

    /// A task leaves and another comes; softirqs go with theirs.
    fn switch(&mut self, at_ns: u64, pid: i32, comm: &rtproof_trace::event::Comm) {
        let leaves = self.running.unwrap_or(0);
        for open in self.softirqs.get(&leaves).into_iter().flatten() {
            close(&mut self.lanes.softirqs, open.clone(), at_ns, self.ends_ns);
        }
        self.runs(at_ns, pid, &comm.to_string());
        for open in self.softirqs.get_mut(&pid).into_iter().flatten() {
            open.from_ns = at_ns;
        }
    }

    fn runs(&mut self, at_ns: u64, pid: i32, comm: &str) {
        self.running = Some(pid);
        let (kind, name) = match pid {
            0 => (Kind::Idle, "idle task".into()),
            pid if pid == self.tid => (Kind::Late, task_name(self.window, pid, comm)),
            pid => (Kind::Task, task_name(self.window, pid, comm)),
        };
        self.runs_as(at_ns, kind, name);
    }

    fn runs_as(&mut self, at_ns: u64, kind: Kind, name: String) {
        if let Some(before) = self.task.replace(Open { from_ns: at_ns, name, kind }) {
            close(&mut self.lanes.tasks, before, at_ns, self.ends_ns);
        }
    }

    fn idle_name(&self, state: u32) -> String {
        let known = self.window.beside.idle_states.get(&state).filter(|of| !of.name.is_empty());
        known.map_or_else(|| format!("idle state {state}"), |of| format!("idle {}", of.name))
    }

    /// An interrupt begins; one that it interrupts shows on both sides of it.
    fn enter(&mut self, at_ns: u64, name: String) {
        if let Some(below) = self.interrupts.last() {
            close(&mut self.lanes.interrupts, below.clone(), at_ns, self.ends_ns);
        }
        self.interrupts.push(Open { from_ns: at_ns, name, kind: Kind::Interrupt });
    }

    fn leave(&mut self, at_ns: u64) {
        if let Some(open) = self.interrupts.pop() {
            close(&mut self.lanes.interrupts, open, at_ns, self.ends_ns);
        }
        if let Some(below) = self.interrupts.last_mut() {
            below.from_ns = at_ns;
        }
    }

    /// An event of another CPU, if it concerns the late task or its CPU.
    fn other(&mut self, event: &Event) {
        let late_cpu = self.window.cpu;
        let what = match &event.what {
            What::Waking { pid, .. } if *pid == self.tid => "wakes the late task".to_owned(),
            What::Migrate { pid, to_cpu, .. } if *pid == self.tid => {
                format!("moves the late task to CPU {to_cpu}")
            }
            What::IpiSend { to_cpu, callback, .. } if *to_cpu == late_cpu => {
                let function = self.window.function(*callback);
                format!("interrupts CPU {late_cpu}{}", for_function(function))
            }
            What::IpiRaise { cpus, .. } if late_cpu < 64 && cpus >> late_cpu & 1 == 1 => {
                format!("interrupts CPU {late_cpu}")
            }
            _ => return,
        };
        if self.lanes.moments.len() < MOMENTS_MAX {
            let who = match event.pid {
                0 => "idle task".into(),
                pid => task_name(self.window, pid, ""),
            };
            let is_interrupt = event.flags & (flags::HARDIRQ | flags::NMI) != 0;
            let over = if is_interrupt { "an interrupt over " } else { "" };
            let text = format!("{over}{who} {what}");
            self.lanes.moments.push(Moment { at_ns: event.at_ns, cpu: event.cpu, text });
        }
    }

    /// What is still under way ends with the picture.
    fn finish(mut self) -> Lanes {
        let (end_ns, ends_ns) = (self.ends_ns.1, self.ends_ns);
        if let Some(task) = self.task.take() {
            close(&mut self.lanes.tasks, task, end_ns, ends_ns);
        }
        if let Some(open) = self.interrupts.pop() {
            close(&mut self.lanes.interrupts, open, end_ns, ends_ns);
        }
        let running = self.running.unwrap_or(0);
        for open in self.softirqs.remove(&running).into_iter().flatten() {
            close(&mut self.lanes.softirqs, open, end_ns, ends_ns);
        }
        self.lanes.interrupts.sort_by_key(|piece| (piece.from_ns, piece.to_ns));
        self.lanes.softirqs.sort_by_key(|piece| (piece.from_ns, piece.to_ns));
        self.lanes
    }
}

/// Adds a piece, as far as it lies within the picture.
fn close(lane: &mut Vec<Piece>, open: Open, to_ns: u64, ends_ns: (u64, u64)) {
    let (from_ns, to_ns) = (open.from_ns.max(ends_ns.0), to_ns.min(ends_ns.1));
    if from_ns < to_ns {
        lane.push(Piece { from_ns, to_ns, name: open.name, kind: open.kind });
    }
}

fn for_function(function: Option<&str>) -> String {
    function.map_or_else(String::new, |function| format!(" for {function}"))
}

/// A task with its policy where that is not the ordinary one: `multipathd [RR 99]`.
pub(crate) fn task_name(window: &Window, pid: i32, comm: &str) -> String {
    let task = window.tasks.get(&pid);
    let name = task.map(|task| task.comm.as_str()).filter(|name| !name.is_empty());
    let name = name.or_else(|| Some(comm).filter(|comm| !comm.is_empty()));
    let name = name.map_or_else(|| format!("task {pid}"), Into::into);
    let policy = task.and_then(|task| Some((task.policy?, task.rt_priority)));
    match policy {
        Some((policy, priority)) if priority > 0 => {
            format!("{name} [{} {priority}]", policy.text())
        }
        Some((rtproof_trace::Policy::Deadline, _)) => format!("{name} [DEADLINE]"),
        _ => name,
    }
}

const fn vector_name(vector: Vector) -> &'static str {
    match vector {
        Vector::LocalTimer => "local timer",
        Vector::Reschedule => "reschedule",
        Vector::CallFunction | Vector::CallFunctionSingle => "function call",
        Vector::IrqWork => "irq work",
        Vector::Thermal => "thermal",
        Vector::Threshold => "machine-check threshold",
        Vector::DeferredError => "deferred machine check",
        Vector::Error => "APIC error",
        Vector::Spurious => "spurious",
        Vector::PlatformIpi => "platform",
    }
}

fn softirq_name(vec: u32) -> String {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    let name = usize::try_from(vec).ok().and_then(|vec| NAMES.get(vec));
    name.map_or_else(|| format!("softirq {vec}"), |name| (*name).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spike::sample;
    use crate::spike::sample::Events;

    fn names(pieces: &[Piece]) -> Vec<(&str, u64)> {
        pieces.iter().map(|piece| (piece.name.as_str(), piece.to_ns - piece.from_ns)).collect()
    }

    #[test]
    fn a_task_lane_has_no_gaps_and_names_idle_states() {
        let spike = sample::stall();
        let window = sample::window(spike.number).unwrap();
        let wake = &spike.explanation.wake;
        let ends_ns = (wake.due_ns - 50_000, wake.ran_ns + 10_000);
        let lanes = Lanes::of(&spike.explanation, &window, ends_ns);
        assert_eq!(lanes.tasks.first().unwrap().from_ns, ends_ns.0);
        assert_eq!(lanes.tasks.last().unwrap().to_ns, ends_ns.1);
        assert!(lanes.tasks.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert!(lanes.tasks.iter().any(|piece| piece.name == "multipathd [RR 99]"));
        assert_eq!(lanes.tasks.last().unwrap().kind, Kind::Late);
        assert!(lanes.softirqs.iter().any(|piece| piece.name == "NET_RX"));
    }

    #[test]
    fn interrupts_nest_and_softirqs_leave_with_their_task() {
        let mut events = Events::on(1);
        events.switch(0, 7, 8).vector(100, 150).at(200, 8, What::SoftirqEntry { vec: 1 });
        events.switch(300, 8, 9).switch(500, 9, 8).at(600, 8, What::SoftirqExit { vec: 1 });
        events.at(700, 8, What::IrqEntry { irq: 24, name: "eth0".into() });
        events.vector(720, 730).at(760, 8, What::IrqExit { irq: 24 });
        let window = Window { cpu: 1, events: events.list, ..Window::default() };
        let lanes = Lanes::of(&sample::stall().explanation, &window, (0, 1000));
        assert_eq!(names(&lanes.softirqs), [("TIMER", 100), ("TIMER", 100)]);
        let of_irq = [("local timer", 50), ("IRQ 24 eth0", 20), ("local timer", 10)];
        assert_eq!(names(&lanes.interrupts)[..3], of_irq);
        assert_eq!(names(&lanes.interrupts)[3], ("IRQ 24 eth0", 30));
        assert_eq!(names(&lanes.tasks), [("task 8", 300), ("task 9", 200), ("task 8", 500)]);
    }

    #[test]
    fn torn_events_do_no_harm() {
        let mut events = Events::on(1);
        events.at(10, 5, What::SoftirqExit { vec: 77 }).at(20, 5, What::IrqExit { irq: 1 });
        events.at(30, 5, What::Nmi { handler: 0, delta_ns: u64::MAX });
        events.at(40, 5, What::SoftirqEntry { vec: 77 });
        let window = Window { cpu: 1, events: events.list, ..Window::default() };
        let lanes = Lanes::of(&sample::stall().explanation, &window, (0, 100));
        assert_eq!(names(&lanes.tasks), [("task 5", 100)]);
        assert_eq!(names(&lanes.interrupts), [("NMI", 30)]);
        assert_eq!(names(&lanes.softirqs), [("softirq 77", 60)]);
    }

    #[test]
    fn others_count_only_where_they_concern_the_late_cpu() {
        let spike = sample::incomplete();
        let window = sample::window(spike.number).unwrap();
        let lanes = Lanes::of(&spike.explanation, &window, (0, u64::MAX));
        let texts: Vec<_> = lanes.moments.iter().map(|m| (m.cpu, m.text.as_str())).collect();
        let flush = "kworker/0:2 interrupts CPU 1 for flush_tlb_func";
        assert_eq!(texts, [(0, flush), (0, "irq/38-can0 [FIFO 50] wakes the late task")]);
    }
}
