//! Packages that are played: what is installed, what is removed again, what others did meanwhile.

use std::{cell::Cell, io};

use super::*;
use crate::tune::kinds::package::{Interruption, Packages};

const FILE: &str = "etc/packages";

const META: &str = "linux-image-rt-amd64";

const IMAGE: &str = "linux-image-6.1.0-56-rt-amd64";

const VERSION: &str = "6.1.192-2";

/// A package manager whose state is a file of a tree: a line for each package, with name,
/// architecture, status and version.
#[derive(Debug)]
pub(super) struct PlayedPackages {
    tree: std::path::PathBuf,
    /// What the next installation or removal complains of, half way.
    fails: Cell<Option<&'static str>>,
    /// Additional lines of a simulation.
    beside: RefCell<String>,
    worked: RefCell<Vec<String>>,
}

impl PlayedPackages {
    pub(super) fn new(tree: &Tree) -> Self {
        let (fails, beside, worked) = (Cell::default(), RefCell::default(), RefCell::default());
        Self { tree: tree.path().to_owned(), fails, beside, worked }
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.tree.join(FILE)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Gives packages a status; `None`: nothing is left of them. The file keeps its time.
    fn set(&self, names: &[&str], status: Option<&str>) {
        let path = self.tree.join(FILE);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let mut lines = self.lines();
        for name in names {
            let name = name.split(':').next().unwrap();
            lines.retain(|line| !line.starts_with(&format!("{name}\t")));
            lines.extend(status.map(|status| format!("{name}\tamd64\t{status}\t{VERSION}")));
        }
        lines.sort();
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn is_interrupted(&self) -> bool {
        self.tree.join("var/lib/dpkg/updates/0001").exists()
    }
}

fn answer(success: bool, text: &str) -> io::Result<ToolAnswer> {
    Ok(ToolAnswer { success, text: text.into(), complaint: text.into() })
}

impl Packages for PlayedPackages {
    fn ask(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer> {
        let has = |name: &str| {
            self.lines().iter().any(|it| it.starts_with(&format!("{name}\tamd64\tinstalled")))
        };
        match (program, arguments) {
            ("apt-get", ["-s", "-q", "--no-install-recommends", "install", name]) => {
                assert_eq!(*name, META);
                let new = [IMAGE, META].into_iter().filter(|name| !has(name));
                let lines = new.map(|name| format!("Inst {name} ({VERSION} Debian:12 [amd64])\n"));
                answer(true, &(lines.collect::<String>() + &self.beside.borrow()))
            }
            ("apt-get", ["-s", "-q", "purge" | "remove", names @ ..]) => {
                let lines = names.iter().map(|name| format!("Purg {name} [{VERSION}]\n"));
                answer(true, &(lines.collect::<String>() + &self.beside.borrow()))
            }
            ("dpkg-query", ["-W", _, names @ ..]) => {
                let is_asked =
                    |line: &&String| names.iter().any(|it| line.starts_with(&format!("{it}\t")));
                let found: Vec<String> = self.lines().iter().filter(is_asked).cloned().collect();
                let said = "dpkg-query: no packages found matching x";
                let is_all = found.len() == names.len();
                let complaint = if is_all { String::new() } else { said.into() };
                Ok(ToolAnswer { success: is_all, text: found.join("\n"), complaint })
            }
            ("dpkg", ["--audit"]) => answer(true, ""),
            other => panic!("{other:?}"),
        }
    }

    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
        show: &dyn Fn(&str),
    ) -> io::Result<ToolAnswer> {
        self.worked.borrow_mut().push(format!("{program} {}", arguments.join(" ")));
        show("Reading package lists...");
        let is_fetch = arguments.contains(&"--download-only");
        assert_eq!(interruption == Interruption::Ends, is_fetch);
        let verb = ["install", "purge", "remove", "--remove", "--purge"];
        let at = arguments.iter().position(|it| verb.contains(it)).unwrap();
        let names = &arguments[at + 1..];
        if program == "apt-get" && self.is_interrupted() {
            return answer(false, "E: dpkg was interrupted, you must manually run");
        }
        let failed = if is_fetch { None } else { self.fails.take() };
        match arguments[at] {
            "install" => assert_eq!(names, [format!("{META}={VERSION}")]),
            _ => assert!(!names.is_empty()),
        }
        match arguments[at] {
            _ if is_fetch => {}
            "install" if failed.is_some() => self.set(&[IMAGE], Some("half-configured")),
            "install" => self.set(&[IMAGE, META], Some("installed")),
            "purge" if failed.is_some() => self.set(&names[..1], Some("config-files")),
            "purge" | "--purge" => self.set(names, None),
            _ => self.set(names, Some("config-files")),
        }
        if program == "dpkg" {
            let _ = fs::remove_file(self.tree.join("var/lib/dpkg/updates/0001"));
        }
        match failed {
            Some(complaint) => answer(false, complaint),
            None => answer(true, ""),
        }
    }
}

fn tree(packages: &str) -> Tree {
    Tree::new(&[
        (FILE, packages),
        ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n"),
        ("var/lib/dpkg/updates/.keep", ""),
    ])
}

fn asked() -> Change {
    Change::Package { manager: PackageManager::Apt, name: META.into(), adds: Vec::new() }
}

/// A machine with nothing of it, or with what `packages` says.
struct Played {
    tree: Tree,
    root: Root,
    packages: PlayedPackages,
}

impl Played {
    fn new(packages: &str) -> Self {
        let tree = tree(packages);
        fs::remove_file(tree.path().join("var/lib/dpkg/updates/.keep")).unwrap();
        let root = tree.root();
        let packages = PlayedPackages::new(&tree);
        Self { tree, root, packages }
    }

    fn machine(&self) -> Machine<'_> {
        Machine::new(&self.root, &NoTasks).unwrap().with_packages(&self.packages)
    }

    fn now(&self) -> String {
        text(&self.tree, FILE)
    }

    fn interrupt(&self) {
        fs::write(self.tree.path().join("var/lib/dpkg/updates/0001"), "x").unwrap();
    }
}

#[test]
fn a_kernel_comes_with_its_packages_and_goes_with_them() {
    let it = Played::new("udev\tamd64\tinstalled\t252\n");
    let lines = RefCell::new(Vec::new());
    let show = |line: &str| lines.borrow_mut().push(line.to_owned());
    let machine = it.machine().showing(&show);
    let applied = apply_to(&machine, &[asked()]).unwrap();
    assert!(applied.pending[0].1.contains("6.1.0-56-rt-amd64 was booted"), "{applied:?}");
    assert_eq!(lines.borrow().len(), 2);
    assert!(it.now().contains(&format!("{META}\tamd64\tinstalled")));
    let again = apply_to(&machine, &[asked()]).unwrap();
    assert_eq!((again.done, again.was_so), (0, 1));
    let number = Journal::list(&machine).unwrap()[0].number;
    let mut first = Journal::open_number(&machine, number).unwrap();
    let undone = undo(&machine, &mut first, &mut |_| {}).unwrap();
    assert_eq!(undone[0].outcome, Outcome::Restored);
    assert_eq!(it.now(), "udev\tamd64\tinstalled\t252\n");
    let worked = it.packages.worked.borrow();
    assert!(worked[0].contains("--download-only") && !worked[1].contains("--download-only"));
    assert!(worked[2].ends_with(&format!("purge {IMAGE}:amd64 {META}:amd64")), "{worked:?}");
    assert!(!worked[2].contains("autoremove"));
}

#[test]
fn what_cannot_be_undone_exactly_is_not_begun() {
    let it = Played::new("");
    for (line, word) in [
        ("Inst udev [252.1] (252.39 Debian:12 [amd64])\n", "also upgrade udev"),
        ("Remv linux-image-cloud-amd64 [6.1]\n", "also remove linux-image-cloud-amd64"),
        ("Inst udev\n", "apt's own form"),
    ] {
        it.packages.beside.replace(line.into());
        let error = apply_to(&it.machine(), &[asked()]).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    it.packages.beside.take();
    it.interrupt();
    let error = apply_to(&it.machine(), &[asked()]).unwrap_err().to_string();
    assert!(error.contains("run dpkg --configure -a first"), "{error}");
    assert_eq!(it.now(), "");
    assert!(it.packages.worked.borrow().is_empty());
    // A plan that was made for other packages.
    let it = Played::new("");
    let Change::Package { manager, name, mut adds } = it.machine().named(asked()).unwrap() else {
        panic!()
    };
    adds[0].version = "6.1.191-1".into();
    let error = apply_to(&it.machine(), &[Change::Package { manager, name, adds }]).unwrap_err();
    assert!(error.to_string().contains("apt would now add"), "{error}");
    // A folder of files.
    let machine = Machine::new(&it.root, &NoTasks).unwrap();
    let error = apply_to(&machine, &[asked()]).unwrap_err().to_string();
    assert!(error.contains("on the machine itself alone"), "{error}");
}

#[test]
fn an_installation_that_fails_is_taken_back() {
    let it = Played::new("");
    it.packages.fails.set(Some("E: Sub-process /usr/bin/dpkg returned an error code (1)"));
    let error = apply_to(&it.machine(), &[asked()]).unwrap_err().to_string();
    assert!(error.contains("returned an error code (1)"), "{error}");
    assert!(error.contains("everything was taken back"), "{error}");
    assert_eq!(it.now(), "");
}

#[test]
fn settings_that_an_earlier_removal_left_stay() {
    let before = format!("{IMAGE}\tamd64\tconfig-files\t6.1.190-1\n");
    let it = Played::new(&before);
    apply_to(&it.machine(), &[asked()]).unwrap();
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored]);
    assert_eq!(it.now(), format!("{IMAGE}\tamd64\tconfig-files\t{VERSION}\n"));
}

#[test]
fn what_others_made_of_it_stays() {
    let applied = || {
        let it = Played::new("");
        apply_to(&it.machine(), &[asked()]).unwrap();
        it
    };
    // Upgraded: the newer one stays, the image that came with it goes.
    let it = applied();
    let newer = format!("{META}\tamd64\tinstalled\t6.1.193-1\n");
    fs::write(
        it.tree.path().join(FILE),
        it.now().replace(&it.now()[it.now().find(META).unwrap()..], &newer),
    )
    .unwrap();
    let outcome = undo_on(&it.machine()).remove(0);
    assert!(matches!(outcome, Outcome::LeftAlone { .. }), "{outcome:?}");
    assert_eq!(it.now(), newer);
    // Others depend on it.
    let it = applied();
    let with = it.now();
    it.packages.beside.replace("Remv my-drivers [1.0]\n".into());
    let outcome = undo_on(&it.machine()).remove(0);
    let Outcome::Failed { why } = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("depend on it by now: my-drivers"), "{why}");
    assert_eq!(it.now(), with);
    it.packages.beside.take();
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored]);
    // Removed by hand, settings kept: the rest goes.
    let it = applied();
    it.packages.set(&[META, IMAGE], Some("config-files"));
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored]);
    assert_eq!(it.now(), "");
    let it = applied();
    it.packages.set(&[META, IMAGE], None);
    assert_eq!(undo_on(&it.machine()), [Outcome::WasBefore]);
}

#[test]
fn the_running_kernel_is_not_removed() {
    let it = Played::new("");
    apply_to(&it.machine(), &[asked()]).unwrap();
    let path = it.tree.path().join("proc/sys/kernel/osrelease");
    for (release, word) in [("6.1.0-56-rt-amd64\n", "is running"), ("", "unknown")] {
        fs::write(&path, release).unwrap();
        let outcome = undo_on(&it.machine()).remove(0);
        let Outcome::Failed { why } = outcome else { panic!("{outcome:?}") };
        assert!(why.contains(word), "{why}");
    }
    fs::write(&path, "6.1.0-50-amd64\n").unwrap();
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored]);
}

#[test]
fn what_a_kill_left_half_done_is_removed() {
    for status in ["half-installed", "unpacked", "half-configured", "installed"] {
        let it = Played::new("");
        let machine = it.machine();
        let all = items(&[machine.named(asked()).unwrap()]);
        let mut journal = Journal::begin(&machine, "test".into(), &all).unwrap();
        let before = machine.state(&all[0].change).unwrap();
        journal
            .write(&machine, &JournalLine::Begin { n: 0, item: all[0].clone(), before })
            .unwrap();
        drop(journal);
        it.packages.set(&[IMAGE], Some(status));
        // As update-initramfs leaves it when it is killed, and dpkg a full disk.
        let initrd = it.tree.path().join("boot/initrd.img-6.1.0-56-rt-amd64.new");
        let modules = it.tree.path().join("usr/lib/modules/6.1.0-56-rt-amd64");
        fs::create_dir_all(initrd.parent().unwrap()).unwrap();
        fs::create_dir_all(&modules).unwrap();
        fs::write(&initrd, "").unwrap();
        if status == "half-installed" {
            let path = it.tree.path().join(FILE);
            fs::write(&path, it.now().replace(VERSION, "")).unwrap();
        }
        it.interrupt();
        assert_eq!(undo_on(&it.machine()), [Outcome::Restored], "{status}");
        assert_eq!(it.now(), "", "{status}");
        assert!(!it.packages.is_interrupted() && !initrd.exists() && !modules.exists());
    }
    // A removal that fails half way is taken up again at the end of the same undo.
    let it = Played::new("");
    apply_to(&it.machine(), &[asked()]).unwrap();
    it.packages.fails.set(Some("E: Could not get lock /var/lib/dpkg/lock-frontend"));
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored]);
    assert_eq!(it.now(), "");
}

#[test]
fn what_keeps_the_default_waits_for_the_removal() {
    let it = Played::new("");
    let keeps = file("/boot/grub/custom.cfg", Some(b"set default=x\n"));
    fs::create_dir_all(it.tree.path().join("boot/grub")).unwrap();
    apply_to(&it.machine(), &[keeps, asked()]).unwrap();
    it.packages.beside.replace("Remv my-drivers [1.0]\n".into());
    let outcomes = undo_on(&it.machine());
    assert!(outcomes.iter().all(|it| matches!(it, Outcome::Failed { .. })), "{outcomes:?}");
    assert_eq!(text(&it.tree, "boot/grub/custom.cfg"), "set default=x\n");
    it.packages.beside.take();
    assert_eq!(undo_on(&it.machine()), [Outcome::Restored, Outcome::Restored]);
}
