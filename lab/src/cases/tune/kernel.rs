//! Another kernel in the boot entry of a whole Debian with GRUB: one of the menu, and one of a
//! package that is not installed.

use anyhow::Result;

use super::boot::same_files;
use super::tracking::script;
use crate::case::{Case, KernelPackage, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    let cases = [of_menu(), of_package()];
    cases.into_iter().map(|case| case.tier(Tier::Three).limit_s(900)).collect()
}

/// The image has Debian's stock and RT kernel in its menu, and boots the latter.
fn of_menu() -> Case {
    Case::new(
        "tune/kernel-of-menu",
        "tune trial --kernel VERSION boots the other kernel of the menu once, verify and confirm \
         know it, and undo gives back /etc and /boot",
        Machine::grub(),
    )
    .script(script(
        "sums before; uname -r >/host/release.0
         new=$(ls /lib/modules | grep -v -x \"$(uname -r)\"); echo $new >/host/new
         run trial rtproof tune trial --kernel $new --yes
         run early rtproof tune confirm
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "uname -r >/host/release.1
         run verify rtproof tune verify --json
         run status rtproof tune status
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "uname -r >/host/release.2
         run other rtproof tune verify
         run undo rtproof tune undo --all
         sums after",
    ))
    .expect(|seen, expect| {
        expect.equal("trial: exit code", seen.rc("trial")?, 0);
        expect.equal("confirm before the boot: exit code", seen.rc("early")?, 1);
        is_tried(seen, expect)?;
        expect.equal("verify in the old kernel: exit code", seen.rc("other")?, 2);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        same_files(seen, expect, "before", "after")
    })
    .mutation("the entry is of the running kernel", "the trial boots it", |case| {
        case.boots[0].script = case.boots[0].script.replace("--kernel $new", "quiet");
    })
}

/// It boots once, says so, and the next boot is the old kernel.
fn is_tried(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let new = seen.text("new")?;
    expect.equal("the trial boots it", seen.text("release.1")?, new.clone());
    expect.equal("the next boot is the old one", seen.text("release.2")?, seen.text("release.0")?);
    expect.equal("verify: exit code", seen.rc("verify")?, 0);
    let verify = seen.json("verify")?;
    expect.equal("verify names it", verify.text("/kernel/release").to_owned(), new.trim().into());
    expect.contains("status names it", &seen.out("status")?, &format!("kernel {}", new.trim()));
    Ok(())
}

/// Debian's 5.10 with PREEMPT_RT, which the image does not have. The guest mounts its share with a
/// module of that kernel, so its modules are found and fit.
fn of_package() -> Case {
    of("tune/kernel-of-package", KernelPackage::Pinned("rt-5.10"))
}

/// A package that was built here.
#[cfg(test)]
pub(crate) fn of_build(package: std::path::PathBuf) -> Case {
    of("tune/kernel-of-build", KernelPackage::File(package)).limit_s(900)
}

fn of(name: &'static str, package: KernelPackage) -> Case {
    Case::new(
        name,
        "tune trial --kernel FILE.deb boots a kernel that is not installed, with modules and an \
         initial RAM disk of its own; update-grub does not list it; undo leaves no file of it",
        Machine::grub(),
    )
    .kernel_package(package)
    .script(script(
        "all() { sums $1; find /lib/modules /usr/lib/modules | sort >/host/$1.modules; }
         all before; uname -r >/host/release.0; ls /lib/modules >/tmp/old
         cp /host/kernel.deb /root/
         run trial rtproof tune trial --kernel /root/kernel.deb --yes --json
         rm /root/kernel.deb
         ls /lib/modules | grep -v -x -F -f /tmp/old >/host/new
         update-grub 2>/host/menu; grep -c \"vmlinuz-$(cat /host/new)\" /boot/grub/grub.cfg >/host/listed
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "uname -r >/host/release.1; cat /proc/cmdline >/host/cmdline.1
         run verify rtproof tune verify --json
         run status rtproof tune status
         run inside rtproof tune undo --all
         echo reboot >/host/then",
    ))
    .then_again()
    .script(script(
        "all() { sums $1; find /lib/modules /usr/lib/modules | sort >/host/$1.modules; }
         uname -r >/host/release.2
         run undo rtproof tune undo --all
         all after",
    ))
    .expect(|seen, expect| {
        expect.equal("trial: exit code", seen.rc("trial")?, 0);
        is_tried(seen, expect)?;
        let image = format!("/boot/rtproof/vmlinuz-{}", seen.text("new")?.trim());
        expect.contains("the image is ours", &seen.text("cmdline.1")?, &image);
        expect.equal("update-grub lists it", seen.text("listed")?.trim().to_owned(), "0".into());
        expect.equal("undo in the kernel itself: exit code", seen.rc("inside")?, 1);
        expect.contains("it says what to do", &seen.out("inside")?, "reboot into the other kernel");
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        expect.equal("modules", seen.text("after.modules")?, seen.text("before.modules")?);
        same_files(seen, expect, "before", "after")
    })
    .mutation("nothing is undone", "modules", |case| {
        for boot in &mut case.boots[1..] {
            boot.script = boot.script.replace("rtproof tune undo", "echo tune undo");
        }
    })
}
