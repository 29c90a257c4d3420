//! Plans of `tune plan --json`, as `tune apply --plan` reads them: none of them writes elsewhere
//! than tuning does.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use rtproof_host::tune::Change;
use rtproof_run::tune::boot;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(plan) = boot::from_text(bytes) else { return };
    for it in &plan.steps {
        let change = &it.step.change;
        assert_eq!(change.may_be_made(), Ok(()));
        let _ = (change.target(), change.after(), change.lines(it.before.as_ref()));
        match change {
            Change::Value { path, .. } | Change::Hotplug { path, .. } => {
                assert!(
                    ["/proc/sys/", "/proc/irq/", "/sys/"].iter().any(|top| path.starts_with(top))
                );
                assert!(!path.contains("/../") && !path.ends_with("/.."), "{path}");
            }
            Change::File { path, mode, .. } => {
                assert!(!path.starts_with("/usr") && !path.contains("/../"), "{path}");
                assert!(mode.is_none_or(|mode| mode <= 0o777));
            }
            _ => {}
        }
    }
});
