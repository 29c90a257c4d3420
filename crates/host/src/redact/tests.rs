//! Tests of what is left out and renamed.

use super::*;
use crate::capture::form::CaptureOrigin;

fn capture(files: &[(&str, &str)]) -> Capture {
    let entry =
        |(path, text): &(&str, &str)| ((*path).to_owned(), CaptureEntry::File((*text).into()));
    Capture {
        origin: CaptureOrigin::Live { by_root: true },
        about: Vec::new(),
        entries: files.iter().map(entry).collect(),
    }
}

#[track_caller]
fn redacted(path: &str, text: &str, expected: &str) {
    let mut capture = capture(&[("/proc/sys/kernel/hostname", "robot7\n"), (path, text)]);
    capture.redact();
    assert_eq!(capture.bytes("/proc/sys/kernel/hostname").unwrap(), b"host-1\n");
    let found = String::from_utf8(capture.bytes(path).unwrap()).unwrap();
    assert_eq!(found, expected);
    let once = capture.clone();
    assert_eq!(capture.redact(), 0, "nothing left to do");
    assert_eq!(capture, once);
}

#[test]
fn boot_parameters_keep_their_names() {
    redacted(
        "/proc/cmdline",
        "BOOT_IMAGE=/vmlinuz-5.15.0-200.131.27.1.el8uek root=UUID=0a1b2c3d-0001-0002-0003-0123456789ab ro \
         resume=PARTUUID=ABCD-1234 isolcpus=managed_irq,domain,2-3 nohz_full=2-3 console=ttyS0,115200n8 \
         ip=10.0.0.2::10.0.0.1:255.255.255.0:robot7:eth0:off rd.luks.uuid=luks-1 foo=robot7 \
         dyndbg=\"file a.c +p\" log=10.1.2.3:514 z=https://a/b -- --secret 1\n",
        "BOOT_IMAGE=/vmlinuz-5.15.0-200.131.27.1.el8uek root=UUID=uuid-1 ro \
         resume=PARTUUID=uuid-2 isolcpus=managed_irq,domain,2-3 nohz_full=2-3 console=ttyS0,115200n8 \
         ip=value-1 rd.luks.uuid=value-2 foo=host-1 \
         dyndbg=\"file a.c +p\" log=ip-1:514 z=value-3 -- left-out\n",
    );
}

#[test]
fn secrets_and_named_disks_of_the_boot_line() {
    redacted(
        "/proc/cmdline",
        "root=/dev/mapper/rhel-root resume=/dev/vg0/swap rd.nvmf.hostnqn=nqn.x wifi.PSK=hunter2 \
         systemd.set_credential=a:b api_token=x systemd.setenv=A=b vg=rhel_ROBOT7/root \
         52:54:00:12:34:56 iommu.passthrough=1\n",
        "root=value-1 resume=value-2 rd.nvmf.hostnqn=value-3 wifi.PSK=value-4 \
         systemd.set_credential=value-5 api_token=value-6 systemd.setenv=value-7 \
         vg=rhel_host-1/root mac-1 iommu.passthrough=1\n",
    );
    for line in ["root=/dev/sda1 quiet\n", "root=UUID=uuid-1 resume=/dev/nvme0n1p2\n"] {
        redacted("/proc/cmdline", line, line);
    }
}

#[test]
fn what_is_no_text_in_whole_is_redacted_too() {
    let files = [("/proc/1/environ", "x"), ("/proc/cmdline", "x")];
    let mut capture = capture(&files);
    let put = |capture: &mut Capture, path: &str, bytes: &[u8]| {
        capture.entries.insert(path.into(), CaptureEntry::File(bytes.into()));
    };
    put(&mut capture, "/proc/1/environ", b"TOKEN=secret\0A=\xff\0container=lxc\0");
    put(&mut capture, "/proc/cmdline", b"a=caf\xe9 password=secret ip=10.0.0.1 -- -k secret\n");
    capture.redact();
    assert_eq!(capture.bytes("/proc/1/environ").unwrap(), b"container=lxc\0");
    let line = capture.bytes("/proc/cmdline").unwrap();
    assert!(!line.windows(6).any(|part| part == b"secret"), "{line:?}");
    assert!(line.contains(&0xe9), "{line:?}");
}

#[test]
fn releases_of_four_numbers_stay() {
    let release = "5.15.133.1-microsoft-standard-WSL2\n";
    redacted("/proc/sys/kernel/osrelease", release, release);
    redacted("/proc/sys/kernel/osrelease", "6.6.87.2\n", "6.6.87.2\n");
    let path = "/lib/modules/6.6.87.2/config";
    redacted(path, "CONFIG_HZ=250\n", "CONFIG_HZ=250\n");
    let image = "BOOT_IMAGE=/kernel/5.15.133.1-microsoft a=10.0.0.1-10.0.0.9\n";
    redacted("/proc/cmdline", image, "BOOT_IMAGE=/kernel/5.15.133.1-microsoft a=ip-1-10.0.0.9\n");
}

/// Machines may be called what the kernel calls its own things.
#[test]
fn words_of_the_kernel_are_no_host_names() {
    for host in ["kernel", "node", "docker", "performance", "1000", "amd64", "domain"] {
        let files = [
            ("/boot/config-6.1.0-amd64", "CONFIG_HZ=1000\n"),
            ("/proc/1/cgroup", "0::/docker/abc\n"),
            ("/proc/cmdline", "isolcpus=domain,2-3\n"),
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/kernel/x", "performance 1000\n"),
        ];
        let mut named = capture(&files);
        let before = named.entries.clone();
        named.entries.insert(
            "/proc/sys/kernel/hostname".into(),
            CaptureEntry::File(format!("{host}\n").into()),
        );
        named.redact();
        let hostname = named.entries.remove("/proc/sys/kernel/hostname");
        assert_eq!(hostname, Some(CaptureEntry::File(b"host-1\n".to_vec())));
        assert_eq!(named.entries, before, "{host}");
    }
}

#[test]
fn the_first_part_of_a_long_host_name_is_found_too() {
    let mut capture = capture(&[
        ("/etc/x", "plc7 plc7.factory.example.com Plc7\n"),
        ("/proc/sys/kernel/hostname", "plc7.factory.example.com\n"),
    ]);
    capture.redact();
    let found = String::from_utf8(capture.bytes("/etc/x").unwrap()).unwrap();
    assert!(!found.to_lowercase().contains("plc7") && !found.contains("factory"), "{found}");
}

#[test]
fn addresses_and_ids() {
    redacted(
        "/etc/x",
        "aa:bb:cc:dd:ee:0f AA:BB:CC:DD:EE:0F 01-aa-bb-cc-dd-ee-ff enx001122334455\n\
         10.0.0.1, 10.0.0.1:80 fe80::1%eth0 [2001:db8::7]:22 /home/alice/swap /dev/vg-robot7/swap\n\
         /docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef LABEL=DATA\n",
        "mac-1 mac-1 mac-2 enxmac-3\n\
         ip-1, ip-1:80 ip-2%eth0 [ip-3]:22 /home/user-1/swap /dev/vg-host-1/swap\n\
         /docker/id-1 LABEL=label-1\n",
    );
}

#[test]
fn what_only_looks_alike_stays() {
    for text in [
        "CONFIG_EVM_ATTR_FSUUID=y\nCONFIG_X_UUID=y\n",
        "0::/init.scope\n12:34:56 ::1 :: 0000:00:1f.2-edge\n",
        "Cpus_allowed:\tffffffff,ffffffff\nCapEff:\t000001ffffffffff\n",
        "6.1.0-40 4.18.0-305.10.2.el8 1.2.3.4.5 256.1.1.1 robot70 vm.robot7\n",
        "user@1000.service getty@tty1.service dev-disk-by\\x2duuid.swap\n",
    ] {
        redacted("/proc/self/status", text, text);
    }
}

#[test]
fn files_with_people_or_the_machine_in_them() {
    redacted(
        "/proc/version",
        "Linux version 6.1.0 (eve@buildhost) (gcc 12) #1 SMP\n",
        "Linux version 6.1.0 (user-1@host-2) (gcc 12) #1 SMP\n",
    );
    redacted("/proc/1/environ", "HOME=/\0container=lxc\0TOKEN=x\0", "container=lxc\0");
    redacted(
        "/proc/cpuinfo",
        "Model\t: Pi\nSerial\t\t: 10000000abcd\n",
        "Model\t: Pi\nSerial\t\t: left-out\n",
    );
    let numbers: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
    let stat = format!("1 (a) b) {}\n", numbers.join(" "));
    let mut capture = capture(&[("/proc/1/stat", &stat)]);
    capture.redact();
    let found = String::from_utf8(capture.bytes("/proc/1/stat").unwrap()).unwrap();
    let tail = "24 25 0 0 0 0 0 31 32 33 34 0 36 37 38 39 40 41 42 43 44 0 0 0 0 0 0 0 52\n";
    assert!(found.starts_with("1 (a) b) 3 4 ") && found.ends_with(tail), "{found}");
}

#[test]
fn identities_are_left_out_and_unknown() {
    let mut capture =
        capture(&[("/etc/machine-id", "abcdef\n"), ("/proc/sys/kernel/hostname", "vm\n")]);
    assert_eq!(capture.redact(), 2);
    let facts = crate::Facts::read(&crate::Root::captured(capture));
    assert!(facts.identity.machine_id.value().is_none());
    assert_eq!(facts.identity.hostname.value().map(String::as_str), Some("host-1"));
}

#[test]
fn mounts_keep_kind_and_options_alone() {
    redacted(
        "/proc/self/mounts",
        "proc /proc proc rw,relatime 0 0\n\
         /dev/mapper/robot7-root / ext4 rw,relatime,errors=remount-ro 0 0\n\
         nas.example.org:/export /home/anna/cell9 nfs4 rw,sync,addr=192.0.2.7 0 0\n\
         //nas/x /mnt/customer cifs rw,username=anna 0 0\n\
         /dev/sdb1 /run/media/anna/disk vfat rw 0 0\n",
        "proc /proc proc rw,relatime 0 0\n\
         left-out / ext4 rw,relatime 0 0\n\
         left-out /value-1 nfs4 rw,sync 0 0\n\
         left-out /value-2 cifs rw 0 0\n\
         left-out /run/value-3 vfat rw 0 0\n",
    );
}

#[test]
fn of_boot_loaders_only_what_checks_read_is_kept() {
    redacted(
        "/boot/grub/grub.cfg",
        "set superusers=\"anna\"\npassword_pbkdf2 anna grub.pbkdf2.sha512.10000.ABC\n\
         \tlinux /vmlinuz-6.1.0 root=UUID=0a1b2c3d-0001-0002-0003-0123456789ab isolcpus=2-3\n",
        "linux /vmlinuz-6.1.0 root=UUID=uuid-1 isolcpus=2-3\n",
    );
    redacted(
        "/etc/default/grub",
        "# robot7\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"quiet ip=10.0.0.2 isolcpus=2\"\n",
        "GRUB_CMDLINE_LINUX=\"quiet ip=value-1 isolcpus=2\"\n",
    );
    redacted(
        "/boot/loader/entries/a.conf",
        "title robot7\nversion 5.15.133.1\noptions root=/dev/sda1 token=abc nosmt\n",
        "version 5.15.133.1\noptions root=/dev/sda1 token=value-1 nosmt\n",
    );
    redacted(
        "/boot/firmware/cmdline.txt",
        "root=PARTUUID=ABCD-1234 quiet\n",
        "root=PARTUUID=uuid-1 quiet\n",
    );
}

#[test]
fn accounts_get_other_names_and_those_of_every_machine_stay() {
    redacted(
        "/etc/security/limits.d/99-realtime.conf",
        "# for alice\n@realtime  - rtprio 98\nalice - memlock 1 # hers\n@lab7 - nice -11\n1000: - nice 0\n",
        "\n@realtime - rtprio 98\nuser-1 - memlock 1\n@group-1 - nice -11\n1000: - nice 0\n",
    );
    redacted(
        "/etc/group",
        "root:x:0:\nrealtime:x:990:alice,bob\nalice:x:1000:\n",
        "root:x:0:\nrealtime:x:990:user-1,user-2\ngroup-1:x:1000:\n",
    );
    redacted(
        "/etc/rtproof-firmware.conf",
        "# Jane\nsmt | set | 2026-11-25 | alice | 2.1 01/02/2024 | room 7\n",
        "\nsmt | set | 2026-11-25 | user-1 | 2.1 01/02/2024\n",
    );
    redacted(
        "/etc/pam.d/login",
        "auth x pam_listfile.so file=/etc/alice\nsession required pam_limits.so # x\n@include a\n",
        "\nsession required pam_limits.so\n@include a\n",
    );
}

#[test]
fn the_kernel_log_is_known_text() {
    let mut capture = capture(&[]);
    let answer = "from boot\nto the end\ntsc: unstable at 52:54:00:12:34:56".to_owned();
    capture.entries.insert("kernel log".into(), CaptureEntry::Call(answer));
    capture.redact();
    assert!(capture.call("kernel log").unwrap().ends_with("unstable at mac-1"));
}

#[test]
fn of_configuration_only_what_is_read() {
    for path in ["/etc/sysctl.conf", "/usr/lib/sysctl.d/9-x.conf"] {
        redacted(
            path,
            "# Jane Doe\nvm.swappiness = 1\nkernel.core_pattern=|/opt/acme\n; x\n-vm/dirty_ratio=5",
            "\nvm.swappiness = 1\n\n\n-vm/dirty_ratio=5",
        );
    }
    let text =
        "# Jane\n[Manager]\nCPUAffinity=0 \\\n# Jane\n  1\nDefaultEnvironment=TOKEN=a \\\n B=b\n";
    redacted("/etc/systemd/system.conf", text, "[Manager]\nCPUAffinity=0 \\\n  1\n");
    redacted(
        "/usr/lib/systemd/system/arm.service",
        "[Service]\nExecStart=/opt/arm --token x\nUser=jane\nNice=-5\n",
        "[Service]\nUser=user-1\nNice=-5\n",
    );
    redacted(
        "/etc/default/irqbalance",
        "# Jane\nIRQBALANCE_ARGS=-x\nIRQBALANCE_BANNED_CPULIST=2-3\n",
        "\n\nIRQBALANCE_BANNED_CPULIST=2-3\n",
    );
    redacted("/etc/other.conf", " # Jane\na=b\n", "\na=b\n");
}

#[test]
fn names_of_swap_areas_and_of_control_groups() {
    let lines = "Filename\tType\n/dev/dm-1 partition\n/swapfile file\n";
    redacted("/proc/swaps", lines, lines);
    redacted(
        "/proc/swaps",
        "Filename\tType\n/dev/mapper/acme-swap partition\n/jane\\040doe file\n",
        "Filename\tType\nvalue-1 partition\nvalue-2 file\n",
    );
    let groups = vec!["cpuset.cpus".to_owned(), "robot7-x.slice".to_owned()];
    let mut capture = capture(&[
        ("/proc/sys/kernel/hostname", "robot7\n"),
        ("/sys/fs/cgroup/robot7-x.slice/cpuset.cpus", "1\n"),
    ]);
    capture.entries.insert("/sys/fs/cgroup".into(), CaptureEntry::Folder(groups));
    capture.redact();
    let renamed = capture.bytes("/sys/fs/cgroup/host-1-x.slice/cpuset.cpus");
    assert_eq!(renamed.unwrap(), b"1\n");
    assert_eq!(capture.names("/sys/fs/cgroup").unwrap(), ["cpuset.cpus", "host-1-x.slice"]);
}

#[test]
fn many_names_take_no_longer_each() {
    let address = |at: u32| format!("10.{}.{}.{}\n", at >> 16, (at >> 8) & 255, at & 255);
    let text: String = (0..50_000).map(address).collect();
    let mut capture = capture(&[("/etc/hosts", &text)]);
    let start = std::time::Instant::now();
    assert_eq!(capture.redact(), 50_000);
    // Looking through all names for each one took minutes.
    assert!(start.elapsed().as_secs() < 20);
    assert!(String::from_utf8_lossy(&capture.bytes("/etc/hosts").unwrap()).ends_with("ip-50000\n"));
}
