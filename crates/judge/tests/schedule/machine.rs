//! A machine of two CPUs that schedules as Linux does, in steps of a microsecond: priorities, a
//! mutex, absolute timers, device interrupts, softirqs on their exit, code with interrupts or
//! preemption off, a freezer, and CPUs that stand still. It writes the events that a kernel would,
//! and knows what each CPU did in each step.

use rtproof_trace::{
    Event, EventData,
    event::{Vector, flags},
};

/// Nanoseconds of a step.
pub(super) const STEP_NS: u64 = 1_000;

pub(super) const VICTIM: i32 = 50;

const SLEEPER: u64 = 0xc100;

/// What a CPU did in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Stood,
    Timer,
    Irq(i32),
    Softirq(u32),
    Ran(i32),
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Compute(u64),
    InterruptsOff(u64),
    PreemptionOff(u64),
    Lock,
    Unlock,
    Sleep(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Queued,
    Asleep,
    Blocked,
}

struct Task {
    tid: i32,
    prio: i32,
    cpu: usize,
    state: State,
    work: Vec<Work>,
    /// When its timer is to fire.
    timer: Option<u64>,
    /// When it should have run.
    due: Option<u64>,
    period: u64,
    next: u64,
    queued_at: u64,
}

#[derive(Clone, Copy)]
struct Frame {
    did: Did,
    left: u64,
}

#[derive(Default)]
struct Cpu {
    current: usize,
    frames: Vec<Frame>,
    raised: Option<u32>,
    stands: u64,
    wants_switch: bool,
    /// Events in this step.
    written: u64,
}

pub(super) struct Machine {
    seed: u64,
    step: u64,
    tasks: Vec<Task>,
    cpus: [Cpu; 2],
    /// Holder of the mutex, and those that wait.
    holder: Option<usize>,
    waiters: Vec<usize>,
    frozen_until: u64,
    pub(super) events: Vec<Event>,
    /// By CPU and step.
    pub(super) did: [Vec<Did>; 2],
    /// Wake-ups of the victim: when its timer was due, or it got the mutex, and when it was
    /// switched to.
    pub(super) wake_ups: Vec<(u64, u64)>,
    /// Steps in which a CPU stood still.
    pub(super) stood: u64,
}

impl Machine {
    /// Runs a machine for so many steps.
    pub(super) fn run(seed: u64, steps: u64) -> Self {
        let mut machine = Self {
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            step: 0,
            tasks: Vec::new(),
            cpus: <[Cpu; 2]>::default(),
            holder: None,
            waiters: Vec::new(),
            frozen_until: 0,
            events: Vec::new(),
            did: [Vec::new(), Vec::new()],
            wake_ups: Vec::new(),
            stood: 0,
        };
        // Idle tasks first; they are always queued.
        for cpu in 0..2 {
            machine.add(0, 140, cpu, 0);
            machine.cpus[cpu].current = cpu;
            machine.tasks[cpu].state = State::Running;
        }
        machine.add(VICTIM, 49, 0, 1_000);
        machine.add(60, 120, 0, 700);
        for tid in 61..61 + i32::try_from(machine.random(4)).unwrap() {
            let prio = [20, 49, 60, 120, 120][machine.random(5) as usize];
            let (cpu, period) = (machine.random(2) as usize, 500 + machine.random(4_000));
            machine.add(tid, prio, cpu, period);
        }
        for _ in 0..steps {
            (0..2).for_each(|cpu| machine.advance(cpu));
            machine.step += 1;
        }
        machine.events.sort_by_key(|event| event.at_ns);
        machine
    }

    fn add(&mut self, tid: i32, prio: i32, cpu: usize, period: u64) {
        let (state, work) = (State::Queued, Vec::new());
        let (timer, due, next, queued_at) = (None, None, 50 + period, 0);
        self.tasks.push(Task { tid, prio, cpu, state, work, timer, due, period, next, queued_at });
        self.cpus[cpu].wants_switch = true;
    }

    /// xorshift64*: the same seed gives the same run.
    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random(of) == 0
    }

    fn write(&mut self, cpu: usize, what: EventData) {
        let on = &mut self.cpus[cpu];
        // CPU 1 writes between those of CPU 0.
        let at_ns = self.step * STEP_NS + on.written * 20 + cpu as u64;
        on.written += 1;
        let is_hard = matches!(on.frames.last().map(|of| of.did), Some(Did::Timer | Did::Irq(_)));
        let is_soft = on.frames.iter().any(|of| matches!(of.did, Did::Softirq(_)));
        let flags = flags::IRQS_OFF
            | if is_hard { flags::HARDIRQ } else { 0 }
            | if is_soft { flags::SOFTIRQ } else { 0 }
            | if on.wants_switch { flags::NEED_RESCHED } else { 0 };
        let (pid, cpu) = (self.tasks[on.current].tid, u32::try_from(cpu).unwrap());
        self.events.push(Event { at_ns, cpu, pid, flags, preempt: 0, what });
    }

    fn advance(&mut self, cpu: usize) {
        self.cpus[cpu].written = 0;
        if self.cpus[cpu].stands == 0 && self.chance(30_000) {
            self.cpus[cpu].stands = 20 + self.random(2_000);
        }
        let did = if self.cpus[cpu].stands > 0 {
            self.cpus[cpu].stands -= 1;
            self.stood += 1;
            Did::Stood
        } else {
            self.interrupt(cpu);
            self.act(cpu)
        };
        self.did[cpu].push(did);
    }

    /// Takes the interrupts that are pending, if it may.
    fn interrupt(&mut self, cpu: usize) {
        let current = self.cpus[cpu].current;
        let is_off = matches!(self.tasks[current].work.last(), Some(Work::InterruptsOff(_)));
        let in_hard = self.cpus[cpu].frames.iter().any(|of| !matches!(of.did, Did::Softirq(_)));
        if is_off || in_hard {
            return;
        }
        let is_due = |of: &Task| of.cpu == cpu && of.timer.is_some_and(|at| at <= self.step);
        let due: Vec<usize> = (0..self.tasks.len()).filter(|&at| is_due(&self.tasks[at])).collect();
        if !due.is_empty() {
            let left = 2 + self.random(8);
            self.cpus[cpu].frames.push(Frame { did: Did::Timer, left });
            self.write(cpu, EventData::VectorEntry { vector: Vector::LocalTimer });
            due.into_iter().for_each(|at| self.expire(cpu, at));
        } else if self.chance(1_500) {
            let irq = 30 + i32::try_from(self.random(3)).unwrap();
            let left = if self.chance(10) { 300 + self.random(700) } else { 1 + self.random(20) };
            self.cpus[cpu].frames.push(Frame { did: Did::Irq(irq), left });
            self.write(cpu, EventData::IrqEntry { irq, name: "dev".into() });
            if self.chance(2) {
                let vec = u32::try_from(self.random(10)).unwrap();
                self.cpus[cpu].raised = Some(vec);
                self.write(cpu, EventData::SoftirqRaise { vec });
            }
        } else if self.cpus[cpu].frames.is_empty()
            && let Some(vec) = self.cpus[cpu].raised.take()
        {
            let left = if self.chance(8) { 200 + self.random(900) } else { 1 + self.random(50) };
            self.cpus[cpu].frames.push(Frame { did: Did::Softirq(vec), left });
            self.write(cpu, EventData::SoftirqEntry { vec });
        }
    }

    fn expire(&mut self, cpu: usize, at: usize) {
        let timer = 0x1000 + at as u64;
        let now_ns = self.step * STEP_NS;
        self.write(cpu, EventData::TimerExpire { timer, function: SLEEPER, now_ns });
        self.tasks[at].timer = None;
        let is_frozen = self.tasks[at].tid == VICTIM && self.step < self.frozen_until;
        if !is_frozen {
            self.wake(cpu, at);
        }
        self.write(cpu, EventData::TimerExpired { timer });
    }

    fn wake(&mut self, by: usize, at: usize) {
        let Task { tid: pid, prio, cpu, .. } = self.tasks[at];
        let target_cpu = u32::try_from(cpu).unwrap();
        self.write(by, EventData::Waking { comm: "t".into(), pid, prio, target_cpu });
        if self.tasks[at].state == State::Blocked {
            self.tasks[at].due = Some(self.step);
        }
        self.tasks[at].state = State::Queued;
        self.tasks[at].queued_at = self.step;
        let current = self.cpus[cpu].current;
        self.cpus[cpu].wants_switch |= prio < self.tasks[current].prio;
        self.write(by, EventData::Wakeup { comm: "t".into(), pid, prio, target_cpu });
    }

    fn act(&mut self, cpu: usize) -> Did {
        if let Some(frame) = self.cpus[cpu].frames.last_mut() {
            let did = frame.did;
            frame.left -= 1;
            if frame.left == 0 {
                let end = match did {
                    Did::Timer => EventData::VectorExit { vector: Vector::LocalTimer },
                    Did::Irq(irq) => EventData::IrqExit { irq },
                    Did::Softirq(vec) => EventData::SoftirqExit { vec },
                    Did::Stood | Did::Ran(_) => unreachable!("no frame"),
                };
                // At the end of the step.
                self.cpus[cpu].written = self.cpus[cpu].written.max(40);
                self.write(cpu, end);
                self.cpus[cpu].frames.pop();
            }
            return did;
        }
        let current = self.cpus[cpu].current;
        let is_held = matches!(
            self.tasks[current].work.last(),
            Some(Work::InterruptsOff(_) | Work::PreemptionOff(_))
        );
        if self.cpus[cpu].wants_switch && !is_held {
            self.switch(cpu, 0);
        }
        let current = self.cpus[cpu].current;
        self.work(cpu, current);
        Did::Ran(self.tasks[current].tid)
    }

    /// Lets the best task of the queue run; the current one leaves with a state.
    fn switch(&mut self, cpu: usize, prev_state: u64) {
        let before = self.cpus[cpu].current;
        if prev_state == 0 {
            self.tasks[before].state = State::Queued;
            self.tasks[before].queued_at = self.step;
        }
        let queued = (0..self.tasks.len())
            .filter(|&at| self.tasks[at].cpu == cpu && self.tasks[at].state == State::Queued);
        // Of those alike the current one goes on, then who came first.
        let next = queued
            .min_by_key(|&at| {
                let of = &self.tasks[at];
                (of.prio, prev_state == 0 && at != before, of.queued_at)
            })
            .expect("the idle task is always queued");
        self.cpus[cpu].wants_switch = false;
        self.tasks[next].state = State::Running;
        if next == before {
            return;
        }
        let (prev, to) = (&self.tasks[before], &self.tasks[next]);
        let what = EventData::Switch {
            prev_comm: "t".into(),
            prev_pid: prev.tid,
            prev_prio: prev.prio,
            prev_state,
            next_comm: "t".into(),
            next_pid: to.tid,
            next_prio: to.prio,
        };
        self.write(cpu, what);
        let ran_ns = self.events.last().expect("just written").at_ns;
        self.cpus[cpu].current = next;
        if let Some(due) = self.tasks[next].due.take()
            && self.tasks[next].tid == VICTIM
        {
            self.wake_ups.push((due * STEP_NS, ran_ns));
        }
    }

    fn work(&mut self, cpu: usize, at: usize) {
        if self.tasks[at].tid == 0 {
            return;
        }
        match self.tasks[at].work.last_mut() {
            Some(Work::Compute(left) | Work::InterruptsOff(left) | Work::PreemptionOff(left)) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.tasks[at].work.pop();
                }
            }
            Some(Work::Lock) => {
                self.tasks[at].work.pop();
                if self.holder.is_some() {
                    self.waiters.push(at);
                    self.tasks[at].state = State::Blocked;
                    self.switch(cpu, 1);
                } else {
                    self.holder = Some(at);
                }
            }
            Some(Work::Unlock) => {
                self.tasks[at].work.pop();
                self.holder = None;
                if !self.waiters.is_empty() {
                    let next = self.waiters.remove(0);
                    self.holder = Some(next);
                    self.wake(cpu, next);
                }
            }
            Some(&mut Work::Sleep(until)) => {
                self.tasks[at].work.pop();
                self.sleep(cpu, at, until);
            }
            None => self.plan(at),
        }
    }

    fn sleep(&mut self, cpu: usize, at: usize, until: u64) {
        let (timer, expires_ns) = (0x1000 + at as u64, until * STEP_NS);
        let start =
            EventData::TimerStart { timer, function: SLEEPER, expires_ns, soft_ns: expires_ns };
        self.write(cpu, start);
        let task = &mut self.tasks[at];
        (task.timer, task.due, task.state) = (Some(until), Some(until), State::Asleep);
        self.switch(cpu, 1);
    }

    /// What a task does next: a cycle of its own, in reverse.
    fn plan(&mut self, at: usize) {
        let period = self.tasks[at].period;
        self.tasks[at].next += period;
        let next = self.tasks[at].next.max(self.step + 5);
        self.tasks[at].next = next;
        let is_victim = self.tasks[at].tid == VICTIM;
        let long = |machine: &mut Self| match (is_victim, machine.random(6)) {
            (true, _) => 5 + machine.random(40),
            (false, 0) => 500 + machine.random(3_000),
            (false, _) => 5 + machine.random(200),
        };
        let mut work = vec![Work::Sleep(next)];
        let length = long(self);
        match self.random(5) {
            0 => work.extend([Work::Unlock, Work::Compute(length), Work::Lock]),
            1 if !is_victim => work.push(Work::InterruptsOff(length)),
            2 if !is_victim => work.push(Work::PreemptionOff(length)),
            _ => work.push(Work::Compute(length)),
        }
        self.tasks[at].work = work;
        // The freezer of another process, and the thaw.
        if !is_victim && self.chance(20) {
            self.frozen_until = self.step + 500 + self.random(3_000);
        }
        let victim = self.tasks.iter().position(|of| of.tid == VICTIM).expect("a victim");
        let is_thawed = self.step >= self.frozen_until
            && self.tasks[victim].state == State::Asleep
            && self.tasks[victim].timer.is_none();
        if is_thawed && !is_victim {
            let cpu = self.tasks[at].cpu;
            self.wake(cpu, victim);
        }
    }
}
