//! The kernel's own measuring tracers, where the kernel has them.

use super::*;

#[test]
fn a_kernel_tracer_measures_or_reports_what_is_missing() {
    let _alone = alone();
    for text in ["timerlat", "timerlat:irq", "osnoise", "hwlat"] {
        match Session::start(&plan(text)) {
            Ok(session) => {
                drop(session.finish(|_, _| {}, |_, _| {}));
                let got = run(&plan(text)).remove(0);
                assert_eq!(got.report.reason, EndReason::Complete, "{text}: {got:?}");
                if text.starts_with("timerlat") {
                    assert!(got.report.scheduled > 300 && got.min() > 0, "{text}: {got:?}");
                }
            }
            Err(error) => {
                // No tracer, no tracefs, no right to it: each is named.
                let error = error.to_string();
                let name = text.split(':').next().expect("a name");
                assert!(error.contains("CPU 0") && error.contains(name), "{error}");
            }
        }
    }
    let mut odd = plan("timerlat");
    odd.period_ns = 50_000;
    let error = Session::start(&odd).expect_err("too short").to_string();
    assert!(error.contains("100us to 1s"), "{error}");
    assert!(workloads::parse("timerlat:user").is_err());
}
