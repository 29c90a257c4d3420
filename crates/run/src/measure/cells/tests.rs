//! Tests of the product.

use super::*;

fn facts(online: &str) -> Facts {
    let folder = tempfile::tempdir().unwrap();
    let mut facts = Facts::read(&rtproof_host::Root::dir(folder.path()).unwrap());
    let list = CpuList::parse(online, None).unwrap();
    facts.cpus.online = rtproof_host::Reading::known("/sys/devices/system/cpu/online", list);
    facts
}

fn block() -> Block {
    Block {
        workloads: vec![WorkloadChoice::Everywhere("timer-wakeup".into())],
        cpus: Some("1-3".into()),
        each: false,
        policies: vec![Policy::Fifo],
        priorities: vec![80],
        periods_ns: vec![1_000_000],
        loads: vec!["idle".into()],
        duration_ns: Some(1_000_000_000),
        samples: None,
        repeat: 1,
    }
}

fn plan(blocks: &[Block]) -> anyhow::Result<MeasurePlan> {
    super::plan(blocks, Vec::new(), Common::default(), &facts("0-3"))
}

#[test]
fn every_combination_is_a_cell_and_repetitions_lie_apart() {
    let two = Block {
        each: true,
        policies: vec![Policy::Other, Policy::Fifo, Policy::Rr],
        priorities: vec![20, 80],
        periods_ns: vec![1_000_000, 500_000],
        loads: vec!["idle".into(), "memory".into()],
        repeat: 2,
        ..block()
    };
    let cells = plan(&[two]).unwrap().cells;
    // 3 CPUs, other + 2 fifo + 2 rr, 2 periods, 2 loads, 2 repetitions.
    assert_eq!(cells.len(), 3 * 5 * 2 * 2 * 2);
    let names: BTreeSet<_> = cells.iter().map(|cell| &cell.name).collect();
    assert_eq!(names.len(), cells.len());
    assert_eq!(cells[0].name, "001-timer-wakeup-cpu1-other-1ms-idle-r1");
    assert_eq!(cells[3].name, "004-timer-wakeup-cpu1-fifo20-1ms-idle-r1");
    assert!(cells[..60].iter().all(|cell| cell.repetition == 1));
    assert_eq!((cells[0].priority, cells[3].priority), (0, 20));
    assert!(cells.iter().zip(1..).all(|(cell, number)| cell.number == number));
}

#[test]
fn workloads_with_cpus_are_one_cell_also_where_each_is_measured_alone() {
    let placed = WorkloadChoice::Placed(vec![
        ("timer-wakeup".into(), CpuList::new([3])),
        ("timer-wakeup".into(), CpuList::new([1, 2])),
    ]);
    let both = Block {
        each: true,
        workloads: vec![WorkloadChoice::Everywhere("timer-wakeup".into()), placed],
        ..block()
    };
    let cells = plan(&[both]).unwrap().cells;
    let cpus: Vec<&[u32]> = cells.iter().map(|cell| cell.cpus.as_slice()).collect();
    assert_eq!(cpus, [&[1][..], &[2], &[3], &[1, 2, 3]]);
    assert_eq!(cells[3].workloads.len(), 3);
    assert!(cells[3].name.contains("mixed-cpu1-3"), "{}", cells[3].name);
}

#[test]
fn conditions_are_outermost_and_take_turns() {
    let condition = |name: &str| Condition { name: name.into(), before: None, after: None };
    let conditions = vec![condition("baseline"), condition("tuned")];
    let plan = super::plan(&[block()], conditions, Common::default(), &facts("0-3")).unwrap();
    let names: Vec<&str> = plan.cells.iter().map(|cell| cell.condition.as_str()).collect();
    assert_eq!(names, ["baseline", "tuned"]);
    assert_eq!(MeasurePlan::takes_ns(plan.cells.iter(), 5), 2_000_000_010);
    // Repeated, each repetition has both, and some begin with the second: all of 60 alike would
    // be a coin of 2^-59.
    let conditions = vec![condition("baseline"), condition("tuned")];
    let repeated = Block { repeat: 60, ..block() };
    let plan = super::plan(&[repeated], conditions, Common::default(), &facts("0-3")).unwrap();
    let names: Vec<&str> = plan.cells.iter().map(|cell| cell.condition.as_str()).collect();
    assert!(names.chunks(2).all(|pair| pair[0] != pair[1]));
    let first = names.iter().step_by(2).filter(|name| **name == "tuned").count();
    assert!((1..60).contains(&first), "{first}");
    assert!(check_conditions(&[condition("a"), condition("a")]).is_err());
    assert!(check_conditions(&[condition("//")]).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |wish: Block| plan(&[wish]).unwrap_err().to_string();
    assert!(error(Block { cpus: Some("2-7".into()), ..block() }).contains("not online"));
    let long = error(Block { periods_ns: vec![2_000_000_000], ..block() });
    assert!(long.contains("2 s is longer than a cell of 1 s"), "{long}");
    let few = error(Block { samples: Some(3), duration_ns: None, ..block() });
    assert!(few.contains("--samples 3 with a period of 1 ms"), "{few}");
    let many = error(Block { each: true, repeat: 10_000, ..block() });
    assert!(many.contains("more than 10000 cells"), "{many}");
}

#[test]
fn one_application_is_measured_once_whatever_the_cpus() {
    let on = |each, workloads| plan(&[Block { each, workloads, ..block() }]);
    for each in [false, true] {
        // The ring is not there; that is said when it is measured.
        let cells =
            on(each, vec![WorkloadChoice::Everywhere("marks:/no/such/ring".into())]).unwrap().cells;
        let [cell] = &cells[..] else { panic!("{cells:?}") };
        assert_eq!((&cell.cpus[..], cell.workloads.len()), (&[1][..], 1));
    }
    let cpus = CpuList::new([2, 3]);
    let placed = WorkloadChoice::Placed(vec![("marks:/no/such/ring".into(), cpus)]);
    let error = on(false, vec![placed]).unwrap_err().to_string();
    assert!(error.contains("@2-3: one application is measured once"), "{error}");
    assert_eq!(one_cpu(&CpuList::new([1, 2, 3]), &[0, 3, 2]), Some(3));
    assert_eq!(one_cpu(&CpuList::new([1, 2, 3]), &[0]), Some(1));
}
