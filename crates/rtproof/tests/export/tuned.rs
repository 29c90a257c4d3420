//! tuned's own code reads the profile of `--format tuned`, and its globs are tried on a tree.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::tools::{self, exported, machine, ok, program, written};

/// Loads a profile with tuned's loader, the words of the boot loader with tuned's plugin.
const LOAD: &str = r#"
import json, sys
from tuned.profiles.locator import Locator
from tuned.profiles.loader import Loader
from tuned.profiles.factory import Factory
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.plugins.plugin_bootloader import BootloaderPlugin
from tuned.plugins.plugin_cpu import CPULatencyPlugin
from tuned.plugins.plugin_service import ServicePlugin
variables = Variables()
loader = Loader(Locator([sys.argv[1]]), Factory(), Merger(), None, variables)
profile = loader.load(["rtproof"])
units = {name: dict(unit.options) for name, unit in profile.units.items()}
class Bare(BootloaderPlugin):
    def __init__(self): pass
boot = Bare()._get_effective_options(units.get("bootloader", {}))
known = {
    "cpu": list(CPULatencyPlugin._get_config_options()),
}
print(json.dumps({"options": dict(profile.options), "units": units, "cmdline": boot["cmdline"],
                  "known": known,
                  "expanded": {n: variables.expand(v) for n, v in units.get("sysfs", {}).items()}}))
"#;

fn load(folder: &Path) -> Option<Value> {
    let python = program("python3")?;
    // The marker of what scripts/deps.sh unpacks.
    program("kconfig-conf")?;
    let packages = tools::unpacked().join("usr/lib/python3/dist-packages");
    let said = ok(Command::new(python)
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-W", "ignore", "-c", LOAD])
        .arg(folder));
    let json = said.lines().find(|line| line.starts_with('{')).expect("JSON");
    Some(serde_json::from_str(json).expect("JSON"))
}

#[test]
fn tuned_reads_the_profile_as_intended() {
    let folder = written(&exported("tuned"));
    let Some(profile) = load(folder.path()) else { return };
    let units = &profile["units"];
    assert_eq!(units["sysctl"]["vm.stat_interval"], "120");
    assert_eq!(units["sysctl"]["kernel.sched_rt_runtime_us"], "-1");
    assert_eq!(units["sysctl"]["kernel.printk"], "3 4 1 7");
    // tuned 2.20 reads every dot as a slash: eth0.100 is for the script.
    assert_eq!(units["sysctl"].as_object().map(serde_json::Map::len), Some(3), "{units}");
    assert_eq!(units["cpu"]["force_latency"], "10");
    assert!(profile["known"]["cpu"].as_array().unwrap().contains(&"force_latency".into()));
    assert_eq!(units["service"]["service.irqbalance.service"], "stop,disable");
    assert_eq!(units["service"]["service.fwupd-refresh.timer"], "stop,disable");
    assert_eq!(units["service"]["service.stalld.service"], "stop");
    assert_eq!(
        profile["cmdline"],
        "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 skew_tick=1"
    );
    let script = units["script"]["script"][0].as_str().expect("a script").to_owned();
    assert_eq!(Path::new(&script), folder.path().join("rtproof/rtproof-tuning.sh"));
    ok(Command::new("sh").arg("-n").arg(&script));
    let text = fs::read_to_string(&script).expect("the script");
    for line in ["irq eth0-rx-0 524289 3 '^3$'", "property system.slice AllowedCPUs 0-1"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // What tuned substitutes is not in any value.
    assert_eq!(profile["expanded"], units["sysfs"]);
}

#[test]
fn tuned_s_globs_are_these_paths_and_no_others() {
    let folder = written(&exported("tuned"));
    let Some(profile) = load(folder.path()) else { return };
    let root = tempfile::tempdir().expect("a root");
    machine(root.path());
    let globs: Vec<&String> =
        profile["units"]["sysfs"].as_object().expect("sysfs").keys().collect();
    assert!(globs.iter().any(|glob| glob.contains('[')), "{globs:?}");
    let code = "import glob, os, sys\nroot = sys.argv[1]\nfor g in sys.argv[2:]:\n \
                found = sorted(glob.glob(root + os.path.normpath(g)))\n assert found, g\n \
                print('\\n'.join(f[len(root):] for f in found))";
    let said = ok(Command::new("python3").args(["-c", code]).arg(root.path()).args(&globs));
    let mut found: Vec<&str> = said.lines().collect();
    found.sort_unstable();
    let sample = super::sample::Sample::rich();
    let text = fs::read_to_string(folder.path().join("rtproof/rtproof-tuning.sh")).expect("script");
    let wanted: Vec<String> = sample
        .plan
        .steps
        .iter()
        .filter_map(|step| match &step.change {
            rtproof_host::tune::Change::Value { path, .. } if path.starts_with("/sys/") => {
                Some(path.clone())
            }
            _ => None,
        })
        .collect();
    for path in &found {
        assert!(wanted.iter().any(|wanted| wanted == path), "{path} is not in the plan");
    }
    // The rest is in the script, once.
    assert!(found.contains(&"/sys/devices/system/cpu/cpu2/cpuidle/state3/disable"), "{found:?}");
    assert!(text.contains("scaling_max_freq") && !said.contains("scaling_max_freq"));
}
