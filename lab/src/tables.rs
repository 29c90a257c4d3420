//! Firmware tables made for guests: ACPI idle and frequency states (x86-64), PSCI idle states in a
//! device tree (aarch64).

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use rtproof_guest::Emulator;

use crate::cache::Cache;

const KIND: &str = "tables";

/// What each CPU gets. C2 and C3 are reads of two ports of pc-testdev that do nothing, so that they
/// end at once; P-states are written to one of its registers, from which they are also read back.
/// All CPUs share that register: they are one frequency domain (_PSD).
const CPU_STATES: &str = r"
    Name (_CST, Package () {
        3,
        Package () { ResourceTemplate () { Register (FFixedHW, 1, 2, 0, 1) }, 1, 2, 1000 },
        Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0xE4) }, 2, 80, 500 },
        Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0xE5) }, 3, 300, 100 }
    })
    Name (_PCT, Package () {
        ResourceTemplate () { Register (SystemIO, 32, 0, 0xE0) },
        ResourceTemplate () { Register (SystemIO, 32, 0, 0xE0) }
    })
    Name (_PSS, Package () {
        Package () { 3000, 30000, 10, 10, 3, 3 },
        Package () { 2000, 20000, 10, 10, 2, 2 },
        Package () { 1000, 10000, 10, 10, 1, 1 }
    })
    Method (_PPC) { Return (0) }
";

/// Two idle states behind QEMU's PSCI, which waits for an interrupt in either.
const IDLE_STATES: &str = r#"
        idle-states {
            entry-method = "psci";
            lab_retention: cpu-retention {
                compatible = "arm,idle-state";
                arm,psci-suspend-param = <0x0000001>;
                entry-latency-us = <50>;
                exit-latency-us = <100>;
                min-residency-us = <500>;
            };
            lab_sleep: cpu-sleep {
                compatible = "arm,idle-state";
                arm,psci-suspend-param = <0x0000002>;
                entry-latency-us = <200>;
                exit-latency-us = <400>;
                min-residency-us = <2000>;
                local-timer-stop;
            };
        };
"#;

/// An ACPI table (AML) that gives `cpus` CPUs idle states C1 to C3 and three performance states; to
/// be used with `-acpitable file=... -device pc-testdev`.
///
/// # Errors
/// iasl is missing or fails.
pub fn ssdt(cpus: u32, cache: &Cache) -> Result<PathBuf> {
    let source = ssdt_source(cpus);
    cache.entry(KIND, &format!("ssdt-{cpus}-{}.aml", digest(&[&source])), |place| {
        let work = tempfile::tempdir().context("a folder for the ACPI table")?;
        let text = work.path().join("ssdt.dsl");
        write(&text, &source)?;
        let mut command = Command::new("iasl");
        command.arg("-p").arg(work.path().join("ssdt")).arg(&text);
        run(&mut command, "acpica-tools")?;
        copy(&work.path().join("ssdt.aml"), place)
    })
}

fn ssdt_source(cpus: u32) -> String {
    let mut text =
        String::from("DefinitionBlock (\"\", \"SSDT\", 2, \"RTLAB\", \"CPUSTATE\", 1)\n{\n");
    for cpu in 0..cpus {
        // Writing to a string does not fail. 0xFC: the platform coordinates the domain.
        let _ = write!(
            text,
            "External (\\_SB.CPUS.C{cpu:03X}, DeviceObj)\n\
             Scope (\\_SB.CPUS.C{cpu:03X})\n{{{CPU_STATES}    \
             Name (_PSD, Package () {{ Package () {{ 5, 0, 0, 0xFC, {cpus} }} }})\n}}\n"
        );
    }
    text + "}\n"
}

/// A device tree of the virt machine with two PSCI idle states.
///
/// # Errors
/// dtc is missing or fails.
pub fn device_tree(
    emulator: &Emulator,
    cpus: u32,
    memory_mib: u32,
    cache: &Cache,
) -> Result<PathBuf> {
    let (major, minor, patch) = emulator.version;
    let asked = format!("{major}.{minor}.{patch} {cpus} {memory_mib}");
    let addition = idle_source(cpus);
    let key = format!("virt-{cpus}-{memory_mib}-{}.dtb", digest(&[&asked, &addition]));
    cache.entry(KIND, &key, |place| {
        let work = tempfile::tempdir().context("a folder for the device tree")?;
        let [plain, text] = ["plain.dtb", "virt.dts"].map(|name| work.path().join(name));
        let mut command = Command::new(&emulator.program);
        command.args(&emulator.arguments);
        command.arg("-M").arg(format!("virt,dumpdtb={}", plain.display()));
        command.args(["-cpu", "cortex-a57", "-display", "none", "-nodefaults"]);
        command.args(["-smp", &cpus.to_string(), "-m", &memory_mib.to_string()]);
        run(&mut command, "qemu-system-arm")?;
        let mut command = Command::new("dtc");
        command.args(["-q", "-I", "dtb", "-O", "dts", "-o"]).arg(&text).arg(&plain);
        run(&mut command, "device-tree-compiler")?;
        let source = fs::read_to_string(&text)
            .with_context(|| format!("{}: cannot be read", text.display()))?;
        write(&text, &(source + &addition))?;
        let mut command = Command::new("dtc");
        command.args(["-q", "-I", "dts", "-O", "dtb", "-o"]).arg(place).arg(&text);
        run(&mut command, "device-tree-compiler")
    })
}

/// Source text behind the machine's own: dtc merges what stands at the same place.
fn idle_source(cpus: u32) -> String {
    let mut text = format!("\n/ {{\n    cpus {{{IDLE_STATES}");
    for cpu in 0..cpus {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "        cpu@{cpu:x} {{ cpu-idle-states = <&lab_retention &lab_sleep>; }};"
        );
    }
    text + "    };\n};\n"
}

/// Runs a program of a Debian package.
fn run(command: &mut Command, package: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} cannot be run: install {package}"))?;
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&said).trim());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(|_| ()).with_context(|| format!("{}: cannot write", to.display()))
}

fn digest(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
        digest.update([0]);
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_its_states_once() {
        let source = ssdt_source(18);
        assert_eq!(source.matches("Scope (").count(), 18);
        assert_eq!(source.matches("_CST").count(), 18);
        assert!(source.contains("Scope (\\_SB.CPUS.C011)"), "the seventeenth is 0x10, then 0x11");
        assert_eq!(source.matches("0xFC, 18").count(), 18);
        assert_eq!(source.matches('{').count(), source.matches('}').count());
    }

    #[test]
    fn idle_states_are_referred_to_by_every_cpu() {
        let source = idle_source(2);
        assert_eq!(source.matches("<&lab_retention &lab_sleep>").count(), 2);
        assert_eq!(source.matches('{').count(), source.matches('}').count());
    }
}
