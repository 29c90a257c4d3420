//! Network interfaces that stand for hardware: how they interrupt, and what they save or put off.
//!
//! Names and settings, never an address. Virtual interfaces (loopback, bridges, veth) are left out:
//! they have no interrupt.

mod ethtool;
pub(super) mod netlink;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::ethtool::{Asker, NOT_SUPPORTED, Question};
use crate::{Reading, Root};

/// Where the interfaces are.
const FOLDER: &str = "/sys/class/net";

/// First kernel that answers these questions by netlink; 5.6 knows the family and not all of them,
/// and would say of each interface that it does not support them.
const SINCE: (u32, u32) = (5, 7);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Net {
    /// Interfaces with a device behind them, by name.
    pub interfaces: Reading<Vec<Interface>>,
}

/// One interface. Of what its driver does not support the value is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name, e.g. `eth0`.
    pub name: String,
    /// Driver, e.g. `igb`.
    pub driver: Reading<String>,
    /// Whether it is wireless.
    pub wireless: bool,
    /// Interrupt moderation (`ethtool -c`).
    pub coalesce: Reading<Option<Coalesce>>,
    /// Queues (`ethtool -l`).
    pub channels: Reading<Option<Channels>>,
    /// Packets put together before the stack sees them (`ethtool -k`).
    pub offloads: Reading<Option<Offloads>>,
    /// Pause frames (`ethtool -a`).
    pub pause: Reading<Option<Pause>>,
    /// Energy-Efficient Ethernet (`ethtool --show-eee`).
    pub eee: Reading<Option<Eee>>,
    /// Whether a wireless interface saves power (`iw dev X get power_save`); `None` of a wired one.
    pub power_save: Reading<Option<bool>>,
}

/// Interrupt moderation; `None`: the driver has no such setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coalesce {
    /// Microseconds for which an interrupt is put off after a packet has come.
    pub rx_usecs: Option<u32>,
    /// Packets that make it come earlier.
    pub rx_frames: Option<u32>,
    /// Microseconds after a packet has gone.
    pub tx_usecs: Option<u32>,
    /// Whether the driver changes the delay of received packets by itself.
    pub adaptive_rx: Option<bool>,
    /// The same for sent packets.
    pub adaptive_tx: Option<bool>,
}

/// Queues; zero where the driver has none of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Queues that receive only.
    pub rx: u32,
    /// Queues that send only.
    pub tx: u32,
    pub combined: u32,
    /// Most queues for both.
    pub combined_max: u32,
}

/// Receive offloads that put packets together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offloads {
    /// Generic receive offload, in software, within one poll.
    pub gro: bool,
    /// The same in hardware.
    pub gro_hw: bool,
    pub lro: bool,
}

/// Pause frames (IEEE 802.3x).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// Whether the two ends negotiate it.
    pub autoneg: bool,
    /// Whether sending stops when the other end asks for it.
    pub rx: bool,
    /// Whether we ask the other end to stop.
    pub tx: bool,
}

/// Energy-Efficient Ethernet (IEEE 802.3az).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Eee {
    /// Whether it is allowed.
    pub enabled: bool,
    /// Whether both ends have agreed on it.
    pub active: bool,
}

impl Net {
    /// Reads the interfaces. Devices that sleep are not read: the kernel would wake them up.
    pub fn read(root: &Root, version: &Reading<(u32, u32)>) -> Self {
        let asker = Asker::default();
        let is_old = version.value().is_some_and(|&version| version < SINCE);
        let mut unseen = None;
        let mut interface = |name: &String| {
            let entries = root.list_dir(&format!("{FOLDER}/{name}"));
            let Some(found) = entries.value() else {
                // Gone since, or not to be seen.
                unseen = unseen.take().or((!entries.is_absent()).then_some(entries));
                return None;
            };
            let has = |entry: &str| found.iter().any(|found| found == entry);
            let wireless = has("phy80211");
            has("device").then(|| Interface::read(root, &asker, name, wireless, is_old))
        };
        let names = root.list_dir(FOLDER);
        let interfaces = names.map(|names| names.iter().filter_map(&mut interface).collect());
        Self { interfaces: unseen.map_or(interfaces, |unseen| unseen.map(|_| Vec::new())) }
    }
}

impl Interface {
    fn read(root: &Root, asker: &Asker, name: &str, wireless: bool, is_old: bool) -> Self {
        let device = format!("{FOLDER}/{name}/device");
        let power = root.trimmed(&format!("{device}/power/runtime_status"));
        let is_asleep = power.value().is_some_and(|status| status == "suspended");
        let ask = |question: &Question| {
            let call = format!("ethtool {name} {}", question.word);
            if is_asleep {
                return Reading::denied(call, "the device sleeps, and asking it would wake it up");
            }
            // Looking for a family that is not there makes the kernel look for a module.
            let called =
                (!is_old).then(|| root.call(&call, || Ok(asker.ask(name, question)?))).flatten();
            called.unwrap_or_else(|| Reading::absent(call))
        };
        let power_save = if wireless {
            let call = format!("nl80211 {name} power_save");
            let called = root.call(&call, || Ok(asker.power_save(name)?));
            called.unwrap_or_else(|| Reading::absent(call)).parsed("on or off", power_save)
        } else {
            Reading::known(format!("{FOLDER}/{name}"), None)
        };
        let driver = root.read_link(&format!("{device}/driver"));
        Self {
            name: name.to_owned(),
            driver: driver.map(|link| link.rsplit('/').next().unwrap_or_default().to_owned()),
            wireless,
            coalesce: ask(&ethtool::COALESCE).and_then(answer(|words| Coalesce {
                rx_usecs: words.number("rx-usecs"),
                rx_frames: words.number("rx-frames"),
                tx_usecs: words.number("tx-usecs"),
                adaptive_rx: words.number("adaptive-rx").map(|on| on != 0),
                adaptive_tx: words.number("adaptive-tx").map(|on| on != 0),
            })),
            channels: ask(&ethtool::CHANNELS).and_then(answer(|words| Channels {
                rx: words.number("rx").unwrap_or_default(),
                tx: words.number("tx").unwrap_or_default(),
                combined: words.number("combined").unwrap_or_default(),
                combined_max: words.number("combined-max").unwrap_or_default(),
            })),
            offloads: ask(&ethtool::FEATURES).map(|text| {
                let has = |feature| text.split(' ').any(|word| word == feature);
                (text != NOT_SUPPORTED).then(|| Offloads {
                    gro: has("rx-gro"),
                    gro_hw: has("rx-gro-hw"),
                    lro: has("rx-lro"),
                })
            }),
            pause: ask(&ethtool::PAUSE).and_then(answer(|words| Pause {
                autoneg: words.is_on("autoneg"),
                rx: words.is_on("rx"),
                tx: words.is_on("tx"),
            })),
            eee: ask(&ethtool::EEE).and_then(answer(|words| Eee {
                enabled: words.is_on("enabled"),
                active: words.is_on("active"),
            })),
            power_save,
        }
    }
}

/// Names and numbers of an answer.
struct Words<'a>(BTreeMap<&'a str, u32>);

impl Words<'_> {
    fn number(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }

    fn is_on(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| number != 0)
    }
}

/// Reads an answer like `rx-usecs 3 adaptive-rx 1`.
fn answer<T>(of: impl Fn(Words<'_>) -> T) -> impl Fn(String, String) -> Reading<Option<T>> {
    move |call, text| {
        if text == NOT_SUPPORTED {
            return Reading::known(call, None);
        }
        let all: Vec<&str> = text.split_whitespace().collect();
        let pairs = all.chunks(2).map(|pair| match pair {
            [name, number] => Some((*name, number.parse().ok()?)),
            _ => None,
        });
        match pairs.collect::<Option<BTreeMap<_, _>>>() {
            Some(words) => Reading::known(call, Some(of(Words(words)))),
            None => Reading::malformed(call, &text, "names and numbers"),
        }
    }
}

fn power_save(text: &str) -> Option<Option<bool>> {
    match text {
        "on" => Some(Some(true)),
        "off" => Some(Some(false)),
        NOT_SUPPORTED => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_folder_has_interfaces_and_nobody_to_ask() {
        let tree = Tree::new(&[
            ("sys/class/net/lo/mtu", "65536\n"),
            ("sys/class/net/eth0/device/vendor", "0x8086\n"),
            ("sys/class/net/wlan0/device/vendor", "0x8086\n"),
            ("sys/class/net/wlan0/phy80211/index", "0\n"),
        ]);
        let net = Net::read(&tree.root(), &Reading::known("", (6, 12)));
        let found = net.interfaces.value().unwrap();
        let names: Vec<_> =
            found.iter().map(|found| (found.name.as_str(), found.wireless)).collect();
        assert_eq!(names, [("eth0", false), ("wlan0", true)]);
        assert!(found[0].coalesce.is_absent() && found[1].power_save.is_absent());
        assert_eq!(found[0].power_save.value(), Some(&None));
        let none = Net::read(&Tree::new(&[("proc/stat", "")]).root(), &Reading::absent(""));
        assert!(none.interfaces.is_absent());
    }

    #[test]
    fn a_device_that_sleeps_is_not_asked() {
        let tree = Tree::new(&[("sys/class/net/eth0/device/power/runtime_status", "suspended\n")]);
        let net = Net::read(&tree.root(), &Reading::known("", (6, 12)));
        let why = net.interfaces.value().unwrap()[0].eee.why_unknown().unwrap();
        assert!(why.contains("would wake it up"), "{why}");
    }

    #[test]
    fn answers_in_words() {
        let read = |text: &str| {
            answer(|words| (words.number("rx-usecs"), words.is_on("adaptive-rx")))(
                "ethtool eth0 coalesce".into(),
                text.into(),
            )
        };
        assert_eq!(read("rx-usecs 3 adaptive-rx 1").value(), Some(&Some((Some(3), true))));
        assert_eq!(read("").value(), Some(&Some((None, false))));
        assert_eq!(read("not supported").value(), Some(&None));
        assert!(read("rx-usecs").value().is_none() && read("rx-usecs x").value().is_none());
        assert_eq!(power_save("on"), Some(Some(true)));
        assert!(power_save("maybe").is_none());
    }

    #[test]
    fn a_capture_keeps_the_answers_and_hides_an_address_in_a_name() {
        let text = "rtproof capture 1\nfrom live, read by root\n== /sys/class/net folder\n|enx0a1b2c3d4e5f\n\
            == /sys/class/net/enx0a1b2c3d4e5f folder\n|device\n\
            == ethtool enx0a1b2c3d4e5f coalesce call\n|rx-usecs 3\n== end\n";
        let mut capture = crate::Capture::read(text.as_bytes()).unwrap().unwrap();
        capture.redact();
        let net = Net::read(&Root::captured(capture), &Reading::known("", (6, 12)));
        let interface = &net.interfaces.value().unwrap()[0];
        assert_eq!(interface.name, "enxmac-1");
        assert_eq!(interface.coalesce.value().unwrap().unwrap().rx_usecs, Some(3));
    }
}
