//! Settings without a right value: the finding tells what they are, and what that means.

use rtproof_host::{Facts, Knob, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine;
use crate::{Finding, Impact};

const NO_BEST: &str = "known: no value is best for all";

pub(super) static TCP: Check = Check {
    id: "tcp-knobs",
    title: "time stamps and Fast Open of TCP",
    why: "each time stamp costs a little for each segment, and Fast Open saves a round trip: which \
          counts depends on the application",
    source: "Documentation/networking/ip-sysctl.rst, tcp_timestamps and tcp_fastopen; tuned, \
             profile network-latency (tcp_fastopen 3)",
    trade_off: Some("without time stamps a wrapped sequence number is not noticed on fast links"),
    impact: Impact::Information,
    knobs: &[&knobs::TCP_TIMESTAMPS, &knobs::TCP_FASTOPEN],
    wanted: Wanted::Of(|_| NO_BEST.into()),
    judge: Judge::Ask(|draft, facts, _| {
        tell(draft, facts, &[&knobs::TCP_TIMESTAMPS, &knobs::TCP_FASTOPEN], "INET", "IPv4")
    }),
    ..Check::NEW
};

pub(super) static IPV6: Check = Check {
    id: "ipv6",
    title: "whether IPv6 is in use",
    why: "router advertisements and duplicate address detection run timers, also where nobody uses \
          IPv6",
    source: "Documentation/networking/ip-sysctl.rst, disable_ipv6; \
             Documentation/networking/ipv6.rst",
    trade_off: Some("without IPv6 what needs it fails: many daemons listen on [::1]"),
    impact: Impact::Information,
    knobs: &[&knobs::IPV6],
    wanted: Wanted::Of(|_| NO_BEST.into()),
    judge: Judge::Ask(|draft, facts, _| tell(draft, facts, &[&knobs::IPV6], "IPV6", "IPv6")),
    ..Check::NEW
};

fn tell(mut draft: Draft, facts: &Facts, knobs: &[&Knob], option: &str, protocol: &str) -> Finding {
    let mut told = Vec::new();
    for knob in knobs {
        let setting = facts.settings.get(knob.id);
        let Some(value) = setting.and_then(|setting| setting.values.first()) else {
            let pattern = knob.patterns().next().unwrap_or(knob.id);
            let not_asked = rtproof_host::Reading::<String>::denied(pattern, "not asked");
            return draft.blind(&not_asked);
        };
        let reading = &value.reading;
        draft = draft.read(reading, String::clone);
        let Some(text) = reading.value() else {
            if reading.is_absent() && machine::built_with(facts, option) == Some(false) {
                let why = format!("this kernel is built without {protocol}");
                return draft.saw([machine::option(facts, option)]).not_applicable(why);
            }
            let lacking = setting.and_then(|setting| setting.lacking.as_ref());
            return match lacking.filter(|lacking| reading.is_absent() && lacking.value().is_some())
            {
                Some(lacking) => draft
                    .read(lacking, String::clone)
                    .not_applicable(format!("{protocol} is not there: off, or not loaded")),
                None => draft.blind(reading),
            };
        };
        let name = reading.path.rsplit('/').next().unwrap_or_default();
        told.push(format!("{name} {text}"));
    }
    draft.good(told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    #[test]
    fn any_value_is_told() {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::IPV6, "0");
        let finding = IPV6.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "disable_ipv6 0"));
    }

    #[test]
    fn what_is_not_there_or_refused() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::IPV6, Reading::absent(""));
        assert_eq!(IPV6.judge(&facts, &intent()).status, NotApplicable, "not in the configuration");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(IPV6.judge(&facts, &intent()).status, Unknown);
        let lacking = Reading::known("/proc/sys/net", "holds no ipv6".into());
        facts.settings.get_mut("ipv6").unwrap().lacking = Some(lacking);
        assert_eq!(IPV6.judge(&facts, &intent()).status, NotApplicable);
        set_setting(&mut facts, &knobs::IPV6, Reading::denied("", "EACCES"));
        assert_eq!(IPV6.judge(&facts, &intent()).status, Unknown);
    }
}
