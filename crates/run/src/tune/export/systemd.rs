//! Files for a machine without rtproof: sysctl.d, tmpfiles.d, drop-ins, a unit with a script,
//! GRUB's drop-in; and two scripts that put them there and take them away.

use super::{
    format::{Exported, Format, Missed, OutFile, Source},
    layout::{At, Layout, named},
    text::{self, shell},
    tree::{self, SCRIPT, Tree},
};

pub(super) const SYSTEMD: Format = Format {
    id: "systemd",
    title: "files for a machine without rtproof: sysctl.d, tmpfiles.d, units, GRUB",
    usage: "As root: `./install.sh` puts `root/` into place, disables the units that are not \
         wanted and starts what is; `./remove.sh` takes it away again. `DESTDIR=/mnt ./install.sh` \
         fills the tree of another machine and starts nothing. `rtproof-tuning check` says what \
         is no longer as wanted, `rtproof-tuning stop` puts back what the script set. GRUB reads \
         `/etc/default/grub.d` on Debian and Ubuntu; `update-grub` takes the words over. With \
         another boot loader add them by hand, see below.\n\n\
         Values of sysctl.d and tmpfiles.d are the kernel's again after `./remove.sh` and a reboot; \
         `rtproof tune apply` puts them back at once.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    let layout = Layout::of(source, At::Boot);
    let tree = Tree::of(source, &layout, SYSTEMD.id, true);
    let mut missed = tree.missed.clone();
    missed.extend(layout.away.iter().map(|(path, step)| Missed {
        what: named(step),
        why: format!("files cannot take a file away: rm {path}"),
    }));
    let install = install(source, &layout, &tree);
    let remove = remove(source, &layout, &tree);
    let mut files: Vec<OutFile> =
        vec![OutFile::program("install.sh", install), OutFile::program("remove.sh", remove)];
    files.extend(tree.files.into_iter().map(|mut file| {
        file.path = format!("root/{}", file.path);
        file
    }));
    Exported { files, missed }
}

const TOP: &str = "set -eu\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\nto=${DESTDIR:-}\n\n";

/// Whether systemd is called: in a tree of another machine nothing is started.
const LIVE: &str = "[ -z \"$to\" ] || exit 0\n";

fn install(source: &Source<'_>, layout: &Layout<'_>, tree: &Tree) -> String {
    let mut script = format!("#!/bin/sh\n{}{TOP}", text::head(source, "systemd"));
    for file in &tree.files {
        let path = shell(&file.path);
        let mode = file.mode;
        script += &format!("install -D -m {mode:04o} \"$here\"/root/{path} \"$to\"/{path}\n");
    }
    script += &format!("\n{LIVE}systemctl daemon-reload\n");
    for (unit, want, step) in &layout.units {
        let (unit, wish) = (shell(unit), tree::systemctl(*want));
        // What is not installed stands in nobody's way.
        script += &format!(
            "# {}\nsystemctl {wish} {unit} || echo {unit}: not {} >&2\n",
            text::why(&step.reason),
            want.word()
        );
    }
    if !layout.sysctls.is_empty() {
        script += &format!("sysctl -q -p /{}\n", tree::SYSCTL);
    }
    if !layout.plain.is_empty() {
        script += &format!("systemd-tmpfiles --create /{}\n", tree::TMPFILES);
    }
    for unit in &tree.enabled {
        script += &format!("systemctl enable {unit}\nsystemctl restart {unit}\n");
    }
    if tree.files.iter().any(|file| file.path == tree::GRUB) {
        script += "if command -v update-grub >/dev/null; then update-grub; else\n    \
                   echo 'add the words of NOTES.md to the kernel command line' >&2\nfi\n";
    }
    script
}

fn remove(source: &Source<'_>, layout: &Layout<'_>, tree: &Tree) -> String {
    let mut script = format!("#!/bin/sh\n{}{TOP}", text::head(source, "systemd"));
    script += "if [ -z \"$to\" ]; then\n    :\n";
    for unit in &tree.enabled {
        script += &format!("    systemctl disable --now {unit} || true\n");
    }
    if tree.files.iter().any(|file| file.path == SCRIPT) {
        script += &format!("    if [ -x /{SCRIPT} ]; then /{SCRIPT} stop; fi\n");
    }
    script += "fi\n";
    for file in &tree.files {
        script += &format!("rm -f \"$to\"/{}\n", shell(&file.path));
    }
    script += &format!("\n{LIVE}systemctl daemon-reload\n");
    for (unit, want, _) in &layout.units {
        script += &format!(
            "echo {}\n",
            shell(&format!("{unit} stays {}; its state before is not known here", want.word()))
        );
    }
    if tree.files.iter().any(|file| file.path == tree::GRUB) {
        script += "if command -v update-grub >/dev/null; then update-grub; fi\n";
    }
    script
}
