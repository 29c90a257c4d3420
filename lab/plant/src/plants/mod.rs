//! The plants by name.

use crate::args::Args;
use crate::failure::Failure;
use crate::policy::Policy;
use crate::run;
use crate::run::Frame;

mod boost;
mod burst;
mod clock_step;
mod cycle;
mod deliver;
mod expire;
mod fill_disk;
mod fork;
mod irq;
mod memory;
mod module;
mod moved;
mod offline;
mod purge;
mod quota;
mod softirq;
mod stop;

pub(crate) fn run(plant: &str, args: &Args) -> Result<(), Failure> {
    let plain = Frame::PLAIN;
    match plant {
        "burst" => burst::burst(plain, args),
        "throttle" => burst::throttle(Frame { policy: Policy::Fifo(10), ..plain }, args),
        "boost" => boost::boost(Frame { policy: Policy::Fifo(10), ..plain }, args),
        "cycle" => cycle::cycle(Frame { policy: Policy::Fifo(70), ..plain }, args),
        "deliver" => deliver::deliver(plain, args),
        "expire" => expire::expire(plain, args),
        "purge" => purge::purge(plain, args),
        "stop" => stop::stop(plain, args),
        "softirq" => plain.run(plant, args, softirq::flood),
        "irq" => irq::irq(plain, args),
        "memory" => memory::memory(plain, args),
        "fork" => plain.run(plant, args, fork::fork),
        "clock-step" => clock_step::clock_step(plain, args),
        "fill-disk" => fill_disk::fill_disk(plain, args),
        "offline" => offline::offline(Frame { pins: false, ..plain }, args),
        "quota" => quota::quota(Frame { joins: false, ..plain }, args),
        "module" => module::module(Frame { pins: false, ..plain }, args),
        "move" => moved::moved(Frame { policy: Policy::Fifo(70), ..plain }, args),
        "wait-for" => run::wait_for(args),
        // Started by `fork`: the shortest process there is.
        fork::NOTHING => Ok(()),
        _ => Err(Failure::Usage("no such plant".into())),
    }
}
