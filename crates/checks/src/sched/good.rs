//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::facts::rights::{Group, LimitLine, Rights, Service};
use rtproof_host::{Facts, Reading, knobs::sched as knobs};

use crate::testing::fill_setting;

pub(crate) fn fill(facts: &mut Facts) {
    fill_setting(facts, &knobs::AUTOGROUP, "0");
    fill_setting(facts, &knobs::RR_TIMESLICE, "100");
    fill_setting(facts, &knobs::RCU_KTHREAD_PRIO, "1");
    fill_setting(facts, &knobs::WATCHDOG_STATE, "active");
    let features = ["PLACE_LAG", "NO_TTWU_QUEUE", "RT_PUSH_IPI", "NO_RT_RUNTIME_SHARE"];
    facts.sched.features =
        Reading::known("/sys/kernel/debug/sched/features", features.map(str::to_owned).to_vec());
    facts.sched.ext_server = Reading::absent("/sys/kernel/debug/sched/ext_server");
    facts.rights = rights();
}

/// One group with real-time rights and a member, read by every login.
fn rights() -> Rights {
    let line = |number, item: &str, value: &str| LimitLine {
        who: "@realtime".into(),
        kind: "-".into(),
        item: item.into(),
        value: value.into(),
        file: "/etc/security/limits.d/99-realtime.conf".into(),
        line: number,
    };
    let service = |name: &str| Service { name: name.into(), limits: true };
    let group = Group { name: "realtime".into(), members: Some(1) };
    Rights {
        limit_lines: Reading::known(
            "/etc/security/limits.conf, /etc/security/limits.d",
            vec![line(1, "rtprio", "95"), line(2, "memlock", "unlimited")],
        ),
        services: Reading::known(
            "/etc/pam.d, /usr/lib/pam.d",
            vec![service("login"), service("sshd")],
        ),
        groups: Reading::known("/etc/group", vec![group]),
        initial_user_namespace: Reading::known("/proc/self/ns/user", true),
        seccomp: Reading::known("/proc/self/status", 0),
    }
}
