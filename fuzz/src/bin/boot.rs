//! Files of boot loaders; the first byte says which. An entry that is made has to read back as it
//! was asked for, and to go without a trace.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rtproof_host::{
    Root,
    boot::{self, BootChanges, Loader, Word},
    tune::{Bytes, Change},
};

/// A menu that leads to our custom.cfg.
const GRUB: &str = "if [ -s $prefix/grubenv ]; then\nload_env\nfi\nset default=\"${next_entry}\"\n\
                    save_env next_entry\nset default=\"${saved_entry}\"\nmenuentry 'x' --id x {\n\
                    linux /vmlinuz-6.1.0-rt ro quiet\ninitrd /i\n}\nsource $prefix/custom.cfg\n";
const ENTRIES: &str = "load_env\nset default=\"${next_entry}\"\nsave_env next_entry\n\
                       set default=\"${saved_entry}\"\nblscfg\n";
const ENTRY: &str = "title x\nversion 6.1.0-rt\nlinux /vmlinuz-6.1.0-rt\noptions ro $kernelopts\n";
const RUNNING: (&str, &str) = ("proc/sys/kernel/osrelease", "6.1.0-rt\n");

/// Machines: the file that is made of bytes from anywhere comes first.
const MACHINES: &[&[(&str, &str)]] = &[
    &[("boot/grub/grub.cfg", "")],
    &[("boot/grub/custom.cfg", ""), ("boot/grub/grub.cfg", GRUB), RUNNING],
    &[("boot/grub/grubenv", ""), ("boot/grub/grub.cfg", GRUB)],
    &[("proc/self/mountinfo", ""), ("boot/grub/grub.cfg", GRUB)],
    &[("proc/cmdline", ""), ("boot/grub/grub.cfg", GRUB)],
    &[("boot/loader/entries/b.conf", ""), ("boot/grub2/grub.cfg", ENTRIES), RUNNING],
    &[
        ("boot/grub2/grubenv", ""),
        ("boot/grub2/grub.cfg", ENTRIES),
        ("boot/loader/entries/b.conf", ENTRY),
    ],
    &[("efi/loader/entries/b.conf", ""), ("efi/loader/loader.conf", "timeout 3\n")],
    &[("efi/loader/loader.conf", ""), ("efi/loader/entries/b.conf", ENTRY)],
    &[("efi/EFI/Linux/x.efi", ""), ("efi/loader/loader.conf", "timeout 3\n")],
    &[("boot/extlinux/extlinux.conf", "")],
    &[("boot/config.txt", ""), ("boot/cmdline.txt", "ro quiet\n")],
    &[("boot/cmdline.txt", ""), ("boot/config.txt", "[all]\n")],
];

/// The machines as folders, in memory where there is a file system for that.
fn machines() -> &'static [PathBuf] {
    static DIRS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    DIRS.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let top = if memory.is_dir() { memory } else { std::env::temp_dir() };
        // One name, so that runs do not fill the memory.
        let top = top.join("rtproof-fuzz-boot");
        let machine = |(number, files): (usize, &&[(&str, &str)])| {
            let dir = top.join(number.to_string());
            for (path, text) in *files {
                write(&dir.join(path), text.as_bytes());
            }
            dir
        };
        MACHINES.iter().enumerate().map(machine).collect()
    })
}

#[expect(clippy::disallowed_methods, reason = "a machine of our own")]
fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn apply(dir: &Path, changes: &[Change]) {
    for change in changes {
        let Change::File { path, content, .. } = change else { continue };
        let path = dir.join(path.trim_start_matches('/'));
        match content {
            Some(Bytes(bytes)) => write(&path, bytes),
            None => fs::remove_file(path).unwrap(),
        }
    }
}

/// Makes the entry and takes it out again.
fn play(dir: &Path, root: &Root, loader: &Loader, made: &BootChanges) {
    apply(dir, &made.entry);
    let again = boot::detect(root).unwrap();
    assert_eq!(again.entry_cmdline(root).unwrap().as_ref(), Some(&made.cmdline));
    assert_eq!(again.default, loader.default);
    apply(dir, &made.confirm);
    let confirmed = boot::detect(root).unwrap();
    assert_eq!(confirmed.entry_cmdline(root).unwrap().as_ref(), Some(&made.cmdline));
    apply(dir, &confirmed.removal(root).unwrap());
    assert_eq!(boot::detect(root).unwrap().entry(root).unwrap(), None);
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&which, text)) = bytes.split_first() else { return };
    let which = usize::from(which) % MACHINES.len();
    let dir = &machines()[which];
    let file = dir.join(MACHINES[which][0].0);
    write(&file, text);
    let root = Root::dir(dir).unwrap();
    let Ok(loader) = boot::detect(&root) else { return };
    if loader.entry(&root).is_ok_and(|entry| entry.is_none()) {
        let words = [Word::set("isolcpus=2,3"), Word::remove("quiet"), Word::add("x=a b")];
        if let Ok(made) = loader.real_time(&root, &words)
            && loader.no_entry.is_none()
        {
            boot::cmdline::check(&made.cmdline, &words).unwrap();
            play(dir, &root, &loader, &made);
        }
    }
});
