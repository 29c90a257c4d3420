//! Scheduling of tasks, the CPUs of interrupts, and when to look again whether changes are still in
//! force.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify,
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind,
        netlink::{self, SocketAddrNetlink},
        recv, socket_with,
    },
};

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use super::value::ValueChange;
use crate::change::{Change, Compare, IrqName, Scheduling, TaskName};
use crate::facts::tasks::Stat;
use crate::tune::{Tasks, text};
use crate::{CpuList, Root};

/// How one task is scheduled; what is `None` stays.
pub(super) struct TaskChange<'a> {
    pub(super) task: &'a TaskName,
    pub(super) set: &'a Scheduling,
}

impl Kind for TaskChange<'_> {
    fn target(&self) -> String {
        label(self.task)
    }

    fn line(&self) -> String {
        let parts = [
            self.set.policy.clone(),
            self.set.priority.map(|priority| priority.to_string()),
            self.set.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")),
        ];
        format!("{}: {}", self.target(), parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    fn wanted(&self) -> String {
        let set = self.set;
        let policy = set.policy.as_ref().map(|policy| format!("SCHED_{}", policy.to_uppercase()));
        let parts = [
            policy,
            set.priority.map(|priority| format!("priority {priority}")),
            set.nice.map(|nice| format!("nice {nice}")),
            set.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn after(&self) -> String {
        text::scheduling(self.set, self.set)
    }

    fn before(&self, state: &State) -> String {
        of(state).map_or_else(|| text::state(state), |now| text::scheduling(now, self.set))
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.task.comm]
    }

    fn may_be_made(&self) -> Result<(), String> {
        Ok(())
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties::lost_at_reboot(MachinePart::Tasks, Rank::Tasks, Switching::Toggled)
    }

    fn named(&self, machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        Ok(Some(Change::Task { task: find_task(machine.root, self.task)?, set: self.set.clone() }))
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let tasks = machine.tasks()?;
        let found = find_task(machine.root, self.task)?;
        let scheduling = tasks.scheduling(found.tid);
        let scheduling = scheduling.map_err(|error| machine.task_error(self.task, error))?;
        Ok(State::Task { scheduling })
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        of(state).is_some_and(|scheduling| is_done(self.set, scheduling))
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.set_task(self.task, self.set)
    }

    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let sides = FIELDS.map(|field| field_side(field, self.set, states));
        let first = [Owner::Theirs, Owner::Ours].into_iter().find(|side| sides.contains(side));
        first.unwrap_or(Owner::Before)
    }

    fn is_partly_ours(&self, states: StateComparison<'_>) -> bool {
        FIELDS.into_iter().any(|field| field_side(field, self.set, states) == Owner::Ours)
    }

    /// Restores what we set and no other program has changed since.
    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let old = of(states.before)
            .ok_or_else(|| ChangeError::not_expected(states.before, "scheduling of a task"))?;
        let mut back = Scheduling::default();
        if field_side(Field::Policy, self.set, states) == Owner::Ours {
            back = Scheduling { cpus: None, ..old.clone() };
        }
        if field_side(Field::Cpus, self.set, states) == Owner::Ours {
            back.cpus.clone_from(&old.cpus);
        }
        machine.set_task(self.task, &back)
    }
}

/// Part of the scheduling that one call sets.
#[derive(Clone, Copy)]
enum Field {
    Policy,
    Cpus,
}

const FIELDS: [Field; 2] = [Field::Policy, Field::Cpus];

fn label(name: &TaskName) -> String {
    format!("task {} ({})", name.tid, name.comm)
}

/// The task with a name's thread id and start, or the only one called so where the name has no
/// start.
pub(super) fn find_task(root: &Root, name: &TaskName) -> Result<TaskName, ChangeError> {
    if name.start_ticks.is_some() {
        let found = identify_task(root, name.tid);
        return match found.filter(|found| found.start_ticks == name.start_ticks) {
            Some(_) => Ok(name.clone()),
            None => Err(task_gone(name)),
        };
    }
    if let Some(found) = identify_task(root, name.tid).filter(|found| found.comm == name.comm) {
        return Ok(found);
    }
    let mut found = all_tasks(root).into_iter().filter(|task| task.comm == name.comm);
    match (found.next(), found.count()) {
        (Some(task), 0) => Ok(task),
        (None, _) => Err(task_gone(name)),
        (Some(_), others) => Err(ChangeError::Unexpected {
            path: format!("task {}", name.comm),
            found: format!("{} tasks of this name", others + 1),
            expected: "one; name it by its thread id".into(),
        }),
    }
}

pub(super) fn all_tasks(root: &Root) -> Vec<TaskName> {
    let pids = root.list_numbered("/proc", "");
    let mut tasks = Vec::new();
    for &pid in pids.value().into_iter().flatten() {
        let tids = root.list_numbered(&format!("/proc/{pid}/task"), "");
        match tids.value() {
            Some(tids) => tasks.extend(tids.iter().filter_map(|&tid| identify_task(root, tid))),
            None => tasks.extend(identify_task(root, pid)),
        }
    }
    tasks
}

fn identify_task(root: &Root, tid: u32) -> Option<TaskName> {
    let stat = stat(root, tid)?;
    Some(TaskName { tid, start_ticks: Some(stat.start_ticks), comm: stat.comm })
}

/// A thread's folder is under /proc too, though it is not listed there.
fn stat(root: &Root, tid: u32) -> Option<Stat> {
    Stat::parse(root.read_text(&format!("/proc/{tid}/stat")).value()?)
}

fn task_gone(name: &TaskName) -> ChangeError {
    ChangeError::Gone { what: label(name) }
}

impl Machine<'_> {
    fn tasks(&self) -> Result<&dyn Tasks, ChangeError> {
        let none = || ChangeError::NotLive { what: "the scheduling of tasks".into() };
        self.tasks.ok_or_else(none)
    }

    fn task_error(&self, name: &TaskName, error: io::Error) -> ChangeError {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::SRCH) => task_gone(name),
            _ => self.refusal(&label(name), error),
        }
    }

    /// Sets policy and CPUs, one call for each, in the order that the kernel needs: a deadline is
    /// admitted only to a task that may run everywhere.
    pub(super) fn set_task(&self, name: &TaskName, to: &Scheduling) -> Result<(), ChangeError> {
        let tasks = self.tasks()?;
        let tid = find_task(self.root, name)?.tid;
        let cpus = Scheduling { cpus: to.cpus.clone(), ..Scheduling::default() };
        let policy = Scheduling { cpus: None, ..to.clone() };
        let mut parts = [policy, cpus];
        if to.policy.as_deref() == Some("deadline") {
            parts.reverse();
        }
        if to.cpus.is_some() && stat(self.root, tid).is_some_and(|stat| stat.bound) {
            return Err(ChangeError::Refused {
                path: format!("task {tid} ({})", name.comm),
                why: "a thread that the kernel keeps on its CPUs (PF_NO_SETAFFINITY); leave it \
                      out"
                .into(),
            });
        }
        for part in parts.iter().filter(|part| **part != Scheduling::default()) {
            let set = self.gate.step().and_then(|()| tasks.set(tid, part));
            set.map_err(|error| self.task_error(name, error))?;
        }
        Ok(())
    }
}

/// Whether every field of the change is in force.
fn is_done(set: &Scheduling, current: &Scheduling) -> bool {
    fn holds<T: PartialEq>(wanted: Option<&T>, current: Option<&T>) -> bool {
        wanted.is_none() || wanted == current
    }
    holds(set.policy.as_ref(), current.policy.as_ref())
        && holds(set.priority.as_ref(), current.priority.as_ref())
        && holds(set.nice.as_ref(), current.nice.as_ref())
        && holds(set.deadline_ns.as_ref(), current.deadline_ns.as_ref())
        && holds(set.reset_on_fork.as_ref(), current.reset_on_fork.as_ref())
        && holds(set.cpus.as_ref(), current.cpus.as_ref())
}

const fn of(state: &State) -> Option<&Scheduling> {
    match state {
        State::Task { scheduling } => Some(scheduling),
        _ => None,
    }
}

fn field_side(field: Field, set: &Scheduling, states: StateComparison<'_>) -> Owner {
    let cut = |whole: &Scheduling| match field {
        Field::Policy => Scheduling { cpus: None, ..whole.clone() },
        Field::Cpus => Scheduling { cpus: whole.cpus.clone(), ..Scheduling::default() },
    };
    let (Some(before), Some(current)) = (of(states.before), of(states.current)) else {
        return Owner::Theirs;
    };
    let (set, before, current) = (cut(set), cut(before), cut(current));
    if set == Scheduling::default() || current == before {
        return Owner::Before;
    }
    let is_ours = match states.after.and_then(of) {
        Some(after) => current == cut(after),
        None => is_done(&set, &current),
    };
    Owner::ours_if(is_ours)
}

/// The CPUs of one interrupt. It is named by its handlers, its number in its controller and the
/// controller: the number that Linux gives it is only a hint.
pub(super) struct IrqChange<'a> {
    pub(super) irq: &'a IrqName,
    pub(super) cpus: &'a CpuList,
}

impl Kind for IrqChange<'_> {
    fn target(&self) -> String {
        irq_file(self.irq.number)
    }

    fn line(&self) -> String {
        format!("interrupt {} ({}) on CPUs {}", self.irq.number, self.irq.actions, self.cpus)
    }

    fn title(&self) -> String {
        match self.irq.actions.as_str() {
            "" => format!("IRQ {}", self.irq.number),
            actions => format!("IRQ {} ({actions})", self.irq.number),
        }
    }

    fn wanted(&self) -> String {
        self.cpus.to_string()
    }

    fn after(&self) -> String {
        self.cpus.phrase()
    }

    fn before(&self, state: &State) -> String {
        let State::Value { bytes, .. } = state else { return text::state(state) };
        let cpus = CpuList::parse(&bytes.text(), None);
        cpus.map_or_else(|_| text::state(state), |cpus| cpus.phrase())
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.irq.actions, &self.irq.hwirq]
    }

    fn may_be_made(&self) -> Result<(), String> {
        Ok(())
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties::lost_at_reboot(MachinePart::Irqs, Rank::Irqs, Switching::Toggled)
    }

    /// One that the kernel keeps where it is (managed interrupts, kernels before 6.10).
    fn may_be_refused(&self) -> bool {
        true
    }

    fn named(&self, machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        let root = machine.root;
        let irq = identify_irq(root, find_irq(root, self.irq)?);
        Ok(Some(Change::Irq { irq, cpus: self.cpus.clone() }))
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.value_state(&irq_file(find_irq(machine.root, self.irq)?), &[])
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        let State::Value { bytes, .. } = state else { return false };
        cpu_list("", &self.cpus.to_string()).holds(bytes)
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        let number = find_irq(machine.root, self.irq)?;
        machine.write_value(&irq_file(number), &self.cpus.to_string())
    }

    /// Where the interrupt is really delivered, when that is not yet where it is wanted.
    fn pending(&self, machine: &Machine<'_>) -> Option<String> {
        let number = find_irq(machine.root, self.irq).ok()?;
        let effective = format!("/proc/irq/{number}/effective_affinity_list");
        let effective = machine.root.cpu_list(&effective);
        let effective = effective.value().filter(|effective| !effective.is_empty())?;
        (!effective.difference(self.cpus).is_empty()).then(|| {
            format!("pending: still delivered to CPU {effective} until the next interrupt")
        })
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        machine.value_side(cpu_list("", &self.cpus.to_string()), states)
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let path = irq_file(find_irq(machine.root, self.irq)?);
        machine.restore_value(cpu_list(&path, ""), states)
    }
}

/// CPUs as a value.
const fn cpu_list<'a>(path: &'a str, cpus: &'a str) -> ValueChange<'a> {
    ValueChange::of(path, cpus, Compare::CpuList)
}

/// The interrupt's number now.
pub(super) fn find_irq(root: &Root, name: &IrqName) -> Result<u32, ChangeError> {
    if name.actions.is_empty() && name.hwirq.is_empty() && name.chip.is_empty() {
        let there = root.exists(&format!("/proc/irq/{}", name.number));
        return if there { Ok(name.number) } else { Err(irq_gone(name)) };
    }
    let is_same = |number: u32| {
        let there = identify_irq(root, number);
        // What a name leaves open (a plan knows no controller) fits any.
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        fits(&name.actions, &there.actions)
            && fits(&name.hwirq, &there.hwirq)
            && fits(&name.chip, &there.chip)
    };
    if is_same(name.number) {
        return Ok(name.number);
    }
    let numbers = root.list_numbered("/proc/irq", "");
    let mut found = numbers.value().into_iter().flatten().copied().filter(|&n| is_same(n));
    match (found.next(), found.count()) {
        (Some(number), 0) => Ok(number),
        (None, _) => Err(irq_gone(name)),
        (Some(_), others) => Err(ChangeError::Unexpected {
            path: format!("interrupt of {}", name.actions),
            found: format!("{} interrupts that look alike", others + 1),
            expected: "one".into(),
        }),
    }
}

/// What an interrupt with this number is.
fn identify_irq(root: &Root, number: u32) -> IrqName {
    let text = |file: &str| {
        let file = root.trimmed(&format!("/sys/kernel/irq/{number}/{file}"));
        file.value().cloned().unwrap_or_default()
    };
    let mut actions = text("actions");
    if actions.is_empty() {
        // Kernels without /sys/kernel/irq have a folder for each handler.
        let folder = format!("/proc/irq/{number}");
        let names = root.list_dir(&folder);
        let is_folder =
            |name: &&String| root.list_dir(&format!("{folder}/{name}")).value().is_some();
        let names: Vec<String> =
            names.value().into_iter().flatten().filter(is_folder).cloned().collect();
        actions = names.join(",");
    }
    IrqName { number, actions, hwirq: text("hwirq"), chip: text("chip_name") }
}

/// All interrupts whose CPUs can be read.
pub(super) fn all_irqs(root: &Root) -> Vec<(IrqName, CpuList)> {
    let numbers = root.list_numbered("/proc/irq", "");
    let one = |&number: &u32| {
        let cpus = root.cpu_list(&format!("/proc/irq/{number}/smp_affinity_list"));
        Some((identify_irq(root, number), cpus.value()?.clone()))
    };
    numbers.value().into_iter().flatten().filter_map(one).collect()
}

fn irq_gone(name: &IrqName) -> ChangeError {
    ChangeError::Gone { what: format!("interrupt {} ({})", name.number, name.actions) }
}

/// The file of an interrupt's CPUs.
pub(super) fn irq_file(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

// When to look again whether what was applied still is: files of ours are watched, the kernel
// reports devices and CPUs that come and go, and the rest is read now and then: values of
// /proc and /sys send no message when they change.

/// Devices come in crowds: as long as more of them come, up to [`CROWD_MAX`], looking waits.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Longest wait for a crowd to end.
const CROWD_MAX: Duration = Duration::from_secs(2);

/// Most folders watched: each takes kernel memory.
const FOLDERS_MAX: usize = 256;

/// Group of the kernel's own messages; group 2 is udev's.
const KERNEL_GROUP: u32 = 1;

/// Why to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    Files,
    /// A device or a CPU came, went or changed.
    Devices,
    /// The time was over.
    Timer,
    /// The call that `wait` was given to watch.
    Called,
}

/// Waits for changes of files and devices, so that changes are repeated in time.
#[derive(Debug)]
pub struct Wake {
    files: Option<OwnedFd>,
    devices: Option<OwnedFd>,
    watched: BTreeSet<String>,
}

impl Wake {
    /// Begins to listen. What the machine does not offer is left to the timer: a folder has no
    /// devices, a container hears of none.
    pub fn new(root: &Root) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Self {
            files: inotify::init(flags).ok(),
            devices: root.is_live().then(|| listen().ok()).flatten(),
            watched: BTreeSet::new(),
        }
    }

    /// Watches the folders of these files as well. Folders, because a file is replaced as a rule.
    pub fn watch<'a>(&mut self, root: &Root, files: impl IntoIterator<Item = &'a str>) {
        let Some(inotify) = &self.files else { return };
        let flags = inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::ATTRIB
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE
            | inotify::WatchFlags::ONLYDIR;
        for file in files {
            let Some((folder, _)) = file.rsplit_once('/') else { continue };
            if self.watched.len() >= FOLDERS_MAX || self.watched.contains(folder) {
                continue;
            }
            // One that is not there yet is tried again.
            let place = root.place(folder);
            if place.is_ok_and(|place| inotify::add_watch(inotify, place, flags).is_ok()) {
                self.watched.insert(folder.to_owned());
            }
        }
    }

    /// Waits until there is a reason to look again, at most for a time. `call` is a descriptor that
    /// becomes readable when the wait has to end.
    ///
    /// # Errors
    /// poll(2) fails; not for a signal, which is [`WakeReason::Called`].
    pub fn wait(&self, at_most: Duration, call: Option<&dyn AsFd>) -> io::Result<WakeReason> {
        let woken = self.poll(at_most, call)?;
        if !matches!(woken, WakeReason::Files | WakeReason::Devices) {
            return Ok(woken);
        }
        let end = Instant::now() + CROWD_MAX;
        while Instant::now() < end {
            self.drain();
            match self.poll(SETTLE_TIME, call)? {
                WakeReason::Timer => break,
                WakeReason::Called => return Ok(WakeReason::Called),
                WakeReason::Files | WakeReason::Devices => {}
            }
        }
        Ok(woken)
    }

    fn poll(&self, at_most: Duration, call: Option<&dyn AsFd>) -> io::Result<WakeReason> {
        let sources = [
            (call.map(AsFd::as_fd), WakeReason::Called),
            (self.files.as_ref().map(AsFd::as_fd), WakeReason::Files),
            (self.devices.as_ref().map(AsFd::as_fd), WakeReason::Devices),
        ];
        let sources: Vec<_> =
            sources.into_iter().filter_map(|(fd, woken)| Some((fd?, woken))).collect();
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().map(|(fd, _)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(WakeReason::Timer),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(WakeReason::Called),
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |fd: &&(usize, &PollFd<'_>)| !fd.1.revents().is_empty();
        let first = fds.iter().enumerate().find(|fd| is_ready(&fd));
        Ok(first.map_or(WakeReason::Timer, |(at, _)| sources[at].1))
    }

    /// The content does not matter.
    fn drain(&self) {
        let mut buffer = [0; 8192];
        let mut left = 4096;
        while let Some(files) = self.files.as_ref().filter(|_| left > 0) {
            left -= 1;
            if !matches!(rustix::io::read(files, &mut buffer), Ok(1..)) {
                break;
            }
        }
        while let Some(devices) = self.devices.as_ref().filter(|_| left > 0) {
            left -= 1;
            // ENOBUFS: some were lost; more may be there.
            match recv(devices, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) | Err(Errno::NOBUFS) => {}
                _ => break,
            }
        }
    }
}

/// A socket on which the kernel reports devices (lib/kobject_uevent.c).
fn listen() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::RAW;
    let protocol = Some(netlink::KOBJECT_UEVENT);
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;
    use crate::testing::Tree;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_file_that_changes_or_is_replaced_wakes() {
        let tree = Tree::new(&[("etc/a", "1"), ("etc/b", "1")]);
        let root = tree.root();
        let mut wake = Wake::new(&root);
        wake.watch(&root, ["/etc/a", "/etc/b", "/not/there"]);
        assert_eq!(wake.watched.len(), 1);
        assert_eq!(wake.wait(Duration::ZERO, None).unwrap(), WakeReason::Timer);
        tree.write("etc/a", "2");
        assert_eq!(wake.wait(LONG, None).unwrap(), WakeReason::Files);
        assert_eq!(wake.wait(Duration::ZERO, None).unwrap(), WakeReason::Timer, "drained");
        std::fs::rename(tree.path().join("etc/a"), tree.path().join("etc/b")).unwrap();
        assert_eq!(wake.wait(LONG, None).unwrap(), WakeReason::Files);
        // A folder that has come since.
        tree.write("not/there", "");
        wake.watch(&root, ["/not/there"]);
        tree.write("not/there", "x");
        assert_eq!(wake.wait(LONG, None).unwrap(), WakeReason::Files);
    }

    #[test]
    fn a_call_ends_the_wait() {
        let tree = Tree::new(&[]);
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(b"x").unwrap();
        let wake = Wake::new(&tree.root());
        assert_eq!(wake.wait(LONG, Some(&ours)).unwrap(), WakeReason::Called);
    }

    #[test]
    fn a_folder_has_no_devices_and_the_machine_may() {
        assert!(Wake::new(&Tree::new(&[]).root()).devices.is_none());
        // Whether the kernel lets us listen or not, the timer is left.
        let wake = Wake::new(&Root::live());
        wake.drain();
        assert!(wake.wait(Duration::ZERO, None).is_ok());
    }
}
