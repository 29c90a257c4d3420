//! Graphics on the processor's own chip, NVIDIA's driver, a graphical login, modules from outside.

use rtproof_host::facts::devices::Card;
use rtproof_host::knob::Place;
use rtproof_host::{Facts, knobs::device as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::profile::Kind;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};
use crate::{machine, text};

pub(super) static ON_CHIP: Check = Check {
    id: "gpu-i915",
    title: "Intel graphics in use on the processor's own chip",
    why: "it shares the last-level cache and the memory with the CPUs, and takes them away when it \
          draws",
    source: "LinuxCNC pull request 4087 (50 to 226 µs with i915, 52 to 95 µs with another card)",
    trade_off: Some("without its driver there is a plain screen or none"),
    when: When::Boot,
    knobs: &[&knobs::GRAPHICS_I915],
    wanted: Wanted::Text("none, or another card"),
    judge: Judge::Ask(judge_on_chip),
    ..Check::NEW
};

fn judge_on_chip(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let cards = &facts.devices.graphics;
    let Some(found) = cards.value() else {
        return draft.blind(cards);
    };
    let show = |card: &Card| match &card.driver {
        Some(driver) => format!("{} {driver}", card.name),
        None => format!("{} without a driver that is named", card.name),
    };
    let shown: Vec<String> = found.iter().map(show).collect();
    let draft = draft.read(cards, |_| match shown.as_slice() {
        [] => "no graphics card".into(),
        shown => shown.join(", "),
    });
    let is_on_chip = |card: &&Card| matches!(card.driver.as_deref(), Some("i915" | "xe"));
    let Some(card) = found.iter().find(is_on_chip) else {
        return draft.good(match shown.as_slice() {
            [] => "no graphics card has a driver".into(),
            shown => text::first_few(shown, 4),
        });
    };
    // Discrete Intel cards have the same drivers.
    let driver = card.driver.as_deref().unwrap_or_default();
    draft
        .remedies([
            Remedy::Command { command: "systemctl set-default multi-user.target".into() },
            Remedy::Boot { parameter: "nomodeset".into() },
        ])
        .doubtful(format!("{} is driven by {driver}: shared, unless it is a card", card.name))
}

pub(super) static NVIDIA: Check = Check {
    id: "gpu-nvidia",
    title: "NVIDIA's own graphics driver",
    why: "it is not written for PREEMPT_RT: it spins and sleeps where a real-time kernel may not",
    source: "github.com/ApolloAuto/apollo issue 14320 (scheduling while atomic); \
             Documentation/admin-guide/tainted-kernels.rst",
    trade_off: Some("no graphics and no computing on that card"),
    impact: Impact::Milliseconds,
    when: When::Boot,
    knobs: &[&knobs::GRAPHICS_NVIDIA],
    wanted: Wanted::Text("not loaded"),
    judge: Judge::Ask(judge_nvidia),
    ..Check::NEW
};

fn judge_nvidia(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let modules = &facts.devices.tainting_modules;
    let draft = draft.read(modules, show_modules);
    let Some(loaded) = modules.value() else {
        return draft.blind(modules);
    };
    let Some((name, letters)) = loaded.iter().find(|(name, _)| name.starts_with("nvidia")) else {
        return draft.good("not loaded");
    };
    let text = "try the workload under load on this kernel, or move it to another machine";
    draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("{name} is loaded (taint {letters})"))
}

pub(super) static MODULES: Check = Check {
    id: "oot-modules",
    title: "modules from outside the kernel's tree, or staging, forced, proprietary",
    why: "nobody has looked for how long these modules turn interrupts or preemption off",
    source: "Documentation/admin-guide/tainted-kernels.rst; Wu, \"Real-time programming with \
             Linux, part 2\" (3 ms by one driver)",
    impact: Impact::Milliseconds,
    knobs: &[&knobs::MODULES],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_modules),
    ..Check::NEW
};

const NAMED_MAX: usize = 6;

fn judge_modules(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let modules = &facts.devices.tainting_modules;
    let draft = draft.read(modules, show_modules);
    let Some(loaded) = modules.value() else {
        return draft.blind(modules);
    };
    if loaded.is_empty() {
        return draft.good("no module taints the kernel");
    }
    let names: Vec<String> =
        loaded.iter().map(|(name, letters)| format!("{name} ({letters})")).collect();
    let text = "measure with and without them: modprobe -r NAME";
    draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(text::first_few(&names, NAMED_MAX))
}

fn show_modules(modules: &std::collections::BTreeMap<String, String>) -> String {
    let names: Vec<String> =
        modules.iter().map(|(name, letters)| format!("{name} {letters}")).collect();
    if names.is_empty() { "no module taints".into() } else { text::first_few(&names, 32) }
}

pub(super) static LOGIN: Check = Check {
    id: "vt-graphics",
    title: "a graphical login",
    why: "the compositor draws by itself, and with it the graphics card uses memory and cache",
    source: "systemd.special(7), graphical.target; LinuxCNC pull request 4087",
    trade_off: Some("no graphical login at this machine"),
    when: When::Boot,
    knobs: &[&knobs::DISPLAY_MANAGERS],
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_login),
    ..Check::NEW
};

fn judge_login(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    // The command line overrides the link.
    let line = &facts.kernel.cmdline;
    let booted = line.value().and_then(|line| line.last("systemd.unit").flatten());
    let target = &facts.devices.default_target;
    let (draft, target) = match (booted, target.value()) {
        (Some(unit), _) => (draft.read(line, |_| format!("systemd.unit={unit}")), unit),
        (None, Some(target)) => {
            (draft.read(&facts.devices.default_target, String::clone), target.as_str())
        }
        (None, None) => return draft.blind(target),
    };
    if !matches!(target, "graphical.target" | "runlevel5.target") {
        return draft.good(format!("boots into {target}"));
    }
    let Some(units) = facts.units.value() else {
        return draft.blind(&facts.units);
    };
    let names = match knobs::DISPLAY_MANAGERS.place {
        Place::Units(names) => names,
        _ => &[],
    };
    let found = units.iter().find(|(name, unit)| names.contains(&name.as_str()) && !unit.masked);
    let draft = draft.saw([Evidence::of(&facts.units, |_| match found {
        Some((name, _)) => name.clone(),
        None => "no display manager".into(),
    })]);
    let Some((name, unit)) = found else {
        return draft.good("graphical.target, and no display manager is installed");
    };
    if intent.profile.kind == Kind::Audio {
        return draft.good(format!("{name}, as a desktop needs it"));
    }
    if let Some(container) = machine::container(facts) {
        return draft
            .read(&facts.virt.container, |_| container.into())
            .unknown(format!("inside a {container} container the host's login is not seen"));
    }
    let state = if unit.running == Some(true) { "runs" } else { "is installed" };
    draft
        .remedies([Remedy::Command { command: "systemctl set-default multi-user.target".into() }])
        .doubtful(format!("boots into graphical.target, and {name} {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;
    use rtproof_host::facts::units::Unit;

    fn cards(drivers: &[&str]) -> Status {
        let mut facts = good();
        let card = |driver: &&str| Card { name: "card0".into(), driver: Some((*driver).into()) };
        let cards = drivers.iter().map(card).collect();
        facts.devices.graphics = Reading::known("/sys/class/drm", cards);
        ON_CHIP.judge(&facts, &intent()).status
    }

    #[test]
    fn cards_by_their_driver() {
        assert_eq!((cards(&[]), cards(&["amdgpu"])), (Good, Good));
        assert_eq!((cards(&["ast", "i915"]), cards(&["xe"])), (Doubtful, Doubtful));
        let mut facts = good();
        facts.devices.graphics = Reading::absent("/sys/class/drm");
        assert_eq!(ON_CHIP.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn modules_are_named() {
        let mut facts = good();
        let modules = [("nvidia_drm", "POE"), ("vboxdrv", "OE")];
        let modules = modules.map(|(name, letters)| (name.to_owned(), letters.to_owned()));
        facts.devices.tainting_modules = Reading::known("/sys/module/*/taint", modules.into());
        let finding = MODULES.judge(&facts, &intent());
        assert_eq!(finding.summary, "nvidia_drm (POE), vboxdrv (OE)");
        assert_eq!((finding.status, NVIDIA.judge(&facts, &intent()).status), (Doubtful, Doubtful));
        facts.devices.tainting_modules = Reading::denied("/sys/module/*/taint", "EACCES");
        assert_eq!(MODULES.judge(&facts, &intent()).status, Unknown);
        assert_eq!(NVIDIA.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_login_needs_a_target_and_a_display_manager() {
        let mut facts = good();
        let path = "/etc/systemd/system/default.target";
        facts.devices.default_target = Reading::known(path, "graphical.target".into());
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Good, "nothing draws");
        let file = "/usr/lib/systemd/system/gdm.service".to_owned();
        let unit = Unit { file, enabled: false, masked: false, running: Some(true) };
        let units = [("gdm.service".to_owned(), unit)];
        facts.units = Reading::known("/usr/lib/systemd/system", units.into());
        let finding = LOGIN.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "boots into graphical.target, and gdm.service runs");
        let audio = Intent { profile: Profile::of(Kind::Audio), ..intent() };
        assert_eq!(LOGIN.judge(&facts, &audio).status, Good);
        set_cmdline(&mut facts, "systemd.unit=multi-user.target");
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "");
        facts.devices.default_target = Reading::absent(path);
        assert_eq!(LOGIN.judge(&facts, &intent()).status, Unknown);
    }
}
