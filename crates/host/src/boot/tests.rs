//! Golden trees: machines in `fixtures/boot`, each one file, before and after the entry, the trial
//! and the confirmation. Run with `SNAPSHOTS=overwrite` what comes after is written anew.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;
use crate::change::{Bytes, Change};

/// What the engine does with a change, in short.
fn apply(dir: &Path, changes: &[Change]) {
    for change in changes {
        match change {
            Change::File { path, content, .. } => match content {
                Some(Bytes(bytes)) => write(dir, path, bytes),
                None => fs::remove_file(at(dir, path)).unwrap(),
            },
            Change::GrubEnv { path, key, value } => {
                let block = fs::read_to_string(at(dir, path)).unwrap();
                let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
                lines.retain(|line| !line.ends_with("##"));
                let new = format!("{key}={value}");
                match lines.iter_mut().find(|line| line.starts_with(&format!("{key}="))) {
                    Some(line) => *line = new,
                    None => lines.push(new),
                }
                write(dir, path, grub_env(&lines).as_bytes());
            }
            Change::EfiVariable { name, value } => {
                write(dir, &format!("/sys/firmware/efi/efivars/{name}"), &efi_text(value));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn at(dir: &Path, path: &str) -> PathBuf {
    dir.join(path.trim_start_matches('/'))
}

fn write(dir: &Path, path: &str, bytes: &[u8]) {
    let path = at(dir, path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn grub_env(lines: &[String]) -> String {
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert!(text.len() <= 1024);
    text += &"#".repeat(1024 - text.len());
    text
}

fn efi_text(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
    [7, 0, 0, 0].into_iter().chain(units).collect()
}

type Files = BTreeMap<String, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = format!("/{}", path.strip_prefix(dir).unwrap().display());
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// One file of a fixture: `-- PATH [FORM]`, then its lines after a bar. Forms: `env` (GRUB's
/// block, filled up), `efi` (a text of UEFI), `hex`, `open` (the last line has no end), `uki`
/// (sections of an image, `NAME TEXT`).
fn read_file(form: &str, lines: &[&str]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    match form {
        "" => text.into_bytes(),
        "open" => text.trim_end_matches('\n').into(),
        "crlf" => text.replace('\n', "\r\n").into_bytes(),
        "env" => grub_env(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>()).into(),
        "efi" => efi_text(text.trim_end()),
        "hex" => {
            let digits: String = text.split_whitespace().collect();
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect()
        }
        "uki" => {
            let sections: Vec<(&str, String)> = lines
                .iter()
                .map(|line| line.split_once(' ').unwrap())
                .map(|(name, text)| (name, text.replace("\\n", "\n")))
                .collect();
            let sections: Vec<(&str, &str)> =
                sections.iter().map(|(name, text)| (*name, text.as_str())).collect();
            efi::image(&sections)
        }
        other => panic!("{other}"),
    }
}

/// What changed, in the form of a fixture.
fn written(before: &Files, after: &Files) -> String {
    let mut out = String::new();
    for (path, bytes) in after {
        if before.get(path) == Some(bytes) {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        let (form, text) = match () {
            () if path.contains("/efivars/") => {
                let units = bytes[4..].chunks_exact(2);
                let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
                let text = String::from_utf16(&units.collect::<Vec<_>>()).unwrap();
                (" efi", text.trim_end_matches('\0').to_owned() + "\n")
            }
            () if path.ends_with("grubenv") => {
                assert_eq!(bytes.len(), 1024);
                (" env", text.trim_end_matches('#').to_owned())
            }
            () if text.contains("\r\n") => {
                assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
                (" crlf", text.replace("\r\n", "\n"))
            }
            () if !text.ends_with('\n') => (" open", text.into_owned() + "\n"),
            () => ("", text.into_owned()),
        };
        writeln!(out, "-- {path}{form}").unwrap();
        for line in text.lines() {
            writeln!(out, "|{line}").unwrap();
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        writeln!(out, "-- {path} gone").unwrap();
    }
    out
}

/// Words of a fixture: `set NAME=VALUE`, `add ...`, `remove NAME`.
fn word(line: &str) -> Word {
    let (wanted, parameter) = line.split_once(' ').unwrap();
    match wanted {
        "set" => Word::set(parameter),
        "add" => Word::add(parameter),
        "remove" => Word::remove(parameter),
        other => panic!("{other}"),
    }
}

/// What the loader and its changes say.
fn steps_text(loader: &Loader, made: &BootChanges) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            writeln!(out, "{name}: {}", value.trim_end().replace('\n', "\n    ")).unwrap();
        }
    };
    line("loader", &format!("{:?}, {}", loader.kind, loader.name));
    line("files", &loader.files.join(" "));
    for (name, entry) in [("default", &loader.default), ("base", &loader.base)] {
        let Some(entry) = entry else { continue };
        line(name, &format!("{} ({})", entry.title, entry.id));
        line("  kernel", &entry.kernel);
        line("  initrd", &entry.initrd.join(" "));
        line("  command line", &entry.cmdline);
        line("  in", &format!("{}:{}", entry.file, entry.line));
    }
    line("secure boot", loader.secure_boot.map_or("", |is_on| if is_on { "on" } else { "off" }));
    line("no entry", loader.no_entry.as_deref().unwrap_or_default());
    line("no trial", loader.no_trial.as_deref().unwrap_or_default());
    line("command line", &made.cmdline);
    line("reboot", made.reboot.as_deref().unwrap_or_default());
    line("fallback", &made.fallback);
    line("printed", made.printed.as_deref().unwrap_or_default());
    out
}

/// Writes the files of a fixture.
fn lay_out(dir: &Path, text: &str) {
    let (_, rest) = text.split_once("== before\n").unwrap();
    let (tree, _) = rest.split_once("== words\n").unwrap();
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in tree.lines() {
        match line.starts_with("-- ") {
            true => parts.push(vec![line]),
            false => parts.last_mut().unwrap().push(line.strip_prefix('|').unwrap()),
        }
    }
    for part in parts {
        let head = part[0].trim_start_matches("-- ");
        let (path, form) = head.split_once(' ').unwrap_or((head, ""));
        write(dir, path, &read_file(form, &part[1..]));
    }
}

/// A machine through all its states; gives the fixture as it should be.
fn played(text: &str) -> String {
    let (head, rest) = text.split_once("== before\n").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let before_text: String =
        rest.split_inclusive('\n').take_while(|line| !line.starts_with("== after")).collect();
    let (_, words) = before_text.split_once("== words\n").unwrap();
    lay_out(dir, text);
    let words: Vec<Word> = words.lines().filter(|line| !line.is_empty()).map(word).collect();
    let before = files(dir);
    let root = Root::dir(dir).unwrap();
    let loader = detect(&root).unwrap();
    assert_eq!(loader.entry_state(&root).unwrap(), OwnEntryState::Absent);
    let made = loader.real_time(&root, &words).unwrap();
    let mut out = format!("{head}== before\n{before_text}");

    apply(dir, &made.entry);
    let with_entry = files(dir);
    write!(out, "== after the entry\n{}", written(&before, &with_entry)).unwrap();
    if loader.no_entry.is_none() {
        // Read back; the default is what it was; the same again changes nothing.
        let again = detect(&root).unwrap();
        assert_eq!(again.entry_cmdline(&root).unwrap().as_ref(), Some(&made.cmdline));
        assert_eq!((&again.default, &again.base), (&loader.default, &loader.base));
        assert_eq!(again.no_trial, loader.no_trial);
        assert_eq!(again.real_time(&root, &words).unwrap(), made);
        assert_eq!(again.trial(&root).unwrap(), made.trial);
        assert_eq!(again.confirm(&root).unwrap(), made.confirm);
        assert_eq!(again.entry_state(&root).unwrap(), OwnEntryState::Written);
        check_with_tools(dir);

        apply(dir, &made.trial);
        let with_trial = files(dir);
        write!(out, "== after the trial\n{}", written(&with_entry, &with_trial)).unwrap();
        let is_armed = !made.trial.is_empty();
        let standing = if is_armed { OwnEntryState::Armed } else { OwnEntryState::Written };
        assert_eq!(again.entry_state(&root).unwrap(), standing);
        restore(dir, &with_entry);

        apply(dir, &made.confirm);
        write!(out, "== after the confirmation\n{}", written(&with_entry, &files(dir))).unwrap();
        let confirmed = detect(&root).unwrap();
        assert_eq!(confirmed.entry_state(&root).unwrap(), OwnEntryState::Default);
        assert_eq!(confirmed.entry_cmdline(&root).unwrap().as_ref(), Some(&made.cmdline));
        check_with_tools(dir);
        apply(dir, &confirmed.removal(&root).unwrap());
        let removed = files(dir);
        for (path, bytes) in &before {
            // Without a journal it is not known what the default was by name.
            let is_kept = path.ends_with("grubenv") && loader.kind == LoaderKind::GrubEntries;
            let text = String::from_utf8_lossy(bytes);
            assert!(is_kept || removed[path] == *bytes, "{path}, wanted:\n{text}");
        }
        assert_eq!(removed.len(), before.len(), "{:?}", removed.keys());
        assert_eq!(loader.removal(&root).unwrap(), []);
    } else {
        assert_eq!((&made.trial, &made.confirm), (&vec![], &vec![]));
        assert_eq!(with_entry, before);
    }
    write!(out, "== after all this was told\n{}", steps_text(&loader, &made)).unwrap();
    out
}

fn restore(dir: &Path, wanted: &Files) {
    for path in files(dir).keys().filter(|path| !wanted.contains_key(*path)) {
        fs::remove_file(at(dir, path)).unwrap();
    }
    for (path, bytes) in wanted {
        write(dir, path, bytes);
    }
}

/// Asks a boot loader's own tool; under CI one that is missing is a failure.
fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let run = Command::new(name).args(arguments).output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(!is_ci, "{name}: {error}; scripts/deps.sh installs it");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name} {arguments:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &said)
}

fn check_with_tools(dir: &Path) {
    for path in files(dir).keys() {
        let file = at(dir, path);
        let file = file.to_str().unwrap();
        if path.ends_with("/grub.cfg") || path.ends_with("/custom.cfg") {
            tool("grub-script-check", &[file]);
        }
        if path.ends_with("/grubenv") {
            tool("grub-editenv", &[file, "list"]);
        }
    }
}

/// bootctl wants a file system of its own: a tmpfs over the folder, in a mount namespace. Only the
/// namespace sees it, and it ends with the shell.
const BOOTCTL: &str = "mkdir \"$2\" && cp -a \"$1\"/. \"$2\" && mount -t tmpfs none \"$1\" \
    && cp -a \"$2\"/. \"$1\" && \"$0\" --esp-path=\"$1\" --boot-path=\"$1\" list --no-pager";

/// What bootctl says of the entries below a mount: (identity, options, whether it is the default).
fn bootctl(dir: &Path, mount: &str) -> Option<Vec<(String, String, bool)>> {
    let cached = std::env::var("HOME").map(|home| home + "/.cache/rtproof-bootctl/bin/bootctl");
    let cached = cached.ok().filter(|path| Path::new(path).exists());
    let program = cached.unwrap_or_else(|| "bootctl".into());
    tool(&program, &["--version"])?;
    let copy = dir.join("copy");
    let listed = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", BOOTCTL, &program])
        .args([at(dir, mount), copy.clone()])
        .env("SYSTEMD_RELAX_ESP_CHECKS", "1")
        .env("SYSTEMD_RELAX_XBOOTLDR_CHECKS", "1")
        .output()
        .unwrap();
    fs::remove_dir_all(copy).unwrap();
    let said = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.status.success(), "{said}{}", String::from_utf8_lossy(&listed.stderr));
    let entries = said.split("\n\n").map(|entry| {
        let value = |key: &str| {
            let mut lines = entry.lines().filter_map(|line| line.trim().split_once(": "));
            let found = lines.find(|(known, _)| *known == key);
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        (value("id"), value("options"), value("title").contains("(default)"))
    });
    Some(entries.collect())
}

#[test]
fn machines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/boot");
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    let is_overwriting = std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite");
    for path in names {
        let text = fs::read_to_string(&path).unwrap();
        let played = std::panic::catch_unwind(|| played(&text));
        let played = played.unwrap_or_else(|_| panic!("{}", path.display()));
        if is_overwriting {
            fs::write(&path, &played).unwrap();
        }
        let diff = text.lines().zip(played.lines()).find(|(a, b)| a != b);
        assert!(
            is_overwriting || text == played,
            "{}: first difference {diff:?}; SNAPSHOTS=overwrite writes it anew",
            path.display()
        );
    }
}

/// The tree of a fixture, as it is before.
fn tree(name: &str) -> (tempfile::TempDir, Root) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/boot");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &text);
    let root = Root::dir(dir.path()).unwrap();
    (dir, root)
}

#[test]
fn bootctl_reads_what_we_wrote() {
    for (name, mount) in [
        ("debian-systemd-boot.txt", "/efi"),
        ("arch-systemd-boot.txt", "/boot"),
        ("uki.txt", "/efi"),
    ] {
        let (dir, root) = tree(name);
        let loader = detect(&root).unwrap();
        let made = loader.real_time(&root, &[Word::set("isolcpus=2-3")]).unwrap();
        apply(dir.path(), &made.entry);
        // It wants the kernels to be there.
        for path in [&loader.base.as_ref().unwrap().kernel]
            .into_iter()
            .chain(&loader.base.as_ref().unwrap().initrd)
        {
            if !at(dir.path(), mount).join(path.trim_start_matches('/')).exists() {
                write(dir.path(), &format!("{mount}{path}"), b"");
            }
        }
        let Some(before) = bootctl(dir.path(), mount) else { return };
        let ours = |listed: &[(String, String, bool)]| {
            listed.iter().find(|(id, _, _)| *id == loader.id).unwrap().clone()
        };
        assert_eq!(ours(&before).1, made.cmdline, "{name}");
        if loader.kind == LoaderKind::UnifiedImage {
            continue;
        }
        let default = loader.default.as_ref().unwrap();
        assert!(before.iter().any(|(id, _, is_it)| *is_it && *id == default.id), "{before:?}");
        apply(dir.path(), &made.confirm);
        assert!(ours(&bootctl(dir.path(), mount).unwrap()).2, "{name}");
    }
}

fn message<T>(result: Result<T, BootError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn what_others_made_is_refused() {
    let words = [Word::set("nosmt")];
    for (name, path, text) in [
        ("fedora-bls.txt", "/boot/loader/entries/rtproof-real-time.conf", "title x\nlinux /x\n"),
        ("debian-systemd-boot.txt", "/efi/loader/entries/rtproof-real-time.conf", "title x\n"),
        ("raspberry-pi-os.txt", "/boot/firmware/tryboot.txt", "[all]\n"),
        ("debian-grub.txt", "/boot/grub/custom.cfg", "a\n# rtproof begin\n"),
        ("debian-grub.txt", "/boot/grub/custom.cfg", "a\nmenuentry x {\n"),
        ("debian-grub.txt", "/boot/grub/grub.cfg", "a\nmenuentry 'x' {\n"),
        ("debian-extlinux.txt", "/boot/extlinux/extlinux.conf", "label a\n# rtproof end\n"),
    ] {
        let (dir, root) = tree(name);
        write(dir.path(), path, text.as_bytes());
        let before = files(dir.path());
        let said = match detect(&root) {
            Ok(loader) => message(loader.real_time(&root, &words)),
            Err(error) => error.to_string(),
        };
        assert!(said.starts_with(path), "{said}");
        assert_eq!(files(dir.path()), before);
    }
}

#[test]
fn a_line_that_the_kernel_would_cut_is_refused() {
    for name in ["debian-grub.txt", "debian-extlinux.txt", "qemu-kernel.txt", "uki.txt"] {
        let (dir, root) = tree(name);
        let loader = detect(&root).unwrap();
        let long = [Word::set(format!("x={}", "y".repeat(2040)))];
        let said = message(loader.real_time(&root, &long));
        assert!(said.contains("takes 2047"), "{said}");
        let fits = [Word::set(format!("x={}", "y".repeat(1100)))];
        loader.real_time(&root, &fits).unwrap();
        write(dir.path(), "/proc/sys/kernel/arch", b"armv7l\n");
        let said = message(detect(&root).unwrap().real_time(&root, &fits));
        assert!(said.contains("takes 1023"), "{said}");
    }
}

#[test]
fn other_words_take_the_place_of_those_before() {
    for name in ["debian-grub.txt", "fedora-bls.txt", "debian-extlinux.txt", "raspberry-pi-os.txt"]
    {
        let (dir, root) = tree(name);
        let loader = detect(&root).unwrap();
        apply(dir.path(), &loader.real_time(&root, &[Word::set("isolcpus=1")]).unwrap().entry);
        apply(dir.path(), &loader.confirm(&root).unwrap());
        let again = detect(&root).unwrap();
        let made = again.real_time(&root, &[Word::set("nohz_full=1")]).unwrap();
        assert!(!made.cmdline.contains("isolcpus"), "{name}: {}", made.cmdline);
        apply(dir.path(), &made.entry);
        assert_eq!(again.entry_cmdline(&root).unwrap(), Some(made.cmdline));
    }
}

#[test]
fn defaults_of_grub_are_found() {
    let (dir, root) = tree("debian-grub.txt");
    let menu = fs::read_to_string(at(dir.path(), "/boot/grub/grub.cfg")).unwrap();
    let simple = "gnulinux-simple-0a1b2c3d-0000-4000-8000-000000000001";
    let stock = "Debian GNU/Linux, with Linux 6.1.0-50-amd64";
    fs::remove_file(at(dir.path(), "/proc/sys/kernel/osrelease")).unwrap();
    for (spec, title) in [
        ("0", "Debian GNU/Linux"),
        ("1>2", stock),
        ("1", "Debian GNU/Linux, with Linux 6.1.0-50-rt-amd64"),
        (simple, "Debian GNU/Linux"),
        (&format!("Advanced options for Debian GNU/Linux>{stock}"), stock),
        ("nothing of that name", "Debian GNU/Linux"),
        ("7", "Debian GNU/Linux"),
        ("${saved_entry}", stock),
    ] {
        let menu = menu.replace("set default=\"0\"", &format!("set default=\"{spec}\""));
        write(dir.path(), "/boot/grub/grub.cfg", menu.as_bytes());
        let env = ["# GRUB Environment Block".to_owned(), "saved_entry=1>2".to_owned()];
        write(dir.path(), "/boot/grub/grubenv", grub_env(&env).as_bytes());
        let loader = detect(&root).unwrap();
        assert_eq!(loader.default.as_ref().unwrap().title, title, "{spec}");
        assert_eq!(loader.base, loader.default, "{spec}");
    }
    // An entry that was written into custom.cfg by hand cannot be evaluated.
    let menu = menu.replace("set default=\"0\"", "set default=\"mine\"");
    write(dir.path(), "/boot/grub/grub.cfg", menu.as_bytes());
    write(dir.path(), "/boot/grub/custom.cfg", b"menuentry mine {\nlinux /x\n}\n");
    write(dir.path(), "/proc/sys/kernel/osrelease", b"6.1.0-50-amd64\n");
    let loader = detect(&root).unwrap();
    assert!(loader.default.is_none() && loader.base.unwrap().kernel.ends_with("6.1.0-50-amd64"));
}

#[test]
fn a_trial_needs_a_block_that_grub_can_write() {
    let (dir, root) = tree("debian-grub.txt");
    let why = || detect(&root).unwrap().no_trial.unwrap_or_default();
    assert_eq!(why(), "");
    write(dir.path(), "/boot/grub/grubenv", b"# GRUB Environment Block\n");
    assert!(why().contains("has 25 bytes"), "{}", why());
    fs::remove_file(at(dir.path(), "/boot/grub/grubenv")).unwrap();
    assert!(why().contains("grub-editenv /boot/grub/grubenv create"));
    let menu = fs::read_to_string(at(dir.path(), "/boot/grub/grub.cfg")).unwrap();
    write(dir.path(), "/boot/grub/grub.cfg", menu.replace("next_entry", "next").as_bytes());
    assert!(why().contains("does not look at next_entry"));
    let loader = detect(&root).unwrap();
    let made = loader.real_time(&root, &[Word::set("nosmt")]).unwrap();
    assert!(made.trial.is_empty() && made.reboot.is_none() && made.fallback.contains("menu"));
    assert!(!made.entry.is_empty() && !made.confirm.is_empty());
}

#[test]
fn a_condition_like_ours_in_the_entry_is_no_end() {
    let (dir, root) = tree("debian-grub.txt");
    let menu = fs::read_to_string(at(dir.path(), "/boot/grub/grub.cfg")).unwrap();
    let odd = "\tif [ -z \"${boot_once}\" ]; then\n\t  true\n\tfi\n\techo\t'Loading Linux";
    write(
        dir.path(),
        "/boot/grub/grub.cfg",
        menu.replace("\techo\t'Loading Linux", odd).as_bytes(),
    );
    let loader = detect(&root).unwrap();
    let made = loader.real_time(&root, &[Word::set("nosmt")]).unwrap();
    apply(dir.path(), &made.entry);
    apply(dir.path(), &made.confirm);
    assert_eq!(loader.entry_cmdline(&root).unwrap(), Some(made.cmdline.clone()));
    assert_eq!(loader.confirm(&root).unwrap(), made.confirm, "twice is once");
    check_with_tools(dir.path());
}

#[test]
fn without_an_entry_there_is_nothing_to_confirm() {
    let (_dir, root) = tree("debian-grub.txt");
    let loader = detect(&root).unwrap();
    assert!(message(loader.confirm(&root)).contains("make it first"));
    assert!(message(loader.trial(&root)).contains("make it first"));
}

#[test]
fn a_menu_of_many_entries_is_read() {
    let (dir, root) = tree("debian-grub.txt");
    let entry = "menuentry x {\nlinux /vmlinuz-1-a ro\n}\n".repeat(99_990);
    let menu = fs::read_to_string(at(dir.path(), "/boot/grub/grub.cfg")).unwrap();
    write(dir.path(), "/boot/grub/grub.cfg", (entry.clone() + &menu).as_bytes());
    let loader = detect(&root).unwrap();
    assert_eq!(loader.default.unwrap().kernel, "/vmlinuz-1-a");
    assert_eq!(loader.base.unwrap().title, "Debian GNU/Linux");
    write(dir.path(), "/boot/grub/grub.cfg", (entry.repeat(2) + &menu).as_bytes());
    assert!(message(detect(&root)).contains("more than 100000 menu entries"));
    write(dir.path(), "/boot/grub/grub.cfg", &vec![b'x'; 9 << 20]);
    assert!(message(detect(&root)).contains("larger than 8 MiB"));
    write(dir.path(), "/boot/grub/grub.cfg", b"a\nb\n\xff\n");
    assert!(message(detect(&root)).contains("grub.cfg:3: a byte that is no UTF-8"));
}

/// Pieces that change what a file means.
const PIECES: &[&[u8]] = &[
    b"\n",
    b" ",
    b"{",
    b"}",
    b"'",
    b"\"",
    b"\\",
    b"$x",
    b"#",
    b"=",
    b"\r",
    b"\xff",
    b"\0",
    b"default ",
    b"label x\n",
    b"menuentry x {\n",
    b"linux /v ro\n",
    b"# rtproof begin\n",
    b"# rtproof end\n",
    b"options ",
    b"[pi4]\n",
    b"cmdline=",
    b" -- ",
    b"set default=",
    b"blscfg\n",
    b"title x\n",
];

#[test]
fn damaged_files_are_an_error_or_an_entry_that_reads_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/boot");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    let words = [Word::set("isolcpus=2,3"), Word::remove("quiet"), Word::add("x=a b")];
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (dir, root) = tree(&name);
        let dir = dir.path();
        let whole = files(dir);
        for _ in 0..40 {
            let (path, bytes) = whole.iter().nth(random(whole.len())).unwrap();
            let mut bytes = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len() + 1);
                let gone = random(8).min(bytes.len() - at);
                bytes.splice(at..at + gone, PIECES[random(PIECES.len())].iter().copied());
            }
            write(dir, path, &bytes);
            let before = files(dir);
            let is_new = |loader: &Loader| matches!(loader.entry(&root), Ok(None));
            if let Ok(loader) = detect(&root)
                && loader.no_entry.is_none()
                && is_new(&loader)
                && let Ok(made) = loader.real_time(&root, &words)
            {
                apply(dir, &made.entry);
                let again = detect(&root).unwrap();
                assert_eq!(again.entry_cmdline(&root).unwrap().as_ref(), Some(&made.cmdline));
                assert_eq!(again.default, loader.default, "{name} {path} {:?}", before[path]);
                apply(dir, &again.removal(&root).unwrap());
                assert_eq!(files(dir), before, "{name} {path}");
            }
            restore(dir, &whole);
        }
    }
}

#[test]
fn a_kernel_that_comes_does_not_take_the_default() {
    let kernel = |root: &Root| detect(root).unwrap().default.unwrap().kernel;
    for (name, is_kept) in [
        ("debian-grub.txt", true),
        ("debian-grub-lvm.txt", true),
        ("grub-without-custom.txt", false),
    ] {
        let (dir, root) = tree(name);
        let before = kernel(&root);
        let release = before.rsplit('/').next().unwrap().split_once('-').unwrap().1.to_owned();
        let kept = detect(&root).unwrap().keep(&root).unwrap();
        assert_eq!(kept.is_some(), is_kept, "{name}");
        // As update-grub does: the newest is the first entry of the menu.
        let path = dir.path().join("boot/grub/grub.cfg");
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once("\nsubmenu").unwrap_or((&text, ""));
        let first =
            first.replace(&release, "9.9.9-rt-amd64").replace("default=\"1>", "default=\"0>");
        fs::write(&path, format!("{first}\nsubmenu{rest}")).unwrap();
        let Some(kept) = kept else { continue };
        assert!(kernel(&root).ends_with("9.9.9-rt-amd64"), "{name}");
        apply(dir.path(), std::slice::from_ref(&kept));
        assert_eq!(kernel(&root), before, "{name}");
        let Change::File { path, .. } = kept else { panic!() };
        let text = fs::read_to_string(at(dir.path(), &path)).unwrap();
        assert!(text.contains("-advanced-") && text.contains("${boot_once}"), "{text}");
        // An entry of ours that is confirmed still decides, and goes by that default.
        let loader = detect(&root).unwrap();
        let made = loader.real_time(&root, &[]).unwrap();
        apply(dir.path(), &made.entry);
        apply(dir.path(), &detect(&root).unwrap().confirm(&root).unwrap());
        assert_eq!(detect(&root).unwrap().entry_state(&root).unwrap(), OwnEntryState::Default);
        let known = Command::new("grub-script-check").arg(at(dir.path(), &path)).output();
        assert!(known.is_err() || known.unwrap().status.success(), "{name}");
    }
}
