//! CPUs taken out of operation: what the kernel moves away with them, saved before, and put back
//! once they are there again. It forgets where things were.

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use super::task;
use super::value::ValueChange;
use crate::change::{Bytes, Compare, IrqName, Scheduling, TaskName};
use crate::{CpuList, Root, change};

/// A switch of CPUs, and what is written to it.
pub(super) struct Hotplug<'a> {
    pub(super) path: &'a str,
    pub(super) value: &'a str,
}

impl Hotplug<'_> {
    const fn as_value(&self) -> ValueChange<'_> {
        ValueChange::of(self.path, self.value, Compare::Text)
    }
}

impl Kind for Hotplug<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path, self.value]
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_value(self.path)
    }

    fn nature(&self) -> ChangeProperties {
        let comes = matches!(self.value, "1" | "on");
        let rank = if comes { Rank::CpusCome } else { Rank::CpusGo };
        ChangeProperties::lost_at_reboot(MachinePart::Kernel, rank, Switching::Once)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let bytes = machine.bytes(self.path)?;
        let going = leaving_cpus(machine.root, self.path, self.value);
        if going.is_empty() {
            let (tasks, irqs, groups) = (Vec::new(), Vec::new(), Vec::new());
            return Ok(State::Hotplug { bytes, tasks, irqs, groups });
        }
        let mut tasks = Vec::new();
        if let Some(calls) = machine.tasks {
            for task in task::all_tasks(machine.root) {
                let cpus = calls.scheduling(task.tid).ok().and_then(|now| now.cpus);
                tasks.extend(cpus.map(|cpus| (task, cpus)));
            }
        }
        // An interrupt of one CPU alone, its timer, has no handler that anyone could move.
        let mut irqs = task::all_irqs(machine.root);
        irqs.retain(|(name, _)| !name.actions.is_empty());
        Ok(State::Hotplug { bytes, tasks, irqs, groups: groups(machine.root, &going)? })
    }

    fn state_after(&self, machine: &Machine<'_>, before: &State) -> Result<State, ChangeError> {
        let Moved { tasks, irqs, groups } = machine.hotplug_now(before)?;
        Ok(State::Hotplug { bytes: machine.bytes(self.path)?, tasks, irqs, groups })
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Hotplug { bytes, .. } if self.as_value().holds(bytes))
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.write_value(self.path, self.value)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        match (states.before, states.current) {
            (State::Hotplug { .. }, State::Hotplug { .. }) => {
                machine.value_side(self.as_value(), states)
            }
            _ => states.side(|state| self.is_done(machine, state)),
        }
    }

    /// Sets the switch back, then restores what it moved and no other program has moved since.
    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let value = self.as_value();
        let before = states.before;
        let left = states.after.unwrap_or(states.current);
        let (
            State::Hotplug { bytes, tasks, irqs, groups },
            State::Hotplug { tasks: tasks_left, irqs: irqs_left, groups: groups_left, .. },
        ) = (before, left)
        else {
            return Err(ChangeError::not_expected(before, "a switch of CPUs"));
        };
        let now = machine.hotplug_now(before)?;
        if !value.is_same(&machine.bytes(value.path)?, bytes) {
            machine.write_back(value, bytes)?;
        }
        // Groups first: a task may use no CPU that its group has not.
        let cpus = |path| ValueChange::of(path, "", Compare::CpuList);
        for (path, old) in groups.iter().filter(|(path, _)| !is_members(path)) {
            let is_ours =
                get(groups_left, path).is_none_or(|left| get(&now.groups, path) == Some(left));
            if is_ours && !machine.bytes(path).is_ok_and(|now| cpus(path).is_same(&now, old)) {
                machine.put_back(machine.write_back(cpus(path), old))?;
            }
        }
        for (path, members) in groups.iter().filter(|(path, _)| is_members(path)) {
            machine.move_back(path, members, tasks)?;
        }
        for (name, old) in tasks {
            let is_ours =
                get(tasks_left, name).is_none_or(|left| get(&now.tasks, name) == Some(left));
            let calls = machine.tasks.filter(|_| is_ours);
            let is_moved = calls.is_some_and(|calls| {
                let now = calls.scheduling(name.tid).ok().and_then(|now| now.cpus);
                now.is_some_and(|now| now != *old) && task::find_task(machine.root, name).is_ok()
            });
            if is_moved {
                let cpus = Some(old.clone());
                machine.put_back(
                    machine.set_task(name, &Scheduling { cpus, ..Scheduling::default() }),
                )?;
            }
        }
        for (name, old) in irqs {
            let is_ours =
                get(irqs_left, name).is_none_or(|left| get(&now.irqs, name) == Some(left));
            let Ok(number) = task::find_irq(machine.root, name) else { continue };
            let path = task::irq_file(number);
            let there = machine.root.cpu_list(&path);
            if is_ours && there.value().is_some_and(|there| there != old) {
                machine.put_back(machine.write_value(&path, &old.to_string()))?;
            }
        }
        Ok(())
    }
}

/// Where groups of CPUs are mounted: version 2, version 1, a second hierarchy of version 2.
pub(crate) const CPU_GROUPS: &[(&str, &[&str])] = &[
    ("/sys/fs/cgroup", &["cpuset.cpus"]),
    ("/sys/fs/cgroup/cpuset", &["cpuset.cpus", "cpus"]),
    ("/sys/fs/cgroup/unified", &["cpuset.cpus"]),
    ("/dev/cpuset", &["cpuset.cpus", "cpus"]),
];

/// Groups that are looked at.
const GROUPS_MAX: usize = 20_000;

/// The CPUs that go when a value is written to a switch.
fn leaving_cpus(root: &Root, path: &str, value: &str) -> CpuList {
    let cpu = path.strip_prefix("/sys/devices/system/cpu/cpu");
    if let Some(cpu) = cpu.and_then(|rest| rest.strip_suffix("/online")) {
        return CpuList::new(cpu.parse().ok().filter(|_| value.trim() == "0"));
    }
    if !path.ends_with("/smt/control") || !matches!(value.trim(), "off" | "forceoff") {
        return CpuList::default();
    }
    let online = root.cpu_list("/sys/devices/system/cpu/online");
    let is_second = |cpu: &u32| {
        let siblings = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = root.cpu_list(&siblings);
        siblings.value().is_some_and(|siblings| siblings.iter().next() != Some(*cpu))
    };
    CpuList::new(online.value().into_iter().flat_map(CpuList::iter).filter(is_second))
}

impl Machine<'_> {
    /// Moves tasks back into a group whose last CPU was gone: version 1 moves them to the group
    /// above.
    fn move_back(
        &self,
        path: &str,
        members: &Bytes,
        tasks: &[(TaskName, CpuList)],
    ) -> Result<(), ChangeError> {
        let Ok(now) = self.bytes(path) else { return Ok(()) };
        let (now, members) = (now.text().into_owned(), members.text().into_owned());
        let is_away = |tid: &&str| !now.lines().any(|line| line == *tid);
        for tid in members.lines().filter(is_away) {
            let is_same = tasks.iter().any(|(name, _)| {
                name.tid.to_string() == tid && task::find_task(self.root, name).is_ok()
            });
            if is_same {
                self.put_back(self.write_value(path, tid))?;
            }
        }
        Ok(())
    }

    /// One that has ended or is not to be moved any more does not keep the others from their place.
    fn put_back(&self, put: Result<(), ChangeError>) -> Result<(), ChangeError> {
        match put {
            Err(
                ChangeError::Gone { .. }
                | ChangeError::Missing { .. }
                | ChangeError::Refused { .. },
            ) => Ok(()),
            other => other,
        }
    }

    /// How what was saved is now.
    fn hotplug_now(&self, saved: &State) -> Result<Moved, ChangeError> {
        let State::Hotplug { tasks, irqs, groups, .. } = saved else {
            return Err(ChangeError::not_expected(saved, "a switch of CPUs"));
        };
        let affinity = |name: &TaskName| {
            task::find_task(self.root, name).ok()?;
            self.tasks?.scheduling(name.tid).ok()?.cpus
        };
        let delivery = |name: &IrqName| {
            let number = task::find_irq(self.root, name).ok()?;
            self.root.cpu_list(&task::irq_file(number)).value().cloned()
        };
        let tasks = tasks.iter().filter_map(|(name, _)| Some((name.clone(), affinity(name)?)));
        let irqs = irqs.iter().filter_map(|(name, _)| Some((name.clone(), delivery(name)?)));
        let groups =
            groups.iter().filter_map(|(path, _)| Some((path.clone(), self.bytes(path).ok()?)));
        Ok(Moved { tasks: tasks.collect(), irqs: irqs.collect(), groups: groups.collect() })
    }
}

/// Where what the kernel moves is.
struct Moved {
    tasks: Vec<(TaskName, CpuList)>,
    irqs: Vec<(IrqName, CpuList)>,
    groups: Vec<(String, Bytes)>,
}

fn get<'s, N: PartialEq, V>(saved: &'s [(N, V)], name: &N) -> Option<&'s V> {
    saved.iter().find(|(saved, _)| saved == name).map(|(_, value)| value)
}

/// Whether a file of a group lists its tasks.
fn is_members(path: &str) -> bool {
    path.ends_with("/tasks")
}

/// CPUs of every group that names any, outer groups first; and the tasks of those of version 1 that
/// would be left without a CPU.
fn groups(root: &Root, going: &CpuList) -> Result<Vec<(String, Bytes)>, ChangeError> {
    let mut found: Vec<(String, Bytes)> = Vec::new();
    let mut seen = 0;
    for (top, files) in CPU_GROUPS {
        let mut todo = vec![(*top).to_owned()];
        while let Some(folder) = todo.pop() {
            seen += 1;
            if seen > GROUPS_MAX {
                return Ok(found);
            }
            let Some(names) = ChangeError::present(root.list_dir(&folder))? else { continue };
            let Some(file) = files.iter().find(|file| names.iter().any(|name| name == *file))
            else {
                // The root group of version 2 has no such file, and its children may.
                if folder == *top && names.iter().any(|name| name == "cgroup.controllers") {
                    todo.extend(below(root, &folder, &names));
                }
                continue;
            };
            let path = format!("{folder}/{file}");
            let bytes = ChangeError::present(root.read_bytes(&path))?.unwrap_or_default();
            let is_own = bytes.iter().any(u8::is_ascii_digit);
            if is_own && folder != *top && !found.iter().any(|(known, _)| *known == path) {
                let text = String::from_utf8_lossy(&bytes);
                let stays = CpuList::parse(&text, None).map(|cpus| cpus.difference(going));
                let members = root.read_bytes(&format!("{folder}/tasks"));
                found.push((path, Bytes(bytes)));
                if let (Ok(true), Some(members)) =
                    (stays.map(|stays| stays.is_empty()), members.value())
                {
                    found.push((format!("{folder}/tasks"), Bytes(members.clone())));
                }
            }
            todo.extend(below(root, &folder, &names));
        }
    }
    Ok(found)
}

/// Folders in a folder, found by what every group has.
fn below(root: &Root, folder: &str, names: &[String]) -> Vec<String> {
    let path = |name: &String| format!("{folder}/{name}");
    let is_group = |path: &String| {
        root.exists(&format!("{path}/cgroup.procs")) || root.exists(&format!("{path}/tasks"))
    };
    names.iter().map(path).filter(is_group).collect()
}
