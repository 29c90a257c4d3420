//! An external tree for Buildroot: the kernel's fragment, an overlay of the root file system, and a
//! script that adds the words of the command line where the boot loader's files are.

use rtproof_host::tune::UnitState;

use super::{
    boot::Words,
    format::{Exported, Format, Missed, OutFile, Source},
    kconfig,
    layout::{At, Layout, Property, named},
    text::{self, shell},
    tree::{SCRIPT, Tree},
};

pub(super) const BUILDROOT: Format = Format {
    id: "buildroot",
    title: "a fragment, an overlay and a script for Buildroot",
    usage: "Copy the folder `rtproof` into the build's `board/`, and merge its `defconfig` into \
         yours: `support/kconfig/merge_config.sh .config board/rtproof/defconfig`. The overlay serves \
         systemd and BusyBox's init. Kernel threads need chrt and taskset (BusyBox has both).\n\n\
         `post-build.sh` adds the words to GRUB's, extlinux' and the Raspberry Pi's files where it \
         finds them, and says where it does not.\n\n\
         There is no checker for Buildroot's trees: the tests look at the syntax of these files and \
         run the script on a tree.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    // BusyBox has no tmpfiles.d: all but sysctls is in the script.
    let mut layout = Layout::of(source, At::Boot).all_in_script();
    let properties: Vec<Property<'_>> = std::mem::take(&mut layout.properties);
    let tree = Tree::of(source, &layout, BUILDROOT.id, false);
    let words = Words::of(source);
    let (fragment, missed_options) = kconfig::fragment(source, BUILDROOT.id);
    let mut missed = tree.missed.clone();
    missed.extend(missed_options);
    missed.extend(properties.iter().map(|property| Missed {
        what: named(property.step),
        why: "control groups of systemd; `--format systemd` has the drop-in".into(),
    }));
    let head = text::head(source, BUILDROOT.id);
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

/// What an overlay cannot do: links, files that are to be away, lines of other packages' files.
fn post_build(head: &str, layout: &Layout<'_>, tree: &Tree, words: &Words<'_>) -> String {
    let mut script = format!("#!/bin/sh\n{head}set -eu\nroot=$1\n");
    for (path, step) in &layout.away {
        script += &format!("# {}\nrm -f \"$root\"{}\n", text::why(&step.reason), shell(path));
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
fn systemd(layout: &Layout<'_>, tree: &Tree) -> String {
    let mut lines = String::new();
    for unit in &tree.enabled {
        lines += &format!(
            "    mkdir -p \"$units/multi-user.target.wants\"\n    \
             ln -sf ../{unit} \"$units/multi-user.target.wants/{unit}\"\n"
        );
    }
    for (unit, want, step) in &layout.units {
        lines += &format!("    # {}\n", text::why(&step.reason));
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
