//! Exports for builders of images: Yocto, Buildroot.

use rtproof_host::tune::UnitState;
use rtproof_kernel::config;

use super::layout::{At, ExportLayout, ExportProperty, named};
use super::tree::{FileTree, SCRIPT};
use super::{ExportFormat, ExportSource, ExportWords, Exported, NotExported, OutFile, shell};

// An external tree for Buildroot: the kernel's fragment, an overlay of the root file system, and a
// script that adds the words of the command line where the boot loader's files are.

pub(super) const BUILDROOT: ExportFormat = ExportFormat {
    id: "buildroot",
    title: "a fragment, an overlay and a script for Buildroot",
    usage: "Copy the folder `rtproof` into the build's `board/`, and merge its `defconfig` into \
         yours: `support/kconfig/merge_config.sh .config board/rtproof/defconfig`. The overlay serves \
         systemd and BusyBox's init. Kernel threads need chrt and taskset (BusyBox has both).\n\n\
         `post-build.sh` adds the words to GRUB's, extlinux' and the Raspberry Pi's files where it \
         finds them, and says where it does not.\n\n\
         There is no checker for Buildroot's trees: the tests look at the syntax of these files and \
         run the script on a tree.",
    write: write_buildroot,
};

fn write_buildroot(source: &ExportSource<'_>) -> Exported {
    // BusyBox has no tmpfiles.d: all but sysctls is in the script.
    let mut layout = ExportLayout::of(source, At::Boot).all_in_script();
    let properties: Vec<ExportProperty<'_>> = std::mem::take(&mut layout.properties);
    let tree = FileTree::of(source, &layout, BUILDROOT.id, false);
    let words = ExportWords::of(source);
    let (fragment, missed_options) = fragment(source, BUILDROOT.id);
    let mut missed = tree.missed.clone();
    missed.extend(missed_options);
    missed.extend(properties.iter().map(|property| NotExported {
        what: named(property.step),
        why: "control groups of systemd; `--format systemd` has the drop-in".into(),
    }));
    let head = super::file_head(source, BUILDROOT.id);
    let post = post_build(&head, &layout, &tree, &words);
    missed.extend(words.missed);
    let mut files = vec![
        OutFile::new("rtproof/defconfig", defconfig(&head)),
        OutFile::new("rtproof/linux.fragment", fragment),
        OutFile::program("rtproof/post-build.sh", post),
    ];
    if tree.files.iter().any(|file| file.path == SCRIPT) {
        let init = format!(
            "#!/bin/sh\n{head}case \"$1\" in\nstart | stop) exec /{SCRIPT} \"$1\" ;;\n\
             restart) \"$0\" stop && exec \"$0\" start ;;\n\
             *) echo \"usage: $0 start|stop|restart\" >&2; exit 1 ;;\nesac\n"
        );
        files.push(OutFile::program("rtproof/overlay/etc/init.d/S90rtproof-tuning", init));
    }
    files.extend(tree.files.into_iter().map(|mut file| {
        file.path = format!("rtproof/overlay/{}", file.path);
        file
    }));
    Exported { files, missed }
}

fn defconfig(head: &str) -> String {
    format!(
        "{head}BR2_LINUX_KERNEL_CONFIG_FRAGMENT_FILES=\"board/rtproof/linux.fragment\"\n\
         BR2_ROOTFS_OVERLAY=\"board/rtproof/overlay\"\n\
         BR2_ROOTFS_POST_BUILD_SCRIPT=\"board/rtproof/post-build.sh\"\n"
    )
}

/// Not possible in an overlay: links, removed files, lines of other packages' files.
fn post_build(
    head: &str,
    layout: &ExportLayout<'_>,
    tree: &FileTree,
    words: &ExportWords<'_>,
) -> String {
    let mut script = format!("#!/bin/sh\n{head}set -eu\nroot=$1\n");
    for (path, step) in &layout.away {
        script += &format!("# {}\nrm -f \"$root\"{}\n", super::why(&step.reason), shell(path));
    }
    script += &systemd(layout, tree);
    if words.is_empty() {
        return script;
    }
    let case = words
        .removed_pattern()
        .map(|pattern| format!("        {pattern}) continue ;;\n"))
        .unwrap_or_default();
    script += &format!(
        "\n{}words={}\n{}",
        words.comments(),
        shell(&words.text()),
        POST_BOOT.replace("@REMOVED@\n", &case)
    );
    script
}

/// Units, where the image has systemd.
fn systemd(layout: &ExportLayout<'_>, tree: &FileTree) -> String {
    let mut lines = String::new();
    for unit in &tree.enabled {
        lines += &format!(
            "    mkdir -p \"$units/multi-user.target.wants\"\n    \
             ln -sf ../{unit} \"$units/multi-user.target.wants/{unit}\"\n"
        );
    }
    for (unit, want, step) in &layout.units {
        lines += &format!("    # {}\n", super::why(&step.reason));
        let name = shell(unit);
        lines += &match want {
            UnitState::Masked => format!("    ln -sf /dev/null \"$units\"/{name}\n"),
            UnitState::Disabled | UnitState::Stopped => {
                format!("    rm -f \"$units\"/*.wants/{name} \"$units\"/*.requires/{name}\n")
            }
            UnitState::Started | UnitState::Enabled => format!(
                "    mkdir -p \"$units/multi-user.target.wants\"\n    \
                 ln -sf /usr/lib/systemd/system/{name} \"$units/multi-user.target.wants\"/{name}\n"
            ),
        };
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\nunits=$root/etc/systemd/system\n\
         if [ -x \"$root/usr/lib/systemd/systemd\" ] || [ -x \"$root/lib/systemd/systemd\" ]; then\n\
         {lines}fi\n"
    )
}

/// Adds words to lines of boot loaders' files, each word once.
const POST_BOOT: &str = include_str!("post-boot.sh");

// A fragment for the kernel's configuration: what the plan says only another kernel can do, and
// what else the running kernel's build lacks.

pub(super) const FRAGMENT: &str = "rtproof.config";

pub(super) const KCONFIG: ExportFormat = ExportFormat {
    id: "kconfig",
    title: "a fragment of the kernel's configuration",
    usage: "In the kernel's tree: `scripts/kconfig/merge_config.sh .config rtproof.config`, then \
         build. merge_config.sh says which lines did not make it: options of other kernels or \
         architectures, or whose dependencies are not met.\n\n\
         This export is about the kernel's build alone; values, units and boot parameters are in the \
         other formats.",
    write: write_kconfig,
};

fn write_kconfig(source: &ExportSource<'_>) -> Exported {
    let (fragment, mut missed) = fragment(source, KCONFIG.id);
    let (changes, words) = (source.plan.steps.len(), source.plan.boot.len());
    if changes + words > 0 {
        missed.push(NotExported {
            what: format!(
                "{} and {} for the command line",
                rtproof_judge::units::count(changes, "change"),
                rtproof_judge::units::count(words, "word")
            ),
            why: "this format is about the kernel's build alone; take another for them".into(),
        });
    }
    Exported { files: vec![OutFile::new(FRAGMENT, fragment)], missed }
}

/// The fragment, each option once with all its reasons; and what no line can say.
fn fragment(source: &ExportSource<'_>, format: &str) -> (String, Vec<NotExported>) {
    let asked =
        requested_options(source).into_iter().map(|(option, reason)| (option.to_owned(), reason));
    let (lines, missed) = config::fragment_lines(asked.collect());
    let mut text = super::file_head(source, format);
    if source.build.is_none() {
        text += "# The configuration of the running kernel cannot be read: what it lacks besides \
                 is not known.\n";
    } else if lines.is_empty() {
        text += "# The running kernel is built with all that is asked of it.\n";
    }
    text += &config::fragment_text(&lines);
    let missed =
        missed.into_iter().map(|(option, why)| NotExported { what: super::one_line(&option), why });
    (text, missed.collect())
}

/// Options of the plan with their reasons, then other options that the build lacks.
fn requested_options<'a>(source: &ExportSource<'a>) -> Vec<(&'a str, String)> {
    let build = source.build.unwrap_or_default();
    let is_known = |option: &str| build.iter().any(|known| known.option == option);
    let of_plan = source.plan.instructions.iter().flat_map(|instruction| {
        let options = instruction.build_options.iter().filter(|option| !is_known(option));
        options.map(|option| (option.as_str(), super::why(&instruction.reason)))
    });
    let of_build = build.iter().map(|it| {
        let reason = format!("{}: {}. Source: {}.", it.check, it.why, it.source);
        (it.option.as_str(), super::one_line(&reason))
    });
    of_plan.chain(of_build).collect()
}

// A layer for Yocto: the kernel's fragment in a .bbappend, the files in a small recipe, the words
// of the command line in a file to require.

pub(super) const YOCTO: ExportFormat = ExportFormat {
    id: "yocto",
    title: "a layer for Yocto",
    usage: "`bitbake-layers add-layer meta-rtproof`, and `require conf/rtproof.inc` in \
         `local.conf` or in the machine's configuration. The fragment is for kernels that inherit \
         `kernel-yocto`; rename the .bbappend after another kernel's recipe. `APPEND` is what \
         wic's own boot loader files take; a .wks with `bootloader --append=` wants the words there. The image needs \
         systemd. LAYERSERIES_COMPAT names the releases the syntax was written for: add yours.\n\n\
         There is no checker for layers outside bitbake: the tests look at the syntax of these \
         files, no more.",
    write: write_yocto,
};

fn write_yocto(source: &ExportSource<'_>) -> Exported {
    let layout = ExportLayout::of(source, At::Boot);
    let tree = FileTree::of(source, &layout, YOCTO.id, false);
    let words = ExportWords::of(source);
    let (fragment, missed_options) = fragment(source, YOCTO.id);
    let mut missed = tree.missed.clone();
    missed.extend(missed_options);
    missed.extend(layout.away.iter().map(|(_, step)| NotExported {
        what: named(step),
        why: "leave its recipe out of the image".into(),
    }));
    missed.extend(words.removed.iter().map(|(name, _)| NotExported {
        what: format!("boot words {name} that were there"),
        why: "remove them from APPEND where the machine sets it".into(),
    }));
    let head = super::file_head(source, YOCTO.id);
    let mut files = vec![
        layer(&head),
        OutFile::new("meta-rtproof/conf/rtproof.inc", include(&head, &words, &tree)),
        OutFile::new(
            "meta-rtproof/recipes-kernel/linux/linux-yocto_%.bbappend",
            format!(
                "{head}\nFILESEXTRAPATHS:prepend := \"${{THISDIR}}/files:\"\n\
                 SRC_URI += \"file://rtproof.cfg\"\n"
            ),
        ),
        OutFile::new("meta-rtproof/recipes-kernel/linux/files/rtproof.cfg", fragment),
    ];
    missed.extend(words.missed);
    let mut masked = Vec::new();
    let mut presets = head.clone();
    for (unit, want, step) in &layout.units {
        use rtproof_host::tune::UnitState::{Disabled, Enabled, Masked, Started, Stopped};
        let why = super::why(&step.reason);
        match want {
            Masked => masked.push(*unit),
            Disabled | Stopped => presets += &format!("# {why}\ndisable {unit}\n"),
            Enabled | Started => presets += &format!("# {why}\nenable {unit}\n"),
        }
    }
    let mut tree = tree;
    if presets != head {
        let path = "usr/lib/systemd/system-preset/10-rtproof.preset";
        tree.files.push(OutFile::new(path, presets));
    }
    if !tree.files.is_empty() || !masked.is_empty() {
        files.push(OutFile::new(
            "meta-rtproof/recipes-core/rtproof-tuning/rtproof-tuning.bb",
            recipe(&head, &tree, &masked),
        ));
        files.extend(tree.files.into_iter().map(|mut file| {
            file.path = format!("meta-rtproof/recipes-core/rtproof-tuning/files/{}", file.path);
            file
        }));
    }
    Exported { files, missed }
}

fn layer(head: &str) -> OutFile {
    let text = format!(
        "{head}\nBBPATH .= \":${{LAYERDIR}}\"\n\
         BBFILES += \"${{LAYERDIR}}/recipes-*/*/*.bb ${{LAYERDIR}}/recipes-*/*/*.bbappend\"\n\
         BBFILE_COLLECTIONS += \"rtproof\"\n\
         BBFILE_PATTERN_rtproof = \"^${{LAYERDIR}}/\"\n\
         BBFILE_PRIORITY_rtproof = \"10\"\n\
         LAYERDEPENDS_rtproof = \"core\"\n\
         LAYERSERIES_COMPAT_rtproof = \"kirkstone scarthgap styhead walnascar\"\n"
    );
    OutFile::new("meta-rtproof/conf/layer.conf", text)
}

fn include(head: &str, words: &ExportWords<'_>, tree: &FileTree) -> String {
    let mut text = format!("{head}\n{}", words.comments());
    if !words.added.is_empty() {
        text += &format!("APPEND:append = \" {}\"\n", words.text());
    }
    if !tree.files.is_empty() {
        text += "IMAGE_INSTALL:append = \" rtproof-tuning\"\n";
    }
    text
}

/// The recipe that puts the files into an image.
fn recipe(head: &str, tree: &FileTree, masked: &[&str]) -> String {
    let uris: String =
        tree.files.iter().map(|file| format!("    file://{} \\\n", file.path)).collect();
    let install = |file: &OutFile| {
        format!(
            "    install -D -m {:04o} ${{UNPACKDIR}}/{path} ${{D}}/{path}\n",
            file.mode,
            path = file.path
        )
    };
    let mut installs: String = tree.files.iter().map(install).collect();
    let mut packed: Vec<String> =
        tree.files.iter().map(|file| format!("    /{} \\\n", file.path)).collect();
    for unit in masked {
        installs += &format!(
            "    install -d ${{D}}/etc/systemd/system\n    \
             ln -sf /dev/null ${{D}}/etc/systemd/system/{unit}\n"
        );
        packed.push(format!("    /etc/systemd/system/{unit} \\\n"));
    }
    let mut text = format!(
        "{head}\nSUMMARY = \"Real-time tuning made by rtproof\"\n\
         LICENSE = \"MIT\"\n\
         LIC_FILES_CHKSUM = \"file://${{COMMON_LICENSE_DIR}}/MIT;md5=0835ade698e0bcf8506ecda2f7b4f302\"\n\n\
         SRC_URI = \" \\\n{uris}\"\n\n\
         # Where files of SRC_URI are: UNPACKDIR since scarthgap's successor, WORKDIR before.\n\
         UNPACKDIR ??= \"${{WORKDIR}}\"\n\ninherit systemd\n"
    );
    if !tree.enabled.is_empty() {
        text += &format!("SYSTEMD_SERVICE:${{PN}} = \"{}\"\n", tree.enabled.join(" "));
        text += "RDEPENDS:${PN} += \"util-linux-schedutils\"\n";
    }
    text + &format!(
        "\ndo_install() {{\n{installs}}}\n\nFILES:${{PN}} += \" \\\n{}\"\n",
        packed.concat()
    )
}
