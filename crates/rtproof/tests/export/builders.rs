//! The kernel's own configuration program reads the fragment; Yocto and Buildroot have no checker
//! outside their build systems, so their syntax is looked at here, and scripts are run on a tree.

use std::{fs, process::Command};

use super::tools::{self, exported, got, ok, program, put, run, said, written};

/// Options as a kernel declares them.
const KCONFIG: &str = "\
config PREEMPT_RT\n\tbool \"RT\"\n
config HZ_1000\n\tbool \"1000\"\n
config HZ\n\tint \"hz\"\n\tdefault 250\n
config PROVE_LOCKING\n\tbool \"locks\"\n\tdefault y\n
config KASAN\n\tbool \"kasan\"\n\tdefault y\n
config CMDLINE\n\tstring \"words\"\n
";

#[test]
fn the_kernel_s_conf_takes_every_line() {
    let folder = written(&exported("kconfig"));
    let Some(conf) = program("kconfig-conf") else { return };
    put(folder.path(), &[("Kconfig", KCONFIG)]);
    let merge = |fragment: &str| {
        run(Command::new(&conf)
            .current_dir(folder.path())
            // What merge_config.sh does at its end, with every warning an error.
            .env("KCONFIG_ALLCONFIG", fragment)
            .env("KCONFIG_CONFIG", "merged")
            .env("KCONFIG_WERROR", "1")
            .env("KCONFIG_WARN_UNKNOWN_SYMBOLS", "1")
            .args(["--alldefconfig", "Kconfig"]))
    };
    let output = merge("rtproof.config");
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("warning"), "{}", said(&output));
    let merged = got(folder.path(), "merged");
    let fragment = got(folder.path(), "rtproof.config");
    let is_option = |line: &&str| line.starts_with("CONFIG_") || line.ends_with(" is not set");
    let lines: Vec<&str> = fragment.lines().filter(is_option).collect();
    assert_eq!(
        lines,
        [
            "CONFIG_PREEMPT_RT=y",
            "CONFIG_HZ_1000=y",
            "CONFIG_HZ=1000",
            "# CONFIG_PROVE_LOCKING is not set",
            "# CONFIG_KASAN is not set",
            "CONFIG_CMDLINE=\"quiet\"",
        ]
    );
    for line in lines {
        assert!(merged.lines().any(|is| is == line), "{line}: {merged}");
    }
    // It would say so.
    put(folder.path(), &[("bad", "CONFIG_HZ=fast\n")]);
    let bad = merge("bad");
    assert!(!bad.status.success() || said(&bad).contains("warning"), "{}", said(&bad));
}

/// Lines with what a backslash joins to them.
fn joined(text: &str) -> Vec<String> {
    let lines = text.replace("\\\n", " ");
    lines.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// What BitBake's parser takes: comments, assignments, `inherit`, functions.
fn check_bitbake(path: &str, text: &str) {
    let mut is_function = false;
    for line in joined(text) {
        let line = line.as_str();
        if is_function {
            is_function = line != "}";
            continue;
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with("inherit ") {
            continue;
        }
        if let Some(name) = line.strip_suffix("() {") {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{path}: {line}");
            is_function = true;
            continue;
        }
        let operators = [" ??= ", " := ", " += ", " .= ", " = "];
        let split = operators.iter().find_map(|operator| line.split_once(operator));
        let (name, value) = split.unwrap_or_else(|| panic!("{path}: no assignment: {line}"));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-:${}".contains(c);
        assert!(name.chars().all(is_name), "{path}: {name}");
        let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        assert!(inner.is_some_and(|inner| !inner.contains('"')), "{path}: {value}");
    }
    assert!(!is_function, "{path}: a function does not end");
}

#[test]
fn a_yocto_layer_is_whole() {
    let exported = exported("yocto");
    let text = |path: &str| {
        let path = format!("meta-rtproof/{path}");
        let file = exported.files.iter().find(|file| file.path == path);
        file.unwrap_or_else(|| panic!("no {path}")).content.as_str()
    };
    for file in &exported.files {
        if [".bb", ".bbappend", ".inc", "layer.conf"].iter().any(|end| file.path.ends_with(end)) {
            check_bitbake(&file.path, &file.content);
        }
    }
    let append = text("recipes-kernel/linux/linux-yocto_%.bbappend");
    assert!(append.contains("SRC_URI += \"file://rtproof.cfg\""), "{append}");
    assert!(text("recipes-kernel/linux/files/rtproof.cfg").contains("CONFIG_PREEMPT_RT=y"));
    let words = joined(text("conf/rtproof.inc"));
    let words: Vec<&String> = words.iter().filter(|line| line.starts_with("APPEND")).collect();
    assert_eq!(
        words,
        ["APPEND:append = \" isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 \
          irqaffinity=0-1 skew_tick=1\""]
    );
    // Every file that the recipe names is there, and every file is named and packed.
    let recipe = text("recipes-core/rtproof-tuning/rtproof-tuning.bb");
    let front = "meta-rtproof/recipes-core/rtproof-tuning/files/";
    let files: Vec<&str> =
        exported.files.iter().filter_map(|file| file.path.strip_prefix(front)).collect();
    assert!(files.len() > 5, "{files:?}");
    for file in &files {
        assert!(recipe.contains(&format!("file://{file} ")), "{file}: {recipe}");
        assert!(recipe.contains(&format!("${{D}}/{file}\n")), "{file}: {recipe}");
        assert!(recipe.contains(&format!("    /{file} ")), "{file}: {recipe}");
    }
    assert_eq!(recipe.matches("file://").count() - 1, files.len(), "{recipe}");
    let preset =
        text("recipes-core/rtproof-tuning/files/usr/lib/systemd/system-preset/10-rtproof.preset");
    assert!(preset.contains("\ndisable irqbalance.service\n"), "{preset}");
}

#[test]
fn buildroot_s_script_adds_each_word_once() {
    let folder = written(&exported("buildroot"));
    let board = folder.path().join("rtproof");
    for line in got(&board, "defconfig").lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once('=').expect(line);
        assert!(name.starts_with("BR2_"), "{line}");
        let path = value.trim_matches('"').strip_prefix("board/").expect(line);
        assert!(folder.path().join(path).exists(), "{line}");
    }
    let post = board.join("post-build.sh");
    ok(Command::new("sh").arg("-n").arg(&post));
    ok(Command::new("sh").arg("-n").arg(board.join("overlay/etc/init.d/S90rtproof-tuning")));
    // BusyBox knows no tmpfiles.d.
    assert!(!board.join("overlay/etc/tmpfiles.d").exists());
    let script = got(&board, "overlay/usr/local/sbin/rtproof-tuning");
    assert!(script.contains("/sys/kernel/mm/transparent_hugepage/enabled"), "{script}");

    let tree = tempfile::tempdir().expect("a tree");
    let (target, images) = (tree.path().join("target"), tree.path().join("images"));
    put(
        &target,
        &[
            (
                "boot/grub/grub.cfg",
                "set default=0\nmenuentry \"x\" {\n\tlinux /bzImage root=/dev/sda1 idle=poll isolcpus=1\n\tinitrd /i\n}\n",
            ),
            (
                "boot/extlinux/extlinux.conf",
                "label linux\n  kernel /zImage\n  append root=/dev/mmcblk0p2 rootwait nohz_full=2-3",
            ),
            ("usr/lib/systemd/systemd", ""),
            ("etc/sysctl.d/50-old.conf", "x = 1\n"),
            ("etc/systemd/system/multi-user.target.wants/irqbalance.service", ""),
        ],
    );
    let systemd = target.join("usr/lib/systemd/systemd");
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(systemd, executable).expect("mode");
    put(&images, &[("rpi-firmware/cmdline.txt", "root=/dev/mmcblk0p2 rootwait\n")]);
    let words = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 \
                 skew_tick=1";
    let mut first = None;
    for _ in 0..2 {
        let said = ok(Command::new(&post).arg(&target).env("BINARIES_DIR", &images));
        assert_eq!(said, "");
        let now = tools::tree(tree.path());
        assert_eq!(first.get_or_insert_with(|| now.clone()), &now, "twice is as once");
    }
    assert_eq!(
        got(&target, "boot/grub/grub.cfg"),
        format!(
            "set default=0\nmenuentry \"x\" {{\n\tlinux /bzImage root=/dev/sda1 {words}\n\tinitrd /i\n}}"
        )
    );
    let extlinux = got(&target, "boot/extlinux/extlinux.conf");
    let line = extlinux.lines().last().expect("a line");
    assert!(
        line.starts_with("  append root=/dev/mmcblk0p2 rootwait nohz_full=2-3 isolcpus="),
        "{line}"
    );
    assert_eq!(line.matches("nohz_full").count(), 1, "{line}");
    assert_eq!(
        got(&images, "rpi-firmware/cmdline.txt"),
        format!("root=/dev/mmcblk0p2 rootwait {words}")
    );
    assert!(!target.join("etc/sysctl.d/50-old.conf").exists());
    let units = target.join("etc/systemd/system");
    let wants = units.join("multi-user.target.wants");
    assert!(!wants.join("irqbalance.service").exists());
    assert!(wants.join("rtproof-tuning.service").is_symlink());
    assert_eq!(
        fs::read_link(units.join("fwupd-refresh.timer")).expect("a link").to_str(),
        Some("/dev/null")
    );

    let bare = tempfile::tempdir().expect("a tree");
    let said = ok(Command::new(&post).arg(bare.path()));
    assert!(said.contains("add to the command line: isolcpus="), "{said}");
}
