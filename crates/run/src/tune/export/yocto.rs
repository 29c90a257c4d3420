//! A layer for Yocto: the kernel's fragment in a .bbappend, the files in a small recipe, the words
//! of the command line in a file to require.

use super::{
    boot::Words,
    format::{Exported, Format, Missed, OutFile, Source},
    kconfig,
    layout::{At, Layout, named},
    text,
    tree::Tree,
};

pub(super) const YOCTO: Format = Format {
    id: "yocto",
    title: "a layer for Yocto",
    usage: "`bitbake-layers add-layer meta-rtproof`, and `require conf/rtproof.inc` in \
         `local.conf` or in the machine's configuration. The fragment is for kernels that inherit \
         `kernel-yocto`; rename the .bbappend after another kernel's recipe. `APPEND` is what \
         wic's own boot loader files take; a .wks with `bootloader --append=` wants the words there. The image needs \
         systemd. LAYERSERIES_COMPAT names the releases the syntax was written for: add yours.\n\n\
         There is no checker for layers outside bitbake: the tests look at the syntax of these \
         files, no more.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    let layout = Layout::of(source, At::Boot);
    let tree = Tree::of(source, &layout, YOCTO.id, false);
    let words = Words::of(source);
    let (fragment, missed_options) = kconfig::fragment(source, YOCTO.id);
    let mut missed = tree.missed.clone();
    missed.extend(missed_options);
    missed.extend(layout.away.iter().map(|(_, step)| Missed {
        what: named(step),
        why: "leave its recipe out of the image".into(),
    }));
    missed.extend(words.removed.iter().map(|(name, _)| Missed {
        what: format!("boot words {name} that were there"),
        why: "remove them from APPEND where the machine sets it".into(),
    }));
    let head = text::head(source, YOCTO.id);
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
        let why = text::why(&step.reason);
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

fn include(head: &str, words: &Words<'_>, tree: &Tree) -> String {
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
fn recipe(head: &str, tree: &Tree, masked: &[&str]) -> String {
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
