//! Packets once a period: over devices of its own, and to a peer that stops answering for a time.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const KERNELS: &[(&str, &str)] =
    &[("measure/packet/rt-6.1", "rt-6.1"), ("measure/packet/stock-7.2", "stock-7.2")];

pub(super) fn cases() -> impl Iterator<Item = Case> {
    KERNELS.iter().map(|&(name, kernel)| case(name, kernel))
}

/// The peer is a namespace that the guest makes; its kernel does not answer for a second.
fn case(name: &'static str, kernel: &'static str) -> Case {
    Case::new(
        name,
        "packets that a peer does not answer for a second are missed, and no others; devices of \
         its own are gone afterwards",
        Machine::new(kernel).cpus(2),
    )
    .tier(Tier::Two)
    .script(
        "run own rtproof measure --workload packet --cpus 1 --load none --for 3s --no-trace --json
         run links busybox ip link
         busybox ip link add near type veth
         busybox unshare -n busybox sleep 600 &
         far=$!
         busybox sleep 1
         busybox ip link set veth0 netns $far
         busybox ip addr add 192.0.2.1/24 dev near
         busybox ip link set near up
         there() { busybox nsenter -t $far -n busybox \"$@\"; }
         there ip addr add 192.0.2.7/24 dev veth0
         there ip link set veth0 up
         run peer rtproof measure --workload packet:near:192.0.2.7 --cpus 1 --load none --for 8s \
             --no-trace --json &
         peer=$!
         lab-plant wait-for --after 4s
         there sh -c 'echo 1 >/proc/sys/net/ipv4/icmp_echo_ignore_all'
         lab-plant wait-for --after 1s
         there sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_echo_ignore_all'
         wait $peer
         kill $far",
    )
    .expect(missed)
    .other_word("echo 1 >/proc", "echo 0 >/proc", "packets without an answer")
}

fn missed(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.equal("exit code", seen.rc("own")?, 0);
    let own = seen.json("own")?;
    // The emulator's CPUs take turns, which keeps a thread from its CPU for a millisecond or two.
    let late = own.number("/cells/0/threads/0/missed")?;
    let all = own.number("/cells/0/threads/0/samples/n")? + late;
    expect.equal("over its own devices: all", all, 3_000);
    expect.within("over its own devices: the thread was late", late, 0..=60);
    let text = seen.out("own")?;
    expect.that("every packet was answered", "no note", !text.contains("had no answer"), text);
    let links = seen.out("links")?;
    expect.that("its devices are gone", "no rtproof0", !links.contains("rtproof0"), links);
    let peer = seen.json("peer")?;
    let lost = peer.number("/cells/0/threads/0/missed")?;
    expect.within("packets without an answer", lost, 900..=1_300);
    expect.equal("all", peer.number("/cells/0/threads/0/samples/n")? + lost, 8_000);
    expect.contains("note", &seen.out("peer")?, "had no answer; they count as missed");
    Ok(())
}
