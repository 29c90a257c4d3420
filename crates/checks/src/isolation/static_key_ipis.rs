//! Is the network's time-stamp key held, so that nothing patches the kernel's code meanwhile?
//!
//! No file tells whether the key is on. A daemon that holds it is the one answer there is.

use rtproof_host::{Facts, knobs::isolation as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::{Evidence, Finding, Intent, Remedy};

pub(super) static STATIC_KEY_IPIS: Check = Check {
    id: "static-key-ipis",
    title: "network time stamps kept switched on (realtime-entsk)",
    why: "the first socket that asks for time stamps, and the last that closes, patch the kernel's \
          code, which interrupts every CPU",
    source: "net/core/dev.c (netstamp_needed_key), arch/x86/kernel/jump_label.c, \
             arch/x86/kernel/alternative.c (text_poke_bp_batch); tuned, profile realtime, rtentsk",
    trade_off: Some("every packet gets a time stamp"),
    knobs: &[&knobs::ENTSK],
    wanted: Wanted::Text("held by realtime-entsk or tuned's rtentsk"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    if built_with(facts, "JUMP_LABEL") == Some(false) {
        return draft
            .saw([option(facts, "JUMP_LABEL")])
            .not_applicable("this kernel is built without CONFIG_JUMP_LABEL: keys patch no code");
    }
    let units = &facts.units;
    let Some(found) = units.value() else {
        return draft.blind(units);
    };
    let draft = draft.read(units, |_| match found.get(ENTSK_UNIT) {
        Some(unit) => {
            format!("{ENTSK_UNIT}: {}", if unit.enabled { "enabled" } else { "disabled" })
        }
        None => format!("no {ENTSK_UNIT}"),
    });
    let draft = draft.remedies([match found.contains_key(ENTSK_UNIT) {
        true => Remedy::Unit { unit: ENTSK_UNIT.into(), action: "enable --now".into() },
        false => Remedy::Manual {
            text: "run tuned's profile realtime, or install realtime-setup (RHEL) and enable \
                   realtime-entsk.service"
                .into(),
        },
    }]);
    match found.get(ENTSK_UNIT).map(|unit| (unit.running, &unit.file)) {
        Some((Some(true), _)) => draft.good(format!("{ENTSK_UNIT} runs")),
        Some((None, file)) => draft
            .saw([Evidence { path: file.clone(), value: "installed".into() }])
            .unknown(format!("whether {ENTSK_UNIT} runs is unknown")),
        _ => draft.doubtful(
            "nothing is known to hold the key: a program that opens and closes sockets with time \
             stamps (NTP, PTP, ping) interrupts every CPU",
        ),
    }
}

/// The daemon of the realtime-setup package.
const ENTSK_UNIT: &str = "realtime-entsk.service";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::{Reading, facts::units::Unit};

    #[test]
    fn held_not_held_and_no_keys() {
        let mut facts = good();
        set_config(&mut facts, "JUMP_LABEL", Some("y"));
        let with = |running: Option<Option<bool>>| {
            let mut facts = facts.clone();
            let mut units = facts.units.value().cloned().unwrap();
            units.remove(ENTSK_UNIT);
            units.extend(running.map(|running| {
                let file = format!("/usr/lib/systemd/system/{ENTSK_UNIT}");
                (ENTSK_UNIT.into(), Unit { file, enabled: true, masked: false, running })
            }));
            facts.units = Reading::known(facts.units.path.clone(), units);
            let finding = STATIC_KEY_IPIS.judge(&facts, &intent());
            // What is not installed cannot be enabled.
            let enables = finding.remedies.iter().any(|it| matches!(it, Remedy::Unit { .. }));
            assert!(running.is_some() || !enables);
            finding.status
        };
        assert_eq!(with(Some(Some(true))), Good);
        assert_eq!(with(Some(Some(false))), Doubtful);
        assert_eq!(with(Some(None)), Unknown);
        assert_eq!(with(None), Doubtful);
        set_config(&mut facts, "JUMP_LABEL", None);
        assert_eq!(STATIC_KEY_IPIS.judge(&facts, &intent()).status, NotApplicable);
    }
}
