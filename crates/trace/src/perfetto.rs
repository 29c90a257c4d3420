//! A window as a Perfetto trace (`.pftrace`): the kernel's events, the causes as slices of a track
//! of their own, and marks where the thread was due and where it ran.
//!
//! Field numbers are those of protos/perfetto/trace in <https://github.com/google/perfetto>.

use std::collections::BTreeMap;

use crate::kernel::codec::Perfetto;
use crate::kernel::table::{self, FieldValue};
use crate::{Event, EventData, WakeUp, Window};

/// All our packets are of one sequence, whose state begins with the first.
const SEQUENCE: u64 = 1;

const STATE_CLEARED: u64 = 1;

/// Perfetto's numbers of clocks. Its traces are on the boot clock unless they say otherwise; ours
/// are on another, and both are declared to show the same.
const CLOCK_MONOTONIC: u64 = 3;

const CLOCK_BOOTTIME: u64 = 6;

/// Our tracks, in the order in which they are shown.
const TRACK_ROOT: u64 = 0x7274_7072_6f6f_6600;

const TRACK_MARKS: u64 = TRACK_ROOT + 1;

const TRACK_CAUSES: u64 = TRACK_ROOT + 2;

const TRACK_STACKS: u64 = TRACK_ROOT + 3;

const SLICE_BEGIN: u64 = 1;

const SLICE_END: u64 = 2;

const INSTANT: u64 = 3;

/// A window as the bytes of a Perfetto trace. `spans` are the causes: from, to (both nanoseconds on
/// the window's clock) and a name; they should not overlap.
pub fn encode(window: &Window, wake: &WakeUp, spans: &[(u64, u64, &str)]) -> Vec<u8> {
    let mut trace = Trace::default();
    trace.clocks(wake.due_ns);
    trace.tracks(wake, window);
    trace.tasks(window);
    trace.kernel(window);
    trace.mark(TRACK_MARKS, wake.due_ns, INSTANT, "due");
    trace.mark(TRACK_MARKS, wake.ran_ns, INSTANT, "ran");
    for &(from_ns, to_ns, name) in spans {
        trace.mark(TRACK_CAUSES, from_ns, SLICE_BEGIN, name);
        trace.mark(TRACK_CAUSES, to_ns, SLICE_END, "");
    }
    for event in &window.events {
        if let EventData::Stack { frames } = &event.what {
            trace.stack(window, event, frames);
        }
    }
    trace.bytes
}

#[derive(Default)]
struct Trace {
    bytes: Vec<u8>,
}

impl Trace {
    fn packet(&mut self, fill: impl FnOnce(&mut Message)) {
        let mut packet = Message::default();
        fill(&mut packet);
        packet.number(10, SEQUENCE);
        if self.bytes.is_empty() {
            packet.number(13, STATE_CLEARED);
        }
        let mut trace = Message::default();
        trace.message(1, &packet);
        self.bytes.extend(trace.into_bytes());
    }

    fn clocks(&mut self, at_ns: u64) {
        self.packet(|packet| {
            let mut snapshot = Message::default();
            for clock in [CLOCK_BOOTTIME, CLOCK_MONOTONIC] {
                let mut reading = Message::default();
                reading.number(1, clock);
                reading.number(2, at_ns);
                snapshot.message(1, &reading);
            }
            snapshot.number(2, CLOCK_BOOTTIME);
            packet.message(6, &snapshot);
        });
    }

    fn tracks(&mut self, wake: &WakeUp, window: &Window) {
        let comm = window.tasks.get(&wake.tid).map_or("", |task| task.comm.as_str());
        let latency_ns = wake.latency_ns();
        let (whole, rest) = (latency_ns / 1_000, latency_ns % 1_000);
        let title =
            format!("rtproof: {comm} {} on CPU {}, {whole}.{rest:03} us late", wake.tid, wake.cpu);
        for (rank, (track, name)) in [
            (TRACK_ROOT, title.as_str()),
            (TRACK_MARKS, "due and ran"),
            (TRACK_CAUSES, "causes"),
            (TRACK_STACKS, "stacks"),
        ]
        .into_iter()
        .enumerate()
        {
            self.packet(|packet| {
                let mut descriptor = Message::default();
                descriptor.number(1, track);
                descriptor.text(2, name);
                if track == TRACK_ROOT {
                    // Children in the order of their ranks.
                    descriptor.number(11, 3);
                } else {
                    descriptor.number(5, TRACK_ROOT);
                    descriptor.number(12, rank as u64);
                }
                packet.message(60, &descriptor);
            });
        }
    }

    /// Names of tasks, and of the processes they belong to.
    fn tasks(&mut self, window: &Window) {
        let mut tree = Message::default();
        let mut processes: BTreeMap<i32, &str> = BTreeMap::new();
        for (&tid, task) in window.tasks.iter().filter(|(_, task)| task.tgid > 0) {
            let name = processes.entry(task.tgid).or_default();
            if tid == task.tgid || name.is_empty() {
                *name = &task.comm;
            }
        }
        for (tgid, name) in processes {
            let mut process = Message::default();
            process.int(1, tgid);
            process.text(3, name);
            tree.message(1, &process);
        }
        for (&tid, task) in window.tasks.iter().filter(|(_, task)| task.tgid > 0) {
            let mut thread = Message::default();
            thread.int(1, tid);
            thread.text(2, &task.comm);
            thread.int(3, task.tgid);
            tree.message(2, &thread);
        }
        if !tree.is_empty() {
            self.packet(|packet| packet.message(2, &tree));
        }
    }

    /// The events, a bundle for each CPU.
    fn kernel(&mut self, window: &Window) {
        let mut bundles: BTreeMap<u32, Message> = BTreeMap::new();
        for event in &window.events {
            let Some(encoded) = encode_event(event, window) else { continue };
            bundles.entry(event.cpu).or_default().message(2, &encoded);
        }
        for (cpu, mut bundle) in bundles {
            bundle.number(1, u64::from(cpu));
            if cpu == window.cpu && !window.lost.is_empty() {
                bundle.number(3, 1);
            }
            self.packet(|packet| packet.message(1, &bundle));
        }
    }

    fn mark(&mut self, track: u64, at_ns: u64, kind: u64, name: &str) {
        self.track_event(track, at_ns, kind, name, None);
    }

    fn track_event(
        &mut self,
        track: u64,
        at_ns: u64,
        kind: u64,
        name: &str,
        detail: Option<(&str, &str)>,
    ) {
        self.packet(|packet| {
            let mut event = Message::default();
            event.number(9, kind);
            event.number(11, track);
            if !name.is_empty() {
                event.text(23, name);
                event.text(22, "rtproof");
            }
            if let Some((key, value)) = detail {
                let mut annotation = Message::default();
                annotation.text(10, key);
                annotation.text(6, value);
                event.message(4, &annotation);
            }
            packet.number(8, at_ns);
            packet.number(58, CLOCK_BOOTTIME);
            packet.message(11, &event);
        });
    }

    fn stack(&mut self, window: &Window, event: &Event, frames: &[u64]) {
        let names: Vec<String> =
            frames.iter().map(|&frame| window.symbol_or_address(frame)).collect();
        let Some(first) = names.first() else { return };
        let all = names.join("\n");
        self.track_event(TRACK_STACKS, event.at_ns, INSTANT, first, Some(("stack", &all)));
    }
}

// Kernel events as Perfetto has them. Interrupts that it has no event for are shown as those of
// devices; the rest as generic events with the kernel's names.

/// Field of `FtraceEvent` with an event that Perfetto does not know.
const GENERIC: u64 = 327;

/// The `FtraceEvent`; `None`: nothing that can be shown as one.
fn encode_event(event: &Event, window: &Window) -> Option<Message> {
    let (field, body) = noise(&event.what).or_else(|| body(event, window))?;
    let mut message = Message::default();
    message.number(1, event.at_ns);
    // Stored as unsigned, the idle task as 0.
    message.int(2, event.pid);
    message.number(5, u64::from(event.flags));
    message.message(field, &body);
    Some(message)
}

fn body(event: &Event, window: &Window) -> Option<(u64, Message)> {
    let (kind, values) = table::event_values(&event.what)?;
    let fields = kind.fields.iter().zip(values).filter(|(field, _)| field.number > 0);
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by_key(|(field, _)| field.number);
    let mut message = Message::default();
    let message_field = match kind.perfetto {
        Perfetto::Apart => return None,
        Perfetto::Message(field) => field,
        Perfetto::Generic => {
            message.text(1, kind.name);
            GENERIC
        }
    };
    for (field, value) in fields {
        let number = match value {
            FieldValue::Number(value) | FieldValue::Symbol(value) | FieldValue::Offset(value) => {
                value
            }
            FieldValue::Tid(tid) => i64::from(tid).cast_unsigned(),
            FieldValue::OwnCpu => u64::from(event.cpu),
            FieldValue::Mask(mask) => mask & u64::from(u32::MAX),
            FieldValue::Text(text) => {
                message.text(field.number, &String::from_utf8_lossy(text));
                continue;
            }
            FieldValue::Addresses(_) => continue,
        };
        match (kind.perfetto, value) {
            (Perfetto::Generic, FieldValue::Symbol(address)) => {
                let name = window.symbol_or_address(address);
                named(&mut message, field.name(), |field| field.text(3, &name));
            }
            (Perfetto::Generic, _) => {
                named(&mut message, field.name(), |field| field.number(5, number));
            }
            _ => message.number(field.number, number),
        }
    }
    Some((message_field, message))
}

/// Noise of any kind has the same fields.
fn noise(what: &EventData) -> Option<(u64, Message)> {
    let EventData::Noise { kind, name, number, start_ns, duration_ns } = what else { return None };
    let mut message = Message::default();
    message.text(1, &format!("{kind}_noise"));
    named(&mut message, "name", |field| field.text(3, &name.to_string()));
    named(&mut message, "number", |field| field.int(4, *number));
    named(&mut message, "start", |field| field.number(5, *start_ns));
    named(&mut message, "duration", |field| field.number(5, *duration_ns));
    Some((GENERIC, message))
}

/// Adds a field with a name.
fn named(message: &mut Message, name: &str, fill: impl FnOnce(&mut Message)) {
    let mut field = Message::default();
    field.text(1, name);
    fill(&mut field);
    message.message(2, &field);
}

// The little of Protocol Buffers that is needed to write: numbers, texts, messages in messages.

/// A message as it grows.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// An unsigned number, or one of the kinds that are stored like it.
    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// A signed number (int32, int64): its 64 bits.
    fn int(&mut self, field: u64, value: impl Into<i64>) {
        self.number(field, value.into().cast_unsigned());
    }

    fn text(&mut self, field: u64, value: &str) {
        self.data(field, value.as_bytes());
    }

    /// A message in this one.
    fn message(&mut self, field: u64, value: &Self) {
        self.data(field, &value.bytes);
    }

    fn data(&mut self, field: u64, data: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(data.len() as u64);
        self.bytes.extend_from_slice(data);
    }
}

/// A number at the start, and what is behind.
#[cfg(test)]
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WakeUpBasis;

    /// Field, wire type and what follows of a message.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let (tag, rest) = read_varint(bytes).expect("a tag");
            let (field, rest) = match tag & 7 {
                0 => {
                    let (value, rest) = read_varint(rest).expect("a number");
                    ((tag >> 3, value, Vec::new()), rest)
                }
                2 => {
                    let (length, rest) = read_varint(rest).expect("a length");
                    let (data, rest) = rest.split_at(length as usize);
                    ((tag >> 3, length, data.to_vec()), rest)
                }
                other => panic!("wire type {other}"),
            };
            found.push(field);
            bytes = rest;
        }
        found
    }

    #[test]
    fn every_packet_has_its_sequence_and_the_first_its_state() {
        let wake =
            WakeUp { tid: 7, cpu: 3, due_ns: 1_000, ran_ns: 4_000, how: WakeUpBasis::Measured };
        let event = Event {
            at_ns: 2_000,
            cpu: 3,
            pid: 0,
            flags: 0,
            preempt: 0,
            what: EventData::SoftirqEntry { vec: 9 },
        };
        let window = Window { cpu: 3, events: vec![event], ..Window::default() };
        let bytes = encode(&window, &wake, &[(1_000, 4_000, "softirq RCU")]);
        let packets: Vec<_> =
            fields(&bytes).into_iter().map(|(_, _, data)| fields(&data)).collect();
        assert!(packets.iter().all(|packet| packet.iter().any(|field| field.0 == 10)));
        let cleared = |packet: &&Vec<(u64, u64, Vec<u8>)>| packet.iter().any(|field| field.0 == 13);
        assert_eq!(packets.iter().filter(cleared).count(), 1);
        // A clock, four tracks, one bundle, two marks, the two ends of a slice.
        let kinds: Vec<u64> = packets
            .iter()
            .map(|packet| {
                packet
                    .iter()
                    .find(|field| [1, 2, 6, 11, 60].contains(&field.0))
                    .map_or(0, |field| field.0)
            })
            .collect();
        assert_eq!(kinds, [6, 60, 60, 60, 60, 1, 11, 11, 11, 11]);
        assert_eq!(read_varint(&[0x80]), None);
        let last = packets.last().expect("packets");
        assert!(last.contains(&(8, 4_000, Vec::new())), "{last:?}");
    }
}

#[cfg(test)]
mod proto_tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        let mut message = Message::default();
        message.number(1, 150);
        message.int(2, -1);
        message.text(11, "a");
        assert_eq!(
            message.into_bytes(),
            [8, 0x96, 1, 16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x5a, 1, b'a']
        );
    }
}
