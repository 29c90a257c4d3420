//! Checks: network, graphics, devices, services.

use super::check::Check;
use super::section::Section;

mod graphics;
mod interfaces;
mod kernel_work;
mod nic;
mod nic_coalescing;
mod rules;
mod services;
mod told;

pub(super) const SECTION: Section =
    Section { name: "device", title: "network, graphics, devices, services", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &nic_coalescing::CHECK,
    &nic::QUEUES,
    &nic::OFFLOAD_FLOW,
    &nic::EEE,
    &nic::WIFI_POWERSAVE,
    &nic::TRANSMIT,
    &nic::NAPI_THREADED,
    &told::TCP,
    &told::IPV6,
    &graphics::ON_CHIP,
    &graphics::NVIDIA,
    &graphics::MODULES,
    &graphics::LOGIN,
    &kernel_work::SERIAL_CONSOLE,
    &kernel_work::AUDIT,
    &kernel_work::TRACING,
    &kernel_work::RPI_FIRMWARE,
    &services::TIMERS,
    &services::MONITORS,
    &services::DESKTOP,
    &rules::GRO_FLUSH,
    &rules::DEFER_IRQS,
    &rules::RPS,
    &rules::RPS_DEFAULT,
    &rules::RFS,
    &rules::BUSY_POLL,
    &rules::BUSY_READ,
    &rules::NETDEV_BUDGET,
    &rules::NETDEV_BUDGET_USECS,
    &rules::PRINTK,
];
