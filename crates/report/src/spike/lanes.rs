//! What each CPU did round a spike, as its causes see it: who ran, which interrupts and
//! softirqs were under way, and who on other CPUs had to do with it.

use rtproof_judge::causes::Explanation;
use rtproof_trace::{
    Event, What, Window,
    context::{State, Stretch, reconstruct},
    event::{flags, softirq_name},
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
    pub(crate) softirqs: Vec<Piece>,
    /// Other CPUs: by time.
    pub(crate) moments: Vec<Moment>,
}

/// What ran from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The task that was late.
    Late,
    Task,
    Idle,
    Interrupt,
    Softirq,
}

/// Something that another CPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at_ns: u64,
    pub(crate) cpu: u32,
    /// What, e.g. `eth0-rx wakes it`.
    pub(crate) text: String,
}

impl Lanes {
    /// The lanes of a window between two times.
    pub(crate) fn of(explanation: &Explanation, window: &Window, ends_ns: (u64, u64)) -> Self {
        let tid = explanation.wake.tid;
        let mut lanes = Self::default();
        for stretch in reconstruct(&window.events, window.cpu, ends_ns.0, ends_ns.1) {
            lanes.add(&stretch, tid, window);
        }
        let others = window.events.iter().filter(|event| {
            event.cpu != window.cpu && (ends_ns.0..=ends_ns.1).contains(&event.at_ns)
        });
        let moments = others.filter_map(|event| other(event, tid, window));
        lanes.moments = moments.take(MOMENTS_MAX).collect();
        lanes
    }

    fn add(&mut self, stretch: &Stretch, tid: i32, window: &Window) {
        let state = &stretch.state;
        if let Some((kind, name)) = runs(state, tid, window) {
            close(&mut self.tasks, stretch, kind, name);
        }
        let over = match (state.nmi, state.hard) {
            (Some(_), _) => Some("NMI".to_owned()),
            (None, hard) => hard.map(|(hard, _)| hard.to_string()),
        };
        if let Some(name) = over {
            close(&mut self.interrupts, stretch, Kind::Interrupt, name);
        }
        if let Some(vec) = state.softirq {
            close(&mut self.softirqs, stretch, Kind::Softirq, softirq_name(vec));
        }
    }
}

/// Who has the CPU.
fn runs(state: &State, tid: i32, window: &Window) -> Option<(Kind, String)> {
    match (state.task, state.idle) {
        (..=-1, _) => None,
        (0, None) => Some((Kind::Idle, "idle task".into())),
        (_, Some(idle)) => {
            let of = window.beside.idle_states.get(&idle).filter(|of| !of.name.is_empty());
            let name = of.map_or_else(|| format!("state {idle}"), |of| of.name.clone());
            Some((Kind::Idle, format!("idle {name}")))
        }
        (pid, None) => {
            let kind = if pid == tid { Kind::Late } else { Kind::Task };
            let is_named = window.tasks.get(&pid).is_some_and(|task| !task.comm.is_empty());
            let comm = if is_named { String::new() } else { named(window, pid) };
            Some((kind, task_name(window, pid, &comm)))
        }
    }
}

/// The name that a switch gave a task.
fn named(window: &Window, pid: i32) -> String {
    let told = window.events.iter().find_map(|event| match &event.what {
        What::Switch { next_comm, next_pid, .. } if *next_pid == pid => Some(*next_comm),
        What::Switch { prev_comm, prev_pid, .. } if *prev_pid == pid => Some(*prev_comm),
        _ => None,
    });
    told.map(|comm| comm.to_string()).unwrap_or_default()
}

/// An event of another CPU, if it concerns the late task or its CPU.
fn other(event: &Event, tid: i32, window: &Window) -> Option<Moment> {
    let late_cpu = window.cpu;
    let what = match &event.what {
        What::Waking { pid, .. } if *pid == tid => "wakes the late task".to_owned(),
        What::Migrate { pid, to_cpu, .. } if *pid == tid => {
            format!("moves the late task to CPU {to_cpu}")
        }
        What::IpiSend { to_cpu, callback, .. } if *to_cpu == late_cpu => {
            let function = window.function(*callback);
            format!("interrupts CPU {late_cpu}{}", for_function(function))
        }
        What::IpiRaise { cpus, .. } if late_cpu < 64 && cpus >> late_cpu & 1 == 1 => {
            format!("interrupts CPU {late_cpu}")
        }
        _ => return None,
    };
    let who = match event.pid {
        0 => "idle task".into(),
        pid => task_name(window, pid, ""),
    };
    let is_interrupt = event.flags & (flags::HARDIRQ | flags::NMI) != 0;
    let over = if is_interrupt { "an interrupt over " } else { "" };
    Some(Moment { at_ns: event.at_ns, cpu: event.cpu, text: format!("{over}{who} {what}") })
}

/// Adds a piece, or makes the last one longer.
fn close(lane: &mut Vec<Piece>, stretch: &Stretch, kind: Kind, name: String) {
    let (from_ns, to_ns) = (stretch.from_ns, stretch.to_ns);
    match lane.last_mut() {
        Some(last) if last.to_ns == from_ns && last.kind == kind && last.name == name => {
            last.to_ns = to_ns;
        }
        _ if from_ns < to_ns => lane.push(Piece { from_ns, to_ns, name, kind }),
        _ => {}
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
