//! `rtproof kernel bisect --trial-boots`: a whole Debian boots each kernel once and goes on by its
//! own unit. What "builds" is a script that copies Debian's 5.10, since a guest takes hours for a
//! kernel; all boots are real.

use anyhow::{Context, Result};
use serde_json::Value;

use super::boot::same_files;
use super::tracking::script;
use crate::case::{Case, KernelPackage, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// Boots after the first: each of three kernels and the two repeats, and after each the machine's
/// own kernel.
const BOOTS: usize = 10;

/// A source whose `make` copies a kernel and the modules that the guest needs.
const SOURCE: &str = r#"
cp "$(command -v rtproof)" /usr/local/bin/rtproof
mkdir -p /root/k /root/linux/arch/x86
dpkg-deb -x /host/kernel.deb /root/k
release=$(ls /root/k/lib/modules)
echo $release >/host/new
modules=/root/k/lib/modules/$release
grep -E '/(virtio|9p|netfs|fscache|ext4|jbd2|lib|crypto|autofs|fuse|configfs|failover)|mbcache|net_failover' \
    $modules/modules.order >/root/k/order
printf 'config CPU_ISOLATION\n\tbool "isolation"\nconfig OTHER\n\tbool "other"\n' >/root/linux/Kconfig
: >/root/linux/arch/x86/Kconfig; : >/root/linux/Makefile
for name in gcc ld flex bison bc; do
    command -v $name >/dev/null || { printf '#!/bin/sh\n' >/usr/local/bin/$name; chmod 755 /usr/local/bin/$name; }
done
cat >/usr/local/bin/make <<'END'
#!/bin/sh -e
k=/root/k
release=$(ls $k/lib/modules)
for word; do case $word in O=*) o=${word#O=};; esac; done
for word; do
    case $word in
    kernelversion) echo 5.10.0 ;;
    kernelrelease) echo $release ;;
    image_name) echo arch/x86/boot/bzImage ;;
    all)
        echo '  CC      init/main.o'
        mkdir -p $o/arch/x86/boot $o/include/config
        cp $k/boot/vmlinuz-$release $o/arch/x86/boot/bzImage
        echo $release >$o/include/config/kernel.release
        cp $k/order $o/modules.order
        cp $k/lib/modules/$release/modules.builtin* $o/
        while read -r path; do
            to=$o/${path#kernel/}
            mkdir -p ${to%/*}
            cp $k/lib/modules/$release/$path $to
        done <$k/order
        ;;
    esac
done
END
chmod 755 /usr/local/bin/make
config=/root/k/boot/config-$release
cp $config /root/good
sed 's/^CONFIG_CPU_ISOLATION=y/# CONFIG_CPU_ISOLATION is not set/' $config >/root/bad
echo CONFIG_OTHER=y >>/root/bad
rm /root/k/lib/modules/$release/build /root/k/lib/modules/$release/source 2>/dev/null || :"#;

/// The rest of each boot is the unit's, which reboots.
const WAIT: &str = "uname -r >/host/release; cat /proc/cmdline >/host/cmdline
     until [ -e /root/found/bisect.html ]; do sleep 1; done
     while systemctl is-active -q rtproof-bisect.service ||
         [ $(systemctl show -P ActiveState rtproof-bisect.service) = activating ]; do sleep 1; done
     cp /root/found/bisect.json /root/found/bisect.html /host/
     journalctl -b -u rtproof-bisect.service --no-pager >/host/journal 2>&1
     ls /lib/modules >/host/modules; ls /etc/systemd/system >/host/units
     run status rtproof tune status
     sums after";

pub(super) fn cases() -> Vec<Case> {
    let mut case = Case::new(
        "tune/bisect-boots",
        "kernel bisect --trial-boots --reboot builds, boots and tests each kernel by itself, finds \
         the guilty option, and leaves no file of it",
        Machine::grub(),
    )
    .tier(Tier::Three)
    .limit_s(400)
    .kernel_package(KernelPackage::Pinned("rt-5.10"))
    .script(script(&format!(
        "{SOURCE}
         ls /lib/modules >/host/modules; sums before; uname -r >/host/release
         cd /root
         /usr/local/bin/rtproof kernel bisect --source linux --good-config good --bad-config bad \
             --check config-cpu-isolation --prove='--for 2s --load idle --no-trace' \
             --trial-boots --reboot --yes found >/host/first.out 2>&1
         echo $? >/host/first.rc
         sleep 200"
    )))
    .ends_by_itself();
    for boot in 1..=BOOTS {
        case = case.then_again().script(script(WAIT));
        if boot < BOOTS {
            case = case.ends_by_itself();
        }
    }
    let case = case.expect(found).mutation("nothing goes on", "guilty option", |case| {
        // Not all of the way: a boot without the unit is enough.
        case.boots.drain(2..);
        case.boots[1].script =
            "systemctl stop rtproof-bisect.service; sleep 5; echo {} >/host/bisect.json".into();
        case.boots[1].ends = true;
    });
    vec![case]
}

fn found(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let boots = seen.boots();
    let read = |boot: usize, name: &str| -> Result<String> {
        let path = boots.get(boot).context("too few boots")?.share.join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let last = boots.len() - 1;
    let state: Value = serde_json::from_str(&read(last, "bisect.json")?)?;
    let steps = state["steps"].as_array().cloned().unwrap_or_default();
    let outcomes: Vec<&str> = steps.iter().filter_map(|step| step["outcome"].as_str()).collect();
    let bad: Vec<&Value> = steps.iter().filter(|step| step["outcome"] == "bad").collect();
    let title = bad.last().map_or("", |step| step["title"].as_str().unwrap_or_default());
    expect.contains("guilty option", title, "CPU_ISOLATION=n");
    expect.equal("steps", outcomes.len(), 5);
    expect.equal("repeats", steps.iter().filter(|step| step["repeats"].is_u64()).count(), 2);
    let (own, new) = (read(0, "release")?, read(0, "new")?);
    for boot in 1..=last {
        let is_trial = boot % 2 == 1;
        let wanted = if is_trial { &new } else { &own };
        expect.equal(&format!("kernel of boot {boot}"), read(boot, "release")?, wanted.clone());
    }
    for step in &steps {
        let release = step["measured"]["release"].as_str().unwrap_or_default().to_owned();
        expect.equal("measured in the kernel", release, new.trim().to_owned());
    }
    expect.contains("page", &read(last, "bisect.html")?, "CPU_ISOLATION");
    expect.equal("modules", read(last, "modules")?, read(0, "modules")?);
    let units = read(last, "units")?;
    expect.that("unit is gone", "no rtproof-bisect", !units.contains("rtproof-bisect"), &units);
    seen.keep("bisect.html", &read(last, "bisect.html")?)?;
    same_files(seen, expect, "before", "after")
}
