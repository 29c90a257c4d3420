//! The list as a whole: unique names, texts that are read back, clear refusals.

use super::*;

#[test]
fn names_are_unique_and_described() {
    let names: std::collections::BTreeSet<_> = WORKLOADS.iter().map(|w| w.name()).collect();
    assert_eq!(names.len(), WORKLOADS.len());
    for workload in WORKLOADS {
        let about = workload.describe().about.to_lowercase();
        assert!(about.ends_with('.') && about.contains(" not"), "{about}");
        assert!(!workload.name().contains([':', ' ']), "{}", workload.name());
    }
}

#[test]
fn a_text_is_read_back_as_the_same() {
    for workload in WORKLOADS {
        let Ok(again) = parse(&workload.spec()) else {
            assert!(workload.describe().parameter.is_some_and(|text| text.contains("needed")));
            continue;
        };
        assert_eq!(again.spec(), workload.spec());
        assert_eq!((again.name(), again.quantity()), (workload.name(), workload.quantity()));
    }
}

#[test]
fn what_is_no_workload_is_refused_with_what_there_is() {
    let error = parse("timer-wake").expect_err("no such name").to_string();
    assert!(error.contains("`timer-wake` is no workload") && error.contains("timer-wakeup"));
    let error = parse("timer-wakeup:5").expect_err("no parameter").to_string();
    assert!(error.contains("it takes no parameter"), "{error}");
    assert!(parse("").is_err() && parse(":").is_err() && parse(&"x".repeat(1 << 20)).is_err());
}

#[test]
fn the_template_is_not_in_the_list() {
    let template = template::WORKLOAD;
    assert!(WORKLOADS.iter().all(|workload| workload.name() != template.name()));
    let setting = WorkloadSetting {
        cpu: 0,
        policy: crate::Policy::Other,
        priority: 0,
        period_ns: 1_000_000,
        duration_ns: 1_000_000,
        clock: Clock::Monotonic,
        ledger: Arc::default(),
    };
    assert!(!template.arm(&setting).expect("nothing to refuse").code().is_empty());
}
