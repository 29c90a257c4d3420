//! What the good machine of the tests has, as far as the rows of this section do not say it.

use std::collections::BTreeMap;

use rtproof_host::facts::devices::{Console, Devices};
use rtproof_host::facts::net::{Channels, Coalesce, Eee, Interface, Net, Offloads, Pause};
use rtproof_host::facts::settings::Setting;
use rtproof_host::{Facts, Reading, knobs::device as knobs};

use crate::testing::fill_setting;

/// Fills it in: a wired and a wireless interface, and a screen.
pub(crate) fn fill(facts: &mut Facts) {
    facts.net = Net { interfaces: Reading::known("/sys/class/net", vec![wired(), wireless()]) };
    facts.devices = Devices {
        consoles: Reading::known(
            "/proc/consoles",
            vec![Console { name: "tty0".into(), nbcon: false }],
        ),
        graphics: Reading::known("/sys/class/drm", Vec::new()),
        tainting_modules: Reading::known("/proc/sys/kernel/tainted", BTreeMap::new()),
        default_target: Reading::known(
            "/etc/systemd/system/default.target",
            "multi-user.target".into(),
        ),
        audit_enabled: Reading::known("audit status", 0),
        raspberry_pi: Reading::known(
            "/boot/firmware/config.txt",
            Some([("force_turbo".to_owned(), "1".to_owned())].into()),
        ),
    };
    for (knob, value) in [
        (&knobs::NAPI_THREADED, "0"),
        (&knobs::XPS, "3"),
        (&knobs::TCP_TIMESTAMPS, "1"),
        (&knobs::TCP_FASTOPEN, "1"),
        (&knobs::IPV6, "1"),
        (&knobs::TRACER, "nop"),
        (&knobs::TRACE_EVENTS, ""),
        (&knobs::TRACE_PROBES, ""),
    ] {
        fill_setting(facts, knob, value);
    }
    for knob in [&knobs::TRACE_INSTANCES, &knobs::TRACE_INSTANCE_EVENTS] {
        let lacking = Reading::known("/sys/kernel/tracing/instances", "holds no *".into());
        let none = Setting { values: Vec::new(), lacking: Some(lacking) };
        facts.settings.insert(knob.id.into(), none);
    }
}

fn wired() -> Interface {
    let off = Some(false);
    Interface {
        name: "eth0".into(),
        driver: Reading::known("/sys/class/net/eth0/device/driver", "igb".into()),
        wireless: false,
        coalesce: Reading::known(
            "ethtool eth0 coalesce",
            Some(Coalesce { rx_usecs: Some(0), adaptive_rx: off, ..Coalesce::default() }),
        ),
        channels: Reading::known(
            "ethtool eth0 channels",
            Some(Channels { combined: 2, combined_max: 4, ..Channels::default() }),
        ),
        offloads: Reading::known(
            "ethtool eth0 features",
            Some(Offloads { gro: true, ..Offloads::default() }),
        ),
        pause: Reading::known("ethtool eth0 pause", Some(Pause::default())),
        eee: Reading::known("ethtool eth0 eee", Some(Eee::default())),
        power_save: Reading::known("/sys/class/net/eth0", None),
    }
}

fn wireless() -> Interface {
    let at = |word: &str| format!("ethtool wlan0 {word}");
    Interface {
        name: "wlan0".into(),
        driver: Reading::known("/sys/class/net/wlan0/device/driver", "iwlwifi".into()),
        wireless: true,
        coalesce: Reading::known(at("coalesce"), None),
        channels: Reading::known(at("channels"), None),
        offloads: Reading::known(at("features"), Some(Offloads::default())),
        pause: Reading::known(at("pause"), None),
        eee: Reading::known(at("eee"), None),
        power_save: Reading::known("nl80211 wlan0 power_save", Some(false)),
    }
}
