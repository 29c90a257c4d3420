//! What would be set, and what cannot be: decided from the facts, before anything is touched.

use std::{ffi::OsString, path::PathBuf};

use rustix::thread::CapabilitySet;

use rtproof_host::{
    Facts, Root,
    door::usage,
    idle,
    tune::{Change, Machine, NotTunable, Scheduling, Tasks as _, UnitState},
};
use rtproof_judge::{
    Intent, checks,
    plan::{self as judged, LeftOut, PlanLevel, Selection, Step},
};
use rtproof_measure::LiveTasks;
use rtproof_results::{
    launch::{Cannot, LaunchPlan, LaunchSetting, PLAN},
    tune::PlanDocument,
};

use super::place::PlacedProgram;
use super::service::LaunchedService;
use super::setup::ProgramSetup;
use super::{LatencyLimit, LaunchError, LaunchPolicy, Options, place, service, setup};
use crate::intent::IntentOptions;
use crate::tune::boot;

/// Checks that are acted on for CPUs of its own: nothing interrupts the program there.
const INTERRUPT_CHECKS: &[&str] =
    &["irq-affinity", "irqbalance", "kthread-affinity", "workqueue-cpumask"];

/// And for one of a fixed priority: nothing stops it.
const UNSTOPPED: &[&str] = &["rt-throttling", "fair-server"];

#[derive(Debug)]
pub(super) enum LaunchTarget {
    /// A file, as a child of this process.
    Program(PathBuf),
    /// A service, by systemd.
    Service(LaunchedService),
}

/// A plan, and what carrying it out needs.
#[derive(Debug)]
pub struct PlannedLaunch {
    pub plan: LaunchPlan,
    pub(super) what: LaunchTarget,
    pub(super) command: Vec<OsString>,
    pub(super) setup: ProgramSetup,
    pub(super) latency_us: Option<u32>,
    pub(super) facts: Facts,
    pub(super) placed: PlacedProgram,
    /// Whether the program counts on the machine being set, be it so already.
    pub(super) acts: bool,
}

/// Decides what to set.
///
/// # Errors
/// Usage; no such program; CPUs that another has.
pub fn plan(root: &Root, options: &Options) -> Result<PlannedLaunch, LaunchError> {
    let (policy, scheduling) = options.scheduling()?;
    let user = options.user.as_deref().map(|asked| {
        super::user(&Root::live(), asked).map_err(|why| usage(format!("--user {asked}: {why}")))
    });
    let user = user.transpose()?;
    let keeps = options.capabilities.as_deref().map(|asked| {
        super::capabilities(asked).map_err(|why| usage(format!("--caps {asked}: {why}")))
    });
    let keeps = keeps.transpose()?;
    let ids = ids(options, policy)?;
    let mut what = match (&options.unit, options.command.first()) {
        (Some(unit), _) => LaunchTarget::Service(service::find(root, unit)?),
        (None, Some(program)) => LaunchTarget::Program(super::find_program(program)?),
        (None, None) => {
            return Err(usage("which program? rtproof run [options] -- PROGRAM ARGS").into());
        }
    };
    if matches!(what, LaunchTarget::Service(_)) && policy == LaunchPolicy::Deadline {
        return Err(usage("--unit: systemd sets no deadline; fifo, rr or other").into());
    }
    let facts = Facts::read(root);
    let is_root = rustix::process::geteuid().is_root();
    let placed = place::placed(&facts, options, policy, is_root)?;
    let mut cannot = Vec::new();
    let machine = Machine::for_reading(root, &LiveTasks);
    let acts = placed.cpus.is_some() && !ids.is_empty() || placed.group.is_some();
    let is_real_time = policy != LaunchPolicy::Other;
    // What the program may do by a capability needs no limit.
    let own = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |of| of.effective);
    let kept = keeps.unwrap_or(if user.is_some() { CapabilitySet::empty() } else { own });
    let has = |capability| own.intersection(kept).contains(capability);
    let has_cookie = options.core_sched && can_share_no_core(&mut cannot);
    let cpus = match &placed.cpus {
        Some(cpus) => cpus.clone(),
        None => LiveTasks.scheduling(0).ok().and_then(|now| now.cpus).unwrap_or_default(),
    };
    let nodes = setup::nodes(root, &facts, &options.memory, &cpus, &mut cannot)?;
    if let LaunchTarget::Service(service) = &mut what {
        service.has_cpus = placed.cpus.is_some();
    }
    let is_service = matches!(what, LaunchTarget::Service(_));
    let setup = ProgramSetup {
        group: placed.group.clone(),
        has_cookie,
        nodes,
        cpus,
        // What a service may do is not known from here.
        rtprio: (scheduling.priority.map(u64::from))
            .filter(|_| is_service || !has(CapabilitySet::SYS_NICE)),
        locks_memory: is_real_time && (is_service || !has(CapabilitySet::IPC_LOCK)),
        capabilities: keeps.map(|keeps| keeps.bits()),
        scheduling,
        user,
    };
    let mut steps = place::steps(&placed, policy);
    if let LaunchTarget::Service(service) = &what {
        steps.extend(service.steps(&setup));
    }
    let changes = changes(&machine, &facts, options, &placed, steps, ids)?;
    if let Some(conflict) = changes.conflicts.first() {
        let target = &conflict.target;
        return Err(anyhow::anyhow!("{target}: two checks of --tune want different things").into());
    }
    if !changes.steps.is_empty()
        && let Err(error) = Machine::new(root, &LiveTasks)
    {
        cannot.push(Cannot { what: "changes of the machine".into(), why: next(&error) });
    }
    let mut notes = notes(options, &changes, &setup.scheduling);
    notes.extend(setup::numa_note(root, &facts, &setup.cpus, setup.nodes.as_ref()));
    notes.extend(has_cookie.then(|| super::cookie_note(&facts, &setup.cpus)).flatten());
    let latency_us = latency(options, is_real_time, &mut cannot, &mut notes);
    let held = latency_us.into_iter().map(held).collect();
    let mut program = setup.words(&placed.how);
    if matches!(&what, LaunchTarget::Service(service) if !service.has_cpus) {
        // Those of its own file.
        program.retain(|setting| setting.what != "CPUs");
    }
    let plan = LaunchPlan {
        schema: PLAN,
        command: match &what {
            LaunchTarget::Program(_) => {
                options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
            }
            LaunchTarget::Service(service) => vec![service.name.clone()],
        },
        program,
        held,
        machine: changes,
        cannot,
        notes,
    };
    let command = options.command.clone();
    Ok(PlannedLaunch { plan, what, command, setup, latency_us, facts, placed, acts })
}

/// The checks that are acted on.
fn ids(options: &Options, policy: LaunchPolicy) -> anyhow::Result<Vec<String>> {
    let ids: Vec<String> = match options.tune.as_deref() {
        Some("none") => return Ok(Vec::new()),
        Some(list) => list.split(',').map(|id| id.trim().to_owned()).collect(),
        None => {
            // The limit of real-time tasks is what admits deadlines, and what holds them back.
            let is_fixed = matches!(policy, LaunchPolicy::Fifo | LaunchPolicy::Rr);
            let unstopped = if is_fixed { UNSTOPPED } else { &[] };
            INTERRUPT_CHECKS.iter().chain(unstopped).map(|id| (*id).to_owned()).collect()
        }
    };
    let selection = Selection { ids, ..Selection::default() };
    match selection.unknown().next() {
        None => Ok(selection.ids.clone()),
        Some(id) => {
            let why = crate::intent::known(id).err().unwrap_or_default();
            Err(usage(format!("--tune {id}: {why}")))
        }
    }
}

/// The changes of the machine: none without CPUs of its own. What would outlast a reboot is left
/// out: a program's end has to be able to undo all of it, and a power cut is an end, too.
fn changes(
    machine: &Machine<'_>,
    facts: &Facts,
    options: &Options,
    placed: &PlacedProgram,
    steps: Vec<Step>,
    ids: Vec<String>,
) -> anyhow::Result<PlanDocument> {
    let (_, scheduling) = options.scheduling()?;
    let intent = intent(facts, placed, &scheduling, options.budget_ns)?;
    let mut plan = judged::Plan::default();
    if placed.cpus.is_some() && !ids.is_empty() {
        let selection = Selection {
            ids,
            level: PlanLevel::Standard,
            has_own_cpus: true,
            ..Selection::default()
        };
        plan = judged::make(facts, &checks::judge_all(facts, &intent), &intent, &selection);
        // Words of a boot and what a human does are no business of a program's run.
        plan.boot.clear();
        plan.instructions.clear();
    }
    for step in &mut plan.steps {
        if let Change::Unit { want, .. } = &mut step.change
            && want.stops()
        {
            *want = UnitState::Stopped;
        }
    }
    let (of_machine, durable): (Vec<Step>, Vec<Step>) =
        plan.steps.into_iter().partition(|step| !step.change.nature().is_durable);
    plan.steps = steps;
    plan.steps.extend(of_machine);
    for step in durable {
        plan.left_out.push(LeftOut {
            check: step.reason.checks.join(", "),
            why: format!("{}: would outlast a reboot; `tune apply` does it", step.change.title()),
            is_unknown: false,
        });
    }
    Ok(boot::document(machine, facts, &intent, plan))
}

fn intent(
    facts: &Facts,
    placed: &PlacedProgram,
    scheduling: &Scheduling,
    budget_ns: Option<u64>,
) -> anyhow::Result<Intent> {
    let stated = IntentOptions {
        cpus: placed.cpus.as_ref().map(ToString::to_string),
        priority: scheduling.priority,
        period_ns: scheduling.deadline_ns.map(|[_, _, period]| period),
        budget_ns,
        ..IntentOptions::default()
    };
    IntentOptions::default().intent(stated, facts)
}

/// Whether the kernel has core scheduling, which a question shows.
fn can_share_no_core(cannot: &mut Vec<Cannot>) -> bool {
    let refused = super::cookie().err();
    let can = refused.is_none();
    cannot.extend(refused.map(|why| Cannot { what: "core scheduling".into(), why }));
    can
}

/// The limit on idle states that is held.
fn latency(
    options: &Options,
    is_real_time: bool,
    cannot: &mut Vec<Cannot>,
    notes: &mut Vec<String>,
) -> Option<u32> {
    let us = match options.latency {
        LatencyLimit::Off => return None,
        LatencyLimit::Auto if !is_real_time => return None,
        LatencyLimit::Auto => 0,
        LatencyLimit::Us(us) => us,
    };
    // A limit that changes nothing shows whether this process may hold one.
    match idle::hold(&Root::live(), i32::MAX.cast_unsigned()) {
        Ok(_) => Some(us),
        Err(error) if options.latency == LatencyLimit::Auto => {
            notes.push(format!("No limit on idle states is held: {error}."));
            None
        }
        Err(error) => {
            cannot.push(Cannot { what: "limit on idle states".into(), why: error.to_string() });
            None
        }
    }
}

fn held(us: u32) -> LaunchSetting {
    let how = "of all CPUs: deeper idle states, from which a CPU wakes later, are not entered";
    LaunchSetting { what: idle::PATH.into(), value: format!("{us} µs"), how: how.into() }
}

fn notes(options: &Options, changes: &PlanDocument, scheduling: &Scheduling) -> Vec<String> {
    let mut notes = Vec::new();
    if options.cpus.is_none() && options.tune.is_some() && options.tune.as_deref() != Some("none") {
        notes.push("--tune acts on CPUs of the program's own: it needs --cpus.".into());
    }
    let lifts = |step: &rtproof_results::tune::Previewed| {
        step.step.change.target().ends_with("sched_rt_runtime_us")
    };
    if changes.steps.iter().any(lifts) && scheduling.deadline_ns.is_some() {
        notes.push(
            "Without a limit of real-time tasks the kernel admits any deadline, kept or not."
                .into(),
        );
    }
    notes
}

fn next(error: &NotTunable) -> String {
    format!("{error}; or leave --cpus out, or give --best-effort to start it without")
}
